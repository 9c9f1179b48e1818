"""Threads for client requests that need the disk or process much text: other ones than those in which the archive and the source are
followed."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from relay.fairness.fair_pool import FairPool

T = TypeVar("T")

_THREADS: Final = 2
_pools: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, FairPool]] = WeakKeyDictionary()


async def in_turn(function: Callable[..., T], /, *arguments: Any) -> T:
    """Call it in a thread, by the turn of the task that asks. Raises what it raises."""
    loop = asyncio.get_running_loop()
    pool = _pools.get(loop)
    if pool is None:
        pool = _pools[loop] = FairPool(_THREADS, "client-work", kept=1)
    return await loop.run_in_executor(pool, lambda: function(*arguments))
