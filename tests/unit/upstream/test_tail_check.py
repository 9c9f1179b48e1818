"""The archive's own side of the comparison with another server's file."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from relay.archive.generation import Generation
from relay.archive.storage.archive_errors import ArchiveCorrupt
from relay.archive.storage.files import Buffer, FileLayer
from relay.upstream.attach.tail_check import compare_tail
from relay.upstream.source.connection import SourceConnection
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder

FILE = "mysql-bin.000001"


class Unreadable(FileLayer):
    """A disk that reads nothing more, once it is broken."""

    broken = False

    def preadv(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        if self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().preadv(fd, buffers, offset)


async def test_an_archive_that_cannot_be_read_is_a_trouble_of_the_archive(tmp_path: Path) -> None:
    await fill(tmp_path, (FILE, BinlogBuilder().transaction(5).data))
    disk = Unreadable()
    generation = await Generation.open(tmp_path, layer=disk)
    assert generation.end is not None
    disk.broken = True
    with pytest.raises(ArchiveCorrupt, match="what stands before the archive's end cannot be read: Input/output error"):
        await compare_tail(SourceConnection.__new__(SourceConnection), generation, generation.end)
    await generation.close()
