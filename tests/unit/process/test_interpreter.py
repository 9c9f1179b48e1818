"""The interpreter's settings: when a thread gives way, what the search for garbage passes over."""

import asyncio
import gc
import sys
import time
import weakref
from collections.abc import Iterator

import pytest

from relay.process import interpreter
from relay.process.interpreter import (
    GarbageSearch,
    keep_what_is_here,
    keep_what_was_made,
    look_for_no_garbage,
    share_interpreter,
)


class Loop:
    """What refers to itself: only the search for garbage frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    interval_s, threshold = sys.getswitchinterval(), gc.get_threshold()
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval_s)
    gc.unfreeze()
    gc.enable()


def test_a_thread_gives_way_after_a_tenth_of_the_usual_time() -> None:
    sys.setswitchinterval(0.005)
    share_interpreter()
    assert sys.getswitchinterval() == pytest.approx(0.0005)


def test_what_is_here_is_passed_over_and_what_is_garbage_already_is_freed() -> None:
    kept = Loop()
    garbage = weakref.ref(Loop())
    keep_what_is_here()
    assert garbage() is None
    assert not any(one is kept for one in gc.get_objects())
    later = Loop()
    assert any(one is later for one in gc.get_objects())


def test_garbage_is_looked_for_again_in_what_comes_behind_a_start() -> None:
    look_for_no_garbage()
    assert not gc.isenabled()
    made = Loop()
    keep_what_was_made()
    assert gc.isenabled()
    assert not any(one is made for one in gc.get_objects())
    garbage = weakref.ref(Loop())
    gc.collect()
    assert garbage() is None


def test_a_search_frees_garbage_and_passes_over_what_survived_one() -> None:
    search = GarbageSearch()
    kept, garbage = Loop(), weakref.ref(Loop())
    search.search()
    assert garbage() is None
    assert not any(one is kept for one in gc.get_objects())


@pytest.mark.parametrize(
    ("memory", "is_found"),
    [((126, 100), True), ((100, 126), True), ((124, 124), False)],
    ids=["a quarter more blocks", "a quarter more resident memory", "less"],
)
def test_what_became_garbage_after_a_search_is_found_within_an_hour_of_growth(
    memory: tuple[int, int], is_found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "_memory", lambda: (100, 100))
    search = GarbageSearch()
    kept = [Loop()]
    search.search()
    garbage = weakref.ref(kept[0])
    kept.clear()
    monkeypatch.setattr(interpreter, "_memory", lambda: memory)
    search.search()
    assert garbage() is not None
    hours_later = time.monotonic() + 7200
    monkeypatch.setattr(time, "monotonic", lambda: hours_later)
    search.search()
    assert (garbage() is None) is is_found


def test_memory_is_blocks_and_resident_bytes() -> None:
    blocks, resident = interpreter._memory()
    assert blocks > 10_000
    assert resident > 1 << 20 or sys.platform != "linux"


async def test_searches_are_turns_of_the_loop_and_not_within_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "_SEARCHED_EVERY_S", 0.01)
    GarbageSearch().begin()
    garbage = weakref.ref(Loop())
    before = gc.get_stats()[2]["collections"]
    kept = [[one] for one in range(200_000)]
    assert gc.get_stats()[2]["collections"] == before
    assert len(kept) == 200_000
    while gc.get_stats()[2]["collections"] == before:
        await asyncio.sleep(0.01)
    assert garbage() is None
