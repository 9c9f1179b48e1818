"""After an fsync that failed, the system may have dropped bytes that it shows as written."""

import asyncio
import errno
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from relay.archive.generation import Generation, GenerationState
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.files import Buffer, FileLayer
from relay.archive.write.options import ArchiveOptions, PublishPolicy, SyncPolicy
from tests.support.binlog_builder import BinlogBuilder, runs_of

NAME = "mysql-bin.000001"


class FailingSync(FileLayer):
    """Syncs fail while `broken`; remembers what is written to binlogs."""

    def __init__(self) -> None:
        self.broken = False
        self.written: list[tuple[int, int]] = []

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        count = super().pwritev(fd, buffers, offset)
        if os.readlink(f"/proc/self/fd/{fd}").endswith(NAME):
            self.written.append((offset, offset + count))
        return count

    def sync_data(self, fd: int) -> None:
        if self.broken:
            raise OSError(errno.EIO, "Input/output error")
        super().sync_data(fd)


async def until(condition: object) -> None:
    async with asyncio.timeout(10):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.005)


async def test_what_a_failed_sync_may_have_lost_is_written_again_before_it_counts_as_synced(tmp_path: Path) -> None:
    built = BinlogBuilder().ddl().transaction(30)
    layer = FailingSync()
    generation = await Generation.open(
        tmp_path / "archive",
        ArchiveOptions(
            sync=SyncPolicy.INTERVAL, publish=PublishPolicy.WRITTEN, sync_interval_s=0.02, on_failure=lambda error: None
        ),
        layer=layer,
    )
    try:
        await generation.begin_file(NAME)
        first, *rest = runs_of(built.data, [built.boundaries[1]])
        generation.append(first)
        await until(lambda: generation.synced is not None and generation.synced.offset == built.boundaries[1])
        layer.broken = True
        for run in rest:
            generation.append(run)
        await until(lambda: generation.state is GenerationState.FAILED)
        layer.broken = False
        layer.written.clear()
        end = await generation.reopen_writer()
        assert end is not None and end.offset == built.size
        assert layer.written == [(built.boundaries[1], built.size)]
    finally:
        await generation.close()
    assert (tmp_path / "archive" / NAME).read_bytes() == bytes(built.data)


class FailsOnce(FileLayer):
    """While `armed`, the next sync of the sync thread waits for `go` and fails; later ones say that all is well."""

    def __init__(self) -> None:
        self.armed = False
        self.entered, self.go = threading.Event(), threading.Event()

    def sync_data(self, fd: int) -> None:
        if self.armed and threading.current_thread().name == "archive-sync":
            self.armed = False
            self.entered.set()
            self.go.wait(10)
            raise OSError(errno.EIO, "Input/output error")
        super().sync_data(fd)


@pytest.mark.parametrize("then", ["the next file", "a lost connection", "the end"])
async def test_a_sync_behind_one_that_failed_is_not_believed(tmp_path: Path, then: str) -> None:
    built = BinlogBuilder().ddl().transaction(30)
    layer = FailsOnce()
    generation = await Generation.open(
        tmp_path / "archive",
        ArchiveOptions(sync=SyncPolicy.INTERVAL, sync_interval_s=0.02, on_failure=lambda error: None),
        layer=layer,
    )
    try:
        await generation.begin_file(NAME)
        first, *rest = runs_of(built.data, [built.boundaries[1]])
        generation.append(first)
        await until(lambda: generation.synced is not None and generation.synced.offset == built.boundaries[1])
        layer.armed = True
        for run in rest:
            generation.append(run)
        await until(layer.entered.is_set)
        asyncio.get_running_loop().call_later(0.05, layer.go.set)
        with pytest.raises(ArchiveWriteError):
            if then == "the next file":
                await generation.begin_file("mysql-bin.000002")
            elif then == "a lost connection":
                await generation.trim()
            else:
                await generation.close()
        assert generation.synced is not None and generation.synced.offset == built.boundaries[1]
    finally:
        await generation.close()
