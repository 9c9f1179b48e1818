"""One file of a view on its way into the view's archive: it is translated, compared with existing bytes, checked, and cut into runs."""

from pathlib import Path
from typing import Final, NamedTuple

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import FIRST_EVENT, HEADER_SIZE, TYPE_AT, event_size, is_event_size
from protocol.errors import RelayError
from protocol.kernel import codes
from protocol.kernel.ingest import Ingest
from relay.archive.read.open_file import OpenFile
from relay.archive.storage.files import FileLayer
from relay.archive.write.run import Run
from relay.binlog_file.file_bytes import DescriptorBytes
from relay.binlog_file.head import read_start
from relay.view.translate.wait_counts import WaitCounts
from relay.view.translation import BUFFER_BYTES, FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_disk import own_file
from relay.view.view_map import MapWriter

_SMALL_RUN_BYTES: Final = 16 << 10
_KEPT_BUFFERS: Final = 6
_PACKED: Final = frozenset((
    EventType.TRANSACTION_PAYLOAD, EventType.QUERY_COMPRESSED, EventType.WRITE_ROWS_COMPRESSED_V1,
    EventType.UPDATE_ROWS_COMPRESSED_V1, EventType.DELETE_ROWS_COMPRESSED_V1, EventType.WRITE_ROWS_COMPRESSED,
    EventType.UPDATE_ROWS_COMPRESSED, EventType.DELETE_ROWS_COMPRESSED,
))  # fmt: skip
"""Types of events that may be much longer unpacked than they are in the file."""


class ViewDiffers(RelayError):
    """The rebuilt bytes differ from the view's file from `offset` on. They are built from `source_offset` on in the source's file of
    the same name, which is a place between two transactions."""

    file: str
    offset: int

    def __init__(self, file: str, offset: int, source_offset: int) -> None:
        super().__init__("the view is not what the archive and the settings make now", file=file, offset=offset)
        self.source_offset = source_offset


class Made(NamedTuple):
    """The result of one step. `runs` are for the archive, in order. `is_idle`: nothing is left to be built up to the given end."""

    runs: list[Run]
    is_idle: bool


class MakingBuffers:
    """Buffers that circulate between the maker's thread and the archive's writer."""

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self) -> bytearray:
        """Return a buffer with arbitrary content."""
        try:
            return self._free.pop()
        except IndexError:
            return bytearray(BUFFER_BYTES)

    def give(self, buffer: bytearray) -> None:
        """Take back a buffer that nothing refers to any more."""
        if len(self._free) < _KEPT_BUFFERS:
            self._free.append(buffer)


class FileMaker:
    """Builds one file of a view. Blocking; for one thread at a time, also the event loop's where little has to be built."""

    def __init__(
        self,
        translation: FileTranslation,
        source: OpenFile,
        written: Path,
        written_to: int,
        buffers: MakingBuffers,
        layer: FileLayer,
    ) -> None:
        """Open the map and compare the head of `written`, the view's file, which exists up to `written_to`; FIRST_EVENT: it does not
        exist. The translation begins there or before: its first bytes are compared. The map is written from where the translation
        begins on, and exists before the file does. Raises: OSError; ViewDiskFailed; ViewDiffers."""
        self.translation = translation
        self._source = source
        self._layer = layer
        self._written = written
        self._written_to = written_to
        self._buffers = buffers
        self._map: MapWriter | None = None
        self._there_fd = -1
        self.counts = WaitCounts()
        """The counts of what was new in it; the caller takes them away."""
        self._begin = translation.checkpoint()
        self._at = self._begin.view
        """The offset in the view of the next byte that is built."""
        self._source_at = translation.offset
        """The offset in the source from which that byte is built."""
        self._ingest = Ingest(packets=False, stamp=True)
        self._ingest.begin_file(written_to)
        self._carry = b""
        self._events = self._groups = 0
        try:
            if not translation.looks_back:
                self._open_map()
            if written_to > FIRST_EVENT:
                self._read_head()
        except BaseException:
            self._close_own()
            raise

    def _open_map(self) -> MapWriter:
        """Open the map from where the translation began. Raises: ViewDiskFailed."""
        with own_file(self._written, self._layer, is_written=True):
            self._map = MapWriter(self._layer, self._written, self._begin)
        return self._map

    def _read_head(self) -> None:
        """Read the head of the view's existing file. Raises: OSError; ViewDiffers."""
        self._there_fd = self._layer.open_read(self._written)
        event = read_start(DescriptorBytes(self._there_fd)).event
        if not self._ingest.read_format(bytearray(event), 0, len(event)):
            raise ViewDiffers(self._written.name, FIRST_EVENT, FIRST_EVENT)

    @property
    def reads_packed(self) -> bool:
        """True if a read of the source's file may have to be waited for."""
        return self._source.is_packed

    def has_packed(self, end: int) -> bool:
        """Return whether the small rest of the source's file up to `end` contains a packed event, or has unreadable headers: a kilobyte
        may become megabytes. Raises: OSError."""
        start = self.translation.offset
        data = bytearray(max(0, end - start))
        if self._source.read_into(memoryview(data), start) != len(data):
            return True
        at = 0
        while at + HEADER_SIZE <= len(data) and is_event_size(size := event_size(data, at)):
            if data[at + TYPE_AT] in _PACKED:
                return True
            at += size
        return at != len(data)

    @property
    def is_comparing(self) -> bool:
        """True if the bytes that are built now exist already."""
        return self._at < self._written_to

    @property
    def is_done(self) -> bool:
        """True if the file is complete."""
        return self.translation.done and not self._carry

    def checkpoint(self) -> ViewCheckpoint:
        """Return the place of `FileTranslation.checkpoint`."""
        return self.translation.checkpoint()

    def make(self, end: int, *, sealed: bool, ends_cut: bool = False) -> Made:
        """Do a step: build up to a buffer of the view from the source up to `end`.

        After an exception a new FileMaker is needed.
        Raises: ViewStopped, ArchiveDamaged (of the source's file), ViewDiffers, ViewDiskFailed, OSError (of the source's file).
        """
        buffer = self._buffers.take()
        start = len(self._carry)
        buffer[:start] = self._carry
        self._source_at = self.translation.offset
        is_known = self.is_comparing
        stop = self.translation.fill(buffer, start, end, sealed=sealed, ends_cut=ends_cut)
        counts = self.translation.take_counts()
        if not is_known:
            self.counts.add(counts)
        runs: list[Run] = []
        if stop > start:
            with own_file(self._written, self._layer):
                begin = self._compare(buffer, start, stop) if self.is_comparing else start
            self._at += stop - start
            if begin < stop or self._carry:
                runs = self._runs(buffer, 0 if self._carry else begin, stop)
        if not any(run.on_written for run in runs):
            self._buffers.give(buffer)
        with own_file(self._written, self._layer, is_written=True):
            self._add_marks()
        return Made(runs, stop == start)

    def _compare(self, buffer: bytearray, start: int, stop: int) -> int:
        """Return where in the buffer the new bytes begin. Raises: ViewDiffers."""
        count = min(stop - start, self._written_to - self._at)
        there = self._layer.pread(self._there_fd, count, self._at)
        if there != bytes(buffer[start : start + count]):
            same = next((i for i, byte in enumerate(there) if byte != buffer[start + i]), len(there))
            raise ViewDiffers(self._written.name, self._at + same, self._source_at)
        return start + count

    def _runs(self, buffer: bytearray, start: int, stop: int) -> list[Run]:
        ingest = self._ingest
        runs: list[Run] = []
        pending = 0

        def written() -> None:
            nonlocal pending
            pending -= 1
            if not pending:
                self._buffers.give(buffer)

        view = memoryview(buffer)
        while True:
            status = ingest.feed(buffer, start, stop)
            if status >= codes.BAD_CRC:
                at = ingest.position
                raise ViewDiffers(self._written.name, at, self._source_at) from ValueError(ingest.error_text)
            produced, consumed = ingest.produced, ingest.consumed
            if produced > start:
                small = produced - start <= _SMALL_RUN_BYTES
                if not small:
                    pending += 1
                runs.append(
                    Run(
                        bytes(view[start:produced]) if small else view[start:produced],
                        ingest.boundary,
                        ingest.position,
                        ingest.take_entries(),
                        ingest.events - self._events,
                        ingest.groups - self._groups,
                        ingest.timestamp,
                        None if small else written,
                    )
                )
                self._events, self._groups = ingest.events, ingest.groups
            start = consumed
            if status == codes.NEED_MORE:
                break
        self._carry = bytes(view[start:stop])
        return runs

    def _add_marks(self) -> None:
        marks, self.translation.marks = self.translation.marks, []
        if marks:
            # A start may be refused: then there is no file, and must be no map. The first mark shows that it was accepted.
            (self._map or self._open_map()).add(marks)

    def close(self) -> None:
        """Close the files, the source's too."""
        self._close_own()
        self._source.close()

    def _close_own(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None
        if self._there_fd >= 0:
            self._layer.close(self._there_fd)
            self._there_fd = -1
