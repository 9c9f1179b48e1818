"""The least and largest of a file's columns, by which the feed and readers pass over files: none of them hides a row."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from relay.feed.lake.delta_lake import DeltaLake
from relay.feed.lake.iceberg_lake import IcebergLake
from relay.feed.lake.lake_table import ColumnsChange, NewTable
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.lake_columns import DELETED, SEQUENCE
from relay.feed.spool.changes_spilled import SpooledNet
from relay.feed.spool.spool_directory import SpoolDirectory

FORMATS = ["delta", "iceberg"]


class KeyedTable:
    """A table with the key `k` and a value `v`, and what it has."""

    def __init__(self, format: str, directory: Path, key: pa.DataType, properties: dict[str, str]) -> None:
        connection = duckdb.connect()
        lake: Any = (
            DeltaLake(str(directory), {}, connection)
            if format == "delta"
            else IcebergLake(str(directory), None, {}, connection)
        )
        self.schema = pa.schema([("k", key), ("v", pa.int32()), (SEQUENCE, pa.int64())])
        self.table = lake.create(NewTable("current", ("s", "t"), self.schema, FeedOffset(1, 1, 4), properties))
        self.merges = 0

    def merge(self, *changes: tuple[Any, int | None]) -> None:
        """(key, value) of each row; None: it is gone."""
        self.merges += 1
        rows = [{"k": k, "v": v, SEQUENCE: self.merges, DELETED: v is None} for k, v in changes]
        net = pa.Table.from_pylist(rows, schema=self.schema.append(pa.field(DELETED, pa.bool_())))
        self.table.merge(net, ["k"], FeedOffset(1, 1, 10 * self.merges))

    def rows(self) -> list[tuple[Any, int]]:
        """(key, value) of the rows that there are."""
        return sorted((one["k"], one["v"]) for one in self.table.scan().read_all().to_pylist())


LONG = ["z" * 5000, "b" * 4096 + "c", "a", "\U0010ffff" * 40, "m", "n"]
# Behind U+D7FF comes a character that is none; of 16 characters a largest text is cut.
WITHOUT_NEXT = ["a" * 15 + "\ud7ff" + "a", "\ud7ff" * 16 + "\U0010ffff", "\ud7ff", "m"]


@pytest.mark.parametrize("texts", [LONG, WITHOUT_NEXT], ids=["long", "without next"])
@pytest.mark.parametrize("compacted", [False, True], ids=["as written", "compacted"])
@pytest.mark.parametrize("format", FORMATS)
def test_a_row_is_found_by_any_text(tmp_path: Path, format: str, compacted: bool, texts: list[str]) -> None:
    # What a file of a million rows has: more than one group of them.
    few = {"write.parquet.row-group-limit": "2"} if format == "iceberg" else {}
    lake = KeyedTable(format, tmp_path, pa.string(), few)
    lake.merge(*((one, 0) for one in texts))
    for number, key in enumerate(texts):
        if compacted:
            lake.table.compact(1 << 20)
        lake.merge((key, number + 1))
    assert lake.rows() == sorted((key, number + 1) for number, key in enumerate(texts))
    lake.merge(*((one, None) for one in texts))
    assert lake.rows() == []


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("format", FORMATS)
def test_a_key_of_minus_zero_may_become_zero_and_back(tmp_path: Path, format: str, kind: pa.DataType) -> None:
    lake = KeyedTable(format, tmp_path, kind, {})
    lake.merge((-0.0, 1), (5.0, 1))
    lake.merge((-0.0, None), (0.0, 2))
    assert [(str(k), v) for k, v in lake.rows()] == [("0.0", 2), ("5.0", 1)]
    lake.merge((-0.0, 3), (0.0, None))
    assert [(str(k), v) for k, v in lake.rows()] == [("-0.0", 3), ("5.0", 1)]
    lake.merge((-0.0, None), (0.0, None))
    assert lake.rows() == [(5.0, 1)]


@pytest.mark.parametrize("format", FORMATS)
def test_a_key_that_no_lake_has_may_go(tmp_path: Path, format: str) -> None:
    lake = KeyedTable(format, tmp_path, pa.date32(), {})
    lake.merge((date(2024, 2, 29), 1))
    lake.merge((None, None))  # 0000-00-00
    assert lake.rows() == [(date(2024, 2, 29), 1)]


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "d": (pa.decimal128(20, 0), [Decimal(2**64 - 1), Decimal(2**63 + 1), Decimal(7), Decimal(8)]),
    "m": (pa.decimal128(9, 2), [Decimal("-1.29"), Decimal("9999999.99"), Decimal("0.10"), Decimal("0.20")]),
    "x": (pa.float64(), [-0.0, 1e300, 0.1, -5e-324]),
    "f": (pa.float32(), [0.5, -3.0, 16777216.0, -0.25]),
    "w": (pa.timestamp("us"), [datetime(2024, 1, 1, 0, 0, 0, us) for us in (1, 1999, 999999, 456789)]),
    "z": (pa.timestamp("us", "UTC"), [datetime(1970 + n, 1, 1, 1, 1, 1, 1999, tzinfo=UTC) for n in range(4)]),
    "y": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(2024, 2, 29)]),
    "s": (pa.string(), ["a" * 300, "\U0010ffff" * 40, "z" * 32 + "\U0010ffff" * 3, "a" * 33]),
    "b": (pa.binary(), [b"\xff" * 40, b"", b"\x00", b"a"]),
    "i": (pa.int64(), [2**53 + 1, -(2**63), 2**63 - 1, 0]),
}


def found(table: Any, column: str, value: Any) -> int:
    dataset = table._table.to_pyarrow_dataset()
    wanted = pc.field(column) == pa.scalar(value, dataset.schema.field(column).type)
    return int(dataset.to_table(filter=wanted).num_rows)


@pytest.mark.parametrize("spooled", [False, True], ids=["merged", "spooled"])
def test_a_dataset_of_delta_has_the_rows_that_a_condition_on_any_column_is_for(tmp_path: Path, spooled: bool) -> None:
    connection = duckdb.connect()
    schema = pa.schema(
        [("k", pa.int32()), *((name, kind) for name, (kind, _) in VALUES.items()), (SEQUENCE, pa.int64())]
    )
    table = DeltaLake(str(tmp_path / "lake"), {}, connection).create(
        NewTable("current", ("s", "t"), schema, FeedOffset(1, 1, 4))
    )
    for number in range(4):
        row = {"k": number, **{name: some[number] for name, (_, some) in VALUES.items()}, SEQUENCE: number}
        net = pa.Table.from_pylist([{**row, DELETED: False}], schema=schema.append(pa.field(DELETED, pa.bool_())))
        if spooled:
            directory = SpoolDirectory(tmp_path)
            changes = SpooledNet(connection, directory, ["k"])
            changes.add(net)
            table.merge_spooled(changes, ["k"], FeedOffset(1, 1, 10 + number))
            changes.close()
            directory.close()
        else:
            table.merge(net, ["k"], FeedOffset(1, 1, 10 + number))
    lost = [(name, one) for name, (_, some) in VALUES.items() for one in some if found(table, name, one) != 1]
    assert lost == []
    table.compact(1 << 20)
    lost = [(name, one) for name, (_, some) in VALUES.items() for one in some if found(table, name, one) != 1]
    assert lost == []


def test_a_column_of_delta_that_becomes_a_decimal_hides_no_row(tmp_path: Path) -> None:
    lake = KeyedTable("delta", tmp_path, pa.int64(), {})
    lake.merge((1, 1), (2, 1))
    lake.schema = lake.schema.set(0, pa.field("k", pa.decimal128(20, 0)))
    lake.table.evolve(ColumnsChange(lake.schema), FeedOffset(1, 1, 15))
    large = Decimal(2**64 - 1)
    lake.merge((large, 1), (Decimal(2), 2))
    lake.merge((large, 2))
    assert lake.rows() == [(1, 1), (2, 2), (large, 2)]
    assert [found(lake.table, "k", Decimal(one)) for one in (1, 2, large)] == [1, 1, 1]
    added = lake.schema.append(pa.field("n", pa.int32()))
    lake.table.evolve(ColumnsChange(added), FeedOffset(1, 1, 35))
    assert lake.table._table.to_pyarrow_dataset().to_table(filter=pc.field("n").is_null()).num_rows == 3


def spans_told(table: Any) -> int:
    """Of how many files the least key is told."""
    least = pa.table(table._table.get_add_actions(flatten=True)).to_pydict().get("min.k", [])
    return sum(one is not None for one in least)


@pytest.mark.parametrize("compacted", [False, True], ids=["as written", "compacted"])
@pytest.mark.parametrize("first", [1, 10**15 - 40, 2**53 - 20, 2**64 - 90], ids=str)
def test_a_key_of_20_digits_is_found_whether_its_files_tell_the_least_and_largest_or_do_not(
    tmp_path: Path, first: int, compacted: bool
) -> None:
    lake = KeyedTable("delta", tmp_path, pa.decimal128(20, 0), {})
    kept = {}
    for number in range(24):
        keys = [Decimal(first + 3 * number + one) for one in range(3)]
        changed = [one for one in kept if (int(one) + number) % 5 == 0]
        if number % 4 == 3 and compacted:
            lake.table.compact(1 << 20)
        lake.merge(*((one, number) for one in keys), *((one, None) for one in changed))
        kept |= dict.fromkeys(keys, number)
        for one in changed:
            del kept[one]
        assert lake.rows() == sorted(kept.items())
    assert [found(lake.table, "k", one) for one in kept] == [1] * len(kept)
    assert (spans_told(lake.table) > 0) == (first == 1)  # without them a MERGE reads all files


def test_an_alter_keeps_what_files_tell_of_a_key_of_20_digits(tmp_path: Path) -> None:
    lake = KeyedTable("delta", tmp_path, pa.decimal128(20, 0), {})
    lake.merge((Decimal(1), 1), (Decimal(2), 1))
    wider = lake.schema.append(pa.field("n", pa.int32()))
    lake.table.evolve(ColumnsChange(wider, filled={"n": 7}), FeedOffset(1, 1, 15))
    assert spans_told(lake.table) == 1
    filled = wider.append(pa.field("large", pa.decimal128(20, 0)))
    lake.table.evolve(ColumnsChange(filled, filled={"large": Decimal(2**64 - 1)}), FeedOffset(1, 1, 16))
    assert found(lake.table, "large", Decimal(2**64 - 1)) == 2
