"""What definitions do to rows that are there, in any spelling: followed, or said; never wrong in silence."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from pyiceberg.catalog.sql import SqlCatalog

from deploy.servers import Server
from protocol.sql.tables.source_table import Column, Table, whole_key
from relay.feed.feed_config import FeedSource
from relay.feed.lake.lake_table import STALE_REASON, ColumnsChange
from relay.feed.rows.lake_columns import ROW, lake_columns, lake_key
from relay.feed.rows.net_changes import TableRows
from relay.feed.snapshot.source_rows import SourceRows
from relay.feed.statements.definition_effect import alteration
from tests.conftest import ServerFactory
from tests.support.dying_lake import Died
from tests.support.feed_histories import lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop
_T = "CREATE TABLE t (id INT PRIMARY KEY, a INT)"
HISTORIES = {
    "emptied_so": [*(f"CREATE TABLE {one} (id INT PRIMARY KEY)" for one in "abcd"),
                   *(f"INSERT INTO {one} VALUES (1)" for one in "abcd"), "TRUNCATE/**/TABLE/**/a", "TRUNCATE TABLE`b`",
                   "TRUNCATE /* for ever */ c", "SET sql_mode = 'ANSI_QUOTES'", 'TRUNCATE "d"', "SET sql_mode = ''"],
    "other_case": [_T, "INSERT INTO t VALUES (1, 2)", "ALTER TABLE t MODIFY A BIGINT", "ALTER TABLE t CHANGE A b BIGINT",
                   "ALTER TABLE t DROP b", "ALTER TABLE t ADD B INT DEFAULT 7"],
    "anew": [_T, "INSERT INTO t VALUES (1, 1)", "CREATE OR REPLACE TABLE t (k INT PRIMARY KEY, z INT)", "INSERT INTO t VALUES (2, 3)"],
    "texts": [_T, "INSERT INTO t VALUES (1, 1)",
              "ALTER TABLE t ADD b VARCHAR(9) NOT NULL DEFAULT ' ', ADD c VARCHAR(9) DEFAULT 'NULL', "
              "ADD d SET('x', 'y') DEFAULT 'y,x', ADD e VARCHAR(9) DEFAULT '0x41', ADD f VARCHAR(9) DEFAULT 'it''s'",
              "SET binlog_row_image = 'MINIMAL'", "INSERT INTO t (id) VALUES (2)", "SET binlog_row_image = 'FULL'"],
    "computed": ["CREATE TABLE t (id INT PRIMARY KEY, a INT, g INT AS (a + 1) PERSISTENT)", "INSERT INTO t (id, a) VALUES (1, 1)",
                 "ALTER TABLE t MODIFY g INT AS (a + 2) PERSISTENT"],
    "counted": [_T, "INSERT INTO t VALUES (0, 1), (5, 2)", "ALTER TABLE t MODIFY id INT AUTO_INCREMENT"],
    "counted_none": [_T, "INSERT INTO t VALUES (1, 1)", "ALTER TABLE t MODIFY id INT AUTO_INCREMENT", "INSERT INTO t (a) VALUES (2)"],
    "analyzed": [_T, "INSERT INTO t VALUES (1, 1)", "SET binlog_format = 'STATEMENT'", "ANALYZE UPDATE t SET a = 7",
                 "SET binlog_format = 'ROW'"],
    "hidden": ["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "SET binlog_format = 'MIXED'",
               "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY)", "TRUNCATE TABLE t", "DROP TEMPORARY TABLE t"],
    "elsewhere": ["CREATE TABLE u (id INT PRIMARY KEY) ENGINE = MyISAM", "INSERT INTO u VALUES (7)",
                  "CREATE TABLE t (id INT PRIMARY KEY) ENGINE = MERGE UNION = (u) INSERT_METHOD = LAST", "INSERT INTO t VALUES (1)"],
    "swapped": ["CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", "INSERT INTO t VALUES (1, 2, 3)",
                "ALTER TABLE t CHANGE a b INT, CHANGE b a INT, ADD c INT NOT NULL DEFAULT 4"],
    "key_and_none": [_T, "INSERT INTO t VALUES (1, 1), (2, 1)", "ALTER TABLE t DROP PRIMARY KEY", "INSERT INTO t VALUES (3, 1), (3, 1)",
                     "DELETE FROM t WHERE id = 3 LIMIT 1", "ALTER TABLE t ADD PRIMARY KEY (id)", "INSERT INTO t VALUES (4, 1), (5, 1)",
                     "ALTER TABLE t DROP PRIMARY KEY", "UPDATE t SET a = 2 WHERE id IN (1, 3, 4)", "DELETE FROM t WHERE id IN (2, 5)"],
    "if_there": [_T, "INSERT INTO t VALUES (1, 1), (2, 2)", "ALTER TABLE t ADD COLUMN IF NOT EXISTS a BIGINT DEFAULT 9",
                 "ALTER TABLE t CHANGE COLUMN IF EXISTS z a BIGINT, RENAME COLUMN IF EXISTS y TO id",
                 "ALTER TABLE t ADD IF NOT EXISTS b INT DEFAULT 3", "ALTER TABLE t RENAME COLUMN IF EXISTS b TO c",
                 "ALTER TABLE t DROP COLUMN IF EXISTS b", "INSERT INTO t VALUES (3, 3, 4)"],
    "long_name": [f"CREATE TABLE `{'ж' * 60}` (id INT PRIMARY KEY)", f"INSERT INTO `{'ж' * 60}` VALUES (1)"],
}  # fmt: skip
# Of each default one table: what the server stores is not what is written, so that nobody is to guess.
UNSURE = {"VARCHAR(9)": "0x41", "ENUM('A', 'B')": "'a'", "TIME": "'12:00'", "DECIMAL(5,2)": "1.555"}
KEYS = {
    "enum('z','a','m')": ["z", "a", "m"], "set('x','y')": ["x", "y", "x,y", ""], "float": [1.2345678, 1.2345681, 1.234569, 0.1],
    "time(2)": ["-10:00:00", "10:00:00.5", "11:00:00"], "bit(9)": [1, 5, 7],
}  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> tuple[Server, Path]:
    server: Server = module_servers("mariadb")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    for schema, statements in HISTORIES.items():
        server.execute_many([f"CREATE DATABASE {schema}", f"USE {schema}", *statements])
    server.execute_many(["CREATE DATABASE unsure", "USE unsure"])
    for number, (kind, default) in enumerate(UNSURE.items()):
        server.execute_many([f"CREATE TABLE unsure.t{number} (id INT PRIMARY KEY)", f"INSERT INTO unsure.t{number} VALUES (1)",
                             f"ALTER TABLE unsure.t{number} ADD a {kind} DEFAULT {default}"])  # fmt: skip
    return server, copied_binlogs(server, tmp_path_factory.mktemp("definitions") / "binlogs")


def fed(tmp_path: Path, archive: Path, schema: str, **more: Any) -> SmallFeed:
    return SmallFeed(tmp_path, archive, schema, **{"statement_changes": "named", "modes": ["current"], **more})


def is_the_sources(feed: SmallFeed, server: Server, table: str) -> bool:
    found = feed.open().lake.open("current", feed.schema, table)
    assert found is not None
    names, rows = true_rows(server, feed.schema, table)
    with found.scan() as reader:
        return lake_rows(reader.read_all(), names) == rows


@pytest.mark.parametrize(
    ("schema", "tables"),
    [("emptied_so", "abcd"), ("other_case", "t"), ("anew", "t"), ("texts", "t"), ("counted_none", "t"),
     ("key_and_none", "t"), ("long_name", ["ж" * 60]), ("if_there", "t")],
)  # fmt: skip
def test_what_can_be_followed_is_followed_however_it_is_written(
    tmp_path: Path, told: tuple[Server, Path], schema: str, tables: str
) -> None:
    feed = fed(tmp_path, told[1], schema)
    assert feed.run() is None
    assert all(is_the_sources(feed, told[0], table) for table in tables)


def test_rows_that_have_no_names_of_their_own_though_the_key_went_get_some_before_one_is_looked_for(
    tmp_path: Path, told: tuple[Server, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(*given: Any, **named: Any) -> ColumnsChange:
        change = alteration(*given, **named)
        return replace(change, numbered=ROW not in given[3].names)

    monkeypatch.setattr("relay.feed.sink_table.alteration", forgetful)
    feed = fed(tmp_path, told[1], "key_and_none")
    assert feed.run() is None
    assert is_the_sources(feed, told[0], "t")


@pytest.mark.parametrize("schema", ["computed", "counted"])
def test_rows_that_got_other_values_which_no_binlog_tells_stop_the_feed(
    tmp_path: Path, told: tuple[Server, Path], schema: str
) -> None:
    stop = fed(tmp_path, told[1], schema).run()
    assert stop is not None and stop.name == "column_changed" and stop.table == f"{schema}.t"


@pytest.mark.parametrize("number", range(len(UNSURE)), ids=list(UNSURE))
def test_a_default_of_which_it_is_not_certain_what_the_server_stores_stops_the_feed(
    tmp_path: Path, told: tuple[Server, Path], number: int
) -> None:
    stop = fed(tmp_path, told[1], "unsure", tables=[f"unsure.t{number}"]).run()
    assert stop is not None and stop.name == "column_added"


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("analyzed", "a change in statement format (analyze)"),
        ("hidden", "a TRUNCATE, perhaps of a temporary table"),
        ("elsewhere", "a table of engine MERGE has other rows"),
    ],
)
def test_what_may_have_changed_a_table_makes_it_stale(
    tmp_path: Path, told: tuple[Server, Path], schema: str, reason: str
) -> None:
    feed = fed(tmp_path, told[1], schema)
    assert feed.run() is None
    assert [one["id"] for one in feed.rows("t") or []] == [1]
    assert feed.property("t", STALE_REASON) == reason


def test_in_iceberg_columns_change_at_once_wherever_the_feed_dies(
    tmp_path: Path, told: tuple[Server, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    commits, last = 0, 10**9
    commit = SqlCatalog.commit_table

    def mortal(catalog: SqlCatalog, *given: Any, **named: Any) -> Any:
        nonlocal commits
        done = commit(catalog, *given, **named)
        commits += 1
        if commits == last:
            raise Died
        return done

    monkeypatch.setattr(SqlCatalog, "commit_table", mortal)
    assert fed(tmp_path / "whole", told[1], "swapped", format="iceberg").run() is None
    for last in range(1, commits + 1):
        commits = 0
        feed = fed(tmp_path / str(last), told[1], "swapped", format="iceberg")
        with pytest.raises(Died):
            feed.run()
        assert feed.run() is None
        assert is_the_sources(feed, told[0], "t"), f"behind commit {last}"


def keyed(server: Server, kind: str) -> tuple[TableRows, FeedSource]:
    """A new table `chunks.t` with such a key and another column, each value twice; and how it is read."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS chunks")
        cursor.execute("DROP TABLE IF EXISTS chunks.t")
        cursor.execute(f"CREATE TABLE chunks.t (k {kind} NOT NULL, p INT NOT NULL, PRIMARY KEY (k, p))")
        cursor.executemany("INSERT INTO chunks.t VALUES (%s, %s)", [(value, p) for value in KEYS[kind] for p in (1, 2)])
    charset = "utf8mb4" if kind.startswith(("enum", "set")) else ""
    columns = (Column("k", kind, charset, nullable=False), Column("p", "int(11)", nullable=False))
    table = Table("chunks", "t", "InnoDB", columns, (("PRIMARY", whole_key(("k", "p"), True)),))
    rows = TableRows("chunks.t", lake_columns(table, "-"), lake_key(table))
    return rows, FeedSource(host="127.0.0.1", port=server.port, user="root")


@pytest.mark.parametrize("kind", list(KEYS))
def test_rows_are_found_by_their_keys_as_the_binlog_has_them(told: tuple[Server, Path], kind: str) -> None:
    rows, where = keyed(told[0], kind)
    with SourceRows(where) as source:
        found = source.rows_by_key(("chunks", "t"), rows, [[value, 2] for value in KEYS[kind]])
    assert found.num_rows == len(KEYS[kind])


@pytest.mark.parametrize("kind", list(KEYS))
def test_chunks_of_a_snapshot_have_each_row_whatever_its_key_is_sorted_by(told: tuple[Server, Path], kind: str) -> None:
    values = KEYS[kind]
    rows, where = keyed(told[0], kind)
    found, last = [], None
    with SourceRows(where) as source:
        for _ in range(2 * len(values)):
            chunk, last = source.chunk(("chunks", "t"), rows, last, 3)
            last = json.loads(json.dumps(last))  # as a property of the table has it
            found += chunk.to_pylist()
            if last is None:
                break
    assert last is None
    assert len({(one["k"], one["p"]) for one in found}) == 2 * len(values)
