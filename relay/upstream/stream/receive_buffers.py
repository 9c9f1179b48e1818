"""Receive buffers: a few large ones that circulate between the socket, the kernel and the archive's writer."""

from collections.abc import Callable
from typing import Final

BUFFER_BYTES: Final = 1 << 20
BUFFER_COUNT: Final = 6
# Runs up to this size are copied, so that at the live edge a trickle of transactions does not tie up large buffers.
SMALL_RUN_BYTES: Final = 16 << 10


class ReceiveBuffer:
    """One buffer; `pending` runs of it are still with the writer."""

    __slots__ = ("_pool", "data", "pending", "view")

    def __init__(self, pool: "ReceiveBufferPool") -> None:
        self.data = bytearray(BUFFER_BYTES)
        self.view = memoryview(self.data)
        self.pending = 0
        self._pool = pool

    def run_written(self) -> None:
        """Note that a run of this buffer is in the file."""
        self.pending -= 1
        if self.pending == 0:
            self._pool.came_back(self)


class ReceiveBufferPool:
    """A pool that hands out buffers, last used first so that few pages stay in use, and reports when one came back."""

    def __init__(self, count: int = BUFFER_COUNT) -> None:
        self._free: list[ReceiveBuffer] = []
        self._left = count
        self.in_use: ReceiveBuffer | None = None
        self.on_return: Callable[[], None] | None = None

    def take(self) -> ReceiveBuffer | None:
        """Return a buffer without pending runs; None if all are with the writer."""
        if self._free:
            self.in_use = self._free.pop()
        elif self._left:
            self._left -= 1
            self.in_use = ReceiveBuffer(self)
        else:
            self.in_use = None
        return self.in_use

    def put_back(self) -> None:
        """Give back the buffer in use."""
        buffer, self.in_use = self.in_use, None
        if buffer is not None and buffer.pending == 0:
            self._free.append(buffer)

    def came_back(self, buffer: ReceiveBuffer) -> None:
        """Take back a buffer whose last run was written; the buffer calls this."""
        if buffer is self.in_use:
            return
        self._free.append(buffer)
        if self.on_return is not None:
            self.on_return()
