"""Reads an archived file with the kernel: whole groups, index records, the first bad byte."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from protocol.binlog.layout import FIRST_EVENT, HEADER, HEADER_SIZE
from protocol.kernel.codes import INFO_OPEN
from protocol.kernel.ingest import STATUS_NAMES, Ingest
from relay.archive.storage.files import FileLayer

_CHUNK: Final = 1 << 20
_ERROR_STATUS: Final = 16
_NEED_MORE: Final = 0
_MOST_VIOLATIONS: Final = 64
ROW: Final = 8
"""int64s per row of the kernel's event table: offset, length, type, flags, timestamp, server_id, log_pos, info."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What a part of a file holds. Offsets are the file's; `events` and `groups` are counted up to `boundary`.

    `boundary`: end of the last whole group. `position`: up to where events were taken. `stop`: where reading ended.
    `status`: 0, or the kernel's error number (>= 16) with its `error_text`; the bad event starts at `position`.
    `in_group`: a group is open at `position`. `incomplete`: `stop` is inside an event.
    `records`: index records, ready for NAME.idx. `violations`: offsets of events whose boundary cannot be, at most 64.
    """

    boundary: int
    position: int
    stop: int
    in_group: bool
    incomplete: bool
    events: int
    groups: int
    timestamp: int
    status: int
    error_text: str
    records: bytes
    violations: list[int]

    @property
    def whole(self) -> bool:
        """Whether everything up to `stop` is whole groups."""
        return self.status < _ERROR_STATUS and self.boundary == self.stop


def first_event(layer: FileLayer, fd: int) -> bytes:
    """The bytes of the file's first event, fewer if the file ends earlier."""
    head = layer.pread(fd, HEADER_SIZE, FIRST_EVENT)
    if len(head) < HEADER_SIZE:
        return head
    size = HEADER.unpack(head)[3]
    return layer.pread(fd, min(max(size, HEADER_SIZE), 1 << 16), FIRST_EVENT)


def prepared_ingest(layer: FileLayer, fd: int, start: int) -> Ingest:
    """A kernel parser that knows the file's format description and expects the event at `start`, outside any group.

    Raises: ValueError if `start` is not 4 and the file's head is no format description.
    """
    ingest = Ingest(packets=False, stamp=False)
    ingest.begin_file(FIRST_EVENT)
    if start != FIRST_EVENT:
        head = bytearray(first_event(layer, fd))
        if not ingest.read_format(head, 0, len(head)):
            raise ValueError("the file does not start with a format description that can be read")
        ingest.begin_file(start)
    return ingest


def explain(ingest: Ingest, status: int) -> str:
    """The kernel's error `status` (>= 16) as a sentence without its end."""
    text: str = getattr(ingest, "error_text", "")
    return text or f"{STATUS_NAMES[status].replace('_', ' ')} at {ingest.position}"


def scan(
    layer: FileLayer,
    fd: int,
    start: int,
    stop: int,
    *,
    on_progress: Callable[[int], None] | None = None,
    on_bytes: Callable[[memoryview], None] | None = None,
) -> Scan:
    """Walks the events in [start, stop), CRCs included. `start` must be 4 or a transaction boundary.

    Memory is one megabyte whatever the file holds. `on_progress` gets bytes read since its last call, `on_bytes` those bytes,
    which are good until it returns.
    """
    ingest = prepared_ingest(layer, fd, start)
    events_before = ingest.events
    groups_before = ingest.groups
    buffer = bytearray(_CHUNK)
    view = memoryview(buffer)
    have = 0
    offset = start
    records = []
    violations: list[int] = []
    status = _NEED_MORE
    while True:
        want = min(_CHUNK - have, stop - offset)
        got = layer.preadv(fd, [view[have : have + want]], offset) if want > 0 else 0
        if on_bytes is not None and got:
            on_bytes(view[have : have + got])
        offset += got
        have += got
        position_before = ingest.position
        status = ingest.feed(buffer, 0, have)
        if status >= _ERROR_STATUS and ingest.position < position_before:
            # A streamed event turned out bad at its end: it had been counted at its head.
            events_before += 1
        records.append(ingest.take_entries())
        if len(violations) < _MOST_VIOLATIONS:
            violations.extend(row[0] for row in ingest.take_violations())
        if on_progress is not None and got:
            on_progress(got)
        if status >= _ERROR_STATUS:
            break
        used = ingest.consumed
        if used:
            view[: have - used] = view[used:have]
            have -= used
        elif got == 0:
            break
    boundary = max(ingest.boundary, start)
    position = max(ingest.position, boundary)
    events = ingest.events - events_before
    incomplete = position < offset
    if position > boundary:
        behind, behind_end = walk_headers(layer, fd, boundary, position)
        events -= behind
        if behind_end > position:
            incomplete = True
    return Scan(
        boundary=boundary,
        position=position,
        stop=offset,
        in_group=bool(ingest.in_group),
        incomplete=incomplete,
        events=events,
        groups=ingest.groups - groups_before,
        timestamp=ingest.timestamp,
        status=status if status >= _ERROR_STATUS else 0,
        error_text=explain(ingest, status) if status >= _ERROR_STATUS else "",
        records=b"".join(records),
        violations=violations[:_MOST_VIOLATIONS],
    )


def walk_headers(layer: FileLayer, fd: int, start: int, stop: int) -> tuple[int, int]:
    """How many events start in [start, stop), and where the last of them ends; looks at headers only.

    `start` is an event's start. Stops early, with the offset reached, where there is no event.
    """
    count = 0
    offset = start
    chunk = b""
    chunk_start = start
    unpack = HEADER.unpack_from
    while offset < stop:
        at = offset - chunk_start
        if at + HEADER_SIZE > len(chunk):
            chunk = layer.pread(fd, min(256 << 10, max(stop - offset, HEADER_SIZE)), offset)
            chunk_start, at = offset, 0
            if len(chunk) < HEADER_SIZE:
                break
        size = unpack(chunk, at)[3]
        if size < HEADER_SIZE:
            break
        count += 1
        offset += size
    return count, offset


@dataclass(frozen=True, slots=True)
class EventPlace:
    """An event's range in its file, and whether a group is open behind it."""

    start: int
    end: int
    in_group_after: bool


def events_with_groups(layer: FileLayer, fd: int, start: int, stop: int) -> list[EventPlace]:
    """The events that start in [start, stop), which begins at a boundary and spans about one index gap.

    Raises: ValueError with the kernel's sentence if the bytes are not events.
    """
    ingest = prepared_ingest(layer, fd, start)
    table = array("q", bytes(8 * ROW * 4096))
    ingest.set_table(table, False)
    buffer = bytearray(_CHUNK)
    view = memoryview(buffer)
    have = 0
    offset = start
    places: list[EventPlace] = []
    while True:
        want = min(_CHUNK - have, stop - offset)
        got = layer.preadv(fd, [view[have : have + want]], offset) if want > 0 else 0
        offset += got
        have += got
        status = ingest.feed(buffer, 0, have)
        for row in range(0, ingest.table_rows * ROW, ROW):
            places.append(EventPlace(table[row], table[row] + table[row + 1], bool(table[row + 7] & INFO_OPEN)))
        if status >= _ERROR_STATUS:
            raise ValueError(explain(ingest, status))
        used = ingest.consumed
        if used:
            view[: have - used] = view[used:have]
            have -= used
        elif got == 0:
            return places
        if places and places[-1].end >= stop:
            return places


def event_around(layer: FileLayer, fd: int, start: int, offset: int, limit: int) -> tuple[int, int]:
    """Range [start, end) of the event that holds `offset` (or starts there), walking headers from the event at `start`.

    `limit` is the end of what may be read. Raises: ValueError if the bytes at `start` are not a chain of events.
    """
    chunk = b""
    chunk_start = start
    while True:
        at = start - chunk_start
        if at + HEADER_SIZE > len(chunk):
            chunk = layer.pread(fd, min(64 << 10, limit - start), start)
            chunk_start, at = start, 0
            if len(chunk) < HEADER_SIZE:
                raise ValueError(f"no event header fits at offset {start}")
        size = HEADER.unpack_from(chunk, at)[3]
        if size < HEADER_SIZE or start + size > limit:
            raise ValueError(f"the event at offset {start} announces {size} bytes")
        if offset < start + size:
            return start, start + size
        start += size
