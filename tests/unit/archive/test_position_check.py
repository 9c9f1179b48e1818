"""Every offset is judged as a naive reading of the file judges it."""

from dataclasses import replace
from pathlib import Path

import pytest

from protocol.binlog.event_type import EventType
from relay.archive.generation import Generation
from relay.archive.read.position_check import PositionCheck, Verdict, check_offset
from relay.archive.storage.archive_errors import ArchiveCorrupt
from relay.archive.storage.boundary_index import RECORD
from relay.archive.storage.files import FileLayer
from relay.archive_inspection.listing import read_ledger
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import HEADER, BinlogBuilder

FIRST = "mysql-bin.000001"
SECOND = "mysql-bin.000002"


def judge_naively(built: BinlogBuilder, end: int, offset: int) -> PositionCheck:
    """The same verdict from the builder's own notes, in time proportional to the file."""
    if offset < 4:
        return PositionCheck(Verdict.BEFORE_START, None, 4, None)
    if offset > end:
        return PositionCheck(Verdict.PAST_END, end, None, None)
    if offset in built.boundaries or offset == end:
        return PositionCheck(Verdict.BOUNDARY, offset, offset, None)
    (event,) = [event for event in built.events if event.start <= offset < event.end]
    if event.group_start is None:
        return PositionCheck(Verdict.INSIDE_EVENT, event.start, event.end, None)
    group_end = built.groups[event.group_start]
    verdict = Verdict.INSIDE_TRANSACTION if event.start == offset else Verdict.INSIDE_EVENT
    return PositionCheck(
        verdict, event.group_start, end if group_end is None else group_end, (event.group_start, group_end)
    )


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
@pytest.mark.parametrize("checksum", [True, False])
async def test_every_offset_of_a_small_file_is_judged_right(tmp_path: Path, flavour: str, checksum: bool) -> None:
    built = BinlogBuilder(flavour, checksum).ddl().transaction(10, 30).ddl("DROP TABLE u").transaction(5).rotate(SECOND)
    await fill(tmp_path, (FIRST, built.data), (SECOND, BinlogBuilder(flavour, checksum).data))
    generation = await Generation.open(tmp_path)
    wrong = []
    for offset in range(built.size + 3):
        verdict = await generation.check_position(FIRST, offset)
        if verdict != judge_naively(built, built.size, offset):
            wrong.append((offset, verdict, judge_naively(built, built.size, offset)))
    await generation.close()
    assert wrong == []


async def test_offsets_of_a_file_with_many_index_records_are_judged_right(tmp_path: Path) -> None:
    built = BinlogBuilder()
    for size in (300, 70_000, 400_000, 90_000, 20):
        built.transaction(*[1000] * (size // 1000), 40).ddl().transaction(30_000, 50_000)
    await fill(tmp_path, (FIRST, built.data), (SECOND, BinlogBuilder().data))
    generation = await Generation.open(tmp_path)
    offsets = {event.start for event in built.events} | {event.start + 7 for event in built.events}
    wrong = []
    for offset in sorted(offsets):
        verdict = await generation.check_position(FIRST, offset)
        if verdict != judge_naively(built, built.size, offset):
            wrong.append((offset, verdict, judge_naively(built, built.size, offset)))
    await generation.close()
    assert wrong == []


async def test_offsets_around_an_event_of_two_megabytes_are_judged_right(tmp_path: Path) -> None:
    built = BinlogBuilder().transaction(20).transaction(30, 2_000_000, 40).transaction(20)
    await fill(tmp_path, (FIRST, built.data), (SECOND, BinlogBuilder().data))
    generation = await Generation.open(tmp_path)
    offsets = {event.start + step for event in built.events for step in (0, 5)} | {1_000_000}
    wrong = [
        offset
        for offset in sorted(offsets)
        if await generation.check_position(FIRST, offset) != judge_naively(built, built.size, offset)
    ]
    await generation.close()
    assert wrong == []


async def test_a_cut_group_has_no_end_and_the_files_end_is_next(tmp_path: Path) -> None:
    built = BinlogBuilder().transaction(20).begin().table_map()
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    await generation.begin_file(SECOND, previous_cut=True)
    offset = built.events[-1].start
    assert await generation.check_position(FIRST, offset) == judge_naively(built, built.size, offset)
    await generation.close()


async def test_behind_the_published_end_of_the_open_file_is_the_future(tmp_path: Path) -> None:
    built = BinlogBuilder().transaction(20)
    whole = built.size
    built.begin().table_map()
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    verdicts = [(await generation.check_position(FIRST, offset)).verdict for offset in (whole, whole + 1, 10**12)]
    assert verdicts == [Verdict.BOUNDARY, Verdict.FUTURE, Verdict.FUTURE]
    await generation.close()


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        (SECOND, Verdict.FUTURE),
        ("mysql-bin.000003", Verdict.UNKNOWN_FILE),
        ("other-bin.000002", Verdict.UNKNOWN_FILE),
        ("../../etc/passwd", Verdict.UNKNOWN_FILE),
        ("", Verdict.UNKNOWN_FILE),
    ],
)
async def test_only_the_next_file_is_the_future(tmp_path: Path, name: str, verdict: Verdict) -> None:
    await fill(tmp_path, (FIRST, BinlogBuilder().data))
    generation = await Generation.open(tmp_path)
    assert (await generation.check_position(name, 4)).verdict is verdict
    await generation.close()


@pytest.mark.parametrize("damage", ["missing", "shifted", "empty"])
async def test_a_bad_index_of_a_sealed_file_is_made_again_on_demand(tmp_path: Path, damage: str) -> None:
    built = BinlogBuilder().transaction(*[900] * 200).transaction(10)
    await fill(tmp_path, (FIRST, built.data), (SECOND, BinlogBuilder().data))
    idx = tmp_path / f"{FIRST}.idx"
    good = idx.read_bytes()
    if damage == "missing":
        idx.unlink()
    elif damage == "empty":
        idx.write_bytes(b"")
    else:
        idx.write_bytes(
            b"".join(
                (int.from_bytes(good[i : i + 8], "little") + 3).to_bytes(8, "little") * 2 + good[i + 16 : i + 24]
                for i in range(0, len(good), 24)
            )
        )
    generation = await Generation.open(tmp_path)
    offset = built.events[-2].start
    assert await generation.check_position(FIRST, offset) == judge_naively(built, built.size, offset)
    await generation.close()
    assert (idx.read_bytes(), [row.kind for row in read_ledger(tmp_path)]) == (good, ["index_remade"])


async def test_a_damaged_file_is_an_error_with_a_name(tmp_path: Path) -> None:
    built = BinlogBuilder().transaction(10, 20)
    await fill(tmp_path, (FIRST, built.data), (SECOND, BinlogBuilder().data))
    bad = bytearray(built.data)
    bad[200] ^= 0xFF
    (tmp_path / FIRST).write_bytes(bad)
    generation = await Generation.open(tmp_path)
    with pytest.raises(ArchiveCorrupt):
        await generation.check_position(FIRST, built.events[-1].start)
    await generation.close()


def test_offsets_beyond_four_gibibytes_are_judged_right(tmp_path: Path) -> None:
    built = BinlogBuilder(checksum=False)
    head = built.begin().table_map().size
    start = built.events[1].start
    rows = HEADER.pack(1, EventType.WRITE_ROWS, 1, 1 << 30, 0, 0)
    commit = HEADER.pack(1, EventType.XID, 1, 27, 0, 0) + bytes(8)
    xid = head + (5 << 30)
    end = xid + len(commit)
    with (tmp_path / FIRST).open("wb") as file:
        file.write(built.data)
        for number in range(5):
            file.seek(head + (number << 30))
            file.write(rows)
        file.seek(xid)
        file.write(commit)
    records = [(4, 4), *((head + (number << 30), start) for number in range(1, 6))]
    (tmp_path / f"{FIRST}.idx").write_bytes(b"".join(RECORD.pack(at, group, 1, at == group) for at, group in records))
    expected = PositionCheck(Verdict.INSIDE_TRANSACTION, start, end, (start, end))
    judged = [
        check_offset(FileLayer(), tmp_path / FIRST, end, False, offset)
        for offset in (head + (4 << 30), head + (4 << 30) + 7, xid, end)
    ]
    assert judged == [
        expected,
        replace(expected, verdict=Verdict.INSIDE_EVENT),
        expected,
        PositionCheck(Verdict.BOUNDARY, end, end, None),
    ]
