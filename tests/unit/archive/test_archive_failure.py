"""Who is told that an archive takes nothing any more, and when."""

import asyncio
import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from relay.archive.generation import Archive, ArchiveState
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.files import Buffer, FileLayer
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
    archive = await Archive.open(tmp_path, layer=disk, on_failure=lambda error: None)
    await archive.begin_file(NAME)
    await append_all(archive, built.data[:whole])
    if watches != "after":
        archive.watch_failure(told.append)
    if watches == "no more":
        archive.unwatch_failure(told.append)
    disk.refuses = True
    await append_all(archive, built.data, start=whole)
    async with asyncio.timeout(10):
        while archive.state is not ArchiveState.FAILED:
            await asyncio.sleep(0.005)
    if watches == "after":
        assert told == []
        archive.watch_failure(told.append)
    assert told == ([] if watches == "no more" else [archive.failure])
    disk.refuses = False
    await archive.reopen_writer()
    await append_all(archive, built.data, start=whole)
    await archive.close()
    assert len(told) == (watches != "no more")
