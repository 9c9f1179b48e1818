"""The bytes of one open file: what the reader of binlogs needs of a disk, an archive's layer or an object store."""

import os
from collections.abc import Iterator
from typing import Final, Protocol

_PIECE_BYTES: Final = 1 << 20


class FileBytes(Protocol):
    """An open file, read by position. Both members raise OSError as the file system does."""

    @property
    def size(self) -> int:
        """The file's bytes: as of opening, or now."""

    def read_into(self, view: memoryview, offset: int) -> int:
        """Reads at `offset`; returns how many bytes came, 0 only at the end."""


class DescriptorBytes:
    """A file that is open as `fd`, which stays the caller's to close."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @property
    def size(self) -> int:
        """The file's bytes, now."""
        return os.fstat(self._fd).st_size

    def read_into(self, view: memoryview, offset: int) -> int:
        """Reads at `offset`."""
        return os.preadv(self._fd, [view], offset)


def read_bytes(source: FileBytes, offset: int, count: int) -> bytes:
    """The `count` bytes at `offset`; fewer where the file ends before. Raises: OSError."""
    buffer = bytearray(count)
    have = 0
    while have < count:
        got = source.read_into(memoryview(buffer)[have:], offset + have)
        if not got:
            break
        have += got
    return bytes(buffer[:have])


def pieces(source: FileBytes, start: int, stop: int, piece_bytes: int = _PIECE_BYTES) -> Iterator[memoryview]:
    """The bytes of [start, stop), fewer where the file ends before. A piece is good until the next is asked for.

    Raises: OSError.
    """
    view = memoryview(bytearray(max(0, min(piece_bytes, stop - start))))
    while start < stop:
        got = source.read_into(view[: stop - start], start)
        if not got:
            return
        yield view[:got]
        start += got
