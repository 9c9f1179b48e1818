"""The behaviour of a thread that has time, in a process whose event loop has none."""

import os
import threading
import time


def take_least_priority() -> None:
    """Give the calling thread the least priority, if the system has that: on Linux a priority belongs to the thread; elsewhere
    setting it would slow the whole process."""
    if hasattr(os, "setpriority") and hasattr(os, "posix_fallocate"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)


def give_way() -> None:
    """Give the interpreter to the loop at once, without waiting: Python would take it away only milliseconds later."""
    time.sleep(0)
