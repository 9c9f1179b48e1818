"""The scrub: what is archived is read again in the background, once in its interval, and what is found is said once."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.recovery.digest import file_digest
from relay.archive.storage.files import FileLayer
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.scrub import Scrub
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder
from tests.unit.archive.test_purge import NAMES, binlogs

MONTH_S = 30 * 86400.0


async def settled(scrub: Scrub) -> None:
    """Returns when everything that was due was checked."""
    async with asyncio.timeout(20):
        while scrub.status.state not in ("resting", "off") or scrub.status.due or not scrub.status.total_bytes:
            await asyncio.sleep(0.01)


def make_old(directory: Path, days: float) -> None:
    for name in NAMES:
        os.utime(directory / name, (time.time() - days * 86400,) * 2)


@pytest.fixture
async def generation(tmp_path: Path) -> AsyncIterator[Generation]:
    await fill(tmp_path, *binlogs())
    opened = await Generation.open(tmp_path)
    async with asyncio.timeout(10):
        while any(file.sealed and file.digest is None for file in opened.files):
            await asyncio.sleep(0.01)
    yield opened
    await opened.close()


async def test_files_whose_last_check_is_old_are_checked_and_that_is_remembered(
    generation: Generation, tmp_path: Path
) -> None:
    make_old(tmp_path, 31)
    scrub = Scrub(Archive.of(generation), MONTH_S)
    scrub.begin()
    await settled(scrub)
    assert sorted(generation.integrity.checks) == [1, 2, 3, 4]
    assert scrub.status.checked_bytes == scrub.status.total_bytes == sum(file.end for file in generation.files[:4])
    await scrub.close()
    await generation.close()
    again = await Generation.open(tmp_path)
    assert sorted(again.integrity.checks) == [1, 2, 3, 4]
    await again.close()


async def test_what_was_sealed_lately_is_not_read(generation: Generation) -> None:
    scrub = Scrub(Archive.of(generation), MONTH_S)
    scrub.begin()
    await settled(scrub)
    assert (generation.integrity.checks, scrub.status.checked_bytes) == ({}, scrub.status.total_bytes)
    await scrub.close()


@pytest.mark.parametrize("damage", ["changed", "shortened", "gone"])
async def test_damage_is_said_once_and_known_until_it_is_gone(
    generation: Generation, tmp_path: Path, damage: str
) -> None:
    path = tmp_path / NAMES[1]
    sound = path.read_bytes()
    make_old(tmp_path, 31)
    if damage == "gone":
        path.unlink()
    elif damage == "shortened":
        path.write_bytes(sound[:-20])
    else:
        path.write_bytes(sound[:-60] + bytes([sound[-60] ^ 1]) + sound[-59:])
    if path.exists():
        os.utime(path, (0, 0))
    scrub = Scrub(Archive.of(generation), MONTH_S)
    scrub.begin()
    await settled(scrub)
    for _ in range(2):
        scrub.hurry()
        await settled(scrub)
    assert [place.file for place in generation.damaged_files.all] == [NAMES[1]]
    assert sorted(generation.integrity.checks) == [1, 3, 4]
    path.write_bytes(sound)
    scrub.hurry()
    await settled(scrub)
    assert generation.damaged_files.all == []
    await scrub.close()
    await generation.close()
    kinds = [row.kind for row in read_ledger(tmp_path) if row.file == NAMES[1]]
    assert kinds == ["damaged", "sound_again"]


async def test_what_is_damaged_is_known_after_a_restart(generation: Generation, tmp_path: Path) -> None:
    path = tmp_path / NAMES[1]
    path.write_bytes(path.read_bytes()[:-60] + bytes(60))
    scrub = Scrub(Archive.of(generation), None)
    scrub.begin()
    scrub.hurry()
    await settled(scrub)
    await scrub.close()
    await generation.close()
    again = await Generation.open(tmp_path)
    assert [place.file for place in again.damaged_files.all] == [NAMES[1]]
    await again.close()


async def test_a_file_without_checksums_is_compared_with_its_digest(tmp_path: Path) -> None:
    built = BinlogBuilder(checksum=False).transaction(300)
    await fill(tmp_path, (NAMES[0], built.rotate(NAMES[1]).data), (NAMES[1], BinlogBuilder(checksum=False).data))
    generation = await Generation.open(tmp_path)
    async with asyncio.timeout(10):
        while generation.files[0].digest is None:
            await asyncio.sleep(0.01)
    data = bytearray((tmp_path / NAMES[0]).read_bytes())
    data[built.size - 200] ^= 1
    (tmp_path / NAMES[0]).write_bytes(data)
    assert file_digest(FileLayer(), tmp_path / NAMES[0], len(data)) != generation.files[0].digest
    scrub = Scrub(Archive.of(generation), None)
    scrub.begin()
    scrub.hurry()
    await settled(scrub)
    assert [place.file for place in generation.damaged_files.all] == [NAMES[0]]
    await scrub.close()
    await generation.close()


async def test_a_slow_scrub_ends_at_once(generation: Generation, tmp_path: Path) -> None:
    make_old(tmp_path, 400_000)
    scrub = Scrub(Archive.of(generation), 1e12)
    make_old(tmp_path, 20_000_000)
    scrub.begin()
    async with asyncio.timeout(10):
        await scrub.close()


async def test_an_index_that_does_not_fit_is_a_row_in_the_ledger_and_no_damage(
    generation: Generation, tmp_path: Path
) -> None:
    (tmp_path / f"{NAMES[0]}.idx").unlink()
    scrub = Scrub(Archive.of(generation), None)
    scrub.begin()
    for _ in range(2):
        scrub.hurry()
        await settled(scrub)
    await scrub.close()
    assert generation.damaged_files.all == []
    await generation.close()
    assert [row.file for row in read_ledger(tmp_path) if row.kind == "scrub_finding"] == [f"{NAMES[0]}.idx"]
