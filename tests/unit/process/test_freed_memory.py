"""Memory that was freed goes back to the system, soon and not for each byte."""

import asyncio

import pytest

from relay.process import freed_memory
from relay.process.freed_memory import FreedMemory


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed_memory, "_PAUSE_S", 0.01)
    monkeypatch.setattr(freed_memory, "_THREADS_END_S", 0.05)


async def test_little_is_kept_until_it_is_much() -> None:
    given: list[int] = []
    freed = FreedMemory(lambda: given.append(1))
    freed.freed(10 << 20)
    await asyncio.sleep(0.05)
    assert given == []
    freed.freed(10 << 20)
    await asyncio.sleep(0.04)
    assert given == [1]


async def test_many_ends_at_once_cost_one_pass_and_one_more_for_threads_that_worked_on() -> None:
    given: list[int] = []
    freed = FreedMemory(lambda: given.append(1))
    for _ in range(50):
        freed.freed(64 << 20)
    await asyncio.sleep(0.3)
    assert given == [1, 1]


async def test_the_c_library_has_a_way_on_this_system() -> None:
    """glibc; where there is none nothing is done."""
    trim = freed_memory._trim_of_c_library()
    if trim is not None:
        assert trim() in (0, 1)
