"""Callbacks for code that must know when the archive has moved, or failed.

A fault of one of them delays neither the others nor the archive's own work.
"""

from collections.abc import Callable
from typing import Generic, ParamSpec

from relay.process.background import tell_fault

P = ParamSpec("P")


class Watchers(Generic[P]):
    """Callbacks, called in the order in which they were added. On the event loop."""

    def __init__(self) -> None:
        self._watchers: list[Callable[P, None]] = []
        self._faulty: list[Callable[P, None]] = []

    def add(self, callback: Callable[P, None]) -> None:
        """Call `callback` with the arguments of each `notify` from now on."""
        self._watchers.append(callback)

    def remove(self, callback: Callable[P, None]) -> None:
        """Remove it; an unknown callback is ignored."""
        for callbacks in (self._watchers, self._faulty):
            if callback in callbacks:
                callbacks.remove(callback)

    def notify(self, *args: P.args, **more: P.kwargs) -> None:
        """Call all of them. An exception of one is logged once, until it has succeeded again."""
        for callback in tuple(self._watchers):
            try:
                callback(*args, **more)
            except Exception as fault:
                if callback not in self._faulty:
                    self._faulty.append(callback)
                    tell_fault(
                        "archive_watcher_failed", fault, watcher=getattr(callback, "__qualname__", repr(callback))
                    )
            else:
                if self._faulty and callback in self._faulty:
                    self._faulty.remove(callback)
