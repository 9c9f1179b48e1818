"""Where a feed goes on: each table where it was left, whatever the settings named meanwhile, and only in the archive that was fed."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from relay.feed.command.feed_command import SnapshotRequest
from relay.feed.feed_config import FeedSource, load_feed_config
from relay.feed.feed_run import opened_engine
from relay.feed.lake.lake_table import STALE_REASON
from relay.feed.snapshot.snapshot_run import run_snapshots
from relay.feed.snapshot.table_snapshot import begin_snapshot, snapshots_begun
from tests.conftest import ServerFactory
from tests.support.dying_lake import Died, dying_behind
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def server(module_servers: ServerFactory) -> Server:
    server: Server = module_servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    return server


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory, server: Server) -> list[Path]:
    """The binlogs when each table had one row, two, three; of the same server begun again, and when there were more of those."""
    directory = tmp_path_factory.mktemp("places")
    server.execute_many(
        ["CREATE DATABASE x", "CREATE TABLE x.a (id INT PRIMARY KEY)", "CREATE TABLE x.b (id INT PRIMARY KEY)"]
    )
    found = []
    for number in (1, 2, 3):
        if number == 3:
            server.execute_many(["CREATE TABLE IF NOT EXISTS x.a (id INT PRIMARY KEY)"])
        server.execute_many([f"INSERT INTO x.a VALUES ({number})", f"INSERT INTO x.b VALUES ({number})"])
        found.append(copied_binlogs(server, directory / str(number)))
    time.sleep(1.1)  # a binlog says in whole seconds when it was begun
    server.execute_many(["RESET MASTER", "INSERT INTO x.a VALUES (50)"])
    found.append(copied_binlogs(server, directory / "anew"))
    again = ["DROP TABLE x.a", "CREATE TABLE x.a (id INT PRIMARY KEY)", "INSERT INTO x.a VALUES (60)"]
    server.execute_many([*["FLUSH LOGS"] * 6, *again])
    return [*found, copied_binlogs(server, directory / "longer")]


class GrowingArchive:
    """One directory that has what the stages have."""

    def __init__(self, tmp_path: Path, stages: list[Path]) -> None:
        self.path, self._stages, self._tmp_path = tmp_path / "binlogs", stages, tmp_path

    def feed(self, stage: int, lake: str = "lake", **settings: Any) -> SmallFeed:
        """A feed of it, run up to that stage."""
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(self._stages[stage], self.path)
        given = {"target": str(self._tmp_path / lake), "statement_changes": "named", **settings}
        feed = SmallFeed(self._tmp_path / "settings", self.path, "x", **given)
        assert feed.run() is None
        return feed


@pytest.fixture
def growing(tmp_path: Path, stages: list[Path]) -> GrowingArchive:
    return GrowingArchive(tmp_path, stages)


@pytest.mark.parametrize("meanwhile", [{"exclude": ["x.b"]}, {"modes": ["changes"]}, {"modes": ["current"]}])
def test_what_was_not_fed_for_a_while_goes_on_where_it_was_left(
    growing: GrowingArchive, meanwhile: dict[str, Any]
) -> None:
    growing.feed(0)
    growing.feed(1, **meanwhile)
    feed = growing.feed(2)
    created = {"a": ["create"], "b": []}  # IF NOT EXISTS, which is a definition too
    for table in "ab":
        assert sorted(one["id"] for one in feed.rows(table) or []) == [1, 2, 3]
        assert [one["operation"] for one in feed.rows(table, "changes") or []] == [
            "create",
            "insert",
            "insert",
            *created[table],
            "insert",
        ]


def test_two_feeds_of_other_tables_share_a_target(growing: GrowingArchive) -> None:
    for stage in range(3):
        for table in "ab":
            feed = growing.feed(stage, tables=[f"x.{table}"])
    assert [len(feed.rows(table) or []) for table in "ab"] == [3, 3]


def test_an_archive_that_ends_before_what_is_in_the_lake_is_not_the_one_that_was_fed(
    growing: GrowingArchive, stages: list[Path]
) -> None:
    feed = growing.feed(2)
    shutil.rmtree(growing.path)
    shutil.copytree(stages[3], growing.path)
    stop = feed.run()
    assert stop is not None and stop.name == "place_gone" and "begun again" in str(stop)


def test_binlogs_that_were_begun_anew_are_not_taken_for_those_that_were_fed(
    growing: GrowingArchive, stages: list[Path]
) -> None:
    feed = growing.feed(2)
    shutil.rmtree(growing.path)
    shutil.copytree(stages[4], growing.path)
    stop = feed.run()
    assert stop is not None and stop.name == "place_gone" and "begun again (RESET MASTER)" in str(stop)
    assert sorted(one["id"] for one in feed.rows("a") or []) == [1, 2, 3]


def test_snapshots_of_all_tables_are_the_way_on_with_binlogs_that_were_begun_anew(
    growing: GrowingArchive, server: Server
) -> None:
    feed = growing.feed(2)
    shutil.rmtree(growing.path)
    growing.path.symlink_to(server.binlogs()[0].parent)
    server.sql(f"GRANT SELECT, REPLICATION CLIENT ON *.* TO '{server.replication_user}'@'%'")
    source = FeedSource(
        host="127.0.0.1",
        port=server.port,
        user=server.replication_user,
        password=SecretStr(server.replication_password),
    )
    with opened_engine(load_feed_config(feed.config)) as engine:
        run_snapshots(engine, source, SnapshotRequest(all_tables=True), print)
    assert feed.run() is None
    assert [one["id"] for one in feed.rows("a") or []] == [60]
    # Nothing in the new binlogs says what columns it has.
    assert "no snapshot of the table was made" in (feed.property("b", STALE_REASON) or "")


def test_a_table_that_is_named_later_is_not_taken_for_empty(growing: GrowingArchive) -> None:
    growing.feed(0, assume_empty=True, tables=["x.a"])
    feed = growing.feed(2, "lake", assume_empty=True)
    assert sorted(one["id"] for one in feed.rows("a") or []) == [1, 2, 3]
    assert feed.rows("b") is None  # it waits for a snapshot


def test_a_create_table_of_one_that_may_be_there_makes_no_empty_one(
    growing: GrowingArchive, stages: list[Path]
) -> None:
    behind_the_first_row = max(one.name for one in stages[0].iterdir() if one.suffix != ".index")
    feed = growing.feed(2, start=f"{behind_the_first_row.partition('.')[0]}.{int(behind_the_first_row[-6:]) + 1:06}:4")
    assert feed.rows("a") is None  # it waits for a snapshot: it has a row that is not in what is read
    assert feed.rows("a", "changes")


def test_a_snapshot_that_dies_before_the_table_was_emptied_is_begun_again(growing: GrowingArchive) -> None:
    feed = growing.feed(0)
    engine = feed.open()
    with pytest.raises(Died), dying_behind(1):
        begin_snapshot(engine, ("x", "a"), engine.reading.newest())
    again = feed.open()
    assert len(feed.rows("a") or []) == 1
    assert snapshots_begun(again) == []
    begin_snapshot(again, ("x", "a"), again.reading.newest())
    assert feed.rows("a") == [] and snapshots_begun(again) == [("x", "a")]


def test_a_transaction_of_xa_that_commits_in_one_phase_is_one_as_any_other(
    tmp_path: Path, servers: ServerFactory
) -> None:
    server = servers("mysql97")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(
        [
            *("CREATE DATABASE x", "CREATE TABLE x.a (id INT PRIMARY KEY)", "CREATE TABLE x.b (id INT PRIMARY KEY)"),
            *("XA START 'one'", "INSERT INTO x.a VALUES (1)", "XA END 'one'", "XA COMMIT 'one' ONE PHASE"),
            *("XA START 'two'", "INSERT INTO x.b VALUES (1)", "XA END 'two'", "XA PREPARE 'two'"),
        ]
    )
    feed = SmallFeed(tmp_path, copied_binlogs(server, tmp_path / "binlogs"), "x", modes=["current"])
    assert feed.run() is None
    assert [feed.rows(table) != [] for table in "ab"] == [True, False]
    assert feed.property("a", STALE_REASON) is None
    assert feed.property("b", STALE_REASON) == "an XA transaction that was prepared"
