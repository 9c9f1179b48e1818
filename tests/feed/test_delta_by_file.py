"""Tables of Delta whose files are written again one after the other have the rows that a MERGE makes."""

import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from relay.feed.lake.delta_lake import DeltaLake, DeltaLakeTable
from relay.feed.lake.lake_table import NewTable
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.lake_columns import DELETED, SEQUENCE
from relay.feed.spool.changes_spilled import SpooledNet
from relay.feed.spool.spool_directory import SpoolDirectory

KEYS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "small": (pa.int32(), lambda n: n),
    "of 18 digits": (pa.decimal128(20, 0), lambda n: 10**17 + n),
    "behind the point": (pa.decimal128(12, 3), lambda n: Decimal(n) / 8),
    "text": (pa.string(), lambda n: f"key {n:03}"),
    "bytes": (pa.binary(), lambda n: bytes((n, n % 7))),
    "time": (pa.timestamp("us", "UTC"), lambda n: n * 999_999),
}


def every_file(table: Any, changes: Any, key: list[str], told: Any) -> list[Any]:
    return [one for one in table._touched(changes, key, told) if table._has_some(one, changes, key)]


def merged(path: Path, way: str, name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The rows of a table after random batches, some of them older than rows that there are, and those that there should be."""
    chance = random.Random(7)
    arrow, value_of = KEYS[kind]
    connection = duckdb.connect()
    schema = pa.schema([(name, arrow), ("value", pa.string()), (SEQUENCE, pa.int64())])
    table = DeltaLake(str(path / "lake"), {}, connection).create(
        NewTable("current", ("s", "t"), schema, FeedOffset(1, 1, 4))
    )
    expected: dict[int, tuple[str, int]] = {}
    for number in range(12):
        if way == "by file" or (way == "by turns" and number % 2):
            monkeypatch.setattr(DeltaLakeTable, "_few_of_many", every_file)
        else:
            monkeypatch.setattr(DeltaLakeTable, "_few_of_many", lambda *_more: None)
        rows: list[dict[str, Any]] = []
        for key in chance.sample(range(60), 15):
            sequence = number * 10 - chance.choice((0, 0, 0, 25))
            gone = chance.random() < 0.3
            there = expected.get(key)
            rows.append({name: key, "value": f"{number} {key}", SEQUENCE: sequence, DELETED: gone})
            if there is not None and there[1] > sequence:
                continue
            expected.pop(key, None)
            if not gone:
                expected[key] = f"{number} {key}", sequence
        columns = {one.name: pa.array([row[one.name] for row in rows]) for one in schema}
        columns[name] = pa.array([value_of(row[name]) for row in rows]).cast(arrow)
        net = pa.table({**columns, DELETED: pa.array([row[DELETED] for row in rows])})
        if way == "spooled":
            directory = SpoolDirectory(path)
            changes = SpooledNet(connection, directory, [name])
            changes.add(net)
            table.merge_spooled(changes, [name], FeedOffset(1, 1, 10 + number))
            changes.close()
            directory.close()
        else:
            table.merge(net, [name], FeedOffset(1, 1, 10 + number))
    found = table.scan().read_all().sort_by(name)
    ordered = sorted(expected)
    wanted = pa.table(
        {
            name: pa.array([value_of(key) for key in ordered]).cast(arrow),
            "value": [expected[key][0] for key in ordered],
            SEQUENCE: pa.array([expected[key][1] for key in ordered], pa.int64()),
        }
    )
    return found.cast(wanted.schema).to_pylist(), wanted.to_pylist()


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("way", ["at once", "by file", "by turns", "spooled"])
def test_a_table_has_the_newest_row_of_each_key(
    tmp_path: Path, way: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, wanted = merged(tmp_path, way, "k", kind, monkeypatch)
    assert found == wanted


@pytest.mark.parametrize("name", ["i", "I", "n", "N", "row", "piece", "row_of", "piece_of", "newer"])
@pytest.mark.parametrize("way", ["at once", "by file", "by turns", "spooled"])
def test_a_key_of_any_name_is_no_number_of_a_row(
    tmp_path: Path, way: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, wanted = merged(tmp_path, way, name, "small", monkeypatch)
    assert found == wanted
