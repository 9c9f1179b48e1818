"""Looks through archived binlogs for statements that define tables: what a relay that did not run to its end had not noted."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from protocol.binlog.layout import FIRST_EVENT, HEADER_SIZE
from protocol.kernel.ingest import Ingest

_CHUNK_BYTES: Final = 1 << 20
_FIRST_ERROR: Final = 16
_LONGEST_FORMAT: Final = 1 << 16
_LONGEST_EVENT: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DefinitionEvent:
    """A Query event that may define tables. `raw`: the event; None where it is too long to be looked at."""

    offset: int
    raw: bytes | None
    post_length: int
    checksum: bool


def events_in_run(
    ingest: Ingest, data: bytearray | memoryview, start: int, stop: int, base: int
) -> list[DefinitionEvent]:
    """What the kernel's last feed found, whose run is data[start:stop] and begins at `base` in its file."""
    post_length, checksum = ingest.post_lengths()[2], ingest.checksum > 0
    found = []
    for offset in ingest.take_definitions():
        at = start + offset - base
        raw = None
        if start <= at <= stop - HEADER_SIZE:
            length = int.from_bytes(data[at + 9 : at + 13], "little")
            if length <= _LONGEST_EVENT and at + length <= stop:
                raw = bytes(data[at : at + length])
        found.append(DefinitionEvent(offset, raw, post_length, checksum))
    return found


def scan_definitions(path: Path, start: int, stop: int) -> Iterator[DefinitionEvent]:
    """The definitions in [start, stop) of a binlog; an event begins at `start`. Blocking.

    Raises: OSError; ValueError where the file cannot be walked up to `stop`.
    """
    ingest = Ingest()
    ingest.begin_file(FIRST_EVENT)
    with path.open("rb") as file:
        if start != FIRST_EVENT:
            file.seek(FIRST_EVENT)
            head = file.read(HEADER_SIZE)
            length = int.from_bytes(head[9:13], "little")
            if not HEADER_SIZE <= length <= _LONGEST_FORMAT:
                raise ValueError(f"{path.name} does not begin with a format description")
            event = bytearray(head + file.read(length - HEADER_SIZE))
            if not ingest.read_format(event, 0, len(event)):
                raise ValueError(f"{path.name} does not begin with a format description")
            ingest.begin_file(start)
        file.seek(start)
        buffer = bytearray()
        read = start
        while read < stop or buffer:
            chunk = file.read(min(_CHUNK_BYTES, stop - read))
            read += len(chunk)
            buffer += chunk
            used = 0
            while used < len(buffer):
                base = ingest.position
                status = ingest.feed(buffer, used, len(buffer))
                yield from events_in_run(ingest, buffer, used, ingest.produced, base)
                ingest.take_entries()
                ingest.take_violations()
                if status >= _FIRST_ERROR:
                    raise ValueError(f"{path.name} at {ingest.position}: {ingest.error_text}")
                if ingest.consumed == used:
                    break
                used = ingest.consumed
            del buffer[:used]
            if not chunk and not used:
                raise ValueError(f"{path.name} ends at {read}, {stop} was expected")
