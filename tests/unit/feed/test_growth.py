"""What a day brings: of an archive by when its files were begun, of a table by its versions; of less than two days nothing."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

import duckdb
import pyarrow as pa

from relay.feed.archive_reading import ArchiveReading, StoredBinlog
from relay.feed.command.growth import Growth, archive_growth, growth_section, table_growth
from relay.feed.lake.delta_lake import DeltaLake
from relay.feed.lake.iceberg_lake import IcebergLake
from relay.feed.lake.lake_table import NewTable
from relay.feed.rows.feed_place import FeedOffset
from tests.support.binlog_builder import BinlogBuilder

NOW = datetime(2026, 5, 20, tzinfo=UTC)
DAY = timedelta(days=1)
ROWS = pa.schema([("id", pa.int32()), ("s", pa.string())])


def file(days_ago: float, size: int) -> StoredBinlog:
    return StoredBinlog(size, NOW - days_ago * DAY)


def test_an_archive_grows_by_what_was_written_in_the_days_that_are_looked_at() -> None:
    found = archive_growth([file(12, 999), file(8, 400), file(4, 300)], NOW - 7 * DAY, NOW)
    # three of the four days of the second file lie in the last seven, and all of the third
    assert found == Growth("archive", 1699, (300 + 300) / 7, 7 * DAY)


@pytest.mark.parametrize(("days", "per_day"), [(1.9, None), (2, 50.0)])
def test_of_less_than_two_days_nothing_is_said(days: float, per_day: float | None) -> None:
    assert archive_growth([file(days, 100)], NOW - 7 * DAY, NOW).per_day == per_day


def test_an_archive_without_a_file_that_says_when_it_was_begun_has_not_enough_data() -> None:
    assert archive_growth([StoredBinlog(10, None)], NOW - 7 * DAY, NOW) == Growth("archive", 10, None, timedelta())


def test_an_archive_is_measured_as_it_lies_there(tmp_path: Path) -> None:
    binlog = BinlogBuilder().transaction().data
    for name in ("bin.000001", "bin.000002"):
        (tmp_path / name).write_bytes(binlog)
    found = ArchiveReading(str(tmp_path)).stored(NOW)
    assert [one.bytes for one in found] == [len(binlog)] * 2
    # the one before the first that was begun in time is looked at, none before it
    assert [one.begun is None for one in found] == [True, False]


@pytest.mark.parametrize(
    "lake_in",
    [
        lambda path: DeltaLake(str(path), {}, duckdb.connect()),
        lambda path: IcebergLake(str(path), None, {}, duckdb.connect()),
    ],
    ids=["delta", "iceberg"],
)
def test_a_table_grows_by_what_its_newest_version_has_more_than_an_older_one(
    tmp_path: Path, lake_in: Callable[[Path], Any]
) -> None:
    lake = lake_in(tmp_path / "lake")
    table = lake.create(NewTable("current", ("shop", "t"), ROWS, FeedOffset(1, 1, 4)))
    table.append(pa.table({"id": [1], "s": ["one"]}, ROWS), FeedOffset(1, 1, 5))
    first = table.facts()["bytes"]
    between = datetime.now(UTC)
    table.append(pa.table({"id": [2], "s": ["two" * 1000]}, ROWS), FeedOffset(1, 1, 6))
    found = lake.open("current", "shop", "t")
    time, held = found.size_at(between)
    assert held == first > 0 and time <= between
    later = between + 3 * DAY
    grown = found.facts()["bytes"] - first
    now = table_growth("shop.t", (found, None), between, later)
    assert (now.bytes, now.per_day) == (first + grown, pytest.approx(grown / 3))
    assert table_growth("shop.t", (found, None), between, between + DAY).per_day is None


def test_the_report_says_when_the_disk_is_full_and_what_it_does_not_know(tmp_path: Path) -> None:
    known, young = Growth("shop.a", 10, 1e15, 7 * DAY), Growth("shop.b", 10, None, DAY)
    section = growth_section((str(tmp_path), Growth("archive", 5, 1e15, 7 * DAY)), (str(tmp_path), [young, known]), 7)
    listing, disks = section.tables
    assert [row[0] for row in listing.rows] == ["archive", "lake, all tables", "shop.a", "shop.b"]
    assert listing.rows[3][2] == "not enough data" and listing.note.startswith("1 table without enough data is not")
    assert [(row[0], row[2]) for row in disks.rows] == [("archive, lake", "1.8 PiB a day")]
    assert disks.rows[0][3].endswith(" s") or disks.rows[0][3].endswith(" min") or "min " in disks.rows[0][3]
    shrinking = Growth("archive", 5, -1.0, 7 * DAY)
    buckets = growth_section(("s3://bucket/a", shrinking), ("s3://bucket/b", []), 7)
    assert len(buckets.tables) == 1
    alone = growth_section((str(tmp_path), shrinking), ("s3://bucket/b", []), 7)
    assert alone.tables[1].rows[0][3] == "it does not grow"
