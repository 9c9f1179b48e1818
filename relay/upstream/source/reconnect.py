"""The schedule of attempts at the source."""

import random
from typing import Final

from relay.process.growing_pause import growing_pause
from relay.upstream.source.source_errors import TERMINAL, FailureKind

# First and longest pause in seconds.
_PAUSES: Final[dict[FailureKind, tuple[float, float]]] = {
    FailureKind.NETWORK: (0.2, 30.0),
    FailureKind.AUTHENTICATION: (5.0, 300.0),
    FailureKind.STREAM_BROKEN: (1.0, 30.0),
    FailureKind.ARCHIVE: (2.0, 30.0),
}
# If the same bad bytes come from the same position so often, the source has them, not the network.
_BROKEN_TRIES: Final = 3


def longest_pause_s() -> float:
    """Return the longest pause between attempts at a source that cannot be reached, in seconds."""
    return _PAUSES[FailureKind.NETWORK][1]


class Reconnect:
    """The pauses between attempts: doubled per failure with full jitter on the upper half, by kind of failure.

    Progress (new bytes in the archive) resets them.
    """

    def __init__(self, random_source: random.Random | None = None) -> None:
        self._random = random_source or random.Random()
        self._failures = 0
        self._kind: FailureKind | None = None
        self._place: object = None

    def pause_after(self, kind: FailureKind, place: object) -> float | None:
        """Return the seconds to wait after this failure at `place` (the archive's end); None means no retry."""
        if kind in TERMINAL:
            return None
        if kind is not self._kind or place != self._place:
            self._failures = 0
        self._kind = kind
        self._place = place
        self._failures += 1
        if kind is FailureKind.STREAM_BROKEN and self._failures >= _BROKEN_TRIES:
            return None
        first, longest = _PAUSES[kind]
        return growing_pause(self._failures, first, longest, self._random)
