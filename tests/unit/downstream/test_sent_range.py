"""Which stretch a replica may ask for again."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from relay.downstream.stream.resume_range import SentRange


def test_a_new_session_covers_its_start() -> None:
    sent = SentRange(500)
    assert (sent.low, sent.high) == (500, 500)


def test_what_was_sent_lately_is_covered() -> None:
    sent = SentRange(4, in_flight_bytes=1 << 20)
    sent.sent(4, 1000, event_ended=True)
    assert (sent.low, sent.high) == (4, 1000)


def test_what_arrived_is_not_covered_any_more() -> None:
    sent = SentRange(4)
    sent.sent(4, 1000, event_ended=True)
    sent.arrived()
    assert (sent.low, sent.high) == (1000, 1000)
    sent.sent(1000, 1500, event_ended=True)
    assert (sent.low, sent.high) == (1000, 1500)


def test_the_start_of_an_event_larger_than_what_is_in_flight_stays_covered() -> None:
    step = 256 << 10
    sent = SentRange(4, in_flight_bytes=1 << 20)
    sent.sent(4, 4 + step, event_ended=True)
    for number in range(1, 100):
        sent.sent(4 + number * step, 4 + (number + 1) * step, event_ended=False)
    assert sent.low == 4


@given(st.lists(st.integers(19, 3 << 20), min_size=1, max_size=60), st.integers(1, 512 << 10))
def test_every_event_that_may_not_have_arrived_whole_is_covered(sizes: list[int], step: int) -> None:
    step = max(step, 4096)
    in_flight = 1 << 20
    starts = [4]
    for size in sizes:
        starts.append(starts[-1] + size)
    sent = SentRange(4, in_flight)
    offset = 4
    while offset < starts[-1]:
        stop = min(offset + step, starts[-1])
        sent.sent(offset, stop, event_ended=any(offset < end <= stop for end in starts[1:]))
        offset = stop
        missing = [start for start, end in itertools.pairwise(starts) if start <= stop and end > stop - in_flight]
        assert all(sent.low <= start for start in missing)


@given(st.integers(1, 2000))
def test_the_range_does_not_grow_without_limit(count: int) -> None:
    sent = SentRange(4, in_flight_bytes=1 << 20)
    for number in range(count):
        sent.sent(4 + number * 4096, 4 + (number + 1) * 4096, event_ended=True)
    assert sent.high - sent.low <= (1 << 20) + (512 << 10)
    assert len(sent._steps) <= 6


def test_a_replica_that_reads_what_it_is_sent_may_ask_again_for_little() -> None:
    sent = SentRange(4)
    for number in range(1000):
        sent.sent(4 + number * 65536, 4 + (number + 1) * 65536, event_ended=True, unread_bytes=1 << 20)
    assert sent.high - (2 << 20) <= sent.low <= sent.high - (1 << 20)


def test_a_replica_that_has_stopped_reading_may_ask_again_for_all_it_has_not_read() -> None:
    sent = SentRange(4)
    for number in range(100):
        sent.sent(4 + number * 65536, 4 + (number + 1) * 65536, event_ended=True, unread_bytes=number * 65536)
    assert sent.low == 4
