"""Files whose events have no checksums, and their sums: power cuts, kills and full disks at any moment."""

import asyncio
import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from relay.archive.generation import Generation
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.files import Buffer, FileLayer
from relay.archive.sums.block_sum import BLOCK_BYTES, sum_paths
from relay.archive.write.options import ArchiveOptions, SyncPolicy
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.verify import verify_archive
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder, runs_of
from tests.support.forgetful_disk import ForgetfulDisk
from tests.support.power_cut import cut_power

FIRST = "mysql-bin.000001"
SECOND = "mysql-bin.000002"


def plain() -> BinlogBuilder:
    return BinlogBuilder(checksum=False).ddl().transaction(10, 40)


@pytest.mark.parametrize("seed", range(25))
async def test_after_a_power_cut_what_was_synced_is_there_and_the_sums_agree_with_what_is_received_behind_it(
    tmp_path: Path, seed: int
) -> None:
    survivor = tmp_path / "after"
    cut = await cut_power(tmp_path / "before", survivor, plain, seed)

    again = await Generation.open(survivor)
    assert again.end is not None and again.end >= cut.promised
    promised, built = cut.promised, cut.built
    newest = again.files[-1].name
    kept = promised.offset if promised.file == newest else 4
    assert (survivor / newest).read_bytes()[:kept] == built[newest].data[:kept]
    assert again.end.offset in built[newest].boundaries
    await append_all(again, built[newest].data, start=again.end.offset)
    await again.close()
    assert [finding for finding in verify_archive(survivor, deep=True) if "block" in finding.what] == []


class CopyingDisk(FileLayer):
    """Copies the directory before each call that changes something in it: what a kill there would leave."""

    def __init__(self, directory: Path, copies: Path) -> None:
        self._directory = directory
        self._copies = copies
        self.taken = 0
        copies.mkdir()

    def _picture(self) -> None:
        copy = self._copies / str(self.taken)
        copy.mkdir()
        for path in self._directory.iterdir():
            if not path.name.startswith("catalog"):
                shutil.copy(path, copy)
        self.taken += 1

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        self._picture()
        return super().pwritev(fd, buffers, offset)

    def truncate(self, fd: int, size: int) -> None:
        self._picture()
        super().truncate(fd, size)

    def rename(self, source: Path, target: Path) -> None:
        self._picture()
        super().rename(source, target)


async def append_each(generation: Generation, data: bytes | bytearray, start: int) -> None:
    """Run by run, each written before the next comes."""
    for run in runs_of(data, range(start + 3000, len(data), 5000), start=start):
        written = asyncio.Event()
        generation.append(run._replace(on_written=written.set))
        await written.wait()


async def test_a_kill_at_any_step_leaves_sums_that_agree_with_what_is_received_behind_it(tmp_path: Path) -> None:
    directory, copies = tmp_path / "archive", tmp_path / "copies"
    built = plain().transaction(*[700] * 40).transaction(3).transaction(*[700] * 30)
    directory.mkdir()
    disk = CopyingDisk(directory, copies)
    generation = await Generation.open(directory, ArchiveOptions(sync=SyncPolicy.NONE), layer=disk)
    await generation.begin_file(FIRST)
    inside = built.boundaries[-2] + 9000
    middle = max(event.end for event in built.events if event.end <= inside)
    await append_each(generation, built.data[:middle], 4)
    end = await generation.trim()
    assert end is not None
    await append_each(generation, built.data, end.offset)
    await generation.begin_file(SECOND)
    await generation.close()
    assert disk.taken > 30
    wrong = {}
    for step in range(disk.taken):
        copy = copies / str(step)
        again = await Generation.open(copy)
        if again.end is None:
            await again.begin_file(FIRST)
        await append_all(again, built.data, start=again.end.offset if again.end is not None else 4)
        await again.close()
        found = [str(finding) for finding in verify_archive(copy, deep=True)]
        kinds = {row.kind for row in read_ledger(copy)} - {"trimmed_tail", "foreign_file"}
        if found or kinds or (copy / FIRST).read_bytes() != built.data:
            wrong[step] = found, kinds
    assert wrong == {}


@pytest.mark.parametrize("room", [0, 1, 50, 3000, 17_000, 17_012, 17_030, 40_000])
async def test_a_full_disk_at_any_byte_leaves_sums_that_agree(tmp_path: Path, room: int) -> None:
    built = plain()
    whole = built.size
    built.transaction(*[700] * 60)
    disk = ForgetfulDisk()
    failures: list[ArchiveWriteError] = []
    generation = await Generation.open(tmp_path, ArchiveOptions(on_failure=failures.append), layer=disk)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data[:whole])
    disk.room_bytes = room
    await append_all(generation, built.data, range(whole, built.size, 9000), start=whole)
    assert [failure.errno for failure in failures] == [errno.ENOSPC]
    disk.room_bytes = None
    end = await generation.reopen_writer()
    assert end is not None
    await append_all(generation, built.data, start=end.offset)
    await generation.close()
    assert (tmp_path / FIRST).read_bytes() == built.data
    assert list(verify_archive(tmp_path, deep=True)) == []


async def test_a_hole_that_a_power_cut_left_inside_an_event_is_found_and_fetched_again(tmp_path: Path) -> None:
    built = plain().transaction(3).transaction(70_000)
    generation = await Generation.open(tmp_path, ArchiveOptions(sync=SyncPolicy.NONE))
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in tmp_path.iterdir():
        if path.is_file() and not path.name.startswith("catalog"):
            shutil.copy(path, copy)
    await generation.close()
    with (copy / FIRST).open("r+b") as file:
        os.pwrite(file.fileno(), bytes(4096), 2 * BLOCK_BYTES + 4096)
    again = await Generation.open(copy)
    assert again.end is not None and again.end.offset == built.boundaries[-2]
    await append_all(again, built.data, start=again.end.offset)
    await again.close()
    assert (copy / FIRST).read_bytes() == built.data
    assert list(verify_archive(copy, deep=True)) == []
    assert [row.kind for row in read_ledger(copy)] == ["trimmed_bad_bytes"]


async def test_a_purge_takes_the_sums_with_it_and_orphans_go_at_the_next_open(tmp_path: Path) -> None:
    generation = await Generation.open(tmp_path)
    for name in (FIRST, SECOND):
        await generation.begin_file(name)
        await append_all(generation, plain().data)
    await generation.purge([FIRST], "for a test")
    assert not any(place.exists() for place in sum_paths(tmp_path / FIRST))
    await generation.close()
    for place in sum_paths(tmp_path / FIRST):
        place.write_bytes(b"left by a kill")
    await (await Generation.open(tmp_path)).close()
    assert not any(place.exists() for place in sum_paths(tmp_path / FIRST))
    assert all(place.exists() for place in sum_paths(tmp_path / SECOND))
