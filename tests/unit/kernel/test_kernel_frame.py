"""The way out: packets for a replica, marks kept or stripped."""

import random
from collections.abc import Iterable

import pytest

from tests.support.event_stream import MAX_PAYLOAD, EventStream, format_body, packetise, raw_event, rows_body, walk
from tests.support.kernel_builds import KernelBuild

KEEP, STRIP = 0, 1


def framed(
    build: KernelBuild,
    data: bytes,
    cuts: Iterable[int] = (),
    *,
    mode: int = KEEP,
    prefix: bytes = b"\0",
    checksum: int = 1,
    sequence: int = 1,
    left_out: int = -1,
) -> bytes:
    """`data` through a Framer in pieces that end at `cuts`, with output buffers of just the size that it asks for."""
    framer = build.frame.Framer(mode, prefix, False, left_out)
    framer.begin_file(checksum)
    framer.sequence = sequence
    out = bytearray()
    held = b""
    at = 0
    for cut in [*sorted({c for c in cuts if 0 < c < len(data)}), len(data)]:
        source = held + data[at:cut]
        at = cut
        target = bytearray(build.frame.required_size(len(source), len(prefix)))
        size = framer.frame(source, 0, len(source), target)
        out += target[:size]
        held = source[framer.consumed :]
    assert (held, framer.between_events) == (b"", True)
    return bytes(out)


def small_stream(*, checksum: bool = True) -> EventStream:
    stream = EventStream(checksum=checksum)
    for number in range(3):
        stream.query("BEGIN").query(f"INSERT INTO t VALUES ({number})").add(16, bytes(8))
    return stream.query("x" * 3000)


def stamped(build: KernelBuild, stream: EventStream) -> bytes:
    return walk(build, stream.data, packets=False).produced


@pytest.mark.parametrize("prefix", [b"\0", b"\0\xef\1"])
def test_events_are_framed_as_packets(build: KernelBuild, prefix: bytes) -> None:
    stream = small_stream()
    assert framed(build, stream.data, prefix=prefix) == packetise(stream.events, prefix)


@pytest.mark.parametrize("mode", [KEEP, STRIP])
@pytest.mark.parametrize("checksum", [True, False], ids=["crc32", "none"])
def test_every_single_cut_gives_the_same_packets(build: KernelBuild, mode: int, checksum: bool) -> None:
    stream = small_stream(checksum=checksum)
    data = stamped(build, stream)
    whole = framed(build, data, mode=mode, checksum=int(checksum))
    different = [
        cut for cut in range(1, len(data)) if framed(build, data, [cut], mode=mode, checksum=int(checksum)) != whole
    ]
    assert different == []


@pytest.mark.parametrize("checksum", [True, False], ids=["crc32", "none"])
def test_stripping_gives_back_what_the_source_sent(build: KernelBuild, checksum: bool) -> None:
    stream = small_stream(checksum=checksum)
    data = stamped(build, stream)
    assert framed(build, data, range(0, len(data), 7), mode=STRIP, checksum=int(checksum)) == packetise(stream.events)


def test_stripping_a_file_of_a_server_before_checksums_gives_back_what_it_sent(build: KernelBuild) -> None:
    """Its format description has no checksum either."""
    stream = EventStream(checksum=False, with_format=False)
    stream.add_raw(raw_event(15, format_body("5.1.43-log", bytes(27), None), offset=4, checksum=False))
    stream.query("BEGIN").add(16, bytes(8))
    data = stamped(build, stream)
    assert data != stream.data
    assert framed(build, data, range(0, len(data), 5), mode=STRIP, checksum=0) == packetise(stream.events)


def test_what_was_framed_is_taken_in_again_as_it_was(build: KernelBuild) -> None:
    data = stamped(build, small_stream())
    got = walk(build, framed(build, data), range(0, len(data), 11))
    assert (got.status, got.produced) == (0, data)


def test_sequence_numbers_wrap(build: KernelBuild) -> None:
    stream = small_stream()
    assert framed(build, stream.data, sequence=250) == packetise(stream.events, sequence=250)


@pytest.mark.parametrize("mode", [KEEP, STRIP])
@pytest.mark.parametrize("more", [-1, 0, 1, 2, 3, 4, 5, 1000, MAX_PAYLOAD, MAX_PAYLOAD + 2])
def test_events_of_16_mib_and_more_are_split(build: KernelBuild, more: int, mode: int) -> None:
    stream = EventStream().query("BEGIN")
    size = MAX_PAYLOAD - 1 + more
    stream.add(30, rows_body() + random.Random(3).randbytes(1000) * (size // 1000 + 1))
    event = stream.events.pop()
    stream.offset -= len(event)
    stream.add(30, event[19 : size - 4])
    stream.add(16, bytes(8))
    data = stamped(build, stream)
    source = stream.data if mode == STRIP else data
    events = [source[at : at + len(e)] for at, e in zip(offsets(stream), stream.events, strict=True)]
    seam = data.index(events[2][20:60]) - 20 + MAX_PAYLOAD - 1
    wanted = packetise(events)
    for cuts in ([], [seam - 1, seam, seam + 1], range(seam - 6, seam + 8), range(3_000_000, len(data), 3_000_000)):
        assert framed(build, data, cuts, mode=mode) == wanted


def offsets(stream: EventStream) -> list[int]:
    result = [0]
    for event in stream.events:
        result.append(result[-1] + len(event))
    return result[:-1]


@pytest.mark.parametrize("mode", [KEEP, STRIP])
def test_an_exact_multiple_of_the_packet_size_ends_with_an_empty_packet(build: KernelBuild, mode: int) -> None:
    stream = EventStream(checksum=False)
    stream.add(30, bytes(MAX_PAYLOAD - 1 - 19))
    assert framed(build, stamped(build, stream), mode=mode, checksum=0)[-4:-1] == b"\0\0\0"


@pytest.mark.parametrize("count", [1, 19, 20, 38, 1000])
def test_the_required_size_is_enough_for_the_smallest_events(build: KernelBuild, count: int) -> None:
    events = [raw_event(3, checksum=False)] * count
    prefix = b"\0" * 8
    assert framed(build, b"".join(events), prefix=prefix, checksum=0) == packetise(events, prefix)


def test_a_target_that_is_too_small_is_refused(build: KernelBuild) -> None:
    data = small_stream().data
    with pytest.raises(IndexError):
        build.frame.Framer().frame(data, 0, len(data), bytearray(build.frame.required_size(len(data)) - 1))


@pytest.mark.parametrize("bounds", [(-1, 10), (10, 5), (0, 10**6)])
def test_a_range_outside_the_source_is_refused(build: KernelBuild, bounds: tuple[int, int]) -> None:
    with pytest.raises(IndexError):
        build.frame.Framer().frame(small_stream().data, *bounds, bytearray(10**7))


@pytest.mark.parametrize("length", [0, 1, 18])
def test_bytes_that_are_no_event_are_named(build: KernelBuild, length: int) -> None:
    data = raw_event(2, bytes(20), length=length)
    with pytest.raises(ValueError, match="no event at input offset 0"):
        build.frame.Framer().frame(data, 0, len(data), bytearray(1000))


@pytest.mark.parametrize("arguments", [(3, b"\0"), (-1, b"\0"), (0, b""), (0, bytes(9))])
def test_a_mode_or_prefix_that_cannot_be_is_refused(build: KernelBuild, arguments: tuple[int, bytes]) -> None:
    with pytest.raises(ValueError):
        build.frame.Framer(*arguments)


def test_reading_on_from_the_middle_of_a_buffer_works(build: KernelBuild) -> None:
    stream = small_stream()
    source = b"garbage" + stream.data + b"more"
    target = bytearray(100000)
    framer = build.frame.Framer()
    size = framer.frame(source, 7, 7 + len(stream.data), target)
    assert (bytes(target[:size]), framer.consumed) == (packetise(stream.events), 7 + len(stream.data))


def annotated_stream(*, checksum: bool = True, size: int = 30) -> EventStream:
    """MariaDB's: each statement's rows have their statement before them, in an event of their own."""
    stream = EventStream(version="10.11.19-MariaDB", checksum=checksum)
    for number in range(3):
        stream.query("BEGIN")
        for _ in range(2):
            stream.add(160, b"x" * size * (number + 1)).add(19, bytes(20)).add(23, rows_body())
        stream.add(16, bytes(8))
    return stream


@pytest.mark.parametrize("checksum", [True, False], ids=["crc32", "none"])
@pytest.mark.parametrize("cuts", [(), range(4000), range(0, 4000, 7), [100, 300, 301]], ids=repr)
def test_events_of_the_type_that_is_left_out_make_no_packet_wherever_the_input_is_cut(
    build: KernelBuild, checksum: bool, cuts: Iterable[int]
) -> None:
    stream = annotated_stream(checksum=checksum)
    kept = [event for event in stream.events if event[4] != 160]
    assert len(kept) == len(stream.events) - 6
    assert framed(build, stream.data, cuts, checksum=int(checksum), left_out=160) == packetise(kept)
    assert framed(build, stream.data, cuts, checksum=int(checksum)) == packetise(stream.events)


@pytest.mark.parametrize("mode", [KEEP, STRIP])
def test_what_is_left_out_changes_no_marker_of_the_rest(build: KernelBuild, mode: int) -> None:
    marked = stamped(build, annotated_stream())
    whole = framed(build, marked, mode=mode)
    events = []
    at = 0
    while at < len(whole):
        length = int.from_bytes(whole[at : at + 3], "little")
        events.append(whole[at + 5 : at + 4 + length])
        at += 4 + length
    kept = [event for event in events if event[4] != 160]
    assert framed(build, marked, range(0, 9000, 11), mode=mode, left_out=160) == packetise(kept)


def test_an_event_that_is_left_out_may_be_greater_than_a_packet(build: KernelBuild) -> None:
    stream = EventStream(version="10.11.19-MariaDB").query("BEGIN").add(160, bytes(MAX_PAYLOAD + 9)).add(16, bytes(8))
    kept = [event for event in stream.events if event[4] != 160]
    assert framed(build, stream.data, [100, 300_000], left_out=160) == packetise(kept)


def test_in_the_middle_of_what_is_left_out_no_place_is_between_events(build: KernelBuild) -> None:
    stream = annotated_stream()
    end = sum(map(len, stream.events[:2]))
    framer = build.frame.Framer(KEEP, b"\0", False, 160)
    framer.begin_file(1)
    target = bytearray(build.frame.required_size(len(stream.data)))
    framer.frame(stream.data, 0, end + 25, target)
    assert not framer.between_events
    framer.frame(stream.data, framer.consumed, end + len(stream.events[2]), target)
    assert framer.between_events
