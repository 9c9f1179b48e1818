"""The bytes of one open file: the interface that the reader of binlogs needs to a disk, an archive's layer or an object store."""

import os
from collections.abc import Iterator
from typing import Final, Protocol

_PIECE_BYTES: Final = 1 << 20


class FileBytes(Protocol):
    """An open file, read by position. Both members raise OSError as the file system does."""

    @property
    def size(self) -> int:
        """The file's size in bytes: as of opening, or now."""

    def read_into(self, view: memoryview, offset: int) -> int:
        """Read at `offset`; return how many bytes came, 0 only at the end."""


class DescriptorBytes:
    """A file that is open as `fd`, which the caller closes."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @property
    def size(self) -> int:
        """The file's present size in bytes."""
        return os.fstat(self._fd).st_size

    def read_into(self, view: memoryview, offset: int) -> int:
        """Read at `offset`."""
        return os.preadv(self._fd, [view], offset)


def read_bytes(source: FileBytes, offset: int, count: int) -> bytes:
    """Return the `count` bytes at `offset`; fewer if the file ends before. Raises: OSError."""
    buffer = bytearray(count)
    have = 0
    while have < count:
        got = source.read_into(memoryview(buffer)[have:], offset + have)
        if not got:
            break
        have += got
    return bytes(buffer[:have])


def pieces(source: FileBytes, start: int, stop: int, piece_bytes: int = _PIECE_BYTES) -> Iterator[memoryview]:
    """Yield the bytes of [start, stop), fewer if the file ends before. A piece is valid until the next is requested.

    Raises: OSError.
    """
    view = memoryview(bytearray(max(0, min(piece_bytes, stop - start))))
    while start < stop:
        got = source.read_into(view[: stop - start], start)
        if not got:
            return
        yield view[:got]
        start += got
