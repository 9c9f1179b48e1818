"""The room that a transaction needs that did not fit on the disk."""

import errno
from typing import Final

SUBSTANTIAL_BYTES: Final = 8 << 20
"""A transaction of which less than this was written has not filled the disk; and at least this much more must be free before another
attempt at one that has."""


class RoomNeeded:
    """The results of the attempts at the transaction after one place. For the writer thread."""

    def __init__(self) -> None:
        self._place: tuple[str, int] | None = None
        self._most_bytes = 0

    def after(self, number: int, file: str, boundary: int, got_bytes: int) -> int:
        """Note that an attempt failed by the system's error `number` after `got_bytes` of the transaction at `boundary` were written.

        Return how many bytes must be free for another one to get further; 0: the transaction does not fill the disk, and only an
        attempt tells whether there is room.
        """
        if self._place != (file, boundary):
            self._place, self._most_bytes = (file, boundary), 0
        # A quota is not in what the file system says is free.
        if number == errno.ENOSPC and got_bytes >= SUBSTANTIAL_BYTES:
            self._most_bytes = max(self._most_bytes, got_bytes)
        if not self._most_bytes:
            return 0
        return self._most_bytes + max(SUBSTANTIAL_BYTES, self._most_bytes // 8)
