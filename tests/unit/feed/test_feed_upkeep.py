"""What `feed compact` takes away: days of changes, old versions, files that nothing names; and nothing else."""

import os
import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

import duckdb
import pyarrow as pa

from relay.feed.command.feed_command import first_kept_day
from relay.feed.lake.delta_lake import DeltaLake
from relay.feed.lake.iceberg_lake import IcebergLake
from relay.feed.lake.lake_rows import plain_schema
from relay.feed.lake.lake_table import NewTable
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.lake_columns import DELETED, SEQUENCE
from relay.feed.statements.history_rows import CHANGE_COLUMNS

FORMATS = ["delta", "iceberg"]
ROWS = pa.schema([("id", pa.int32()), ("s", pa.string()), (SEQUENCE, pa.int64())])


def lake_of(format: str, directory: Path) -> Any:
    if format == "delta":
        return DeltaLake(str(directory), {}, duckdb.connect())
    return IcebergLake(str(directory), None, {}, duckdb.connect())


def at(position: int) -> FeedOffset:
    return FeedOffset(1, 1, position)


def change(sequence: int, day: int) -> dict[str, Any]:
    time = datetime(2026, 3, day, 23, 59, 59, tzinfo=UTC)
    return {
        "sequence": sequence,
        "row": 0,
        "operation": "insert",
        "after": "{}",
        "time": time,
        "file": "f",
        "transaction": 4,
    }


def files_below(directory: Path) -> set[Path]:
    return {one for one in directory.rglob("*.parquet") if "_delta_log" not in one.parts}


@pytest.mark.parametrize("format", FORMATS)
def test_changes_are_kept_by_day_and_whole_days_go_without_a_file_of_another_being_touched(
    tmp_path: Path, format: str
) -> None:
    lake = lake_of(format, tmp_path / "lake")
    table = lake.create(NewTable("changes", ("shop", "t"), CHANGE_COLUMNS, at(4), day_of="time"))
    for number, days in enumerate(([1, 2], [2, 3], [3])):
        rows = [change(number * 10 + place, day) for place, day in enumerate(days)]
        table.append(pa.Table.from_pylist(rows, schema=CHANGE_COLUMNS), at(100 + number))
    before = files_below(tmp_path / "lake")
    assert len(before) == 5  # one a day and commit
    table.forget("time", datetime(2026, 3, 2, tzinfo=UTC))
    found = lake.open("changes", "shop", "t")
    assert sorted(one["time"].day for one in found.scan().read_all().to_pylist()) == [2, 2, 3, 3]
    assert found.place == at(102)  # it is no step of the feed
    assert files_below(tmp_path / "lake") == before
    found.expire(0)
    assert len(before - files_below(tmp_path / "lake")) == 1 and files_below(tmp_path / "lake") < before


@pytest.mark.parametrize("format", FORMATS)
def test_changes_of_an_earlier_version_of_the_feed_which_are_not_by_day_go_too(tmp_path: Path, format: str) -> None:
    table = lake_of(format, tmp_path / "lake").create(NewTable("changes", ("shop", "t"), CHANGE_COLUMNS, at(4)))
    rows = [change(number, day) for number, day in enumerate((1, 2, 3))]
    table.append(pa.Table.from_pylist(rows, schema=CHANGE_COLUMNS), at(100))
    table.forget("time", datetime(2026, 3, 3, tzinfo=UTC))
    assert [one["time"].day for one in table.scan().read_all().to_pylist()] == [3]


def test_small_files_of_one_day_become_one_and_those_of_different_days_stay_apart(tmp_path: Path) -> None:
    for format in FORMATS:
        table = lake_of(format, tmp_path / format).create(
            NewTable("changes", ("shop", "t"), CHANGE_COLUMNS, at(4), day_of="time")
        )
        for number, day in enumerate((1, 1, 2, 3)):
            table.append(pa.Table.from_pylist([change(number, day)], schema=CHANGE_COLUMNS), at(100 + number))
        for _ in range(2):  # and once more does nothing
            table.compact(1 << 20)
            table.expire(0)
            assert len(files_below(tmp_path / format)) == 3
        assert sorted(one["sequence"] for one in table.scan().read_all().to_pylist()) == [0, 1, 2, 3]


def test_the_first_day_that_is_kept() -> None:
    today = datetime.now(UTC).date()
    assert first_kept_day(1).date() == today
    assert (today - first_kept_day(7).date()).days == 6


def merged(table: Any, number: int) -> None:
    rows = pa.table(
        [
            pa.array([number % 3], pa.int32()),
            pa.array([f"v{number}"]),
            pa.array([number], pa.int64()),
            pa.array([False]),
        ],
        names=["id", "s", SEQUENCE, DELETED],
    )
    table.merge(rows, ("id",), at(100 + number))


@pytest.mark.parametrize("format", FORMATS)
def test_old_versions_and_strays_go_and_what_a_version_that_is_kept_names_does_not(tmp_path: Path, format: str) -> None:
    place = tmp_path / "lake"
    table = lake_of(format, place).create(NewTable("current", ("shop", "t"), ROWS, at(4)))
    versions = []
    for number in range(6):
        merged(table, number)
        versions.append((table.version, sorted(map(str, table.scan().read_all().to_pylist()))))
    folder = next(iter(files_below(place))).parent
    (folder / "old.parquet").write_bytes(b"of a commit that never came about")
    (folder / "new.parquet").write_bytes(b"of one that is on its way")
    os.utime(folder / "old.parquet", (time.time() - 25 * 3600,) * 2)
    table.expire(1)
    assert not (folder / "old.parquet").exists() and (folder / "new.parquet").exists()
    for version, rows in versions:  # all are younger than an hour
        assert sorted(map(str, table.scan(version=version).read_all().to_pylist())) == rows
    before = len(files_below(place))
    table.expire(0)
    assert len(files_below(place)) < before and (folder / "new.parquet").exists()
    again = lake_of(format, place).open("current", "shop", "t")
    assert sorted(map(str, again.scan().read_all().to_pylist())) == versions[-1][1]
    assert plain_schema(again.scan().schema).names == ROWS.names
    merged(again, 7)


@pytest.mark.parametrize("compacted", [False, True], ids=["as written", "compacted"])
@pytest.mark.parametrize("format", FORMATS)
def test_a_row_is_found_by_a_key_that_no_double_can_have(tmp_path: Path, format: str, compacted: bool) -> None:
    rows = pa.schema([("id", pa.decimal128(20, 0)), ("v", pa.int32()), (SEQUENCE, pa.int64())])
    table = lake_of(format, tmp_path / "lake").create(NewTable("current", ("shop", "t"), rows, at(4)))
    keys = [1750000000123456789 + number for number in range(3)]
    net = rows.append(pa.field(DELETED, pa.bool_()))
    for number, gone in enumerate((False, False, True)):
        if compacted and number:
            table.compact(1 << 20)
        changed = keys if not number else [keys[0], keys[-1]]
        changes = [{"id": Decimal(key), "v": number, SEQUENCE: number, DELETED: gone} for key in changed]
        table.merge(pa.Table.from_pylist(changes, schema=net), ["id"], at(100 + number))
        found = sorted((int(one["id"]), one["v"]) for one in table.scan().read_all().to_pylist())
        live = [(key, 0) if key == keys[1] or not number else (key, number) for key in keys]
        assert found == ([(keys[1], 0)] if gone else live)
