"""How much may go by age in one step: clocks that are wrong must not empty an archive before somebody hears of it."""

from typing import Final

TIMES_AS_FAST: Final = 10
"""An archive that grew in `keep_for` is emptied in a tenth of that at the fastest."""
_AT_ONCE: Final = 0.1
"""Of an archive's bytes, what may go in one step after a rest, and at the start."""


class AgePace:
    """Of one archive. Fills with time up to a tenth of the archive. At the start it is full."""

    def __init__(self) -> None:
        self._level = _AT_ONCE

    def allowance(self, total_bytes: int, keep_for_s: float, elapsed_s: float) -> float:
        """So many bytes may go now, `elapsed_s` after the last question; one file in any case, where it is above 0."""
        self._level = min(_AT_ONCE, self._level + elapsed_s * TIMES_AS_FAST / keep_for_s)
        return max(0.0, self._level) * total_bytes

    def used(self, removed_bytes: int, total_bytes: int) -> None:
        """So many have gone. A file that is more than was allowed is paid for by the next ones."""
        if total_bytes:
            self._level -= removed_bytes / total_bytes
