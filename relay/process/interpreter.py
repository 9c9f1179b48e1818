"""The settings of this process's interpreter: the switching of threads, and when the garbage collector searches which objects."""

import asyncio
import gc
import os
import sys
import time
from pathlib import Path
from typing import Final

# Python's default is 0.005: the longest time for which the loop may be held at all.
_SWITCH_INTERVAL_S: Final = 0.0005
_SEARCHED_EVERY_S: Final = 5.0
_ALL_EVERY_S: Final = 3600.0
_MOST_GROWTH: Final = 1.25
_STATM: Final = Path("/proc/self/statm")
_NEVER: Final = 1 << 30


def share_interpreter() -> None:
    """Make a computing thread (a GTID set of 16 MB, a password) yield to the event loop after a tenth of the usual time."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)


def look_for_no_garbage() -> None:
    """Disable the garbage collector until `keep_what_was_made`: modules and the objects of an archive of 100,000 files are all kept,
    and would be searched in vain for 0.8 s."""
    gc.disable()


def keep_what_was_made() -> None:
    """Exclude what was created since `look_for_no_garbage` from garbage collection, and collect from now on what comes.

    Nothing is collected before that: it takes 0.08 s with 100,000 files, and finds some hundred small objects of modules.
    """
    gc.freeze()
    gc.enable()


def keep_what_is_here() -> None:
    """Exclude what was created until now from garbage collection.

    Each search takes 25 ms among 10,000 opened files, and 20 ms among the modules of pyspark and pyarrow.
    """
    gc.collect()
    gc.freeze()
    gc.enable()


class GarbageSearch:
    """Searches what came since the last search, in a turn of the event loop that does nothing else.

    Python begins its search of all objects in the middle of whatever statement or packet is being worked off: 23 ms for the 31,000
    objects of a relay with some clients. What survives a search here is excluded from the next ones. Once an hour all objects are
    searched if there is a quarter more of them, or of memory, than after the last search of all: some may be garbage by now.
    """

    def __init__(self) -> None:
        self._kept = _memory()
        self._all_at = time.monotonic() + _ALL_EVERY_S

    def begin(self) -> None:
        """Search from now on, on the running loop."""
        gc.set_threshold(*gc.get_threshold()[:2], _NEVER)
        self._wait()

    def _wait(self) -> None:
        asyncio.get_running_loop().call_later(_SEARCHED_EVERY_S, self._search)

    def _search(self) -> None:
        self._wait()
        if gc.get_count()[2]:  # something survived the search of what is youngest
            self.search()

    def search(self) -> None:
        """Search now."""
        searches_all = time.monotonic() >= self._all_at and self._has_grown()
        if searches_all:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        if searches_all:
            self._all_at = time.monotonic() + _ALL_EVERY_S
            self._kept = _memory()

    def _has_grown(self) -> bool:
        return any(now > kept * _MOST_GROWTH for now, kept in zip(_memory(), self._kept, strict=True))


def _memory() -> tuple[int, int]:
    """Return how many small blocks of memory are allocated, and the bytes of memory that the process has."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except (OSError, ValueError, IndexError):
        pages = 0
    return sys.getallocatedblocks(), pages * os.sysconf("SC_PAGE_SIZE")
