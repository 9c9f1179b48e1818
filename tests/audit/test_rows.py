"""Level rows: what transactions changed, with names where they are known, filters that reach the kernel, and findings."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from pyspark.sql import functions as F
from pyspark.sql.datasource import EqualTo, GreaterThan, In

from protocol.sql.tables.source_table import Column, Table
from relay.binlog_tables.decode.levels import read_split
from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.read_finding import BinlogUnreadable
from relay.binlog_tables.plan.schemas import ROWS
from relay.binlog_tables.plan.splits import Split
from relay.binlog_tables.plan.store import LocalStore
from relay.binlog_tables.plan.wanted import Wanted
from relay.schema_history.schema_record import line, table_line
from relay.source_tables.table_facts import table_facts
from relay.spark.pushdown import push
from tests.audit.test_splits import SPLIT, rows, splits_of, write
from tests.support.binlog_builder import INSIDE, BinlogBuilder

RECORDED = Path(__file__).resolve().parents[1] / "corpus" / "recorded"


def shop_binlog(transactions: int = 3, per_transaction: int = 2, table: bytes = b"orders") -> BinlogBuilder:
    """Inserts into shop.TABLE (an INT, a VARCHAR(20)) with Rows_query events, an update and a delete at the end."""
    binlog = BinlogBuilder()
    number = 0
    for which in range(transactions):
        binlog.begin()
        add_statement(binlog, f"INSERT INTO {table.decode()} /* {which} */")
        add_map(binlog, table)
        images = b""
        for _ in range(per_transaction):
            images += image(number, f"row {number}")
            number += 1
        add_rows(binlog, 30, images)
        binlog.xid()
    binlog.begin()
    add_map(binlog, table)
    add_rows(binlog, 31, image(0, "row 0") + image(0, "changed"))
    add_map(binlog, table)
    add_rows(binlog, 32, image(1, "row 1"))
    return binlog.xid()


def add_statement(binlog: BinlogBuilder, text: str) -> None:
    binlog.event(29, bytes([min(len(text), 255)]) + text.encode(), INSIDE, flags=0x80)


def add_map(
    binlog: BinlogBuilder,
    table: bytes,
    schema: bytes = b"shop",
    table_id: int = 42,
    types: bytes = b"\x03\x0f",
    metadata: bytes = b"\x14\x00",
    nullable: bytes = b"\x03",
) -> None:
    """Two columns, LONG and VARCHAR(20), both nullable, without optional metadata."""
    body = (
        struct.pack("<IHH", table_id, 0, 1)
        + bytes([len(schema)])
        + schema
        + b"\0"
        + bytes([len(table)])
        + table
        + b"\0"
    )
    binlog.event(19, body + b"\x02" + types + bytes([len(metadata)]) + metadata + nullable, INSIDE)


def add_rows(binlog: BinlogBuilder, kind: int, images: bytes, table_id: int = 42) -> None:
    columns = b"\x02\xff" + (b"\xff" if kind == 31 else b"")
    binlog.event(kind, struct.pack("<IHHH", table_id, 0, 1, 2) + columns + images, INSIDE)


def image(number: int, text: str) -> bytes:
    return b"\0" + struct.pack("<iB", number, len(text)) + text.encode()


def recorded(directory: Path, *columns: str, table: str = "orders", offset: int = 4) -> None:
    kinds = [("int(10) unsigned", ""), ("varchar(20)", "utf8"), ("int", "")]
    made = Table(
        "shop", table, "InnoDB", tuple(Column(name, *kind) for name, kind in zip(columns, kinds, strict=False))
    )
    text = line("watched", "bin.000001", 4) + table_line(table_facts(made), "bin.000001", offset)
    (directory / "source-schema.jsonl").write_text(text)


def filtered(path: Path, *filters: Any, columns: tuple[str, ...] = tuple(ROWS)) -> list[dict[str, Any]]:
    wanted = Wanted()
    push(filters, "rows", wanted)
    found: list[dict[str, Any]] = []
    for split in splits_of(path):
        for batch in read_split(LocalStore(), split, ReadOptions("rows", columns, False), wanted):
            found += batch.to_pylist()
    return found


# ---- what a row has ----------------------------------------------------------------------------------------------------


def test_a_row_has_its_images_its_transaction_and_the_statement_behind_it(tmp_path: Path) -> None:
    binlog = shop_binlog(1)
    path = write(tmp_path, "bin.000001", binlog.data)
    first, second, updated, deleted = rows(splits_of(path), "rows")
    starts = sorted(binlog.groups)
    assert (first["transaction"], first["row"], second["row"], updated["transaction"]) == (starts[0], 0, 1, starts[1])
    assert (first["schema"], first["table"], first["operation"]) == ("shop", "orders", "insert")
    assert first["statement"] == "INSERT INTO orders /* 0 */"
    assert (first["before"], json.loads(first["after"])) == (None, {"@1": 0, "@2": "row 0"})
    assert (updated["operation"], json.loads(updated["before"]), json.loads(updated["after"])) == (
        "update",
        {"@1": 0, "@2": "row 0"},
        {"@1": 0, "@2": "changed"},
    )
    assert (deleted["operation"], json.loads(deleted["before"]), deleted["after"]) == (
        "delete",
        {"@1": 1, "@2": "row 1"},
        None,
    )
    assert updated["statement"] is None
    assert first["position"] == next(event.start for event in binlog.events if event.kind == 30)


def test_splits_give_the_rows_that_the_whole_file_gives(tmp_path: Path) -> None:
    path = write(tmp_path, "bin.000001", shop_binlog(2000).data)
    cut, whole = splits_of(path), splits_of(path, 1 << 30)
    assert len(cut) > 3 and len(whole) == 1
    assert rows(cut, "rows") == rows(whole, "rows")
    assert len(rows(whole, "rows")) == 4002


def test_each_column_alone_is_what_it_is_among_all() -> None:
    path = RECORDED / "mariadb.binlog"
    every = rows(splits_of(path), "rows")
    assert len({row["statement"] for row in every}) > 5
    for name in (*ROWS, "end", "server_id", "finding_position", "finding_text"):
        alone = rows(splits_of(path), "rows", name)
        assert len(alone) == len(every)
        if name == "finding":
            # what is wrong with values shows where they are read
            assert {row["finding"] for row in every} == {"value_uncertain"}
            assert {row["finding"] for row in alone} == {None}
        elif name in ROWS:
            assert alone == [{name: row[name]} for row in every]


@pytest.mark.parametrize("name", ["mysql97-compressed", "mariadb-compressed"])
def test_what_is_compressed_is_opened(name: str) -> None:
    path = RECORDED / f"{name}.binlog"
    found = rows(splits_of(path), "rows")
    counted = rows(splits_of(path), "transactions")
    for operation, column in (("insert", "rows_inserted"), ("update", "rows_updated"), ("delete", "rows_deleted")):
        assert sum(row["operation"] == operation for row in found) == sum(row[column] for row in counted)
    assert len(found) > 3
    assert {row["finding"] for row in found} <= {None, "value_uncertain"}


def test_statements_that_many_rows_share_do_not_make_batches_without_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.binlog_tables.decode.rows._MOST_TEXT_BYTES", 1000)
    path = write(tmp_path, "bin.000001", shop_binlog(3, per_transaction=100).data)
    (split,) = splits_of(path, 1 << 30)
    batches = list(read_split(LocalStore(), split, ReadOptions("rows", ("row", "statement"), False), Wanted()))
    assert len(batches) > 5
    assert all(sum(len(text or "") for text in batch.column(1).to_pylist()) <= 1000 for batch in batches)
    assert sum(batch.num_rows for batch in batches) == 302


def test_statements_of_single_rows_are_theirs_in_each_part_of_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.binlog_tables.decode.rows._MOST_TEXT_BYTES", 200)
    binlog = BinlogBuilder()
    texts = [f"INSERT INTO orders /* {number} */" for number in range(40)]
    for number, text in enumerate(texts):
        binlog.begin()
        add_statement(binlog, text)
        add_map(binlog, b"orders")
        add_rows(binlog, 30, image(number, "a row"))
        binlog.xid()
    (split,) = splits_of(write(tmp_path, "bin.000001", binlog.data), 1 << 30)
    batches = list(read_split(LocalStore(), split, ReadOptions("rows", ("statement",), False), Wanted()))
    assert len(batches) > 5
    assert [text for batch in batches for text in batch.column(0).to_pylist()] == texts


# ---- names -------------------------------------------------------------------------------------------------------------


def after(path: Path) -> list[str]:
    return [row["after"] for row in rows(splits_of(path), "rows", "after") if row["after"] is not None]


def test_columns_are_named_as_the_relay_recorded_them(tmp_path: Path) -> None:
    path = write(tmp_path, "bin.000001", shop_binlog(1).data)
    recorded(tmp_path, "id", 'was "so"')
    assert json.loads(after(path)[0]) == {"id": 0, 'was "so"': "row 0"}


@pytest.mark.parametrize(
    ("charset", "logged", "text"),
    [
        ("latin1", b"eight or more plain!", "eight or more plain!"),
        ("latin1", b'says "so" \\ and\n\x00\x80', 'says "so" \\ and\n\0\u20ac'),
        ("latin1", b"plain until \xe9t\xe9 \xdf", "plain until \xe9t\xe9 \xdf"),
        ("swe7", b"b[ttre k\\p o m]nga", "b\xc4ttre k\xd6p o m\xc5nga"),
    ],
)
def test_text_of_one_byte_a_character_comes_out_as_it_was_written(
    tmp_path: Path, charset: str, logged: bytes, text: str
) -> None:
    binlog = BinlogBuilder().begin()
    add_map(binlog, b"orders")
    add_rows(binlog, 30, b"\0" + struct.pack("<iB", 1, len(logged)) + logged)
    path = write(tmp_path, "bin.000001", binlog.xid().data)
    columns = (Column("id", "int(11)"), Column("t", "varchar(20)", charset))
    known = table_line(table_facts(Table("shop", "orders", "InnoDB", columns)), "bin.000001", 4)
    (tmp_path / "source-schema.jsonl").write_text(line("watched", "bin.000001", 4) + known)
    assert json.loads(after(path)[0]) == {"id": 1, "t": text}


def test_names_that_were_written_anew_are_seen_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "bin.000001", shop_binlog(1).data)
    for name in ("one", "two"):  # as many bytes
        recorded(tmp_path, name, "other")
        assert json.loads(after(path)[0]) == {name: 0, "other": "row 0"}


def test_what_a_server_adds_without_showing_it_stays_without_a_name(tmp_path: Path) -> None:
    path = write(tmp_path, "bin.000001", shop_binlog(1).data)
    recorded(tmp_path, "id")
    assert list(json.loads(after(path)[0])) == ["id", "@2"]


def test_names_are_those_of_the_position(tmp_path: Path) -> None:
    binlog = shop_binlog(1)
    middle = binlog.size
    binlog.ddl("ALTER TABLE orders CHANGE a b INT")
    binlog.begin()
    add_map(binlog, b"orders", table_id=43)  # a server opens a table again after each change of it
    add_rows(binlog, 30, image(7, "later"), table_id=43)
    path = write(tmp_path, "bin.000001", binlog.xid().data)
    old, new = (
        Table("shop", "orders", "InnoDB", (Column(name, "int(11)"), Column("t", "varchar(20)", "latin1")))
        for name in ("a", "b")
    )
    (tmp_path / "source-schema.jsonl").write_text(
        line("watched", "bin.000001", 4)
        + table_line(table_facts(old), "bin.000001", 100)
        + line("definition", "bin.000001", middle, names=["orders"])
        + table_line(table_facts(new), "bin.000001", binlog.size)
    )
    assert [next(iter(json.loads(text))) for text in after(path)] == ["a", "a", "a", "b"]


@pytest.mark.parametrize("columns", [(), ("a", "b", "c")])
def test_a_table_that_is_recorded_with_other_columns_keeps_their_numbers(
    tmp_path: Path, columns: tuple[str, ...]
) -> None:
    path = write(tmp_path, "bin.000001", shop_binlog(1).data)
    recorded(tmp_path, *columns)
    assert json.loads(after(path)[0]) == {"@1": 0, "@2": "row 0"}


# ---- filters -----------------------------------------------------------------------------------------------------------


def test_filters_leave_rows_out_before_they_are_made(tmp_path: Path) -> None:
    binlog = shop_binlog(2)
    path = write(tmp_path, "bin.000001", binlog.data)
    write(tmp_path, "bin.000002", shop_binlog(1, table=b"others").data)
    assert len(filtered(tmp_path)) == 6 + 4
    assert {row["table"] for row in filtered(tmp_path, EqualTo(("table",), "others"))} == {"others"}
    assert filtered(tmp_path, EqualTo(("schema",), "elsewhere")) == []
    assert [row["operation"] for row in filtered(path, In(("operation",), ("delete", "update", "nothing")))] == [
        "update",
        "delete",
    ]
    assert filtered(path, EqualTo(("operation",), "nothing")) == []
    assert [row["row"] for row in filtered(path, EqualTo(("operation",), "delete"))] == [1]
    from datetime import UTC, datetime

    later = datetime.fromtimestamp(binlog.timestamp + 1, UTC)
    assert filtered(tmp_path, GreaterThan(("time",), later)) == []


def test_filters_of_a_query_give_what_they_give_without_being_pushed(spark: Any, tmp_path: Path) -> None:
    path = write(tmp_path, "bin.000001", shop_binlog(200).data)

    def load(**options: Any) -> Any:
        return spark.read.format("binlog").options(level="rows", splitBytes=65536, **options).load(str(path))

    frame = load()
    every = [row.asDict() for row in frame.collect()]
    assert len(every) == 402
    middle = sorted({row["transaction"] for row in every})[100]
    for condition, test in (
        ("table = 'orders' AND schema = 'shop' AND operation <> 'insert'", lambda row: row["operation"] != "insert"),
        (f"transaction = {middle}", lambda row: row["transaction"] == middle),
        ("table = 'none'", lambda row: False),
    ):
        found = load(pushdown="true").where(condition).collect()
        assert [row.asDict() for row in found] == [row for row in every if test(row)], condition
    number = F.from_json("after", "map<string,string>")["@1"]
    found = frame.where(number.isin("3", "4")).select(number).collect()
    assert [tuple(row) for row in found] == [("3",), ("4",)]
    images = frame.where("operation = 'update'").selectExpr("parse_json(before) b", "parse_json(after) a")
    values = images.selectExpr("variant_get(b, '$[\"@1\"]', 'int')", "variant_get(a, '$[\"@2\"]', 'string')")
    assert [tuple(row) for row in values.collect()] == [(0, "changed")]


# ---- what is wrong -----------------------------------------------------------------------------------------------------


def test_rows_without_a_table_map_are_a_finding_and_the_others_are_there(tmp_path: Path) -> None:
    binlog = shop_binlog(2)
    maps = [event for event in binlog.events if event.kind == 19]
    data = bytearray(binlog.data)
    data[maps[0].start + 19] = 43
    path = write(tmp_path, "bin.000001", data)
    found = rows(splits_of(path), "rows", "position", "operation", "finding", "finding_position")
    assert {row["finding"] for row in found if row["finding"]} >= {"table_map_missing"}
    assert sum(row["operation"] is not None for row in found) >= 4
    with pytest.raises(BinlogUnreadable, match=r"in bin\.000001 at"):
        rows(splits_of(path), "rows", failfast=True)


def test_a_column_type_that_nobody_knows_is_a_finding_and_the_other_tables_rows_are_there(tmp_path: Path) -> None:
    binlog = shop_binlog(1).begin()
    add_map(binlog, b"future", table_id=43, types=b"\x03\xc8", metadata=b"")
    at = binlog.size
    add_rows(binlog, 30, image(1, "what is it"), table_id=43)
    add_map(binlog, b"orders")
    add_rows(binlog, 30, image(2, "known"))
    path = write(tmp_path, "bin.000001", binlog.xid().data)
    found = rows(splits_of(path), "rows", "table", "operation", "finding", "finding_position")
    assert [tuple(row.values())[1:] for row in found if row["finding"]] == [(None, "column_type_unknown", at)]
    assert [row["table"] for row in found] == ["orders"] * 4 + ["future", "orders"]
    (unknown,) = rows(splits_of(path), "findings")
    assert (unknown["finding"], unknown["file"]) == ("rows_unreadable", "bin.000001")
    for level, name, column in (("rows", "column_type_unknown", "row"), ("transactions", "rows_unreadable", "kind")):
        with pytest.raises(BinlogUnreadable, match=rf"{name} in bin\.000001 at"):
            rows(splits_of(path), level, column, failfast=True)


def test_a_bad_checksum_is_a_finding_of_the_rows_too(tmp_path: Path) -> None:
    binlog = shop_binlog(2)
    bad = [event for event in binlog.events if event.kind == 30][1]
    data = bytearray(binlog.data)
    data[bad.end - 6] ^= 1
    path = write(tmp_path, "bin.000001", data)
    found = rows(splits_of(path), "rows", "finding", "finding_position", "after")
    assert ("checksum_mismatch", bad.start) in {(row["finding"], row["finding_position"]) for row in found}
    with pytest.raises(BinlogUnreadable, match=f"checksum_mismatch in bin.000001 at {bad.start}"):
        rows(splits_of(path), "rows", "row", failfast=True)


def test_a_stretch_before_the_recording_is_read_through_other_file_systems_too(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    system = fsspec.filesystem("memory")
    path = write(tmp_path, "bin.000001", shop_binlog(1).data)
    recorded(tmp_path, "id", "name")
    for name in ("bin.000001", "source-schema.jsonl"):
        system.pipe(f"/rows/{name}", (tmp_path / name).read_bytes())
    remote: list[Split] = splits_of("memory://rows", SPLIT, store_of("memory://rows"))
    assert rows(remote, "rows") == rows(splits_of(path), "rows")
    assert json.loads(rows(remote, "rows")[0]["after"]) == {"id": 0, "name": "row 0"}
