"""When packing pauses, and for how long, by clocks that the test moves."""

from relay.packing_process.throttle import BUSY, LONGEST_PAUSE_S, LOOK_S, SHARE, Throttle


class Clocks:
    """A machine: how much of a processor the relay uses, and what a frame costs."""

    def __init__(self, relay_share: float, frame_s: float = 0.001, starved_s: float = 0.0) -> None:
        self.now = self.relay_s = self.own_s = 0.0
        self.relay_share = relay_share
        self.frame_s = frame_s
        self.starved_s = starved_s
        self.pauses: list[float] = []
        self.ends = False

    def pass_s(self, seconds: float) -> None:
        self.now += seconds
        self.relay_s += seconds * self.relay_share

    def stops(self, pause_s: float) -> bool:
        self.pauses.append(pause_s)
        self.pass_s(pause_s)
        return self.ends

    def frames(self, way: Throttle, seconds: float) -> int:
        """How many were packed in that time."""
        count, until = 0, self.now + seconds
        while self.now < until:
            self.pass_s(self.frame_s + self.starved_s)
            self.own_s += self.frame_s
            count += 1
            assert way() is False
        return count

    def way(self, *, pauses_s: float | None = None) -> Throttle:
        return Throttle(
            self.stops, lambda: self.relay_s, pauses_s=pauses_s, clock=lambda: self.now, own_s=lambda: self.own_s
        )


def test_beside_a_relay_that_rests_it_runs_all_the_time() -> None:
    clocks = Clocks(relay_share=BUSY / 2)
    way = clocks.way()
    assert clocks.frames(way, 1.0) > 950
    assert way.paused_s < 2 * LOOK_S


def test_beside_a_busy_relay_it_runs_a_small_share_of_the_time_and_never_stands_still() -> None:
    clocks = Clocks(relay_share=0.9)
    way = clocks.way()
    frames = clocks.frames(way, 10.0)
    assert 0.9 < frames * clocks.frame_s / 10.0 / SHARE < 1.1
    assert 9.5 < way.paused_s < 10.0


def test_it_notices_within_moments_that_the_relay_has_become_busy_and_that_it_rests_again() -> None:
    clocks = Clocks(relay_share=0.0)
    way = clocks.way()
    clocks.frames(way, 1.0)
    clocks.relay_share = 0.9
    assert clocks.frames(way, 1.0) * clocks.frame_s < LOOK_S + 2 * SHARE
    clocks.relay_share = 0.0
    assert clocks.frames(way, 1.0) * clocks.frame_s > 0.9


def test_what_it_waits_for_a_processor_is_not_paid_for_by_pauses_again() -> None:
    clocks = Clocks(relay_share=0.9, starved_s=0.5)
    clocks.frames(clocks.way(), 10.0)
    assert max(clocks.pauses) < 2 * clocks.frame_s / SHARE


def test_a_pause_has_a_bound_however_long_a_frame_took() -> None:
    clocks = Clocks(relay_share=0.9, frame_s=2.0)
    clocks.frames(clocks.way(), 30.0)
    assert max(clocks.pauses) == LONGEST_PAUSE_S


def test_what_is_urgent_does_not_pause() -> None:
    clocks = Clocks(relay_share=1.0)
    way = clocks.way(pauses_s=0.0)
    assert clocks.frames(way, 1.0) >= 999
    assert way.paused_s == 0.0


def test_what_somebody_waits_for_pauses_for_some_seconds_only() -> None:
    clocks = Clocks(relay_share=0.9)
    way = clocks.way(pauses_s=10.0)
    assert clocks.frames(way, 10.0) * clocks.frame_s < 0.5
    paused_s = way.paused_s
    assert clocks.frames(way, 1.0) > 900
    assert way.paused_s == paused_s


def test_it_ends_when_it_is_told_whether_it_pauses_or_not() -> None:
    for share in (0.0, 1.0):
        clocks = Clocks(relay_share=share)
        way = clocks.way()
        clocks.frames(way, 0.1)
        clocks.ends = True
        assert way() is True
