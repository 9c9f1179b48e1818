"""How packing gives way: the least claim to a processor, and pauses while the relay itself works.

least claim   Linux's SCHED_IDLE: whoever else wants a processor gets it at once. With every processor taken for ever some 3 parts of
              1,000 of one are left to it; reading and writing wait for others' as well, where the disk's scheduler has priorities.
pauses        a second processor shares memory and caches with the first. While the relay uses more than a seventh of a processor
              (it receives some 100 MB/s then), packing runs a thirty-second of the time: 8 to 10 MB/s. So it never stands still.
urgent        without pauses, and with a usual claim that is small (nice 10): about a tenth of a processor at least, 30 MB/s.
soon          with that claim, and with pauses for some seconds only: for what somebody waits for.
"""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

LOOK_S: Final = 0.02
"""The relay's processor time is looked at so often."""
BUSY: Final = 1 / 7
"""Of one processor: who uses more should not be disturbed."""
SHARE: Final = 1 / 32
"""Of the time that packing runs while others are busy."""
LONGEST_PAUSE_S: Final = 5.0
_URGENT_NICE: Final = 10
_LEAST_NICE: Final = 19


def take_least_claim(*, urgent: bool) -> None:
    """Of the calling process: of its processor time, its reading and writing, and of memory when that is short."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")
    with contextlib.suppress(OSError):
        # Where Linux shares processors among sessions first (sched_autogroup), that of this process counts, which it has for itself.
        Path("/proc/self/autogroup").write_text(str(_URGENT_NICE if urgent else _LEAST_NICE))
    if urgent:
        os.nice(_URGENT_NICE)
        return
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except (AttributeError, OSError):  # another system, or a service manager that forbids it
        os.nice(_LEAST_NICE)


def processor_time_of(pid: int) -> Callable[[], float]:
    """Seconds of processor time of that process, all of its threads; always 0 where the system does not tell."""

    def used() -> float:
        # As clock_getcpuclockid(3) makes the clock's number on Linux.
        try:
            return time.clock_gettime(~pid << 3 | 2)
        except (OSError, AttributeError):
            return 0.0

    return used


class GivingWay:
    """Called between two frames; pauses there while the relay is busy. True: packing is to end.

    pauses_s: so long after its making it pauses, at most; None: always. stops: waits so many seconds, at most, and says whether it
    is to end. relay_s: processor time of the relay. own_s: of whoever packs.
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
        """At the start it is not known yet."""

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
