"""One archived file as a thread may look at it: what of it is published, and what is known of its transactions."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, overload

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import FIRST_EVENT, HEADER_SIZE
from protocol.errors import Malformed
from protocol.gtid.block_index import BlockIndex
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.gtid.mariadb import GtidList
from relay.archive.gtids.gtid_recorder import read_index, read_last_start
from relay.archive.read.index_damage import IndexDamage
from relay.archive.storage.files import FileLayer

_LONGEST_FORMAT_DESCRIPTION: Final = 65536
# What stands at a file's head before its first transaction.
_HEAD: Final = {
    EventType.PREVIOUS_GTIDS,
    EventType.GTID_LIST,
    EventType.BINLOG_CHECKPOINT,
    EventType.START_ENCRYPTION,
}

# One for the process: damage is a fact of the disk, whoever meets it.
_DAMAGE: Final = IndexDamage()


@dataclass(frozen=True, slots=True)
class FileHead:
    """What comes before a file's first transaction; `end`: the offset behind it. None: nothing of it is published."""

    format_description: bytes | None
    end: int


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """What of a file is published, as it was on the event loop. All methods block.

    Of a complete file: `inside`: MySQL's transactions in it, encoded; `before`, `behind`: MariaDB's state before it and
    behind it. None where that is not known. anonymous: whether it has a transaction without a GTID.
    """

    name: str
    path: Path
    end: int
    checksum: bool
    inside: bytes | None = None
    before: GtidList | None = None
    behind: GtidList | None = None
    anonymous: bool = False

    def blocks(self) -> BlockIndex | None:
        """Where its transactions are; None: that is not known, the file's own bytes tell it. Raises: OSError."""
        try:
            return read_index(FileLayer(), self.path)
        except Malformed as error:
            _DAMAGE.report(self.path, str(error))
            return None

    def last_start(self) -> int | None:
        """Of a complete file, an offset with 64 KiB and one transaction behind it at most; None: not known. Raises: OSError."""
        start = read_last_start(FileLayer(), self.path)
        return start if start is not None and start < self.end else None

    def first_anonymous(self) -> int:
        """Offset of the first transaction without a GTID, or of a place before it. Raises: OSError; Malformed."""
        for block in self.blocks() or ():
            if not block.anonymous:
                continue
            exact = FileGtidCollector("mysql", checksum=self.checksum, gap_bytes=0)
            exact.begin(block.start)
            with self.path.open("rb") as file:
                file.seek(block.start)
                exact.take(file.read(block.stop - block.start))
            exact.finish()
            return next((found.start for found in exact.take_blocks() if found.anonymous), block.start)
        return FIRST_EVENT

    def head(self) -> FileHead:
        """Raises: OSError; Malformed."""
        if self.end <= FIRST_EVENT:
            return FileHead(None, FIRST_EVENT)
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            header = os.pread(fd, HEADER_SIZE, FIRST_EVENT)
            size = int.from_bytes(header[9:13], "little")
            if (
                header[4:5] != bytes((EventType.FORMAT_DESCRIPTION,))
                or not HEADER_SIZE <= size <= _LONGEST_FORMAT_DESCRIPTION
            ):
                raise Malformed(f"{self.name} does not begin with a format description")
            head = FileHead(os.pread(fd, size, FIRST_EVENT), FIRST_EVENT + size)
            while head.end + HEADER_SIZE <= self.end:
                header = os.pread(fd, HEADER_SIZE, head.end)
                size = int.from_bytes(header[9:13], "little")
                if header[4] not in _HEAD or size < HEADER_SIZE or head.end + size > self.end:
                    break
                head = replace(head, end=head.end + size)
            return head
        finally:
            os.close(fd)


class FileSnapshots(Sequence[FileSnapshot]):
    """Snapshots of files, oldest first, each made when it is looked at: of 10,000 files a request looks at one or two.

    names: of the files. snapshot: makes one, also in a thread: a file that is complete changes no more. newest: the last one's,
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
