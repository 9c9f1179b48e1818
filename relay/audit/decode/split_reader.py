"""Reads a split, a megabyte at a time, and has the kernel check and infer it: runs of whole events with their table."""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from protocol.binlog.event_type import event_type_name
from protocol.columns.column_reader import whole_events
from protocol.kernel.codes import MAX_EVENT
from protocol.kernel.ingest import STATUS_NAMES, Ingest
from relay.archive.storage.archived_file import FIRST_EVENT
from relay.audit.plan.read_finding import Finding
from relay.audit.plan.splits import Split
from relay.audit.plan.store import Store

_CHUNK_BYTES: Final = 1 << 20
_TABLE_ROWS: Final = 32768
_HEADER_BYTES: Final = 19
_FIRST_ERROR: Final = 16

_TEXTS: Final = {
    "event_length_wrong": "{event} announces {length} bytes; that cannot be an event. What follows in the file is not read.",
    "format_description_missing": "{event} stands before any Format_description; servers since 5.0 write one first.",
    "format_description_unsupported": "This Format_description is of a layout that no server since 5.0 writes.",
    "binlog_encrypted": "MariaDB encrypted the file at rest from here on. Read it through its server: "
    "mysqlbinlog --read-from-remote-server --raw.",
    "event_malformed": "Lengths inside {event} pass its end. What follows in the file is not read.",
}
# One name for one thing, whoever encrypted.
_RENAMED: Final = {"binlog_encrypted": "file_encrypted"}


@dataclass(frozen=True, slots=True)
class Run:
    """Whole events: row i of `table` (8 numbers a row, see Ingest.set_table) stands at table[8 * i] - base in `buffer`."""

    buffer: bytearray
    base: int
    table: "array[int]"
    rows: int


class SplitReader:
    """One pass over a split. When `runs` is exhausted, `broken` says why it ended early, if it did."""

    def __init__(self, store: Store, split: Split) -> None:
        self._store = store
        self._split = split
        self.broken: Finding | None = None
        self.ingest: Any = Ingest()
        self.ingest.detailed = True
        self.timestamp = 0
        self._table = array("q", bytes(8 * 8 * _TABLE_ROWS))
        self._begun = False
        self.on_run: Callable[[Run], None] | None = None
        """Called with each run before it is given out."""

    def post_lengths(self) -> bytes:
        """The format description's post-header lengths; complete from the first run on."""
        return bytes(self.ingest.post_lengths())

    def runs(self) -> Iterator[Run]:
        """The events of the split. A run is good until the next is asked for. Nothing is held but a chunk and the
        largest event.
        """
        split = self._split
        if not split.parts:
            return
        try:
            reader = self._store.open(split.path)
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            name = "file_gone" if gone else "file_unreadable"
            self._break(
                name, split.start, f"The file was there when the read was planned, and cannot be opened: {error}."
            )
            return
        try:
            for start, stop in split.parts:
                yield from self._walk(reader, start, stop)
                if self.broken is not None:
                    return
        except OSError as error:
            self._break("file_unreadable", self.ingest.position, f"The file cannot be read on: {error}.")
        finally:
            reader.close()

    def _begin(self, start: int) -> None:
        """The next event stands at `start`, outside of any transaction."""
        split, ingest = self._split, self.ingest
        if self._begun:
            ingest.begin_file(start)
            return
        self._begun = True
        ingest.set_table(self._table, True)
        ingest.begin_file(FIRST_EVENT)
        if start != FIRST_EVENT:
            ingest.read_format(bytearray(split.format_event), 0, len(split.format_event))
            ingest.begin_file(start)

    def _walk(self, reader: Any, start: int, end: int) -> Iterator[Run]:
        """The events of [start, end), whole transactions."""
        ingest, table = self.ingest, self._table
        self._begin(start)
        buffer = bytearray(_CHUNK_BYTES)
        have = 0
        base = start
        while True:
            want = min(len(buffer) - have, end - base - have)
            got = reader.read_into(memoryview(buffer)[have : have + want], base + have) if want > 0 else 0
            have += got
            stop = whole_events(buffer, 0, have)
            used = 0
            while used < stop:
                status = ingest.feed(buffer, used, stop)
                ingest.take_entries()
                ingest.take_violations()
                ingest.take_unknown_types()
                progressed = ingest.consumed > used
                used = ingest.consumed
                if ingest.table_rows:
                    self.timestamp = ingest.timestamp
                    run = Run(buffer, base, table, ingest.table_rows)
                    if self.on_run is not None:
                        self.on_run(run)
                    yield run
                if status >= _FIRST_ERROR or not progressed:
                    self._broken(status, bytes(buffer[used : used + _HEADER_BYTES]))
                    return
            rest = have - used
            if rest >= _HEADER_BYTES:
                length = int.from_bytes(buffer[used + 9 : used + 13], "little")
                if not _HEADER_BYTES <= length <= MAX_EVENT:
                    self._broken(17, bytes(buffer[used : used + _HEADER_BYTES]))
                    return
                if base + used + length > end:
                    self._too_long(bytes(buffer[used : used + _HEADER_BYTES]), base + used, end)
                    return
                if length > len(buffer) and used == 0 and rest == len(buffer):
                    larger = bytearray(length)
                    larger[:rest] = buffer
                    buffer = larger
            if not got and not used:
                if rest or base < end:
                    self._truncated(bytes(buffer[:rest]), base, base + rest, end)
                return
            buffer[:rest] = buffer[used:have]
            have = rest
            base += used

    def _broken(self, status: int, head: bytes) -> None:
        name = STATUS_NAMES.get(status, f"status_{status}")
        event = event_type_name(head[4]) if len(head) > 4 else "the event"
        length = int.from_bytes(head[9:13], "little")
        text = _TEXTS.get(name, "{event} cannot be read. What follows in the file is not read.")
        self._break(_RENAMED.get(name, name), self.ingest.position, text.format(event=event, length=length))

    def _too_long(self, head: bytes, position: int, end: int) -> None:
        """The event at `position` says that it goes on behind `end`."""
        if end == self._split.stop and self._split.last:
            self._truncated(head, position, end, end)
            return
        length = int.from_bytes(head[9:13], "little")
        text = (
            f"{event_type_name(head[4])} announces {length} bytes; the next transaction begins {end - position} bytes behind "
            "its start. What stands before that is not read."
        )
        self._break("event_length_wrong", position, text)

    def _truncated(self, head: bytes, position: int, end: int, planned: int) -> None:
        """The file has nothing of the event at `position` from `end` on, and was to be read up to `planned`."""
        if end < planned:
            text = f"The file ends at {end}; when the read was planned it was to end at {planned}."
            self._break("file_shrunk", position, text)
            return
        announced = int.from_bytes(head[9:13], "little") if len(head) >= 13 else _HEADER_BYTES
        least = "" if len(head) >= 13 else "at least "
        text = f"The event has {least}{announced} bytes, the file ends after {end - position} of them."
        self._break("event_truncated", position, text)

    def _break(self, name: str, position: int, text: str) -> None:
        self.broken = Finding(self._split.name, position, self._split.stop, self.timestamp, name, text)
