"""Recorded binlogs of MySQL 5.7 and 8.0, as a directory, behind a view: a MySQL 9.7 has what it has of them without a view."""

import shutil
from pathlib import Path

import pytest

from deploy.servers import Server
from relay.feed.lake.lake_table import STALE_FROM
from tests.conftest import ServerFactory
from tests.corpus.between import BY_ROWS, gtids_for, named
from tests.corpus.test_corpus_boundaries import events_of
from tests.support.feed_lake import SmallFeed
from tests.support.free_port import free_port
from tests.support.hex_values import HexTable, hex_differences, hex_tables
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.view_chain import VIEW, account_of, add_views, follow, listen_with_tls, view_keys, wait_executed
from tests.support.view_seeding import wait_made

pytestmark = pytest.mark.interop
DATABASES = ("d", "j")


@pytest.fixture(scope="module")
def replica(module_servers: ServerFactory) -> Server:
    """A MySQL 9.7 that goes on past the recorded accounts of mysql_native_password, which it does not have."""
    return module_servers("mysql97").start(server_id=9, options=["--replica-skip-errors=1396,1410,1524"])


def emptied(replica: Server, gtid_mode: str) -> None:
    """The replica has no data and no GTIDs, and this gtid_mode."""
    replica.stop_replica()
    replica.sql("RESET REPLICA ALL")
    for (name,) in replica.sql("SHOW DATABASES"):
        if name not in ("mysql", "information_schema", "performance_schema", "sys"):
            replica.sql(f"DROP DATABASE `{name}`")
    replica.sql("RESET BINARY LOGS AND GTIDS")
    modes = ["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]
    while (mode := str(replica.sql("SELECT @@GLOBAL.gtid_mode")[0][0])) != gtid_mode:
        step = 1 if modes.index(mode) < modes.index(gtid_mode) else -1
        on = "ON" if modes.index(mode) + step >= 2 else "OFF"
        replica.sql(f"SET GLOBAL enforce_gtid_consistency = {on}")
        replica.sql(f"SET GLOBAL gtid_mode = {modes[modes.index(mode) + step]}")


def served(path: Path, work: Path, *, by_view: bool) -> RelayProcess:
    """A relay over a directory with the recording alone."""
    directory = work / "recorded"
    directory.mkdir(parents=True)
    shutil.copy(path, directory)
    sections = {"listen": listen_with_tls(work)}
    relay = RelayProcess(work / "relay", directory, port=free_port(), markers="strip", sections=sections)
    if by_view:
        add_views(relay, [view_keys(gtids=gtids_for(path))])
    return relay


def tables_behind(replica: Server, path: Path, work: Path, *, by_view: bool) -> dict[str, HexTable]:
    """The tables of a replica that has applied the whole recording, by a view or as it is."""
    emptied(replica, "ON" if by_view or "gtid" in path.name else "OFF_PERMISSIVE")
    end = path.name, path.stat().st_size
    with served(path, work, by_view=by_view) as relay:
        relay.wait_archived(*end)
        if by_view:
            wait_made(relay, *end)
            follow(replica, relay.port)
            wait_executed(replica, str(relay.sql("SELECT @@GLOBAL.gtid_executed", account_of(VIEW))[0][0]), relay)
        else:
            replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, path.name, 4)
            # An applier by GTID does not count the Rotate event at the end.
            replica.wait_caught_up(path.name, end[1] - len(events_of(path)[-1]))
        replica.stop_replica()
        return hex_tables(replica, DATABASES)


@pytest.mark.parametrize("path", BY_ROWS, ids=named)
def test_9_7_behind_a_view_has_the_bytes_that_it_has_without_one(replica: Server, tmp_path: Path, path: Path) -> None:
    mirrored = tables_behind(replica, path, tmp_path / "mirror", by_view=False)
    viewed = tables_behind(replica, path, tmp_path / "view", by_view=True)
    assert len(mirrored) >= 2
    assert hex_differences(mirrored, viewed) == []


@pytest.mark.parametrize("path", [path for path in BY_ROWS if path.name == "row.000001"], ids=named)
def test_a_feed_of_a_recording_has_the_rows_that_a_replica_has(replica: Server, tmp_path: Path, path: Path) -> None:
    directory = tmp_path / "recorded"
    directory.mkdir()
    shutil.copy(path, directory)
    mirrored = tables_behind(replica, path, tmp_path / "mirror", by_view=False)
    fed: dict[str, int] = {}
    for database in DATABASES:
        feed = SmallFeed(tmp_path / f"feed_{database}", directory, database)
        assert feed.run() is None
        for name in (table.partition(".")[2] for table in mirrored if table.startswith(f"{database}.")):
            rows = feed.rows(name)
            # A partition that was exchanged, and an XA transaction of which the feed sees the end: named so, not fed.
            if rows is not None and feed.property(name, STALE_FROM) is None:
                fed[f"{database}.{name}"] = len(rows)
    assert fed == {name: len(mirrored[name].rows) for name in fed}
    assert len(fed) >= 2


def test_a_feed_stops_by_name_at_json_of_which_the_binlog_has_only_what_changed(tmp_path: Path) -> None:
    directory = tmp_path / "recorded"
    directory.mkdir()
    shutil.copy(next(path for path in BY_ROWS if "partial" in path.name), directory)
    assert "binlog_row_value_options" in str(SmallFeed(tmp_path / "feed", directory, "j").run())
