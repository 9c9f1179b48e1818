"""Peers that have not logged in: how many there may be, and how much is logged about them.

Anybody can connect. What strangers take (connections, lines of log) is bounded apart from what replicas and people need.
"""

from typing import Final, Generic, TypeVar

T = TypeVar("T")

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


class Strangers(Generic[T]):
    """Those who are connected and have not logged in, by the number of their connection; `most` at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Oldest first. A login is a matter of milliseconds: who has begun with it goes last.
        self._silent: dict[int, T] = {}
        self._talking: dict[int, T] = {}

    def __len__(self) -> int:
        return len(self._silent) + len(self._talking)

    @property
    def is_full(self) -> bool:
        """Whether one has to go before another comes."""
        return len(self) >= self._most

    def add(self, number: int, stranger: T) -> None:
        """It was greeted."""
        self._silent[number] = stranger

    def spoke(self, number: int) -> None:
        """It sent something; fine for one that is none of these."""
        if number in self._silent:
            self._talking[number] = self._silent.pop(number)

    def discard(self, number: int) -> None:
        """It has logged in, or is gone; fine for one that is none of these."""
        self._silent.pop(number, None)
        self._talking.pop(number, None)

    def pop_idlest(self) -> tuple[int, T] | None:
        """Takes out who has been silent longest, else who has been talking longest; None: there is nobody."""
        for those in (self._silent, self._talking):
            if those:
                number = next(iter(those))
                return number, those.pop(number)
        return None
