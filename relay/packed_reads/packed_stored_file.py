"""A packed binlog for threads and commands: it behaves as a plain file, except for the time that it takes."""

from relay.archive.storage.files import FileLayer, StoredFile
from relay.packed.frame_table import FrameTable
from relay.packed_reads.packed_frames import PackedFrames
from relay.packed_reads.shared_frames import SharedFrames

_NO_DESCRIPTOR = -1


class PackedStoredFile(StoredFile):
    """Blocking. Holds `frames` until it is closed. Raises, besides OSError: ArchiveDamaged, ArchiveUnavailable."""

    def __init__(self, layer: FileLayer, frames: PackedFrames, shared: SharedFrames) -> None:
        super().__init__(layer, _NO_DESCRIPTOR)
        self._frames = frames
        self._shared = shared
        self._read_to = -1
        self._closed = False

    @property
    def _table(self) -> FrameTable:
        return self._frames.frames or self._shared.opened(self._frames).result()

    @property
    def size(self) -> int:
        """The size of the plain binlog in bytes."""
        return self._table.plain_size

    def read_into(self, view: memoryview, offset: int) -> int:
        """Read at `offset`; return how many bytes came, 0 only at the end."""
        table = self._table
        if offset >= table.plain_size or not view:
            return 0
        index = table.index_at(offset)
        data = self._shared.at_hand(self._frames, index)
        if data is None:
            # A reader that continues where it was reads on; a look at one place costs one frame.
            data = self._shared.coming(self._frames, index, reads_on=offset == self._read_to).result()
        at = offset - table[index].plain_start
        count = min(len(data) - at, len(view))
        view[:count] = memoryview(data)[at : at + count]
        self._read_to = offset + count
        return count

    def read(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes at `offset`; fewer only at the end of the file."""
        buffer = bytearray(max(0, min(count, self.size - offset)))
        view = memoryview(buffer)
        done = 0
        while done < len(buffer):
            done += self.read_into(view[done:], offset + done)
        return bytes(buffer)

    def close(self) -> None:
        """Release the file."""
        if not self._closed:
            self._closed = True
            self._frames.release()
