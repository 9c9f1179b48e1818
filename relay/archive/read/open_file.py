"""An archived file that is open for many readers: plain on this disk, packed in `relay.packed_reads`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from protocol.binlog.encoded_events import rotate_size
from protocol.position import Position
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import Buffer, FileLayer
from relay.archive.sums.file_sums import BlockReader, FileSums, damaged_block, touched

TAIL_BYTES: Final = 320
"""The bytes at a file's end that suffice for a whole Rotate or Stop event."""


class OpenFile(ABC):
    """An open archived file, shared by all its readers. `FileReads.open` creates it, `FileReads.close` takes it back.

    inode: the file's, at its path. sums: compared with its blocks; None: nothing is.
    """

    is_packed = False
    """True if reads may wait for more than the disk."""

    def __init__(self, path: Path, inode: int, sums: FileSums | None) -> None:
        self.path = path
        self.inode = inode
        self.sums = sums
        self.users = 0
        self._rotate: tuple[int, int | None] = (0, None)
        """The end at which a Rotate was looked for last, and what was found."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The file's present size in bytes. Raises: OSError."""

    def read_into(self, view: memoryview, offset: int) -> int:
        """Read at `offset`; return how many bytes came, 0 only at the end. Blocking.

        If there are sums, the bytes are what was received. Raises: OSError; ArchiveDamaged if not even the first one is.
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
        """Fill `parts` with the bytes at `offset`, as they are. Blocking. Raises: OSError; of a packed file ArchiveError."""

    @abstractmethod
    def read_parts_now(self, parts: Sequence[Buffer], offset: int) -> int:
        """Read what is in memory, at `offset`. Raises: BlockingIOError if nothing is; OSError."""

    def arrival(self, offset: int, size: int) -> "Future[None] | None":
        """Return a future that is done when `read_into` need not wait for a store, or has the error that came instead; None: it never
        waits."""
        return None

    def close(self) -> None:
        """Release the file, which has no users any more."""
        if self.sums is not None:
            self.sums.close()

    @abstractmethod
    def read(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes at `offset`, as they are; fewer only at the end of the file. It waits for the disk, never for a
        store. Raises: OSError; BlockingIOError if they are in a store."""

    def last_rotate(self, end: int, *, with_checksum: bool) -> int | None:
        """Return the offset of the Rotate that ends at `end`; None: another event does. It reads as `read`, once for each end.
        Raises: OSError."""
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
        """Open the file. Raises: OSError."""
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
        """Implement `OpenFile.size`."""
        return self._layer.size(self.fd)

    def _read_parts(self, parts: Sequence[Buffer], offset: int) -> int:
        return self._layer.preadv(self.fd, parts, offset)

    def read_parts_now(self, parts: Sequence[Buffer], offset: int) -> int:
        """Implement `OpenFile.read_parts_now`."""
        return self._layer.preadv_cached(self.fd, parts, offset)

    def close(self) -> None:
        """Implement `OpenFile.close`."""
        self._layer.close(self.fd)
        super().close()

    def read(self, offset: int, count: int) -> bytes:
        """Implement `OpenFile.read`."""
        return self._layer.pread(self.fd, count, offset)


class PackedLayer(FileLayer, ABC):
    """A disk on which binlogs may be packed, or be somewhere else: they are read by their plain names all the same."""

    @abstractmethod
    def open_packed(self, path: Path, sums: FileSums | None) -> OpenFile:
        """Open the binlog at `path`, which is not there as it was received. Raises: OSError (there is none); ArchiveError."""

    @abstractmethod
    def check_packed(
        self, path: Path, file: ArchivedFile, on_progress: Callable[[int], None]
    ) -> Iterator[ArchiveFinding]:
        """Read all stored bytes of the binlog at `path`, which is packed, and compare them with what was recorded.

        If the binlog itself is not what was archived, the finding has a `boundary`. on_progress: gets the bytes read since its last
        call, and may raise to end the check. Blocking. Raises: OSError, FileNotFoundError if it is not on the disk;
        ArchiveUnavailable if it is in a bucket that cannot be read now.
        """


def open_archived(layer: FileLayer, path: Path, sums: FileSums | None) -> OpenFile:
    """Open the binlog at `path`, plain or packed. Raises: OSError; ArchiveError of a packed one."""
    try:
        return PlainFile(layer, path, sums)
    except FileNotFoundError:
        if not isinstance(layer, PackedLayer):
            raise
    return layer.open_packed(path, sums)
