"""A packed binlog that streams read: bytes in memory are returned at once, the rest when it has come, and no thread waits for that."""

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from relay.archive.read.open_file import TAIL_BYTES, OpenFile
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.archive.storage.files import Buffer
from relay.archive.sums.block_sum import BLOCK_BYTES
from relay.archive.sums.file_sums import FileSums
from relay.packed.frame_table import FrameTable
from relay.packed_reads.packed_frames import PackedFrames
from relay.packed_reads.shared_frames import SharedFrames


class PackedOpenFile(OpenFile):
    """Holds `frames` until it is closed. size: of the plain binlog, in bytes."""

    is_packed = True

    def __init__(
        self, path: Path, inode: int, sums: FileSums | None, frames: PackedFrames, shared: SharedFrames, size: int
    ) -> None:
        """Open the file. Raises: OSError."""
        super().__init__(path, inode, sums)
        self._frames = frames
        self._shared = shared
        self._size = size
        self._tail = b""
        """The file's last bytes, once they were read: they are needed when the frame may have been evicted."""
        if sums is not None:
            sums.begin()

    @property
    def size(self) -> int:
        """Implement `OpenFile.size`."""
        return self._size

    def _read_parts(self, parts: Sequence[Buffer], offset: int) -> int:
        done = 0
        for part in parts:
            view = memoryview(part).cast("B")
            filled = 0
            while filled < len(view) and offset + done < self._size:
                at = offset + done
                try:
                    data, start = self._frame(at)
                except ArchiveDamaged as error:
                    if done:
                        return done
                    raise ArchiveDamaged(
                        error.what, file=self.path.name, offset=error.offset or 0, boundary=offset
                    ) from error
                got = _copy(data, at - start, view, filled)
                done += got
                filled += got
        return done

    def _frame(self, offset: int) -> tuple[bytes, int]:
        """Return the frame with the byte at `offset`, and where it starts. Blocking."""
        table = self._shared.opened(self._frames).result()
        index = table.index_at(offset)
        data = self._shared.at_hand(self._frames, index)
        if data is None:
            data = self._shared.coming(self._frames, index, reads_on=True).result()
        return data, table[index].plain_start

    def read_parts_now(self, parts: Sequence[Buffer], offset: int) -> int:
        """Implement `OpenFile.read_parts_now`."""
        table = self._frames.frames
        if table is None:
            raise BlockingIOError
        done = 0
        for part in parts:
            view = memoryview(part).cast("B")
            filled = 0
            while filled < len(view) and offset + done < self._size:
                at = offset + done
                index = table.index_at(at)
                data = self._shared.at_hand(self._frames, index)
                if data is None:
                    if not done:
                        raise BlockingIOError
                    return done
                start = table[index].plain_start
                got = _copy(data, at - start, view, filled)
                done += got
                filled += got
                if at + got == self._size and not self._tail:
                    self._tail = data[-TAIL_BYTES:]
        return done

    def arrival(self, offset: int, size: int) -> Future[None] | None:
        """Implement `OpenFile.arrival`. Damaged bytes are reported by `read_into`, up to where they are good."""
        begin = offset - offset % BLOCK_BYTES if self.sums is not None else offset
        stop = min(self._size, offset + size if self.sums is None else -(-(offset + size) // BLOCK_BYTES) * BLOCK_BYTES)
        arrived: Future[None] = Future()

        def opened(opening: Future[FrameTable]) -> None:
            if opening.cancelled():
                arrived.cancel()
            elif (error := opening.exception()) is not None:
                arrived.set_exception(error)
            else:
                self._wait_for(list(opening.result().covering(begin, stop)), arrived)

        self._shared.opened(self._frames).add_done_callback(opened)
        return arrived

    def _wait_for(self, indexes: list[int], arrived: Future[None]) -> None:
        """Wait for all of them, one after another: mostly there is one, or the others come with it."""
        if not indexes:
            arrived.set_result(None)
            return

        def came(coming: Future[bytes]) -> None:
            if coming.cancelled():
                arrived.cancel()
                return
            error = coming.exception()
            if error is not None and not isinstance(error, ArchiveDamaged):
                arrived.set_exception(error)
            elif error is not None:
                arrived.set_result(None)
            else:
                self._wait_for(indexes[1:], arrived)

        if not self._frames.hold():
            arrived.cancel()
            return
        try:
            self._shared.coming(self._frames, indexes[0], reads_on=True).add_done_callback(came)
        finally:
            self._frames.release()

    def close(self) -> None:
        """Implement `OpenFile.close`."""
        self._frames.release()
        super().close()

    def read(self, offset: int, count: int) -> bytes:
        """Implement `OpenFile.read`."""
        stop = min(offset + count, self._size)
        begin = self._size - len(self._tail)
        if self._tail and offset >= begin:
            return self._tail[offset - begin : stop - begin]
        buffer = bytearray(max(0, stop - offset))
        if buffer and self.read_parts_now([buffer], offset) < len(buffer):
            raise BlockingIOError
        return bytes(buffer)


def _copy(data: bytes, at: int, view: memoryview, filled: int) -> int:
    """Copy from `data[at:]` to `view[filled:]`; return how many bytes."""
    count = min(len(data) - at, len(view) - filled)
    view[filled : filled + count] = memoryview(data)[at : at + count]
    return count
