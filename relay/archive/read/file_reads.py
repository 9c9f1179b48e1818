"""Bytes of archived files for many readers: shared descriptors, a shared buffer, and threads for pages that are not cached.

All calls are made on the event loop, except what `read_later` does in its thread.
"""

import asyncio
import contextlib
import errno
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from relay.archive.read.open_file import OpenFile, open_archived
from relay.archive.storage.archive_errors import ArchiveUnavailable
from relay.archive.storage.files import CAN_READ_CACHED, FileLayer
from relay.archive.sums.block_sum import BLOCK_BYTES
from relay.archive.sums.file_sums import BlockReader, FileSums, touched
from relay.fairness.fair_pool import FairPool

STEP_BYTES: Final = 256 * 1024
_THREADS: Final = 4
_LONGEST_WAIT_S: Final = 120.0
"""The limit for a bucket: its client tries for a minute, and many may ask it at once."""
_LATER: Final = "Look at the network and at the storage's own status."


class BufferPool:
    """Equal buffers for reuse; it keeps at most `keep` unused ones."""

    def __init__(self, size_bytes: int, keep: int) -> None:
        self.size_bytes = size_bytes
        self._keep = keep
        self._free: list[bytearray] = []

    def take(self) -> bytearray:
        """Return a buffer with any content."""
        return self._free.pop() if self._free else bytearray(self.size_bytes)

    def give(self, buffer: bytearray) -> None:
        """Take a buffer back that nothing refers to any more."""
        if len(self._free) < self._keep:
            self._free.append(buffer)


class FileReads:
    """Reads for all sessions of one event loop.

    `buffer` contains what `read_now` read; it may be overwritten once the caller has returned to the loop. When the same range is
    requested again (a hundred replicas at the live edge), it is not read again.
    """

    def __init__(self, layer: FileLayer | None = None) -> None:
        self._layer = layer or FileLayer()
        self.buffer = bytearray(STEP_BYTES)
        self._view = memoryview(self.buffer)
        self._held: tuple[OpenFile, int, int] | None = None
        self._files: dict[Path, OpenFile] = {}
        self._executor = FairPool(_THREADS, "downstream-read")
        self._packed_executor = FairPool(_THREADS, "downstream-packed")
        """The threads for reads from a bucket, so that these do not delay reads from the disk."""
        self._read_buffers = BufferPool(STEP_BYTES, keep=_THREADS)
        self._blocks = BlockReader()
        self._nowait = CAN_READ_CACHED

    def open(self, path: Path, sums: FileSums | None = None) -> OpenFile:
        """Return the file, opened if it is not open, or if another one is in its place by now. Raises: OSError.

        sums: compared with what is read.
        """
        file = self._files.get(path)
        if file is None or file.inode != self._layer.inode_of(path):
            file = open_archived(self._layer, path, sums)
            self._files[path] = file
        file.users += 1
        return file

    def close(self, file: OpenFile) -> None:
        """End one use of the file."""
        file.users -= 1
        if file.users == 0:
            if self._files.get(file.path) is file:
                del self._files[file.path]
            if self._held is not None and self._held[0] is file:
                self._held = None
            file.close()

    def shutdown(self) -> None:
        """End the threads once their reads are done."""
        for executor in (self._executor, self._packed_executor):
            executor.shutdown(wait=False, cancel_futures=True)

    @staticmethod
    def step_end(file: OpenFile, offset: int) -> int:
        """Return where a read at `offset` that is one step of a stream ends best: in a file with sums, where a block ends."""
        end = offset + STEP_BYTES
        return end if file.sums is None else end - end % BLOCK_BYTES

    def read_now(self, file: OpenFile, offset: int, size_bytes: int) -> int:
        """Read up to `size_bytes` into `buffer` without waiting for the disk; 0: the pages are not in memory.

        Raises: OSError for a read that failed.
        """
        held = self._held
        if held is not None and held[0] is file and held[1] == offset and held[2] >= size_bytes:
            return size_bytes
        if not self._nowait and not file.is_packed:
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
        """Read in a thread, then call `done(buffer, size, error)` on the loop. The file stays open meanwhile.

        The buffer is the callee's only during the call. Bytes in a bucket are waited for without a thread.
        """
        arrival = file.arrival(offset, size_bytes)
        if arrival is not None:
            self._when(file, arrival, lambda error: self._read_in_thread(file, offset, size_bytes, done, error))
            return
        self._read_in_thread(file, offset, size_bytes, done, None)

    def when_here(self, file: OpenFile, offset: int, size_bytes: int, done: Callable[[Exception | None], None]) -> bool:
        """Call `done` on the loop when these bytes are available without waiting, or with the reason why they are not; damage is
        reported by the reads. False: they are available now, and nothing is called. The file stays open meanwhile."""
        arrival = file.arrival(offset, size_bytes)
        if arrival is None or (arrival.done() and not arrival.cancelled() and arrival.exception() is None):
            return False
        self._when(file, arrival, done)
        return True

    async def here(self, file: OpenFile, offset: int, size_bytes: int) -> None:
        """Wait as `when_here`. Raises: ArchiveUnavailable, OSError."""
        came: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: Exception | None) -> None:
            if came.done():
                return
            if error is None:
                came.set_result(None)
            else:
                came.set_exception(error)

        if self.when_here(file, offset, size_bytes, done):
            await came

    def _when(self, file: OpenFile, arrival: Future[None], go_on: Callable[[Exception | None], None]) -> None:
        loop = asyncio.get_running_loop()
        file.users += 1
        is_over = False

        def arrived() -> None:
            nonlocal is_over
            if is_over:
                return
            is_over = True
            late.cancel()
            error: BaseException | None = None
            if not arrival.done():
                what = f"nothing came of it within {_LONGEST_WAIT_S:.0f} s"
                error = ArchiveUnavailable(what, file=file.path.name, offset=None, advice=_LATER)
            elif not arrival.cancelled():
                error = arrival.exception()
            try:
                if not arrival.cancelled():
                    go_on(error if isinstance(error, Exception) else None)
            finally:
                self.close(file)

        def tell(_arrival: Future[None]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(arrived)

        late = loop.call_later(_LONGEST_WAIT_S, arrived)
        arrival.add_done_callback(tell)

    def _read_in_thread(
        self,
        file: OpenFile,
        offset: int,
        size_bytes: int,
        done: Callable[[bytearray, int, Exception | None], None],
        error: Exception | None,
    ) -> None:
        if error is not None:
            done(bytearray(), 0, error)
            return
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
        """Call `look` in a thread, then `done(what it returned, None)` or `done(None, what it raised)` on the loop.

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

        executor = self._packed_executor if file.is_packed else self._executor
        asyncio.get_running_loop().run_in_executor(executor, look).add_done_callback(finish)
