"""An archive that was over several sources: what a later one's files repeat is read once, and as often as it stands there if asked."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from protocol.gtid.gtid_set import GtidSet
from protocol.sql.tables.source_table import Column, Table
from relay.archive.archive import Archive
from relay.archive.catalog.catalog import Catalog
from relay.archive.storage.files import FileLayer
from relay.binlog_tables.arrow import read as without_spark
from relay.binlog_tables.plan.read_finding import ReadRefused
from relay.binlog_tables.plan.schemas import LEVELS, arrow_schema
from relay.schema_history.schema_record import line, table_line
from relay.source_tables.table_facts import table_facts
from relay.spark.datasource import BinlogDataSource
from tests.audit.test_splits import rows, split_list
from tests.support.generation_filling import (
    A,
    B,
    File,
    append_files,
    change_source,
    identity,
    mariadb_series,
    mysql_series,
    two_generations,
)
from tests.support.gtid_binlog import add_mysql, mysql_binlog


def source(path: Path, **options: str) -> BinlogDataSource:
    return BinlogDataSource({"path": str(path), "level": "transactions", **options})  # type: ignore[arg-type]


def schema(level: str) -> StructType:
    return from_arrow_schema(arrow_schema(level, tuple(LEVELS[level])))


def read(path: Path, level: str = "transactions", **options: str) -> list[dict[str, Any]]:
    made = source(path, level=level, **options)
    return rows(split_list(made.reader(schema(level)).partitions()), level)


def gtids(path: Path, **options: str) -> list[str]:
    return [row["gtid"].replace(A, "A").replace(B, "B") for row in read(path, **options)]


async def changed(directory: Path, before: list[File], after: list[File], flavour: str = "mysql") -> None:
    """An archive with files of one source, then of another."""
    archive = await Archive.open(directory)
    archive.current.set_identity(identity(A if flavour == "mysql" else None, 1, flavour))
    await append_files(archive, before)
    await change_source(archive, identity(B if flavour == "mysql" else None, 2, flavour), after)
    await archive.close()


def mixed_file(*members: str, before: str) -> File:
    """A file with these transactions in this order."""
    binlog = mysql_binlog(GtidSet.from_text(before))
    for text in members:
        for gtid in GtidSet.from_text(text).members():
            add_mysql(binlog, gtid)
    return "mysql-bin.000002", binlog.data


def without_catalogs(directory: Path) -> None:
    for path in directory.rglob("catalog.sqlite*"):
        path.unlink()


@pytest.mark.parametrize("catalogs", [True, False])
async def test_what_both_sources_have_is_read_once(tmp_path: Path, catalogs: bool) -> None:
    await (await two_generations(tmp_path)).close()
    if not catalogs:
        without_catalogs(tmp_path)
    once = [f"A:{number}" for number in range(1, 10)] + ["B:1", "B:2"]
    assert gtids(tmp_path) == once
    assert gtids(tmp_path, overlap="every") == [*once[:6], "A:5", "A:6", *once[6:]]
    files = [row["file"] for row in read(tmp_path)]
    assert files.count("g0002/mysql-bin.000002") == 3


async def test_what_the_new_source_wrote_between_repeated_transactions_is_read(tmp_path: Path) -> None:
    mixed = mixed_file(f"{A}:3", f"{B}:1", f"{A}:4-5", f"{B}:2", f"{A}:6", f"{B}:3", before=f"{A}:1-2")
    await changed(tmp_path, mysql_series(1, f"{A}:1-5"), [mixed])
    assert gtids(tmp_path) == [*(f"A:{number}" for number in range(1, 6)), "B:1", "B:2", "A:6", "B:3"]
    starts = {(row["file"], row["start"]) for row in read(tmp_path)}
    for level in ("rows", "statements"):
        found = read(tmp_path, level)
        assert {(row["file"], row["transaction"]) for row in found} == starts
        assert {row["finding"] for row in found} <= {None, "value_uncertain"}
        assert len(read(tmp_path, level, overlap="every")) > len(found)


async def test_groups_of_mariadb_are_read_once(tmp_path: Path) -> None:
    before = mariadb_series(1, "0-1-1,0-1-2,1-1-1", "0-1-3,0-1-4")
    after = mariadb_series(7, "0-1-3,0-1-4,0-2-5", "0-2-6,1-2-2", start="0-1-2,1-1-1")
    await changed(tmp_path, before, after, "mariadb")
    assert gtids(tmp_path) == ["0-1-1", "0-1-2", "1-1-1", "0-1-3", "0-1-4", "0-2-5", "0-2-6", "1-2-2"]
    assert len(gtids(tmp_path, overlap="every")) == 10
    without_catalogs(tmp_path)
    assert len(gtids(tmp_path)) == 8


async def test_what_only_the_later_files_hold_is_read_there(tmp_path: Path) -> None:
    # the archive began with 3; the new source's file begins with 1
    await changed(tmp_path, mysql_series(3, f"{A}:3-4", start=f"{A}:1-2"), [mixed_file(f"{A}:1-5", before="")])
    assert gtids(tmp_path) == ["A:3", "A:4", "A:1", "A:2", "A:5"]


@pytest.mark.parametrize("catalogs", [True, False])
@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
async def test_what_the_first_source_left_out_is_read_in_the_later_ones_file(
    tmp_path: Path, flavour: str, catalogs: bool
) -> None:
    # 3 and 4 stood in a file that the relay never got
    if flavour == "mysql":
        first, _lost, third = mysql_series(1, f"{A}:1-2", f"{A}:3-4", f"{A}:5-6")
        after = [mixed_file(f"{A}:1-7", before="")]
    else:
        first, _lost, third = mariadb_series(1, "0-1-1,0-1-2", "0-1-3,0-1-4", "0-1-5,0-1-6")
        after = mariadb_series(7, ",".join(f"0-1-{number}" for number in range(1, 8)))
    await changed(tmp_path, [first, third], after, flavour)
    if not catalogs:
        without_catalogs(tmp_path)
    assert [gtid[-1] for gtid in gtids(tmp_path)] == ["1", "2", "5", "6", "3", "4", "7"]


@pytest.mark.parametrize("damaged", [2, 3])
async def test_what_is_damaged_in_the_first_sources_files_is_read_in_the_later_ones(
    tmp_path: Path, damaged: int
) -> None:
    await changed(tmp_path, mysql_series(1, f"{A}:1", f"{A}:2-3", f"{A}:4-5"), [mixed_file(f"{A}:1-6", before="")])
    name = f"mysql-bin.{damaged:06d}"
    end = next(row["end"] for row in read(tmp_path) if row["file"] == name)
    with contextlib.closing(Catalog.open(tmp_path / "catalog.sqlite", FileLayer())) as catalog:
        (file,) = (file for file in catalog.files() if file.name == name)
        file.damaged, file.end = True, end
        catalog.put_files([file])
    kept = [1, 2, 4, 5] if damaged == 2 else [1, 2, 3, 4]
    found = [row for row in read(tmp_path) if row["gtid"]]
    later = sorted({*range(1, 7)} - {*kept})
    assert [int(row["gtid"][-1]) for row in found] == [*kept, *later]
    assert [row["finding"] for row in read(tmp_path) if not row["gtid"]] == ["file_damaged"]


async def test_what_was_purged_with_the_first_source_is_read_in_the_later_ones_file(tmp_path: Path) -> None:
    await (await two_generations(tmp_path)).close()
    without_catalogs(tmp_path)
    for path in tmp_path.glob("mysql-bin.0*"):
        path.unlink()
    assert gtids(tmp_path) == ["A:5", "A:6", "A:7", "A:8", "A:9", "B:1", "B:2"]


async def test_a_stream_gives_what_each_source_adds_whatever_is_purged(tmp_path: Path) -> None:
    await (await two_generations(tmp_path)).close()
    made = source(tmp_path)
    stream = made.streamReader(schema("transactions"))
    start, end = stream.initialOffset(), stream.latestOffset()
    middle = {"file": "g0002/mysql-bin.000002", "position": 4}

    def between(first: dict[str, Any], last: dict[str, Any]) -> list[str]:
        return [row["gtid"][-2:] for row in rows(split_list(stream.partitions(first, last)), "transactions")]

    first, second = between(start, middle), between(middle, end)
    batches = without_spark(str(tmp_path), "transactions", columns=["gtid"], overlap="executed")
    assert [row["gtid"][-2:] for row in batches.read_all().to_pylist()] == first + second
    assert (first, second) == ([":1", ":2", ":3", ":4", ":5", ":6"], [":7", ":8", ":9", ":1", ":2"])
    for path in tmp_path.glob("mysql-bin.0*"):
        path.unlink()
    assert between(middle, end) == second


async def test_rows_have_the_names_that_were_recorded_of_their_own_source(tmp_path: Path) -> None:
    await (await two_generations(tmp_path)).close()
    for directory, file, name in (
        (tmp_path, "mysql-bin.000001", "old"),
        (tmp_path / "g0002", "mysql-bin.000002", "new"),
    ):
        table = Table("test", "t", "InnoDB", (Column(name, "blob"),))
        text = line("watched", file, 4) + table_line(table_facts(table), file, 4)
        (directory / "source-schema.jsonl").write_text(text)
    names = {(row["file"][:5], *json.loads(row["after"])) for row in read(tmp_path, "rows")}
    assert names == {("mysql", "old"), ("g0002", "new")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"overlap": "twice"}, "overlap is 'twice'; it takes once, every or executed"),
        ({"overlap": "once", "level": "events"}, "level events shows files as they are"),
    ],
)
def test_a_wrong_overlap_is_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(ReadRefused, match=message):
        read(tmp_path, **options)
