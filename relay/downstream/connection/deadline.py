"""A deadline that moves with every command, and the one timer that watches it."""

import asyncio
from collections.abc import Callable


class Deadline:
    """Calls `passed()` once a deadline may have passed; `passed` sets the next one. Times are the event loop's seconds.

    A deadline that moves later leaves the timer as it is: it fires at the old time, and the function that is called checks again. So
    a busy connection does not create a timer for each of its commands.
    """

    def __init__(self, passed: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._passed: Callable[[], None] | None = passed
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        """The time that the timer was set to; its own `when()` may be a millisecond later because uvloop rounds."""

    def set(self, deadline: float | None) -> None:
        """Set the current deadline; None: there is none, and the one that was set before may still fire."""
        if deadline is None or (self._timer is not None and self._due <= deadline):
            return
        self.cancel()
        self._due = deadline
        self._timer = self._loop.call_at(deadline, self._fire)

    def cancel(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def forget(self) -> None:
        """Stop watching and drop the callback."""
        self.cancel()
        self._passed = None

    def _fire(self) -> None:
        self._timer = None
        if self._passed is not None:
            self._passed()
