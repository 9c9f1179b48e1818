"""The limit on how often all waiting replicas are woken."""

from typing import Final

# Timers of the event loop count in milliseconds; a single waiting replica must not wait for one.
_BURST_S: Final = 0.001


class WakePacer:
    """Keeps broadcasts to at most half of the event loop's time.

    Waking a hundred replicas for every group that a busy source commits would fill a core with system calls of a few hundred bytes. A
    broadcast that took T seconds uses up 2 T; the next one begins when that time has passed, or up to a millisecond earlier, so
    replicas get more per wake-up. For one replica T is some microseconds, and it never waits. Times are seconds of any monotonic
    clock.
    """

    def __init__(self) -> None:
        self._used_until = 0.0

    def due(self, now: float) -> float:
        """Return when the next broadcast may begin: `now`, or later."""
        return now if self._used_until <= now + _BURST_S else self._used_until

    def finished(self, started: float, now: float) -> None:
        """Note that a broadcast took from `started` to `now`."""
        self._used_until = max(self._used_until, started) + 2 * max(0.0, now - started)
