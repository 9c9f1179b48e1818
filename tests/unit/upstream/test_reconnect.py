"""When the source is tried again, and when not."""

import random

import pytest

from relay.upstream.source.reconnect import Reconnect
from relay.upstream.source.source_errors import TERMINAL, FailureKind


def test_network_trouble_is_retried_for_ever_with_pauses_that_grow_to_a_ceiling() -> None:
    reconnect = Reconnect(random.Random(1))
    pauses = [reconnect.pause_after(FailureKind.NETWORK, "place") for _ in range(200)]
    assert all(pause is not None for pause in pauses)
    first, last = pauses[0], pauses[-1]
    assert first is not None and last is not None
    assert first <= 0.2
    assert 15.0 <= last <= 30.0


def test_pauses_differ_between_two_relays() -> None:
    one, other = Reconnect(random.Random(1)), Reconnect(random.Random(2))
    assert one.pause_after(FailureKind.NETWORK, 1) != other.pause_after(FailureKind.NETWORK, 1)


def test_progress_starts_the_pauses_over() -> None:
    reconnect = Reconnect(random.Random(1))
    for _ in range(10):
        reconnect.pause_after(FailureKind.NETWORK, 4)
    pause = reconnect.pause_after(FailureKind.NETWORK, 5)
    assert pause is not None and pause <= 0.2


@pytest.mark.parametrize("kind", sorted(TERMINAL, key=lambda kind: kind.value))
def test_what_needs_an_operator_is_not_retried(kind: FailureKind) -> None:
    assert Reconnect().pause_after(kind, None) is None


def test_bad_bytes_from_the_same_place_are_asked_for_three_times() -> None:
    reconnect = Reconnect()
    assert reconnect.pause_after(FailureKind.STREAM_BROKEN, 4) is not None
    assert reconnect.pause_after(FailureKind.STREAM_BROKEN, 4) is not None
    assert reconnect.pause_after(FailureKind.STREAM_BROKEN, 4) is None


def test_bad_bytes_after_progress_are_counted_anew() -> None:
    reconnect = Reconnect()
    for place in range(20):
        assert reconnect.pause_after(FailureKind.STREAM_BROKEN, place) is not None


def test_a_refused_login_is_retried_slowly() -> None:
    pause = Reconnect(random.Random(3)).pause_after(FailureKind.AUTHENTICATION, None)
    assert pause is not None and pause >= 2.5
