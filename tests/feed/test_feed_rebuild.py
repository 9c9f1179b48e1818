"""A table and its changes are made from the archive again, beside the old ones, and replace them."""

import fcntl
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deltalake import DeltaTable

from deploy.servers import Server
from relay.feed.lake.lake_table import STALE_FROM
from relay.feed.rebuild.table_rebuild import RebuiltTable, run_rebuilds
from relay.feed.rows.feed_stop import FeedStop
from tests.conftest import ServerFactory
from tests.support.dying_lake import Died, dying_behind
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop
FORMATS = ["delta", "iceberg"]
# fmt: off
FIRST = ["USE shop", "CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(20)) CHARSET utf8mb4",
         "CREATE TABLE bag (n INT, note VARCHAR(20)) CHARSET utf8mb4", "CREATE TABLE u (id INT PRIMARY KEY)",
         "CREATE TABLE _made (id INT PRIMARY KEY)",
         "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')", "UPDATE t SET note = 'zwei' WHERE id = 2",
         "INSERT INTO bag VALUES (1, 'a'), (1, 'a'), (2, 'b')", "INSERT INTO u VALUES (1)",
         "INSERT INTO _made VALUES (4), (5)"]
SECOND = ["USE shop", "DELETE FROM t WHERE id = 1", "ALTER TABLE t ADD n INT DEFAULT 7", "INSERT INTO t VALUES (8, 'eight', 8)",
          "DELETE FROM bag WHERE n = 2", "UPDATE bag SET note = 'c' LIMIT 1", "RENAME TABLE _made TO made",
          "DELETE FROM made WHERE id = 4"]
THIRD = ["USE shop", "UPDATE t SET n = 9 WHERE id = 8", "INSERT INTO bag VALUES (3, 'd')", "INSERT INTO made VALUES (6)",
         "INSERT INTO old VALUES (3)"]
# fmt: on


LATE = ["CREATE DATABASE late", "USE late", "CREATE TABLE s (id INT PRIMARY KEY)",
        "CREATE TABLE z (id INT PRIMARY KEY, d DATE)", "INSERT INTO s VALUES (1)", "SET binlog_format = 'STATEMENT'",
        "INSERT INTO s VALUES (2)", "SET binlog_format = 'ROW'",
        "SET sql_mode = ''", "INSERT INTO z VALUES (1, '0000-00-00')"]  # fmt: skip


@pytest.fixture(scope="module")
def server(module_servers: ServerFactory) -> Server:
    return module_servers("mysql97")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Path:
    server.start(server_id=1, options=["--binlog-format=ROW", "--binlog-row-metadata=FULL"])
    before = ["CREATE DATABASE shop", "CREATE TABLE shop.old (id INT PRIMARY KEY)", "INSERT INTO shop.old VALUES (1)"]
    server.execute_many([*before, "DROP DATABASE IF EXISTS nothing"])
    server.execute_many(["FLUSH BINARY LOGS", "SET GLOBAL binlog_expire_logs_seconds = 0"])
    server.execute_many([f"PURGE BINARY LOGS TO '{server.master_status().file}'"])
    for statements in (FIRST, SECOND, THIRD, LATE):
        server.execute_many([*statements, "FLUSH BINARY LOGS"])
    return copied_binlogs(server, tmp_path_factory.mktemp("rebuild") / "binlogs")


def fed(tmp_path: Path, archive: Path, **more: object) -> SmallFeed:
    return SmallFeed(tmp_path, archive, "shop", **{"on_trouble": "stop-table", "statement_changes": "named", **more})


def rebuilt(feed: SmallFeed, *tables: str, start: str | None = None) -> list[RebuiltTable]:
    """Rebuild tables as the command does."""
    engine = feed.open()
    try:
        return list(run_rebuilds(engine, [f"shop.{one}" for one in tables], start, lambda _text: None))
    finally:
        engine.let_go()


def ids(feed: SmallFeed, table: str) -> list[Any]:
    return [one["id"] for one in feed.rows(table) or []]


def damage(feed: SmallFeed, table: str, where: str) -> None:
    """Remove rows of a current table as somebody by hand would."""
    DeltaTable(str(feed.config.parent / "lake" / "current" / "shop" / table)).delete(where)


def files_of(archive: Path) -> list[Path]:
    return sorted(one for one in archive.iterdir() if one.suffix[1:].isdigit())


def state(feed: SmallFeed, table: str) -> str:
    engine = feed.open()
    try:
        key = ("shop", table)
        return "set aside" if key in engine.aside else "stale" if feed.property(table, STALE_FROM) else "current"
    finally:
        engine.let_go()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("table", ["t", "bag", "made"])
def test_a_rebuilt_table_and_its_changes_are_those_of_a_feed_from_the_beginning(
    tmp_path: Path, archive: Path, format: str, table: str
) -> None:
    feed = fed(tmp_path, archive, format=format, exclude=["shop.old"])
    assert feed.run() is None
    before, changes = feed.rows(table), feed.rows(table, "changes")
    rebuilt(feed, table)
    assert (feed.rows(table), feed.rows(table, "changes")) == (before, changes)


def prepared(directory: Path, archive: Path) -> SmallFeed:
    """Return a feed whose table `bag` is set aside, as somebody removed one of its rows from the lake."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copytree(archive, directory / "binlogs")
    later = [(one, one.read_bytes()) for one in files_of(directory / "binlogs")[1:]]
    for one, _data in later:
        one.unlink()
    feed = fed(directory / "fed", directory / "binlogs", exclude=["shop.old"])
    assert feed.run() is None
    damage(feed, "bag", "n = 2")
    for one, data in later:
        one.write_bytes(data)
    assert feed.run() is None
    assert state(feed, "bag") == "set aside"
    return feed


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, archive: Path) -> SmallFeed:
    """Return a feed that had no trouble."""
    feed = fed(tmp_path_factory.mktemp("whole"), archive, exclude=["shop.old"])
    assert feed.run() is None
    return feed


@pytest.fixture(scope="module")
def aside(tmp_path_factory: pytest.TempPathFactory, archive: Path) -> SmallFeed:
    return prepared(tmp_path_factory.mktemp("aside"), archive)


def copied(feed: SmallFeed, directory: Path) -> SmallFeed:
    """Return a feed with a copy of another one's lake."""
    shutil.copytree(feed.config.parent / "lake", directory / "lake")
    return fed(directory, feed.config.parent.parent / "binlogs", exclude=["shop.old"])


def left_over(feed: SmallFeed) -> bool:
    return (feed.config.parent / "lake" / "_rebuild").exists()


def assert_same(feed: SmallFeed, whole: SmallFeed, table: str = "bag") -> None:
    for kind in ("current", "changes"):
        assert without_names(feed.rows(table, kind)) == without_names(whole.rows(table, kind)), kind


def without_names(rows: list[dict[str, Any]] | None) -> list[str]:
    return sorted(str({name: value for name, value in one.items() if name != "_row"}) for one in rows or [])


def test_a_table_that_was_set_aside_for_rows_that_somebody_removed_comes_back(
    tmp_path: Path, aside: SmallFeed, whole: SmallFeed
) -> None:
    feed = copied(aside, tmp_path)
    [one] = rebuilt(feed, "bag")
    assert state(feed, "bag") == "current" and one.rows == 3
    assert_same(feed, whole)
    assert not left_over(feed)


def test_the_feed_goes_on_behind_a_rebuilt_table_without_a_hole_and_without_a_double(
    tmp_path: Path, archive: Path, whole: SmallFeed
) -> None:
    shutil.copytree(archive, tmp_path / "binlogs")
    later = [(one, one.read_bytes()) for one in files_of(tmp_path / "binlogs")[2:]]
    for one, _data in later:
        one.unlink()
    feed = fed(tmp_path / "fed", tmp_path / "binlogs", exclude=["shop.old"])
    assert feed.run() is None
    damage(feed, "t", "id = 8")
    rebuilt(feed, "t", "bag")
    for one, data in later:
        one.write_bytes(data)
    assert feed.run() is None
    for table in ("t", "bag", "made", "u"):
        assert_same(feed, whole, table)


def commits_of_a_rebuild(feed: SmallFeed) -> list[str]:
    with dying_behind(9999) as done:
        rebuilt(feed, "bag")
    return done


def test_wherever_a_rebuild_was_killed_the_next_one_ends_with_the_same_and_leaves_nothing(
    tmp_path: Path, aside: SmallFeed, whole: SmallFeed
) -> None:
    done = commits_of_a_rebuild(copied(aside, tmp_path / "all"))
    for count in range(1, len(done) + 1):
        feed = copied(aside, tmp_path / str(count))
        with pytest.raises(Died), dying_behind(count):
            rebuilt(feed, "bag")
        rebuilt(feed, "bag")
        assert state(feed, "bag") == "current", done[:count]
        assert_same(feed, whole)
        assert not left_over(feed)


def test_wherever_a_rebuild_was_killed_each_table_is_the_old_one_or_the_new_one(
    tmp_path: Path, aside: SmallFeed, whole: SmallFeed
) -> None:
    done = commits_of_a_rebuild(copied(aside, tmp_path / "all"))
    known = {kind: [without_names(one.rows("bag", kind)) for one in (aside, whole)] for kind in ("current", "changes")}
    for count in range(1, len(done) + 1):
        feed = copied(aside, tmp_path / str(count))
        with pytest.raises(Died), dying_behind(count):
            rebuilt(feed, "bag")
        assert feed.run() is None
        for kind in ("current", "changes"):
            assert without_names(feed.rows("bag", kind)) in known[kind], (kind, done[:count])


def test_no_version_of_a_rebuilt_table_has_a_part_of_the_rows(tmp_path: Path, aside: SmallFeed) -> None:
    feed = copied(aside, tmp_path)
    place = str(tmp_path / "lake" / "current" / "shop" / "bag")
    before = DeltaTable(place).version()
    old = DeltaTable(place).to_pyarrow_table().num_rows
    rebuilt(feed, "bag")
    counts = {
        DeltaTable(place, version=one).to_pyarrow_table().num_rows
        for one in range(before, DeltaTable(place).version() + 1)
    }
    assert counts == {old, 3} and old != 3


def test_compact_removes_what_an_ended_rebuild_has_left(tmp_path: Path, aside: SmallFeed) -> None:
    feed = copied(aside, tmp_path)
    with pytest.raises(Died), dying_behind(6):
        rebuilt(feed, "bag")
    assert left_over(feed)
    done = command(feed, "compact")
    assert done.returncode == 0 and "shop.bag: what a rebuild had made that was ended is removed" in done.stderr
    assert not left_over(feed)


def test_changes_that_the_archive_has_no_more_stay(tmp_path: Path, archive: Path) -> None:
    shutil.copytree(archive, tmp_path / "binlogs")
    feed = fed(tmp_path / "fed", tmp_path / "binlogs", tables=["shop.t"], modes=["changes"])
    assert feed.run() is None
    before = feed.rows("t", "changes")
    files_of(tmp_path / "binlogs")[0].unlink()
    rebuilt(feed, "t")
    assert feed.rows("t", "changes") == before


def test_wherever_a_rebuild_into_iceberg_was_killed_the_table_has_all_its_rows(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, tables=["shop.t"], format="iceberg")
    assert feed.run() is None
    before = [feed.rows("t", kind) for kind in ("current", "changes")]
    kills = 0
    while True:
        try:
            with dying_behind(kills + 1):
                rebuilt(feed, "t")
            break
        except Died:
            kills += 1
        assert feed.run() is None
        assert [feed.rows("t", kind) for kind in ("current", "changes")] == before, kills
    assert kills > 3 and state(feed, "t") == "current"
    assert [feed.rows("t", kind) for kind in ("current", "changes")] == before
    assert not left_over(feed)


# ---- what is refused ----


def command(feed: SmallFeed, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "relay", "feed", *words, "--config", str(feed.config)], capture_output=True, text=True
    )


def refusal(feed: SmallFeed, table: str, start: str | None = None) -> FeedStop:
    with pytest.raises(FeedStop) as refused:
        rebuilt(feed, table, start=start)
    assert not left_over(feed)
    return refused.value


def test_a_table_that_is_not_fed_is_not_rebuilt(aside: SmallFeed) -> None:
    assert refusal(aside, "old").name == "table_not_fed"


def test_a_table_whose_first_rows_nobody_knows_is_not_rebuilt(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, tables=["shop.old", "shop.u"])
    assert feed.run() is None
    stop = refusal(feed, "old")
    assert stop.name == "rows_unknown" and "feed snapshot --table shop.old" in stop.advice


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("yesterday", "no FILE:POSITION"),
        ("mysql-bin.000900:4", "does not have this binlog"),
        ("mysql-bin.000002:200", "no transaction begins there"),
        ("mysql-bin.000002:99999999", "does not reach there|no transaction begins there"),
    ],
)
def test_a_place_that_the_archive_has_not_is_named_with_its_reach(aside: SmallFeed, place: str, why: str) -> None:
    stop = refusal(aside, "bag", place)
    assert (
        stop.name == "place_unknown" and re.search(why, stop.what) and "it reaches from mysql-bin.000002:" in stop.what
    )


def test_a_place_behind_the_creation_is_none_where_the_rows_are_known(aside: SmallFeed, archive: Path) -> None:
    place = f"{files_of(archive)[1].name}:4"
    assert refusal(aside, "bag", place).name == "rows_unknown"


def test_a_table_that_would_be_stale_is_not_rebuilt(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, tables=["late.*"])
    feed.schema = "late"
    assert feed.run() is None
    engine = feed.open()
    try:
        with pytest.raises(FeedStop, match=r"rebuild_stale.*change in statement format"):
            list(run_rebuilds(engine, ["late.s"], None, lambda _text: None))
    finally:
        engine.let_go()
    assert not left_over(feed)


def test_a_table_whose_trouble_the_archive_still_has_stays_set_aside(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, tables=["late.*"])
    assert feed.run() is None
    done = command(feed, "rebuild", "--table", "late.z")
    assert done.returncode == 1 and "value_has_no_type" in done.stderr and "not rebuilt" in done.stderr
    assert "late.z: set aside" in command(feed, "status").stdout
    assert not left_over(feed)


def test_a_rebuild_says_that_a_feed_has_the_settings_and_changes_nothing(aside: SmallFeed) -> None:
    with aside.config.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = command(aside, "rebuild", "--table", "shop.bag")
    assert done.returncode != 0 and "runs already. End it first" in done.stderr
    assert not left_over(aside)


def test_the_command_tells_what_it_made_as_json(tmp_path: Path, aside: SmallFeed) -> None:
    done = command(copied(aside, tmp_path), "rebuild", "--table", "shop.bag", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["table"], found["rows"]) == ("shop.bag", 3) and found["changes"] > 5
