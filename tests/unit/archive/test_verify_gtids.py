"""`archive verify` finds what is wrong with NAME.gtx and the catalog's GTIDs, and `archive rebuild` puts it right."""

import random
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from protocol.gtid.block_index import BlockIndex, BlockIndexWriter
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList, encode_gtid_list
from relay.archive.catalog.catalog_rows import row_sum
from relay.archive.generation import Generation
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive_inspection.listing import rebuild_archive
from relay.archive_inspection.verify import verify_archive
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.gtid_binlog import add_mariadb, add_mysql, mariadb_binlog, mysql_binlog

U = "11111111-1111-1111-1111-111111111111"
V = "22222222-2222-2222-2222-222222222222"
NAMES = [f"mysql-bin.{number:06d}" for number in range(1, 4)]
GTX = f"{NAMES[1]}.gtx"
CATALOG = "catalog.sqlite"
ROW = 40
Files = list[tuple[str, bytearray]]


def mysql_files(anonymous: int = 0) -> Files:
    """Three files; the second has several blocks, two sources, and transactions without a GTID if wanted."""
    before = GtidSet()
    files = []
    for name, inside in zip(NAMES, (f"{U}:1-5", f"{U}:6-60,{V}:3-9", f"{U}:61-70"), strict=True):
        binlog = mysql_binlog(before)
        for number, gtid in enumerate(GtidSet.from_text(inside).members()):
            add_mysql(binlog, gtid, 4000)
            if number % 10 == 4 and number < anonymous * 10:
                add_mysql(binlog, None)
        before |= GtidSet.from_text(inside)
        files.append((name, binlog.data))
    return files


def mariadb_files() -> Files:
    state = GtidList()
    files = []
    number = 0
    for name in NAMES:
        binlog = mariadb_binlog(state)
        for _ in range(40):
            number += 1
            gtid = DomainGtid(number % 3, 1 + number % 2, number)
            add_mariadb(binlog, gtid, 4000)
            state = state.advanced([gtid])
        files.append((name, binlog.data))
    return files


FLAVOURS = pytest.mark.parametrize("files", [mysql_files(), mariadb_files()], ids=["mysql", "mariadb"])


def found(directory: Path, *, deep: bool) -> list[ArchiveFinding]:
    return list(verify_archive(directory, deep=deep))


def check_rebuild_puts_it_right(directory: Path) -> None:
    rebuild_archive(directory)
    assert found(directory, deep=True) == []


# ---- what is no damage ----------------------------------------------------------------------------------------------


@FLAVOURS
async def test_a_sound_archive_has_no_findings(tmp_path: Path, files: Files) -> None:
    await fill(tmp_path, *files)
    assert found(tmp_path, deep=True) == []


async def test_files_without_gtids_have_no_findings(tmp_path: Path) -> None:
    await fill(tmp_path, *((name, BinlogBuilder().ddl().transaction(*[900] * 200).data) for name in NAMES))
    assert found(tmp_path, deep=True) == []


async def test_transactions_with_and_without_gtids_have_no_findings(tmp_path: Path) -> None:
    await fill(tmp_path, *mysql_files(anonymous=4))
    assert found(tmp_path, deep=True) == []


@pytest.mark.parametrize("files", [mysql_files(4), mariadb_files()], ids=["mysql", "mariadb"])
async def test_restarts_and_transactions_taken_back_leave_nothing_to_find(tmp_path: Path, files: Files) -> None:
    for name, data in files:
        at = 4
        for part in (3, 5, 7, 8):
            generation = await Generation.open(tmp_path)
            if at == 4:
                await generation.begin_file(name)
            await append_all(generation, data[: whole_events(data, len(data) * part // 8)], start=at)
            if part == 5:
                await generation.trim()
                assert generation.end is not None
                await append_all(
                    generation, data[: whole_events(data, len(data) * 11 // 16)], start=generation.end.offset
                )
            await generation.close()
            at = (tmp_path / name).stat().st_size
            assert found(tmp_path, deep=True) == []
        assert at == len(data)


def whole_events(data: bytearray, limit: int) -> int:
    at = 4
    while at < len(data) and at + int.from_bytes(data[at + 9 : at + 13], "little") <= limit:
        at += int.from_bytes(data[at + 9 : at + 13], "little")
    return at


@FLAVOURS
async def test_a_purge_leaves_nothing_to_find(tmp_path: Path, files: Files) -> None:
    await fill(tmp_path, *files)
    generation = await Generation.open(tmp_path)
    await generation.purge(NAMES[:1], "for a test")
    await generation.close()
    assert found(tmp_path, deep=True) == []


@FLAVOURS
async def test_a_running_archive_has_no_findings(tmp_path: Path, files: Files) -> None:
    generation = await Generation.open(tmp_path)
    for name, data in files:
        await generation.begin_file(name)
        await append_all(generation, data, range(5, len(data), 30_000))
    assert found(tmp_path, deep=True) == []
    await generation.close()


# ---- NAME.gtx -------------------------------------------------------------------------------------------------------


async def test_an_index_that_is_missing_is_found_without_reading_the_file(tmp_path: Path) -> None:
    await fill(tmp_path, *mysql_files())
    (tmp_path / GTX).unlink()
    (finding,) = found(tmp_path, deep=False)
    assert finding.file == GTX
    assert "is missing" in finding.what
    assert "archive rebuild" in finding.what
    assert found(tmp_path, deep=True) == [finding]
    check_rebuild_puts_it_right(tmp_path)


def longer(data: bytes) -> bytes:
    """As of a file that goes on."""
    *blocks, last = BlockIndex(data)
    return b"".join(map(BlockIndexWriter().encode, [*blocks, replace(last, stop=1 << 40)]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:-7], "no whole stretch"),
        (lambda data: data[: -2 * ROW] + data[-ROW:-20], "no whole stretch"),
        (lambda data: data + bytes(ROW - 1), "no whole stretch"),
        (lambda data: data[:8] + bytes([9]) + data[9:], "in row 0 of a stretch index"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "check is wrong"),
        (longer, "behind the end"),
    ],
    ids=["torn", "torn in the last block", "with bytes behind it", "no index", "flipped", "of a longer file"],
)
async def test_an_index_that_cannot_be_one_is_found_without_reading_the_file(
    tmp_path: Path, change: Callable[[bytes], bytes], words: str
) -> None:
    await fill(tmp_path, *mysql_files())
    (tmp_path / GTX).write_bytes(change((tmp_path / GTX).read_bytes()))
    (finding,) = found(tmp_path, deep=False)
    assert (finding.file, words in finding.what, "archive rebuild" in finding.what) == (GTX, True, True)
    check_rebuild_puts_it_right(tmp_path)


async def test_an_index_without_its_last_blocks_is_found(tmp_path: Path) -> None:
    await fill(tmp_path, *mysql_files())
    data = (tmp_path / GTX).read_bytes()
    last_end = data.rindex((-1).to_bytes(8, "little", signed=True), 0, len(data) - ROW)
    (tmp_path / GTX).write_bytes(data[: last_end - 8 + ROW])
    assert found(tmp_path, deep=False) == []
    (finding,) = found(tmp_path, deep=True)
    assert (finding.file, "does not end where the file does" in finding.what) == (GTX, True)
    check_rebuild_puts_it_right(tmp_path)


async def test_an_empty_index_is_found(tmp_path: Path) -> None:
    await fill(tmp_path, *mysql_files())
    (tmp_path / GTX).write_bytes(b"")
    (finding,) = found(tmp_path, deep=True)
    assert finding.file == GTX
    check_rebuild_puts_it_right(tmp_path)


async def test_the_index_of_another_file_is_found(tmp_path: Path) -> None:
    await fill(tmp_path, *mysql_files())
    (tmp_path / GTX).write_bytes((tmp_path / f"{NAMES[0]}.gtx").read_bytes())
    (finding,) = found(tmp_path, deep=True)
    assert (finding.file, f"from {NAMES[1]}:" in finding.what) == (GTX, True)
    check_rebuild_puts_it_right(tmp_path)


@FLAVOURS
async def test_a_flipped_bit_anywhere_in_an_index_is_found_without_reading_the_file(
    tmp_path: Path, files: Files
) -> None:
    await fill(tmp_path, *files)
    data = (tmp_path / GTX).read_bytes()
    assert len(data) > 5 * ROW
    for place in random.Random(3).sample(range(len(data)), 150):
        bad = bytearray(data)
        bad[place] ^= 1 << place % 8
        (tmp_path / GTX).write_bytes(bad)
        assert {finding.file for finding in found(tmp_path, deep=False)} == {GTX}, f"byte {place}"


# ---- the catalog's rows ---------------------------------------------------------------------------------------------


def change_catalog(directory: Path, statement: str, *values: object) -> None:
    db = sqlite3.connect(directory / CATALOG)
    db.create_function("row_sum", -1, lambda *values: row_sum(values))
    with db:
        assert db.execute(statement, values).rowcount == 1
        db.execute("UPDATE gtids SET sum = row_sum(number, before, inside, anonymous)")
    db.close()


@pytest.mark.parametrize(
    ("statement", "values", "words"),
    [
        ("DELETE FROM gtids WHERE number = 2", (), "has no GTIDs of"),
        ("UPDATE gtids SET inside = ? WHERE number = 2", (b"\1\2",), "has no GTIDs that can be read of"),
    ],
    ids=["gone", "unreadable"],
)
async def test_a_row_that_is_no_use_is_found_without_reading_the_file(
    tmp_path: Path, statement: str, values: tuple[object, ...], words: str
) -> None:
    await fill(tmp_path, *mysql_files())
    change_catalog(tmp_path, statement, *values)
    (finding,) = found(tmp_path, deep=False)
    assert (finding.file, words in finding.what, NAMES[1] in finding.what) == (CATALOG, True, True)
    generation = await Generation.open(tmp_path)
    await generation.close()
    assert found(tmp_path, deep=True) == []


def mysql_bytes(text: str) -> bytes:
    return encode_gtid_set(GtidSet.from_text(text))


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("inside", mysql_bytes(f"{U}:6-59,{V}:3-9"), f"holds {U}:6-59,{V}:3-9; it holds {U}:6-60,{V}:3-9"),
        ("inside", None, "holds what is not known; it holds"),
        ("anonymous", 3, "counts 3 transactions without a GTID in mysql-bin.000002; there are 0"),
        ("before", mysql_bytes(f"{U}:1-4"), f"there was {U}:1-4; its head says {U}:1-5"),
    ],
    ids=["inside", "not read", "anonymous", "before"],
)
async def test_a_row_that_says_something_else_than_the_file_is_found(
    tmp_path: Path, column: str, value: object, words: str
) -> None:
    await fill(tmp_path, *mysql_files())
    change_catalog(tmp_path, f"UPDATE gtids SET {column} = ? WHERE number = 2", value)
    assert found(tmp_path, deep=False) == []
    finding = found(tmp_path, deep=True)[0]
    assert finding.file == CATALOG
    assert words in finding.what
    assert "archive rebuild" in finding.what
    check_rebuild_puts_it_right(tmp_path)


async def test_a_row_of_mariadb_that_says_something_else_is_found(tmp_path: Path) -> None:
    await fill(tmp_path, *mariadb_files())
    value = encode_gtid_list(GtidList.from_text("0-1-1"))
    change_catalog(tmp_path, "UPDATE gtids SET inside = ? WHERE number = 1", value)
    findings = found(tmp_path, deep=True)
    assert {finding.file for finding in findings} == {CATALOG}
    # The file behind it is said to begin where this one is said to end.
    assert [name for finding in findings for name in NAMES if name in finding.what] == NAMES[:2]
    check_rebuild_puts_it_right(tmp_path)


async def test_gtids_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    broken = mysql_binlog(GtidSet()).event(35, b"\1", "alone")
    await fill(tmp_path, (NAMES[0], broken.data), *mysql_files()[1:])
    findings = found(tmp_path, deep=True)
    assert [(finding.file, "cannot be read" in finding.what) for finding in findings] == [(NAMES[0], True)]
