"""Rows of tables with and without transactions in one transaction, as servers before 5.5 wrote them: a MySQL 9.7 follows the view."""

from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.interop.test_view_unfinished_groups import BEGIN, GTIDS, UUID, XID, Event, binlog, rows, tables, text
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, RelayProcess, wait_for_line

pytestmark = pytest.mark.interop

TABLES = ("CREATE DATABASE d", "CREATE TABLE m (a INT) ENGINE=MyISAM", "CREATE TABLE i (a INT) ENGINE=InnoDB")


@pytest.mark.parametrize(
    "events",
    [
        (*rows("i", 1), *rows("m", 1)),
        (*rows("m", 1), *rows("i", 1)),
        (*rows("i", 1), text("INSERT INTO m VALUES (1)")),
        (text("INSERT INTO m VALUES (1)"), *rows("i", 1)),
    ],
)
def test_each_engine_gets_a_transaction_of_its_own(
    servers: ServerFactory, tmp_path: Path, events: tuple[Event, ...]
) -> None:
    source = tmp_path / "binlogs"
    source.mkdir()
    last = (BEGIN, *rows("i", 2), XID)
    (source / "mysql-bin.000001").write_bytes(binlog(*map(text, TABLES), BEGIN, *events, XID, *last))
    replica = servers("mysql97").start(server_id=3, options=GTIDS)
    relay = RelayProcess(tmp_path / "relay", source, port=free_port(), sections={"[view]": {"name": "v", "uuid": UUID}})
    relay.add_account(user="viewer", password=REPLICA_PASSWORD, view="v")
    with relay:
        wait_for_line(relay, "view_served")
        replica.attach("127.0.0.1", relay.port, "viewer", REPLICA_PASSWORD, auto_position=1)

        def has_all() -> bool:
            status = replica.replica_status()
            assert not (status["io_errno"] or status["sql_errno"]), status
            return replica.sql("SELECT @@GLOBAL.gtid_executed") == [(f"{UUID}:1-6",)]

        wait_until(has_all, "all transactions", 60)
        assert tables(replica) == {"m": [(1,)], "i": [(1,), (2,)]}
