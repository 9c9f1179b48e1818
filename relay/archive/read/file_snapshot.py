"""One archived file as a thread may look at it: its published part, and what is known of its transactions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, overload

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import FIRST_EVENT, TYPE_AT
from protocol.errors import Malformed
from protocol.gtid.block_index import BlockIndex
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.gtid.mariadb import GtidList
from relay.archive.gtids.gtid_recorder import read_index, read_last_start
from relay.archive.read.index_damage import IndexDamage
from relay.archive.storage.files import FileLayer, StoredFile
from relay.binlog_file.event_places import event_headers
from relay.binlog_file.file_bytes import pieces
from relay.binlog_file.head import read_start

_HEAD_BYTES: Final = 256
_LOOKED_AT_BYTES: Final = 64 << 20
"""So much is read of a file without an index for the place in a message."""
# The events at a file's head before its first transaction.
_HEAD: Final = {
    EventType.PREVIOUS_GTIDS,
    EventType.GTID_LIST,
    EventType.BINLOG_CHECKPOINT,
    EventType.START_ENCRYPTION,
}

_DISK: Final = FileLayer()
# One for the process: damage is a fact of the disk, whichever caller meets it.
_DAMAGE: Final = IndexDamage()


@dataclass(frozen=True, slots=True)
class FileHead:
    """The events before a file's first transaction; `end`: the offset after them. None: nothing of it is published."""

    format_description: bytes | None
    end: int


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """The published part of a file, as it was on the event loop. All methods block.

    Of a complete file: `inside`: MySQL's transactions in it, encoded; `before`, `after`: MariaDB's state before it and after it.
    None if unknown. anonymous: whether it has a transaction without a GTID.
    """

    name: str
    path: Path
    end: int
    checksum: bool
    inside: bytes | None = None
    before: GtidList | None = None
    after: GtidList | None = None
    anonymous: bool = False
    layer: FileLayer = field(default=_DISK, repr=False, compare=False)

    def open(self) -> StoredFile:
        """Open the file, for its bytes up to `end`. Raises: OSError."""
        return StoredFile.open(self.layer, self.path)

    def blocks(self) -> BlockIndex | None:
        """Return the index of its transactions; None: unknown, the file's own bytes must be read. Raises: OSError."""
        try:
            return read_index(self.layer, self.path)
        except Malformed as error:
            _DAMAGE.report(self.path, str(error))
            return None

    def last_start(self) -> int | None:
        """Return an offset of a complete file that is followed by 64 KiB and one transaction at most; None: unknown. Raises:
        OSError."""
        start = read_last_start(self.layer, self.path)
        return start if start is not None and start < self.end else None

    def first_anonymous(self) -> tuple[int, bool]:
        """Return the offset of the first transaction without a GTID and True, or a place before it and False. Raises: OSError;
        Malformed."""
        blocks = self.blocks()
        if blocks is None:
            # The newest file has no index yet.
            return self._first_anonymous(FIRST_EVENT, min(self.end, FIRST_EVENT + _LOOKED_AT_BYTES))
        for block in blocks:
            if block.anonymous:
                return self._first_anonymous(block.start, block.stop)
        return FIRST_EVENT, False

    def _first_anonymous(self, start: int, stop: int) -> tuple[int, bool]:
        """Return the place of the first one in [start, stop) and True, or how far was looked and False."""
        exact = FileGtidCollector("mysql", checksum=self.checksum, gap_bytes=0)
        exact.begin(start)
        looked = start
        with self.open() as stored:
            for piece in pieces(stored, start, stop):
                exact.take(piece)
                for found in exact.take_blocks():
                    if found.anonymous:
                        return found.start, True
                    looked = found.stop
        exact.finish()
        return next(((found.start, True) for found in exact.take_blocks() if found.anonymous), (looked, False))

    def head(self) -> FileHead:
        """Read the head. Raises: OSError; Malformed."""
        if self.end <= FIRST_EVENT:
            return FileHead(None, FIRST_EVENT)
        with self.open() as stored:
            start = read_start(stored)
            event = start.event
            if not start.is_whole or event[TYPE_AT] != EventType.FORMAT_DESCRIPTION:
                raise Malformed(f"{self.name} does not begin with a format description")
            end = FIRST_EVENT + len(event)
            for at, fields in event_headers(stored, end, self.end, _HEAD_BYTES):
                if fields.type not in _HEAD or at + fields.size > self.end:
                    break
                end = at + fields.size
            return FileHead(event, end)


class FileSnapshots(Sequence[FileSnapshot]):
    """Snapshots of files, oldest first, each created when it is used: of 10,000 files a request uses one or two.

    names: of the files. snapshot: creates one, also in a thread: a complete file does not change any more. newest: the last one's,
    which grows.
    """

    def __init__(
        self, names: Sequence[str], snapshot: Callable[[str], FileSnapshot], newest: FileSnapshot | None
    ) -> None:
        self.names = names
        self._snapshot = snapshot
        self._newest = newest

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, number: int) -> FileSnapshot: ...

    @overload
    def __getitem__(self, number: slice) -> list[FileSnapshot]: ...

    def __getitem__(self, number: int | slice) -> FileSnapshot | list[FileSnapshot]:
        if isinstance(number, slice):
            return [self[place] for place in range(*number.indices(len(self)))]
        name = self.names[number]
        return self._newest if self._newest is not None and name == self._newest.name else self._snapshot(name)
