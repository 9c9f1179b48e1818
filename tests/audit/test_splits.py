"""Which files and splits a path becomes, and what reading them gives, without a Spark session."""

import importlib.util
import itertools
import shutil
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

import pyarrow as pa

from relay.archive.catalog.catalog import Catalog
from relay.archive.storage.files import FileLayer
from relay.binlog_tables.decode.levels import read_split
from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.read_finding import BinlogUnreadable
from relay.binlog_tables.plan.schemas import LEVELS
from relay.binlog_tables.plan.series_files import NothingToRead, find_files
from relay.binlog_tables.plan.splits import Split, plan
from relay.binlog_tables.plan.store import LocalStore, RemoteStore, Store
from relay.binlog_tables.plan.wanted import Wanted
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import INSIDE, BinlogBuilder

STORE = LocalStore()
RECORDED = Path(__file__).resolve().parents[1] / "corpus" / "recorded"
SPLIT = 64 << 10


def add_transaction(binlog: BinlogBuilder, *sizes: int) -> BinlogBuilder:
    """A transaction of inserts into a table with one BLOB; each size is that of the two equal values of one event."""
    binlog.begin().table_map()
    for number, size in enumerate(sizes):
        head = struct.pack("<IHHH", 42, 0, int(number == len(sizes) - 1), 2) + b"\x01\xff"
        binlog.event(30, head + (b"\0" + struct.pack("<H", size) + bytes(size)) * 2, INSIDE)
    return binlog.xid()


def big_binlog(transactions: int = 600, size: int = 1000) -> BinlogBuilder:
    """A file of about two kilobytes a transaction."""
    binlog = BinlogBuilder()
    for number in range(transactions):
        add_transaction(binlog, size + number % 7)
    return binlog


def write(directory: Path, name: str, data: bytes | bytearray) -> Path:
    path = directory / name
    path.write_bytes(data)
    return path


def splits_of(path: Path | str, split_bytes: int = SPLIT, store: Store = STORE, **options: Any) -> list[Split]:
    return plan(store, find_files(store, str(path)), split_bytes, **options)


def split_list(tasks: Iterable[Any]) -> list[Split]:
    """What Spark's tasks read, in order."""
    return [split for task in tasks for split in task.splits]


def rows(splits: list[Split], level: str, *columns: str, failfast: bool = False) -> list[dict[str, Any]]:
    """What reading the splits gives, as dictionaries."""
    names = columns or tuple(LEVELS[level])
    if failfast and not columns:
        # the tables that are made here have no CREATE: what their texts say is not sure
        names = tuple(name for name in names if name not in ("before", "after"))
    found: list[dict[str, Any]] = []
    for split in splits:
        for batch in read_split(store_of(split.path), split, ReadOptions(level, names, failfast), Wanted()):
            batch.validate(full=True)
            found += batch.to_pylist()
    return found


def found_in(path: Path | str, level: str = "findings") -> list[tuple[str, str, int]]:
    """Findings, but for texts of tables without a CREATE."""
    return [
        (row["file"], row["finding"], row["position"] if "position" in row else row["finding_position"])
        for row in rows(splits_of(path), level)
        if row["finding"] and row["finding"] != "value_uncertain"
    ]


# ---- files -----------------------------------------------------------------------------------------------------------


def test_a_directory_means_its_binlogs_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    data = bytes(big_binlog(1).data)
    for name in ("bin.1000000", "bin.999999", "bin.index", "bin.000001", "bin.000001.idx", "notes"):
        write(tmp_path, name, data)
    assert [file.name for file in find_files(STORE, str(tmp_path))] == ["bin.000001", "bin.999999", "bin.1000000"]
    assert [file.name for file in find_files(STORE, f"file://{tmp_path}/bin.0*1")] == ["bin.000001"]
    assert [file.name for file in find_files(STORE, str(tmp_path / "notes"))] == ["notes"]


@pytest.mark.parametrize("path", ["nowhere", "empty", "empty/*.binlog"])
def test_a_path_without_a_binlog_is_refused_with_what_to_do(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NothingToRead, match=path.partition("/")[0]):
        find_files(STORE, str(tmp_path / path))


async def test_the_directory_above_one_archive_means_that_archive(tmp_path: Path) -> None:
    await fill(tmp_path / "one", ("mysql-bin.000001", bytes(big_binlog(2).data)))
    (tmp_path / "other").mkdir()
    assert [file.name for file in find_files(STORE, str(tmp_path))] == ["mysql-bin.000001"]
    await fill(tmp_path / "two", ("mysql-bin.000001", bytes(big_binlog(2).data)))
    with pytest.raises(NothingToRead, match="one, two"):
        find_files(STORE, str(tmp_path))


async def test_a_pattern_over_an_archive_means_its_binlogs_as_the_archive_knows_them(
    growing: tuple[Path, BinlogBuilder, int],
) -> None:
    path, _binlog, whole = growing
    for name in ("mysql-bin.000001.idx", "mysql-bin.000001.gtx", "mysql-bin.index"):
        write(path, name, b"something else")
    for named in (path / "mysql-bin.*", path / "mysql-bin.000001", f"file://{path}/mysql-bin.000001"):
        assert [(split.name, split.stop) for split in splits_of(named)] == [("mysql-bin.000001", whole)]


def test_a_path_may_have_the_marks_of_a_pattern_in_it(tmp_path: Path) -> None:
    (tmp_path / "[old]").mkdir()
    path = write(tmp_path / "[old]", "bin.000001", big_binlog(1).data)
    for named in (path, path.parent):
        assert [file.name for file in find_files(STORE, str(named))] == ["bin.000001"]


# ---- splits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["events", "transactions"])
def test_splits_give_what_the_whole_file_gives(tmp_path: Path, level: str) -> None:
    binlog = big_binlog()
    path = write(tmp_path, "bin.000001", binlog.data)
    cut, whole = splits_of(path), splits_of(path, 1 << 30)
    assert len(whole) == 1
    assert len(cut) > 5
    assert [(split.start, split.stop) for split in cut] == list(itertools.pairwise([4, *[split.stop for split in cut]]))
    assert {split.start for split in cut} <= set(binlog.boundaries)
    assert rows(cut, level) == rows(whole, level)
    assert [split.last for split in cut] == [False] * (len(cut) - 1) + [True]


async def test_an_archive_is_cut_by_its_index(tmp_path: Path) -> None:
    binlog = big_binlog()
    await fill(tmp_path, ("mysql-bin.000001", bytes(binlog.data)))
    cut = splits_of(tmp_path)
    assert len(cut) > 5
    shutil.copy(tmp_path / "mysql-bin.000001", tmp_path / "plain")
    without = splits_of(tmp_path / "plain")
    assert [(split.start, split.stop) for split in cut] == [(split.start, split.stop) for split in without]
    # that the index was used: without it the same splits come only from reading everything
    index = tmp_path / "mysql-bin.000001.idx"
    index.write_bytes(index.read_bytes()[: 24 * 3])
    assert len(splits_of(tmp_path)) < len(cut)


def test_a_transaction_larger_than_a_split_is_in_one(tmp_path: Path) -> None:
    binlog = BinlogBuilder()
    for sizes in ([10], [5000] * 50, [10]):
        add_transaction(binlog, *sizes)
    path = write(tmp_path, "bin.000001", binlog.data)
    parts = splits_of(path)
    sizes = [row["bytes"] for row in rows(parts, "transactions")]
    assert len(sizes) == 3
    assert max(sizes) > 500_000


def test_an_event_larger_than_what_is_read_at_once_is_whole(tmp_path: Path) -> None:
    binlog = BinlogBuilder()
    binlog.begin().table_map()
    head = struct.pack("<IHHH", 42, 0, 1, 2) + b"\x01\xff"
    binlog.event(30, head + (b"\0\x10\x27" + bytes(10_000)) * 300, INSIDE).xid()
    add_transaction(binlog, 10)
    path = write(tmp_path, "bin.000001", binlog.data)
    events = rows(splits_of(path), "events")
    assert [row["crc"] for row in events] == ["ok"] * len(binlog.events)
    assert [row["rows_inserted"] for row in rows(splits_of(path), "transactions")] == [300, 2]


def test_ordinals_keep_files_whole_and_count_from_one(tmp_path: Path) -> None:
    path = write(tmp_path, "bin.000001", big_binlog().data)
    splits = splits_of(path, whole_files=True)
    assert len(splits) == 1
    ordinals = [row["transaction_ordinal"] for row in rows(splits, "events", "transaction_ordinal")]
    assert sorted({ordinal for ordinal in ordinals if ordinal is not None}) == list(range(1, 601))


# ---- what is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.binlog")), ids=lambda path: path.stem)
def test_a_file_that_a_server_wrote_has_no_findings(path: Path) -> None:
    assert found_in(path) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"\xfdbin" + bytes(600), "file_encrypted"),
        (b"hello, I am no binlog", "not_a_binlog"),
        (b"", "not_a_binlog"),
        (b"\xfebin" + bytes(100), "event_length_wrong"),
        (b"\xfebin\1\2", "event_truncated"),
    ],
)
def test_a_file_that_is_no_readable_binlog_is_a_finding(tmp_path: Path, level: str, content: bytes, name: str) -> None:
    write(tmp_path, "bin.000001", big_binlog(1).rotate("bin.000002").data)
    path = write(tmp_path, "bin.000002", content)
    found = found_in(tmp_path, level)
    assert [(file, finding) for file, finding, _position in found] == [("bin.000002", name)]
    with pytest.raises(BinlogUnreadable, match=f"{name} in bin.000002 at"):
        rows(splits_of(path), level, failfast=True)


def test_an_encrypted_mariadb_file_is_named_as_such() -> None:
    path = RECORDED.parent / "encrypted" / "mariadb.binlog"
    assert [finding for _file, finding, _position in found_in(path)] == ["file_encrypted"]


@pytest.mark.parametrize("level", LEVELS)
def test_a_file_cut_inside_an_event_says_where(tmp_path: Path, level: str) -> None:
    binlog = big_binlog(3)
    last = binlog.events[-1]
    path = write(tmp_path, "bin.000001", binlog.data[: last.end - 3])
    found = found_in(path, level)
    assert ("bin.000001", "event_truncated", last.start) in found
    assert {name for _file, name, _position in found} <= {"event_truncated", "transaction_unfinished"}
    with pytest.raises(BinlogUnreadable):
        rows(splits_of(path), level, failfast=True)


def test_a_transaction_without_its_end_is_a_finding_and_the_one_before_is_whole(tmp_path: Path) -> None:
    binlog = big_binlog(3)
    path = write(tmp_path, "bin.000001", binlog.data[: binlog.events[-1].start])
    transactions = rows(splits_of(path), "transactions")
    assert [row["finding"] for row in transactions] == [None, None, "transaction_unfinished"]
    start = binlog.events[-1].group_start
    assert found_in(path) == [("bin.000001", "transaction_unfinished", start)]


@pytest.mark.parametrize("level", LEVELS)
def test_a_corrupt_event_in_the_middle_loses_nothing_else(tmp_path: Path, level: str) -> None:
    binlog = big_binlog()
    data = bytearray(binlog.data)
    bad = next(event for event in binlog.events[500:] if event.kind == 30)
    data[bad.start + 60] ^= 0xFF
    path = write(tmp_path, "bin.000001", data)
    assert set(found_in(path, level)) == {("bin.000001", "checksum_mismatch", bad.start)}
    assert len(rows(splits_of(path), "events")) == len(binlog.events)
    with pytest.raises(BinlogUnreadable, match=f"checksum_mismatch in bin.000001 at {bad.start}"):
        rows(splits_of(path), level, failfast=True)


def test_what_is_wrong_is_told_whatever_time_is_asked_for(tmp_path: Path) -> None:
    binlog = big_binlog(20)
    data = bytearray(binlog.data)
    bad = next(event for event in binlog.events[30:] if event.kind == 30)
    data[bad.start : bad.start + 4] = bytes([255] * 4)  # its time, of all things
    path = write(tmp_path, "bin.000001", data)
    wanted = Wanted()
    wanted.range("time").narrow(high=(binlog.timestamp + 1) * 1_000_000)
    for level in ("events", "rows", "statements"):
        options = ReadOptions(level, ("position", "finding"), False)
        found = [
            row
            for split in splits_of(path)
            for batch in read_split(STORE, split, options, wanted)
            for row in batch.to_pylist()
        ]
        assert {row["position"]: row["finding"] for row in found if row["finding"]} == {bad.start: "checksum_mismatch"}
        with pytest.raises(BinlogUnreadable, match=f"checksum_mismatch in bin.000001 at {bad.start}"):
            list(read_split(STORE, splits_of(path)[0], ReadOptions(level, ("position",), True), wanted))


def test_a_length_that_lies_ends_the_file_with_a_finding(tmp_path: Path) -> None:
    binlog = big_binlog(10)
    data = bytearray(binlog.data)
    bad = binlog.events[20]
    data[bad.start + 9 : bad.start + 13] = (7).to_bytes(4, "little")
    path = write(tmp_path, "bin.000001", data)
    found = rows(splits_of(path), "events", "position", "end", "finding")
    assert found[-1] == {"position": bad.start, "end": len(data), "finding": "event_length_wrong"}
    assert len(found) == 21


def test_files_that_go_or_shrink_after_planning_are_findings(tmp_path: Path) -> None:
    binlog = big_binlog(3)
    gone = write(tmp_path, "bin.000001", binlog.data)
    short = write(tmp_path, "bin.000002", binlog.data)
    splits = splits_of(tmp_path)
    gone.unlink()
    short.write_bytes(binlog.data[: binlog.boundaries[-2]])
    assert [(row["file"], row["finding"]) for row in rows(splits, "findings")] == [
        ("bin.000001", "file_gone"),
        ("bin.000002", "file_shrunk"),
    ]


# ---- archives that live ----------------------------------------------------------------------------------------------


@pytest.fixture
async def growing(tmp_path: Path) -> "Iterator[tuple[Path, BinlogBuilder, int]]":  # type: ignore[misc]
    """An archive that a relay has open, whose newest file ends inside a transaction; and where the last whole one ends."""
    from relay.archive.generation import Generation

    binlog = BinlogBuilder()
    add_transaction(add_transaction(binlog, 10), 10)
    whole = binlog.size
    binlog.begin().table_map()
    generation = await Generation.open(tmp_path)
    await generation.begin_file("mysql-bin.000001")
    await append_all(generation, bytes(binlog.data))
    yield tmp_path, binlog, whole
    await generation.close()


def test_the_file_that_is_written_ends_at_its_last_whole_transaction(
    growing: tuple[Path, BinlogBuilder, int],
) -> None:
    path, _binlog, whole = growing
    (split,) = splits_of(path)
    assert (split.start, split.stop) == (4, whole)
    assert found_in(path) == []
    assert len(rows([split], "transactions")) == 2


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize(("offset", "name"), [(25, "checksum_mismatch"), (9, "event_length_wrong")])
def test_damage_in_the_file_that_is_written_is_a_finding_and_no_end(
    growing: tuple[Path, BinlogBuilder, int], index: bool, offset: int, name: str
) -> None:
    path, binlog, whole = growing
    bad = binlog.events[3]
    file = path / "mysql-bin.000001"
    data = bytearray(file.read_bytes())
    data[bad.start + offset : bad.start + offset + 4] = bytes(4)
    file.write_bytes(data)
    if not index:
        (path / "mysql-bin.000001.idx").unlink(missing_ok=True)
    assert found_in(path, "events")[0] == ("mysql-bin.000001", name, bad.start)
    if name == "checksum_mismatch":
        assert [row["finding"] is None for row in rows(splits_of(path), "transactions")] == [False, True]
        assert splits_of(path)[-1].stop == whole


def test_an_event_that_announces_more_than_its_share_of_the_file_is_no_end_of_the_file(tmp_path: Path) -> None:
    binlog = big_binlog()
    path = write(tmp_path, "bin.000001", binlog.data)
    first, *_rest = splits = splits_of(path)
    bad = next(event for event in binlog.events if event.start > first.stop // 2)
    data = bytearray(binlog.data)
    data[bad.start + 9 : bad.start + 13] = first.stop.to_bytes(4, "little")
    path.write_bytes(data)
    (found,) = (row for row in rows(splits, "findings") if row["finding"] != "transaction_unfinished")
    assert (found["finding"], found["position"], found["end"]) == ("event_length_wrong", bad.start, first.stop)
    assert f"the next transaction begins {first.stop - bad.start} bytes behind its start" in found["finding_text"]


def test_what_an_archive_marked_as_damaged_is_a_finding(tmp_path: Path) -> None:
    import asyncio

    binlog = big_binlog(5)
    asyncio.run(fill(tmp_path, ("mysql-bin.000001", bytes(binlog.data))))
    catalog = Catalog.open(tmp_path / "catalog.sqlite", FileLayer())
    (file,) = catalog.files()
    file.damaged = True
    file.end = binlog.boundaries[-3]
    catalog.put_files([file])
    catalog.close()
    assert found_in(tmp_path) == [("mysql-bin.000001", "file_damaged", file.end)]
    assert max(row["end"] for row in rows(splits_of(tmp_path), "transactions")) == file.end


# ---- columns ---------------------------------------------------------------------------------------------------------


def test_names_that_are_no_utf8_are_shown_escaped(tmp_path: Path) -> None:
    binlog = big_binlog(1)
    data = bytes(binlog.data).replace(b"\x04test\0\x01t\0", b"\x04t\xffst\0\x01t\0")
    path = write(tmp_path, "bin.000001", data)
    (transaction,) = rows(splits_of(path), "transactions")
    assert transaction["tables"] == ["t\\xffst.t"]
    assert transaction["finding"] == "checksum_mismatch"


@pytest.mark.parametrize("level", LEVELS)
def test_each_column_alone_is_what_it_is_among_all(level: str) -> None:
    path = RECORDED / "mysql97-compressed.binlog"
    every = rows(splits_of(path), level)
    for name in LEVELS[level]:
        alone = rows(splits_of(path), level, name)
        if name not in ("rows_inserted", "rows_updated", "rows_deleted"):
            assert alone == [{name: row[name]} for row in every]


def test_compressed_transactions_are_opened() -> None:
    transactions = rows(splits_of(RECORDED / "mysql97-compressed.binlog"), "transactions")
    assert [(row["kind"], row["rows_inserted"], row["rows_updated"], row["xid"]) for row in transactions] == [
        ("ddl", 0, 0, None),
        ("row", 1, 0, 8),
        ("row", 2, 3, 10),
        ("ddl", 0, 0, None),
    ]


def test_a_broken_compressed_transaction_is_a_finding(tmp_path: Path) -> None:
    data = bytearray((RECORDED / "mysql97-compressed.binlog").read_bytes())
    broken = next(
        row for row in rows(splits_of(RECORDED / "mysql97-compressed.binlog"), "events") if "payload" in row["type"]
    )
    start, end = broken["position"], broken["end"]
    data[data.index(b"\x28\xb5\x2f\xfd", start)] ^= 1  # the magic of its zstd frame
    data[end - 4 : end] = zlib.crc32(data[start : end - 4]).to_bytes(4, "little")
    path = write(tmp_path, "bin.000001", data)
    assert found_in(path) == [("bin.000001", "payload_unreadable", start)]


# ---- other file systems ----------------------------------------------------------------------------------------------


def test_a_url_is_read_through_fsspec(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    data = bytes(big_binlog(5).data)
    system = fsspec.filesystem("memory")
    system.pipe("/binlogs/bin.000001", data)
    store = store_of("memory://binlogs")
    assert isinstance(store, RemoteStore)
    path = write(tmp_path, "bin.000001", data)
    remote = rows(splits_of("memory://binlogs", store=store), "transactions")
    assert remote == rows(splits_of(path), "transactions")
    assert pa.__version__


def test_a_url_without_fsspec_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # no obstore either
    with pytest.raises(ImportError, match="pip install fsspec"):
        store_of("s3://bucket/archive")
