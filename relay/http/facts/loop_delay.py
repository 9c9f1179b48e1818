"""The delay of the event loop: a timer that notes when it was called."""

import asyncio
from typing import Final

from relay.process.duration_histogram import LOOP_BOUNDS_S, DurationHistogram

_EVERY_S: Final = 0.1


class LoopDelay:
    """Begins at once; on the event loop. `times`: how much later than scheduled the loop came to the timer."""

    def __init__(self) -> None:
        self.times = DurationHistogram(LOOP_BOUNDS_S)
        self._loop = asyncio.get_running_loop()
        self._wanted_at = self._loop.time() + _EVERY_S
        self._timer = self._loop.call_at(self._wanted_at, self._called)

    def close(self) -> None:
        """Stop the timer."""
        self._timer.cancel()

    def _called(self) -> None:
        now = self._loop.time()
        self.times.observe(max(0.0, now - self._wanted_at))
        self._wanted_at = now + _EVERY_S
        self._timer = self._loop.call_at(self._wanted_at, self._called)
