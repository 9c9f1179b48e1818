"""SIGKILL at any step of a change of source: the old source is the archive's, or the new one is, and nothing is lost."""

import asyncio
import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from protocol.gtid.gtid_set import GtidSet
from relay.archive.archive import Archive
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.generation_directories import begun_generations, remove_prepared
from relay.archive.generation import Generation, GenerationState
from relay.archive.storage.archive_errors import ArchiveMisuse, ArchiveWriteError
from relay.archive.storage.files import LEDGER_TEXT_NAME, Buffer, FileLayer
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.verify import verify_generations
from tests.support.binlog_builder import runs_of
from tests.support.forgetful_disk import ForgetfulDisk
from tests.support.generation_filling import A, B, append_files, change_source, identity, mysql_series
from tests.support.killed_changes import FIRST_SOURCE, SECOND_SOURCE

REPOSITORY = Path(__file__).resolve().parents[2]
C = "cccccccc-3333-3333-3333-333333333333"
BEFORE = GtidSet.from_text(f"{A}:1-6")


def killed_at_each_step(directory: Path, what: str) -> list[Path]:
    """The archives that are left."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.killed_changes", str(directory), what],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [directory / str(step) for step in range(int(done.stdout.split()[-1]))]


async def state_after(directory: Path) -> tuple[list[int], list[str]]:
    """The generations that there are, and what is wrong with the archive."""
    wrong = []
    archive = await Archive.open(directory)
    numbers = [one.number for one in archive.all]
    ended = [one.ended for one in archive.all]
    if ended != [True] * (len(numbers) - 1) + [False]:
        wrong.append(f"ended: {ended}")
    executed = archive.executed
    if not isinstance(executed, GtidSet) or BEFORE - executed:
        wrong.append(f"executed: {executed}")
    first = archive.all[0]
    if {file.name: bytes(data) for file, (_name, data) in zip(first.files, FIRST_SOURCE, strict=True)} != {
        file.name: first.path(file.name).read_bytes() for file in first.files
    }:
        wrong.append("the first source's files are not as they were")
    if numbers == [1]:
        if (directory / "g0002").exists():
            wrong.append("the directory of the new one is still there")
        # The old source goes on in its file, and the change is made again.
        await append_files(archive, mysql_series(3, f"{A}:7", start=f"{A}:1-6"))
        await change_source(archive, identity(B, 2), SECOND_SOURCE)
    else:
        held = archive.current
        await append_files(archive, mysql_series(held.files[-1].number + 1, f"{B}:3", start=str(held.gtids.executed)))
    await archive.close()
    wrong += [f"{number}: {finding}" for number, finding in verify_generations(directory, deep=True)]
    kinds = [row.kind for path in (directory, directory / "g0002") for row in read_ledger(path)]
    if sorted(kinds) != ["generation_begun", "generation_ended"]:
        wrong.append(f"ledger: {kinds}")
    return numbers, wrong


async def states_after(directories: Sequence[Path]) -> list[tuple[list[int], list[str]]]:
    """Of each: its disk is waited for together with those of the others."""
    few = asyncio.Semaphore(8)

    async def one(directory: Path) -> tuple[list[int], list[str]]:
        async with few:
            return await state_after(directory)

    return await asyncio.gather(*map(one, directories))


async def test_after_a_kill_at_any_step_the_old_or_the_new_source_is_the_archives(tmp_path: Path) -> None:
    found = await states_after(killed_at_each_step(tmp_path, "change"))
    assert {step: wrong for step, (_numbers, wrong) in enumerate(found) if wrong} == {}
    outcomes = [numbers for numbers, _wrong in found]
    assert outcomes.count([1]) > 5 and outcomes.count([1, 2]) > 5, "the steps do not cover both sides of the decision"
    assert outcomes == sorted(outcomes), "the change went back"


async def test_after_a_kill_while_it_is_taken_back_the_old_source_is_the_archives(tmp_path: Path) -> None:
    found = await states_after(killed_at_each_step(tmp_path, "discard"))
    assert {step: result for step, result in enumerate(found) if result != ([1], [])} == {}
    assert len(found) > 10


class CuttingDisk(ForgetfulDisk):
    """Puts what a power cut would leave of `directory` into `pictures` before each call that changes the disk."""

    def __init__(self, directory: Path, pictures: Path) -> None:
        super().__init__()
        self.directory = directory
        self.pictures = pictures
        self.taken = 0
        self.catalog_before: list[Path] | None = None
        """None: no pictures are taken. Copies of the old source's catalog as it was before the change: what may be lost."""
        self._lock = threading.RLock()

    def _picture(self) -> None:
        if self.catalog_before is None:
            return
        survivor = self.pictures / str(self.taken)
        self.lose_power(self.directory, survivor, self.taken)
        now = [path for path in self.directory.glob("catalog*") if not path.name.endswith("-shm")]
        for path in self.catalog_before if self.taken % 2 else now:
            shutil.copy(path, survivor)
        if (survivor / "g0002").exists():
            for path in (self.directory / "g0002").glob("catalog*"):
                if not path.name.endswith("-shm"):
                    shutil.copy(path, survivor / "g0002")
        self.taken += 1

    def make_directory(self, path: Path) -> None:
        with self._lock:
            self._picture()
            super().make_directory(path)

    def create(self, path: Path) -> int:
        with self._lock:
            self._picture()
            fd = super().create(path)
            self.synced[os.fstat(fd).st_ino] = b""  # it may have the number of a file that is gone
            return fd

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        with self._lock:
            self._picture()
            return super().pwritev(fd, buffers, offset)

    def sync_data(self, fd: int) -> None:
        with self._lock:
            self._picture()
            super().sync_data(fd)

    def rename(self, source: Path, target: Path) -> None:
        with self._lock:
            self._picture()
            super().rename(source, target)

    def truncate(self, fd: int, size: int) -> None:
        with self._lock:
            self._picture()
            super().truncate(fd, size)

    def unlink(self, path: Path) -> None:
        with self._lock:
            self._picture()
            super().unlink(path)

    def sync_directory(self, directory: Path) -> None:
        with self._lock:
            self._picture()
            super().sync_directory(directory)


async def test_after_a_power_cut_at_any_step_the_old_or_the_new_source_is_the_archives(tmp_path: Path) -> None:
    directory, pictures, before = tmp_path / "archive", tmp_path / "pictures", tmp_path / "before"
    pictures.mkdir()
    disk = CuttingDisk(directory, pictures)
    await (await first_of(directory, disk)).close()
    archive = await Archive.open(directory, layer=disk)
    await archive.current.trim()
    before.mkdir()
    disk.catalog_before = [Path(shutil.copy(path, before)) for path in directory.glob("catalog.sqlite")]
    await change_source(archive, identity(B, 2), SECOND_SOURCE)
    disk.catalog_before = None
    await archive.close()
    found = await states_after([pictures / str(number) for number in range(disk.taken)])
    assert {number: wrong for number, (_numbers, wrong) in enumerate(found) if wrong} == {}
    outcomes = [numbers for numbers, _wrong in found]
    assert outcomes.count([1]) > 5 and outcomes.count([1, 2]) > 5, "the steps do not cover both sides of the decision"
    assert outcomes == sorted(outcomes), "the change went back"


@pytest.mark.parametrize("left", ["catalog.sqlite", "lock"])
async def test_a_directory_that_a_crash_left_half_made_is_removed(tmp_path: Path, left: str) -> None:
    archive = await Archive.open(tmp_path)
    await append_files(archive, FIRST_SOURCE)
    await archive.close()
    (tmp_path / "g0002").mkdir()
    (tmp_path / "g0002" / left).touch()
    assert (await state_after(tmp_path)) == ([1], [])


class FullDisk(FileLayer):
    """A disk that may have no room for another byte."""

    full = False

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().pwritev(fd, buffers, offset)


async def first_of(directory: Path, layer: FileLayer | None = None) -> Archive:
    archive = await Archive.open(directory, layer=layer)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, FIRST_SOURCE)
    return archive


async def test_a_full_disk_at_the_first_file_of_the_next_source_leaves_the_old_one_in_place(tmp_path: Path) -> None:
    disk = FullDisk()
    archive = await first_of(tmp_path, disk)
    prepared = await archive.prepare(identity(B, 2), "source-b:3306", SECOND_SOURCE[0][0])
    disk.full = True
    await append_files(archive, SECOND_SOURCE[:1])
    assert prepared.state is GenerationState.FAILED
    await archive.discard_prepared()
    disk.full = False
    await archive.close()
    assert await state_after(tmp_path) == ([1], [])


async def first_file_unheard_of(archive: Archive, directory: Path) -> None:
    """Begins the next generation: its first file is on the disk, and the event loop, which this keeps, was not told yet."""
    prepared = await archive.prepare(identity(B, 2), "source-b:3306", SECOND_SOURCE[0][0])
    name, data = SECOND_SOURCE[0]
    prepared.start_file(name)
    (run,) = runs_of(data)
    prepared.append(run)
    deadline = time.monotonic() + 10
    while not (directory / "g0002" / name).exists():
        assert time.monotonic() < deadline
        time.sleep(0.001)


async def test_a_first_file_that_nobody_has_heard_of_yet_is_a_change_that_has_happened(tmp_path: Path) -> None:
    archive = await first_of(tmp_path)
    await first_file_unheard_of(archive, tmp_path)
    await archive.discard_prepared()
    assert [one.number for one in archive.all] == [1, 2]
    await archive.settled()
    await append_files(archive, SECOND_SOURCE[1:])
    await archive.close()
    assert await state_after(tmp_path) == ([1, 2], [])


async def test_a_relay_that_ends_at_that_moment_closes_everything(tmp_path: Path) -> None:
    archive = await first_of(tmp_path)
    await first_file_unheard_of(archive, tmp_path)
    await archive.close()
    assert [one.state for one in archive.all] == [GenerationState.CLOSED, GenerationState.CLOSED]
    assert await state_after(tmp_path) == ([1, 2], [])


async def test_a_catalog_that_has_no_room_is_a_failure_of_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = await first_of(tmp_path)

    def refuse(self: Catalog, *_arguments: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch, pytest.raises(ArchiveWriteError, match="disk is full"):
        patch.setattr(Catalog, "set_origin", refuse)
        await archive.prepare(identity(B, 2), "source-b:3306", SECOND_SOURCE[0][0])
    await archive.discard_prepared()
    # Another one is tried; nothing of the first attempt is taken for its own.
    await archive.prepare(identity(C, 3), "source-c:3306", SECOND_SOURCE[0][0])
    (row,) = read_ledger(tmp_path / "g0002")
    assert "source-c" in row.text
    await archive.close()
    assert await state_after(tmp_path) == ([1], [])


async def test_what_an_attempt_left_is_not_taken_for_the_next_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = await first_of(tmp_path)

    async def refuse(*_arguments: Any, **_how: Any) -> Generation:
        raise ArchiveWriteError("no room", file=None, offset=None, errno=errno.ENOSPC)

    with monkeypatch.context() as patch, pytest.raises(ArchiveWriteError, match="no room"):
        patch.setattr(Generation, "open", refuse)
        await archive.prepare(identity(B, 2), "source-b:3306", SECOND_SOURCE[0][0])
    await archive.prepare(identity(C, 3), "source-c:3306", SECOND_SOURCE[0][0])
    (row,) = read_ledger(tmp_path / "g0002")
    assert "source-c" in row.text
    await archive.close()


class Vanishing(FileLayer):
    """The directory of the prepared generation goes away while somebody looks."""

    def names(self, directory: Path) -> list[str]:
        if directory.name == "g0002":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(directory))
        return super().names(directory)


async def test_whoever_looks_while_a_prepared_generation_is_taken_back_sees_the_others(tmp_path: Path) -> None:
    await (await first_of(tmp_path)).close()
    (tmp_path / "g0002").mkdir()
    assert begun_generations(tmp_path, Vanishing()) == [(1, tmp_path)]


async def test_the_ledger_of_a_purged_source_stays_when_its_catalog_cannot_be_read_just_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a catalog without its tables is one of a change that came to nothing."""
    path = tmp_path / "g0002"
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-6"))
    made = await change_source(archive, identity(B, 2), mysql_series(2, f"{A}:6-7", start=f"{A}:1-5"))
    await change_source(archive, identity(A, 1), mysql_series(4, f"{A}:7-8", start=f"{A}:1-6"))
    await made.purge([made.files[0].name], "a test")
    await archive.forget_emptied()
    await archive.close()
    connect = sqlite3.connect

    def too_many(database: str, *arguments: Any, **how: Any) -> sqlite3.Connection:
        if "g0002" in str(database):
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error
        return connect(database, *arguments, **how)

    with pytest.raises(ArchiveMisuse, match="has begun"):  # says its copy as text
        remove_prepared(tmp_path, 2, FileLayer())
    (path / LEDGER_TEXT_NAME).unlink()
    monkeypatch.setattr(sqlite3, "connect", too_many)
    with pytest.raises(OSError, match="unable to open"):
        remove_prepared(tmp_path, 2, FileLayer())
    monkeypatch.undo()
    assert [row.kind for row in read_ledger(path)] == ["generation_begun", "generation_ended", "purged"]
