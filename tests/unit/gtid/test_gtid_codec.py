"""GTID sets in bytes: what servers wrote, and bytes that lie."""

import struct
import time
import tracemalloc
from uuid import UUID

import pytest

from protocol.errors import Malformed, Truncated
from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.gtid_set import GtidSet

U = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
# Bodies of Previous_gtids: of MySQL 5.6.24 after SET GLOBAL gtid_purged and FLUSH LOGS, of 9.7.4 in a new binlog and
# after transactions with tags.
RECORDED = {
    "5.6.24 and 9.7.4, empty": ("0000000000000000", ""),
    "5.6.24, to the greatest number": (
        "02000000000000000e11fa4771ca11e19e33c80aa942956102000000000000000300000000000000040000000000000005000000000000006500"
        "0000000000003e11fa4771ca11e19e33c80aa94295620200000000000000010000000000000004000000000000000700000000000000ffffffff"
        "ffffff7f",
        "0e11fa47-71ca-11e1-9e33-c80aa9429561:3:5-100,\n3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:7-9223372036854775806",
    ),
    "9.7.4, tagged": (
        "01040000000000010e11fa4771ca11e19e33c80aa9429562000100000000000000feffffffffffff7fffffffffffffff7f3e11fa4771ca11e19e"
        "33c80aa9429562166f746865725f7461675f7802000000000000000700000000000000080000000000000000282e8cd100000001282e8cd10000"
        "004f371cf1e58f11f1885102fc00000001000100000000000000010000000000000003000000000000004f371cf1e58f11f1885102fc00000001"
        "0a6d79746167010000000000000001000000000000000300000000000000",
        "0e11fa47-71ca-11e1-9e33-c80aa9429562:9223372036854775806,\n"
        "3e11fa47-71ca-11e1-9e33-c80aa9429562:other_tag_x:7:900000000000,\n"
        "4f371cf1-e58f-11f1-8851-02fc00000001:1-2:mytag:1-2",
    ),
}


@pytest.mark.parametrize(("recorded", "text"), RECORDED.values(), ids=list(RECORDED))
def test_a_set_that_a_server_wrote_is_read_and_written_byte_for_byte(recorded: str, text: str) -> None:
    decoded = decode_gtid_set(bytes.fromhex(recorded))
    assert str(decoded) == text
    assert encode_gtid_set(decoded).hex() == recorded


def test_an_empty_set_in_the_tagged_format_is_read() -> None:
    # A 9.7.4 that saw a tag once writes this.
    assert decode_gtid_set(bytes.fromhex("0100000000000001")) == GtidSet()
    assert encode_gtid_set(GtidSet(), tagged=True).hex() == "0100000000000001"


@pytest.mark.parametrize(("recorded", "text"), RECORDED.values(), ids=list(RECORDED))
def test_a_set_that_is_cut_anywhere_is_truncated(recorded: str, text: str) -> None:
    data = bytes.fromhex(recorded)
    for size in range(len(data)):
        with pytest.raises(Truncated):
            decode_gtid_set(data[:size])


@pytest.mark.parametrize(("recorded", "text"), RECORDED.values(), ids=list(RECORDED))
def test_bytes_behind_a_set_are_malformed(recorded: str, text: str) -> None:
    with pytest.raises(Malformed, match="1 bytes behind"):
        decode_gtid_set(bytes.fromhex(recorded) + b"\0")


def one(start: int, stop: int, *more: int) -> bytes:
    numbers = (start, stop, *more)
    return struct.pack("<Q16sQ", 1, UUID(U).bytes, len(numbers) // 2) + struct.pack(f"<{len(numbers)}Q", *numbers)


@pytest.mark.parametrize(
    "data",
    [
        one(0, 5), one(5, 5), one(7, 5), one(1, 2**63), one(1, 2**64 - 1), one(2**63, 2**63 + 1), one(1, 5, 5, 7),
        one(1, 5, 4, 7), one(5, 7, 1, 2), one(1, 5, 1, 5),
    ],
)  # fmt: skip
def test_intervals_that_no_server_writes_are_malformed(data: bytes) -> None:
    with pytest.raises(Malformed, match=f"GTID interval [01] of {U}"):
        decode_gtid_set(data)


def test_a_source_without_intervals_adds_nothing() -> None:
    assert decode_gtid_set(struct.pack("<Q16sQ", 1, UUID(U).bytes, 0)) == GtidSet()


def test_a_source_that_comes_twice_is_malformed() -> None:
    data = struct.pack("<Q", 2) + one(1, 2)[8:] + one(5, 6)[8:]
    with pytest.raises(Malformed, match=f"{U} twice"):
        decode_gtid_set(data)


@pytest.mark.parametrize("first_byte", [2, 3, 0x80, 0xFF])
def test_another_format_is_malformed(first_byte: int) -> None:
    with pytest.raises(Malformed, match=f"format {first_byte}"):
        decode_gtid_set(bytes(7) + bytes((first_byte,)) + bytes(100))


def tagged(length_byte: int, tag: bytes) -> bytes:
    head = b"\x01\x01\0\0\0\0\0\x01" + UUID(U).bytes
    return head + bytes((length_byte,)) + tag + struct.pack("<QQQ", 1, 1, 2)


@pytest.mark.parametrize(
    "data",
    [tagged(3, b"t"), tagged(0xFF, bytes(127)), tagged(66, b"a" * 33), tagged(2, b"9"), tagged(4, b"A\xff"),
     tagged(2, b"T"), tagged(4, b"\0a")],
)  # fmt: skip
def test_a_tag_that_is_none_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_gtid_set(data)


def test_a_tag_of_32_characters_is_read() -> None:
    assert str(decode_gtid_set(tagged(64, b"a" * 32))) == f"{U}:{'a' * 32}:1"


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<Q", 2**56 - 1),
        struct.pack("<Q", 2**56 - 1) + bytes(4096),
        b"\x01" + b"\xff" * 6 + b"\x01" + bytes(4096),
        struct.pack("<Q16sQ", 1, bytes(16), 2**64 - 1) + bytes(4096),
        struct.pack("<Q16sQ", 1, bytes(16), 2**60) + bytes(4096),
        struct.pack("<Q16sQ", 1, bytes(16), 257) + bytes(4096),
    ],
)
def test_counts_of_billions_cost_neither_time_nor_memory(data: bytes) -> None:
    tracemalloc.start()
    try:
        began = time.perf_counter()
        with pytest.raises(Malformed):
            decode_gtid_set(data)
        assert time.perf_counter() - began < 0.5
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_set_without_tags_is_the_same_in_both_formats() -> None:
    gtid_set = GtidSet.from_text(f"{U}:1-3:7")
    assert decode_gtid_set(encode_gtid_set(gtid_set, tagged=True)) == gtid_set
    assert len(encode_gtid_set(gtid_set, tagged=True)) == len(encode_gtid_set(gtid_set)) + 1
