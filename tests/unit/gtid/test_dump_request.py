"""Dump requests by GTID: as replicas send them, and such as lie. Both servers answered the lies with the errors named here."""

import struct

import pytest

from protocol.commands import DumpFlag
from protocol.errors import Malformed, Truncated
from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.dump_request import decode_binlog_dump_gtid, encode_binlog_dump_gtid, known_to
from protocol.gtid.gtid_set import GtidSet

HELD = GtidSet.from_text("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9:t:4")
DATA = encode_gtid_set(HELD)


def request(name: bytes, data: bytes, *, name_size: int | None = None, data_size: int | None = None) -> bytes:
    head = struct.pack("<HII", 1, 99, len(name) if name_size is None else name_size)
    return head + name + struct.pack("<QI", 4, len(data) if data_size is None else data_size) + data


def test_a_request_is_read_as_it_was_written() -> None:
    decoded = decode_binlog_dump_gtid(encode_binlog_dump_gtid(DATA, flags=2, server_id=2**32 - 1))
    assert (decoded.file, decoded.offset, decoded.flags, decoded.server_id) == ("", 4, DumpFlag(2), 2**32 - 1)
    assert decode_gtid_set(decoded.held) == HELD
    assert not decoded.ends_at_end


def test_a_request_with_a_file_name_is_read() -> None:
    decoded = decode_binlog_dump_gtid(request(b"mysql-bin.000007", DATA))
    assert (decoded.file, decoded.server_id, decoded.held) == ("mysql-bin.000007", 99, DATA)
    assert decoded.ends_at_end
    assert decode_binlog_dump_gtid(request(b"mysql-bin.000007\0", b"")).file == "mysql-bin.000007"


def test_a_request_that_is_cut_anywhere_is_truncated() -> None:
    whole = request(b"mysql-bin.000007", DATA)
    for size in range(len(whole)):
        with pytest.raises(Truncated):
            decode_binlog_dump_gtid(whole[:size])


@pytest.mark.parametrize(
    "body",
    [
        request(b"", DATA, data_size=len(DATA) + 1),
        request(b"", DATA, data_size=2**32 - 1),
        request(b"", DATA, name_size=100_000),
        request(b"", DATA, name_size=2**32 - 1),
        request(b"x" * 513, DATA),
        request(b"\xff.000001", DATA),
    ],
)
def test_sizes_that_lie_and_names_that_cannot_be_are_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        decode_binlog_dump_gtid(body)


def test_a_set_that_ends_before_its_size_is_found_when_it_is_decoded() -> None:
    for data in (b"", DATA[:-8], DATA + b"\0"):
        with pytest.raises(Malformed):
            decode_gtid_set(decode_binlog_dump_gtid(request(b"", data)).held)


def test_bytes_behind_the_set_are_not_looked_at() -> None:
    assert decode_binlog_dump_gtid(request(b"", DATA) + b"more").held == DATA


def test_an_old_source_is_told_of_transactions_without_tags_only() -> None:
    assert known_to((8, 3, 0), HELD) == HELD
    assert str(known_to((8, 2, 0), HELD)) == "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9"
