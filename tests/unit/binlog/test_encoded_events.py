"""Events made for one replica: byte layouts, patches, and where a replica stands after the last bytes it got."""

import struct
import zlib

import pytest

from protocol.binlog.encoded_events import (
    gtid_list_event,
    heartbeat_event,
    heartbeat_v2_event,
    patch_format_description,
    replica_position,
    rotate_event,
    rotate_size,
)
from protocol.errors import Malformed, Truncated
from protocol.gtid.mariadb import DomainGtid, GtidList, decode_gtid_list
from protocol.position import Position
from tests.support.binlog_builder import HEADER, BinlogBuilder

FILE = "mysql-bin.000007"


def crc_is_right(event: bytes) -> bool:
    return zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "little")


def head(**arguments: object) -> bytes:
    built = BinlogBuilder(**arguments)  # type: ignore[arg-type]
    return bytes(built.data[4 : built.events[0].end])


def test_a_rotate_without_checksum_ends_in_the_file_name() -> None:
    event = rotate_event(Position(FILE, 1015), 5, with_checksum=False)
    assert HEADER.unpack_from(event) == (0, 4, 5, len(event), 0, 0x20)
    assert event[19:] == struct.pack("<Q", 1015) + FILE.encode()


def test_a_rotate_with_checksum_ends_in_it() -> None:
    event = rotate_event(Position(FILE, 4), 5, with_checksum=True)
    assert crc_is_right(event)
    assert event[27:-4] == FILE.encode()


@pytest.mark.parametrize("with_checksum", [True, False])
def test_a_heartbeat_is_version_1(with_checksum: bool) -> None:
    event = heartbeat_event(Position(FILE, 2**32 - 1), 5, with_checksum=with_checksum)
    assert HEADER.unpack_from(event) == (0, 27, 5, len(event), 2**32 - 1, 0)
    assert event[19 : 19 + len(FILE)] == FILE.encode()
    assert crc_is_right(event) is with_checksum


@pytest.mark.parametrize("with_checksum", [True, False])
def test_a_heartbeat_of_version_2_has_a_position_of_64_bits(with_checksum: bool) -> None:
    event = heartbeat_v2_event(Position(FILE, 2**40), 5, with_checksum=with_checksum)
    (found,) = [event[19:-4] if with_checksum else event[19:]]
    assert found == b"\1\x10" + FILE.encode() + b"\2\x09\xfe" + (2**40).to_bytes(8, "little") + b"\0"
    assert not with_checksum or crc_is_right(event)


def test_an_artificial_gtid_list_has_the_place_that_it_is_true_for() -> None:
    gtids = GtidList((DomainGtid(0, 1, 7),))
    event = gtid_list_event(gtids, 2**32 + 700, 5, with_checksum=True)
    assert crc_is_right(event) and decode_gtid_list(event[19:-4]) == gtids
    assert (int.from_bytes(event[13:17], "little"), int.from_bytes(event[17:19], "little")) == (700, 0x20)


def test_a_heartbeat_beyond_4_gib_is_not_made() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        heartbeat_event(Position(FILE, 2**32), 5, with_checksum=True)


def test_a_format_description_for_a_start_in_the_file_counts_for_nothing() -> None:
    patched = patch_format_description(head(), mid_file=True, strip_markers=False)
    assert patched[13:17] == bytes(4)
    assert patched[71:75] == bytes(4)
    assert crc_is_right(patched)


def test_the_in_use_flag_is_cleared_and_the_rest_kept() -> None:
    original = head()
    marked = bytearray(original)
    marked[17] |= 1
    assert patch_format_description(bytes(marked), mid_file=False, strip_markers=False) == original


def test_markers_are_stripped_where_asked() -> None:
    original = head()
    marked = bytearray(original)
    marked[18] |= 0x04
    struct.pack_into("<I", marked, len(marked) - 4, zlib.crc32(marked[:-4]))
    assert patch_format_description(bytes(marked), mid_file=False, strip_markers=False) == bytes(marked)
    assert patch_format_description(bytes(marked), mid_file=False, strip_markers=True) == original


def test_a_format_description_of_before_checksums_gets_none() -> None:
    original = head(version="5.5.62-log")
    patched = patch_format_description(original, mid_file=True, strip_markers=False)
    assert patched[75:] == original[75:]


def test_a_format_description_keeps_its_checksum_with_algorithm_none() -> None:
    assert crc_is_right(patch_format_description(head(checksum=False), mid_file=True, strip_markers=False))


@pytest.mark.parametrize("size", [0, 18, 75])
def test_a_cut_format_description_is_refused(size: int) -> None:
    with pytest.raises(Truncated):
        patch_format_description(head()[:size], mid_file=True, strip_markers=False)


def test_another_event_is_no_format_description() -> None:
    with pytest.raises(Malformed):
        patch_format_description(
            rotate_event(Position("x" * 100 + ".000001", 4), 1, with_checksum=True), mid_file=True, strip_markers=False
        )


@pytest.mark.parametrize("checksum", [True, False])
def test_a_replica_stands_before_a_stop_event(checksum: bool) -> None:
    built = BinlogBuilder(checksum=checksum).transaction(20)
    before = built.size
    built.stop()
    tail = bytes(built.data[-200:])
    assert replica_position(tail, Position(FILE, built.size), with_checksum=checksum) == Position(FILE, before)


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("following", ["mysql-bin.000008", "mysql-bin.1000000"])
def test_a_replica_stands_in_the_file_that_a_rotate_names(checksum: bool, following: str) -> None:
    built = BinlogBuilder(checksum=checksum).transaction(20).rotate(following)
    tail = bytes(built.data[-200:])
    assert replica_position(tail, Position(FILE, built.size), with_checksum=checksum) == Position(following, 4)


@pytest.mark.parametrize("checksum", [True, False])
def test_the_rotate_that_ends_a_file_is_known_and_no_other_event(checksum: bool) -> None:
    built = BinlogBuilder(checksum=checksum).transaction(20)
    before = Position(FILE, built.size)
    assert rotate_size(bytes(built.data[-200:]), before, with_checksum=checksum) == 0
    built.rotate("mysql-bin.000008")
    end = Position(FILE, built.size)
    size = rotate_size(bytes(built.data[-200:]), end, with_checksum=checksum)
    assert size == end.offset - before.offset
    assert rotate_size(bytes(built.data[-size + 1 :]), end, with_checksum=checksum) == 0
    assert rotate_size(bytes(built.data[-200:]), Position(FILE, end.offset + 1), with_checksum=checksum) == 0


@pytest.mark.parametrize("checksum", [True, False])
def test_a_replica_stands_at_the_end_after_anything_else(checksum: bool) -> None:
    built = BinlogBuilder(checksum=checksum).transaction(20)
    end = Position(FILE, built.size)
    assert replica_position(bytes(built.data[-200:]), end, with_checksum=checksum) == end
    assert replica_position(b"", end, with_checksum=checksum) == end


def test_bytes_that_only_look_like_a_stop_event_are_none() -> None:
    built = BinlogBuilder().transaction(20).stop()
    tail = bytearray(built.data[-200:])
    tail[-1] ^= 1
    end = Position(FILE, built.size)
    assert replica_position(bytes(tail), end, with_checksum=True) == end


def test_a_rotate_to_what_is_no_binlog_moves_nobody() -> None:
    built = BinlogBuilder().transaction(20).rotate("mysql-bin.index0")
    end = Position(FILE, built.size)
    assert replica_position(bytes(built.data[-200:]), end, with_checksum=True) == end
