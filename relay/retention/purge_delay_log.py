"""Logs once that a limit cannot be kept, and once that it can again."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from relay.retention.decision import HeldBack
from relay.retention.retention_limits import RetentionLimits
from relay.retention.retention_texts import advice, held_back_text

log = structlog.get_logger(__name__)

_AGAIN_S: Final = 3600.0
"""The least time between two lines about a state that comes and goes."""
_MOST_SAID: Final = 1000


class HeldBackLog:
    """clock: seconds that no setting of the clock changes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._present: set[tuple[str, str, str]] = set()
        self._said: dict[tuple[str, str, str], float] = {}

    def tell(self, held_back: Sequence[HeldBack], limits: RetentionLimits) -> None:
        """Report the present state."""
        now = self._clock()
        present = set()
        for one in held_back:
            key = (one.archive, one.limit.value, one.hold.kind.value)
            present.add(key)
            if key in self._present or now - self._said.get(key, -_AGAIN_S) < _AGAIN_S:
                continue
            self._said[key] = now
            log.warning(
                "retention_held_back",
                what=held_back_text(one, limits),
                archive=one.archive or "mirror",
                limit=one.limit.value,
                kept_by=one.hold.kind.value,
                file=one.file,
                kept_bytes=one.size_bytes,
                missing_bytes=one.missing_bytes or None,
                advice=advice(one),
            )
        if self._present and not present:
            log.info("retention_goes_on", note="all limits are kept")
        self._present = present
        if len(self._said) > _MOST_SAID:
            self._said.clear()
