"""A directory of binlogs, also of very many, without reading all of it for each."""

import os
import time
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Final

from protocol.errors import Malformed
from protocol.position import binlog_number

_SETTLED_NS: Final = 2_000_000_000
"""A directory that was changed this shortly before it was listed may have been changed again since, at the same time of its."""
_LOOK_AGAIN_S: Final = 30.0
"""A list is not believed for longer, whatever the time of the directory says: not every file system keeps it well."""
_COST_SHARE: Final = 20.0
"""While files come in all the time, one part in so many of the time goes into listing them."""


class BinlogDirectory:
    """What stands in a directory, and which binlog comes next. Blocking, for one thread at a time.

    The next number of the same series is looked for by its name. Only where that is not there the directory is listed, and only
    if it may have changed since it was listed last.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._names: list[str] = []
        self._mtime_ns: int | None = None
        """The directory's time as it was before it was listed; None: what was seen then is not all for sure."""
        self._listed_at = float("-inf")
        self._took_s = 0.0

    def names(self) -> list[str]:
        """All binlogs by number, as of now. Raises: OSError."""
        started = self._clock()
        mtime_ns = os.stat(self.path).st_mtime_ns
        self._names = binlog_names(self.path)
        self._mtime_ns = mtime_ns if mtime_ns + _SETTLED_NS < time.time_ns() else None
        self._listed_at = self._clock()
        self._took_s = self._listed_at - started
        return self._names

    def after(self, name: str) -> str | None:
        """The file after `name`, which itself may be gone already; one of another series only when there is no other.

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
    """The binlogs in a directory, by number. Other files (indexes, logs) are passed over. Blocking. Raises: OSError."""
    found = []
    with os.scandir(path) as entries:
        for entry in entries:
            try:
                found.append((binlog_number(entry.name), entry.name))
            except Malformed:
                continue
    return [name for _, name in sorted(found)]
