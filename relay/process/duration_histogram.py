"""Durations, counted by length: monitors compute quantiles from them."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

DISK_BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
COMPUTING_BOUNDS_S: Final = (0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.1)
LOOP_BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class DurationHistogram:
    """Counts durations in seconds. One thread writes, any may read: a reader may miss the newest one.

    bounds: upper ends of the classes, rising; what is longer than the last is counted in a class of its own.
    """

    __slots__ = ("_counts", "bounds", "longest_s", "sum_s")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._counts = [0] * (len(self.bounds) + 1)
        self.sum_s = 0.0
        self.longest_s = 0.0
        """The longest duration since `take_longest`."""

    def observe(self, seconds: float) -> None:
        """Add a duration."""
        self._counts[bisect_left(self.bounds, seconds)] += 1
        self.sum_s += seconds
        if seconds > self.longest_s:
            self.longest_s = seconds

    def take_longest(self) -> float:
        """Return the longest duration since the last call."""
        longest, self.longest_s = self.longest_s, 0.0
        return longest

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self._counts)

    def cumulative(self) -> list[tuple[float, int]]:
        """Return, by upper end, how many were at most so long; the last end is infinity."""
        found, total = [], 0
        for bound, count in zip((*self.bounds, float("inf")), list(self._counts), strict=True):
            total += count
            found.append((bound, total))
        return found
