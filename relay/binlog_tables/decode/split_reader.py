"""A reader of splits, a megabyte at a time; the kernel checks and interprets them: runs of whole events with their table."""

import platform
from collections.abc import Callable, Iterator
from typing import Final

from protocol.binlog.event_type import event_type_name
from protocol.binlog.layout import HEADER_SIZE, TYPE_AT, event_size
from protocol.columns.column_reader import whole_events
from relay.archive.catalog.generation_directories import generation_numbers
from relay.binlog_file.broken import EVENT_TRUNCATED, Broken, cut_event
from relay.binlog_file.event_reader import EventReader, EventRun
from relay.binlog_file.file_end import INCOMPLETE, INCOMPLETE_TEXT
from relay.binlog_tables.plan.read_finding import Finding, ReadRefused
from relay.binlog_tables.plan.splits import Split, is_incomplete
from relay.binlog_tables.plan.store import LocalStore, Reader, Store

_TABLE_ROWS: Final = 32768
# One name is used for one thing, whoever encrypted the file.
_RENAMED: Final = {"binlog_encrypted": "file_encrypted"}


class SplitReader:
    """One pass over a split. When `runs` is exhausted, `broken` says why it ended early, if it did."""

    def __init__(self, store: Store, split: Split) -> None:
        self._store = store
        self._split = split
        self._events: EventReader | None = None
        self.broken: Finding | None = None
        self.timestamp = 0
        self.on_run: Callable[[EventRun], None] | None = None
        """This is called with each run before it is yielded."""

    def post_lengths(self) -> bytes:
        """Return the format description's post-header lengths; complete from the first run on."""
        return b"" if self._events is None else self._events.ingest.post_lengths()

    def runs(self) -> Iterator[EventRun]:
        """Yield the events of the split. A run is valid until the next is requested. Only a chunk and the largest event are held.
        Raises: ReadRefused."""
        split = self._split
        if not split.parts:
            return
        try:
            file = self._store.open(split.path)
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            if gone:
                _check_is_shared(self._store, split.path)
            name = "file_gone" if gone else "file_unreadable"
            text = f"The file was there when the read was planned, and cannot be opened on {platform.node()}: {error}."
            self._break(name, split.start, text)
            return
        events = self._events = EventReader(
            file,
            table_rows=_TABLE_ROWS,
            tolerant=True,
            format_event=split.format_event,
            whole_events=whole_events,
        )
        events.ingest.detailed = True
        try:
            for start, stop in split.parts:
                yield from self._read(events, start, stop)
                if self.broken is not None:
                    break
            self._look_at_end(file)
        except Broken as broken:
            self._broken(broken)
        except OSError as error:
            self._break("file_unreadable", events.ingest.position, f"The file cannot be read on: {error}.")
        finally:
            file.close()

    def _look_at_end(self, file: Reader) -> None:
        """Check whether the file is complete. Raises: OSError."""
        ends = self.broken is None or self.broken.name == EVENT_TRUNCATED
        if ends and is_incomplete(self._store, file, self._split.stop, self._split.following):
            position = self._split.stop if self.broken is None else self.broken.position
            self._break(INCOMPLETE, position, INCOMPLETE_TEXT)

    def _read(self, events: EventReader, start: int, end: int) -> Iterator[EventRun]:
        """Yield the events of [start, end), whole transactions. Raises: Broken; OSError."""
        for run in events.runs(start, end):
            if run.rows:
                self.timestamp = events.ingest.timestamp
                if self.on_run is not None:
                    self.on_run(run)
                yield run
        position, head = events.unfinished or (events.read_to, b"")
        if len(head) == HEADER_SIZE and position + event_size(head) > end:
            self._too_long(head, position, end)
        elif events.read_to < end:
            text = f"The file ends at {events.read_to}; when the read was planned it was to end at {end}."
            self._break("file_shrunk", position, text)
        elif head:
            self._broken(cut_event(position, event_size(head), end - position))

    def _too_long(self, head: bytes, position: int, end: int) -> None:
        """Break: the event at `position` has a length that goes beyond `end`."""
        size = event_size(head)
        if end == self._split.stop and self._split.last:
            self._broken(cut_event(position, size, end - position))
            return
        text = (
            f"{event_type_name(head[TYPE_AT])} announces {size} bytes; the next transaction begins {end - position} bytes "
            "behind its start. What stands before that is not read."
        )
        self._break("event_length_wrong", position, text)

    def _broken(self, broken: Broken) -> None:
        self._break(_RENAMED.get(broken.name, broken.name), broken.offset, broken.text)

    def _break(self, name: str, position: int, text: str) -> None:
        self.broken = Finding(self._split.name, position, self._split.stop, self.timestamp, name, text)


def _check_is_shared(store: Store, path: str) -> None:
    """Check the path: a missing file was purged; a missing directory never existed on this machine. Raises: ReadRefused."""
    directory = path.rpartition("/")[0]
    if len(generation_numbers([directory.rpartition("/")[2]])) > 1:
        directory = directory.rpartition("/")[0]  # This is a later source's own, which is removed with its last file
    if isinstance(store, LocalStore) and directory and not store.is_directory(directory):
        raise ReadRefused(
            f"{platform.node()} has no directory {directory}, where the driver found the archive. Driver and executors must see "
            "it at the same path (a file system that all mount), or read it by a URL: docs/SPARK.md, 'On a cluster'."
        )
