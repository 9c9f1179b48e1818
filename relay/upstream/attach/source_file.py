"""A binlog at the source, examined without archiving it: its head, and whether it is the archived one."""

import asyncio
import contextlib
import tempfile
from dataclasses import dataclass
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import CHECKSUM_SIZE, FIRST_EVENT, HEADER_SIZE, LOG_POS, MAGIC, TYPE_AT
from protocol.binlog.rotate import decode_rotate
from protocol.errors import Malformed
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.position import Position
from relay.archive.generation import Generation
from relay.archive.read.position_check import Verdict
from relay.archive.storage.archived_file import ArchivedFile, describe_new_file
from relay.archive.storage.gtid_facts import GtidValue
from relay.binlog_file.broken import Broken
from relay.binlog_file.event_reader import EventReader
from relay.binlog_file.file_bytes import DescriptorBytes, read_bytes
from relay.upstream.attach.tail_check import compare_tail
from relay.upstream.source.connection import OFFSET_LIMIT, SourceConnection
from relay.upstream.source.source_errors import FailureKind, UpstreamError

_HEAD_EVENTS: Final = 8
_PIECE_BYTES: Final = 1 << 20
_LONGEST_ROTATE: Final = 4096
_NOT_THE_SAME: Final = (FailureKind.IDENTITY, FailureKind.POSITION_GONE)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the source. `created` (Unix seconds) and `server_id` say when and by whom it was made; `before` is what had been
    executed before it."""

    name: str
    created: int
    server_id: int
    before: GtidValue | None


async def read_source_file(connection: SourceConnection, name: str) -> SourceFile:
    """Return the head of the source's `name`; the connection is used up. Raises: UpstreamError."""
    described: ArchivedFile | None = None
    collector: FileGtidCollector | None = None
    seen = 0
    try:
        async with contextlib.aclosing(connection.events_up_to_end(name, FIRST_EVENT)) as events:
            async for event in events:
                if _is_made(event):
                    continue
                if described is None:
                    described = describe_new_file(name, event)
                    collector = FileGtidCollector(described.flavour, checksum=bool(described.checksum))
                    collector.begin(FIRST_EVENT)
                assert collector is not None
                collector.take(event)
                seen += 1
                if collector.head_complete or seen >= _HEAD_EVENTS:
                    break
        if described is None or collector is None:
            raise UpstreamError(FailureKind.NETWORK, f"the source sent nothing of its {name}", "Try again.")
        return SourceFile(name, described.created, described.server_id, collector.before)
    except Malformed as error:
        text = f"the head of the source's {name} cannot be read: {error}"
        raise UpstreamError(FailureKind.STREAM_BROKEN, text, name="source_file_unreadable") from error


async def same_up_to(
    connection: SourceConnection, generation: Generation, file: ArchivedFile, size_bytes: int
) -> int | None:
    """Return the end of the last transaction up to which the archived `file` and the source's, of that size, are identical; None if
    they are two files.

    The time, the server that made it and the last events are compared. The connection is used up. Raises: UpstreamError; ArchiveError.
    """
    offset = min(size_bytes, file.end, OFFSET_LIMIT - 1)
    check = await generation.check_position(file.name, offset)
    if check.verdict is not Verdict.BOUNDARY:
        # A server that crashed may leave half an event at the end.
        offset = check.group[0] if check.group is not None else check.before or FIRST_EVENT
    if offset <= FIRST_EVENT:
        return None
    try:
        await compare_tail(connection, generation, Position(file.name, offset))
    except UpstreamError as error:
        if error.kind in _NOT_THE_SAME:
            return None
        raise
    return file.end if size_bytes >= file.end else offset


async def rotates_to(generation: Generation, file: ArchivedFile) -> str | None:
    """Return the file named by the Rotate at the end of the archived `file`; None if it does not end with one. Raises: ArchiveError."""
    check = await generation.check_position(file.name, file.end - 1)
    start = check.group[0] if check.group is not None else check.before
    if start is None or file.end - start > _LONGEST_ROTATE:
        return None
    with generation.open_reader(file.name) as reader:
        event = await asyncio.to_thread(read_bytes, reader, start, file.end - start)
    if len(event) <= TYPE_AT or event[TYPE_AT] != EventType.ROTATE:
        return None
    try:
        return decode_rotate(event[HEADER_SIZE : len(event) - (CHECKSUM_SIZE if file.checksum else 0)]).file
    except Malformed:
        return None


async def is_boundary(connection: SourceConnection, name: str, offset: int) -> bool:
    """Return whether a transaction of the source's `name` may begin at `offset`.

    The file is fetched up to there, into a temporary file, as only the preceding events decide it; the connection is used up. Raises:
    UpstreamError; OSError.
    """
    if offset == FIRST_EVENT:
        return True
    with await asyncio.to_thread(tempfile.TemporaryFile) as fetched:
        waiting = bytearray(MAGIC)
        at = FIRST_EVENT
        async with contextlib.aclosing(connection.events_up_to_end(name, FIRST_EVENT)) as events:
            async for event in events:
                if _is_made(event) and at > FIRST_EVENT:
                    break  # the file after it begins
                if _is_made(event):
                    continue
                waiting += event
                at += len(event)
                if len(waiting) >= _PIECE_BYTES or at >= offset:
                    await asyncio.to_thread(fetched.write, waiting)
                    waiting = bytearray()
                if at >= offset:
                    break
        if at != offset:
            return False
        await asyncio.to_thread(fetched.flush)
        return await asyncio.to_thread(_ends_at_boundary, fetched.fileno(), offset)


def _ends_at_boundary(descriptor: int, offset: int) -> bool:
    """Return whether the file ends between two transactions. Blocking."""
    reader = EventReader(DescriptorBytes(descriptor))
    try:
        for _run in reader.runs(stop=offset):
            pass
    except Broken:
        return False
    return reader.ingest.boundary == offset


def _is_made(event: bytes) -> bool:
    """Return whether the source made the event for this stream, so that no file contains it."""
    return not any(event[LOG_POS]) and event[TYPE_AT] in (
        EventType.ROTATE,
        EventType.HEARTBEAT,
        EventType.START_ENCRYPTION,
    )
