"""An object of a bucket, read like a file."""

from relay.object_store.object_store import ObjectStore


class StoredObject:
    """A `relay.packed.byte_source.ByteSource`. Reads block, and raise what `ObjectStore.get_range` raises.

    The end that `tail_bytes` names is fetched with the size, in one request: that is where a packed file has its table.
    """

    def __init__(self, store: ObjectStore, key: str, size: int | None = None, *, tail_bytes: int = 64 << 10) -> None:
        self._store = store
        self._key = key
        self._size = size
        self._tail_bytes = tail_bytes
        self._tail = b""

    @property
    def size(self) -> int:
        """The size in bytes, requested once."""
        if self._size is None:
            self._tail, self._size = self._store.get_tail(self._key, self._tail_bytes)
        return self._size

    def read(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes at `offset`; fewer only at the end."""
        size = self.size
        stop = min(offset + count, size)
        if offset >= stop:
            return b""
        tail_start = size - len(self._tail)
        if offset >= tail_start:
            return self._tail[offset - tail_start : stop - tail_start]
        return self._store.get_range(self._key, offset, stop)
