"""The limit of open files is raised, and what there is decides how many connections are taken."""

import resource
from collections.abc import Iterator

import pytest
import structlog.testing

from relay.process import descriptors
from relay.process.descriptors import Descriptors, share_descriptors, wanted_descriptors

WISHED = Descriptors(500, 10, 2000)


@pytest.fixture(autouse=True)
def nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "_open_now", lambda: 30)
    monkeypatch.setattr(descriptors, "_kept_back", lambda: 70)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Soft and hard limit; this process keeps its own."""
    now = [64, 256]
    monkeypatch.setattr(resource, "getrlimit", lambda _which: tuple(now))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, wanted: now.__setitem__(slice(None), wanted))
    yield now


def test_the_soft_limit_is_raised_to_the_hard_one(limits: list[int]) -> None:
    share_descriptors(Descriptors(10, 0, 10))
    assert limits == [256, 256]


def test_with_plenty_all_connections_are_taken(limits: list[int]) -> None:
    limits[1] = 65536
    assert share_descriptors(WISHED) == Descriptors(500, 10, 2000, 512)


def test_without_a_limit_all_connections_are_taken(limits: list[int]) -> None:
    limits[1] = resource.RLIM_INFINITY
    assert share_descriptors(Descriptors(100_000, 0, 1)) == Descriptors(100_000, 0, 1, 512)


def test_connections_follow_what_is_left_and_that_is_said(limits: list[int]) -> None:
    with structlog.testing.capture_logs() as logs:
        given = share_descriptors(WISHED)
    assert given == Descriptors(35, 3, 22, 19)
    assert 100 + given.backlog + given.strangers + 3 * (given.connections + given.admins) <= 256
    (line,) = logs
    assert (line["event"], line["allowed"], line["wanted"]) == ("few_descriptors", 256, 100 + 512 + 2000 + 1530)
    assert (line["kept_back"], line["max_connections"], line["max_unauthenticated"]) == (100, 35, 22)


def test_few_wanted_connections_need_no_word(limits: list[int]) -> None:
    with structlog.testing.capture_logs() as logs:
        assert share_descriptors(Descriptors(20, 10, 2000)).connections == 20
    assert logs == []


def test_with_next_to_nothing_one_connection_is_taken(limits: list[int]) -> None:
    limits[1] = 90
    assert share_descriptors(WISHED) == Descriptors(1, 0, 1, 8)


def test_a_limit_that_cannot_be_raised_counts_as_it_is(limits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    limits[:] = [200, 4096]
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert share_descriptors(WISHED) == Descriptors(22, 2, 14, 12)


def test_the_doctor_counts_all_that_is_wished() -> None:
    assert wanted_descriptors(WISHED, views=0) == 70 + 512 + 2000 + 1530


def test_what_is_open_and_kept_is_counted_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    before = descriptors._open_now()
    with open("/dev/null", "rb"):
        assert descriptors._open_now() == before + 1
    assert descriptors._kept_back() > 50
