"""Events that are streamed: above 256 KiB, and those of 16 MiB and more that come in several packets."""

import random
import struct
import zlib
from collections.abc import Sequence

import pytest

from protocol.kernel import codes
from tests.support.event_stream import (
    MAX_PAYLOAD,
    EventStream,
    Walk,
    packetise,
    query_body,
    raw_event,
    rows_body,
    walk,
)
from tests.support.kernel_builds import KernelBuild

NOISE = random.Random(2).randbytes(1 << 20)
MIB = 1 << 20


def noise(size: int) -> bytes:
    return (NOISE * (size // len(NOISE) + 1))[:size]


def with_big_event(size: int, *, checksum: bool = True, kind: int = 30) -> EventStream:
    """BEGIN, a rows event of exactly `size` bytes, Xid, and a statement behind."""
    stream = EventStream(checksum=checksum).query("BEGIN")
    body = noise(size - 19 - (4 if checksum else 0))
    stream.add(kind, rows_body() + body[len(rows_body()) :])
    assert len(stream.events[-1]) == size
    return stream.add(16, bytes(8)).query("CREATE TABLE t (a INT)")


def expected_bytes(stream: EventStream, boundaries: Sequence[int]) -> bytes:
    out = bytearray()
    for event, boundary in zip(stream.events, boundaries, strict=True):
        marked = bytearray(event)
        marked[18] |= boundary << 2
        if stream.checksum or event[4] == 15:
            marked[-4:] = struct.pack("<I", zlib.crc32(marked[:-4]))
        out += marked
    return bytes(out)


def in_reads_of(size: int, data: bytes) -> range:
    return range(size, len(data), size)


def summary(got: Walk) -> tuple[object, ...]:
    """Everything but the bytes, which would make unreadable messages."""
    return (got.status, got.error_text, got.position, got.boundary, got.in_group, got.events, got.groups, got.left)


@pytest.mark.parametrize("checksum", [True, False], ids=["crc32", "none"])
@pytest.mark.parametrize("size", [262143, 262144, 262145, 262148, 262149, 300000, 69999 + 262144])
@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
def test_around_the_size_from_which_events_are_streamed(
    build: KernelBuild, size: int, checksum: bool, packets: bool
) -> None:
    stream = with_big_event(size, checksum=checksum)
    data = packetise(stream.events) if packets else stream.data
    wanted = expected_bytes(stream, [1, 3, 4, 5, 2])
    for reads in (len(data), 65536, 69999, 70001, 262144):
        got = walk(build, data, in_reads_of(reads, data), packets=packets)
        assert (summary(got), got.produced == wanted) == (
            (0, "", stream.offset, stream.offset, False, 5, 2, 0),
            True,
        ), f"reads of {reads}"


@pytest.mark.parametrize("prefix", [b"\0", b"\0\xef\0"], ids=["plain", "semi-sync"])
@pytest.mark.parametrize("more", [-6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 19, 1000])
def test_around_the_size_from_which_events_take_two_packets(build: KernelBuild, more: int, prefix: bytes) -> None:
    """0: exactly 16 MiB - 1 with the prefix, so that an empty packet follows; 1 to 4: the CRC32 is in two packets."""
    stream = with_big_event(MAX_PAYLOAD - len(prefix) + more)
    data = packetise(stream.events, prefix)
    got = walk(build, data, in_reads_of(3 * MIB + 1, data), prefix=len(prefix))
    assert (summary(got), got.produced == expected_bytes(stream, [1, 3, 4, 5, 2])) == (
        (0, "", stream.offset, stream.offset, False, 5, 2, 0),
        True,
    )


@pytest.mark.parametrize("more", [-1, 0, 1, 3])
def test_around_three_packets(build: KernelBuild, more: int) -> None:
    stream = with_big_event(2 * MAX_PAYLOAD - 1 + more)
    data = packetise(stream.events)
    got = walk(build, data, in_reads_of(4 * MIB - 1, data))
    assert (summary(got), got.produced == expected_bytes(stream, [1, 3, 4, 5, 2])) == (
        (0, "", stream.offset, stream.offset, False, 5, 2, 0),
        True,
    )


@pytest.mark.parametrize("more", [-1, 0, 1, 2, 3, 4, 5])
def test_cuts_at_every_byte_around_the_second_packet_change_nothing(build: KernelBuild, more: int) -> None:
    stream = with_big_event(MAX_PAYLOAD - 1 + more)
    data = packetise(stream.events)
    whole = walk(build, data)
    seam = data.index(stream.events[2][:19]) + MAX_PAYLOAD - 1
    cuts = [*in_reads_of(4 * MIB, data), *range(seam - 8, seam + 20)]
    got = walk(build, data, cuts)
    assert (summary(got), got.produced == whole.produced) == (summary(whole), True)


def test_a_sequence_number_wraps_between_the_packets_of_an_event(build: KernelBuild) -> None:
    stream = EventStream().query("BEGIN")
    for _ in range(253):
        stream.query("x")
    stream.add(30, rows_body() + noise(MAX_PAYLOAD)).add(16, bytes(8))
    got = walk(build, packetise(stream.events))
    assert (got.status, got.position, got.sequence) == (0, stream.offset, (1 + 257 + 1) & 255)


def test_a_big_event_that_arrives_marked_is_left_alone(build: KernelBuild) -> None:
    stream = EventStream().query("BEGIN")
    stream.add(30, rows_body() + noise(300000), flags=4 << 10).add(16, bytes(8))
    got = walk(build, packetise(stream.events))
    assert stream.events[2] in got.produced


@pytest.mark.parametrize("size", [300000, MAX_PAYLOAD + 2])
def test_a_wrong_checksum_of_a_big_event_is_found_at_its_start(build: KernelBuild, size: int) -> None:
    stream = with_big_event(size)
    start = 4 + len(stream.events[0]) + len(stream.events[1])
    broken = bytearray(stream.events[2])
    broken[-100] ^= 1
    data = packetise([*stream.events[:2], bytes(broken), *stream.events[3:]])
    for reads in (len(data), MIB):
        got = walk(build, data, in_reads_of(reads, data))
        assert (got.status, got.position, got.boundary, got.bad_type) == (
            codes.BAD_CRC,
            start,
            4 + len(stream.events[0]),
            30,
        )


def test_a_second_packet_out_of_order_is_named(build: KernelBuild) -> None:
    stream = with_big_event(MAX_PAYLOAD + 1000)
    data = bytearray(packetise(stream.events))
    seam = data.index(stream.events[2][:19]) + MAX_PAYLOAD - 1
    data[seam + 3] ^= 1
    assert walk(build, bytes(data)).status == codes.BAD_SEQUENCE


@pytest.mark.parametrize("wrong", [0, 1, 999, 1002, MAX_PAYLOAD])
def test_a_second_packet_of_a_wrong_length_is_named(build: KernelBuild, wrong: int) -> None:
    stream = with_big_event(MAX_PAYLOAD + 1000)
    data = bytearray(packetise(stream.events))
    seam = data.index(stream.events[2][:19]) + MAX_PAYLOAD - 1
    assert int.from_bytes(data[seam : seam + 3], "little") == 1001
    data[seam : seam + 3] = wrong.to_bytes(3, "little")
    assert walk(build, bytes(data)).status == codes.BAD_PACKET


@pytest.mark.parametrize("wrong", [0, 1, 2, 4])
def test_a_second_packet_with_the_rest_of_the_checksum_and_a_wrong_length_is_named(
    build: KernelBuild, wrong: int
) -> None:
    stream = with_big_event(MAX_PAYLOAD - 1 + 3)
    data = bytearray(packetise(stream.events))
    seam = data.index(stream.events[2][:19]) + MAX_PAYLOAD - 1
    data[seam : seam + 3] = wrong.to_bytes(3, "little")
    assert walk(build, bytes(data)).status == codes.BAD_PACKET


def test_a_big_statement_that_is_a_group_alone_is_a_boundary_at_its_end(build: KernelBuild) -> None:
    stream = EventStream().add(2, query_body("x" * 400000)).query("BEGIN")
    data = packetise(stream.events)
    got = walk(build, data, in_reads_of(100000, data))
    big_end = 4 + len(stream.events[0]) + len(stream.events[1])
    assert (got.boundary, got.group_start, got.groups, got.in_group) == (big_end, big_end, 1, True)


def test_a_big_statement_is_no_boundary_before_its_end(build: KernelBuild) -> None:
    stream = EventStream().add(2, query_body("x" * 400000))
    start = 4 + len(stream.events[0])
    data = packetise(stream.events)
    boundaries = {walk(build, data[:cut]).boundary for cut in range(len(stream.events[0]), len(data), 9999)}
    assert boundaries <= {4, start}


def test_the_text_behind_the_largest_status_variables_is_read(build: KernelBuild) -> None:
    body = query_body("COMMIT", schema=b"s" * 255, status=bytes(65535))
    big = query_body("INSERT INTO t VALUES ('" + "x" * 300000, schema=b"s" * 255, status=bytes(65535))
    stream = EventStream().query("BEGIN").add(2, big).add(2, body)
    got = walk(build, packetise(stream.events), in_reads_of(70100, packetise(stream.events)))
    assert (got.status, got.violations, got.groups, got.in_group) == (0, [], 1, False)


@pytest.mark.parametrize("kind", [4, 15, 27])
def test_events_that_are_never_big_are_refused_when_they_say_so(build: KernelBuild, kind: int) -> None:
    stream = EventStream()
    event = raw_event(kind, noise(300000), offset=stream.offset)
    got = walk(build, packetise([*stream.events, event]), in_reads_of(100000, event))
    assert (got.status, got.position) in [
        (codes.BAD_LENGTH, stream.offset),
        (codes.BAD_EVENT, stream.offset),
    ]
