"""Where there is no room, the group that has most gives a place up; a plain model over random histories agrees."""

import random
import time

import pytest

from relay.fairness.address_group import address_group
from relay.fairness.fair_places import FairPlaces


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::1"),
        ("", ""),
    ],
)
def test_an_address_is_of_its_own_group_or_of_that_of_its_network(address: str, group: str) -> None:
    assert address_group(address) == group


def test_the_group_that_has_most_gives_up_its_oldest() -> None:
    places = FairPlaces[str]()
    for holder, group in (("a1", "a"), ("b1", "b"), ("b2", "b"), ("c1", "c")):
        places.add(holder, group)
    assert places.first_to_go() == "b1"
    places.discard("b1")
    # All have one: who came first has had most time.
    assert places.first_to_go() == "a1"
    places.add("c2", "c")
    assert (places.first_to_go(), list(places.of_largest()), places.most()) == ("c1", ["c1", "c2"], 2)


def test_of_a_group_the_lower_rank_goes_first() -> None:
    places = FairPlaces[str](ranks=3)
    for holder in ("one", "two", "three"):
        places.add(holder, "a", rank=1)
    places.move("one", 2)
    places.move("three", 0)
    places.move("unknown", 0)
    assert list(places.of_largest()) == ["three", "two", "one"]
    assert places.first_to_go() == "three"


def test_nobody_goes_where_nobody_is() -> None:
    places = FairPlaces[str]()
    places.discard("unknown")
    assert (places.first_to_go(), len(places), places.most(), list(places.of_largest())) == (None, 0, 0, [])


def test_random_histories_agree_with_a_plain_model() -> None:
    chance = random.Random(7)
    for _ in range(30):
        places, model, count = FairPlaces[int](ranks=2), dict[int, tuple[str, int, int]](), 0
        for step in range(400):
            doing = chance.random()
            if doing < 0.5 or not model:
                count += 1
                group, rank = chance.choice("abcdefgh"), chance.randrange(2)
                places.add(count, group, rank)
                model[count] = (group, rank, step)
            elif doing < 0.7:
                holder = chance.choice(list(model))
                group, rank, _since = model[holder]
                places.move(holder, 1 - rank)
                model[holder] = (group, 1 - rank, step)
            elif doing < 0.85:
                holder = chance.choice(list(model))
                places.discard(holder)
                del model[holder]
            else:
                first = places.first_to_go()
                assert first == expected(model)
                assert first is not None
                places.discard(first)
                del model[first]
            assert len(places) == len(model)


def expected(model: dict[int, tuple[str, int, int]]) -> int:
    counts: dict[str, int] = {}
    for group, _rank, _step in model.values():
        counts[group] = counts.get(group, 0) + 1
    most = max(counts.values())
    first_of = {
        group: min((rank, step, holder) for holder, (of, rank, step) in model.items() if of == group)
        for group, count in counts.items()
        if count == most
    }
    return min((step, holder) for _rank, step, holder in first_of.values())[1]


def test_a_flood_costs_microseconds_a_connection_whatever_has_gone_before() -> None:
    places = FairPlaces[int]()
    began = time.process_time()
    for number in range(30_000):
        places.add(number, number % 700)
        if len(places) > 2000:
            first = places.first_to_go()
            assert first is not None
            places.discard(first)
    assert time.process_time() - began < 1.5
    assert len(places._heap) <= 4 * 700 + 1
