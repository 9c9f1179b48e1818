"""A MySQL 5.6 that had GTIDs and was started again without: what it wrote with them keeps its numbers for itself in a view."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, RelayProcess, wait_for_line

pytestmark = pytest.mark.interop

GTIDS_56 = ("--gtid-mode=ON", "--enforce-gtid-consistency", "--log-slave-updates")
GTIDS = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")


@pytest.mark.parametrize(("own", "reason"), [(True, "uuid_in_use"), (False, "executed_gtids_missing")])
def test_a_view_stops_before_a_number_is_given_twice_or_a_transaction_sent_twice(
    servers: ServerFactory, tmp_path: Path, own: bool, reason: str
) -> None:
    source = servers("mysql56").start(server_id=1, options=GTIDS_56)
    source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"])
    ((uuid,),) = source.sql("SELECT @@GLOBAL.server_uuid")
    source.restart(options=())
    assert source.sql("SELECT @@GLOBAL.gtid_mode") == [("OFF",)]
    source.execute_many(["INSERT INTO d.t VALUES (2)", "INSERT INTO d.t VALUES (3)", "FLUSH LOGS"])
    binlogs = tmp_path / "binlogs"
    binlogs.mkdir()
    for file in source.binlogs():
        shutil.copy(file, binlogs)
    replica = servers("mysql97").start(server_id=2, options=GTIDS)
    view = {"name": "all", "uuid": str(uuid) if own else "5a3c1b9e-7d20-5c44-8f61-0d2e4b6a8c10"}
    relay = RelayProcess(tmp_path / "relay", binlogs, port=free_port(), sections={"[view]": view})
    relay.add_account(user="viewer", password=REPLICA_PASSWORD, view="all")
    with relay:
        wait_for_line(relay, "view_served")
        replica.attach("127.0.0.1", relay.port, "viewer", REPLICA_PASSWORD, auto_position=1)
        wait_until(lambda: relay.logged("view_stopped"), "the view's stop")
        (stopped,) = relay.logged("view_stopped")
        assert (stopped["reason"], stopped["file"]) == (reason, source.binlogs()[1].name)
        wait_until(lambda: replica.sql("SELECT @@GLOBAL.gtid_executed") == [(f"{uuid}:1-3",)], "all before it")
        assert replica.sql("SELECT a FROM d.t") == [(1,)]
        status = replica.replica_status()
        assert not (status["io_errno"] or status["sql_errno"]), status
