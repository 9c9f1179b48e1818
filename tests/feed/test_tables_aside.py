"""One table's trouble stops that table: it is set aside by name, place and reason, and the others go on."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from relay.feed.lake.lake_table import STALE_FROM
from relay.feed.spool import row_memory
from tests.conftest import ServerFactory
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop

# Schema -> its statements. One server writes all of them into one binlog, one copy of which all tests read.
HISTORIES = {
    "zero": ["CREATE TABLE t (id INT PRIMARY KEY, d DATE)", "CREATE TABLE u (id INT PRIMARY KEY)",
             "CREATE TABLE w (id INT PRIMARY KEY, d DATETIME)", "INSERT INTO t VALUES (1, '2020-01-02')", "SET sql_mode = ''",
             "BEGIN", "INSERT INTO u VALUES (1)", "INSERT INTO t VALUES (2, '0000-00-00')",
             "INSERT INTO w VALUES (1, '0000-00-00')", "COMMIT", "INSERT INTO u VALUES (2)", "INSERT INTO t VALUES (3, NULL)"],
    "renamed": ["CREATE TABLE t (id INT PRIMARY KEY, d DATE)", "CREATE TABLE other (id INT PRIMARY KEY)", "SET sql_mode = ''",
                "INSERT INTO t VALUES (1, '0000-00-00')", "INSERT INTO other VALUES (7)",
                "RENAME TABLE t TO old, other TO t", "INSERT INTO t VALUES (8)", "CREATE TABLE last (id INT PRIMARY KEY)",
                "INSERT INTO last VALUES (1)"],
    "dated": ["CREATE TABLE plain (id INT PRIMARY KEY, d DATE, s TIMESTAMP NULL, m DATETIME(3))",
              "CREATE TABLE keyless (id INT, d DATE)", "CREATE TABLE shape (id INT PRIMARY KEY, d DATE, p POINT)",
              "CREATE TABLE keyed (d DATE PRIMARY KEY, id INT)", "SET sql_mode = ''",
              "INSERT INTO plain VALUES (1, '0000-00-00', '0000-00-00', '2020-00-01'), (2, '2020-01-02', NULL, '0000-01-01 10:00')",
              "INSERT INTO keyless VALUES (1, '0000-00-00'), (1, '0000-00-00'), (2, '2020-01-02')", "DELETE FROM keyless LIMIT 1",
              "INSERT INTO shape VALUES (1, '2020-02-00', POINT(1, 2))", "INSERT INTO keyed VALUES ('0000-00-00', 1)"],
    "large": ["CREATE TABLE t (a LONGTEXT)", "CREATE TABLE u (id INT PRIMARY KEY)",
              "INSERT INTO t VALUES (REPEAT('a', 3900000)), (REPEAT('b', 3900000)), (REPEAT('c', 3900000)), (REPEAT('d', 3900000)), "
              "(REPEAT('e', 3900000)), (REPEAT('f', 3900000)), (REPEAT('g', 3900000)), (REPEAT('h', 3900000))",
              "INSERT INTO u VALUES (1)"],
    "largest": ["CREATE TABLE t (a LONGTEXT, n INT)", "INSERT INTO t VALUES (REPEAT('a', 3900000), 1)", "UPDATE t SET n = 2"],
    "emptied": ["CREATE TABLE gone (id INT PRIMARY KEY, d DATE)", "CREATE TABLE again (id INT PRIMARY KEY, d DATE)",
                "CREATE TABLE twice (id INT PRIMARY KEY, d DATE)", "CREATE TABLE later (id INT PRIMARY KEY, d DATE)",
                "CREATE TABLE labels (id INT PRIMARY KEY, d DATE)", "CREATE TABLE u (id INT PRIMARY KEY)", "SET sql_mode = ''",
                *(f"INSERT INTO {one} VALUES (1, '0000-00-00')" for one in ("gone", "again", "twice", "later")),
                "DROP TABLE gone, again", "CREATE TABLE again (id INT PRIMARY KEY)", "INSERT INTO again VALUES (2)",
                "TRUNCATE twice", "INSERT INTO twice VALUES (3, '0000-00-00')", "INSERT INTO u VALUES (1)"],
    "wanted": ["CREATE TABLE t (id INT PRIMARY KEY, d DATE)", "SET sql_mode = ''", "INSERT INTO t VALUES (1, '0000-00-00')"],
}  # fmt: skip
LATER = ["TRUNCATE emptied.later", "INSERT INTO emptied.later VALUES (5, NULL)", "INSERT INTO emptied.u VALUES (2)",
         "CREATE TABLE unnamed.known (id INT PRIMARY KEY)", "INSERT INTO unnamed.old VALUES (1)",
         "INSERT INTO unnamed.known VALUES (1)", "INSERT INTO unnamed.old VALUES (2)",
         "INSERT INTO unnamed.known VALUES (2)"]  # fmt: skip


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> Path:
    server: Server = module_servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(["CREATE DATABASE unnamed", "CREATE TABLE unnamed.old (id INT PRIMARY KEY)"])
    for schema, statements in HISTORIES.items():
        server.execute_many([f"CREATE DATABASE {schema}", f"USE {schema}", *statements])
    server.sql("FLUSH BINARY LOGS")
    server.execute_many(LATER)
    return copied_binlogs(server, tmp_path_factory.mktemp("aside") / "binlogs")


def fed(tmp_path: Path, archive: Path, schema: str, **more: object) -> SmallFeed:
    return SmallFeed(tmp_path, archive, schema, **{"on_trouble": "stop-table", "statement_changes": "named", **more})


def command(feed: SmallFeed, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "relay", "feed", *words, "--config", str(feed.config)], capture_output=True, text=True
    )


def set_aside(feed: SmallFeed) -> dict[str, str]:
    """Return the tables that are set aside, each with the name of its stop."""
    engine = feed.open()
    try:
        return {".".join(key): one.stop.name for key in engine.aside if (one := engine.aside.get(key)) is not None}
    finally:
        engine.let_go()


def ids(feed: SmallFeed, table: str) -> list[Any]:
    return [one["id"] for one in feed.rows(table) or []]


def test_tables_with_trouble_are_set_aside_and_the_others_are_fed_to_the_end(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "zero")
    assert feed.run() is None
    assert set_aside(feed) == {"zero.t": "value_has_no_type", "zero.w": "value_has_no_type"}
    assert ids(feed, "u") == [1, 2]


def test_a_table_that_is_set_aside_has_nothing_of_the_batch_with_the_trouble(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "zero")
    assert feed.run() is None
    assert ids(feed, "t") == ids(feed, "w") == []


def test_a_feed_that_starts_again_reads_nothing_again_for_a_table_that_is_set_aside(
    tmp_path: Path, archive: Path
) -> None:
    feed = fed(tmp_path, archive, "zero")
    assert feed.run() is None
    engine = feed.open()
    try:
        assert engine.place == engine.reading.newest()
    finally:
        engine.let_go()


def test_the_record_of_a_table_that_is_set_aside_can_be_lost(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "zero")
    assert feed.run() is None
    shutil.rmtree(tmp_path / "lake" / "_feed")
    assert feed.run() is None
    assert set_aside(feed) == {"zero.t": "value_has_no_type", "zero.w": "value_has_no_type"}
    assert ids(feed, "u") == [1, 2]


def test_a_table_is_tried_again_when_the_settings_have_changed(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "zero")
    assert feed.run() is None
    changed = fed(tmp_path, archive, "zero", memory_mb=256)
    engine = changed.open()
    try:
        assert not len(engine.aside) and engine.place < engine.reading.newest()
    finally:
        engine.let_go()
    assert changed.run() is None
    assert set_aside(changed) == {"zero.t": "value_has_no_type", "zero.w": "value_has_no_type"}


def test_a_table_that_gets_the_rows_of_one_that_is_set_aside_is_set_aside_too(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "renamed")
    assert feed.run() is None
    assert set_aside(feed) == {"renamed.t": "value_has_no_type", "renamed.old": "table_renamed"}
    assert ids(feed, "last") == [1] and ids(feed, "other") == []


def test_a_table_that_is_set_aside_comes_back_when_the_source_drops_it(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "emptied")
    assert feed.run() is None
    assert "emptied.gone" not in set_aside(feed)
    assert ids(feed, "gone") == [] and feed.property("gone", STALE_FROM) is None


def test_a_table_that_is_dropped_and_created_again_after_its_trouble_has_its_new_rows(
    tmp_path: Path, archive: Path
) -> None:
    feed = fed(tmp_path, archive, "emptied")
    assert feed.run() is None
    assert ids(feed, "again") == [2] and feed.property("again", STALE_FROM) is None


def test_a_table_with_trouble_after_it_was_emptied_is_set_aside_and_the_feed_ends(
    tmp_path: Path, archive: Path
) -> None:
    feed = fed(tmp_path, archive, "emptied")
    assert feed.run() is None
    assert set_aside(feed) == {"emptied.twice": "value_has_no_type"}
    assert ids(feed, "u") == [1, 2]


def test_a_table_that_is_set_aside_comes_back_when_a_later_run_reads_that_it_was_emptied(
    tmp_path: Path, archive: Path
) -> None:
    growing = tmp_path / "binlogs"
    growing.mkdir()
    *first, _last, _empty = sorted(archive.iterdir())
    for one in first:
        shutil.copy(one, growing)
    feed = fed(tmp_path, growing, "emptied")
    assert feed.run() is None
    assert "emptied.later" in set_aside(feed)
    shutil.copytree(archive, growing, dirs_exist_ok=True)
    assert feed.run() is None
    assert "emptied.later" not in set_aside(feed)
    assert ids(feed, "later") == [5] and feed.property("later", STALE_FROM) is None


def test_a_table_whose_columns_are_unknown_does_not_keep_the_others_from_being_fed(
    tmp_path: Path, archive: Path
) -> None:
    later = tmp_path / "binlogs"
    later.mkdir()
    for one in sorted(archive.iterdir())[-2:]:
        shutil.copy(one, later)
    feed = fed(tmp_path, later, "unnamed")
    assert feed.run() is None
    assert set_aside(feed) == {"unnamed.old": "columns_unnamed"}
    assert ids(feed, "known") == [1, 2]


def test_the_commands_tell_which_tables_are_set_aside_and_end_with_1(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "zero")
    first, second = command(feed, "--once"), command(feed, "--once")
    assert first.returncode == second.returncode == 1
    assert re.search(
        r"zero\.t: set aside at mysql-bin\.\d+:\d+, value_has_no_type: Column d .* feed snapshot", first.stderr
    )
    assert "2 tables are set aside, and the others are fed: zero.t (value_has_no_type at mysql-bin." in second.stderr
    status = command(feed, "status", "--json")
    told = {one["table"]: one for one in map(json.loads, status.stdout.splitlines())}
    assert status.returncode == 1
    assert {name: one["state"] for name, one in told.items()} == {
        "zero.t": "set aside", "zero.u": "current", "zero.w": "set aside"
    }  # fmt: skip
    assert told["zero.t"]["aside"]["name"] == "value_has_no_type" and "Column d" in told["zero.t"]["aside"]["text"]
    assert "zero.t: set aside at mysql-bin." in command(feed, "status").stdout
    page = tmp_path / "page.html"
    assert command(feed, "report", "--out", str(page)).returncode == 0
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8").partition("</style>")[2]))
    assert "2 tables of 3 are not current." in shown and "Set aside" in shown and "value_has_no_type" in shown


def test_invalid_dates_are_written_as_null_and_counted(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "dated", invalid_dates="null", exclude=["dated.keyed"])
    assert feed.run() is None
    assert set_aside(feed) == {}
    assert [(one["d"] is None, one["s"], one["m"]) for one in feed.rows("plain") or []] == [
        (True, None, None),
        (False, None, None),
    ]
    assert sorted((one["id"], one["d"] is None) for one in feed.rows("keyless") or []) == [(1, True), (2, False)]
    assert [one["d"] for one in feed.rows("shape") or []] == [None]
    status = map(json.loads, command(feed, "status", "--json").stdout.splitlines())
    assert {one["table"]: one["null_dates"] for one in status} == {
        "dated.plain": 4,
        "dated.keyless": 2,
        "dated.shape": 1,
    }


def test_an_invalid_date_of_a_key_sets_its_table_aside_since_a_key_is_never_null(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "dated", invalid_dates="null")
    assert feed.run() is None
    assert set_aside(feed) == {"dated.keyed": "value_has_no_type"}


def test_a_table_that_was_set_aside_for_invalid_dates_goes_on_with_all_its_rows_once_they_may_be_null(
    tmp_path: Path, archive: Path
) -> None:
    assert fed(tmp_path, archive, "zero").run() is None
    feed = fed(tmp_path, archive, "zero", invalid_dates="null")
    assert command(feed, "--once").returncode == 0
    assert ids(feed, "t") == [1, 2, 3] and ids(feed, "w") == [1] and ids(feed, "u") == [1, 2]
    assert len(feed.rows("t", "changes") or []) == len(ids(feed, "t")) + 1


def test_rows_that_no_memory_is_given_to_set_their_table_aside_and_name_the_setting(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_memory, "_MOST_BYTES", 1 << 20)
    feed = fed(tmp_path, archive, "large", memory_mb=64)
    assert feed.run() is None
    assert set_aside(feed) == {"large.t": "memory_too_small"}
    engine = feed.open()
    try:
        stop = engine.aside.get(("large", "t"))
    finally:
        engine.let_go()
    assert stop is not None and "larger `memory_mb`" in str(stop.stop)
    assert ids(feed, "u") == [1]


@pytest.mark.parametrize(("most", "aside"), [(row_memory._MOST_BYTES, {}), (0, {"largest.t": "memory_too_small"})])
def test_a_row_without_a_key_gets_the_memory_that_it_needs_beyond_memory_mb(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch, most: int, aside: dict[str, str]
) -> None:
    monkeypatch.setattr(row_memory, "_MOST_BYTES", most)
    feed = fed(tmp_path, archive, "largest", memory_mb=64)
    assert feed.run() is None
    assert set_aside(feed) == aside
    if not aside:
        assert [(len(one["a"]), one["n"]) for one in feed.rows("t") or []] == [(3900000, 2)]


def test_only_the_tables_of_this_feed_count_where_two_have_one_target(tmp_path: Path, archive: Path) -> None:
    other = fed(tmp_path / "other", archive, "wanted", target=str(tmp_path / "lake"))
    assert other.run() is None
    feed = fed(tmp_path, archive, "zero", exclude=["zero.t", "zero.w"])
    assert command(feed, "--once").returncode == 0
    assert set_aside(other) == {"wanted.t": "value_has_no_type"}
