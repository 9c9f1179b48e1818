"""Files that follow each other: of one source, of another one in between, of several that an archive was over; and cut ones."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.read_finding import BinlogUnreadable
from relay.binlog_tables.plan.schemas import LEVELS
from relay.binlog_tables.plan.series_files import find_files
from relay.binlog_tables.plan.splits import written_between
from relay.binlog_tables.plan.store import LocalStore
from relay.spark.micro_batches import BinlogStreamReader
from tests.audit.test_splits import SPLIT, add_transaction, big_binlog, found_in, rows, split_list, splits_of, write
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.generation_filling import two_generations

STORE = LocalStore()
READING = list(LEVELS)


def binlog_by(server_id: int, transactions: int = 2) -> BinlogBuilder:
    binlog = BinlogBuilder(server_id=server_id)
    for _ in range(transactions):
        add_transaction(binlog, 10)
    return binlog


@pytest.mark.parametrize("level", READING)
def test_a_file_of_another_source_is_a_finding(tmp_path: Path, level: str) -> None:
    for number, server_id in enumerate((1, 1, 7, 7, 1), 1):
        write(tmp_path, f"bin.{number:06}", binlog_by(server_id).data)
    found = [
        (row["file"], row["finding"], row.get("finding_text"))
        for row in rows(splits_of(tmp_path), level, *LEVELS[level], *({"finding_text"} - set(LEVELS[level])))
        if row["finding"]
    ]
    found = [one for one in found if one[1] != "value_uncertain"]
    assert [one[:2] for one in found] == [("bin.000003", "source_changed"), ("bin.000005", "source_changed")]
    assert str(found[0][2]).startswith("server_id 7 wrote this file, and 1 the one before, bin.000002")
    with pytest.raises(BinlogUnreadable, match=r"source_changed in bin\.000003 at 4"):
        rows(splits_of(tmp_path), level, failfast=True)


def test_files_of_other_series_are_no_change_of_the_source(tmp_path: Path) -> None:
    write(tmp_path, "a.000001", binlog_by(1).data)
    write(tmp_path, "b.000001", binlog_by(2).data)
    assert found_in(tmp_path) == []


async def test_a_source_that_gives_its_binlogs_another_name_has_each_file_once(tmp_path: Path) -> None:
    """As mysql-bin became binlog with MySQL 8.0; the new name may come before the old one, or behind it."""
    names = ["mysql-bin.000001", "binlog.000002", "binlog.000003", "z.000004"]
    await fill(tmp_path, *((name, bytes(binlog_by(1).data)) for name in names))
    assert [file.name for file in find_files(STORE, str(tmp_path))] == names


def test_a_stream_meets_the_other_source_where_its_file_begins(tmp_path: Path) -> None:
    for number, server_id in enumerate((1, 7, 7), 1):
        write(tmp_path, f"bin.{number:06}", binlog_by(server_id).data)
    options = ReadOptions("findings", tuple(LEVELS["findings"]), False)
    stream = BinlogStreamReader((str(tmp_path),), SPLIT, options)

    def found(start: tuple[str, int], end: tuple[str, int]) -> list[str]:
        splits = stream.partitions({"file": start[0], "position": start[1]}, {"file": end[0], "position": end[1]})
        return [row["file"] for row in rows(split_list(splits), "findings")]

    size = binlog_by(1).size
    assert found(("bin.000001", 4), ("bin.000003", size)) == ["bin.000002"]
    assert found(("bin.000002", 4), ("bin.000002", size)) == ["bin.000002"]
    assert found(("bin.000003", 4), ("bin.000003", size)) == []


# ---- transactions that the source's end cut ----------------------------------------------------------------------------


def cut_binlog() -> tuple[bytes, int]:
    """A file that a crash ended inside its second transaction, which starts at the second value."""
    binlog = binlog_by(1, 1)
    start = binlog.size
    binlog.begin().table_map()
    return bytes(binlog.data), start


@pytest.mark.parametrize("level", ["transactions", "findings"])
async def test_a_transaction_that_the_source_cut_is_named_as_such(tmp_path: Path, level: str) -> None:
    data, start = cut_binlog()
    await fill(tmp_path, ("mysql-bin.000001", data), ("mysql-bin.000002", bytes(binlog_by(1).data)))
    assert found_in(tmp_path, level) == [("mysql-bin.000001", "transaction_cut", start)]
    with pytest.raises(BinlogUnreadable, match=f"transaction_cut in mysql-bin.000001 at {start}: The source ended"):
        rows(splits_of(tmp_path), level, failfast=True)


def test_a_file_of_a_crashed_server_says_so_itself_where_another_follows(tmp_path: Path) -> None:
    data, start = cut_binlog()
    crashed = bytearray(data)
    crashed[4 + 17] |= 1  # LOG_EVENT_BINLOG_IN_USE_F: nobody closed it
    write(tmp_path, "bin.000001", crashed)
    write(tmp_path, "bin.000002", binlog_by(1).data)
    write(tmp_path, "bin.000003", data)
    assert found_in(tmp_path) == [
        ("bin.000001", "transaction_cut", start),
        ("bin.000003", "transaction_unfinished", start),
    ]


# ---- an archive over several sources -----------------------------------------------------------------------------------


async def test_the_files_of_a_later_source_follow_those_of_the_one_before(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path)
    await archive.close()
    files = find_files(STORE, str(tmp_path))
    names = [file.name for file in files]
    later = [name for name in names if name.startswith("g0002/")]
    assert later and names == [*(name for name in names if name not in later), *later]
    assert all(store_of(file.path).is_file(file.path) for file in files)
    found = {row["file"] for row in rows(splits_of(tmp_path), "transactions")}
    assert found == set(names)
    assert found_in(tmp_path) == []
    # a copy without the catalogs, on another file system
    for path in tmp_path.rglob("catalog.sqlite*"):
        path.unlink()
    assert [file.name for file in find_files(STORE, str(tmp_path))] == names


def test_an_archive_is_read_whole_while_it_loses_files(tmp_path: Path) -> None:
    for number in range(1, 4):
        write(tmp_path, f"bin.{number:06}", big_binlog(100).data)
    splits = splits_of(tmp_path)
    (tmp_path / "bin.000001").unlink()
    gone = [split for split in splits if split.name == "bin.000001"]
    for level in READING:
        found = rows(splits, level, "file", "finding")
        lost = [row for row in found if row["file"] == "bin.000001"]
        assert [row["finding"] for row in lost] == ["file_gone"] * len(gone)
        assert {row["finding"] for row in found if row["file"] != "bin.000001"} == {None} or level == "findings"


@pytest.mark.parametrize("level", LEVELS)
def test_an_event_of_a_type_that_nobody_knows_is_a_finding(tmp_path: Path, level: str) -> None:
    binlog = binlog_by(1)
    at = binlog.size
    binlog.event(99, b"from the future", "neutral")
    add_transaction(binlog, 10)
    path = write(tmp_path, "bin.000001", binlog.data)
    assert found_in(path, level) == [("bin.000001", "unknown_event_type", at)]
    assert [row["rows_inserted"] for row in rows(splits_of(path), "transactions") if row["finding"] is None] == [
        2,
        2,
        2,
    ]
    with pytest.raises(BinlogUnreadable, match=f"unknown_event_type in bin.000001 at {at}"):
        rows(splits_of(path), level, failfast=True)


# ---- times -------------------------------------------------------------------------------------------------------------


def binlog_of(begun: int, *times: int) -> bytes:
    """A file that was begun at one time, with transactions of others."""
    binlog = BinlogBuilder(timestamp=begun)
    for time in times:
        binlog.timestamp = time
        add_transaction(binlog, 10)
    return bytes(binlog.data)


@pytest.mark.parametrize(
    ("files", "since", "until", "kept"),
    [
        # the next file is of another source, which began it long before
        ({"a.000001": (1000, 1500, 3000), "b.000001": (500, 3500)}, 2000, 4000, {"a.000001", "b.000001"}),
        # the clock went back
        ({"a.000001": (1000, 3000), "a.000002": (900, 3500)}, 2000, 4000, {"a.000001", "a.000002"}),
        # the source is a replica that was an hour behind
        ({"a.000001": (1000, 1001), "a.000002": (5000, 1400, 2100)}, 1300, 2000, {"a.000001", "a.000002"}),
        (
            {"a.000001": (1000, 1001), "a.000002": (2000, 2001), "a.000003": (3000,)},
            2000,
            2500,
            {"a.000001", "a.000002"},
        ),
        ({"a.000001": (1000, 1001), "a.000002": (2000, 2001), "a.000003": (3000,)}, 2001, 2500, {"a.000002"}),
    ],
)
def test_no_file_is_left_out_that_may_hold_something_of_the_time(
    tmp_path: Path, files: dict[str, tuple[int, ...]], since: int, until: int, kept: set[str]
) -> None:
    for name, times in files.items():
        write(tmp_path, name, binlog_of(*times))
    found = find_files(STORE, str(tmp_path))
    assert {file.name for file in written_between(STORE, found, since, until)} == kept
