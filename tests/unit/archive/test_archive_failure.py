"""Who is told that an archive takes nothing any more, when, and how long it is seen."""

import asyncio
import errno
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from relay.archive.generation import Generation, GenerationState
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.files import Buffer, FileLayer
from relay.archive.write.options import ArchiveOptions
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder

NAME = "mysql-bin.000001"


class RefusingDisk(FileLayer):
    """Writes of binlogs fail while `refuses`."""

    refuses = False

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        if self.refuses and os.readlink(f"/proc/self/fd/{fd}").endswith(NAME):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().pwritev(fd, buffers, offset)


@pytest.mark.parametrize("watches", ["before", "after", "no more"])
async def test_who_watches_for_a_failure_is_told_when_it_comes_or_that_it_is_there(
    tmp_path: Path, watches: str
) -> None:
    built = BinlogBuilder().ddl().transaction(30)
    whole = built.size
    built.transaction(50)
    disk = RefusingDisk()
    told: list[ArchiveWriteError] = []
    generation = await Generation.open(tmp_path, ArchiveOptions(on_failure=lambda error: None), layer=disk)
    await generation.begin_file(NAME)
    await append_all(generation, built.data[:whole])
    if watches != "after":
        generation.watch_failure(told.append)
    if watches == "no more":
        generation.unwatch_failure(told.append)
    disk.refuses = True
    await append_all(generation, built.data, start=whole)
    await failed(generation)
    if watches == "after":
        assert told == []
        generation.watch_failure(told.append)
    assert told == ([] if watches == "no more" else [generation.failure])
    disk.refuses = False
    await generation.reopen_writer()
    await append_all(generation, built.data, start=whole)
    await generation.close()
    assert len(told) == (watches != "no more")


@pytest.mark.parametrize("ends_by", ["a transaction", "time"])
async def test_a_failure_is_seen_until_another_attempt_has_written_something_or_goes_well_for_long(
    tmp_path: Path, ends_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = BinlogBuilder().ddl().transaction(30)
    whole = built.size
    built.transaction(50)
    disk = RefusingDisk()
    generation = await Generation.open(tmp_path, ArchiveOptions(on_failure=lambda error: None), layer=disk)
    await generation.begin_file(NAME)
    await append_all(generation, built.data[:whole])
    await published(generation, whole)
    assert generation.write_trouble is None
    disk.refuses = True
    await append_all(generation, built.data, start=whole)
    await failed(generation)
    failure = generation.failure
    assert generation.write_trouble is failure is not None
    disk.refuses = False
    await generation.reopen_writer()
    assert generation.state is GenerationState.OPEN
    assert generation.write_trouble is failure, "nothing is written yet"
    if ends_by == "time":
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 31.0)
    else:
        await append_all(generation, built.data, start=whole)
        await published(generation, built.size)
    assert generation.write_trouble is None
    await generation.close()


async def failed(generation: Generation) -> None:
    async with asyncio.timeout(10):
        while generation.state is not GenerationState.FAILED:
            await asyncio.sleep(0.005)


async def published(generation: Generation, offset: int) -> None:
    async with asyncio.timeout(10):
        while generation.end is None or generation.end.offset < offset:
            await asyncio.sleep(0.005)
