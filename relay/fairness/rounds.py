"""The time for which commands may hold the event loop: all connections share a few milliseconds of each of its iterations, by
account."""

import asyncio
import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from relay.fairness.fair_queue import FairQueue, Turn, Waiting

_ROUND_S: Final = 0.005
_REQUEST_S: Final = 0.001


class Rounds:
    """The rounds of all connections of one server. On the event loop only.

    A round begins with those that wait, admins first, then account by account; commands that arrive meanwhile get the rest of it.
    When it is used up, commands wait for the loop's next iteration, and the loop's other work comes before them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting = FairQueue[Callable[[], object]]()
        self._numbers = itertools.count()
        self._until: float | None = None
        """The time when the present round is used up."""

    def has_time(self) -> bool:
        """Return whether a command that came now may be answered now."""
        if self._until is None:
            self._begin(self._clock())
            return True
        return self._clock() < self._until

    def length_s(self) -> float:
        """Return the length of the turn that begins now. Each has at least one command."""
        return _ROUND_S / (1 + len(self._waiting))

    def requested(self) -> None:
        """Count a command that was passed on, to be answered in a later iteration, as a millisecond."""
        if self._until is not None:
            self._until -= _REQUEST_S

    def wait(self, turn: Turn, take: Callable[[], object]) -> Callable[[], object]:
        """Have `take` called once, in a later iteration, when it is its turn. Return a function that undoes this."""
        number = next(self._numbers)
        if self._until is None:
            self._begin(self._clock())
        self._waiting.add(Waiting(number, turn, take))
        return partial(self._waiting.discard, number, turn)

    def _begin(self, now: float) -> None:
        self._until = now + _ROUND_S
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """Begin the loop's next iteration."""
        self._until = None
        if not self._waiting:
            return
        self._begin(self._clock())
        # None of those that come to wait meanwhile.
        for _ in range(len(self._waiting)):
            waiting = self._waiting.pop()
            if waiting is None:
                break
            waiting.what()
            if not self.has_time():
                break
