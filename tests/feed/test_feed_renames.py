"""RENAME TABLE in the lake: rows under the new name, as online schema changes do it, once, wherever the feed dies."""

from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from relay.feed.lake.lake_table import STALE_FROM, STALE_REASON
from relay.feed.rows.feed_stop import FeedStop
from tests.conftest import ServerFactory
from tests.support.dying_lake import Died, dying_behind
from tests.support.feed_histories import lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop
_GHOST = [
    "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(9))", "INSERT INTO orders VALUES (1, 'a'), (2, 'b')",
    "CREATE TABLE _orders_gho LIKE orders", "ALTER TABLE _orders_gho ADD COLUMN n INT NOT NULL DEFAULT 7",
    "INSERT IGNORE INTO _orders_gho (id, note) SELECT id, note FROM orders", "UPDATE orders SET note = 'x' WHERE id = 1",
    "REPLACE INTO _orders_gho (id, note) VALUES (1, 'x')", "RENAME TABLE orders TO _orders_del, _orders_gho TO orders",
    "INSERT INTO orders VALUES (3, 'c', 8)", "UPDATE orders SET n = 1 WHERE id = 1",
]  # fmt: skip
HISTORIES = {
    "ghost": _GHOST,
    "swapped": ["CREATE TABLE a (id INT PRIMARY KEY, x INT)", "INSERT INTO a VALUES (1, 1), (2, 2)",
                "CREATE TABLE b (k VARCHAR(9) PRIMARY KEY, y DATE)", "INSERT INTO b VALUES ('one', '2020-01-02')",
                "RENAME TABLE a TO t, b TO a, t TO b", "INSERT INTO a VALUES ('two', NULL)", "DELETE FROM b WHERE id = 1"],
    "altered": ["CREATE TABLE a (id INT PRIMARY KEY, x INT)", "INSERT INTO a VALUES (1, 1)",
                "ALTER TABLE a ADD y INT NOT NULL DEFAULT 5, CHANGE x z BIGINT, RENAME TO b", "INSERT INTO b VALUES (2, 2, 2)"],
    "away": ["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE DATABASE elsewhere",
             "RENAME TABLE t TO elsewhere.t", "INSERT INTO elsewhere.t VALUES (2)"],
    "back": ["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE TABLE u (id INT PRIMARY KEY)",
             "INSERT INTO u VALUES (5), (6)", "RENAME TABLE u TO v", "RENAME TABLE t TO old, v TO t", "INSERT INTO t VALUES (7)"],
    "stale": ["CREATE TABLE a (id INT PRIMARY KEY)", "SET binlog_format = 'STATEMENT'", "INSERT INTO a VALUES (1)",
              "SET binlog_format = 'ROW'", "CREATE TABLE b (id INT PRIMARY KEY)", "INSERT INTO b VALUES (2)",
              "RENAME TABLE a TO c, b TO a"],
    "unfed": ["CREATE TABLE o (id INT PRIMARY KEY, n INT)", "SET sql_mode = ''", "INSERT INTO o VALUES (1, 300)",
              "ALTER TABLE o MODIFY n TINYINT", "CREATE TABLE g (id INT PRIMARY KEY)", "RENAME TABLE o TO d, g TO o"],
    "referred": ["CREATE TABLE top (id INT PRIMARY KEY)",
                 "CREATE TABLE leaf (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES top (id) ON DELETE CASCADE)",
                 "INSERT INTO top VALUES (1)", "INSERT INTO leaf VALUES (1, 1)", "RENAME TABLE top TO newtop", "DELETE FROM newtop"],
}  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> tuple[Server, Path]:
    server: Server = module_servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    for schema, statements in HISTORIES.items():
        server.execute_many([f"CREATE DATABASE {schema}", f"USE {schema}", *statements])
    return server, copied_binlogs(server, tmp_path_factory.mktemp("renames") / "binlogs")


def is_the_sources(feed: SmallFeed, server: Server, table: str) -> bool:
    found = feed.open().lake.open("current", feed.schema, table)
    assert found is not None
    names, rows = true_rows(server, feed.schema, table)
    with found.scan() as reader:
        return lake_rows(reader.read_all(), names) == rows if names else reader.read_all().num_rows == 0


TABLES = {"ghost": ["orders", "_orders_del", "_orders_gho"], "swapped": ["a", "b"], "altered": ["a", "b"]}


@pytest.mark.parametrize(("schema", "format"), [("swapped", "delta"), ("ghost", "iceberg"), ("altered", "delta")])
def test_each_table_has_its_rows_under_its_new_name_wherever_the_feed_dies_meanwhile(
    tmp_path: Path, told: tuple[Server, Path], schema: str, format: str
) -> None:
    server, archive = told
    deaths = [9999]
    while deaths:
        count = deaths.pop()
        feed = SmallFeed(tmp_path / str(count), archive, schema, format=format, statement_changes="named")
        try:
            with dying_behind(count) as done:
                assert feed.run() is None
        except Died:
            assert feed.run() is None, done
        assert all(is_the_sources(feed, server, table) for table in TABLES[schema]), f"behind {done}"
        for table in TABLES[schema]:
            assert not feed.property(table, STALE_FROM)
            assert not feed.property(table, "binlog-relay.rename")
        if count == 9999:  # from the first note of the names up to the last one that is taken away
            notes = [number for number, name in enumerate(done) if name == "set_properties"]
            deaths = list(range(notes[0] + 1, notes[-1] + 1))
            assert len(deaths) > 3


def test_a_table_that_is_new_in_a_batch_is_not_forgotten_where_another_one_is_behind_the_batch_already(
    tmp_path: Path, told: tuple[Server, Path]
) -> None:
    server, archive = told
    feed = SmallFeed(tmp_path, archive, "swapped", statement_changes="named")
    with pytest.raises(Died), dying_behind(5) as done:  # a's rows are there, nothing of b
        feed.run()
    assert done == ["create", "replace", "create", "create", "merge"]
    assert feed.run() is None
    assert is_the_sources(feed, server, "a") and is_the_sources(feed, server, "b")
    assert [one["operation"] for one in feed.rows("b", "changes") or []] == ["create", "insert", "rename", "delete"]


def test_the_changes_say_what_became_of_the_names(tmp_path: Path, told: tuple[Server, Path]) -> None:
    feed = SmallFeed(tmp_path, told[1], "ghost")
    assert feed.run() is None
    renames = {
        table: [
            (one["before"], one["after"]) for one in feed.rows(table, "changes") or [] if one["operation"] == "rename"
        ]
        for table in TABLES["ghost"]
    }
    orders, gho, old = '{"table": "ghost.orders"}', '{"table": "ghost._orders_gho"}', '{"table": "ghost._orders_del"}'
    assert renames == {"orders": [(gho, old)], "_orders_del": [(orders, None)], "_orders_gho": [(None, orders)]}
    assert all(one["time"] is not None for one in feed.rows("orders", "changes") or [])


def test_rows_of_a_table_that_is_not_fed_come_with_its_new_name_from_its_create_table_on(
    tmp_path: Path, told: tuple[Server, Path]
) -> None:
    server, archive = told
    for count in (7, 9, 99):
        feed = SmallFeed(tmp_path / str(count), archive, "ghost", tables=["ghost.orders"])
        try:
            with dying_behind(count):
                assert feed.run() is None
        except Died:
            assert feed.run() is None
        assert is_the_sources(feed, server, "orders")
        assert feed.rows("_orders_gho") == [] and feed.rows("_orders_del") is None


def test_a_table_that_leaves_what_is_fed_has_no_rows_any_more(tmp_path: Path, told: tuple[Server, Path]) -> None:
    feed = SmallFeed(tmp_path, told[1], "away")
    assert feed.run() is None
    assert feed.rows("t") == []


def test_it_stops_by_name_where_nobody_knows_what_comes_with_a_name(tmp_path: Path, told: tuple[Server, Path]) -> None:
    feed = SmallFeed(tmp_path, told[1], "back", tables=["back.t"])
    for _ in range(2):
        stop = feed.run()
        assert isinstance(stop, FeedStop) and stop.name == "table_renamed" and stop.table == "back.t"
        assert [one["id"] for one in feed.rows("t") or []] == [1]


def test_a_stale_table_is_stale_under_its_new_name_and_the_one_with_its_old_name_is_not(
    tmp_path: Path, told: tuple[Server, Path]
) -> None:
    feed = SmallFeed(tmp_path, told[1], "stale", statement_changes="named")
    assert feed.run() is None
    assert (feed.property("c", STALE_REASON) or "").startswith("a change in statement format (insert)")
    assert not feed.property("a", STALE_REASON)
    assert [one["id"] for one in feed.rows("a") or []] == [2]


def test_what_refers_to_a_table_refers_to_it_under_its_new_name(tmp_path: Path, told: tuple[Server, Path]) -> None:
    feed = SmallFeed(tmp_path, told[1], "referred")
    assert feed.run() is None
    assert (feed.property("leaf", STALE_REASON) or "").startswith("a foreign key to referred.newtop")


def test_a_table_that_cannot_be_followed_up_to_the_rename_is_told_by_the_name_that_is_to_be_left_out(
    tmp_path: Path, told: tuple[Server, Path]
) -> None:
    stop = SmallFeed(tmp_path, told[1], "unfed", exclude=["unfed.o"]).run()
    assert stop is not None and (stop.name, stop.table) == ("table_renamed", "unfed.d")
    assert "unfed.o is not fed here, and cannot be followed up to there (column_changed at " in stop.text
    assert SmallFeed(tmp_path, told[1], "unfed", exclude=["unfed.o", "unfed.d"]).run() is None
