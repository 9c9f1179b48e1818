"""The time for which work in a thread holds the interpreter's lock at a stretch, in processor time of the process.

A thread that runs Python gives the lock up every 5 ms; one call into C, such as a regular expression over a long text, does not, and
all other threads wait, the event loop's, too. Processor time says the same on a busy machine.
"""

import sys
import threading
import time
from collections.abc import Callable
from typing import Final

LIMIT_S: Final = 0.5
"""A view's thread may hold it at most so long over the longest statement that is read, on a slow machine: one search for the end of a
comment of 12 MB takes 0.2 s."""
_TURN_S: Final = 0.0005


def longest_hold(work: Callable[[], object]) -> float:
    """Return the longest time, in seconds, that another thread waited for the lock while `work` ran in one. Errors of `work` are
    raised."""
    begun, failed = threading.Event(), []

    def run() -> None:
        begun.wait()
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_S)
    longest = 0.0
    try:
        begun.set()
        last, own = time.process_time(), time.thread_time()
        while thread.is_alive():
            now, mine = time.process_time(), time.thread_time()
            longest = max(longest, now - last - (mine - own))
            last, own = now, mine
    finally:
        sys.setswitchinterval(before)
        thread.join()
    if failed:
        raise failed[0]
    return longest
