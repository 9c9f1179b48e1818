"""Steps of time: a length that gives a chart a readable number of them, and how much of each the archive covers."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from relay.report.text import utc

_STEPS: Final = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 604800)
_MOST_STEPS: Final = 120
_WEEK: Final = 604800


def time_step(first: datetime, last: datetime) -> int:
    """Return the seconds of a step so that `first` to `last` has a readable number of them."""
    seconds = max((last - first).total_seconds(), 1)
    for step in _STEPS:
        if seconds / step <= _MOST_STEPS:
            return step
    return max(math.ceil(seconds / _MOST_STEPS / 86400) * 86400, _WEEK)


def seconds_covered(first: datetime, last: datetime) -> float:
    """Return the seconds that events from `first` to `last` cover: times in binlogs are whole seconds, so the last second counts."""
    return max((last - first).total_seconds(), 0) + 1


@dataclass(frozen=True, slots=True)
class TimeSlot:
    """A step of a chart: `seconds` of it are between the first and the last event. `values` has one for each series, in order."""

    begin: datetime
    seconds: float
    values: tuple[float, ...]


def time_slots(
    series: Mapping[str, Sequence[tuple[datetime, float]]], step_s: int, most: int = _MOST_STEPS * 2
) -> Iterator[TimeSlot]:
    """Yield the steps from the first value to the last, including those without a value; several are merged if there were more than
    `most`.

    Values are of steps that begin at multiples of `step_s`.
    """
    times = [utc(time) for points in series.values() for time, _ in points]
    if not times:
        return
    first = min(times)
    slots = int((max(times) - first).total_seconds() // step_s) + 1
    fold = math.ceil(slots / most)
    values = [[0.0] * len(series) for _ in range(math.ceil(slots / fold))]
    for number, points in enumerate(series.values()):
        for time, value in points:
            values[int((utc(time) - first).total_seconds() // step_s) // fold][number] += value
    for place, found in enumerate(values):
        yield TimeSlot(first + timedelta(seconds=place * step_s * fold), step_s * fold, tuple(found))


def covered_of(begin: datetime, step_s: float, first: datetime, last: datetime) -> float:
    """Return how many seconds of the step at `begin` are between the first event and the last: the first and the last step of an
    archive are seldom whole."""
    end = min(utc(begin) + timedelta(seconds=step_s), utc(last) + timedelta(seconds=1))
    return max((end - max(utc(begin), utc(first))).total_seconds(), 1.0)
