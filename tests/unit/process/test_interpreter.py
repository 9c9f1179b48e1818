"""The interpreter's settings: when a thread gives way, what the search for garbage passes over."""

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from relay.process.interpreter import keep_what_is_here, share_interpreter


class Loop:
    """What refers to itself: only the search for garbage frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval_s)
    gc.unfreeze()


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
