"""Statements say names in any case, by foreign keys too: what they change makes tables stale, whichever case the binlog has."""

from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from relay.feed.lake.lake_table import STALE_REASON
from tests.conftest import ServerFactory
from tests.support.feed_histories import lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop

_ROWS = ["INSERT INTO {parent} VALUES (1, 1), (2, 2), (3, 3)", "INSERT INTO child VALUES (1, 1), (2, 2), (3, 3)"]
# What is said of the foreign key; what then changes the child.
OF_A_COLUMN = ("FOREIGN KEY (P) REFERENCES parent (ID) ON UPDATE CASCADE", "UPDATE parent SET id = 4 WHERE id = 2", [])
OF_A_TABLE = (
    "FOREIGN KEY (p) REFERENCES Parent (id) ON DELETE CASCADE",
    "DELETE FROM PARENT WHERE id = 2",
    ["--lower-case-table-names=1"],
)


@pytest.mark.parametrize("fed", [["shop.*"], ["shop.child"]], ids=["both are fed", "the child alone"])
@pytest.mark.parametrize("modes", [["current"], ["current", "changes"]], ids=["current", "with changes"])
@pytest.mark.parametrize("told", [OF_A_COLUMN, OF_A_TABLE], ids=["a column", "a table"])
@pytest.mark.parametrize("name", ["mysql56", "mariadb"])
def test_a_child_is_stale_whichever_case_its_key_names_the_parent_in(
    tmp_path: Path,
    servers: ServerFactory,
    name: str,
    told: tuple[str, str, list[str]],
    modes: list[str],
    fed: list[str],
) -> None:
    key, change, options = told
    server = servers(name).start(server_id=1, options=["--binlog-format=ROW", *options])
    child = f"CREATE TABLE child (id INT PRIMARY KEY, p INT, {key})"
    parent = "CREATE TABLE Parent" if options else "CREATE TABLE parent"
    rows = [one.format(parent=parent.split()[-1]) for one in _ROWS]
    made = f"{parent} (id INT PRIMARY KEY, n INT)"
    server.execute_many(["CREATE DATABASE shop", "USE shop", made, child, *rows, change])
    feed = SmallFeed(tmp_path, copied_binlogs(server, tmp_path / "binlogs"), "shop", modes=modes, tables=fed)
    stop = feed.run()
    names, true = true_rows(server, "shop", "child")
    current = feed.lake().open("current", "shop", "child")
    assert current is not None
    with current.scan() as reader:
        assert lake_rows(reader.read_all(), names) != true
    assert stop is not None or feed.property("child", STALE_REASON)


@pytest.mark.parametrize("modes", [["current"], ["current", "changes"]], ids=["current", "with changes"])
@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE IF NOT EXISTS Orders (id INT PRIMARY KEY)", "TRUNCATE TABLE Orders"],
        [
            "CREATE TABLE IF NOT EXISTS Orders (id INT PRIMARY KEY)",
            "TRUNCATE TABLE Orders",
            "FLUSH LOGS",
            "DROP TABLE ORDERS",
        ],
        ["CREATE TABLE Others (id INT PRIMARY KEY)", "DROP DATABASE Shop"],
        ["DROP DATABASE Shop", "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)"],
    ],
    ids=["a truncate", "a truncate and a drop", "a schema", "a schema that comes again"],
)
def test_what_takes_all_rows_away_is_seen_whichever_case_it_is_said_in(
    tmp_path: Path, servers: ServerFactory, statements: list[str], modes: list[str]
) -> None:
    server = servers("mysql56").start(server_id=1, options=["--binlog-format=ROW", "--lower-case-table-names=1"])
    made = [
        "CREATE DATABASE shop",
        "USE shop",
        "CREATE TABLE orders (id INT PRIMARY KEY)",
        "INSERT INTO orders VALUES (1)",
    ]
    server.execute_many([*made, *statements])
    feed = SmallFeed(tmp_path, copied_binlogs(server, tmp_path / "binlogs"), "shop", modes=modes, no_cascades=["*.*"])
    stop = feed.run()
    assert stop is not None or feed.property("orders", STALE_REASON) or feed.rows("orders") == []


def test_two_tables_whose_names_differ_in_case_are_two_once_one_with_capitals_had_rows(
    tmp_path: Path, servers: ServerFactory
) -> None:
    server = servers("mysql56").start(server_id=1, options=["--binlog-format=ROW"])
    made = ["CREATE DATABASE shop", "USE shop"]
    for name in ("orders", "Orders"):
        made += [f"CREATE TABLE {name} (id INT PRIMARY KEY)", f"INSERT INTO {name} VALUES (1)"]
    server.execute_many([*made])
    archive = copied_binlogs(server, tmp_path / "binlogs")
    feed = SmallFeed(tmp_path, archive, "shop", modes=["current"])
    assert feed.run() is None
    server.execute_many(["USE shop", "TRUNCATE TABLE Orders"])
    copied_binlogs(server, archive)
    assert feed.run() is None
    assert (
        not feed.property("orders", STALE_REASON) and len(feed.rows("orders") or []) == 1 and feed.rows("Orders") == []
    )
