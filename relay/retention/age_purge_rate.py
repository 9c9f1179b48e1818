"""The limit on removals by age in one step: wrong clocks must not empty an archive before an operator notices."""

from typing import Final

TIMES_AS_FAST: Final = 10
"""An archive that grew in `keep_for` is emptied in a tenth of that at the fastest."""
_AT_ONCE: Final = 0.1
"""The share of an archive's bytes that may go in one step after a rest, and at the start."""


class AgePurgeRate:
    """The pace of one archive. It fills with time up to a tenth of the archive. At the start it is full."""

    def __init__(self) -> None:
        self._level = _AT_ONCE

    def allowance(self, total_bytes: int, keep_for_s: float, elapsed_s: float) -> float:
        """Return how many bytes may go now, `elapsed_s` after the last call; one file in any case, if it is above 0."""
        self._level = min(_AT_ONCE, self._level + elapsed_s * TIMES_AS_FAST / keep_for_s)
        return max(0.0, self._level) * total_bytes

    def used(self, removed_bytes: int, total_bytes: int) -> None:
        """Note that so many bytes have been removed. A file larger than the allowance is paid for by the next ones."""
        if total_bytes:
            self._level -= removed_bytes / total_bytes
