"""A deadline that moves: one timer for all of its moves."""

import asyncio

from relay.downstream.connection.deadline import Deadline

# uvloop's clock counts whole milliseconds.
TICK_S = 0.001


class Watched:
    """A deadline, when it called back, and how many timers it has made."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.called_at: list[float] = []
        self.called = asyncio.Event()
        self.next: float | None = None
        self.deadline = Deadline(self.passed)

    def passed(self) -> None:
        self.called_at.append(self.loop.time())
        self.called.set()
        self.deadline.set(self.next)

    async def until_called(self) -> None:
        await asyncio.wait_for(self.called.wait(), 10)
        self.called.clear()


async def test_who_is_called_looks_again_and_sets_the_deadline_as_it_is_then() -> None:
    watched = Watched()
    began = watched.loop.time()
    watched.deadline.set(began + 0.05)
    watched.next = began + 0.15
    await watched.until_called()
    watched.next = None
    await watched.until_called()
    await asyncio.sleep(0.1)
    first, second = watched.called_at
    assert first >= began + 0.05 - TICK_S
    assert second >= began + 0.15 - TICK_S


async def test_a_deadline_that_moves_on_keeps_its_timer_and_an_earlier_one_is_kept_too() -> None:
    watched = Watched()
    now = watched.loop.time()
    watched.deadline.set(now + 50)
    timer = watched.deadline._timer
    for later in range(1000):
        watched.deadline.set(now + 50 + later)
    watched.deadline.set(None)
    assert watched.deadline._timer is timer and timer is not None and not timer.cancelled()
    watched.deadline.set(now + 0.02)
    await watched.until_called()
    assert timer.cancelled()
    assert len(watched.called_at) == 1


async def test_nothing_is_called_once_it_is_cancelled() -> None:
    watched = Watched()
    watched.deadline.cancel()
    watched.deadline.set(watched.loop.time() + 0.02)
    watched.deadline.cancel()
    await asyncio.sleep(0.1)
    assert watched.called_at == []
    watched.deadline.set(watched.loop.time() + 0.02)
    await watched.until_called()
