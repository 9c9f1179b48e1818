"""The filters of a query in the form in which files, splits and the kernel can leave things out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

FAR = 1 << 62
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Range:
    """The numbers from `low` to `high`, both included."""

    low: int = -FAR
    high: int = FAR

    def narrow(self, low: int | None = None, high: int | None = None) -> None:
        """Remove numbers outside of these."""
        if low is not None:
            self.low = max(self.low, low)
        if high is not None:
            self.high = min(self.high, high)

    def meets(self, low: int, high: int) -> bool:
        """Return whether some number of [low, high] is in the range."""
        return self.low <= high and low <= self.high

    @property
    def everything(self) -> bool:
        """True if nothing is left out."""
        return self.low == -FAR and self.high == FAR


@dataclass(slots=True)
class Wanted:
    """The filters of one read, all of which must hold. None means any. Times are in µs since 1970; `names` maps columns to their
    values."""

    ranges: dict[str, Range] = field(default_factory=dict)
    names: dict[str, frozenset[str]] = field(default_factory=dict)
    files: list[Callable[[str], bool]] = field(default_factory=list)

    def range(self, column: str) -> Range:
        """Return the range of a column of numbers or times."""
        return self.ranges.setdefault(column, Range())

    def keep_names(self, column: str, values: frozenset[str]) -> None:
        """Keep only these values of a column of texts."""
        self.names[column] = self.names[column] & values if column in self.names else values

    def wants_file(self, name: str) -> bool:
        """Return whether the file's name passes all filters on it."""
        return all(test(name) for test in self.files) and name in self.names.get("file", {name})


def keep_times(level: str, since: datetime | None, until: datetime | None, wanted: Wanted) -> None:
    """Note that only events in [since, until) are wanted; for a transaction, any part of it."""
    first, last = ("first_time", "last_time") if level == "transactions" else ("time", "time")
    if level == "findings":
        return
    if since is not None:
        wanted.range(last).narrow(low=microseconds(since))
    if until is not None:
        wanted.range(first).narrow(high=microseconds(until) - 1)


def microseconds(time: datetime) -> int:
    """Return µs since 1970, as the kernel has times."""
    return (time - _EPOCH) // timedelta(microseconds=1)
