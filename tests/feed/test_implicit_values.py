"""What servers store in a NOT NULL column without a default that a statement leaves out, where the binlog does not have it."""

from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from tests.conftest import ServerFactory
from tests.support.feed_histories import lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop
KEYS = (
    "INT", "TINYINT UNSIGNED", "BIGINT UNSIGNED", "INT(5) ZEROFILL", "DECIMAL(10,3)", "DECIMAL(12,0)", "DOUBLE", "FLOAT(7,2)", "YEAR",
    "BIT(9)", "BIT(64)", "CHAR(5)", "VARCHAR(9)", "VARCHAR(9) CHARACTER SET utf8", "ENUM('z','a')", "SET('x','y')", "TIME", "TIME(3)",
    "VARBINARY(9)",
)  # fmt: skip
OTHERS = ("DECIMAL(50,4)", "TINYTEXT", "LONGTEXT", "BLOB", "LONGBLOB", "CHAR(5) CHARACTER SET ucs2", "TIME(6)")


def key_table(number: int, kind: str) -> list[str]:
    return [
        f"CREATE TABLE k{number} (c {kind} NOT NULL PRIMARY KEY, v INT)",
        f"INSERT INTO k{number} (v) VALUES (1)",
        f"UPDATE k{number} SET v = 2",
    ]


def statements(image: str) -> list[str]:
    every = (*KEYS, *OTHERS)
    columns = ", ".join(f"c{number} {kind} NOT NULL" for number, kind in enumerate(every))
    given = ", ".join(f"c{number} {kind}" for number, kind in enumerate(every))
    left_out = "INSERT INTO {table} (id, v) VALUES (1, 1)"
    return [
        "SET sql_mode = ''",
        f"SET binlog_row_image = '{image}'",
        *(one for number, kind in enumerate(KEYS) for one in key_table(number, kind)),
        f"CREATE TABLE wide (id INT PRIMARY KEY, v INT, {columns})",
        left_out.format(table="wide"),
        "INSERT INTO wide (id, v, c0) VALUES (2, 2, 7)",
        "UPDATE wide SET v = 3 WHERE id = 1",
        "REPLACE INTO wide (id, v) VALUES (2, 4)",
        # A default that was there, and one that goes.
        f"CREATE TABLE gone (id INT PRIMARY KEY, v INT, {given})",
        "ALTER TABLE gone " + ", ".join(f"MODIFY c{number} {kind} NOT NULL" for number, kind in enumerate(every)),
        left_out.format(table="gone"),
        "CREATE TABLE dropped (id INT PRIMARY KEY, v INT, a INT NOT NULL DEFAULT 5, b VARCHAR(9) NOT NULL DEFAULT 'x')",
        "ALTER TABLE dropped ALTER a DROP DEFAULT, ALTER b DROP DEFAULT",
        left_out.format(table="dropped"),
        # A key's column that is one no longer.
        "CREATE TABLE unkeyed (a INT NOT NULL, id INT NOT NULL, v INT, PRIMARY KEY (a))",
        "ALTER TABLE unkeyed DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
        left_out.format(table="unkeyed"),
        "CREATE TABLE counted (id INT PRIMARY KEY, v INT, n INT NOT NULL AUTO_INCREMENT, KEY (n))",
        left_out.format(table="counted"),
        "CREATE TABLE triggered (id INT PRIMARY KEY, v INT, n INT NOT NULL, s VARCHAR(9) NOT NULL)",
        "CREATE TRIGGER sets BEFORE INSERT ON triggered FOR EACH ROW SET NEW.n = 7",
        left_out.format(table="triggered"),
        "SET sql_mode = 'STRICT_ALL_TABLES'",
        f"CREATE TABLE ignored (id INT PRIMARY KEY, v INT, {columns})",
        left_out.format(table="ignored").replace("INSERT", "INSERT IGNORE"),
        # An ENUM may be left out in strict modes, too.
        "CREATE TABLE chosen (id INT PRIMARY KEY, v INT, e ENUM('z','a') NOT NULL)",
        left_out.format(table="chosen"),
        "CREATE TABLE added (id INT PRIMARY KEY, v INT)",
        left_out.format(table="added"),
        "ALTER TABLE added " + ", ".join(f"ADD c{number} {kind} NOT NULL" for number, kind in enumerate(every)),
    ]


TABLES = [
    *(f"k{number}" for number in range(len(KEYS))),
    "wide",
    "gone",
    "dropped",
    "unkeyed",
    "counted",
    "triggered",
    "ignored",
    "chosen",
    "added",
]


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("mysql56", "MINIMAL"),
        ("mysql56", "NOBLOB"),
        ("mysql97", "MINIMAL"),
        ("mariadb", "MINIMAL"),
        ("mariadb", "NOBLOB"),
        ("mariadb118", "MINIMAL"),
    ],
)
def test_a_column_that_is_left_out_has_its_types_implicit_value(
    tmp_path: Path, servers: ServerFactory, name: str, image: str
) -> None:
    server = servers(name)
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(["CREATE DATABASE s", "USE s", *statements(image)])
    feed = SmallFeed(tmp_path, copied_binlogs(server, tmp_path / "binlogs"), "s", modes=["current"])
    assert feed.run() is None
    for table in TABLES:
        found = feed.open().lake.open("current", "s", table)
        assert found is not None, table
        names, rows = true_rows(server, "s", table)
        with found.scan() as reader:
            assert lake_rows(reader.read_all(), names) == rows, table
