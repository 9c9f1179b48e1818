"""What a query wants to see: filters in the form in which files, splits and the kernel can leave things out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

FAR = 1 << 62
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Range:
    """Numbers from `low` to `high`, both included."""

    low: int = -FAR
    high: int = FAR

    def narrow(self, low: int | None = None, high: int | None = None) -> None:
        """Takes what is outside of these out."""
        if low is not None:
            self.low = max(self.low, low)
        if high is not None:
            self.high = min(self.high, high)

    def meets(self, low: int, high: int) -> bool:
        """Whether some number of [low, high] is in the range."""
        return self.low <= high and low <= self.high

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self.low == -FAR and self.high == FAR


@dataclass(slots=True)
class Wanted:
    """Filters of one read, all of which must hold. None: any. Times in µs since 1970; `names`: column to its values."""

    ranges: dict[str, Range] = field(default_factory=dict)
    names: dict[str, frozenset[str]] = field(default_factory=dict)
    files: list[Callable[[str], bool]] = field(default_factory=list)

    def range(self, column: str) -> Range:
        """The range of a column of numbers or times."""
        return self.ranges.setdefault(column, Range())

    def keep_names(self, column: str, values: frozenset[str]) -> None:
        """Only these values of a column of texts."""
        self.names[column] = self.names[column] & values if column in self.names else values

    def wants_file(self, name: str) -> bool:
        """Whether the file's name passes all filters on it."""
        return all(test(name) for test in self.files) and name in self.names.get("file", {name})


def keep_times(level: str, since: datetime | None, until: datetime | None, wanted: Wanted) -> None:
    """Notes that only what happened in [since, until) is wanted; of a transaction, any part of it."""
    first, last = ("first_time", "last_time") if level == "transactions" else ("time", "time")
    if level == "findings":
        return
    if since is not None:
        wanted.range(last).narrow(low=microseconds(since))
    if until is not None:
        wanted.range(first).narrow(high=microseconds(until) - 1)


def microseconds(time: datetime) -> int:
    """µs since 1970, as the kernel has times."""
    return (time - _EPOCH) // timedelta(microseconds=1)
