"""The thread of one view's maker: it does the work that would keep the event loop waiting."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

T = TypeVar("T")


class MakerThread:
    """Does one piece of work at a time. On the event loop; call `end` at last."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="view-maker")
        self._working: asyncio.Future[object] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work()` in the thread. Raises what it raises. Cancelling the caller does not end the work: see `until_idle`."""
        future: asyncio.Future[T] = asyncio.get_running_loop().run_in_executor(self._executor, work)
        self._working = cast("asyncio.Future[object]", future)
        try:
            return await asyncio.shield(future)
        finally:
            if future.done():
                self._working = None

    async def until_idle(self) -> None:
        """Wait until nothing is done there any more, including work whose caller was cancelled."""
        working, self._working = self._working, None
        if working is not None:
            await asyncio.wait({working})
            if not working.cancelled():
                working.exception()

    def end(self) -> None:
        """Accept no more work; do not wait."""
        self._executor.shutdown(wait=False)
