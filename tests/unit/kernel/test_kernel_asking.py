"""Semi-sync on the way out: which events ask for an acknowledgement, and how packets are numbered behind them."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from tests.support.event_stream import MAX_PAYLOAD, EventStream, rows_body, walk
from tests.support.kernel_builds import KernelBuild

KEEP, STRIP, EDGES = 0, 1, 2
PREFIX = b"\0\xef\0"
XID, QUERY, TABLE_MAP, ROTATE, STOP, PREVIOUS_GTIDS, GTID_LIST = 16, 2, 19, 4, 3, 35, 163


@dataclass(frozen=True)
class Framed:
    """One call: the bytes made, where (in all input) the newest event ends that was asked for, how many were so far."""

    data: bytes
    asked_end: int
    asked_events: int


def framed(build: KernelBuild, data: bytes, cuts: Iterable[int] = (), *, mode: int = KEEP) -> list[Framed]:
    framer = build.frame.Framer(mode, PREFIX, True)
    framer.begin_file(1)
    calls = []
    held, at = b"", 0
    for cut in [*sorted({c for c in cuts if 0 < c < len(data)}), len(data)]:
        source, start = held + data[at:cut], at - len(held)
        at = cut
        target = bytearray(build.frame.required_size(len(source), len(PREFIX)))
        size = framer.frame(source, 0, len(source), target)
        asked_end = framer.asked_end + start if framer.asked_end >= 0 else -1
        calls.append(Framed(bytes(target[:size]), asked_end, framer.asked_events))
        held = source[framer.consumed :]
    assert (held, framer.between_events) == (b"", True)
    return calls


def received(data: bytes) -> list[tuple[bool, bytes]]:
    """What a replica makes of it: (asked, event). It counts packets as MySQL's client does: from 1 again after an
    acknowledgement, and breaks off at any other number."""
    events = []
    number, payload = 1, b""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 3], "little")
        assert data[at + 3] == number & 255, f"packet at {at} has number {data[at + 3]}, expected {number & 255}"
        payload += data[at + 4 : at + 4 + size]
        at += 4 + size
        number += 1
        if size == MAX_PAYLOAD:
            continue
        assert payload[:2] == PREFIX[:2] and payload[2] in (0, 1)
        events.append((payload[2] == 1, payload[3:]))
        if payload[2]:
            number = 1
        payload = b""
    assert payload == b""
    return events


def joined(calls: Iterable[Framed]) -> bytes:
    return b"".join(call.data for call in calls)


def stream_of_transactions() -> EventStream:
    stream = EventStream()
    for number in range(4):
        stream.query("BEGIN").query(f"INSERT INTO t VALUES ({number})").add(XID, bytes(8))
    stream.query("CREATE TABLE a (b INT)")
    return stream.query("BEGIN").query("INSERT INTO t VALUES (5)").add(XID, bytes(8))


def stamped(build: KernelBuild, stream: EventStream) -> bytes:
    return walk(build, stream.data, packets=False).produced


def ends_of_transactions(stream: EventStream) -> set[int]:
    ends, at = set(), 0
    for event in stream.events:
        at += len(event)
        if event[4] == XID or (event[4] == QUERY and b"CREATE" in event):
            ends.add(at)
    return ends


def test_the_newest_transaction_end_of_a_run_is_asked_for_and_no_other(build: KernelBuild) -> None:
    stream = stream_of_transactions()
    (call,) = framed(build, stamped(build, stream))
    assert [asked for asked, _ in received(call.data)] == [False] * (len(stream.events) - 1) + [True]
    assert call.asked_end == len(stream.data)


def test_packets_behind_the_end_that_is_asked_for_are_counted_from_one_again(build: KernelBuild) -> None:
    stream = stream_of_transactions()
    end = len(stream.data)
    stream.query("BEGIN")
    for number in range(300):
        stream.query(f"INSERT INTO t VALUES ({number})")
    data = stamped(build, stream)
    (call,) = framed(build, data)
    events = received(call.data)
    assert call.asked_end == end
    assert [index for index, (asked, _) in enumerate(events) if asked] == [len(events) - 302]
    assert b"".join(event for _, event in events) == data


def test_a_run_without_a_transaction_end_asks_for_nothing(build: KernelBuild) -> None:
    stream = EventStream().query("BEGIN").query("INSERT INTO t VALUES (1)")
    (call,) = framed(build, stamped(build, stream))
    assert (call.asked_end, [asked for asked, _ in received(call.data)]) == (-1, [False, False, False])


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(ROTATE, (4).to_bytes(8, "little") + b"mysql-bin.000002", id="Rotate"),
        pytest.param(STOP, b"", id="Stop"),
        pytest.param(PREVIOUS_GTIDS, bytes(8), id="Previous_gtids"),
        pytest.param(GTID_LIST, bytes(4), id="Gtid_list"),
    ],
)
def test_what_stands_between_transactions_is_never_asked_for(build: KernelBuild, kind: int, body: bytes) -> None:
    stream = stream_of_transactions()
    end = len(stream.data)
    stream.add(kind, body)
    (call,) = framed(build, stamped(build, stream))
    assert call.asked_end == end
    assert [asked for asked, _ in received(call.data)][-2:] == [True, False]


@pytest.mark.parametrize("mode", [KEEP, STRIP, EDGES])
def test_wherever_runs_are_cut_the_events_are_the_same_and_every_run_asks_for_its_newest_end(
    build: KernelBuild, mode: int
) -> None:
    stream = stream_of_transactions()
    data = stamped(build, stream)
    whole = b"".join(event for _, event in received(joined(framed(build, data, mode=mode))))
    ends = ends_of_transactions(stream)
    for cut in range(1, len(data)):
        calls = framed(build, data, [cut], mode=mode)
        events = received(joined(calls))
        assert b"".join(event for _, event in events) == whole, f"cut at {cut}"
        asked, at = set(), 0
        for is_asked, event in events:
            at += len(event)
            asked |= {at} if is_asked else set()
        assert asked <= ends, f"cut at {cut}"
        assert {call.asked_end for call in calls} - {-1} <= asked, f"cut at {cut}"
        assert calls[-1].asked_events == len(asked), f"cut at {cut}"
        assert len(data) in asked
        if cut in ends and mode != EDGES:
            assert cut in asked


def test_three_cuts_in_a_large_transaction_end_leave_it_asked_for_once(build: KernelBuild) -> None:
    stream = EventStream().query("INSERT INTO t VALUES ('" + "x" * 2000 + "')").query("BEGIN")
    data = stamped(build, stream)
    start = len(stream.events[0])
    calls = framed(build, data, [start + 19, start + 500, start + 1500])
    assert [asked for asked, _ in received(joined(calls))] == [False, True, False]
    assert [call.asked_end for call in calls] == [-1, -1, -1, start + len(stream.events[1])]


@pytest.mark.parametrize("mode", [KEEP, STRIP])
@pytest.mark.parametrize("more", [-3, -1, 0, 1, 4, 1000])
def test_a_transaction_end_of_16_mib_is_asked_for_in_its_first_packet(build: KernelBuild, more: int, mode: int) -> None:
    """A whole transaction in one event, as a Query of that size; the packets behind it are counted from 1."""
    stream = EventStream().query("BEGIN").add(XID, bytes(8))
    length = MAX_PAYLOAD - len(PREFIX) + more
    text = "INSERT INTO t VALUES ('" + "x" * 100
    probe = len(EventStream().query(text).events[1])
    stream.query(text + "y" * (length - probe)).query("BEGIN").add(XID, bytes(8)).query("BEGIN")
    assert len(stream.events[3]) == length
    data = stamped(build, stream)
    start = data.index(stream.events[3][25:100]) - 25
    for cuts in ([], [start + 30], range(start + length - 6, start + length + 6), [start + MAX_PAYLOAD - 3]):
        calls = framed(build, data, cuts, mode=mode)
        asked = [index for index, (is_asked, _) in enumerate(received(joined(calls))) if is_asked]
        assert asked[-1] == 5
        assert 3 in asked or not cuts


def test_a_large_event_inside_a_transaction_is_not_asked_for(build: KernelBuild) -> None:
    stream = EventStream().query("BEGIN").add(30, rows_body() + random.Random(1).randbytes(3000)).add(XID, bytes(8))
    data = stamped(build, stream)
    calls = framed(build, data, range(100, len(data), 200))
    assert [asked for asked, _ in received(joined(calls))] == [False, False, False, True]


def test_nothing_is_asked_for_unless_it_was_said(build: KernelBuild) -> None:
    data = stamped(build, stream_of_transactions())
    framer = build.frame.Framer(KEEP, PREFIX)
    target = bytearray(build.frame.required_size(len(data), len(PREFIX)))
    size = framer.frame(data, 0, len(data), target)
    assert framer.asked_end == -1
    sequence, at = 1, 0
    while at < size:
        assert (target[at + 3], target[at + 6]) == (sequence & 255, 0)
        at += 4 + int.from_bytes(target[at : at + 3], "little")
        sequence += 1


def test_a_prefix_without_room_for_a_flag_cannot_ask(build: KernelBuild) -> None:
    with pytest.raises(ValueError, match="no place for a flag"):
        build.frame.Framer(KEEP, b"\0", True)
