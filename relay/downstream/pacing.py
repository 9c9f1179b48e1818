"""How often all waiting replicas may be woken."""


class WakePacer:
    """Keeps broadcasts to at most half of the event loop's time.

    Waking a hundred replicas for every group that a busy source commits would fill a core with system calls of a few
    hundred bytes. After a broadcast that took T seconds the next one waits T: replicas then get more per wake-up. For
    one replica T is some microseconds. Times are seconds of any monotonic clock.
    """

    def __init__(self) -> None:
        self._not_before = 0.0

    def due(self, now: float) -> float:
        """When the next broadcast may begin: `now`, or later."""
        return max(now, self._not_before)

    def finished(self, started: float, now: float) -> None:
        """A broadcast took from `started` to `now`."""
        self._not_before = now + max(0.0, now - started)
