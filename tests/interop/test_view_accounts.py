"""Accounts with a view, on real servers: what they follow is another archive than the mirror, behind one listener.

The views here are made by no rules: an archive of another source stands in the place of each.
"""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pymysql
import pytest

from deploy.servers import BinlogPosition, Server
from relay.archive.archive import Archive
from relay.archive.write.options import ArchiveOptions
from relay.service.view_service import OpenOne
from relay.view.rules.settings import ViewSettings
from tests.conftest import ServerFactory
from tests.interop.test_gtid_mysql import GTID_OPTIONS, executed, write
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_inside import PASSWORD, RelayInside, relay_inside
from tests.support.relay_process import RelayProcess
from tests.support.view_stand_in import ViewStandIn
from tests.support.workload import DATABASE, light_workload

pytestmark = pytest.mark.interop

T = TypeVar("T")
CONFIG = """
[[view]]
name = "gtid"
[[account]]
user = "viewer"
password = "replica-password"
view = "gtid"
"""


def from_elsewhere(directory: Path) -> OpenOne:
    """In place of `open_view`: archives that are there, in `directory`, by the names of the views."""

    async def open_one(_mirror: Archive, settings: ViewSettings, options: ArchiveOptions) -> ViewStandIn:
        archive = await Archive.open(directory / settings.name, options)
        return ViewStandIn(archive, settings)

    return open_one


def archived(source: Server, directory: Path, name: str) -> None:
    """All binlogs of `source` in an archive of that name."""
    source.sql("FLUSH LOGS")
    copies = directory / f"copies-{name}"
    copies.mkdir()
    for binlog in source.binlogs()[:-1]:
        shutil.copy(binlog, copies)
    with RelayProcess(directory / f"relay-{name}", copies, port=free_port()) as relay:
        newest = max(copies.iterdir())
        relay.wait_archived(newest.name, newest.stat().st_size)
        relay.stop()
    (directory / "made").mkdir(exist_ok=True)
    shutil.copytree(relay.archive, directory / "made" / name)


async def call(function: Callable[[], T]) -> T:
    return await asyncio.wait_for(asyncio.to_thread(function), 90)


def logged_in(port: int, user: str = "viewer") -> Any:
    return pymysql.connect(host="127.0.0.1", port=port, user=user, password=PASSWORD, connect_timeout=10)


def asked(port: int, statement: str, user: str = "viewer") -> list[tuple[Any, ...]]:
    with logged_in(port, user) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


@pytest.fixture
def gtid_source(servers: ServerFactory, tmp_path: Path) -> Server:
    """A MySQL 9.7 with GTIDs, whose binlogs stand in the place of the view `gtid`."""
    source = servers("mysql97").start(server_id=9, options=GTID_OPTIONS)
    source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)"])
    write(source, "one", 30)
    archived(source, tmp_path, "gtid")
    return source


async def test_a_97_replica_follows_the_view_by_gtid_while_a_56_one_follows_the_mirror(
    servers: ServerFactory, gtid_source: Server, tmp_path: Path
) -> None:
    source = await call(lambda: servers("mysql56").start(server_id=1))
    first = BinlogPosition(source.binlogs()[0].name, 4)

    (tmp_path / "relay").mkdir()
    async with relay_inside(
        tmp_path / "relay", source, more=CONFIG, open_one=from_elsewhere(tmp_path / "made")
    ) as relay:
        await relay.until_logged("view_served")

        def follow_both() -> None:
            light_workload(source)
            of_view = servers("mysql97").start(server_id=10, options=GTID_OPTIONS)
            of_view.attach("127.0.0.1", relay.port, "viewer", PASSWORD, auto_position=1)
            of_mirror = servers("mysql56").start(server_id=11)
            of_mirror.attach("127.0.0.1", relay.port, "replica", PASSWORD, first.file, first.position)
            of_mirror.wait_caught_up(*source.master_status())
            of_view.sql(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed(gtid_source)}', 60)")
            assert of_view.checksum_tables(["one"]) == gtid_source.checksum_tables(["one"])
            assert of_mirror.checksum_tables([DATABASE]) == source.checksum_tables([DATABASE])
            assert executed(gtid_source) == executed(of_view)
            assert not of_view.sql(f"SHOW DATABASES LIKE '{DATABASE}'") and not of_mirror.sql(
                "SHOW DATABASES LIKE 'one'"
            )
            assert not of_view.replica_status()["io_errno"]
            # Either says of itself what it follows; of the relay both say the same.
            assert asked(relay.port, "SELECT @@GLOBAL.gtid_mode, VERSION()") == [
                ("ON", source.sql("SELECT VERSION()")[0][0])
            ]
            assert asked(relay.port, "SELECT @@GLOBAL.gtid_mode", "replica") == [("OFF",)]
            assert asked(relay.port, "SELECT @@GLOBAL.gtid_executed") == [(str(executed(gtid_source)),)]
            of_view.stop_replica()
            of_mirror.stop_replica()

        await call(follow_both)


async def test_sighup_moves_an_account_to_another_view_for_new_logins_only(
    servers: ServerFactory, gtid_source: Server, tmp_path: Path
) -> None:
    source = await call(lambda: servers("mysql56").start(server_id=1))
    before = str(executed(gtid_source))
    write(gtid_source, "one", 5)
    await call(lambda: archived(gtid_source, tmp_path, "longer"))
    more = CONFIG + '[[view]]\nname = "longer"\n'

    (tmp_path / "relay").mkdir()
    async with relay_inside(tmp_path / "relay", source, more=more, open_one=from_elsewhere(tmp_path / "made")) as relay:
        await relay.until_logged("view_served", 2)
        old = await call(lambda: logged_in(relay.port))
        config = tmp_path / "relay" / "relay.toml"
        config.write_text(config.read_text().replace('view = "gtid"', 'view = "longer"'))
        assert await reloaded(relay) == []

        def both() -> tuple[object, object]:
            with old, old.cursor() as cursor:
                cursor.execute("SELECT @@GLOBAL.gtid_executed")
                return cursor.fetchone(), asked(relay.port, "SELECT @@GLOBAL.gtid_executed")[0]

        assert await call(both) == ((before,), (str(executed(gtid_source)),))
        # A view that is new, or another one, is not there before a restart: its accounts wait, and see nothing else.
        config.write_text(
            config.read_text().replace('view = "longer"', 'view = "later"') + '[[view]]\nname = "later"\n'
        )
        assert await reloaded(relay) == ["view"]
        with pytest.raises(pymysql.MySQLError, match="restart it"):
            await call(lambda: asked(relay.port, "SELECT 1"))


async def reloaded(relay: RelayInside) -> list[str]:
    """What waits for a restart after SIGHUP."""
    count = len(relay.logged("reloaded"))
    os.kill(os.getpid(), signal.SIGHUP)
    line = await relay.until_logged("reloaded", count + 1)
    return list(line["waits_for_restart"])


async def test_a_97_replica_with_its_defaults_moves_from_another_account_to_a_view_and_is_not_held_up(
    servers: ServerFactory, tmp_path: Path
) -> None:
    source = await call(lambda: servers("mysql56").start(server_id=1, options=["--binlog-format=ROW"]))
    (tmp_path / "relay").mkdir()
    async with relay_inside(tmp_path / "relay", source, more=CONFIG) as relay:
        await relay.until_logged("view_served")

        def follow() -> None:
            source.execute_many(
                ["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)"]
            )
            write(source, "one", 20)
            replica = servers("mysql97").start(
                server_id=10, options=["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
            )
            # Its first stream is from the mirror: refused at once, as the source has no GTIDs, and soon asked for again.
            replica.attach("127.0.0.1", relay.port, "replica", PASSWORD, auto_position=1, connect_retry=1)
            wait_until(lambda: replica.replica_status()["io_errno"], "the mirror has no GTIDs")
            replica.stop_replica()
            began = time.monotonic()
            replica.attach("127.0.0.1", relay.port, "viewer", PASSWORD, auto_position=1)
            check_view(relay.port, source, replica)
            assert time.monotonic() - began < 20
            write(source, "one", 20, seed=2)
            check_view(relay.port, source, replica)
            status = dict(asked(relay.port, "SHOW STATUS LIKE 'Binlog_relay_view%'"))
            at = source.master_status()
            place = status["Binlog_relay_view_source_file"], int(status["Binlog_relay_view_source_position"])
            assert (place, status["Binlog_relay_view_stop"]) == ((at.file, at.position), "")
            replica.stop_replica()

        await call(follow)


def check_view(port: int, source: Server, replica: Server) -> None:
    """Waits until the view has all that the source wrote, and the replica all of the view: their tables are equal."""
    at = source.master_status()

    def is_made() -> bool:
        status = dict(asked(port, "SHOW STATUS LIKE 'Binlog_relay_view%'"))
        made = status["Binlog_relay_view_source_file"], int(status["Binlog_relay_view_source_position"])
        return made == (at.file, at.position)

    wait_until(is_made, "the view is made up to the source's end")
    ((wanted,),) = asked(port, "SELECT @@GLOBAL.gtid_executed")
    assert replica.sql(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{wanted}', 60)") == [(0,)], replica.replica_status()
    assert replica.checksum_tables(["one"]) == source.checksum_tables(["one"])
