"""The packet stream: heads, sequence numbers, what is stored and what is not."""

import itertools
import struct
import zlib

import pytest

from protocol.kernel import codes
from tests.support.event_stream import (
    EventStream,
    artificial_rotate,
    heartbeat,
    packetise,
    query_body,
    raw_event,
    rotate_body,
    walk,
)
from tests.support.kernel_builds import KernelBuild


def transactions(count: int = 3, *, checksum: bool = True) -> EventStream:
    stream = EventStream(checksum=checksum)
    for number in range(count):
        stream.query("BEGIN").query(f"INSERT INTO t VALUES ({number})").add(16, bytes(8))
    return stream


def every_crc_is_right(data: bytes) -> bool:
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 9)
        event = data[at : at + length]
        if zlib.crc32(event[:-4]) != struct.unpack("<I", event[-4:])[0]:
            return False
        at += length
    return True


def masked(data: bytes) -> bytes:
    """Events without their marker bits and checksums."""
    out = bytearray()
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 9)
        event = bytearray(data[at : at + length])
        event[18] &= 0xE3
        out += event[:-4]
        at += length
    return bytes(out)


def test_events_come_out_as_they_went_in_but_for_marks_and_checksums(build: KernelBuild) -> None:
    stream = transactions()
    got = walk(build, packetise(stream.events))
    assert masked(got.produced) == masked(stream.data)


def test_stamped_events_have_right_checksums(build: KernelBuild) -> None:
    assert every_crc_is_right(walk(build, packetise(transactions().events)).produced)


def test_without_stamping_nothing_changes(build: KernelBuild) -> None:
    stream = transactions()
    assert walk(build, packetise(stream.events), stamp=False).produced == stream.data


@pytest.mark.parametrize("packets", [True, False])
def test_every_single_cut_gives_the_same(build: KernelBuild, packets: bool) -> None:
    stream = transactions(2)
    data = packetise(stream.events) if packets else stream.data
    whole = walk(build, data, packets=packets)
    different = [cut for cut in range(1, len(data)) if walk(build, data, [cut], packets=packets) != whole]
    assert different == []


def test_byte_by_byte_gives_the_same(build: KernelBuild) -> None:
    data = packetise([artificial_rotate(), *transactions(2).events, heartbeat(transactions(2).offset)])
    assert walk(build, data, range(len(data))) == walk(build, data)


def test_a_cut_anywhere_leaves_only_whole_events(build: KernelBuild) -> None:
    stream = transactions(2)
    ends = [4]
    for event in stream.events:
        ends.append(ends[-1] + len(event))
    data = packetise(stream.events)
    positions = {walk(build, data[:cut]).position for cut in range(len(data) + 1)}
    assert positions == set(ends)


@pytest.mark.parametrize("checksum", [True, False])
def test_sequence_numbers_wrap_at_256(build: KernelBuild, checksum: bool) -> None:
    stream = transactions(200, checksum=checksum)
    got = walk(build, packetise(stream.events))
    assert (got.status, got.events, got.sequence) == (0, 601, (1 + 601) & 255)


def test_events_without_checksums_are_stamped_in_their_flags_alone(build: KernelBuild) -> None:
    stream = EventStream(checksum=False).query("CREATE TABLE t (a INT)")
    got = walk(build, packetise(stream.events))
    expected = bytearray(stream.events[1])
    expected[18] |= 2 << 2
    assert got.produced[len(stream.events[0]) :] == bytes(expected)


def test_the_format_description_of_a_source_without_checksums_keeps_a_right_checksum_of_its_own(
    build: KernelBuild,
) -> None:
    got = walk(build, packetise(EventStream(checksum=False).events))
    assert every_crc_is_right(got.produced)


def test_the_in_use_flag_is_cleared(build: KernelBuild) -> None:
    stream = EventStream()
    event = bytearray(stream.events[0])
    event[17] |= 1
    got = walk(build, packetise([bytes(event)]), stamp=False)
    assert got.produced == stream.events[0]


def test_a_start_in_mid_file_reads_the_format_description_and_does_not_store_it(build: KernelBuild) -> None:
    stream = transactions(1)
    head = raw_event(15, stream.events[0][19:-4], log_pos=0)
    data = packetise([artificial_rotate(position=5000), head, raw_event(2, query_body("BEGIN"), offset=5000)])
    got = walk(build, data, start=5000)
    assert (got.status, got.produced[4], got.position, got.checksum) == (0, 2, 5000 + len(got.produced), 1)


def test_the_repeated_start_encryption_of_a_mid_file_start_is_not_stored(build: KernelBuild) -> None:
    head = raw_event(15, EventStream(version="10.11.19-MariaDB").events[0][19:-4], log_pos=0)
    cipher = raw_event(164, bytes(17), log_pos=0, flags=0x80)
    query = raw_event(2, query_body("BEGIN"), offset=5000)
    got = walk(build, packetise([head, cipher, query]), start=5000)
    assert (got.status, got.produced[4], got.heartbeats) == (0, 2, 0)


@pytest.mark.parametrize("announced", [True, False])
def test_the_first_artificial_rotate_has_the_checksum_that_was_asked_for(build: KernelBuild, announced: bool) -> None:
    rotate = artificial_rotate(b"mysql-bin.000007", 4, checksum=announced)
    got = walk(build, packetise([rotate, *EventStream().events]), announced=announced)
    assert (got.rotates, got.events) == ([(codes.ROTATE, b"mysql-bin.000007", 4)], 1)


def test_a_wrong_checksum_of_the_artificial_rotate_is_found(build: KernelBuild) -> None:
    rotate = bytearray(artificial_rotate())
    rotate[25] ^= 1
    assert walk(build, packetise([bytes(rotate)])).status == codes.BAD_CRC


def test_a_stored_rotate_and_the_artificial_one_behind_it_are_told_apart(build: KernelBuild) -> None:
    first = transactions(1).add(4, rotate_body(b"mysql-bin.000002"))
    second = transactions(2)
    data = packetise([artificial_rotate(), *first.events, artificial_rotate(b"mysql-bin.000002"), *second.events])
    got = walk(build, data)
    assert (got.rotates, got.position, masked(got.produced)) == (
        [
            (codes.ROTATE, b"mysql-bin.000001", 4),
            (codes.STORED_ROTATE, b"mysql-bin.000002", 4),
            (codes.ROTATE, b"mysql-bin.000002", 4),
        ],
        second.offset,
        masked(first.data + second.data),
    )


def test_the_position_of_a_rotate_has_64_bits(build: KernelBuild) -> None:
    got = walk(build, packetise([artificial_rotate(position=2**32 + 7)]))
    assert got.rotates == [(codes.ROTATE, b"mysql-bin.000001", 2**32 + 7)]


def test_a_checksum_that_changes_with_the_file_is_followed(build: KernelBuild) -> None:
    first, second = transactions(1), transactions(1, checksum=False)
    data = packetise([artificial_rotate(), *first.events, artificial_rotate(b"b.2"), *second.events])
    got = walk(build, data)
    assert (got.status, got.checksum, len(got.produced)) == (0, 0, len(first.data) + len(second.data))


def test_heartbeats_are_counted_and_not_stored(build: KernelBuild) -> None:
    stream = transactions(1)
    got = walk(build, packetise([*stream.events, heartbeat(stream.offset), heartbeat(stream.offset)]))
    assert (got.status, got.heartbeats, got.position) == (0, 2, stream.offset)


def test_a_heartbeat_from_another_place_is_an_error(build: KernelBuild) -> None:
    stream = transactions(1)
    got = walk(build, packetise([*stream.events, heartbeat(stream.offset + 1)]))
    assert (got.status, got.position) == (codes.BAD_POSITION, stream.offset)


@pytest.mark.parametrize(
    ("payload", "status"), [(b"\xff\xd4\x04#HY000gone", "PACKET_ERR"), (b"\xfe\0\0\x02\0", "PACKET_EOF")]
)
def test_err_and_eof_packets_end_the_stream_behind_what_is_good(
    build: KernelBuild, payload: bytes, status: str
) -> None:
    stream = transactions(1)
    data = packetise(stream.events) + len(payload).to_bytes(3, "little") + bytes([5]) + payload
    ingest = build.ingest.Ingest(packets=True, stamp=False)
    buffer = bytearray(data)
    assert ingest.feed(buffer, 0, len(buffer)) == getattr(codes, status)
    assert bytes(buffer[ingest.packet_start : ingest.packet_stop]) == payload
    assert bytes(buffer[: ingest.produced]) == stream.data


def test_a_semi_sync_prefix_is_taken_off(build: KernelBuild) -> None:
    stream = transactions(2)
    got = walk(build, packetise(stream.events, b"\0\xef\0"), range(0, 400, 3), prefix=3, stamp=False)
    assert (got.status, got.produced) == (0, stream.data)


def test_the_boundary_is_the_end_of_the_last_whole_group(build: KernelBuild) -> None:
    stream = transactions(2)
    end = stream.offset
    stream.query("BEGIN").query("INSERT")
    got = walk(build, packetise(stream.events))
    assert (got.boundary, got.group_start, got.in_group, got.position) == (end, end, True, stream.offset)


def test_positions_beyond_4_gib_go_on_in_64_bits(build: KernelBuild) -> None:
    stream = EventStream(with_format=False, offset=2**32 - 100)
    for _ in range(8):
        stream.query("CREATE TABLE t (a INT)")
    head = raw_event(15, EventStream().events[0][19:-4], log_pos=0)
    got = walk(build, packetise([head, *stream.events]), start=2**32 - 100)
    assert (got.status, got.position, got.boundary, got.violations) == (0, stream.offset, stream.offset, [])


def test_index_entries_beyond_4_gib_keep_their_offset(build: KernelBuild) -> None:
    start = 2**33 + 5
    stream = EventStream(with_format=False, offset=start)
    stream.query("BEGIN")
    head = raw_event(15, EventStream().events[0][19:-4], log_pos=0)
    got = walk(build, packetise([head, *stream.events]), start=start)
    assert struct.unpack("<QQII", got.entries) == (start, start, 1_700_000_000, 1)


def test_an_event_with_position_0_inside_a_group_is_fine(build: KernelBuild) -> None:
    stream = EventStream().query("BEGIN").add(19, bytes(20), log_pos=0).add(16, bytes(8))
    assert walk(build, packetise(stream.events)).status == 0


def test_the_index_has_an_entry_every_64_kib_and_names_the_group_around_it(build: KernelBuild) -> None:
    stream = EventStream()
    starts = {}
    for _ in range(4):
        begin = stream.offset
        for kind, body in [(2, query_body("BEGIN")), *[(2, query_body("x" * 20000))] * 6, (16, bytes(8))]:
            starts[stream.offset] = begin
            stream.add(kind, body)
    got = walk(build, packetise(stream.events))
    entries = list(struct.iter_unpack("<QQII", got.entries))
    assert entries[0][:2] == (4, 4)
    assert [(offset, group) for offset, group, *_ in entries[1:] if starts[offset] != group] == []
    assert [flag for offset, group, _, flag in entries if flag != (offset == group)] == []
    assert max(b[0] - a[0] for a, b in itertools.pairwise(entries)) < 65536 + 20100
