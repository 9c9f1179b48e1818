"""Level changes: a table's changes with its own columns, typed, in the words of Delta's change data feed."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

import pyarrow as pa

from deploy.servers import Server
from protocol.sql.tables.source_table import Column, Table
from relay.binlog_tables.arrow import newest, read
from relay.binlog_tables.plan.read_finding import BinlogUnreadable, ReadRefused
from relay.binlog_tables.typed.column_kinds import kind_of
from relay.binlog_tables.typed.typed_values import typed_array
from relay.schema_history.schema_record import line, table_line
from relay.source_tables.table_facts import table_facts
from tests.audit.test_rows import add_map, add_rows, image, shop_binlog
from tests.audit.test_splits import write
from tests.conftest import ServerFactory

pytestmark = pytest.mark.interop

OPTIONS = ("--binlog-format=ROW", "--sql-mode=")
TYPES = {
    "id": ("BIGINT UNSIGNED PRIMARY KEY", "18446744073709551615", Decimal(18446744073709551615)),
    "tiny": ("TINYINT", "-7", -7),
    "wide": ("INT UNSIGNED", "4294967295", 4294967295),
    "bits": ("BIT(12)", "2049", 2049),
    "money": ("DECIMAL(10,2)", "-12.50", Decimal("-12.50")),
    "huge": ("DECIMAL(65,30)", "1.5", "1.500000000000000000000000000000"),
    "single": ("FLOAT", "0.5", 0.5),
    "twice": ("DOUBLE", "1e300", 1e300),
    "day": ("DATE", "'2026-02-28'", date(2026, 2, 28)),
    "local": ("DATETIME(6)", "'2026-02-28 23:59:59.000001'", datetime(2026, 2, 28, 23, 59, 59, 1)),
    "moment": ("TIMESTAMP(3) NULL", "'2026-02-28 23:59:59.5'", datetime(2026, 2, 28, 23, 59, 59, 500000, UTC)),
    "span": ("TIME", "'-838:59:59'", "-838:59:59"),
    "year": ("YEAR", "2026", 2026),
    "text": ("VARCHAR(20) CHARACTER SET latin1", "'\u00e4b'", "\u00e4b"),
    "bytes": ("VARBINARY(20)", "x'00ff'", b"\x00\xff"),
    "word": ("ENUM('a','b')", "'b'", "b"),
    "words": ("SET('a','b','c')", "'a,c'", "a,c"),
    "document": ("JSON", """'{"a": [1, null]}'""", '{"a": [1, null]}'),
    "nothing": ("INT", "NULL", None),
}


@pytest.fixture(scope="module")
def shop(module_servers: ServerFactory) -> Iterator[Server]:
    """A MySQL 9.7 with tables of all types, and one that is altered between its changes."""
    server = module_servers("mysql97").start(server_id=1, options=OPTIONS)
    server.execute_many(
        (
            "CREATE DATABASE shop",
            "SET time_zone = '+00:00'",
            f"CREATE TABLE shop.types ({', '.join(f'{name} {one[0]}' for name, one in TYPES.items())})",
            f"INSERT INTO shop.types VALUES ({', '.join(one[1] for one in TYPES.values())})",
            "CREATE TABLE shop.dates (id INT PRIMARY KEY, day DATE, at DATETIME)",
            "INSERT INTO shop.dates VALUES (1, '0000-00-00', '2026-01-00 00:00:00')",
            "CREATE TABLE shop.moved (id INT PRIMARY KEY, a DATETIME, b TIMESTAMP NULL, c TEXT, d INT, e JSON, "
            "f VARCHAR(5) CHARACTER SET ucs2)",
            """INSERT INTO shop.moved VALUES (1, '2026-01-01 12:00:00', '2026-01-01 12:00:00', '{"a": 1}', 7, '"x"', 'a')""",
            "ALTER TABLE shop.moved MODIFY a TIMESTAMP NULL, MODIFY b DATETIME, MODIFY c JSON, MODIFY e TEXT, "
            "MODIFY f VARBINARY(10)",
            """INSERT INTO shop.moved VALUES (2, NULL, '2026-01-01 12:00:00', JSON_ARRAY(1.2345678901234567890123), 8, 'x', 'a')""",
            "CREATE TABLE shop.orders (id INT PRIMARY KEY, n VARCHAR(9), gone INT)",
            "INSERT INTO shop.orders VALUES (1, '7', 1), (2, 'x', 2)",
            "ALTER TABLE shop.orders DROP gone, ADD more INT DEFAULT 5",
            "UPDATE shop.orders SET id = 3, more = 6 WHERE id = 1",
            "ALTER TABLE shop.orders MODIFY n INT NOT NULL DEFAULT 0",
            "SET binlog_row_image = MINIMAL",
            "UPDATE shop.orders SET more = 9 WHERE id = 3",
            "DELETE FROM shop.orders WHERE id = 2",
        )
    )
    yield server


def found(server: Server, table: str, *columns: str, **options: Any) -> list[dict[str, Any]]:
    path = server.datadir
    return read(path, "changes", table=table, columns=columns or None, **options).read_all().to_pylist()


def test_values_have_the_types_of_their_columns(shop: Server, spark: Any) -> None:
    (row,) = found(shop, "shop.types")
    assert {name: row[name] for name in TYPES} == {name: one[2] for name, one in TYPES.items()}
    assert (row["_change_type"], row["_change_number"], row["_missing"], row["_finding"]) == ("insert", 0, None, None)
    frame = spark.read.format("binlog").option("table", "shop.types").load(str(shop.datadir))
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema}
    assert (kinds["id"], kinds["money"], kinds["moment"], kinds["local"], kinds["document"]) == (
        "decimal(20,0)",
        "decimal(10,2)",
        "timestamp",
        "timestamp_ntz",
        "variant",
    )
    (shown,) = frame.selectExpr("*", "variant_get(document, '$.a[0]', 'int') AS first").collect()
    assert shown["first"] == 1
    assert json.loads(shown["document"].toJson()) == {"a": [1, None]}
    others = [name for name in TYPES if name not in ("document", "moment", "bytes")]
    assert {name: shown[name] for name in others} == {name: TYPES[name][2] for name in others}
    assert shown["_commit_version"] == row["_commit_version"]


def test_a_date_that_is_none_is_null_and_a_finding(shop: Server) -> None:
    (row,) = found(shop, "shop.dates", "id", "day", "at", "_finding", "_finding_text")
    assert (row["id"], row["day"], row["at"], row["_finding"]) == (1, None, None, "value_not_of_type")
    assert row["_finding_text"].startswith("day: A value of this row is none of the column's type")
    with pytest.raises(BinlogUnreadable, match="value_not_of_type"):
        found(shop, "shop.dates", mode="failfast")


def test_changes_of_older_definitions_are_shown_at_the_newest(shop: Server) -> None:
    rows = found(shop, "shop.orders")
    assert list(rows[0])[:3] == ["id", "n", "more"]
    shown = [(row["_change_type"], row["id"], row["n"], row["more"], row["_missing"], row["_finding"]) for row in rows]
    assert shown == [
        ("insert", 1, 7, None, ["more"], None),
        ("insert", 2, None, None, ["more"], "value_not_of_type"),
        ("update_preimage", 1, 7, 5, None, None),
        ("update_postimage", 3, 7, 6, None, None),
        ("update_preimage", 3, None, None, ["n", "more"], None),
        ("update_postimage", None, None, 9, ["id", "n"], None),
        ("delete", 2, None, None, ["n", "more"], None),
    ]
    order = [(row["_commit_version"], row["_change_number"]) for row in rows]
    assert order == sorted(set(order))
    assert [row["_change_number"] for row in rows] == [0, 2, 0, 1, 0, 1, 0]


def test_a_value_that_was_another_one_in_its_older_column_is_null_and_a_finding(shop: Server) -> None:
    rows = found(shop, "shop.moved", "id", "a", "b", "c", "d", "e", "f", "_finding")
    noon = datetime(2026, 1, 1, 12)
    assert [tuple(row.values()) for row in rows] == [
        (1, None, None, None, 7, None, None, "value_not_of_type"),
        (2, None, noon, "[1.2345678901234567890123]", 8, "x", b"a", None),
    ]


def test_changes_whose_columns_nobody_knows_are_a_finding_without_values(tmp_path: Path) -> None:
    binlog = shop_binlog(1)
    altered = binlog.size
    binlog.ddl("ALTER TABLE orders CHANGE a id INT")
    binlog.begin()
    add_map(binlog, b"orders", table_id=43)
    add_rows(binlog, 30, image(7, "later"), table_id=43)
    write(tmp_path, "bin.000001", binlog.xid().data)
    table = Table("shop", "orders", "InnoDB", (Column("id", "int"), Column("name", "varchar(20)", "utf8")))
    (tmp_path / "source-schema.jsonl").write_text(
        line("watched", "bin.000001", 4)
        + line("definition", "bin.000001", altered, names=["orders"])
        + table_line(table_facts(table), "bin.000001", binlog.size)
    )
    batches = read(tmp_path, "changes", table="shop.orders")
    rows = [(row["id"], row["name"], row["_finding"]) for row in batches.read_all().to_pylist()]
    assert rows == [*[(None, None, "columns_unnamed")] * 5, (7, "later", None)]
    with pytest.raises(BinlogUnreadable, match=r"columns_unnamed in bin\.000001 at"):
        read(tmp_path, "changes", table="shop.orders", mode="failfast").read_all()


def test_a_table_that_nobody_described_is_refused(shop: Server) -> None:
    with pytest.raises(ReadRefused, match=r"nobody told the columns that shop\.no has at "):
        found(shop, "shop.no")
    with pytest.raises(ValueError, match="level changes is of one table"):
        read(shop.datadir, "changes")
    with pytest.raises(ValueError, match="has no column 'gone'; it has id, n, more"):
        found(shop, "shop.orders", "gone")


def test_a_stream_of_a_table_ends_where_it_is_told(shop: Server, spark: Any, tmp_path: Path) -> None:
    path = str(shop.datadir)
    stream = spark.readStream.format("binlog").options(table="shop.orders", endingPosition=newest(path))
    query = (
        stream.load(path)
        .select("id", "_change_type")
        .writeStream.format("parquet")
        .options(path=str(tmp_path / "out"), checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(200)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row["_change_type"] for row in rows) == sorted(
        row["_change_type"] for row in found(shop, "shop.orders")
    )


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", 1 << 31), ("int", "7.5"), ("bigint", 1 << 63), ("decimal(4,2)", "100.00"), ("decimal(4,2)", "1.005"),
        ("decimal(4,2)", {"base64": "AA=="}), ("date", "2026-02-30"), ("timestamp", "0000-00-00 00:00:00"),
        ("string", {"base64": "/w=="}), ("binary", 5), ("int", "1_000"), ("decimal(9,2)", "1_0"),
        ("double", "1_0"), ("json", {"$diffs": []}), ("float", 1e39), ("array<float>", "x"),
        ("timestamp", "2026-01-01T12:00:00+05:00"), ("timestamp_ntz", "2026-01-01T12:00:00+05:00"), ("date", "2026-W01-1"),
        ("timestamp_ntz", 2026), ("binary", "ä"), ("variant", {"d": [Decimal("1." + "1" * 38)]}), ("variant", 10**38),
    ],
)  # fmt: skip
def test_a_value_that_is_none_of_its_columns_type_is_told(kind: str, value: Any) -> None:
    array, wrong = typed_array([None, value], kind)
    assert (array.to_pylist(), wrong) == ([None, None], [1])


@pytest.mark.parametrize(
    ("kind", "value", "typed"),
    [
        ("json", {"$json": None}, "null"), ("json", {"$json": {"base64": 1}}, '{"base64": 1}'), ("json", "a", '"a"'),
        ("string", 5, "5"), ("string", {"srid": 0, "wkb": "AA=="}, '{"srid": 0, "wkb": "AA=="}'), ("int", "7", 7),
        ("double", "Infinity", float("inf")), ("array<float>", [0.5, 2], [0.5, 2.0]), ("binary", "a", b"a"),
        ("decimal(38,0)", str(10**37), Decimal(10**37)), ("decimal(38,0)", "9" * 38, Decimal("9" * 38)),
        ("decimal(38,10)", f"-{'9' * 28}.{'9' * 10}", Decimal(f"-{'9' * 28}.{'9' * 10}")),
        ("decimal(20,0)", (1 << 64) - 1, Decimal((1 << 64) - 1)),
        ("variant", {"d": [Decimal("1.2345678901234567890123456"), True]}, '{"d": [1.2345678901234567890123456, true]}'),
    ],
)  # fmt: skip
def test_a_value_of_its_columns_type_is_that_value(kind: str, value: Any, typed: Any) -> None:
    array, wrong = typed_array([value], kind)
    assert (array.to_pylist(), wrong) == ([typed], [])


def test_types_of_old_servers_have_kinds_too() -> None:
    kinds = {"int(10) unsigned zerofill": "bigint", "decimal(10,0)": "decimal(10,0)", "double unsigned": "double",
             "bit(64)": "decimal(20,0)", "char(3)": "string", "datetime": "timestamp_ntz", "bigint(20) unsigned": "decimal(20,0)",
             "tinyint(1)": "int", "decimal(40,2)": "string", "geometry": "string", "uuid": "string"}  # fmt: skip
    assert {one: kind_of(one) for one in kinds} == kinds
    assert pa.types.is_string(typed_array([], "json")[0].type)
