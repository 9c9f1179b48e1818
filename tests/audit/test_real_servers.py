"""Binlogs of real servers, every column type in them: counted as mysqlbinlog and SHOW BINLOG EVENTS count them."""

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from deploy.servers import SERVERS, Server
from tests.audit.test_splits import found_in, rows, splits_of
from tests.conftest import ServerFactory

pytestmark = pytest.mark.interop

# Column type -> values in SQL: extremes, and what is between. NULL is added to each.
EVERYWHERE = {
    "TINYINT": ["-128", "127"],
    "TINYINT UNSIGNED": ["0", "255"],
    "SMALLINT": ["-32768", "32767"],
    "MEDIUMINT": ["-8388608", "8388607"],
    "INT": ["-2147483648", "2147483647"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807"],
    "BIGINT UNSIGNED": ["0", "18446744073709551615"],
    "FLOAT": ["-1.5", "3.4e38"],
    "DOUBLE": ["-1.5", "1.7e308"],
    "DECIMAL(10,0)": ["-9999999999", "0"],
    "DECIMAL(65,30)": ["-12345678901234567890123456789012345.123456789012345678901234567890", "0.1"],
    "DECIMAL(4,4)": ["0.9999", "-0.0001"],
    "BIT(1)": ["b'1'", "b'0'"],
    "BIT(13)": ["b'1010101010101'", "b'0'"],
    "BIT(64)": ["18446744073709551615", "0"],
    "YEAR": ["1901", "2155"],
    "DATE": ["'1000-01-01'", "'9999-12-31'"],
    "TIME": ["'-838:59:59'", "'838:59:59'"],
    "TIME(3)": ["'-00:00:00.001'", "'12:34:56.789'"],
    "TIME(6)": ["'-838:59:58.999999'", "'00:00:00.000001'"],
    "DATETIME": ["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'"],
    "DATETIME(1)": ["'2020-02-29 12:00:00.9'", "'1970-01-01 00:00:00.0'"],
    "DATETIME(6)": ["'2020-02-29 12:00:00.123456'", "'9999-12-31 23:59:59.999999'"],
    "TIMESTAMP NULL": ["'1971-01-01 00:00:01'", "'2037-12-31 23:59:59'"],
    "TIMESTAMP(4) NULL": ["'1971-01-01 00:00:01.1234'", "'2037-12-31 23:59:59.9999'"],
    "CHAR(0)": ["''", "''"],
    "CHAR(10)": ["''", "'0123456789'"],
    "CHAR(255) CHARACTER SET utf8": ["REPEAT('ä', 255)", "''"],
    "BINARY(7)": ["x'00ff'", "x'01020304050607'"],
    "VARCHAR(255) CHARACTER SET latin1": ["REPEAT('x', 255)", "''"],
    "VARCHAR(256) CHARACTER SET latin1": ["REPEAT('x', 256)", "''"],
    "VARCHAR(300) CHARACTER SET utf8": ["REPEAT('€', 300)", "'a'"],
    "VARBINARY(10)": ["x'00'", "x''"],
    "TINYTEXT": ["REPEAT('t', 255)", "''"],
    "TEXT": ["REPEAT('t', 5000)", "''"],
    "MEDIUMTEXT": ["REPEAT('t', 70000)", "''"],
    "LONGTEXT": ["REPEAT('t', 300000)", "''"],
    "TINYBLOB": ["x'00'", "''"],
    "BLOB": ["REPEAT(x'ff', 60000)", "''"],
    "MEDIUMBLOB": ["x'00'", "''"],
    "LONGBLOB": ["x'00'", "''"],
    "ENUM('a','b')": ["'a'", "'b'"],
    "SET('a','b','c')": ["'a,c'", "''"],
}
# In a table of their own: mysqlbinlog of MySQL gives up a rows event at the first of them.
SHAPES = ["POINT(1, 2)", "ST_GeomFromText('LINESTRING(0 0,1 1,2 2)')"]
ONLY = {
    "mysql56": {},
    "mariadb": {
        "JSON": ["'{\"a\": [1, null]}'", "'1'"],
        "VARCHAR(300) COMPRESSED": ["REPEAT('c', 300)", "''"],
        "TEXT COMPRESSED": ["REPEAT('c', 3000)", "''"],
        "INET6": ["'::1'", "'ffff::'"],
        "UUID": ["UUID()", "UUID()"],
    },
    "mysql97": {
        "JSON": ['\'{"a": [1, null, {"b": "c"}]}\'', "'1'"],
        "VECTOR(3)": ["STRING_TO_VECTOR('[1,2,3]')", "STRING_TO_VECTOR('[0,-1,1e30]')"],
    },
}


@dataclass(frozen=True)
class Case:
    """A server, its options, and whether its transactions are compressed."""

    server: str
    options: tuple[str, ...] = ()


CASES = {
    "mysql56": Case("mysql56"),
    "mysql56-minimal": Case("mysql56", ("--binlog-row-image=MINIMAL",)),
    "mysql56-v1": Case("mysql56", ("--log-bin-use-v1-row-events=1",)),
    "mariadb": Case("mariadb"),
    "mariadb-compressed": Case("mariadb", ("--log-bin-compress=ON", "--log-bin-compress-min-len=10")),
    "mariadb-noblob": Case("mariadb", ("--binlog-row-image=NOBLOB",)),
    "mysql97": Case("mysql97", ("--binlog-rows-query-log-events=ON", "--binlog-row-metadata=FULL")),
    "mysql97-compressed": Case("mysql97", ("--binlog-transaction-compression=ON",)),
    "mysql97-minimal": Case(
        "mysql97", ("--binlog-row-image=MINIMAL", "--binlog-row-value-options=PARTIAL_JSON", "--gtid-mode=OFF")
    ),
}


def write_everything(server: Server) -> tuple[Path, Counter[str]]:
    """Rows of every type, in many statements: the finished binlog that holds them, and how many rows each verb changed."""
    types = EVERYWHERE | ONLY[server.name]
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(types))
    prepare = [
        "CREATE DATABASE test2",
        "FLUSH BINARY LOGS",
    ]
    tables = [
        f"CREATE TABLE everything (id INT PRIMARY KEY AUTO_INCREMENT, {columns}) ENGINE=InnoDB",
        "CREATE TABLE empty_rows (id INT PRIMARY KEY AUTO_INCREMENT, a INT DEFAULT 3)",
        "CREATE TABLE shapes (id INT PRIMARY KEY AUTO_INCREMENT, shape GEOMETRY)",
    ]
    changes = []
    for which in (0, 1):
        values = [choices[which] for choices in types.values()]
        changes.append(f"INSERT INTO everything VALUES (NULL, {', '.join(values)})")
    changes.append(f"INSERT INTO everything VALUES (NULL, {', '.join(['NULL'] * len(types))})")
    for number, choices in enumerate(types.values()):
        changes.append(f"INSERT INTO everything (c{number}) VALUES ({choices[0]}), (NULL), ({choices[1]})")
    changes += [
        "BEGIN",
        "UPDATE everything SET c0 = 1 WHERE id < 20",
        "UPDATE everything SET c4 = c4 + 1 WHERE c4 < 0",
        "DELETE FROM everything WHERE id % 7 = 0",
        "COMMIT",
        "INSERT INTO empty_rows VALUES (), (), ()",
        "UPDATE empty_rows SET a = 4",
        "DELETE FROM empty_rows",
        f"INSERT INTO shapes VALUES (NULL, {SHAPES[0]}), (NULL, NULL), (NULL, {SHAPES[1]})",
        f"UPDATE shapes SET shape = {SHAPES[1]}",
        "DELETE FROM shapes",
    ]
    if server.name == "mysql97":
        number = list(types).index("JSON")
        changes.append(f"UPDATE everything SET c{number} = JSON_SET(c{number}, '$.a', 7) WHERE c{number} IS NOT NULL")
    server.execute_many(prepare)
    changed: Counter[str] = Counter()
    connection = server.connect("test2")
    try:
        with connection.cursor() as cursor:
            for statement in ["SET sql_mode = ''", "SET NAMES utf8", "SET binlog_format = ROW", *tables]:
                cursor.execute(statement)
            for statement in changes:
                changed[statement.split()[0]] += cursor.execute(statement)
    finally:
        connection.close()
    server.sql("FLUSH BINARY LOGS")
    return server.binlogs()[-2], changed


def mysqlbinlog(server: Server, path: Path) -> str:
    """What mysqlbinlog -vv says about the file."""
    # MySQL 9.7's cannot read rows of the first version
    reader = "mysql97" if server.name == "mysql97" else "mariadb"
    command = [*SERVERS[reader].mysqlbinlog(), "--no-defaults", "-vv", "-"]
    with path.open("rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8", "replace")


def counts(transactions: list[dict[str, Any]]) -> tuple[int, ...]:
    """Rows inserted, updated and deleted by all of these."""
    return tuple(sum(row[name] for row in transactions) for name in ("rows_inserted", "rows_updated", "rows_deleted"))


@pytest.mark.parametrize("name", CASES)
def test_rows_and_events_are_counted_as_the_servers_own_tools_count_them(servers: ServerFactory, name: str) -> None:
    case = CASES[name]
    server = servers(case.server)
    server.start(server_id=7, options=list(case.options))
    path, changed = write_everything(server)
    splits = splits_of(path)
    assert found_in(path) == []

    transactions = rows(splits, "transactions")
    assert changed["INSERT"] > 100
    assert counts(transactions) == (changed["INSERT"], changed["UPDATE"], changed["DELETE"])
    told = [row for row in transactions if row["tables"] != ["test2.shapes"]]
    said = Counter(
        re.findall(
            r"^### (INSERT INTO|UPDATE|DELETE FROM) `test2`.`(?!shapes)",
            mysqlbinlog(server, path),
            re.MULTILINE,
        )
    )
    assert counts(told) == (said["INSERT INTO"], said["UPDATE"], said["DELETE FROM"])
    assert {table for row in transactions for table in row["tables"]} == {
        "test2.everything",
        "test2.empty_rows",
        "test2.shapes",
    }

    listed = server.sql(f"SHOW BINLOG EVENTS IN '{path.name}'")
    xids = [int(match[1]) for row in listed if (match := re.search(r"xid=(\d+)", str(row[5]))) and row[2] == "Xid"]
    assert [row["xid"] for row in transactions if row["xid"] is not None] == xids
    events = rows(splits, "events", "position", "end", "type", "schema", "table")
    if "mysql97-compressed" not in name:
        assert [row["position"] for row in events] == [row[1] for row in listed]
        maps = [str(row[5]) for row in listed if row[2] == "Table_map"]
        assert [f"{row['schema']}.{row['table']}" for row in events if row["type"] == "Table_map"] == [
            re.search(r"\((.*?)\)", text)[1]  # type: ignore[index]
            for text in maps
        ]
