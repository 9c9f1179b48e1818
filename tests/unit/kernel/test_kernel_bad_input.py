"""Bad input: a named status, the offset of the bad event, the good events before it, and nothing else."""

import random
import struct
import zlib
from array import array
from typing import Any

import pytest

from protocol.kernel import codes
from tests.support.binlog_builder import MARIADB_LENGTHS
from tests.support.event_stream import (
    EventStream,
    artificial_rotate,
    format_body,
    packetise,
    query_body,
    raw_event,
    walk,
)
from tests.support.kernel_builds import KernelBuild, builds


def good() -> EventStream:
    return EventStream().query("BEGIN").query("INSERT").add(16, bytes(8))


def check(
    build: KernelBuild, bad: bytes, status: str, *, packets: bool = True, stream: EventStream | None = None
) -> Any:
    """`bad` behind a good stream, in one read and in two, gets the status at its start; the rest is as it was."""
    before = good() if stream is None else stream
    behind = raw_event(2, query_body("BEGIN"))
    events = [*before.events, bad, behind]
    data = packetise(events) if packets else b"".join(events)
    got = walk(build, data, packets=packets, stamp=False)
    assert (got.status, got.position, got.produced) == (getattr(codes, status), before.offset, before.data)
    assert walk(build, data, range(0, len(data), 13), packets=packets, stamp=False).status == got.status
    assert got.error_text != ""
    return got


@pytest.mark.parametrize("packets", [True, False])
@pytest.mark.parametrize("at", [0, 5, 17, 18, 25, -1])
def test_a_flipped_bit_is_a_wrong_checksum(build: KernelBuild, at: int, packets: bool) -> None:
    event = bytearray(raw_event(2, query_body("x"), offset=good().offset))
    event[at] ^= 0x40
    check(build, bytes(event), "BAD_CRC", packets=packets)


@pytest.mark.parametrize("packets", [True, False])
@pytest.mark.parametrize("length", [0, 1, 18, 19, 22, 2**30 + 1, 2**31, 2**32 - 1])
def test_a_length_that_cannot_be_is_named(build: KernelBuild, length: int, packets: bool) -> None:
    check(build, raw_event(2, query_body("x"), length=length), "BAD_LENGTH", packets=packets)


@pytest.mark.parametrize("more", [-10, -1, 1, 100])
def test_a_length_other_than_the_packets_is_named(build: KernelBuild, more: int) -> None:
    body = query_body("some text here")
    check(build, raw_event(2, body, length=19 + len(body) + 4 + more), "BAD_LENGTH")


@pytest.mark.parametrize("size", [1, 2, 18, 19])
def test_a_packet_shorter_than_an_event_header_is_named(build: KernelBuild, size: int) -> None:
    stream = good()
    data = packetise(stream.events) + size.to_bytes(3, "little") + bytes([len(stream.events) + 1]) + bytes(size)
    got = walk(build, data + b"\0" * 30, stamp=False)
    assert (got.status, got.position, got.produced) == (codes.BAD_LENGTH, stream.offset, stream.data)


def test_an_empty_packet_is_named_at_once(build: KernelBuild) -> None:
    stream = good()
    got = walk(build, packetise(stream.events) + b"\0\0\0" + bytes([len(stream.events) + 1]), stamp=False)
    assert (got.status, got.produced) == (codes.BAD_PACKET, stream.data)


@pytest.mark.parametrize("first", [0x01, 0x7F, 0xFB, 0xFE])
def test_a_packet_with_another_status_byte_is_named(build: KernelBuild, first: int) -> None:
    stream = good()
    data = packetise(stream.events) + (40).to_bytes(3, "little") + bytes([len(stream.events) + 1, first]) + bytes(39)
    got = walk(build, data, stamp=False)
    assert (got.status, got.produced) == (codes.BAD_PACKET, stream.data)


def test_a_large_packet_that_is_no_event_is_named_before_it_is_all_there(build: KernelBuild) -> None:
    stream = good()
    data = packetise(stream.events) + (9_000_000).to_bytes(3, "little") + bytes([len(stream.events) + 1]) + b"HTTP/1.1"
    assert walk(build, data).status == codes.BAD_PACKET


@pytest.mark.parametrize("wrong", [-1, 1, 128])
def test_a_sequence_number_out_of_order_is_named(build: KernelBuild, wrong: int) -> None:
    stream = good()
    data = packetise(stream.events) + packetise([raw_event(3)], sequence=len(stream.events) + 1 + wrong)
    got = walk(build, data, stamp=False)
    assert (got.status, got.position, got.produced) == (codes.BAD_SEQUENCE, stream.offset, stream.data)


@pytest.mark.parametrize("packets", [True, False])
@pytest.mark.parametrize("jump", [-50, -1, 1, 1000, 2**31])
def test_a_position_chain_that_jumps_is_named(build: KernelBuild, jump: int, packets: bool) -> None:
    body = query_body("x")
    end = good().offset + 19 + len(body) + 4
    check(build, raw_event(2, body, log_pos=(end + jump) & 0xFFFFFFFF), "BAD_POSITION", packets=packets)


@pytest.mark.parametrize("packets", [True, False])
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (2, b""),
        (2, bytes(5)),
        (2, bytes(12)),
        (2, struct.pack("<IIBHH", 7, 0, 0, 0, 65535) + b"\0x"),
        (2, struct.pack("<IIBHH", 7, 0, 255, 0, 0) + b"\0x"),
        (2, struct.pack("<IIBHH", 7, 0, 0, 0, 0)),
        (8, bytes(21)),
        (10, b""),
        (11, bytes(3)),
        (17, bytes(3)),
        (18, bytes(16)),
        (20, bytes(7)),
        (25, b""),
        (32, bytes(7)),
        (39, b""),
        (162, bytes(12)),
        (166, b""),
    ],
)
def test_inner_lengths_that_lie_are_named(build: KernelBuild, kind: int, body: bytes, packets: bool) -> None:
    check(build, raw_event(kind, body, offset=good().offset), "BAD_EVENT", packets=packets)


@pytest.mark.parametrize("body", [b"", bytes(7)])
@pytest.mark.parametrize("flags", [0, 0x20])
def test_a_rotate_too_short_for_its_position_is_named_and_not_stored(
    build: KernelBuild, body: bytes, flags: int
) -> None:
    check(build, raw_event(4, body, offset=good().offset, flags=flags), "BAD_LENGTH")


def test_a_rotate_to_a_position_beyond_63_bits_is_named(build: KernelBuild) -> None:
    check(build, raw_event(4, b"\xff" * 8 + b"name", offset=good().offset), "BAD_EVENT")


def test_a_second_format_description_in_a_packet_stream_is_named(build: KernelBuild) -> None:
    stream = good()
    check(build, raw_event(15, format_body(), offset=stream.offset), "BAD_EVENT")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda body: b"\x03" + body[1:], "BAD_FORMAT"),
        (lambda body: body[:56] + b"\x1b" + body[57:], "BAD_FORMAT"),
        (lambda body: body[:-1] + b"\x02", "BAD_FORMAT"),
        (lambda body: body[:40], "BAD_FORMAT"),
        (lambda body: b"", "BAD_FORMAT"),
    ],
    ids=["version 3", "header of 27 bytes", "algorithm 2", "cut", "empty"],
)
def test_a_format_description_that_is_not_supported_is_named(build: KernelBuild, change: Any, status: str) -> None:
    got = walk(build, packetise([raw_event(15, change(format_body()), offset=4)]))
    assert (got.status, got.position, got.produced) == (getattr(codes, status), 4, b"")


def test_a_format_description_with_a_wrong_checksum_is_named(build: KernelBuild) -> None:
    event = bytearray(EventStream().events[0])
    event[30] ^= 1
    got = walk(build, packetise([bytes(event)]))
    assert (got.status, got.position, got.produced) == (codes.BAD_CRC, 4, b"")


@pytest.mark.parametrize("packets", [True, False])
def test_that_the_other_events_have_no_checksum_is_not_believed_of_a_changed_format_description(
    build: KernelBuild, packets: bool
) -> None:
    event = bytearray(EventStream().events[0])
    event[-5] = 0
    got = walk(build, packetise([bytes(event)]) if packets else bytes(event), packets=packets)
    assert (got.status, got.position, got.produced) == (codes.BAD_CRC, 4, b"")


@pytest.mark.parametrize("packets", [True, False])
def test_a_format_description_without_a_checksum_is_archived_with_one(build: KernelBuild, packets: bool) -> None:
    event = EventStream().events[0][:-5] + bytes(5)
    got = walk(build, packetise([event]) if packets else event, packets=packets)
    assert got.produced[:-4] == event[:17] + got.produced[17:19] + event[19:-4]
    assert int.from_bytes(got.produced[-4:], "little") == zlib.crc32(got.produced[:-4])


@pytest.mark.parametrize("version", ["5.1.99", "5.7.99", "10.5.99", "none"])
def test_a_mariadb_is_known_by_its_types_whatever_version_it_was_given(build: KernelBuild, version: str) -> None:
    stream = EventStream(version=version, with_format=False)
    stream.add_raw(raw_event(15, format_body(version, MARIADB_LENGTHS), offset=4))
    stream.query("BEGIN").query("INSERT").add(16, bytes(8))
    got = walk(build, packetise(stream.events), stamp=False)
    assert (got.status, got.produced, got.violations) == (0, stream.data, [])
    bad = bytearray(stream.events[-1])
    bad[20] ^= 1
    assert walk(build, packetise([*stream.events[:-1], bytes(bad)])).status == codes.BAD_CRC


def test_positions_inside_of_a_transaction_are_checked_whatever_version_a_mariadb_was_given(build: KernelBuild) -> None:
    stream = EventStream(version="5.1.99", with_format=False)
    stream.add_raw(raw_event(15, format_body("5.1.99", MARIADB_LENGTHS), offset=4)).query("BEGIN")
    bad = raw_event(2, query_body("INSERT"), offset=stream.offset, log_pos=stream.offset + 7)
    check(build, bad, "BAD_POSITION", stream=stream)


@pytest.mark.parametrize("packets", [True, False])
@pytest.mark.parametrize("kind", [1, 2, 3, 4, 16, 27, 35, 99, 162])
def test_an_event_before_any_format_description_is_named(build: KernelBuild, kind: int, packets: bool) -> None:
    event = raw_event(kind, bytes(30), offset=4)
    got = walk(build, packetise([event]) if packets else event, packets=packets)
    assert (got.status, got.position, got.produced) == (codes.NO_FORMAT, 4, b"")


def test_encryption_at_rest_is_named(build: KernelBuild) -> None:
    stream = EventStream(version="10.2.28-MariaDB")
    check(build, raw_event(164, bytes(17), offset=stream.offset), "ENCRYPTED", packets=False, stream=stream)


def test_an_unknown_type_is_passed_on_counted_and_named_once(build: KernelBuild) -> None:
    stream = good()
    places = [stream.add(99, b"x").offset - 24, stream.add(99, b"y").offset - 24, stream.add(120, b"z").offset - 24]
    stream.add(100, b"ignorable", flags=0x80)
    got = walk(build, packetise(stream.events), stamp=False)
    assert (got.status, got.unknown, got.unknown_types, got.produced) == (
        0,
        3,
        [(99, places[0]), (120, places[2])],
        stream.data,
    )


def test_a_truncated_stream_waits_for_more(build: KernelBuild) -> None:
    stream = good()
    data = packetise(stream.events)
    before_last = stream.offset - len(stream.events[-1])
    got = walk(build, data[:-1], stamp=False)
    assert (got.status, got.position, got.left) == (codes.NEED_MORE, before_last, len(stream.events[-1]) + 4)


@pytest.mark.parametrize("bounds", [(-1, 3), (3, 2), (0, 11)])
def test_a_range_outside_the_buffer_is_refused(build: KernelBuild, bounds: tuple[int, int]) -> None:
    with pytest.raises(IndexError):
        build.ingest.Ingest().feed(bytearray(10), *bounds)


@pytest.mark.parametrize("data", [b"", bytes(18), raw_event(2, bytes(80)), EventStream().events[0][:-1]])
def test_what_is_no_format_description_is_not_read_as_one(build: KernelBuild, data: bytes) -> None:
    assert not build.ingest.Ingest().read_format(bytearray(data), 0, len(data))


# --- the table ------------------------------------------------------------------------------------------------------


def rows_of(
    build: KernelBuild, data: bytes, *, tolerant: bool = True, rows: int = 100
) -> tuple[list[tuple[int, ...]], Any]:
    ingest = build.ingest.Ingest()
    table = array("q", bytes(8 * codes.TABLE_ROW * rows))
    ingest.set_table(table, tolerant)
    buffer = bytearray(data)
    result = []
    used = 0
    while True:
        status = ingest.feed(buffer, used, len(buffer))
        used = ingest.consumed
        width = codes.TABLE_ROW
        result += [tuple(table[i * width : (i + 1) * width]) for i in range(ingest.table_rows)]
        if status not in (codes.TABLE_FULL, codes.STORED_ROTATE):
            return result, ingest


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_every_event_has_a_row_however_small_the_table_is(build: KernelBuild, rows: int) -> None:
    stream = good()
    got, _ = rows_of(build, stream.data, rows=rows)
    offset, wanted = 4, []
    infos = [1 | 16, 3 | 16 | 128, 4 | 16 | 128, 5 | 16]
    for event, info in zip(stream.events, infos, strict=True):
        wanted.append((offset, len(event), event[4], 0, 1_700_000_000, 1, offset + len(event), info))
        offset += len(event)
    assert got == wanted


def test_tolerant_reading_notes_a_wrong_checksum_and_goes_on(build: KernelBuild) -> None:
    stream = good()
    data = bytearray(stream.data)
    data[-1] ^= 1
    data += raw_event(2, query_body("x"), offset=stream.offset)
    got, _ = rows_of(build, bytes(data))
    assert [row[7] & 32 for row in got] == [0, 0, 0, 32, 0]


def test_tolerant_reading_notes_a_wrong_checksum_of_a_big_event(build: KernelBuild) -> None:
    stream = EventStream()
    big = bytearray(raw_event(2, query_body("x" * 300000), offset=stream.offset))
    big[-1] ^= 1
    stream.add_raw(bytes(big)).query("y")
    got, _ = rows_of(build, stream.data)
    assert [row[7] & 32 for row in got] == [0, 32, 0]


def test_tolerant_reading_shows_a_statement_whose_lengths_lie_as_no_boundary(build: KernelBuild) -> None:
    stream = good()
    stream.add(2, b"").query("x")
    got, _ = rows_of(build, stream.data)
    assert [row[7] & 7 for row in got] == [1, 3, 4, 5, 1, 2]


def test_tolerant_reading_counts_a_position_that_jumps(build: KernelBuild) -> None:
    stream = good().query("x", log_pos=77).query("y")
    got, ingest = rows_of(build, stream.data)
    assert (len(got), ingest.position_jumps) == (6, 1)


def test_a_violation_is_marked_in_its_row(build: KernelBuild) -> None:
    stream = EventStream().add(16, bytes(8)).add(16, bytes(8)).query("BEGIN")
    got, _ = rows_of(build, stream.data)
    assert [row[7] & 64 for row in got] == [0, 64, 0, 0]


# --- files of 4.0 and 4.1 -------------------------------------------------------------------------------------------


def old_file() -> EventStream:
    stream = EventStream(checksum=False, with_format=False)
    stream.add(1, struct.pack("<H50sI", 3, b"4.1.24-log", 1_700_000_000), log_pos=4)
    stream.add(2, query_body("CREATE TABLE t (a INT)", post=11), log_pos=79)
    stream.add(2, query_body("BEGIN", post=11), log_pos=79)
    return stream.add(2, query_body("COMMIT", post=11), log_pos=79)


def test_a_file_of_binlog_version_3_is_read_when_asked_for(build: KernelBuild) -> None:
    stream = old_file()
    ingest = build.ingest.Ingest(stamp=False)
    ingest.old_format = True
    got = walk(build, stream.data, range(0, 400, 9), packets=False, ingest=ingest)
    assert (got.status, got.produced, got.position, got.events, got.violations, ingest.binlog_version) == (
        0,
        stream.data,
        stream.offset,
        4,
        [],
        3,
    )


def test_tolerant_reading_reads_binlog_version_3(build: KernelBuild) -> None:
    got, ingest = rows_of(build, old_file().data)
    assert ([row[7] & 7 for row in got], ingest.position_jumps) == ([2, 2, 3, 5], 0)


def test_a_file_of_binlog_version_3_is_not_read_otherwise(build: KernelBuild) -> None:
    assert walk(build, old_file().data, packets=False).status == codes.NO_FORMAT


@pytest.mark.parametrize(("version", "status"), [(1, "BAD_FORMAT"), (4, "BAD_FORMAT")])
def test_a_start_event_of_another_version_is_named(build: KernelBuild, version: int, status: str) -> None:
    ingest = build.ingest.Ingest()
    ingest.old_format = True
    data = raw_event(1, struct.pack("<H50sI", version, b"3.23.58", 0), offset=4, checksum=False)
    assert walk(build, data, packets=False, ingest=ingest).status == getattr(codes, status)


# --- garbage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_garbage_ends_in_a_named_status_the_same_in_both_builds(seed: int) -> None:
    noise = random.Random(seed)
    data = bytearray(packetise([artificial_rotate(), *good().events, *good().query("x" * 200).events[1:]]))
    for _ in range(noise.randint(1, 6)):
        data[noise.randrange(len(data))] = noise.randrange(256)
    cuts = sorted(noise.randrange(1, len(data)) for _ in range(5))
    results = [walk(build, bytes(data), cuts) for build in builds()] + [walk(builds()[0], bytes(data))]
    assert results.count(results[0]) == len(results)
