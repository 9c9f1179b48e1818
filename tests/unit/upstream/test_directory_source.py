"""Following a directory: files that are replaced, cut, emptied or taken away, and a disk of ours that fails."""

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from relay.archive.generation import Generation, GenerationState
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.files import Buffer, FileLayer
from relay.archive.write.options import ArchiveOptions, PublishPolicy, SyncPolicy
from relay.config import DirectorySource
from relay.upstream.directory_source import DirectoryUpstream
from relay.upstream.source import reconnect
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_status import SourceLink
from tests.support.binlog_builder import BinlogBuilder

FIRST, SECOND, THIRD = "mysql-bin.000001", "mysql-bin.000002", "mysql-bin.000003"
WAIT_S = 10.0


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy is tested elsewhere."""
    monkeypatch.setattr(reconnect, "_PAUSES", dict.fromkeys(reconnect._PAUSES, (0.01, 0.05)))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An empty directory for binlogs."""
    path = tmp_path / "source"
    path.mkdir()
    return path


def one_file(following: str | None = None) -> BinlogBuilder:
    """Two groups, and a Rotate to `following`."""
    built = BinlogBuilder().ddl().transaction(30, 40)
    return built.rotate(following) if following else built


class HastyLayer(FileLayer):
    """Syncs nothing: five syncs stand before the first byte of a new archive, and on a busy disk each may take seconds."""

    def sync_data(self, fd: int) -> None:
        pass

    def sync_directory(self, directory: Path) -> None:
        pass


class Following:
    """An archive and the upstream that fills it."""

    def __init__(self, generation: Generation, task: asyncio.Task[UpstreamError], link: SourceLink) -> None:
        self.generation = generation
        self.task = task
        self.link = link

    async def until(self, condition: Callable[[], object]) -> None:
        """Waits until `condition()` is true; the upstream must not end before."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert not self.task.done(), self.task.result()
            assert time.monotonic() < deadline, (
                f"the archive ends at {self.archive.end} and is {self.archive.state}, failure {self.archive.failure}; "
                f"the source: {self.link.phase}, error {self.link.last_error!r}"
            )
            await asyncio.sleep(0.01)

    async def until_end(self, file: str, offset: int) -> None:
        """Waits until the archive ends there."""
        await self.until(lambda: str(self.generation.end) == f"{file}:{offset}")

    async def given_up(self) -> UpstreamError:
        """The error that ended it."""
        async with asyncio.timeout(WAIT_S):
            return await self.task


@asynccontextmanager
async def following(
    tmp_path: Path,
    source: Path,
    layer: FileLayer | None = None,
    publish: PublishPolicy = PublishPolicy.WRITTEN,
    unended: Sequence[str] = (),
) -> AsyncIterator[Following]:
    """Follows `source` into an archive under `tmp_path` until the block ends."""
    generation = await Generation.open(
        tmp_path / "archive",
        ArchiveOptions(sync=SyncPolicy.INTERVAL, publish=publish, sync_interval_s=0.02, on_failure=lambda error: None),
        layer=layer or HastyLayer(),
    )
    settings = DirectorySource(kind="directory", path=source, poll_interval_s=0.02, unended_files=list(unended))
    link = SourceLink()
    task = asyncio.create_task(DirectoryUpstream(generation, settings, link).run())
    try:
        yield Following(generation, task, link)
    finally:
        task.cancel()
        await asyncio.wait({task})
        await generation.close()


def replace(path: Path, data: bytes | bytearray) -> None:
    """As rsync does it: a new file, renamed over the old one."""
    beside = path.with_name(f".{path.name}.Xy12zQ")
    beside.write_bytes(data)
    os.rename(beside, path)


async def test_a_file_replaced_by_a_longer_copy_is_read_on_from_the_copy(tmp_path: Path, source: Path) -> None:
    built = one_file()
    (source / FIRST).write_bytes(built.data)
    async with following(tmp_path, source) as upstream:
        await upstream.until_end(FIRST, built.size)
        built.ddl("CREATE TABLE later (a INT)")
        replace(source / FIRST, built.data)
        await upstream.until_end(FIRST, built.size)


async def test_a_copy_replaced_when_the_next_file_is_there_too_is_read_to_its_end_first(
    tmp_path: Path, source: Path
) -> None:
    built, after = one_file(), one_file()
    (source / FIRST).write_bytes(built.data)
    async with following(tmp_path, source) as upstream:
        await upstream.until_end(FIRST, built.size)
        built.ddl("CREATE TABLE later (a INT)").rotate(SECOND)
        replace(source / FIRST, built.data)
        replace(source / SECOND, after.data)
        await upstream.until_end(SECOND, after.size)
        first = upstream.generation.file(FIRST)
        assert first is not None and first.end == built.size


async def test_a_file_that_is_not_all_there_is_waited_for_when_the_next_one_is_there_too(
    tmp_path: Path, source: Path
) -> None:
    built, after = one_file(), BinlogBuilder(started=False).ddl()
    (source / FIRST).write_bytes(built.data)
    (source / SECOND).write_bytes(after.data[:100])
    async with following(tmp_path, source) as upstream:
        await upstream.until(lambda: upstream.link.last_error)
        (source / SECOND).write_bytes(after.data)
        await asyncio.sleep(0.2)
        error = upstream.link.last_error
        assert error is not None and error.name == "file_incomplete" and f"ends at {built.size}" in str(error)
        assert str(upstream.generation.end) == f"{FIRST}:{built.size}"
        built.ddl("CREATE TABLE later (a INT)").rotate(SECOND)
        (source / FIRST).write_bytes(built.data)
        await upstream.until_end(SECOND, after.size)
        first = upstream.generation.file(FIRST)
        assert first is not None and first.end == built.size


async def test_a_file_that_somebody_named_needs_no_end(tmp_path: Path, source: Path) -> None:
    built, after = one_file(), BinlogBuilder(started=False).ddl()
    (source / FIRST).write_bytes(built.data)
    (source / SECOND).write_bytes(after.data)
    async with following(tmp_path, source, unended=[FIRST]) as upstream:
        await upstream.until_end(SECOND, after.size)


async def test_a_file_that_ends_in_a_crash_does_not_hold_up_the_next_one(tmp_path: Path, source: Path) -> None:
    built, after = one_file(), one_file()
    (source / FIRST).write_bytes(built.data)
    (source / SECOND).write_bytes(after.data)
    async with following(tmp_path, source) as upstream:
        await upstream.until_end(SECOND, after.size)


async def test_a_copy_replaced_by_another_file_is_refused(tmp_path: Path, source: Path) -> None:
    built = one_file()
    (source / FIRST).write_bytes(built.data)
    async with following(tmp_path, source) as upstream:
        await upstream.until_end(FIRST, built.size)
        replace(source / FIRST, BinlogBuilder(timestamp=1_700_005_000).ddl().ddl().transaction(30, 40).data)
        error = await upstream.given_up()
    assert (error.kind, error.name) == (FailureKind.IDENTITY, "source_was_reset")


async def test_a_file_cut_back_is_refused(tmp_path: Path, source: Path) -> None:
    built = one_file()
    (source / FIRST).write_bytes(built.data)
    async with following(tmp_path, source) as upstream:
        await upstream.until_end(FIRST, built.size)
        os.truncate(source / FIRST, built.size - 10)
        error = await upstream.given_up()
    assert error.name == "source_lost_its_tail"


async def test_a_file_cut_back_while_the_relay_was_away_is_refused_also_when_the_next_one_is_there(
    tmp_path: Path, source: Path
) -> None:
    built = one_file()
    (source / FIRST).write_bytes(built.data)
    async with following(tmp_path, source) as upstream:
        await upstream.until_end(FIRST, built.size)
    os.truncate(source / FIRST, built.boundaries[-2])
    (source / SECOND).write_bytes(one_file().data)
    async with following(tmp_path, source) as upstream:
        error = await upstream.given_up()
        assert upstream.generation.file(SECOND) is None
    assert error.name == "source_lost_its_tail"


async def test_a_file_taken_away_when_it_was_read_does_not_hold_up_the_next_one(tmp_path: Path, source: Path) -> None:
    built, after = one_file(SECOND), one_file()
    (source / FIRST).write_bytes(built.data)
    async with following(tmp_path, source) as upstream:
        await upstream.until_end(FIRST, built.size)
        (source / FIRST).unlink()
        (source / SECOND).write_bytes(after.data)
        await upstream.until_end(SECOND, after.size)


@pytest.mark.parametrize("size", [0, 3, 4, 20, 100])
async def test_a_file_without_a_whole_format_description_is_named_when_the_next_one_is_there(
    tmp_path: Path, source: Path, size: int
) -> None:
    first = one_file(SECOND)
    (source / FIRST).write_bytes(first.data)
    (source / SECOND).write_bytes(one_file(THIRD).data[:size])
    (source / THIRD).write_bytes(one_file().data)
    async with following(tmp_path, source) as upstream:
        error = await upstream.given_up()
    assert (error.kind, error.name) == (FailureKind.STREAM_BROKEN, "file_truncated")
    assert SECOND in error.what


async def test_a_file_that_grew_after_its_successor_was_begun_is_named(tmp_path: Path, source: Path) -> None:
    built, after = one_file(SECOND), one_file()
    (source / FIRST).write_bytes(built.data)
    (source / SECOND).write_bytes(b"")
    async with following(tmp_path, source) as upstream:
        await upstream.until(lambda: upstream.generation.open_file is None and upstream.generation.end)
    (source / FIRST).write_bytes(built.ddl().data)
    (source / SECOND).write_bytes(after.data)
    async with following(tmp_path, source) as upstream:
        error = await upstream.given_up()
    assert error.name == "file_grew_after_its_end"


class FailingLayer(FileLayer):
    """A disk that fails while `broken`."""

    def __init__(self) -> None:
        self.broken = ""

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        """Full when `broken` is "write"."""
        if self.broken == "write":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().pwritev(fd, buffers, offset)

    def sync_data(self, fd: int) -> None:
        """Fails when `broken` is "sync"."""
        if self.broken == "sync":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync_data(fd)


@pytest.mark.parametrize("broken", ["write", "sync"])
async def test_the_last_bytes_of_a_source_that_is_gone_are_archived_once_the_disk_is_well_again(
    tmp_path: Path, source: Path, broken: str
) -> None:
    built = one_file()
    (source / FIRST).write_bytes(built.data)
    layer = FailingLayer()
    async with following(tmp_path, source, layer, PublishPolicy.SYNCED) as upstream:
        await upstream.until_end(FIRST, built.size)
        layer.broken = broken
        (source / FIRST).write_bytes(built.ddl().data)
        await upstream.until(lambda: upstream.generation.state is GenerationState.FAILED)
        layer.broken = ""
        await upstream.until_end(FIRST, built.size)


async def test_what_a_server_told_of_itself_is_not_forgotten_when_its_directory_is_followed(
    tmp_path: Path, source: Path
) -> None:
    (source / FIRST).write_bytes(one_file().data)
    generation = await Generation.open(tmp_path / "archive")
    generation.set_identity(SourceIdentity("mysql", "5.6.24-log", 1, "11111111-2222-3333-4444-555555555555"))
    await generation.close()
    async with following(tmp_path, source) as upstream:
        await upstream.until(lambda: upstream.generation.end)
        identity = upstream.generation.identity
    assert identity is not None and identity.server_uuid == "11111111-2222-3333-4444-555555555555"
