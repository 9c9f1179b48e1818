"""The plain bytes of a packed binlog, for readers from its beginning or at single places."""

from typing import Self

from relay.packed.byte_source import ByteSource, read_exactly
from relay.packed.key_ring import KeyRing
from relay.packed.packed_facts import OfArchive
from relay.packed.packed_file import PackedFile


class PackedReader:
    """A ByteSource of the binlog, over a ByteSource of its packed file. Keeps the frame that was read last. For one thread.

    Every read raises PackedDamaged, and what the source raises.
    """

    def __init__(self, packed: PackedFile, source: ByteSource) -> None:
        self.packed = packed
        self._source = source
        self._index = -1
        self._plain = b""
        self._start = 0

    @classmethod
    def open(
        cls,
        source: ByteSource,
        file: str,
        keys: KeyRing | None = None,
        *,
        must_be_encrypted: bool = False,
        end_digest: str = "",
        of: OfArchive | None = None,
    ) -> Self:
        """Open the reader. Arguments, and raises: as `PackedFile.open`."""
        must = must_be_encrypted
        return cls(PackedFile.open(source, file, keys, must_be_encrypted=must, end_digest=end_digest, of=of), source)

    @property
    def size(self) -> int:
        """The size of the binlog in bytes."""
        return self.packed.plain_size

    def read(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes at `offset` of the binlog; fewer only at its end."""
        parts = []
        for index in self.packed.frames.covering(offset, offset + count):
            self._enter(index)
            parts.append(self._plain[max(0, offset - self._start) : offset + count - self._start])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_into(self, view: memoryview, offset: int) -> int:
        """Read at `offset` of the binlog; return how many bytes came, 0 only at the end."""
        found = self.read(offset, len(view))
        view[: len(found)] = found
        return len(found)

    def read_all(self) -> bytes:
        """Return all of the binlog."""
        return self.read(0, self.size)

    def _enter(self, index: int) -> None:
        if index == self._index:
            return
        frame = self.packed.frames[index]
        stored = read_exactly(self._source, frame.stored_start, frame.stored_size)
        self._plain = self.packed.decode(index, stored)
        self._index, self._start = index, frame.plain_start

    def close(self) -> None:
        """Close the source, if it can be closed."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
