"""A view of a source that has GTIDs of its own: what the view changes in a transaction, its GTID event says too."""

import json
from pathlib import Path

import pytest

from deploy.servers import BinlogPosition
from protocol.binlog.gtid_event import decode_gtid
from protocol.binlog.gtid_tagged import decode_gtid_tagged
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess, wait_for_line
from tests.support.view_oracle import events_of, groups_of

pytestmark = pytest.mark.interop

GTIDS = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")
STATEMENTS = (
    "CREATE DATABASE d",
    "CREATE TABLE d.t (a INT PRIMARY KEY)",
    "INSERT INTO d.t VALUES (1)",
    "CREATE USER somebody",
    "GRANT SELECT ON d.* TO somebody",
    "INSERT INTO d.t VALUES (2)",
)


@pytest.mark.parametrize("gtid_next", ["AUTOMATIC", "AUTOMATIC:tagged"])
def test_each_transaction_tells_its_length_in_the_view(servers: ServerFactory, tmp_path: Path, gtid_next: str) -> None:
    source = servers("mysql97").start(server_id=1, options=GTIDS)
    replica = servers("mysql97").start(server_id=2, options=GTIDS)
    relay = RelayProcess(
        tmp_path / "relay", source, port=free_port(), sections={"[view]": {"name": "kept", "gtids": "keep"}}
    )
    relay.add_account(user="viewer", password="viewer-password", view="kept")
    with relay:
        wait_for_line(relay, "view_served")
        source.execute_many([f"SET gtid_next = '{gtid_next}'", *STATEMENTS])
        replica.attach("127.0.0.1", relay.port, "viewer", "viewer-password", auto_position=1)
        executed = source.sql("SELECT @@GLOBAL.gtid_executed")

        def has_all() -> bool:
            status = replica.replica_status()
            assert not (status["io_errno"] or status["sql_errno"]), status
            return replica.sql("SELECT @@GLOBAL.gtid_executed") == executed

        wait_until(has_all, "all transactions", 60)
        assert replica.sql("SELECT a FROM d.t ORDER BY a") == [(1,), (2,)]
        assert replica.sql("SELECT user FROM mysql.user WHERE user = 'somebody'") == []
    view, mirror = (
        [
            group
            for file in sorted(directory.glob("mysql-bin.0000??"))
            for group in groups_of(
                b"".join(event for event in events_of(file.read_bytes()[4:]) if event[4] not in (15, 35, 4, 3))
            )
        ]
        for directory in (
            next(relay.archive.glob("**/views/kept")),
            next(relay.archive.glob("**/mysql-bin.000001")).parent,
        )
    )
    assert len(view) == len(mirror) >= len(STATEMENTS)
    lengths = [sum(map(len, group)) for group in view]
    told = [(decode_gtid_tagged if group[0][4] == 42 else decode_gtid)(group[0][19:-4]) for group in view]
    assert [gtid.transaction_length for gtid in told] == lengths
    assert sum(group[0][4] == 42 for group in view) == (len(STATEMENTS) if "tag" in gtid_next else 0)
    changed = [len(group) != len(old) for group, old in zip(view, mirror, strict=True)]
    assert sum(changed) == 2  # CREATE USER and GRANT are empty transactions now


def test_tagged_ones_behind_a_transaction_that_became_two_reach_a_replica_with_many_workers(
    servers: ServerFactory, tmp_path: Path
) -> None:
    mixed = ("--gtid-mode=ON_PERMISSIVE", "--enforce-gtid-consistency=OFF", "--binlog-format=STATEMENT")
    source = servers("mysql97").start(server_id=1, options=mixed)
    replica = servers("mysql97").start(server_id=2, options=(*GTIDS, "--replica-parallel-workers=8"))
    view = {"name": "all", "gtids": "assign"}
    relay = RelayProcess(tmp_path / "relay", source, port=free_port(), sections={"[view]": view})
    relay.add_account(user="viewer", password="viewer-password", view="all")
    with relay:
        wait_for_line(relay, "view_served")
        tables = ("CREATE TABLE d.m (a INT) ENGINE=MyISAM", "CREATE TABLE d.i (a INT PRIMARY KEY)")
        both = ("BEGIN", "INSERT INTO d.i VALUES (1)", "INSERT INTO d.m VALUES (1)", "COMMIT")
        source.execute_many(["SET gtid_next = 'ANONYMOUS'", "CREATE DATABASE d"])
        for statements in ((tables[0],), (tables[1],), both):
            source.execute_many(["SET gtid_next = 'ANONYMOUS'", *statements])
        tagged = [f"INSERT INTO d.i VALUES ({number})" for number in range(2, 100)]
        source.execute_many(["SET gtid_next = 'AUTOMATIC:tagged'", *tagged])
        replica.attach("127.0.0.1", relay.port, "viewer", "viewer-password", auto_position=1)

        def has_all() -> bool:
            status = replica.replica_status()
            assert not (status["io_errno"] or status["sql_errno"]), status
            found = replica.sql("SELECT @@GLOBAL.gtid_executed")[0][0]
            return ":tagged:1-98" in found and ":1-5" in found

        wait_until(has_all, "all transactions", 60)
        assert replica.sql("SELECT a FROM d.i ORDER BY a") == [(number,) for number in range(1, 100)]
        assert replica.sql("SELECT a FROM d.m") == [(1,)]
        assert not relay.logged("view_stopped")


def test_a_source_that_uses_the_uuid_of_the_view_stops_it_before_a_number_is_two(
    servers: ServerFactory, tmp_path: Path
) -> None:
    source = servers("mysql97").start(server_id=1, options=("--gtid-mode=ON_PERMISSIVE",))
    replica = servers("mysql97").start(server_id=2, options=GTIDS)
    uuid = "5a3c1b9e-7d20-5c44-8f61-0d2e4b6a8c10"
    view = {"name": "all", "gtids": "assign", "uuid": uuid}
    relay = RelayProcess(tmp_path / "relay", source, port=free_port(), sections={"[view]": view})
    relay.add_account(user="viewer", password="viewer-password", view="all")
    with relay:
        wait_for_line(relay, "view_served")
        for statement in ("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)"):
            source.execute_many(["SET gtid_next = 'ANONYMOUS'", statement])
        source.execute_many([f"SET gtid_next = '{uuid}:2'", "INSERT INTO d.t VALUES (1)"])
        replica.attach("127.0.0.1", relay.port, "viewer", "viewer-password", auto_position=1)
        wait_until(lambda: relay.logged("view_stopped"), "the stop")
        (stopped,) = relay.logged("view_stopped")
        assert (stopped["reason"], uuid in stopped["what"]) == ("uuid_in_use", True)
        wait_until(lambda: replica.sql("SELECT @@GLOBAL.gtid_executed") == [(f"{uuid}:1-2",)], "all before it")
        assert replica.sql("SELECT a FROM d.t") == []


def test_the_place_behind_a_numbered_transaction_is_before_those_that_bring_a_gtid(
    servers: ServerFactory, tmp_path: Path
) -> None:
    """A replica of the view goes back to the mirror there: what is before the place never comes again."""
    mixed = ("--gtid-mode=ON_PERMISSIVE", "--enforce-gtid-consistency=OFF", "--binlog-format=STATEMENT")
    source = servers("mysql97").start(server_id=1, options=mixed)
    relay = RelayProcess(
        tmp_path / "relay", source, port=free_port(), sections={"[view]": {"name": "all", "gtids": "assign"}}
    )
    with relay:
        wait_for_line(relay, "view_served")
        ends = []
        for statements in (
            ["CREATE DATABASE d"],
            ["CREATE TABLE d.i (a INT PRIMARY KEY) ENGINE=InnoDB"],
            ["CREATE TABLE d.m (a INT PRIMARY KEY) ENGINE=MyISAM"],
            ["BEGIN", "INSERT INTO d.i VALUES (1)", "INSERT INTO d.m VALUES (1)", "COMMIT"],
            ["INSERT INTO d.i VALUES (2)"],
        ):
            source.execute_many(["SET gtid_next = 'ANONYMOUS'", *statements])
            ends.append(source.master_status())
            source.execute_many([f"REPLACE INTO d.i VALUES ({10 + len(ends)})"] if len(ends) > 1 else ["SELECT 1"])
            source.sql("FLUSH LOGS")
        relay.wait_archived(*source.master_status())
        uuid = str(json.loads(relay.command("view", "list", "--json").stdout)["uuid"])

        def found(number: int) -> BinlogPosition | None:
            """None: the view has not come there."""
            done = relay.command("view", "find", "all", "--gtid", f"{uuid}:{number}", "--json")
            place = json.loads(done.stdout or "{}")
            return BinlogPosition(place["source_file"], place["source_position"]) if place else None

        wait_until(lambda: found(6), "the view has all of it", 60)
        assert [found(number) for number in (1, 2, 3, 5, 6)] == ends
        refused = relay.command("view", "find", "all", "--gtid", f"{uuid}:4")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"{uuid}:4 is of {uuid}:4-5, which are one transaction of the source" in refused.stderr
