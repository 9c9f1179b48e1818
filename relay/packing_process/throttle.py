"""The way in which packing yields: the least claim to a processor, and pauses while the relay itself works.

least claim   Linux's SCHED_IDLE: any other process that wants a processor gets it at once. With every processor taken for ever
              some 3 parts of 1,000 of one are left to it; reading and writing wait for others' as well, if the disk's scheduler
              has priorities.
pauses        a second processor shares memory and caches with the first. While the relay uses more than a seventh of a
              processor (it receives some 100 MB/s then), packing runs a thirty-second of the time: 8 to 10 MB/s. So it never
              stops altogether.
urgent        without pauses, and with a usual claim that is small (nice 10): about a tenth of a processor at least, 30 MB/s.
soon          with that claim, and with pauses for some seconds only: for work that is waited for.
"""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

LOOK_S: Final = 0.02
"""The interval between two looks at the relay's processor time."""
BUSY: Final = 1 / 7
"""The share of one processor above which the relay should not be disturbed."""
SHARE: Final = 1 / 32
"""The share of the time that packing runs while others are busy."""
LONGEST_PAUSE_S: Final = 5.0
_URGENT_NICE: Final = 10
_LEAST_NICE: Final = 19


def take_least_claim(*, urgent: bool) -> None:
    """Reduce the calling process's claim: to processor time, to reading and writing, and to memory when that is short."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")
    with contextlib.suppress(OSError):
        # If Linux shares processors among sessions first (sched_autogroup), the setting of this process's own session counts.
        Path("/proc/self/autogroup").write_text(str(_URGENT_NICE if urgent else _LEAST_NICE))
    if urgent:
        os.nice(_URGENT_NICE)
        return
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except (AttributeError, OSError):  # another system, or a service manager that forbids it
        os.nice(_LEAST_NICE)


def processor_time_of(pid: int) -> Callable[[], float]:
    """Return a function for the seconds of processor time of that process, all of its threads; always 0 if the system does not report
    them."""

    def used() -> float:
        # clock_getcpuclockid(3) computes the clock's number so on Linux.
        try:
            return time.clock_gettime(~pid << 3 | 2)
        except (OSError, AttributeError):
            return 0.0

    return used


class Throttle:
    """Called between two frames; it pauses there while the relay is busy. True: packing must end.

    pauses_s: the longest time after its creation in which it pauses; None: always. stops: waits so many seconds, at most, and returns
    whether packing must end. relay_s: processor time of the relay. own_s: of the packing process.
    """

    def __init__(
        self,
        stops: Callable[[float], bool],
        relay_s: Callable[[], float],
        *,
        pauses_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        own_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self.paused_s = 0.0
        self._stops = stops
        self._relay_s = relay_s
        self._clock = clock
        self._pauses_until = float("inf") if pauses_s is None else clock() + pauses_s
        self._own_s = own_s
        self._looked = clock()
        self._relay_before = relay_s()
        self._own_before = own_s()
        self._is_busy = True
        """True at the start, when it is unknown."""

    def __call__(self) -> bool:
        now = self._clock()
        pauses = now < self._pauses_until
        if pauses and now - self._looked >= LOOK_S:
            relay_s = self._relay_s()
            self._is_busy = (relay_s - self._relay_before) / (now - self._looked) > BUSY
            self._looked, self._relay_before = now, relay_s
        own_s = self._own_s()
        worked_s, self._own_before = own_s - self._own_before, own_s
        if not pauses or not self._is_busy:
            return self._stops(0.0)
        stops = self._stops(min(worked_s * (1 / SHARE - 1), LONGEST_PAUSE_S))
        self.paused_s += self._clock() - now
        return stops
