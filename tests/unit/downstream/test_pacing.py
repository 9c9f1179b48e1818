"""Broadcasts take at most half of the time, and a single replica never waits."""

from relay.downstream.stream.pacing import WakePacer


def test_a_short_broadcast_may_be_followed_at_once() -> None:
    pacer = WakePacer()
    pacer.finished(1.0, 1.000_01)
    assert pacer.due(1.000_02) == 1.000_02


def test_after_a_long_broadcast_the_next_one_waits_as_long() -> None:
    pacer = WakePacer()
    pacer.finished(1.0, 1.004)
    assert abs(pacer.due(1.004) - 1.008) < 1e-9
    assert pacer.due(1.008) == 1.008


def test_in_the_long_run_half_of_the_time_is_free() -> None:
    pacer = WakePacer()
    now = busy = 0.0
    while now < 1.0:
        now = pacer.due(now)
        pacer.finished(now, now + 0.000_2)
        now += 0.000_2
        busy += 0.000_2
    assert busy < 0.502


def test_rest_is_not_saved_up() -> None:
    pacer = WakePacer()
    pacer.finished(100.0, 100.004)
    assert pacer.due(100.004) > 100.007
