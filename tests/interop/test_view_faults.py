"""A fault in the making of one view: seen where people look, and nobody else is held up by it. Real servers."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pymysql
import pytest

from relay.view.rules.group_rules import MysqlRules
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.relay_inside import PASSWORD, relay_inside

pytestmark = pytest.mark.interop

T = TypeVar("T")
CONFIG = """
[[view]]
name = "gtid"
[[view]]
name = "other"
[[account]]
user = "viewer"
password = "replica-password"
view = "gtid"
admin = true
[[account]]
user = "of_other"
password = "replica-password"
view = "other"
"""
DEFAULTS = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")


async def call(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)


def asked(port: int, statement: str, user: str) -> list[dict[str, Any]]:
    with (
        pymysql.connect(
            host="127.0.0.1", port=port, user=user, password=PASSWORD, cursorclass=pymysql.cursors.DictCursor
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
        return list(cursor.fetchall())


async def test_a_fault_in_one_view_is_seen_and_holds_up_neither_the_mirror_nor_another_view(
    servers: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.view.running.maker.AGAIN_S", 0.2)
    source = await call(lambda: servers("mysql56").start(server_id=1, options=["--binlog-format=ROW"]))
    plan, faulty = MysqlRules.plan, [True]

    def planned(rules: MysqlRules, group: Any) -> Any:
        if faulty and rules._settings.name == "gtid":
            raise OverflowError("int too big to convert")
        return plan(rules, group)

    monkeypatch.setattr(MysqlRules, "plan", planned)
    (tmp_path / "relay").mkdir()
    async with relay_inside(tmp_path / "relay", source, more=CONFIG) as relay:
        await relay.until_logged("view_served", 2)

        def follow() -> None:
            source.execute_many(
                ["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"]
            )
            of_mirror = servers("mysql56").start(server_id=11)
            of_mirror.attach("127.0.0.1", relay.port, "replica", PASSWORD, source.binlogs()[0].name, 4)
            of_other = servers("mysql97").start(server_id=12, options=DEFAULTS)
            of_other.attach("127.0.0.1", relay.port, "of_other", PASSWORD, auto_position=1)
            of_view = servers("mysql97").start(server_id=13, options=DEFAULTS)
            of_view.attach("127.0.0.1", relay.port, "viewer", PASSWORD, auto_position=1)
            rows = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'd'"
            for replica in (of_mirror, of_other):
                wait_until(lambda replica=replica: replica.sql(rows)[0][0] == 1, "the table is there", 30)
            assert of_view.sql(rows)[0][0] == 0
            (status,) = asked(relay.port, "SHOW SLAVE STATUS", "viewer")
            assert status["Slave_SQL_Running"] == "No"
            assert "OverflowError: int too big to convert, at test_view_faults.py" in status["Last_SQL_Error"]
            of_faulty, of_good = (str(row) for row in asked(relay.port, "CALL binlog_relay.view_list()", "viewer"))
            assert "internal_error" in of_faulty and "internal_error" not in of_good
            assert asked(relay.port, "SHOW SLAVE STATUS", "replica")[0]["Slave_SQL_Running"] == "Yes"
            faulty.clear()
            wait_until(lambda: of_view.sql(rows)[0][0] == 1, "it is tried again by itself", 30)
            wait_until(lambda: of_view.sql("SELECT COUNT(*) FROM d.t")[0][0] == 1, "and goes on", 30)
            assert asked(relay.port, "SHOW SLAVE STATUS", "viewer")[0]["Slave_SQL_Running"] == "Yes"
            for replica in (of_mirror, of_other, of_view):
                replica.stop()

        await call(follow)
        assert len(relay.logged("task_failed")) == len(relay.logged("view_stopped")) == 1
        assert relay.logged("view_stopped")[0]["reason"] == "internal_error"
        assert relay.logged("view_goes_on")
