"""`archive verify` finds damage and nothing else."""

import asyncio
from pathlib import Path

import pytest

from relay.archive.generation import Generation
from relay.archive_inspection.listing import rebuild_archive
from relay.archive_inspection.verify import verify_archive, verify_in_thread
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder

FIRST = "mysql-bin.000001"
SECOND = "mysql-bin.000002"


def built() -> BinlogBuilder:
    return BinlogBuilder().ddl().transaction(*[700] * 300).transaction(20).rotate(SECOND)


async def two_files(directory: Path) -> BinlogBuilder:
    one = built()
    await fill(directory, (FIRST, one.data), (SECOND, BinlogBuilder().transaction(9).data))
    return one


@pytest.mark.parametrize("deep", [False, True])
async def test_a_sound_archive_has_no_findings(tmp_path: Path, deep: bool) -> None:
    await two_files(tmp_path)
    assert list(verify_archive(tmp_path, deep=deep)) == []


@pytest.mark.parametrize("deep", [False, True])
async def test_a_running_archive_inside_a_transaction_has_no_findings(tmp_path: Path, deep: bool) -> None:
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, built().data)
    await generation.begin_file(SECOND)
    await append_all(generation, BinlogBuilder().transaction(9).begin().table_map().data)
    assert await verify_in_thread(tmp_path, deep=deep) == []
    await generation.close()


async def test_a_trimmed_and_resumed_file_has_no_findings(tmp_path: Path) -> None:
    one = built()
    whole = one.boundaries[-3]
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, one.data[: one.events[-3].end])
    await generation.trim()
    await append_all(generation, one.data, start=whole)
    await generation.begin_file(SECOND)
    await append_all(generation, BinlogBuilder().data)
    await generation.close()
    assert list(verify_archive(tmp_path, deep=True)) == []


async def test_a_flipped_bit_is_found_at_its_event(tmp_path: Path) -> None:
    one = await two_files(tmp_path)
    bad = bytearray(one.data)
    event = one.events[40]
    bad[event.start + 30] ^= 4
    (tmp_path / FIRST).write_bytes(bad)
    (finding,) = verify_archive(tmp_path, deep=True)
    assert (finding.file, finding.offset) == (FIRST, event.start)


def without_checksums(directory: Path, name: str) -> None:
    """Changes the one byte by which a file says whether its events have checksums."""
    data = bytearray((directory / name).read_bytes())
    data[int.from_bytes(data[13:17], "little") - 1] = 0
    (directory / name).write_bytes(data)


@pytest.mark.parametrize("name", [FIRST, SECOND])
async def test_a_file_that_says_its_events_have_no_checksums_is_found(tmp_path: Path, name: str) -> None:
    await two_files(tmp_path)
    without_checksums(tmp_path, name)
    (finding,) = verify_archive(tmp_path)
    assert (finding.file, finding.offset) == (name, 4)


async def test_a_newest_file_with_a_changed_head_is_kept_aside_when_the_catalog_is_made_anew(tmp_path: Path) -> None:
    await two_files(tmp_path)
    without_checksums(tmp_path, SECOND)
    rebuild_archive(tmp_path)
    generation = await Generation.open(tmp_path)
    assert [file.name for file in generation.files] == [FIRST]
    await generation.close()


async def test_a_file_with_a_changed_head_is_damaged_when_the_catalog_is_made_anew(tmp_path: Path) -> None:
    await two_files(tmp_path)
    without_checksums(tmp_path, FIRST)
    rebuild_archive(tmp_path)
    generation = await Generation.open(tmp_path)
    assert [(file.name, file.damaged) for file in generation.files] == [(FIRST, True), (SECOND, False)]
    await generation.close()


async def test_a_shortened_file_is_found_without_reading_it(tmp_path: Path) -> None:
    one = await two_files(tmp_path)
    (tmp_path / FIRST).write_bytes(one.data[:-10])
    (finding,) = verify_archive(tmp_path)
    assert (finding.file, finding.offset) == (FIRST, one.size - 10)


@pytest.mark.parametrize("damage", ["gone", "shorter", "changed"])
@pytest.mark.parametrize("reopened", [False, True])
async def test_what_the_findings_of_a_lost_file_tell_to_do_mends_it(
    tmp_path: Path, damage: str, reopened: bool
) -> None:
    one = await two_files(tmp_path)
    if damage == "gone":
        (tmp_path / FIRST).unlink()
    elif damage == "shorter":
        (tmp_path / FIRST).write_bytes(one.data[:-10])
    else:
        (tmp_path / FIRST).write_bytes(one.data[:-1] + bytes([one.data[-1] ^ 1]))
    if reopened:
        await (await Generation.open(tmp_path)).close()
    findings = list(verify_archive(tmp_path, deep=True))
    if not (reopened and damage == "gone"):  # the second file is the archive's oldest then
        assert [finding.file for finding in findings] == [FIRST]
    assert all("binlog-relay archive repair" in finding.text for finding in findings)
    (tmp_path / FIRST).write_bytes(one.data)
    await asyncio.to_thread(rebuild_archive, tmp_path)
    assert list(verify_archive(tmp_path, deep=True)) == []


async def test_a_missing_file_is_found(tmp_path: Path) -> None:
    await two_files(tmp_path)
    (tmp_path / FIRST).unlink()
    assert [finding.file for finding in verify_archive(tmp_path)] == [FIRST]


async def test_a_rotate_that_names_another_file_is_found(tmp_path: Path) -> None:
    await fill(tmp_path, (FIRST, BinlogBuilder().rotate("mysql-bin.000009").data), (SECOND, BinlogBuilder().data))
    (finding,) = verify_archive(tmp_path)
    assert "mysql-bin.000009" in finding.what


async def test_a_broken_index_is_found(tmp_path: Path) -> None:
    await two_files(tmp_path)
    idx = tmp_path / f"{FIRST}.idx"
    idx.write_bytes(idx.read_bytes()[:-5])
    assert [finding.file for finding in verify_archive(tmp_path)] == [idx.name]


async def test_progress_counts_every_byte(tmp_path: Path) -> None:
    one = await two_files(tmp_path)
    seen: dict[str, int] = {}

    def note(name: str, count: int) -> None:
        seen[name] = seen.get(name, 0) + count

    assert list(verify_archive(tmp_path, deep=True, on_progress=note)) == []
    assert seen[FIRST] == one.size - 4
