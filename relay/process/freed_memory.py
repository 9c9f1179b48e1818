"""Returns freed memory to the system: the C library keeps free memory between pieces that are still used."""

import asyncio
import ctypes
from collections.abc import Callable
from typing import Final

from relay.process.background import begin_task

_WORTH_IT_BYTES: Final = 16 << 20
_PAUSE_S: Final = 0.2
"""The pause after memory was freed: more of it may follow. A pass over free memory takes some milliseconds."""
_THREADS_END_S: Final = 3.0
"""The time until the second pass: a thread may have continued to work for a client that left."""


class FreedMemory:
    """Gives memory back in a thread, some time after much was freed. On the event loop only."""

    def __init__(self, give_back: Callable[[], object] | None = None) -> None:
        """give_back: instead of the C library's own function, which some do not have."""
        self._give_back = give_back or _trim_of_c_library()
        self._freed_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._once_more: asyncio.TimerHandle | None = None

    def freed(self, size_bytes: int) -> None:
        """Note that so much is not used any more."""
        self._freed_bytes += size_bytes
        if self._freed_bytes >= _WORTH_IT_BYTES and self._task is None and self._give_back is not None:
            self._task = begin_task(self._later(self._give_back), "giving memory back to the system", self._ended)

    async def _later(self, give_back: Callable[[], object]) -> None:
        await asyncio.sleep(_PAUSE_S)
        self._freed_bytes = 0
        await asyncio.to_thread(give_back)
        self._ended(None)
        if self._once_more is None:
            self._once_more = asyncio.get_running_loop().call_later(_THREADS_END_S, self._again, give_back)

    def _again(self, give_back: Callable[[], object]) -> None:
        self._once_more = None
        if self._task is None:
            self._task = begin_task(self._last(give_back), "giving memory back to the system", self._ended)

    async def _last(self, give_back: Callable[[], object]) -> None:
        await asyncio.to_thread(give_back)
        self._ended(None)

    def _ended(self, _fault: Exception | None) -> None:
        self._task = None


def _trim_of_c_library() -> Callable[[], object] | None:
    """Return glibc's `malloc_trim`; None: this C library has none."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return lambda: trim(0)
