"""The clock by which age is counted. A jump of the system's clock is reported, and for a day it is not believed."""

import time
from collections.abc import Callable
from typing import Final

import structlog

log = structlog.get_logger(__name__)

JUMP_S: Final = 300.0
"""The clock may be set by so much without a report; corrections by NTP are smaller."""
BELIEVED_AFTER_S: Final = 86400.0


class RetentionClock:
    """wall: Unix seconds. steady: seconds that no setting of the clock changes."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] | None = None) -> None:
        self._wall = wall
        self._steady = steady or (lambda: time.clock_gettime(time.CLOCK_BOOTTIME))
        self._offset = wall() - self._steady()
        """The offset by which the steady clock becomes the time that is believed."""
        self._jumped_at: float | None = None
        """The time, by the steady clock, when a jump was seen that is not believed yet."""

    @property
    def disbelieved_s(self) -> float:
        """The seconds by which the system's clock is ahead of the one that is believed; 0: they agree."""
        return 0.0 if self._jumped_at is None else self._wall() - self._steady() - self._offset

    def now(self) -> float:
        """Return the believed time in Unix seconds."""
        steady, wall = self._steady(), self._wall()
        by_s = wall - steady - self._offset
        if abs(by_s) <= JUMP_S:
            if self._jumped_at is not None:
                log.info("retention_clock_right_again")
            self._jumped_at = None
            self._offset = wall - steady
        elif self._jumped_at is None:
            self._jumped_at = steady
            log.warning(
                "retention_clock_jumped",
                by_s=round(by_s),
                note="for a day files are as old as before; then the clock is believed",
                advice="Correct the clock of this machine, or let it be if it is right now.",
            )
        elif steady - self._jumped_at >= BELIEVED_AFTER_S:
            log.warning("retention_clock_believed", by_s=round(by_s))
            self._jumped_at = None
            self._offset = wall - steady
        return steady + self._offset
