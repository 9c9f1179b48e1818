"""The account of what peers make the process hold: its sum is right, the largest loses, and nobody loses without need."""

import random
from collections.abc import Callable

import pytest

from relay.process.memory_budget import MemoryBudget, MemoryHolder

LIMIT = 1000


class Peers:
    """Holders of one budget. What is said soon is done by `run`."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.soon: list[Callable[[], None]] = []
        self.freed: list[int] = []
        self.budget = MemoryBudget(limit, self.soon.append, self.freed.append)
        self.real: dict[MemoryHolder, int] = {}
        self.ended: list[MemoryHolder] = []

    def open(self, account: str = "replica", address: str = "10.0.0.1") -> MemoryHolder:
        holder = self.budget.open(
            (account, address), lambda: self.real.get(holder, 0), lambda: self.ended.append(holder)
        )
        self.real[holder] = 0
        return holder

    def holds(self, holder: MemoryHolder, size: int) -> None:
        self.real[holder] = size
        holder.holds(size)

    def run(self) -> list[MemoryHolder]:
        """Who was ended by now."""
        while self.soon:
            self.soon.pop(0)()
        ended, self.ended = self.ended, []
        return ended


@pytest.fixture
def peers() -> Peers:
    return Peers()


def test_nobody_ends_while_the_sum_is_within_the_limit(peers: Peers) -> None:
    for size in (600, 300, 100):
        peers.holds(peers.open(), size)
    assert peers.run() == []
    assert peers.budget.facts().used_bytes == LIMIT


def test_the_largest_ends_and_not_the_one_that_came_last(peers: Peers) -> None:
    sizes = {peers.open(): size for size in (300, 500, 150)}
    for holder, size in sizes.items():
        peers.holds(holder, size)
    late = peers.open()
    peers.holds(late, 60)
    assert [sizes[holder] for holder in peers.run()] == [500]
    assert peers.budget.facts().ended == 1


def test_the_account_with_most_loses_though_another_one_has_the_largest_holder(peers: Peers) -> None:
    replica = peers.open("replica")
    peers.holds(replica, 300)
    flood = [peers.open("leaked") for _ in range(20)]
    for holder in flood:
        peers.holds(holder, 40)
    ended = peers.run()
    assert ended
    assert replica not in ended


def test_of_one_account_the_address_with_most_loses(peers: Peers) -> None:
    replica = peers.open("replica", "10.0.0.1")
    peers.holds(replica, 300)
    for _ in range(20):
        peers.holds(peers.open("replica", "10.6.6.6"), 40)
    ended = peers.run()
    assert ended
    assert replica not in ended


def test_what_was_read_meanwhile_is_seen_before_anybody_ends(peers: Peers) -> None:
    reader = peers.open()
    peers.holds(reader, 900)
    peers.real[reader] = 10
    peers.holds(peers.open(), 200)
    assert peers.run() == []
    assert peers.budget.facts().used_bytes == 210


def test_one_that_was_ended_is_not_ended_again_while_its_end_takes_a_moment(peers: Peers) -> None:
    large, small = peers.open(), peers.open()
    peers.holds(large, 900)
    peers.holds(small, 200)
    assert peers.run() == [large]
    peers.holds(small, 250)
    assert peers.run() == []
    large.close()
    assert peers.budget.facts().used_bytes == 250


def test_what_is_freed_is_told_where_it_is_much() -> None:
    peers = Peers(limit=100 << 20)
    holder = peers.open()
    peers.holds(holder, 1000)
    peers.holds(holder, 0)
    assert peers.freed == []
    peers.holds(holder, 2 << 20)
    holder.close()
    assert peers.freed == [2 << 20]


def test_a_look_at_all_holders_frees_room_for_many_steps(peers: Peers) -> None:
    """Whoever grows a little at a time at the limit does not make every step look at everybody."""
    looks = 0
    holders = [peers.open("replica", f"10.0.0.{number}") for number in range(50)]
    for step in range(2000):
        holder = holders[step % 50]
        peers.holds(holder, min(peers.real[holder] + 1, 40))
        looks += len(peers.soon)
        for one in peers.run():
            peers.holds(one, 0)
            one.close()
            holders[holders.index(one)] = peers.open(*one.owner)
    assert 1 <= looks < 40


@pytest.mark.parametrize("seed", range(30))
def test_of_random_histories_the_sum_is_right_and_the_largest_loses(seed: int) -> None:
    draw = random.Random(seed)
    peers = Peers()
    open_ones: list[MemoryHolder] = []
    for _ in range(400):
        what = draw.random()
        if what < 0.25 or not open_ones:
            open_ones.append(peers.open(draw.choice("abc"), draw.choice("123")))
        elif what < 0.85:
            peers.holds(draw.choice(open_ones), draw.choice((0, 1, 10, 80, 200, draw.randrange(500))))
        else:
            closed = open_ones.pop(draw.randrange(len(open_ones)))
            peers.real.pop(closed)
            closed.close()
        before = {holder: peers.real[holder] for holder in open_ones}
        ended = peers.run()
        used = sum(before.values())
        if ended:
            assert used > LIMIT, "nobody loses without need"
        for holder in ended:
            accounts = _sums(before, lambda one: one.owner[0])
            assert accounts[holder.owner[0]] == max(accounts.values())
            own = {one: size for one, size in before.items() if one.owner[0] == holder.owner[0]}
            addresses = _sums(own, lambda one: one.owner[1])
            assert addresses[holder.owner[1]] == max(addresses.values())
            assert before[holder] == max(size for one, size in own.items() if one.owner[1] == holder.owner[1])
            del before[holder]
            open_ones.remove(holder)
            peers.real.pop(holder)
            holder.close()
        left = sum(before.values())
        assert left <= LIMIT * (1 + 1 / 64), "the limit is kept"
        assert peers.budget.facts().used_bytes == left


def _sums(sizes: dict[MemoryHolder, int], key: Callable[[MemoryHolder], str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for holder, size in sizes.items():
        found[key(holder)] = found.get(key(holder), 0) + size
    return found
