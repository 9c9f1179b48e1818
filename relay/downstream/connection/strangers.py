"""Lines of log about peers that have not logged in: as many as help, or one that knocks on and on would fill the disk."""

from typing import Final

_WINDOW_S: Final = 60.0
_MOST_LINES: Final = 600


class StrangerLog:
    """Counts lines. Times are those of one monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._began_at = 0.0
        self._lines = 0
        self._left_out = 0

    def left_out(self, now: float) -> int | None:
        """Before a line: how many were left out since the last one; None: this one is to be left out too."""
        if now >= self._began_at + _WINDOW_S:
            self._began_at, self._lines = now, 0
        if self._lines >= _MOST_LINES:
            self._left_out += 1
            return None
        self._lines += 1
        left_out, self._left_out = self._left_out, 0
        return left_out
