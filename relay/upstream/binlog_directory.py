"""A directory of binlogs, possibly of very many, which is not listed for each file."""

import os
import time
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Final

from protocol.errors import Malformed
from protocol.position import binlog_number

_SETTLED_NS: Final = 2_000_000_000
"""A directory that was changed this shortly before it was listed may have been changed again without a new modification time."""
_LOOK_AGAIN_S: Final = 30.0
"""A list is not trusted for longer, whatever the directory's time says: not every file system keeps it well."""
_COST_SHARE: Final = 20.0
"""While files arrive all the time, at most this fraction (1/20) of the time is spent on listing them."""


class BinlogDirectory:
    """The contents of a directory, and the binlog that comes next. Blocking, for one thread at a time.

    The next number of the same series is looked for by its name. Only if it does not exist is the directory listed, and only if it may
    have changed since it was last listed.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._names: list[str] = []
        self._mtime_ns: int | None = None
        """The directory's time before it was listed; None if the list may be incomplete."""
        self._listed_at = float("-inf")
        self._took_s = 0.0

    def names(self) -> list[str]:
        """Return all binlogs by number, as of now. Raises: OSError."""
        started = self._clock()
        mtime_ns = os.stat(self.path).st_mtime_ns
        self._names = binlog_names(self.path)
        self._mtime_ns = mtime_ns if mtime_ns + _SETTLED_NS < time.time_ns() else None
        self._listed_at = self._clock()
        self._took_s = self._listed_at - started
        return self._names

    def after(self, name: str) -> str | None:
        """Return the file after `name`, which itself may be removed already; one of another series only if there is no other.

        Raises: OSError.
        """
        number, base = binlog_number(name), name.rpartition(".")[0]
        following = f"{base}.{number + 1:06d}"
        if os.path.exists(self.path / following):
            return following
        now = self._clock()
        if now < self._listed_at + self._took_s * _COST_SHARE:
            return None
        if now < self._listed_at + _LOOK_AGAIN_S and self._mtime_ns == os.stat(self.path).st_mtime_ns:
            names = self._names
        else:
            names = self.names()
        later = names[bisect_right(names, number, key=binlog_number) :]
        return next((other for other in later if other.rpartition(".")[0] == base), later[0] if later else None)


def binlog_names(path: Path) -> list[str]:
    """Return the binlogs in a directory, by number. Other files (indexes, logs) are skipped. Blocking. Raises: OSError."""
    found = []
    with os.scandir(path) as entries:
        for entry in entries:
            try:
                found.append((binlog_number(entry.name), entry.name))
            except Malformed:
                continue
    return [name for _, name in sorted(found)]
