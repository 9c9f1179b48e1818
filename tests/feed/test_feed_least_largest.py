"""The least and largest of a file's columns, by which the feed and readers pass over files: none of them hides a row."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

import duckdb
import pyarrow as pa

from relay.feed.lake.delta_lake import DeltaLake
from relay.feed.lake.iceberg_lake import IcebergLake
from relay.feed.lake.lake_table import NewTable
from relay.feed.rows.feed_place import FeedPlace
from relay.feed.rows.lake_columns import DELETED, SEQUENCE

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
        self.table = lake.create(NewTable("current", ("s", "t"), self.schema, FeedPlace(1, 1, 4), properties))
        self.merges = 0

    def merge(self, *changes: tuple[Any, int | None]) -> None:
        """(key, value) of each row; None: it is gone."""
        self.merges += 1
        rows = [{"k": k, "v": v, SEQUENCE: self.merges, DELETED: v is None} for k, v in changes]
        net = pa.Table.from_pylist(rows, schema=self.schema.append(pa.field(DELETED, pa.bool_())))
        self.table.merge(net, ["k"], FeedPlace(1, 1, 10 * self.merges))

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
