"""An archived file that is open for many readers: plain on the disk here, packed in `relay.packed_reads`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from protocol.binlog.made_events import rotate_size
from protocol.position import Position
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import Buffer, FileLayer
from relay.archive.sums.file_sums import BlockReader, FileSums, damaged_block, touched

TAIL_BYTES: Final = 320
"""Of a file's end, enough for a whole Rotate or Stop event."""


class OpenFile(ABC):
    """An open archived file, shared by all who read it. Made by `FileReads.open`, given back by `FileReads.close`.

    inode: which file it is, at its path. sums: what is compared with its blocks; None: nothing.
    """

    is_packed = False
    """Whether reads may wait for more than the disk."""

    def __init__(self, path: Path, inode: int, sums: FileSums | None) -> None:
        self.path = path
        self.inode = inode
        self.sums = sums
        self.users = 0
        self._rotate: tuple[int, int | None] = (0, None)
        """Where was looked for a Rotate last, and what was found."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The file's bytes, now. Raises: OSError."""

    def read_into(self, view: memoryview, offset: int) -> int:
        """Reads at `offset`; returns how many bytes came, 0 only at the end. Blocking.

        Where there are sums, bytes are what was received. Raises: OSError; ArchiveDamaged where not even the first one is.
        """
        if self.sums is None or not view:
            return self._read_parts([view], offset)
        blocks = BlockReader()
        got = blocks.read(self._read_parts, self.sums.read(*touched(offset, len(view))), view, offset)
        if not got and blocks.wrong is not None:
            raise damaged_block(self.path.name, blocks.wrong, offset)
        return got

    @abstractmethod
    def _read_parts(self, parts: Sequence[Buffer], offset: int) -> int:
        """Fills `parts` with what stands at `offset`, as it is. Blocking. Raises: OSError; of a packed file ArchiveError."""

    @abstractmethod
    def read_parts_now(self, parts: Sequence[Buffer], offset: int) -> int:
        """What is in memory, at `offset`. Raises: BlockingIOError where nothing is; OSError."""

    def arrival(self, offset: int, size: int) -> "Future[None] | None":
        """Done when `read_into` need not wait for a store; None: it never has to. With an error where that came instead."""
        return None

    def close(self) -> None:
        """Lets go of the file: nobody uses it any more."""
        if self.sums is not None:
            self.sums.close()

    @abstractmethod
    def read(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes at `offset`, as they are; fewer only at the end of the file. Waits for the disk, never for a
        store. Raises: OSError; BlockingIOError where they are in a store."""

    def last_rotate(self, end: int, *, with_checksum: bool) -> int | None:
        """Offset of the Rotate that ends at `end`; None: another event does. As `read`, once for each end. Raises: OSError."""
        looked_at, found = self._rotate
        if looked_at != end:
            size = min(TAIL_BYTES, end)
            tail = self.read(end - size, size)
            size = rotate_size(tail, Position(self.path.name, end), with_checksum=with_checksum)
            found = end - size if size else None
            self._rotate = end, found
        return found


class PlainFile(OpenFile):
    """A binlog as it was received, on the disk."""

    def __init__(self, layer: FileLayer, path: Path, sums: FileSums | None) -> None:
        """Raises: OSError."""
        self.fd = layer.open_read(path)
        self._layer = layer
        super().__init__(path, layer.inode(self.fd), sums)
        try:
            if sums is not None:
                sums.begin()
        except OSError:
            layer.close(self.fd)
            raise

    @property
    def size(self) -> int:
        """See `OpenFile`."""
        return self._layer.size(self.fd)

    def _read_parts(self, parts: Sequence[Buffer], offset: int) -> int:
        return self._layer.preadv(self.fd, parts, offset)

    def read_parts_now(self, parts: Sequence[Buffer], offset: int) -> int:
        """See `OpenFile`."""
        return self._layer.preadv_cached(self.fd, parts, offset)

    def close(self) -> None:
        """See `OpenFile`."""
        self._layer.close(self.fd)
        super().close()

    def read(self, offset: int, count: int) -> bytes:
        """See `OpenFile`."""
        return self._layer.pread(self.fd, count, offset)


class PackedLayer(FileLayer, ABC):
    """A disk on which binlogs may be packed, or be somewhere else: by their plain names they are read all the same."""

    @abstractmethod
    def open_packed(self, path: Path, sums: FileSums | None) -> OpenFile:
        """The binlog at `path`, which is not there as it was received. Raises: OSError (there is none); ArchiveError."""

    @abstractmethod
    def check_packed(
        self, path: Path, file: ArchivedFile, on_progress: Callable[[int], None]
    ) -> Iterator[ArchiveFinding]:
        """Reads all stored bytes of the binlog at `path`, which is packed, and compares them with what was noted.

        Where the binlog itself is not what was archived, the finding has a `boundary`. on_progress: gets the bytes read since its
        last call, and may raise to end the check. Blocking. Raises: OSError, FileNotFoundError where it is not on the disk;
        ArchiveUnavailable where it is in a bucket that cannot be read now.
        """


def open_archived(layer: FileLayer, path: Path, sums: FileSums | None) -> OpenFile:
    """The binlog at `path`, plain or packed. Raises: OSError; ArchiveError of a packed one."""
    try:
        return PlainFile(layer, path, sums)
    except FileNotFoundError:
        if not isinstance(layer, PackedLayer):
            raise
    return layer.open_packed(path, sums)
