"""Semi-synchronous streams: which events ask for an acknowledgement, and how packets are numbered behind them."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from protocol.kernel import codes
from tests.support.event_stream import MAX_PAYLOAD, EventStream, artificial_rotate, heartbeat, packets_of, walk
from tests.support.kernel_builds import KernelBuild
from tests.unit.kernel.test_kernel_big_events import with_big_event

MakeIngest = Callable[[], Any]
PLAIN, ASKING = b"\0\xef\0", b"\0\xef\1"


def stream_of(events: Sequence[bytes], asking: Sequence[int], sequence: int = 1) -> bytes:
    """Packets as a source sends them: behind an event that asks (by its place) it numbers from 1 again."""
    out = []
    for place, event in enumerate(events):
        data, sequence = packets_of((ASKING if place in asking else PLAIN) + event, sequence)
        out.append(data)
        if place in asking:
            sequence = 1
    return b"".join(out)


def transactions(count: int) -> EventStream:
    stream = EventStream()
    for number in range(count):
        stream.query("BEGIN").query(f"INSERT INTO t VALUES ({number})").add(16, bytes(8))
    return stream


def ends(stream: EventStream) -> list[int]:
    """Where each event ends."""
    found, at = [], 4
    for event in stream.events:
        at += len(event)
        found.append(at)
    return found


@pytest.fixture
def ingest_of(build: KernelBuild) -> MakeIngest:
    def make() -> Any:
        made = build.ingest.Ingest(packets=True, stamp=True, prefix=3)
        made.announced_checksum = True
        made.begin_file(4)
        return made

    return make


def test_nothing_asked_is_nothing_to_acknowledge(build: KernelBuild, ingest_of: MakeIngest) -> None:
    ingest = ingest_of()
    assert walk(build, stream_of(transactions(2).events, []), prefix=3, ingest=ingest).status == 0
    assert (ingest.acks, ingest.ack_position) == (0, -1)


@pytest.mark.parametrize("step", [1, 3, 1000], ids=["byte by byte", "in threes", "whole"])
def test_the_end_of_the_newest_event_that_asked_is_told(build: KernelBuild, ingest_of: MakeIngest, step: int) -> None:
    stream = transactions(3)
    ingest = ingest_of()
    got = walk(build, stream_of(stream.events, [3, 6]), range(0, 2000, step), prefix=3, ingest=ingest, stamp=False)
    assert got.status == 0 and got.position == stream.offset
    assert (ingest.acks, ingest.ack_position) == (2, ends(stream)[6])


def test_behind_an_event_that_asks_packets_are_numbered_from_one_again(
    build: KernelBuild, ingest_of: MakeIngest
) -> None:
    ingest = ingest_of()
    assert walk(build, stream_of(transactions(1).events, [3]), prefix=3, ingest=ingest).sequence == 1


def test_a_number_that_simply_goes_on_behind_such_an_event_is_an_error(
    build: KernelBuild, ingest_of: MakeIngest
) -> None:
    events = transactions(2).events
    first = stream_of(events[:4], [3])
    got = walk(build, first + stream_of(events[4:], [], sequence=5), prefix=3, ingest=ingest_of())
    assert got.error_text == "packet sequence broken: packet number 5, expected 1"


@pytest.mark.parametrize("asking", [True, False])
def test_a_heartbeat_may_ask_as_well(build: KernelBuild, ingest_of: MakeIngest, asking: bool) -> None:
    stream = transactions(1)
    ingest = ingest_of()
    events = [artificial_rotate(), *stream.events, heartbeat(stream.offset)]
    got = walk(build, stream_of(events, [len(events) - 1] if asking else []), prefix=3, ingest=ingest)
    assert (got.status, got.heartbeats) == (0, 1)
    assert ingest.ack_position == (stream.offset if asking else -1)


def test_an_event_that_is_streamed_asks_when_its_last_byte_came(build: KernelBuild, ingest_of: MakeIngest) -> None:
    stream = with_big_event(300_000)
    data = stream_of(stream.events, [2])
    cut = data.index(stream.events[3]) - 7 - 1
    ingest = ingest_of()
    assert walk(build, data[:cut], range(0, cut, 90_000), prefix=3, ingest=ingest).status == 0
    assert (ingest.acks, ingest.in_event) == (0, True)
    ingest = ingest_of()
    got = walk(build, data, range(0, len(data), 90_000), prefix=3, ingest=ingest)
    assert (got.status, got.position) == (0, stream.offset)
    assert (ingest.acks, ingest.ack_position) == (1, ends(stream)[2])


@pytest.mark.parametrize("size", [MAX_PAYLOAD - 3, MAX_PAYLOAD - 2, MAX_PAYLOAD + 40])
def test_an_event_of_several_packets_asks_once_and_numbers_restart_behind_the_last(
    build: KernelBuild, ingest_of: MakeIngest, size: int
) -> None:
    stream = with_big_event(size)
    data = stream_of(stream.events, [2])
    ingest = ingest_of()
    got = walk(build, data, range(0, len(data), 1 << 20), prefix=3, ingest=ingest)
    assert (got.status, got.position, got.error_text) == (0, stream.offset, got.error_text)
    assert (ingest.acks, ingest.ack_position) == (1, ends(stream)[2])


def test_a_packet_without_the_semi_sync_header_is_an_error_by_name(build: KernelBuild, ingest_of: MakeIngest) -> None:
    events = transactions(1).events
    data = stream_of(events[:2], []) + packets_of(b"\0\x01\0" + events[2], 3)[0]
    got = walk(build, data, prefix=3, ingest=ingest_of())
    assert got.status == codes.NO_SEMI_SYNC
    assert got.error_text == "semi sync header missing: 0x01 before the event, expected 0xef"
    assert got.position == ends(transactions(1))[1]


def test_an_error_packet_has_no_semi_sync_header(build: KernelBuild, ingest_of: MakeIngest) -> None:
    payload = b"\xff\xd4\x04#HY000gone"
    data = stream_of(transactions(1).events, []) + len(payload).to_bytes(3, "little") + b"\5" + payload
    assert walk(build, data, prefix=3, ingest=ingest_of()).status == codes.PACKET_ERR
