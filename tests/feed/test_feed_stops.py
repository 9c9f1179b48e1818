"""What the feed cannot follow: it stops before it by name, or says that a table is stale, and is never wrong in silence."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deltalake import DeltaTable

from deploy.servers import Server
from relay.feed.lake.delta_lake import DeltaLakeTable
from relay.feed.lake.lake_table import STALE_FROM, STALE_REASON
from relay.feed.rows.feed_place import FeedOffset
from tests.conftest import ServerFactory
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop

# Schema -> its statements. One server writes all of them into one binlog, one copy of which all tests read.
HISTORIES = {
    "zero": ["CREATE TABLE t (id INT PRIMARY KEY, d DATE)", "INSERT INTO t VALUES (1, '2020-01-02')",
             "SET sql_mode = ''", "CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO t VALUES (2, '0000-00-00')"],
    "changed": ["CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9))", "INSERT INTO t VALUES (1, '007')",
                "ALTER TABLE t MODIFY a INT", "INSERT INTO t VALUES (2, 8)"],
    "stamped": ["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "ALTER TABLE t ADD a TIMESTAMP"],
    # The server makes `a` NOT NULL, with the time that is no time.
    "stamp_left_out": ["CREATE TABLE t (id INT PRIMARY KEY, n TIMESTAMP NULL, s TIMESTAMP, a TIMESTAMP)",
                       "SET binlog_row_image = 'MINIMAL'", "INSERT INTO t (id) VALUES (1)", "SET binlog_row_image = 'FULL'"],
    "added": ["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)",
              "ALTER TABLE t ADD a VARCHAR(9) NOT NULL DEFAULT 'x', ADD b INT, ADD c DECIMAL(5,2) NOT NULL",
              "INSERT INTO t VALUES (2, 'y', 3, 4.5)"],
    "dropped": ["CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", "INSERT INTO t VALUES (1, 2, 3)", "ALTER TABLE t DROP a",
                "INSERT INTO t VALUES (2, 4)", "ALTER TABLE t CHANGE b a INT", "INSERT INTO t VALUES (3, 5)"],
    "statement": ["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "SET binlog_format = 'STATEMENT'",
                  "UPDATE t SET id = 2", "SET binlog_format = 'ROW'", "INSERT INTO t VALUES (3)"],
    "cascades": ["CREATE TABLE parent (id INT PRIMARY KEY)",
                "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
                "INSERT INTO parent VALUES (1), (2)", "INSERT INTO child VALUES (1, 1)", "DELETE FROM parent WHERE id = 1"],
    "levels": ["CREATE TABLE top (id INT PRIMARY KEY)",
               "CREATE TABLE middle (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES top (id) ON DELETE CASCADE)",
               "CREATE TABLE leaf (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES middle (id) ON DELETE SET NULL)",
               "CREATE TABLE apart (id INT PRIMARY KEY)", "INSERT INTO top VALUES (1)", "INSERT INTO middle VALUES (1, 1)",
               "INSERT INTO leaf VALUES (1, 1)", "INSERT INTO apart VALUES (1)", "DELETE FROM top", "ALTER TABLE leaf ADD b INT"],
    "gone_key": ["CREATE TABLE top (id INT PRIMARY KEY)",
                 "CREATE TABLE leaf (id INT PRIMARY KEY, p INT, CONSTRAINT k FOREIGN KEY (p) REFERENCES top (id) ON DELETE CASCADE)",
                 "INSERT INTO top VALUES (1)", "INSERT INTO leaf VALUES (1, 1)", "DELETE FROM top",
                 "ALTER TABLE leaf DROP FOREIGN KEY k"],
    "keyless": ["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1), (1)", "DELETE FROM t LIMIT 1"],
    "undone": ["CREATE TABLE t (a INT, b VARCHAR(99))", "BEGIN", *(f"INSERT INTO t VALUES ({n}, REPEAT('y', 99))" for n in range(40)),
               "DELETE FROM t", "COMMIT"],
    "mixed": ["CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE m (id INT PRIMARY KEY) ENGINE=MyISAM", "BEGIN",
              "INSERT INTO t VALUES (1)", "INSERT INTO m VALUES (1)", "ROLLBACK", "INSERT INTO t VALUES (2)"],
    "emptied": ["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "TRUNCATE t", "INSERT INTO t VALUES (2)",
                "DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9))", "INSERT INTO t VALUES (3, 'x')"],
    # What is in no binlog as rows, but in a definition.
    "parted": ["CREATE TABLE t (id INT PRIMARY KEY) "
               "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))",
               "INSERT INTO t VALUES (1), (11)", "ALTER TABLE t /* for ever */ DROP PARTITION p0"],
    "exchanged": ["CREATE TABLE t (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10))",
                  "CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO u VALUES (1)",
                  "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u"],
    "ignored": ["CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1), (2, 1)",
                "SET old_alter_table = 1", "ALTER IGNORE TABLE t ADD UNIQUE (a)", "SET old_alter_table = 0"],
    "named_parent": ["CREATE TABLE top (id INT PRIMARY KEY)",
                     "CREATE TABLE middle (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES top (id) ON DELETE CASCADE)",
                     "CREATE TABLE leaf (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES middle (id) ON DELETE CASCADE)",
                     "CREATE TABLE apart (id INT PRIMARY KEY)", "INSERT INTO top VALUES (1)", "INSERT INTO middle VALUES (1, 1)",
                     "INSERT INTO leaf VALUES (1, 1)", "INSERT INTO apart VALUES (1)", "SET binlog_format = 'STATEMENT'",
                     "DELETE FROM top", "SET binlog_format = 'ROW'"],
    "named_insert": ["CREATE TABLE top (id INT PRIMARY KEY)",
                     "CREATE TABLE leaf (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES top (id) ON DELETE CASCADE)",
                     "INSERT INTO leaf VALUES (1, NULL)", "SET binlog_format = 'STATEMENT'", "INSERT INTO top VALUES (1)",
                     "SET binlog_format = 'ROW'"],
    "default_left_out": ["CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9) NOT NULL DEFAULT 'new', n INT NOT NULL DEFAULT 5)",
                         "SET binlog_row_image = 'MINIMAL'", "INSERT INTO t (id) VALUES (1)", "UPDATE t SET n = 6",
                         "SET binlog_row_image = 'FULL'"],
    "replayed": ["CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9), d DOUBLE)",
                 "INSERT INTO t VALUES (1, 'a', 0.1), (2, NULL, 1), (3, 'c', NULL)",
                 r"""UPDATE t SET s = 'q\\"' WHERE id = 1""", "UPDATE t SET id = 4 WHERE id = 2", "DELETE FROM t WHERE id = 3"],
}  # fmt: skip


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> Path:
    server: Server = module_servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    for schema, statements in HISTORIES.items():
        server.execute_many([f"CREATE DATABASE {schema}", f"USE {schema}", *statements])
    return copied_binlogs(server, tmp_path_factory.mktemp("stops") / "binlogs")


def fed(tmp_path: Path, archive: Path, schema: str, **more: object) -> SmallFeed:
    return SmallFeed(tmp_path, archive, schema, statement_changes="named", **more)


@pytest.mark.parametrize(
    ("schema", "name", "kept"),
    [
        ("zero", "value_has_no_type", 0),
        ("changed", "column_changed", 1),
        ("stamped", "column_added", 1),
        ("stamp_left_out", "default_unknown", 0),
    ],
)
def test_it_stops_by_name_and_what_was_before_is_in_the_lake(
    tmp_path: Path, archive: Path, schema: str, name: str, kept: int
) -> None:
    feed = fed(tmp_path, archive, schema)
    for _ in range(2):  # started again it stops there again
        stop = feed.run()
        assert stop is not None and stop.name == name
        assert stop.table == f"{schema}.t" and "feed snapshot --table" in str(stop)
        assert len(feed.rows("t") or []) == kept


def test_with_the_table_left_out_the_feed_goes_on(tmp_path: Path, archive: Path) -> None:
    assert fed(tmp_path, archive, "zero", exclude=["zero.t"]).run() is None


def test_rows_that_were_there_get_the_default_of_a_column_that_is_added(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "added")
    assert feed.run() is None
    rows = [(one["id"], one["a"], one["b"], str(one["c"])) for one in feed.rows("t") or []]
    assert rows == [(1, "x", None, "0.00"), (2, "y", 3, "4.50")]


def test_a_dropped_column_stays_until_another_has_its_name(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "dropped")
    assert feed.run() is None
    assert [(one["id"], one["a"]) for one in feed.rows("t") or []] == [(1, 3), (2, 4), (3, 5)]


@pytest.mark.parametrize(
    ("schema", "table", "reason"),
    [
        ("statement", "t", "a change in statement format (update)"),
        ("cascades", "child", "a foreign key to cascades.parent"),
    ],
)
def test_what_is_in_no_binlog_as_rows_makes_a_table_stale(
    tmp_path: Path, archive: Path, schema: str, table: str, reason: str
) -> None:
    feed = fed(tmp_path, archive, schema)
    assert feed.run() is None
    assert (feed.property(table, STALE_REASON) or "").startswith(reason)
    assert (feed.property(table, STALE_FROM) or "").startswith("mysql-bin.")


@pytest.mark.parametrize("fed", [["levels.*"], ["levels.leaf", "levels.apart"]], ids=["all", "leaf"])
def test_a_cascade_over_several_tables_makes_the_last_one_stale_also_where_the_others_are_not_fed(
    tmp_path: Path, archive: Path, fed: list[str]
) -> None:
    feed = SmallFeed(tmp_path, archive, "levels", statement_changes="named", tables=fed)
    assert feed.run() is None
    assert len(feed.rows("leaf") or []) == 1  # at the source p is NULL, here it is 1: nothing but the mark tells
    assert (feed.property("leaf", STALE_REASON) or "").startswith("a foreign key to levels.middle")
    assert not feed.property("apart", STALE_REASON)


@pytest.mark.parametrize(
    ("schema", "table"), [("parted", "t"), ("exchanged", "t"), ("exchanged", "u"), ("ignored", "t")]
)
def test_rows_that_a_definition_takes_or_brings_make_the_table_stale(
    tmp_path: Path, archive: Path, schema: str, table: str
) -> None:
    feed = fed(tmp_path, archive, schema)
    assert feed.run() is None
    # The lake has what the source has not, or the other way round: nothing but the mark tells.
    assert len(feed.rows(table) or []) == {"parted": 2, "exchanged": 0 if table == "t" else 1, "ignored": 2}[schema]
    assert (feed.property(table, STALE_REASON) or "").startswith("rows that a statement took or brought (ALTER")


@pytest.mark.parametrize(
    "tables", [["named_parent.*"], ["named_parent.leaf", "named_parent.apart"]], ids=["all", "leaf"]
)
def test_a_statement_on_a_parent_makes_what_refers_to_it_stale_though_it_names_the_parent_only(
    tmp_path: Path, archive: Path, tables: list[str]
) -> None:
    feed = SmallFeed(tmp_path, archive, "named_parent", statement_changes="named", tables=tables)
    assert feed.run() is None
    assert len(feed.rows("leaf") or []) == 1  # at the source it is gone
    assert (feed.property("leaf", STALE_REASON) or "").startswith("a foreign key to named_parent.middle")
    assert not feed.property("apart", STALE_REASON)


def test_an_insert_into_a_parent_as_a_statement_changes_nothing_that_refers_to_it(
    tmp_path: Path, archive: Path
) -> None:
    feed = fed(tmp_path, archive, "named_insert")
    assert feed.run() is None
    assert feed.property("top", STALE_REASON) and not feed.property("leaf", STALE_REASON)


def test_a_cascade_is_noticed_whose_foreign_key_is_dropped_in_the_same_batch(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "gone_key")
    assert feed.run() is None
    assert (feed.property("leaf", STALE_REASON) or "").startswith("a foreign key to gone_key.top")


def test_of_equal_rows_of_a_table_without_a_key_one_is_deleted(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "keyless")
    assert feed.run() is None
    assert [one["a"] for one in feed.rows("t") or []] == [1]
    assert [one["operation"] for one in feed.rows("t", "changes") or []] == ["create", "insert", "insert", "delete"]


def test_rows_on_disk_that_all_come_and_go_in_one_transaction_change_nothing(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "undone", spool_above_kb=1)
    assert feed.run() is None
    assert feed.rows("t") == []


def test_what_was_rolled_back_is_there_of_an_engine_without_transactions_only(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "mixed")
    assert feed.run() is None
    assert [[one["id"] for one in feed.rows(table) or []] for table in ("t", "m")] == [[2], [1]]


def test_truncate_and_drop_are_changes_too(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "emptied")
    assert feed.run() is None
    assert [(one["id"], one["s"]) for one in feed.rows("t") or []] == [(3, "x")]
    operations = [one["operation"] for one in feed.rows("t", "changes") or []]
    assert operations == ["create", "insert", "truncate", "insert", "drop", "create", "insert"]


def test_a_minimal_insert_has_the_defaults_that_the_source_left_out(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "default_left_out")
    assert feed.run() is None
    assert [(one["id"], one["s"], one["n"]) for one in feed.rows("t") or []] == [(1, "new", 6)]


def test_a_feed_that_is_started_again_changes_nothing(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "added")
    assert feed.run() is None
    before = feed.version("t")
    feed.config.with_name("lake").joinpath("_feed").rename(tmp_path / "lost")  # all is read again, then
    assert feed.run() is None
    assert feed.version("t") == before


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_batch_that_comes_again_commits_nothing(tmp_path: Path, archive: Path, format: str) -> None:
    feed = fed(tmp_path, archive, "replayed", format=format)
    assert feed.run() is None
    before = feed.version("t")
    engine = feed.open()
    engine.apply(engine.read(engine.reading.oldest(), engine.reading.newest()))
    assert feed.version("t") == before
    assert [(one["id"], one["s"]) for one in feed.rows("t") or []] == [(1, 'q\\"'), (4, None)]


def test_a_merge_that_is_done_again_changes_no_row_so_that_delta_commits_nothing(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merges: list[tuple[Any, ...]] = []
    merge = DeltaLakeTable.merge
    monkeypatch.setattr(DeltaLakeTable, "merge", lambda table, *given: merges.append(given) or merge(table, *given))
    feed = fed(tmp_path, archive, "replayed")
    assert feed.run() is None
    [(net, key, place)] = merges
    assert net.num_rows == 4  # two rows, two keys that are gone
    [done] = [
        one["operationMetrics"]
        for one in DeltaTable(tmp_path / "lake" / "current" / "replayed" / "t").history()
        if one["operation"] == "MERGE"
    ]
    assert done["num_target_rows_inserted"] == 2
    lake, before = feed.open().lake.open("current", "replayed", "t"), feed.version("t")
    assert isinstance(lake, DeltaLakeTable)
    merge(lake, net, key, FeedOffset(place.generation, place.number + 1, place.position))
    assert feed.version("t") == before


def test_bytes_that_changed_stop_the_feed_before_their_transaction(tmp_path: Path, archive: Path) -> None:
    damaged = tmp_path / "binlogs"
    damaged.mkdir()
    for one in archive.iterdir():
        damaged.joinpath(one.name).write_bytes(one.read_bytes())
    file = min(damaged.iterdir())
    data = bytearray(file.read_bytes())
    at = data.index(b"ALTER TABLE t ADD a VARCHAR")
    data[at + 13 : at + 14] = b"T"
    file.write_bytes(data)
    feed = fed(tmp_path, damaged, "added")
    stop = feed.run()
    assert stop is not None and stop.name == "checksum_mismatch"
    assert [one["id"] for one in feed.rows("t") or []] == [1]


def test_missing_binlogs_make_every_table_stale(tmp_path: Path, archive: Path) -> None:
    gap = tmp_path / "binlogs"
    gap.mkdir()
    for one in archive.iterdir():
        gap.joinpath(one.name).write_bytes(one.read_bytes())
    last = max(gap.iterdir())
    last.rename(last.with_name("mysql-bin.000009"))
    feed = fed(tmp_path, gap, "added")
    assert feed.run() is None
    assert "are missing" in (feed.property("t", STALE_REASON) or "")


def test_the_report_says_what_stopped_the_feed_and_what_is_not_current_with_the_way_on(
    tmp_path: Path, archive: Path
) -> None:
    feed = SmallFeed(
        tmp_path, archive, "zero", statement_changes="named", tables=["zero.*", "statement.*", "keyless.*"]
    )
    for command in (["--once"], ["report", "--out", str(tmp_path / "page.html")]):
        done = subprocess.run(
            [sys.executable, "-m", "relay", "feed", *command, "--config", str(feed.config)],
            capture_output=True,
            text=True,
        )
        assert done.returncode == (1 if command == ["--once"] else 0), done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.partition("</style>")[2]))
    assert "The feed stopped at mysql-bin." in shown and "value_has_no_type" in shown
    assert f"feed snapshot --config {feed.config} --table statement.t" in shown
    assert "a change in statement format (update)" in shown
    assert re.search(r"keyless\.t current mysql-bin\.\d+:\d+ .{0,40} 1 4 ", shown)
    assert "archive, lake" in shown and "not enough data" in shown
    assert "<svg" in page and "src=" not in page and "http" not in page.replace("http-equiv", "")
    assert feed.open().progress.stop is not None
    goes_on = SmallFeed(
        tmp_path, archive, "zero", statement_changes="named", exclude=["zero.t"], tables=["zero.*", "statement.*"]
    )
    assert goes_on.run() is None
    assert goes_on.open().progress.stop is None


def test_a_stop_is_forgotten_once_the_feed_is_past_it_without_new_changes(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, "zero", tables=["zero.t"])
    stop = feed.run()
    assert stop is not None
    engine = feed.open()
    try:
        engine.progress.note_stop(stop, engine.place)
        for lake in (engine.table(("zero", "t")).current, engine.table(("zero", "t")).history):
            if lake is not None:
                lake.advance(engine.reading.newest())  # as a snapshot does
    finally:
        engine.let_go()
    assert feed.open().progress.stop is not None
    assert feed.run() is None
    assert feed.open().progress.stop is None
