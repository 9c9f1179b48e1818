"""The check that a file of another server is the archived one: the last events of both are compared before the stream goes on."""

import asyncio
import contextlib
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.header import decode_header
from protocol.binlog.layout import (
    CHECKSUM_SIZE,
    FIRST_EVENT,
    FLAGS,
    HEADER_SIZE,
    LOG_POS,
    SERVER_ID,
    TIMESTAMP,
    TYPE_AT,
)
from protocol.position import Position
from relay.archive.generation import Generation
from relay.archive.read.reader import FileReader
from relay.archive.storage.archive_errors import ArchiveCorrupt
from relay.archive.storage.archived_file import ArchivedFile
from relay.binlog_file.event_places import event_headers
from relay.binlog_file.file_bytes import read_bytes
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.source_errors import ACCEPT_GAP, FailureKind, UpstreamError

_TAIL_BYTES: Final = 1024
# The marker bits of both layouts and the in-use bit, which is in the low byte.
_IGNORED_FLAGS: Final = 0x3C01
_NOTHING_CHANGED: Final = (
    "It has binlogs of the same name with another content. Nothing was changed here: give it a source.name of its own."
)


async def compare_tail(connection: SourceConnection, generation: Generation, place: Position) -> None:
    """Compare the events before `place`, the archive's end, with the source's file; the connection is used up.

    Markers and the checksums that cover them are left out. Raises: UpstreamError, IDENTITY if they differ; ArchiveCorrupt.
    """
    with generation.open_reader(place.file) as reader:
        around = await generation.check_position(place.file, max(FIRST_EVENT, place.offset - _TAIL_BYTES))
        start = around.before if around.before is not None else FIRST_EVENT
        if around.group is not None:
            start = around.group[0]
        try:
            ours = await asyncio.to_thread(_read_tail, reader, start, place.offset)
        except OSError as error:
            raise ArchiveCorrupt(
                f"what stands before the archive's end cannot be read: {error.strerror}",
                file=place.file,
                offset=start,
                advice="Check the disk, then run `archive verify --deep`.",
            ) from error
    checksum = reader.file.checksum > 0
    # The creation time and server_id of its file are the same in every copy.
    head = reader.file.created.to_bytes(4, "little") + reader.file.server_id.to_bytes(4, "little")
    if not ours:
        return
    async with contextlib.aclosing(connection.events_up_to_end(place.file, ours[0][0])) as theirs:
        for offset, event in ours:
            got = b""
            async for got in theirs:
                if not _artificial(got, first=offset == FIRST_EVENT):
                    break
                if got[TYPE_AT] == EventType.FORMAT_DESCRIPTION and got[TIMESTAMP] + got[SERVER_ID] != head:
                    raise _made_otherwise(reader.file, got)
                got = b""
            if not got or _comparable(got, checksum) != _comparable(event, checksum):
                raise _differs(place.file, offset, len(event), len(got))


def _made_otherwise(file: ArchivedFile, theirs: bytes) -> UpstreamError:
    header = decode_header(theirs)
    made = f"it was made at {header.timestamp} by server_id {header.server_id}"
    return UpstreamError(
        FailureKind.IDENTITY,
        f"the source's {file.name} is not the archived one: {made}, the archived "
        f"one at {file.created} by server_id {file.server_id} (Unix seconds)",
        f"{_NOTHING_CHANGED} {ACCEPT_GAP}",
        name="source_file_differs",
    )


def _differs(file: str, offset: int, size: int, got: int) -> UpstreamError:
    theirs = f"has other bytes in its event of {got} bytes" if got else "ends before it"
    return UpstreamError(
        FailureKind.IDENTITY,
        f"the source's {file} is not the archived one: at offset {offset}, where the archive has an event of {size} bytes, "
        f"it {theirs}",
        f"{_NOTHING_CHANGED} {ACCEPT_GAP}",
        name="source_file_differs",
    )


def _read_tail(reader: FileReader, start: int, stop: int) -> list[tuple[int, bytes]]:
    """Return (offset, event) of the last events before `stop`, at least _TAIL_BYTES of them; all from `start` if there is less."""
    places: list[tuple[int, int]] = []
    for offset, fields in event_headers(reader, start, stop, _TAIL_BYTES):
        places.append((offset, fields.size))
        while len(places) > 1 and stop - places[1][0] >= _TAIL_BYTES:
            places.pop(0)
    return [(at, event) for at, size in places if len(event := read_bytes(reader, at, size)) == size]


def _artificial(event: bytes, *, first: bool) -> bool:
    """Return whether the source made the event for this stream, so that no byte of it is in the file."""
    kind = event[TYPE_AT]
    if kind == EventType.FORMAT_DESCRIPTION:
        return not first
    return not any(event[LOG_POS]) and kind in (EventType.ROTATE, EventType.HEARTBEAT, EventType.START_ENCRYPTION)


def _comparable(event: bytes, checksum: bool) -> bytes:
    flags = int.from_bytes(event[FLAGS], "little") & ~_IGNORED_FLAGS
    end = len(event) - CHECKSUM_SIZE if checksum or event[TYPE_AT] == EventType.FORMAT_DESCRIPTION else len(event)
    return event[: FLAGS.start] + flags.to_bytes(2, "little") + event[HEADER_SIZE:end]
