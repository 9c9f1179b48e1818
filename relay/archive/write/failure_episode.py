"""The decision whether a failure of the disk is news or the same failure as before."""

from typing import Final

QUIET_S: Final = 300.0
"""The interval in seconds after which failures, with something archived between them, are two episodes. Retries are at most 30 s
apart."""
SUBSTANTIAL_BYTES: Final = 64 << 20
"""The bytes archived between two failures that make them two episodes. On a disk that stayed full a retry gains less than one batch
of the writer: it is written or fails as a whole, and how the same bytes fall into batches differs each time."""


class FailureEpisode:
    """Distinguishes the first failure of an episode from those of the retries in it, however little a retry gained."""

    def __init__(self) -> None:
        self._announced: set[int] = set()
        self._last_s = 0.0
        self._last_archived = 0

    def is_news(self, errno: int, archived: int, now_s: float) -> bool:
        """Return whether to announce the failure `errno`, at `now_s` (monotonic seconds) with `archived` bytes published in all.

        Call it for each failure. Another `errno` is news in any episode, once.
        """
        gained = archived - self._last_archived
        if gained >= SUBSTANTIAL_BYTES or (gained > 0 and now_s - self._last_s >= QUIET_S):
            self._announced.clear()
        self._last_s = now_s
        self._last_archived = archived
        news = errno not in self._announced
        self._announced.add(errno)
        return news
