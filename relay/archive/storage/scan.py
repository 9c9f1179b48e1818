"""The contents of an archived file: whole groups, index records, the first bad byte."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from protocol.kernel.codes import INFO_OPEN, TABLE_ROW
from relay.binlog_file.broken import Broken
from relay.binlog_file.event_places import count_events
from relay.binlog_file.event_reader import EventReader
from relay.binlog_file.file_bytes import FileBytes

_MOST_VIOLATIONS: Final = 64
_TABLE_ROWS: Final = 4096


@dataclass(frozen=True, slots=True)
class Scan:
    """The contents of a part of a file. Offsets are the file's."""

    boundary: int
    """The end of the last whole group."""
    position: int
    """The offset up to which events were taken."""
    stop: int
    """The offset at which reading ended."""
    in_group: bool
    """True if a group is open at `position`."""
    incomplete: bool
    """True if `stop` is inside an event."""
    events: int
    groups: int
    """Counted, like `events`, up to `boundary`."""
    timestamp: int
    broken: Broken | None
    """The reason why reading could not continue; the bad event starts at `position`."""
    records: bytes
    """The index records, ready for NAME.idx."""
    violations: list[int]
    """The offsets of events whose boundary cannot be, at most 64."""

    @property
    def whole(self) -> bool:
        """True if everything up to `stop` is whole groups."""
        return self.broken is None and self.boundary == self.stop

    @property
    def fault(self) -> str | None:
        """The reason why not all up to `stop` is events, without a full stop."""
        if self.broken is not None:
            return self.broken.detail
        return "the last event is incomplete" if self.incomplete else None


def scan(
    source: FileBytes,
    start: int,
    stop: int,
    *,
    on_progress: Callable[[int], None] | None = None,
    on_bytes: Callable[[memoryview], None] | None = None,
) -> Scan:
    """Walk the events in [start, stop), CRCs included. `start` must be 4 or a transaction boundary.

    Memory is one megabyte whatever the file contains. `on_progress` gets the bytes read since its last call, `on_bytes` those bytes,
    which are valid until it returns. Raises: Broken if `start` is not 4 and the file's head is no format description; OSError.
    """

    def on_read(data: memoryview) -> None:
        if on_bytes is not None:
            on_bytes(data)
        if on_progress is not None:
            on_progress(len(data))

    reader = EventReader(source, on_read=on_read)
    ingest = reader.ingest
    miscounted = 0
    records = []
    violations: list[int] = []
    position = start
    broken = None
    runs = reader.runs(start, stop)
    try:
        for run in runs:
            records.append(run.records)
            position = run.position
            if len(violations) < _MOST_VIOLATIONS:
                violations.extend(row[0] for row in run.violations)
    except Broken as error:
        broken = error
        if ingest.position < position:
            # A streamed event is bad at its end: it had been counted at its head.
            miscounted = 1
    boundary = max(ingest.boundary, start)
    position = max(ingest.position, boundary)
    events = ingest.events - miscounted
    incomplete = position < reader.read_to
    if position > boundary:
        behind, behind_end = count_events(source, boundary, position)
        events -= behind
        if behind_end > position:
            incomplete = True
    return Scan(
        boundary=boundary,
        position=position,
        stop=reader.read_to,
        in_group=bool(ingest.in_group),
        incomplete=incomplete,
        events=events,
        groups=ingest.groups,
        timestamp=ingest.timestamp,
        broken=broken,
        records=b"".join(records),
        violations=violations[:_MOST_VIOLATIONS],
    )


@dataclass(frozen=True, slots=True)
class EventPlace:
    """An event's range in its file, and whether a group is open after it."""

    start: int
    end: int
    in_group_after: bool


def events_with_groups(source: FileBytes, start: int, stop: int) -> list[EventPlace]:
    """Return the events that start in [start, stop), which begins at a boundary and spans about one index gap.

    Raises: Broken if the bytes are not events; OSError.
    """
    places: list[EventPlace] = []
    for run in EventReader(source, table_rows=_TABLE_ROWS).runs(start, stop):
        table = run.table
        for row in range(0, run.rows * TABLE_ROW, TABLE_ROW):
            places.append(EventPlace(table[row], table[row] + table[row + 1], bool(table[row + 7] & INFO_OPEN)))
        if places and places[-1].end >= stop:
            break  # or the whole of a large event would be read
    return places
