"""The origins of a binlog that is fetched again: a server, which may be the source or another relay, or a directory of copies.

It takes the way of everything that is archived, into a generation of its own in an empty directory: the result, indexes included, is
what the archive would have today without the damage.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pymysql.err

from protocol.binlog.layout import FIRST_EVENT
from protocol.kernel import codes
from protocol.position import binlog_number
from relay.archive.generation import Generation
from relay.archive.recovery.digest import file_digest
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.write.options import ArchiveOptions, SyncPolicy
from relay.binlog_file.file_bytes import DescriptorBytes
from relay.binlog_file.head import read_start
from relay.config import DirectorySource, ServerSource
from relay.upstream.source.open_source import open_source
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.stream.intake import Intake
from relay.upstream.stream.receive_buffers import BUFFER_BYTES, ReceiveBufferPool
from relay.upstream.stream.source_stream import DumpStream

_SILENT_S = 60.0
"""A server that sends no byte for so long is given up."""


@dataclass(frozen=True, slots=True)
class RemadeFile:
    """A binlog in a directory of its own, with its indexes, as the archive would have written it."""

    directory: Path
    facts: ArchivedFile
    digest: str


class FileOrigin(Protocol):
    """An origin of files that are fetched again."""

    @property
    def where(self) -> str:
        """The place, for people."""

    async def fetch(self, name: str, directory: Path) -> RemadeFile:
        """Fetch the binlog `name` into `directory`, which is empty. Raises: UpstreamError; ArchiveError; OSError."""


@dataclass(frozen=True, slots=True)
class ServerOrigin:
    """The source itself, or another relay of it: it gets the request of mysqlbinlog, which ends no other stream."""

    settings: ServerSource

    @property
    def where(self) -> str:
        """The server's address."""
        return f"{self.settings.host}:{self.settings.port}"

    async def fetch(self, name: str, directory: Path) -> RemadeFile:
        """Implement `FileOrigin.fetch`."""
        generation = await Generation.open(directory, ArchiveOptions(sync=SyncPolicy.NONE))
        try:
            await self._stream(name, generation)
            await generation.trim()  # after the sealing in the writer's queue
            return await _remade(generation, name)
        finally:
            await generation.close()

    async def _stream(self, name: str, generation: Generation) -> None:
        connection = await open_source(self.settings)
        try:
            try:
                await connection.set_up_look()
            except pymysql.err.MySQLError as error:
                text = f"{self.where} does not take the questions before a dump: {error}"
                raise UpstreamError(FailureKind.SETUP, text) from error
            facts = connection.facts
            intake = Intake(generation, None, packets=True, on_violation="warn", announced_checksum=facts.checksum)
            pool = ReceiveBufferPool()
            streams: list[DumpStream] = []

            def take_over(transport: asyncio.Transport, early: bytes) -> DumpStream:
                streams.append(DumpStream(intake, pool, transport, early))
                return streams[0]

            came: list[str | None] = []

            def file_begins() -> None:
                came.append(intake.file)
                if intake.file != name:
                    streams[0].close()  # all of it is here, or it is another file than requested

            intake.on_file = file_begins
            connection.start_dump(name, FIRST_EVENT, 0, take_over)
            stream = streams[0]
            generation.watch_failure(stream.archive_failed)
            ended = await self._ended(stream)
        finally:
            connection.close()
        if len(came) < 2 or came[0] != name or generation.failure is not None:
            raise ended

    async def _ended(self, stream: DumpStream) -> UpstreamError:
        loop = asyncio.get_running_loop()
        try:
            while True:
                done, _ = await asyncio.wait({stream.ended}, timeout=_SILENT_S)
                if done:
                    return stream.ended.result()
                if loop.time() - stream.heard_at >= _SILENT_S and not stream.paused:
                    text = f"no byte came from {self.where} for {_SILENT_S:g} s"
                    return UpstreamError(FailureKind.NETWORK, text, name="source_silent")
        finally:
            stream.close()


@dataclass(frozen=True, slots=True)
class DirectoryOrigin:
    """Copies of the source's files, or another relay's archive."""

    path: Path

    @property
    def where(self) -> str:
        """The directory."""
        return str(self.path)

    async def fetch(self, name: str, directory: Path) -> RemadeFile:
        """Implement `FileOrigin.fetch`."""
        fd = await asyncio.to_thread(os.open, self.path / name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return await remade_of_copy(fd, str(self.path / name), name, directory)
        finally:
            os.close(fd)


async def remade_of_copy(fd: int, where: str, name: str, directory: Path) -> RemadeFile:
    """Write the binlog `name` into `directory` from the copy that is open. where: for messages. Raises: as `FileOrigin.fetch`."""
    generation = await Generation.open(directory, ArchiveOptions(sync=SyncPolicy.NONE))
    try:
        await _read_copy(fd, where, name, generation)
        await generation.trim()
        return await _remade(generation, name)
    finally:
        await generation.close()


async def _read_copy(fd: int, where: str, name: str, generation: Generation) -> None:
    intake = Intake(generation, None, packets=False, on_violation="warn")
    start = await asyncio.to_thread(read_start, DescriptorBytes(fd))
    event = start.event
    intake.begin_file(name)
    if not start.is_whole or not intake.ingest.read_format(bytearray(event), 0, len(event)):
        raise _unusable(f"{where} does not begin with a format description that is read here")
    pool = ReceiveBufferPool()
    returned = asyncio.Event()
    pool.on_return = returned.set
    offset, left = FIRST_EVENT, b""
    while True:
        while (buffer := pool.take()) is None:
            returned.clear()
            await returned.wait()
        buffer.view[: len(left)] = left
        fill = len(left)
        fill += await asyncio.to_thread(os.preadv, fd, [buffer.view[fill:BUFFER_BYTES]], offset + fill)
        if fill == len(left):
            break
        used = 0
        while intake.take(buffer, used, fill) != codes.NEED_MORE:
            used = intake.ingest.consumed
        used = intake.ingest.consumed
        left = bytes(buffer.view[used:fill])
        offset += used
        pool.put_back()
    if left or intake.ingest.in_event:
        raise _unusable(f"{where} ends inside an event, at offset {offset + len(left)}")
    intake.begin_file(following_name(name))


def origin_of(source: ServerSource | DirectorySource) -> FileOrigin:
    """Return the source that is followed, or would be."""
    return ServerOrigin(source) if isinstance(source, ServerSource) else DirectoryOrigin(source.path)


def following_name(name: str) -> str:
    """Return the name of the binlog that comes after this one."""
    base, _, digits = name.rpartition(".")
    return f"{base}.{binlog_number(name) + 1:0{len(digits)}d}"


async def _remade(generation: Generation, name: str) -> RemadeFile:
    facts = generation.file(name)
    if facts is None or not facts.sealed:
        raise _unusable(f"{name} did not come whole")
    digest = await asyncio.to_thread(file_digest, generation.layer, generation.path(name), facts.end)
    assert digest is not None
    return RemadeFile(generation.directory, facts, digest)


def _unusable(text: str) -> UpstreamError:
    return UpstreamError(FailureKind.STREAM_BROKEN, text, "Take another copy of the file.", name="file_truncated")
