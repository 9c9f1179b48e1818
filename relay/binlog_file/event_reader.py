"""The one way through a binlog's events: a chunk at a time through the kernel, which checks and classifies them."""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from protocol.binlog.layout import FIRST_EVENT, HEADER_SIZE, event_size, is_event_size
from protocol.kernel.codes import NEED_MORE, TABLE_ROW
from protocol.kernel.ingest import Ingest
from relay.binlog_file.broken import FIRST_ERROR, Broken, cut_event, format_missing, refused
from relay.binlog_file.file_bytes import FileBytes
from relay.binlog_file.head import read_start

_CHUNK_BYTES: Final = 1 << 20


@dataclass(slots=True)
class EventRun:
    """A batch of events that the kernel took at once. It is valid until the next is requested.

    buffer[0] is at `base` in the file; buffer[start:stop] was looked at, up to `consumed` it is done with. position: where the first
    new byte of an event is in the file. `rows` rows of the reader's table are new: row i has its numbers at table[8 * i], as
    Ingest.set_table describes. records: for a boundary index. violations: as Ingest gives them.
    """

    buffer: bytearray
    base: int
    start: int
    stop: int
    consumed: int
    position: int
    table: "array[int]"
    rows: int
    records: bytes
    violations: list[tuple[int, int, int, int, int, int]]


class EventReader:
    """Reads the events of one file. `ingest`: the kernel's counters and state; `read_to`: up to where bytes were read.

    table_rows: so many events get a row at once; 0: none. tolerant: a wrong checksum or position is noted in the event's row and does
    not end the reading. format_event: the file's first event, if it was read already. whole_events(buffer, start, stop): returns
    where the last whole event ends. With it a run has whole events only, and the buffer grows for a large one; without, the kernel
    takes events above 256 KiB in pieces. on_read: gets all bytes as they are read, valid until it returns. stamp: events without a
    mark are given one in the run's buffer.
    """

    def __init__(
        self,
        source: FileBytes,
        *,
        table_rows: int = 0,
        tolerant: bool = False,
        format_event: bytes = b"",
        whole_events: Callable[[bytearray, int, int], int] | None = None,
        on_read: Callable[[memoryview], None] | None = None,
        stamp: bool = False,
    ) -> None:
        self.ingest = Ingest(stamp=stamp)
        self.read_to = 0
        self._source = source
        self._format_event = format_event
        self._whole_events = whole_events
        self._on_read = on_read
        self._table = array("q", [0]) * (TABLE_ROW * table_rows)
        if table_rows:
            self.ingest.set_table(self._table, tolerant)
        self._begun = False
        self._rest = b""
        self._rest_at = 0
        self._rest_bytes = 0
        self._last_event = (0, 0)

    def runs(self, start: int = FIRST_EVENT, stop: int | None = None) -> Iterator[EventRun]:
        """Yield the events of [start, stop), which begins at the first event or between two transactions; None: to the file's end.

        Memory is a chunk whatever the file contains (except for `whole_events`). When it is exhausted, `unfinished` has an event that
        was begun. May be called again for a part further on. Raises: Broken, at once if the file's head is no format description,
        else after the run with all that is before the damage; OSError.
        """
        self._begin(start)
        return self._walk(start, stop)

    def _walk(self, start: int, stop: int | None) -> Iterator[EventRun]:
        ingest, source, table = self.ingest, self._source, self._table
        buffer = bytearray(_CHUNK_BYTES if stop is None else max(0, min(_CHUNK_BYTES, stop - start)))
        view = memoryview(buffer)
        have = 0
        base = self.read_to = start
        while True:
            room = len(buffer) - have if stop is None else min(len(buffer) - have, stop - base - have)
            got = source.read_into(view[have : have + room], base + have) if room > 0 else 0
            if got and self._on_read is not None:
                self._on_read(view[have : have + got])
            have += got
            self.read_to = base + have
            end, used = self._whole(buffer, have), 0
            while used < end:
                position = ingest.position
                status = ingest.feed(buffer, used, end)
                consumed, rows = ingest.consumed, ingest.table_rows
                if rows:
                    self._last_event = (table[TABLE_ROW * (rows - 1)], table[TABLE_ROW * (rows - 1) + 1])
                records, violations = ingest.take_entries(), ingest.take_violations()
                ingest.take_unknown_types()
                yield EventRun(buffer, base, used, end, consumed, position, table, rows, records, violations)
                stuck = consumed == used
                if status >= FIRST_ERROR or (stuck and self._whole_events is not None):
                    raise refused(ingest, status, bytes(buffer[consumed : consumed + HEADER_SIZE]))
                used = consumed
                if stuck or status == NEED_MORE:
                    break
            self._rest, self._rest_at, self._rest_bytes = bytes(view[used:have][:HEADER_SIZE]), base + used, have - used
            if self._whole_events is not None and len(self._rest) == HEADER_SIZE:
                size = event_size(self._rest)
                if stop is not None and base + used + size > stop:
                    return
                if have == len(buffer) and not used:
                    larger = bytearray(size)
                    larger[:have] = buffer
                    buffer, view = larger, memoryview(larger)
                    continue
            if not used and not got:
                return
            if used:
                view[: have - used] = view[used:have]
                have -= used
                base += used

    @property
    def unfinished(self) -> tuple[int, bytes] | None:
        """The start of an event that was begun and has not ended, with the bytes of its header that are there."""
        return (self._rest_at, self._rest) if self._rest else None

    def cut_off(self) -> Broken | None:
        """Return the error of the event in which the file ends here, if it does. It needs a table."""
        if self.ingest.in_event:
            offset, announced = self._last_event
            return cut_event(offset, announced, self.ingest.position + self._rest_bytes - offset)
        if self._rest_bytes:
            return cut_event(self.ingest.position, event_size(self._rest), self._rest_bytes)
        return None

    def _begin(self, start: int) -> None:
        """Begin at `start`, the place of the next event, outside of any transaction. Raises: Broken; OSError."""
        ingest = self.ingest
        if not self._begun:
            self._begun = True
            ingest.begin_file(FIRST_EVENT)
            if start == FIRST_EVENT:
                return
            event = self._format_event or read_start(self._source).event
            if not ingest.read_format(bytearray(event), 0, len(event)):
                raise format_missing(FIRST_EVENT)
        ingest.begin_file(start)

    def _whole(self, buffer: bytearray, have: int) -> int:
        """Return how much of the buffer the kernel is given."""
        if self._whole_events is None:
            return have
        end = self._whole_events(buffer, 0, have)
        # It refuses a length that cannot be.
        return have if have - end >= HEADER_SIZE and not is_event_size(event_size(buffer, end)) else end
