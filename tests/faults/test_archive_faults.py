"""Disasters of the disk and the process: nothing incomplete is ever published, nothing whole and synced is ever lost."""

import asyncio
import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from protocol.position import Position
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.catalog_thread import CatalogThread
from relay.archive.generation import Generation, GenerationState
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.files import Buffer, FileLayer
from relay.archive.write.options import ArchiveOptions, PublishPolicy, SyncPolicy
from relay.archive.write.run import Run
from relay.archive_inspection.listing import list_archive, read_ledger
from relay.archive_inspection.verify import verify_archive
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder, runs_of
from tests.support.forgetful_disk import ForgetfulDisk
from tests.support.power_cut import cut_power
from tests.support.small_disk import small_disk

FIRST = "mysql-bin.000001"
SECOND = "mysql-bin.000002"
REPOSITORY = Path(__file__).resolve().parents[2]


def small(flavour: str = "mysql") -> BinlogBuilder:
    return BinlogBuilder(flavour).ddl().transaction(10, 40).transaction(5).ddl("DROP TABLE t")


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
async def test_a_file_cut_at_any_byte_comes_back_to_its_last_whole_transaction(tmp_path: Path, flavour: str) -> None:
    built = small(flavour)
    whole = tmp_path / "whole"
    await fill(whole, (FIRST, built.data))
    wrong = []
    for size in range(built.events[0].end, built.size + 1):
        copy = tmp_path / "copy"
        copy.mkdir()
        (copy / FIRST).write_bytes(built.data[:size])
        generation = await Generation.open(copy)
        end = generation.end
        file = generation.files[0]
        await generation.close()
        expected = built.boundary_at_or_before(size)
        if (end, file.events, (copy / FIRST).stat().st_size) != (
            Position(FIRST, expected),
            built.events_before(expected),
            expected,
        ):
            wrong.append((size, end, file.events))
        shutil.rmtree(copy)
    assert wrong == []


async def test_an_archive_cut_at_any_byte_and_filled_again_is_whole(tmp_path: Path) -> None:
    built = small()
    for size in range(built.events[0].end, built.size + 1, 7):
        copy = tmp_path / str(size)
        copy.mkdir()
        (copy / FIRST).write_bytes(built.data[:size])
        generation = await Generation.open(copy)
        assert generation.end is not None
        await append_all(generation, built.data, start=generation.end.offset)
        await generation.close()
        assert ((copy / FIRST).read_bytes(), list(verify_archive(copy, deep=True))) == (bytes(built.data), [])


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("missing", [0, 1, 4, 5, 900_000, 1_500_000])
async def test_a_file_cut_inside_a_big_event_comes_back_to_its_last_whole_transaction(
    tmp_path: Path, checksum: bool, missing: int
) -> None:
    built = BinlogBuilder(checksum=checksum).transaction(9).transaction(30, 2_000_000)
    size = built.size - missing
    (tmp_path / FIRST).write_bytes(built.data[:size])
    generation = await Generation.open(tmp_path)
    end, events = generation.end, generation.files[0].events
    await generation.close()
    expected = built.boundary_at_or_before(size)
    assert (end, events) == (Position(FIRST, expected), built.events_before(expected))


async def test_a_zero_filled_tail_is_cut_off(tmp_path: Path) -> None:
    built = small()
    tmp_path.joinpath(FIRST).write_bytes(built.data + bytes(5000))
    generation = await Generation.open(tmp_path)
    assert generation.end == Position(FIRST, built.size)
    await generation.close()


async def test_bad_bytes_that_are_cut_off_are_kept_aside(tmp_path: Path) -> None:
    built = small()
    bad = bytearray(built.data)
    at = built.boundaries[-2]
    bad[at + 25] ^= 1
    tmp_path.joinpath(FIRST).write_bytes(bad)
    await (await Generation.open(tmp_path)).close()
    assert (tmp_path / f"{FIRST}.lost-{at}").read_bytes() == bad[at:]
    assert [row.kind for row in read_ledger(tmp_path)] == ["trimmed_bad_bytes"]


@pytest.mark.parametrize("seed", range(25))
async def test_after_a_power_cut_everything_synced_is_there_and_nothing_incomplete(tmp_path: Path, seed: int) -> None:
    survivor = tmp_path / "after"
    cut = await cut_power(tmp_path / "before", survivor, small, seed)

    again = await Generation.open(survivor)
    assert again.end is not None and again.end >= cut.promised
    for file in again.files:
        stored = (survivor / file.name).read_bytes()
        assert stored == cut.built[file.name].data[: len(stored)] and len(stored) in cut.built[file.name].boundaries
    newest = again.files[-1]
    await append_all(again, cut.built[newest.name].data, start=again.end.offset)
    await again.close()
    assert list(verify_archive(survivor, deep=True)) == []


async def test_a_full_disk_publishes_nothing_incomplete_and_names_itself(tmp_path: Path) -> None:
    built = small()
    whole = built.size
    disk = ForgetfulDisk()
    failures: list[ArchiveWriteError] = []
    generation = await Generation.open(tmp_path, ArchiveOptions(on_failure=failures.append), layer=disk)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    built.transaction(400)
    disk.room_bytes = 150
    await append_all(generation, built.data, start=whole)
    assert (generation.state, generation.end, generation.received) == (
        GenerationState.FAILED,
        Position(FIRST, whole),
        Position(FIRST, whole),
    )
    assert (failures[0].errno, failures[0].file, (tmp_path / FIRST).stat().st_size) == (errno.ENOSPC, FIRST, whole)
    await generation.close()


async def test_after_a_full_disk_the_writer_goes_on_where_it_was(tmp_path: Path) -> None:
    built = small()
    whole = built.size
    disk = ForgetfulDisk()
    generation = await Generation.open(tmp_path, ArchiveOptions(on_failure=lambda error: None), layer=disk)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    built.transaction(400)
    disk.room_bytes = 150
    await append_all(generation, built.data, start=whole)
    with pytest.raises(ArchiveWriteError):
        generation.append(Run(b"x", 4, whole + 1, b"", 0, 0, 0))
    disk.room_bytes = None
    assert await generation.reopen_writer() == Position(FIRST, whole)
    await append_all(generation, built.data, start=whole)
    await generation.close()
    assert ((tmp_path / FIRST).read_bytes(), list(verify_archive(tmp_path, deep=True))) == (bytes(built.data), [])


@pytest.mark.parametrize("room", range(0, 400, 37))
async def test_a_disk_that_fills_while_a_file_is_made_leaves_the_one_before(tmp_path: Path, room: int) -> None:
    one, two = small().rotate(SECOND), small()
    disk = ForgetfulDisk()
    generation = await Generation.open(tmp_path, ArchiveOptions(on_failure=lambda error: None), layer=disk)
    await generation.begin_file(FIRST)
    await append_all(generation, one.data)
    await generation.begin_file(SECOND)
    disk.room_bytes = room
    await append_all(generation, two.data)
    assert (generation.state, generation.end) == (GenerationState.FAILED, Position(FIRST, one.size))
    disk.room_bytes = None
    await generation.reopen_writer()
    await generation.begin_file(SECOND)
    await append_all(generation, two.data)
    await generation.close()
    assert list(verify_archive(tmp_path, deep=True)) == []


@pytest.mark.parametrize("step", ["sync of the directory", "line of the list"])
async def test_a_file_whose_making_failed_is_listed_once_when_it_is_made(tmp_path: Path, step: str) -> None:
    class Disk(ForgetfulDisk):
        fails_at = ""

        def sync_directory(self, directory: Path) -> None:
            self.fail("sync of the directory")
            super().sync_directory(directory)

        def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
            if bytes(buffers[0]).startswith(b"./"):
                self.fail("line of the list")
            return super().pwritev(fd, buffers, offset)

        def fail(self, at: str) -> None:
            if self.fails_at == at:
                self.fails_at = ""
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    one, two = small().rotate(SECOND), small()
    disk = Disk()
    generation = await Generation.open(tmp_path, ArchiveOptions(on_failure=lambda error: None), layer=disk)
    await generation.begin_file(FIRST)
    await append_all(generation, one.data)
    await generation.begin_file(SECOND)
    disk.fails_at = step
    await append_all(generation, two.data)
    assert generation.state is GenerationState.FAILED
    await generation.reopen_writer()
    await generation.begin_file(SECOND)
    await append_all(generation, two.data)
    await generation.close()
    assert (tmp_path / "mysql-bin.index").read_text().splitlines() == [f"./{FIRST}", f"./{SECOND}"]


async def test_short_writes_are_continued(tmp_path: Path) -> None:
    built = small()
    disk = ForgetfulDisk()
    disk.write_in_pieces = True
    generation = await Generation.open(tmp_path, layer=disk)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data, [300, 500])
    await generation.close()
    assert (tmp_path / FIRST).read_bytes() == built.data


async def test_a_failed_sync_publishes_nothing_under_publish_synced(tmp_path: Path) -> None:
    built = small()
    whole = built.size
    disk = ForgetfulDisk()
    failed = asyncio.Event()
    generation = await Generation.open(
        tmp_path,
        ArchiveOptions(
            sync=SyncPolicy.TRANSACTION, publish=PublishPolicy.SYNCED, on_failure=lambda error: failed.set()
        ),
        layer=disk,
    )
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    while generation.end != Position(FIRST, whole):
        await asyncio.sleep(0.005)
    disk.sync_error = errno.EIO
    built.transaction(10)
    await append_all(generation, built.data, start=whole)
    await asyncio.wait_for(failed.wait(), 10)
    assert generation.end == Position(FIRST, whole)
    with pytest.raises(ArchiveWriteError):
        await generation.reopen_writer()
    disk.sync_error = None
    await generation.reopen_writer()
    assert generation.end == Position(FIRST, built.size)
    await generation.close()


@pytest.fixture
def full_soon(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    with small_disk(tmp_path / "disk", "4m") as place:
        yield place


async def test_a_really_full_file_system_is_survived(full_soon: Path) -> None:
    built = BinlogBuilder()
    while built.size < 8 << 20:
        built.transaction(60_000)
    generation = await Generation.open(full_soon, ArchiveOptions(on_failure=lambda error: None))
    await generation.begin_file(FIRST)
    runs = list(runs_of(built.data, range(0, built.size, 100_000)))
    for run in runs:
        try:
            generation.append(run)
        except ArchiveWriteError:
            break
        await asyncio.sleep(0)
    while generation.queued_bytes:
        await asyncio.sleep(0.005)
    failure, end = generation.failure, generation.end
    with contextlib.suppress(ArchiveWriteError):
        await generation.close()  # the catalog has no room either
    # Whichever finds the disk full first, the writer or the catalog.
    assert failure is not None and failure.errno == errno.ENOSPC
    assert end is not None and end.offset in built.boundaries
    size = (full_soon / FIRST).stat().st_size
    assert (full_soon / FIRST).read_bytes() == built.data[:size] and size in built.boundaries


def test_a_catalog_that_finds_no_room_for_its_memory_index_says_that_the_disk_is_full(full_soon: Path) -> None:
    path = full_soon / "catalog.sqlite"
    Catalog.open(path, FileLayer()).close()
    with (full_soon / "other").open("wb", buffering=0) as other, pytest.raises(OSError, match="No space left"):
        while True:
            other.write(bytes(4096))
    failures: list[ArchiveWriteError] = []
    thread = CatalogThread(path, FileLayer(), failures.append)
    thread.start()
    thread.submit(lambda catalog: catalog.add_ledger(LedgerRow(0.0, "test", FIRST, 4, "a row")))
    thread.stop()
    assert [failure.errno for failure in failures] == [errno.ENOSPC] * len(failures) != []
    assert "no space is left" in str(failures[0])
    assert "rebuild" not in failures[0].advice, "a whole catalog is not to be made again"


def test_a_catalog_that_found_no_room_has_a_row_in_the_ledger_when_there_is_room_again(full_soon: Path) -> None:
    path = full_soon / "catalog.sqlite"
    Catalog.open(path, FileLayer()).close()
    failures: list[ArchiveWriteError] = []
    thread = CatalogThread(path, FileLayer(), failures.append)
    thread.start()
    with (full_soon / "other").open("wb", buffering=0) as other, pytest.raises(OSError, match="No space left"):
        while True:
            other.write(bytes(4096))
    for number in range(3):
        thread.submit(lambda catalog, n=number: catalog.add_ledger(LedgerRow(float(n), "test", FIRST, 4, f"row {n}")))
    while len(failures) < 3:
        time.sleep(0.01)
    (full_soon / "other").unlink()
    thread.retry()
    thread.stop()
    catalog = Catalog.open(path, FileLayer())
    rows = catalog.ledger()
    catalog.close()
    assert [(row.kind, row.text[:5]) for row in rows[:3]] == [("test", "row 0"), ("test", "row 1"), ("test", "row 2")]
    assert [(row.kind, row.file) for row in rows[3:]] == [("write_failed", "catalog.sqlite")]
    assert "no space is left" in rows[3].text


KILLED_PROGRAM = """
import asyncio, sys
from pathlib import Path
from relay.archive.generation import Generation
from relay.archive.write.options import ArchiveOptions, SyncPolicy
from tests.support.binlog_builder import BinlogBuilder, runs_of

async def main():
    generation = await Generation.open(Path(sys.argv[1]), ArchiveOptions(sync=SyncPolicy(sys.argv[2])))
    number = generation.files[-1].number + 1 if generation.files else 1
    while True:
        built = BinlogBuilder(timestamp=1000 + number)
        for size in range(60):
            built.transaction(size * 100, 30)
        built.rotate(f"mysql-bin.{number + 1:06d}")
        await generation.begin_file(f"mysql-bin.{number:06d}", previous_cut=False)
        for run in runs_of(built.data, range(0, built.size, 1700)):
            generation.append(run)
            print(generation.end, flush=True)
            await asyncio.sleep(0)
        number += 1

asyncio.run(main())
"""


@pytest.mark.parametrize("sync", ["transaction", "interval", "none"])
def test_kill_nine_at_random_moments_loses_nothing_that_was_published(tmp_path: Path, sync: str) -> None:
    chance = random.Random(sync)
    program = textwrap.dedent(KILLED_PROGRAM)
    for _ in range(4):
        printed = tmp_path.with_name("printed")
        with printed.open("w") as out:
            process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path), sync], cwd=REPOSITORY, stdout=out)
            try:
                process.wait(timeout=chance.uniform(0.6, 1.6))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            process.wait()
        assert process.returncode == -signal.SIGKILL, "the writing program ended by itself"
        lines = printed.read_text().splitlines()
        published = next((line for line in reversed(lines) if line.count(":") == 1 and line[-1:].isdigit()), None)

        async def reopen() -> Position | None:
            generation = await Generation.open(tmp_path)
            end = generation.end
            await generation.close()
            return end

        end = asyncio.run(reopen())
        if published is not None and end is not None and lines[-1] == published:
            name, _, offset = published.partition(":")
            assert end >= Position(name, int(offset))
        findings = list(verify_archive(tmp_path, deep=True))
        assert findings == []
    assert all(file.sealed for file in list_archive(tmp_path)[:-1])


async def test_a_finished_file_that_was_shortened_is_served_up_to_its_last_whole_transaction(tmp_path: Path) -> None:
    first = BinlogBuilder().transaction(10).transaction(10, 10).rotate(SECOND)
    await fill(tmp_path, (FIRST, first.data), (SECOND, BinlogBuilder().transaction(5).data))
    os.truncate(tmp_path / FIRST, first.size - 60)
    generation = await Generation.open(tmp_path)
    file = generation.file(FIRST)
    assert file is not None
    assert (file.damaged, file.end) == (True, first.boundary_at_or_before(first.size - 61))
    await generation.close()
    assert [row.kind for row in read_ledger(tmp_path)] == ["damaged"]


async def test_a_newest_finished_file_that_was_shortened_goes_on_from_its_last_transaction(tmp_path: Path) -> None:
    first = BinlogBuilder().transaction(10).rotate(SECOND)
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, first.data)
    await generation.begin_file(SECOND)
    await generation.close()
    os.truncate(tmp_path / FIRST, first.size - 5)
    generation = await Generation.open(tmp_path)
    assert generation.end == Position(FIRST, first.boundary_at_or_before(first.size - 5))
    assert generation.open_file is not None
    await generation.close()
    assert "newest_shortened" in [row.kind for row in read_ledger(tmp_path)]
