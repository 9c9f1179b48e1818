"""A table's `changes` have no hole: they are filled from the archive when a table comes back, or a row says what is missing."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

import duckdb
import pyarrow as pa

from deploy.servers import Server
from protocol.binlog.layout import FIRST_EVENT
from relay.feed import history_fill
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.statements.history_rows import GAP
from tests.conftest import ServerFactory
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop
FORMATS = ["delta", "iceberg"]
# fmt: off
FIRST = ["CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY, d DATE)",
         "CREATE TABLE u (id INT PRIMARY KEY)", "CREATE TABLE m (id INT PRIMARY KEY, d DATE)", "SET sql_mode = ''",
         "INSERT INTO t VALUES (1, NULL)", "INSERT INTO m VALUES (1, '0000-00-00')",
         "INSERT INTO t VALUES (2, '0000-00-00')"]
SECOND = ["USE shop", "INSERT INTO t VALUES (3, NULL)", "UPDATE t SET id = 4 WHERE id = 3", "BEGIN",
          "INSERT INTO u VALUES (1)", "INSERT INTO t VALUES (5, NULL)", "COMMIT", "DELETE FROM t WHERE id = 1",
          "ALTER TABLE t ADD n INT"]
THIRD = ["USE shop", "INSERT INTO t VALUES (6, NULL, 7)", "INSERT INTO u VALUES (2)", "TRUNCATE m",
         "INSERT INTO m VALUES (9, NULL)"]
# fmt: on


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> Path:
    server: Server = module_servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    for statements in (FIRST, SECOND, THIRD):
        server.execute_many([*statements, "FLUSH BINARY LOGS"])
    return copied_binlogs(server, tmp_path_factory.mktemp("history") / "binlogs")


def fed(tmp_path: Path, archive: Path, **more: object) -> SmallFeed:
    feed = SmallFeed(tmp_path, archive, "shop", **{"on_trouble": "stop-table", **more})
    assert feed.run() is None
    return feed


def brought_back(feed: SmallFeed, table: str = "t") -> list[dict[str, Any]]:
    """Fill a table's changes up to the archive's end, as a snapshot does before it loads the table; return its changes."""
    engine = feed.open()
    try:
        engine.fill_changes([("shop", table)], engine.reading.newest())
    finally:
        engine.let_go()
    return feed.rows(table, "changes") or []


def copy_of(archive: Path, tmp_path: Path) -> list[Path]:
    """Return the files of a copy of the archive in `binlogs`, oldest first."""
    shutil.copytree(archive, tmp_path / "binlogs")
    return sorted((tmp_path / "binlogs").iterdir())


def gaps(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in changes if one["operation"] == GAP]


def number_of(place: str) -> int:
    return FeedOffset.of_text(place).number


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_that_comes_back_has_the_changes_of_a_feed_that_had_no_trouble(
    tmp_path: Path, archive: Path, format: str
) -> None:
    whole = fed(tmp_path / "whole", archive, modes=["changes"], format=format)
    found = brought_back(fed(tmp_path / "aside", archive, format=format))
    assert found == whole.rows("t", "changes")
    assert [one["operation"] for one in found].count("delete") == 1


def test_a_table_without_trouble_is_not_read_again_though_its_last_change_is_long_ago(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = fed(tmp_path, archive, tables=["shop.u"])
    monkeypatch.setattr(history_fill, "read_batch", lambda *_given: pytest.fail("the archive was read"))
    assert [one["operation"] for one in brought_back(feed, "u")] == ["create", "insert", "insert"]


def test_changes_that_somebody_removed_are_made_from_the_archive_again(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, tables=["shop.u"])
    before = feed.rows("u", "changes")
    shutil.rmtree(tmp_path / "lake/changes/shop/u")
    assert feed.run() is None
    assert feed.rows("u", "changes") is None
    assert brought_back(feed, "u") == before


def test_changes_that_are_filled_a_second_time_are_the_same(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive)
    assert brought_back(feed) == brought_back(feed)


def test_a_table_that_comes_back_emptied_has_the_changes_from_before_it_was_emptied(
    tmp_path: Path, archive: Path
) -> None:
    feed = fed(tmp_path, archive)
    assert [one["operation"] for one in feed.rows("m", "changes") or []] == ["create", "insert", "truncate", "insert"]
    assert [one["id"] for one in feed.rows("m") or []] == [9]


def test_changes_whose_binlogs_were_purged_are_a_row_that_says_from_where_to_where(
    tmp_path: Path, archive: Path
) -> None:
    files = copy_of(archive, tmp_path)
    feed = fed(tmp_path, tmp_path / "binlogs")
    for one in files[:2]:
        one.unlink()
    first = gaps(brought_back(feed))[0]
    assert json.loads(first["before"])["from"].startswith("file 1 of source 1:")
    found = json.loads(first["after"])
    assert number_of(found["to"]) == 3 and "does not have these binlogs any more" in found["reason"]


def test_gaps_have_a_time_since_a_lake_splits_changes_by_day(tmp_path: Path, archive: Path) -> None:
    files = copy_of(archive, tmp_path)
    feed = fed(tmp_path, tmp_path / "binlogs")
    files[0].unlink()
    found = gaps(brought_back(feed))
    assert found and all(one["time"] is not None for one in found)


def test_only_the_transactions_that_cannot_be_read_are_left_out(tmp_path: Path, archive: Path) -> None:
    files = copy_of(archive, tmp_path)
    feed = fed(tmp_path, tmp_path / "binlogs")
    files[0].unlink()  # with the names of the columns
    rows = [one for one in brought_back(feed) if one["operation"] != GAP]
    assert [one["operation"] for one in rows] == ["alter"]


def test_a_damaged_transaction_is_a_gap_and_what_follows_it_is_filled(tmp_path: Path, archive: Path) -> None:
    files = copy_of(archive, tmp_path)
    feed = fed(tmp_path, tmp_path / "binlogs")
    data = bytearray(files[1].read_bytes())
    at = data.index(b"ALTER TABLE t ADD n INT")
    data[at + 12] ^= 1
    files[1].write_bytes(data)
    changes = brought_back(feed)
    [gap] = gaps(changes)
    assert "checksum_mismatch" in json.loads(gap["after"])["reason"]
    assert [one["operation"] for one in changes] == [
        "create",
        "insert",
        "insert",
        "insert",
        "update",
        "insert",
        "delete",
        "gap",
        "insert",
    ]


def test_changes_that_are_filled_in_two_parts_are_the_same(tmp_path: Path, archive: Path) -> None:
    whole = fed(tmp_path / "whole", archive, modes=["changes"])
    feed = fed(tmp_path / "aside", archive)
    engine = feed.open()
    try:
        engine.fill_changes([("shop", "t")], FeedOffset(1, 3, FIRST_EVENT))
    finally:
        engine.let_go()
    assert len(feed.rows("t", "changes") or []) < len(whole.rows("t", "changes") or [])
    assert brought_back(feed) == whole.rows("t", "changes")


def test_binlogs_of_another_source_with_the_same_names_fill_nothing(tmp_path: Path, archive: Path) -> None:
    files = copy_of(archive, tmp_path)
    feed = fed(tmp_path, tmp_path / "binlogs")
    for one in files:
        data = bytearray(one.read_bytes())
        data[4] ^= 1  # the time of the first event
        one.write_bytes(data)
    changes = brought_back(feed)
    assert changes[-1]["operation"] == GAP and "begun again" in json.loads(changes[-1]["after"])["reason"]


def states(changes: list[dict[str, Any]]) -> dict[tuple[str, bool], int]:
    """Return how many states the page's SCD 2 query finds: by id and whether a state is valid still."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "FEED.md").read_text(encoding="utf-8")
    query = re.search(r'states = duckdb\.sql\("""(.*?)"""\)', page, re.DOTALL)
    assert query is not None
    connection = duckdb.connect()
    connection.register("changes", pa.Table.from_pylist(changes))
    found: dict[tuple[str, bool], int] = {}
    for id, _after, _since, until in connection.sql(query[1]).fetchall():
        found[id, until is None] = found.get((id, until is None), 0) + 1
    return found


def test_the_pages_states_end_where_a_row_is_deleted_or_gets_another_key(tmp_path: Path, archive: Path) -> None:
    found = states(brought_back(fed(tmp_path, archive)))
    assert found == {("1", False): 1, ("2", True): 1, ("3", False): 1, ("4", True): 1, ("5", True): 1, ("6", True): 1}


def test_the_pages_states_end_where_the_table_is_emptied(tmp_path: Path, archive: Path) -> None:
    assert states(fed(tmp_path, archive).rows("m", "changes") or []) == {("1", False): 1, ("9", True): 1}


def test_the_pages_states_end_at_a_gap(tmp_path: Path, archive: Path) -> None:
    files = copy_of(archive, tmp_path)
    feed = fed(tmp_path, tmp_path / "binlogs")
    files[1].unlink()
    assert {is_valid for (id, is_valid) in states(brought_back(feed)) if int(id) < 3} == {False}
