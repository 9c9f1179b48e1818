"""SHOW BINLOG EVENTS: the events of an archived file, a page at a time.

A server streams as many rows as there are; here a statement gets at most MOST_EVENTS, and a last row that says where to continue: a
table of ten million events would take the loop's time from the replicas. The scan runs in a thread with one megabyte of memory, one
at a time for all connections.
"""

import asyncio
import struct
import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from protocol.binlog.boundary import TBM_MASK, TBM_SHIFT, BoundaryType
from protocol.binlog.event_info import event_info, event_type_text
from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import FormatDescription, decode_first_event
from protocol.binlog.header import EventHeader
from protocol.binlog.layout import FIRST_EVENT, HEADER_SIZE
from protocol.errors import Malformed, StatementRefused
from protocol.kernel.codes import FLAGS_AT, INFO_BOUNDARY, INFO_CHECKSUM
from protocol.resultset import Rows, Value
from protocol.statements import EncodedRows
from protocol.statements.requests import ShowBinlogEvents
from relay.admin.dialect import Dialect
from relay.admin.refusals import events_refused
from relay.archive.read.position_check import PositionCheck, Verdict
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer, StoredFile
from relay.binlog_file.binlog_scan import BinlogScan, Chunk, Unreadable
from relay.fairness.client_threads import in_turn
from relay.fairness.fair_pool import FairPool
from relay.process.slow_thread import give_way

MOST_EVENTS: Final = 5000
"""The most rows that one statement gets. To encode them takes the thread 15 ms, to frame them the loop 3 ms."""
MOST_TEXT: Final = 4 << 20
"""The approximate number of characters of Info that one statement gets."""

COLUMNS: Final = ("Log_name", "Pos", "Event_type", "Server_id", "End_log_pos", "Info")
_PACKED_THREADS: Final = 4
_MOST_BODY_BYTES: Final = 1 << 17
_ROWS_A_TURN: Final = 100
_LABELS: Final = {
    BoundaryType.NOT_DEFINED: "",
    BoundaryType.IGNORE: "[ignore] ",
    BoundaryType.SELF_CONTAINED: "[self contained] ",
    BoundaryType.START: "[start] ",
    BoundaryType.INSIDE: "[inside] ",
    BoundaryType.END: "[end] ",
}


class Archived(Protocol):
    """The parts of an archive that are needed."""

    @property
    def files(self) -> Sequence[ArchivedFile]:
        """All files, oldest first."""

    def file(self, name: str) -> ArchivedFile | None:
        """Return the file of that name."""

    def path(self, name: str) -> Path:
        """Return its path."""

    @property
    def layer(self) -> FileLayer:
        """The disk that it is read from."""

    async def check_position(self, file: str, offset: int) -> PositionCheck:
        """Return what is at that position."""


class BinlogEvents:
    """Answers SHOW BINLOG EVENTS, one after another, by turns of accounts."""

    def __init__(self) -> None:
        self._thread = FairPool(1, "binlog-events", kept=1)
        self._packed_threads = FairPool(_PACKED_THREADS, "packed-events")
        """The threads for scans that wait for a bucket, so that these do not delay scans of plain files."""

    def close(self) -> None:
        """End the thread once its scan has noticed that its result is not wanted any more."""
        for threads in (self._thread, self._packed_threads):
            threads.shutdown(wait=False, cancel_futures=True)

    async def show(
        self, archive: Archived, request: ShowBinlogEvents, dialect: Dialect, encode: Callable[[Rows], EncodedRows]
    ) -> EncodedRows:
        """Return the answer; `encode` is called in a thread. Cancelling it ends the scan within a megabyte.

        Raises: StatementRefused (1220).
        """
        files = archive.files
        file = archive.file(request.file) if request.file is not None else next(iter(files), None)
        if file is None:
            raise _not_held(archive)
        try:
            return await self._show(archive, file, request, dialect, encode)
        except StatementRefused:
            if archive.file(file.name) is None:
                raise _not_held(archive) from None  # it was purged meanwhile
            raise

    async def _show(
        self,
        archive: Archived,
        file: ArchivedFile,
        request: ShowBinlogEvents,
        dialect: Dialect,
        encode: Callable[[Rows], EncodedRows],
    ) -> EncodedRows:
        path = archive.path(file.name)
        end = file.end
        first = max(request.position, FIRST_EVENT)
        if first > end and dialect.is_mariadb:
            raise events_refused(
                f"Invalid pos specified. Requested from pos:{first} is greater than actual file size:{end}"
            )
        start = min(first, end)
        if FIRST_EVENT < first < end:
            start = await self._start(archive, file.name, path, first)
        gone = threading.Event()
        opened = partial(StoredFile.open, archive.layer, path)
        scan = partial(BinlogScan, path, start=start, end=end, opened=opened)
        page = _Page(scan, file.name, end=end, first=first, request=request, gone=gone)
        thread = self._thread if file.place is None else self._packed_threads
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, lambda: encode(page.read()))
        except (OSError, Unreadable, ArchiveError) as error:
            raise events_refused(f"Wrong offset or I/O error; {file.name}: {error}") from error
        finally:
            gone.set()

    async def _start(self, archive: Archived, name: str, path: Path, first: int) -> int:
        """Return where the scan must begin so that the events from `first` on are recognized."""
        try:
            check = await archive.check_position(name, first)
            if check.verdict is Verdict.INSIDE_TRANSACTION and check.group is not None:
                marked = await in_turn(_is_marked, archive.layer, path, first)
                return first if marked else check.group[0]
        except (ArchiveError, OSError) as error:
            raise events_refused(f"Wrong offset or I/O error; {error}") from error
        if check.verdict is Verdict.BOUNDARY:
            return first
        raise events_refused(
            f"Wrong offset or I/O error; {name}:{first} is inside an event, "
            f"nearest positions between transactions: before {check.before}, after {check.after}"
        )


def _not_held(archive: Archived) -> StatementRefused:
    files = archive.files
    held = f"binlog-relay holds {files[0].name} to {files[-1].name}" if files else "binlog-relay holds no file yet"
    return events_refused(f"Could not find target log; {held}")


def _is_marked(layer: FileLayer, path: Path, offset: int) -> bool:
    """Return whether the event at `offset` carries its boundary. Raises: OSError."""
    with StoredFile.open(layer, path) as file:
        flags = file.read(offset + FLAGS_AT, 2)
    return len(flags) == 2 and bool(struct.unpack("<H", flags)[0] & TBM_MASK)


class _Page:
    """One page of events. `read` is for a thread."""

    def __init__(
        self,
        scan: Callable[[], BinlogScan],
        name: str,
        *,
        end: int,
        first: int,
        request: ShowBinlogEvents,
        gone: threading.Event,
    ) -> None:
        self._open_scan = scan
        self._name = name
        self._end = end
        self._first = first
        self._skip = request.offset
        self._wanted = request.count
        self._gone = gone
        self._rows: list[tuple[Value, ...]] = []
        self._text = 0
        self._format: FormatDescription | None = None

    def read(self) -> Rows:
        """Scan. Raises: OSError, Unreadable."""
        if self._first < self._end and self._wanted != 0:
            self._scan()
        return Rows(COLUMNS, tuple(self._rows))

    def _scan(self) -> None:
        with self._open_scan() as scan:
            try:
                self._format = decode_first_event(scan.first_event)[1]
            except Malformed as error:
                raise Unreadable(f"its Format_description cannot be read: {error}") from None
            for chunk in scan.chunks():
                if self._gone.is_set() or not self._take(chunk):
                    return

    def _take(self, chunk: Chunk) -> bool:
        """Add the rows of a chunk that are wanted; False: the page is full."""
        row = bisect_left(range(chunk.rows), self._first, key=chunk.offset)
        skipped = min(self._skip, chunk.rows - row)
        self._skip -= skipped
        row += skipped
        for place in range(row, chunk.rows):
            offset = chunk.offset(place)
            if self._wanted is not None and len(self._rows) >= self._wanted:
                return False
            if len(self._rows) >= MOST_EVENTS or self._text >= MOST_TEXT:
                self._say_more(offset)
                return False
            if not place % _ROWS_A_TURN:
                give_way()
            self._add(chunk, place)
        return True

    def _add(self, chunk: Chunk, place: int) -> None:
        offset, length, kind, flags, timestamp, server_id, end_position, info = chunk.row(place)
        header = EventHeader(timestamp, kind, server_id, length, end_position, flags)
        text = _boundary_label(header, info) + self._info(chunk, offset, header, info)
        self._text += len(text)
        self._rows.append((self._name, offset, event_type_text(kind), server_id, offset + length, text))

    def _info(self, chunk: Chunk, offset: int, header: EventHeader, info: int) -> str:
        at = offset - chunk.base
        trailer = 4 if info & INFO_CHECKSUM and header.type != EventType.FORMAT_DESCRIPTION else 0
        body = chunk.data[at + HEADER_SIZE : at + min(header.size - trailer, _MOST_BODY_BYTES)]
        assert self._format is not None
        try:
            return event_info(header, body, self._format)
        except Malformed as error:
            return f"unreadable: {error}"

    def _say_more(self, offset: int) -> None:
        how = f"SHOW BINLOG EVENTS IN '{self._name}' FROM {offset}"
        text = f"binlog-relay sends at most {MOST_EVENTS} events a statement; go on with {how}"
        self._rows.append((self._name, offset, "More", 0, offset, text))


def _boundary_label(header: EventHeader, info: int) -> str:
    """Return the event's own mark, else what the scan inferred."""
    marked = (header.flags & TBM_MASK) >> TBM_SHIFT
    return (
        _LABELS.get(BoundaryType(marked), "")
        if 0 < marked <= BoundaryType.END
        else _LABELS.get(BoundaryType(info & INFO_BOUNDARY), "")
    )
