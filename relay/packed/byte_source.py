"""The places that bytes are read from: a file on the disk, an object in a bucket, the plain bytes of a packed file."""

from typing import Protocol


class ByteSource(Protocol):
    """Bytes with a known count. `relay.archive.storage.files.StoredFile` is one."""

    @property
    def size(self) -> int:
        """The number of bytes."""

    def read(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes at `offset`; fewer only at the end. Blocking."""


class BytesInMemory:
    """Bytes that are in memory already."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self._data)

    def read(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes at `offset`."""
        return self._data[offset : offset + count]


def read_exactly(source: ByteSource, offset: int, count: int) -> bytes:
    """Return `count` bytes at `offset`, continuing after short reads. Fewer only if the source ends before that."""
    data = source.read(offset, count)
    while data and len(data) < count:
        more = source.read(offset + len(data), count - len(data))
        if not more:
            break
        data += more
    return data
