"""Looks through archived binlogs for statements that define tables: what a relay that did not run to its end had not noted."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from protocol.binlog.layout import HEADER_SIZE, event_size
from protocol.kernel.ingest import Ingest
from relay.binlog_file.broken import Broken
from relay.binlog_file.event_reader import EventReader
from relay.binlog_file.file_bytes import DescriptorBytes

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
            length = event_size(data, at)
            if length <= _LONGEST_EVENT and at + length <= stop:
                raw = bytes(data[at : at + length])
        found.append(DefinitionEvent(offset, raw, post_length, checksum))
    return found


def scan_definitions(path: Path, start: int, stop: int) -> Iterator[DefinitionEvent]:
    """The definitions in [start, stop) of a binlog; an event begins at `start`. Blocking.

    Raises: OSError; ValueError where the file cannot be walked up to `stop`.
    """
    with path.open("rb") as file:
        reader = EventReader(DescriptorBytes(file.fileno()))
        try:
            for run in reader.runs(start, stop):
                yield from events_in_run(reader.ingest, run.buffer, run.start, run.consumed, run.position)
        except Broken as error:
            raise ValueError(f"{path.name} {error}") from None
        if reader.unfinished is not None or reader.read_to < stop:
            raise ValueError(f"{path.name} ends at {reader.read_to}, {stop} was expected")
