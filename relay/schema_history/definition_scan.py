"""Searches archived binlogs for statements that define tables, where a relay that was interrupted did not note them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import HEADER_SIZE, TYPE_AT, event_size, is_event_size
from protocol.binlog.mariadb_gtid import alters_nothing
from protocol.binlog.schema.definition_statement import definition_statement, may_define
from protocol.errors import ProtocolError
from protocol.kernel.codes import MOST_NOTES
from protocol.kernel.ingest import Ingest
from protocol.sql.kind import kind_of
from relay.archive.storage.files import StoredFile
from relay.binlog_file.broken import Broken
from relay.binlog_file.event_reader import EventReader
from relay.packed_reads.archive_layer import layer_of
from relay.schema_history.logged_definition import LoggedDefinition, logged_definition

_TRIGGER: Final = re.compile(rb"\btrigger\b", re.IGNORECASE)
_QUERIES: Final = (EventType.QUERY, EventType.QUERY_COMPRESSED)
_GTID_BYTES: Final = 64
_LONGEST_EVENT: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DefinitionEvent:
    """A Query event that may define tables. `raw` is the event; None: it is too long to be read.

    `alters_nothing`: it is a MariaDB's ALTER TABLE in two phases that has only begun; None: unknown.
    """

    offset: int
    raw: bytes | None
    post_length: int
    checksum: bool
    alters_nothing: bool | None = False


def events_in_run(
    ingest: Ingest,
    data: bytearray | memoryview,
    start: int,
    stop: int,
    base: int,
    before: bytes = b"",
    most: int | None = None,
) -> list[DefinitionEvent]:
    """Return the definitions in the kernel's last feed, whose run is data[start:stop] and begins at `base` in its file. `before`
    contains the `last_bytes` of the run before. `most` limits the events read after those that the kernel lists; None: no limit.
    """
    lengths = ingest.post_lengths()
    post_length, checksum = lengths[2], ingest.checksum > 0
    is_mariadb = len(lengths) > EventType.MARIADB_GTID and lengths[EventType.MARIADB_GTID] != 0
    found = []
    offsets = ingest.take_definitions()
    if len(offsets) == MOST_NOTES:
        offsets += _further(data, start + offsets[-1] - base, stop, offsets[-1], post_length, checksum, most)
    for offset in offsets:
        at = start + offset - base
        raw = None
        if start <= at <= stop - HEADER_SIZE:
            length = event_size(data, at)
            if length <= _LONGEST_EVENT and at + length <= stop:
                raw = bytes(data[at : at + length])
        nothing: bool | None = False
        if is_mariadb and raw is not None:
            nothing = alters_nothing(last_bytes(data, start, at, before), offset)
        found.append(DefinitionEvent(offset, raw, post_length, checksum, nothing))
    return found


def _further(
    data: bytearray | memoryview,
    at: int,
    stop: int,
    offset: int,
    post_length: int,
    checksum: bool,
    most: int | None,
) -> list[int]:
    """Return the offsets of definitions in data[at:stop] after that at `at`, whose offset is `offset`: the kernel lists no more."""
    found = []
    position = at
    passed = 0
    while position + HEADER_SIZE <= stop and is_event_size(size := event_size(data, position)) and passed != most:
        passed += 1
        if position > at and data[position + TYPE_AT] in _QUERIES:
            event = bytes(data[position : position + size]) if position + size <= stop else b""
            if not event or may_define(event, post_length, checksum):
                found.append(offset + position - at)
        position += size
    return found


def last_bytes(data: bytearray | memoryview, start: int, stop: int, before: bytes) -> bytes:
    """Return the last bytes of data[start:stop], with those before it: they have room for a Gtid event."""
    return (before + bytes(data[max(start, stop - _GTID_BYTES) : stop]))[-_GTID_BYTES:]


def scan_definitions(path: Path, start: int, stop: int) -> Iterator[DefinitionEvent]:
    """Yield the definitions in [start, stop) of a binlog; an event begins at `start`. Blocking.

    Raises: OSError; ValueError where the file cannot be read up to `stop`.
    """
    with StoredFile.open(layer_of(path.parent), path) as file:
        reader = EventReader(file)
        try:
            before = b""
            for run in reader.runs(start, stop):
                yield from events_in_run(reader.ingest, run.buffer, run.start, run.consumed, run.position, before)
                before = last_bytes(run.buffer, run.start, run.consumed, before)
        except Broken as error:
            raise ValueError(f"{path.name} {error}") from None
        if reader.unfinished is not None or reader.read_to < stop:
            raise ValueError(f"{path.name} ends at {reader.read_to}, {stop} was expected")


def is_about_triggers(event: DefinitionEvent) -> bool:
    """Return whether an event may create, change or drop a trigger: in doubt True."""
    if event.raw is None:
        return True
    try:
        found = definition_statement(event.raw, event.post_length, event.checksum)
    except ProtocolError:
        return True
    return found is not None and (found[1] is None or _TRIGGER.search(found[1]) is not None)


def logged_event(event: DefinitionEvent, version: str) -> LoggedDefinition | None:
    """Return the definition in an event; None: it defines nothing with columns. `version` is that of the server that logged it."""
    if event.raw is None:
        return LoggedDefinition(None)
    if event.alters_nothing:
        return None
    made = logged_definition(event.raw, event.post_length, event.checksum, version)
    if (
        made is not None
        and event.alters_nothing is None
        and kind_of((made.text or "").encode(), version).verb in ("ALTER", "")
    ):
        return LoggedDefinition(made.names)
    return made
