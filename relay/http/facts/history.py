"""Throughput and lag of the last day, in memory that is allocated once."""

import math
from array import array
from collections import deque
from dataclasses import dataclass, fields
from typing import Final

FINE_S: Final = 5
COARSE_S: Final = 60
_FINE_COUNT: Final = 720
_COARSE_COUNT: Final = 1440
_GROWTH_NOTES: Final = 361
_LEAST_GROWTH_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class HistorySample:
    """One moment or interval. Rates are a second's; unknown values are not a number (NaN). Lags are the worst in the interval."""

    received_bytes_per_s: float
    sent_bytes_per_s: float
    transactions_per_s: float
    source_behind_s: float
    replicas_behind_s: float
    replicas_behind_bytes: float
    views_behind_bytes: float
    replicas: float
    loop_delay_s: float
    free_bytes: float


COLUMNS: Final = tuple(one.name for one in fields(HistorySample))
_RATES: Final = frozenset(name for name in COLUMNS if name.endswith("_per_s"))
_LAST: Final = frozenset(("replicas", "free_bytes"))


class SampleRing:
    """The newest samples, so many seconds apart. Nothing grows."""

    def __init__(self, step_s: int, count: int) -> None:
        self.step_s = step_s
        self._count = count
        self._times = array("d", bytes(8 * count))
        self._values = {name: array("f", bytes(4 * count)) for name in COLUMNS}
        self._next = 0
        self._filled = 0

    def add(self, at: float, sample: HistorySample) -> None:
        """Add a sample, in place of the oldest one if the ring is full."""
        place = self._next
        self._times[place] = at
        for name, values in self._values.items():
            values[place] = getattr(sample, name)
        self._next = (place + 1) % self._count
        self._filled = min(self._filled + 1, self._count)

    def columns(self) -> tuple[list[float], dict[str, list[float | None]]]:
        """Return Unix times, oldest first, and each column; None: unknown then."""
        order = [(self._next - self._filled + place) % self._count for place in range(self._filled)]
        times = [round(self._times[place], 3) for place in order]
        return times, {name: [_known(values[place]) for place in order] for name, values in self._values.items()}


@dataclass(frozen=True, slots=True)
class RateOfGrowth:
    """The growth rate of the archive's files in the last hours; 0: nothing came, or it is unknown yet."""

    bytes_per_s: float = 0.0
    over_s: float = 0.0


class History:
    """Samples every 5 s of the last hour, every minute of the last day."""

    def __init__(self) -> None:
        self.fine = SampleRing(FINE_S, _FINE_COUNT)
        self.coarse = SampleRing(COARSE_S, _COARSE_COUNT)
        self._gathered: list[HistorySample] = []
        self._growth: deque[tuple[float, int]] = deque(maxlen=_GROWTH_NOTES)
        self._newest_growth: tuple[float, int] | None = None

    def add(self, at: float, monotonic: float, sample: HistorySample, written_bytes: int) -> None:
        """Add a sample; called every 5 s. written_bytes: a number that only grows."""
        self.fine.add(at, sample)
        self._gathered.append(sample)
        if len(self._gathered) >= COARSE_S // FINE_S:
            self.coarse.add(at, _together(self._gathered))
            self._gathered.clear()
        if not self._growth or monotonic - self._growth[-1][0] >= COARSE_S:
            self._growth.append((monotonic, written_bytes))
        self._newest_growth = (monotonic, written_bytes)

    @property
    def growth(self) -> RateOfGrowth:
        """The growth rate of at most six hours."""
        if not self._growth or self._newest_growth is None:
            return RateOfGrowth()
        (since, before), (now, written) = self._growth[0], self._newest_growth
        over_s = now - since
        if over_s < _LEAST_GROWTH_S:
            return RateOfGrowth(0.0, over_s)
        return RateOfGrowth(max(0, written - before) / over_s, over_s)


def _together(samples: list[HistorySample]) -> HistorySample:
    """Return the mean of rates, the worst of lags, the last of states."""
    values = {}
    for name in COLUMNS:
        known = [value for one in samples if not math.isnan(value := getattr(one, name))]
        if not known:
            values[name] = math.nan
        elif name in _RATES:
            values[name] = sum(known) / len(known)
        else:
            values[name] = known[-1] if name in _LAST else max(known)
    return HistorySample(**values)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)
