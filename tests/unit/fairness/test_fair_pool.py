"""Whoever asks for much waits for itself: turns by account and address, ranks, threads that are kept."""

import asyncio
import contextlib
import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future

import pytest

from relay.fairness.client_threads import in_turn
from relay.fairness.fair_pool import TURN, FairPool, taking
from relay.fairness.fair_queue import Rank, Turn

KNOWN, UNKNOWN = Rank.KNOWN, Rank.UNKNOWN


class Held:
    """A pool whose threads are at work until `release`; what ran after that, in its order."""

    def __init__(self, pool: FairPool, blocked: int = 1, turn: Turn | None = None) -> None:
        self.pool = pool
        self.ran: list[str] = []
        self._gate = threading.Event()
        self._futures: list[Future[object]] = []
        began = [threading.Event() for _ in range(blocked)]
        for event in began:
            with taking(turn or Turn("holder", rank=KNOWN)):
                self._futures.append(pool.submit(self._hold, event))
        for event in began:
            assert event.wait(5)

    def _hold(self, began: threading.Event) -> None:
        began.set()
        assert self._gate.wait(10)

    def ask(self, name: str, whose: str, rank: Rank = KNOWN, part: str = "") -> Future[object]:
        with taking(Turn(whose, part, rank)):
            future: Future[object] = self.pool.submit(self.ran.append, name)
        self._futures.append(future)
        return future

    def release(self) -> list[str]:
        self._gate.set()
        for future in self._futures:
            with contextlib.suppress(CancelledError):
                future.result(10)
        return self.ran


@pytest.fixture
def made() -> Iterator[Callable[..., FairPool]]:
    pools = []

    def make(size: int = 1, *, kept: int = 0, newest_first: bool = False) -> FairPool:
        pools.append(FairPool(size, "tried", kept=kept, newest_first=newest_first))
        return pools[-1]

    yield make
    for pool in pools:
        pool.shutdown(cancel_futures=True)


def test_forty_of_one_account_make_another_wait_for_one(made: Callable[..., FairPool]) -> None:
    held = Held(made())
    for number in range(40):
        held.ask(f"a{number}", "a")
    held.ask("b0", "b")
    held.ask("b1", "b")
    assert held.release()[:4] == ["a0", "b0", "a1", "b1"]
    assert held.ran[-1] == "a39"


def test_of_one_account_addresses_take_turns(made: Callable[..., FairPool]) -> None:
    held = Held(made())
    for number in range(3):
        held.ask(f"thief{number}", "replica", part="1")
    held.ask("own", "replica", part="2")
    assert held.release() == ["thief0", "own", "thief1", "thief2"]


def test_a_lower_rank_goes_first(made: Callable[..., FairPool]) -> None:
    held = Held(made())
    held.ask("stranger", "x", UNKNOWN)
    held.ask("account", "y", KNOWN)
    held.ask("admin", "z", Rank.FIRST)
    assert held.release() == ["admin", "account", "stranger"]


def test_unknown_addresses_have_some_turns_beside_known_ones_that_ask_without_end(
    made: Callable[..., FairPool],
) -> None:
    held = Held(made())
    for number in range(8):
        held.ask(f"known{number}", "y", KNOWN)
    held.ask("stranger0", "x", UNKNOWN)
    held.ask("stranger1", "x", UNKNOWN)
    ran = held.release()
    assert [ran.index("stranger0"), ran.index("stranger1")] == [3, 7]


def test_of_two_threads_one_is_for_whoever_has_no_work_in_hand(made: Callable[..., FairPool]) -> None:
    pool = made(2)
    held = Held(pool, blocked=2, turn=Turn("a", rank=KNOWN))
    held.ask("a", "a")
    held.ask("b", "b")
    assert held.release()[0] == "b"


def test_an_admin_has_a_thread_while_all_others_are_at_work(made: Callable[..., FairPool]) -> None:
    pool = made(1, kept=1)
    held = Held(pool)
    held.ask("account", "a")
    with taking(Turn("dba", rank=Rank.FIRST)):
        assert pool.submit(lambda: 7).result(5) == 7
        assert pool.submit(threading.current_thread).result(5).name == "tried_1"
    time.sleep(0.05)
    # The thread that is kept does nothing for accounts.
    assert held.ran == []
    assert held.release() == ["account"]


def test_of_strangers_the_newest_is_served_first_and_who_was_served_goes_last(made: Callable[..., FairPool]) -> None:
    held = Held(made(newest_first=True))
    for number in range(3):
        held.ask(f"first{number}", "1", UNKNOWN)
    held.ask("second", "2", UNKNOWN)
    held.ask("third", "3", UNKNOWN)
    assert held.release() == ["third", "second", "first0", "first1", "first2"]


def test_what_is_cancelled_is_not_called_and_not_kept(made: Callable[..., FairPool]) -> None:
    pool = made()
    held = Held(pool)
    futures = [held.ask(str(number), f"address {number}") for number in range(100)]
    for future in futures:
        assert future.cancel()
    assert pool._waiting.all() == []
    assert all(not of_rank for of_rank in pool._waiting._ranks.values())
    assert held.release() == []


def test_an_exception_is_for_who_asked(made: Callable[..., FairPool]) -> None:
    pool = made()
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result(5)
    assert pool.submit(lambda: "goes on").result(5) == "goes on"


def test_a_pool_that_is_closed_ends_its_threads_and_takes_nothing(made: Callable[..., FairPool]) -> None:
    pool = made(2)
    held = Held(pool, blocked=2)
    waiting = held.ask("never", "a")
    pool.shutdown(wait=False, cancel_futures=True)
    assert waiting.cancelled()
    assert pool.submit(lambda: None).cancelled()
    assert held.release() == []
    pool.shutdown(wait=True)
    assert not any(thread.is_alive() for thread in pool._threads)


async def test_the_turn_goes_with_the_task() -> None:
    async def asked(turn: Turn) -> Turn:
        TURN.set(turn)
        await asyncio.sleep(0)
        return await asyncio.create_task(inside())

    async def inside() -> Turn:
        return TURN.get()

    turns = [Turn(name, rank=KNOWN) for name in "abc"]
    assert await asyncio.gather(*map(asked, turns)) == turns
    assert TURN.get() == Turn()
    assert await in_turn(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await in_turn(divmod, 7, 0)


class Result:
    """What comes of a work; it can be seen to go."""


def test_what_came_of_a_work_goes_with_the_last_who_has_it(made: Callable[..., FairPool]) -> None:
    """Not when the garbage collector comes: an answer may have 32 MiB."""
    gc.collect()
    gc.disable()
    try:
        future = made(1).submit(Result)
        result = weakref.ref(future.result(5))
        assert result() is not None
        del future
        deadline = time.monotonic() + 5
        while result() is not None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        gc.enable()
