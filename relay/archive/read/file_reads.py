"""Bytes of archived files for many readers: shared descriptors, a shared buffer, and threads for pages that are not cached.

All calls are made on the event loop, except what `read_later` does in its thread.
"""

import asyncio
import errno
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from protocol.binlog.made_events import rotate_size
from protocol.position import Position
from relay.archive.storage.files import CAN_READ_CACHED, Buffer, FileLayer
from relay.archive.sums.block_sum import BLOCK_BYTES
from relay.archive.sums.file_sums import BlockReader, FileSums, damaged_block, touched

STEP_BYTES: Final = 256 * 1024
TAIL_BYTES: Final = 320
"""Of a file's end, enough for a whole Rotate or Stop event."""
_THREADS: Final = 4


class OpenFile:
    """An open archived file, shared by all who read it. Made by `FileReads.open`, given back by `FileReads.close`."""

    def __init__(self, layer: FileLayer, path: Path, sums: FileSums | None) -> None:
        self.path = path
        self.fd = layer.open_read(path)
        self.inode = layer.inode(self.fd)
        self.sums = sums
        """What is compared with its blocks; None: nothing."""
        try:
            if sums is not None:
                sums.begin()
        except OSError:
            layer.close(self.fd)
            raise
        self.users = 0
        self._layer = layer
        self._rotate: tuple[int, int | None] = (0, None)
        """Where was looked for a Rotate last, and what was found."""

    @property
    def size(self) -> int:
        """The file's bytes, now. Raises: OSError."""
        return self._layer.size(self.fd)

    def read_into(self, view: memoryview, offset: int) -> int:
        """Reads at `offset`; returns how many bytes came, 0 only at the end. Blocking.

        Where there are sums, bytes are what was received. Raises: OSError; ArchiveDamaged where not even the first one is.
        """
        if self.sums is None or not view:
            return self._layer.preadv(self.fd, [view], offset)
        blocks = BlockReader()
        got = blocks.read(self._read_parts, self.sums.read(*touched(offset, len(view))), view, offset)
        if not got and blocks.wrong is not None:
            raise damaged_block(self.path.name, blocks.wrong, offset)
        return got

    def _read_parts(self, parts: Sequence[Buffer], offset: int) -> int:
        return self._layer.preadv(self.fd, parts, offset)

    def read_parts_now(self, parts: Sequence[Buffer], offset: int) -> int:
        """What is in memory, at `offset`. Raises: BlockingIOError where nothing is; OSError."""
        return self._layer.preadv_cached(self.fd, parts, offset)

    def close(self) -> None:
        """Lets go of the file: nobody uses it any more."""
        self._layer.close(self.fd)
        if self.sums is not None:
            self.sums.close()

    def read(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes at `offset`, as they are; fewer only at the end of the file. Blocking. Raises: OSError."""
        return self._layer.pread(self.fd, count, offset)

    def last_rotate(self, end: int, *, with_checksum: bool) -> int | None:
        """Offset of the Rotate that ends at `end`; None: another event does. Blocking, once for each end. Raises: OSError."""
        looked_at, found = self._rotate
        if looked_at != end:
            size = min(TAIL_BYTES, end)
            tail = self.read(end - size, size)
            size = rotate_size(tail, Position(self.path.name, end), with_checksum=with_checksum)
            found = end - size if size else None
            self._rotate = end, found
        return found


class BufferPool:
    """Equal buffers for reuse; keeps at most `keep` that nobody uses."""

    def __init__(self, size_bytes: int, keep: int) -> None:
        self.size_bytes = size_bytes
        self._keep = keep
        self._free: list[bytearray] = []

    def take(self) -> bytearray:
        """A buffer with any content."""
        return self._free.pop() if self._free else bytearray(self.size_bytes)

    def give(self, buffer: bytearray) -> None:
        """Takes a buffer back that nothing refers to any more."""
        if len(self._free) < self._keep:
            self._free.append(buffer)


class FileReads:
    """Reads for all sessions of one event loop.

    `buffer` holds what `read_now` read; it is anybody's after the caller returned to the loop. When the same range is
    asked for again (a hundred replicas at the live edge), it is not read again.
    """

    def __init__(self, layer: FileLayer | None = None) -> None:
        self._layer = layer or FileLayer()
        self.buffer = bytearray(STEP_BYTES)
        self._view = memoryview(self.buffer)
        self._held: tuple[OpenFile, int, int] | None = None
        self._files: dict[Path, OpenFile] = {}
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="downstream-read")
        self._read_buffers = BufferPool(STEP_BYTES, keep=_THREADS)
        self._blocks = BlockReader()
        self._nowait = CAN_READ_CACHED

    def open(self, path: Path, sums: FileSums | None = None) -> OpenFile:
        """The file, opened if nobody has it open, or another one is in its place by now. Raises: OSError.

        sums: what is compared with what is read.
        """
        file = self._files.get(path)
        if file is None or file.inode != self._layer.inode_of(path):
            file = OpenFile(self._layer, path, sums)
            self._files[path] = file
        file.users += 1
        return file

    def close(self, file: OpenFile) -> None:
        """Ends one use of the file."""
        file.users -= 1
        if file.users == 0:
            if self._files.get(file.path) is file:
                del self._files[file.path]
            if self._held is not None and self._held[0] is file:
                self._held = None
            file.close()

    def shutdown(self) -> None:
        """Ends the threads once their reads are done."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    @staticmethod
    def step_end(file: OpenFile, offset: int) -> int:
        """Where a read at `offset` ends best that is one step of a stream: of a file with sums, where a block ends."""
        end = offset + STEP_BYTES
        return end if file.sums is None else end - end % BLOCK_BYTES

    def read_now(self, file: OpenFile, offset: int, size_bytes: int) -> int:
        """Reads up to `size_bytes` into `buffer` without waiting for the disk; 0: the pages are not in memory.

        Raises: OSError for a read that failed.
        """
        held = self._held
        if held is not None and held[0] is file and held[1] == offset and held[2] >= size_bytes:
            return size_bytes
        if not self._nowait:
            return 0
        self._held = None
        try:
            got = self._read_cached(file, self._view[:size_bytes], offset)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # this file system has no such reads
                raise
            self._nowait = False
            return 0
        self._held = (file, offset, got)
        return got

    def _read_cached(self, file: OpenFile, view: memoryview, offset: int) -> int:
        if file.sums is None:
            return file.read_parts_now([view], offset)
        sums = file.sums.cached(*touched(offset, len(view)))
        # Any doubt is for `read_later`: it asks both files of sums, and says what is wrong.
        return 0 if sums is None else self._blocks.read(file.read_parts_now, sums, view, offset)

    def read_later(
        self, file: OpenFile, offset: int, size_bytes: int, done: Callable[[bytearray, int, Exception | None], None]
    ) -> None:
        """Reads in a thread, then calls `done(buffer, size, error)` on the loop. The file stays open meanwhile.

        The buffer is the callee's only during the call.
        """
        buffer = self._read_buffers.take()

        def finish(size: int | None, error: Exception | None) -> None:
            try:
                done(buffer, size or 0, error)
            finally:
                self._read_buffers.give(buffer)

        self.look_later(file, lambda: file.read_into(memoryview(buffer)[:size_bytes], offset), finish)

    def look_later(
        self, file: OpenFile, look: Callable[[], int], done: Callable[[int | None, Exception | None], None]
    ) -> None:
        """Calls `look` in a thread, then `done(what it returned, None)` or `done(None, what it raised)` on the loop.

        The file stays open meanwhile. After `shutdown` nothing is called any more.
        """
        file.users += 1

        def finish(future: asyncio.Future[int]) -> None:
            self.close(file)
            if future.cancelled():
                return
            error = future.exception()
            if error is None:
                done(future.result(), None)
            elif isinstance(error, Exception):
                done(None, error)

        asyncio.get_running_loop().run_in_executor(self._executor, look).add_done_callback(finish)
