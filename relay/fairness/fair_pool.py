"""Threads that share work by turns: a caller that requests much waits for itself, and does not delay others.

The turn travels with the task that requests the work (`TURN`), so no code in between must pass it on.
"""

import itertools
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

from relay.fairness.fair_queue import FairQueue, Rank, Turn, Waiting

T = TypeVar("T")


TURN: Final[ContextVar[Turn]] = ContextVar("turn", default=Turn())  # noqa: B039  (it is frozen)


@contextmanager
def taking(turn: Turn) -> Iterator[None]:
    """Use this turn for requests inside the block."""
    token = TURN.set(turn)
    try:
        yield
    finally:
        TURN.reset(token)


_ALL: Final = tuple(Rank)
_FIRST: Final = (Rank.FIRST,)


class _Work(NamedTuple):
    call: Callable[[], Any]
    future: Future[Any]


class FairPool(Executor):
    """At most `size` threads, each created when there is work for it, and `kept` more for work of rank FIRST. `name`: of the threads,
    followed by a number.

    newest_first: of first requests, the newest is served first: if more come than can be served before they give up, some are served
    in time, not all of them too late. begin: called first in each thread. Waiting requests take little memory, and the callers bound
    them: each has one request at a time. All its threads end with the process, whatever they are doing.
    """

    def __init__(
        self,
        size: int,
        name: str,
        *,
        kept: int = 0,
        newest_first: bool = False,
        begin: Callable[[], object] = lambda: None,
    ) -> None:
        self._size = size
        self._kept = kept
        self._name = name
        self._begin = begin
        self._numbers = itertools.count()
        self._waiting = FairQueue[_Work](newest_first=newest_first)
        self._at_work: dict[Hashable, int] = {}
        self._busy = 0
        """The number of threads with work of other ranks than FIRST."""
        self._idle = 0
        """The number of threads that wait and were not woken."""
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._lock = threading.Lock()
        self._calls = SimpleQueue[Waiting[_Work] | None]()
        """One entry for each idle thread that is called: its work, or None if it must look for some."""

    def submit(self, call: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        """Have a thread call it, by the turn of the requesting task. The future has the result. If it is cancelled, the call is not
        made."""
        future: Future[T] = Future()
        waiting = Waiting(next(self._numbers), TURN.get(), _Work(lambda: call(*arguments, **named), future))
        with self._lock:
            if not self._is_closed and self._may_be_taken_now(waiting.turn.rank):
                self._idle -= 1
                self._take(waiting)
                self._calls.put(waiting)
            elif not self._is_closed:
                self._waiting.add(waiting)
                most = self._size + (self._kept if waiting.turn.rank is Rank.FIRST else 0)
                if self._idle:
                    self._idle -= 1
                    self._calls.put(None)
                elif len(self._threads) < most:
                    name = f"{self._name}_{len(self._threads)}"
                    thread = threading.Thread(target=self._run, name=name, daemon=True)
                    thread.start()
                    self._threads.append(thread)
        if self._is_closed:
            future.cancel()
        else:
            # Not with the work: a future that refers to itself keeps its result until the garbage collector runs.
            future.add_done_callback(partial(self._ended, waiting.number, waiting.turn))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept nothing more. cancel_futures: waiting requests are not called. wait: until all threads have ended."""
        with self._lock:
            self._is_closed = True
            left = self._waiting.all() if cancel_futures else []
            self._call_all()
        for waiting in left:
            waiting.what.future.cancel()
        if wait:
            for thread in self._threads:
                thread.join()

    def _call_all(self) -> None:
        for _ in range(self._idle):
            self._calls.put(None)
        self._idle = 0

    def _ended(self, number: int, turn: Turn, future: Future[Any]) -> None:
        """Remove a cancelled request."""
        if future.cancelled():
            with self._lock:
                self._waiting.discard(number, turn)

    def _run(self) -> None:
        self._begin()
        done: Turn | None = None
        found: Any = None
        tell: Callable[[Any], None] | None = None
        while True:
            with self._lock:
                waiting = self._next(done)
                is_over = waiting is None and self._is_closed and not self._waiting
            # Not before now: the code that waits for it may request more at once, and this thread is idle.
            if tell is not None:
                tell(found)
            found = tell = done = None
            if is_over:
                return
            if waiting is None and (waiting := self._calls.get()) is None:
                continue
            (call, future), done = waiting.what, waiting.turn
            if future.set_running_or_notify_cancel():
                try:
                    found, tell = call(), future.set_result
                except BaseException as error:
                    found, tell = error, future.set_exception
            del waiting, call, future

    def _next(self, done: Turn | None) -> Waiting[_Work] | None:
        """Return the thread's next work; None: it is idle, or all is over. done: of the work that it has ended."""
        if done is not None:
            self._busy -= done.rank is not Rank.FIRST
            self._at_work[done.whose] -= 1
            if not self._at_work[done.whose]:
                del self._at_work[done.whose]
        waiting = self._waiting.pop(_ALL if self._busy < self._size else _FIRST, self._at_work)
        if waiting is not None:
            self._take(waiting)
        elif self._is_closed and not self._waiting:
            # Those that could take none of the last work end, too.
            self._call_all()
        else:
            self._idle += 1
        return waiting

    def _may_be_taken_now(self, rank: Rank) -> bool:
        """Return whether a thread is idle that takes work of this rank, and none waits before it."""
        return self._idle > 0 and not self._waiting and (self._busy < self._size or rank is Rank.FIRST)

    def _take(self, waiting: Waiting[_Work]) -> None:
        whose, rank = waiting.turn.whose, waiting.turn.rank
        self._busy += rank is not Rank.FIRST
        self._at_work[whose] = self._at_work.get(whose, 0) + 1
