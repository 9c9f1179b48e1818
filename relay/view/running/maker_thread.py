"""The thread of one view's maker: what would keep the event loop waiting is done there."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

T = TypeVar("T")


class MakerThread:
    """One piece of work at a time. On the event loop; `end` it."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="view-maker")
        self._working: asyncio.Future[object] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """`work()`, in the thread. Raises what it raises. Cancelling the caller does not end the work: see `until_idle`."""
        future: asyncio.Future[T] = asyncio.get_running_loop().run_in_executor(self._executor, work)
        self._working = cast("asyncio.Future[object]", future)
        try:
            return await asyncio.shield(future)
        finally:
            if future.done():
                self._working = None

    async def until_idle(self) -> None:
        """Until nothing is done there any more, what nobody waits for included."""
        working, self._working = self._working, None
        if working is not None:
            await asyncio.wait({working})
            if not working.cancelled():
                working.exception()

    def end(self) -> None:
        """No more work; does not wait."""
        self._executor.shutdown(wait=False)
