"""Commands share a few milliseconds of each iteration of the loop, by account."""

import asyncio
from functools import partial

import pytest

from relay.fairness.fair_queue import Rank, Turn
from relay.fairness.rounds import Rounds

ROUND_S = 0.005
IN_SHORT = 1e-9


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def an_iteration() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_connections_that_send_ahead_share_a_round() -> None:
    rounds = Rounds(Clock())
    assert rounds.length_s() == pytest.approx(ROUND_S)
    for number in range(49):
        rounds.wait(Turn(number), lambda: None)
    assert rounds.length_s() == pytest.approx(ROUND_S / 50)
    await an_iteration()
    assert rounds.length_s() == pytest.approx(ROUND_S)


async def test_a_round_that_is_used_up_leaves_the_others_for_the_next_iteration() -> None:
    clock, done = Clock(), list[int]()
    rounds = Rounds(clock)

    def take(number: int) -> None:
        done.append(number)
        clock.now += ROUND_S / 2 + IN_SHORT

    for number in range(5):
        rounds.wait(Turn(number), partial(take, number))
    had = []
    for _ in range(4):
        await asyncio.sleep(0)
        had.append(list(done))
    assert had == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]


async def test_a_command_that_comes_when_the_round_is_used_up_waits() -> None:
    clock = Clock()
    rounds = Rounds(clock)
    assert rounds.has_time()
    clock.now += ROUND_S + IN_SHORT
    assert not rounds.has_time()
    await an_iteration()
    assert rounds.has_time()


async def test_requests_are_counted_before_they_are_answered() -> None:
    rounds = Rounds(Clock())
    had = []
    for _ in range(7):
        had.append(rounds.has_time())
        rounds.requested()
    assert had == [True] * 5 + [False] * 2


async def test_an_admin_is_first_and_accounts_take_turns_whatever_each_sends() -> None:
    done = list[str]()
    rounds = Rounds(Clock())
    for name in ("greedy1", "greedy2", "greedy3"):
        rounds.wait(Turn("greedy"), partial(done.append, name))
    rounds.wait(Turn("modest"), partial(done.append, "modest"))
    rounds.wait(Turn("admin", rank=Rank.FIRST), partial(done.append, "admin"))
    await an_iteration()
    assert done == ["admin", "greedy1", "modest", "greedy2", "greedy3"]


async def test_who_leaves_takes_nothing_of_the_others_turns() -> None:
    done = list[str]()
    rounds = Rounds(Clock())
    take_back = rounds.wait(Turn("gone"), partial(done.append, "gone"))
    take_back()
    assert rounds.length_s() == pytest.approx(ROUND_S)
    await an_iteration()
    assert done == []
