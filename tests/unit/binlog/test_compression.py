"""What MariaDB packs: all of it comes out, or an error; lengths that lie hide nothing."""

import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from protocol.binlog.compression import LONGEST_BYTES, TooLarge, unpack_beginning, unpack_column, unpack_compressed
from protocol.errors import Malformed, Truncated

Unpack = Callable[[bytes, int], bytes]
TEXT = b"a text that is packed " * 50


def packed(length: int, stream: bytes) -> bytes:
    """As events and columns have it: mark, length of four bytes, zlib stream."""
    return b"\x84" + length.to_bytes(4, "big") + stream


@pytest.mark.parametrize("unpack", [unpack_compressed, unpack_column])
def test_a_packed_text_comes_out_whole(unpack: Unpack) -> None:
    assert unpack(packed(len(TEXT), zlib.compress(TEXT)), LONGEST_BYTES) == TEXT
    assert unpack(packed(0, zlib.compress(b"")), LONGEST_BYTES) == b""


@pytest.mark.parametrize("unpack", [unpack_compressed, unpack_column])
def test_more_than_was_announced_is_malformed(unpack: Unpack) -> None:
    with pytest.raises(Malformed, match="more than"):
        unpack(packed(len(TEXT) - 22, zlib.compress(TEXT)), LONGEST_BYTES)
    with pytest.raises(Malformed, match="more than"):
        unpack(packed(0, zlib.compress(TEXT)), LONGEST_BYTES)


@pytest.mark.parametrize("unpack", [unpack_compressed, unpack_column])
def test_less_than_was_announced_or_a_stream_without_its_end_is_truncated(unpack: Unpack) -> None:
    with pytest.raises(Truncated):
        unpack(packed(len(TEXT) + 1, zlib.compress(TEXT)), LONGEST_BYTES)
    with pytest.raises(Truncated):
        unpack(packed(len(TEXT), zlib.compress(TEXT)[:-2]), LONGEST_BYTES)


@pytest.mark.parametrize("unpack", [unpack_compressed, unpack_column])
def test_a_wrong_sum_behind_the_stream_is_malformed(unpack: Unpack) -> None:
    stream = bytearray(zlib.compress(TEXT))
    stream[-1] ^= 1
    with pytest.raises(Malformed):
        unpack(packed(len(TEXT), bytes(stream)), LONGEST_BYTES)


@pytest.mark.parametrize("unpack", [unpack_compressed, unpack_column])
def test_nothing_is_longer_than_the_longest_event(unpack: Unpack) -> None:
    with pytest.raises(Malformed, match=str(LONGEST_BYTES)):
        unpack(packed(LONGEST_BYTES + 1, zlib.compress(TEXT)), LONGEST_BYTES)


def test_whoever_wants_only_the_beginning_gets_it() -> None:
    assert unpack_beginning(packed(len(TEXT), zlib.compress(TEXT)), 10) == TEXT[:10]


@pytest.mark.parametrize("mark", [0x10, 0x94, 0xFF])
def test_a_column_packed_by_a_method_that_nobody_has_is_malformed(mark: int) -> None:
    with pytest.raises(Malformed, match=f"compressed column with mark {mark:#04x}"):
        unpack_column(bytes((mark, 0, 0, 0, 4)), LONGEST_BYTES)


@pytest.mark.parametrize("unpack", [unpack_compressed, unpack_column])
def test_what_says_that_it_is_larger_than_is_wanted_is_not_unpacked(unpack: Unpack) -> None:
    with pytest.raises(TooLarge, match=r"of 1000000 bytes, of which at most 999999"):
        unpack(packed(1_000_000, b"no stream at all"), 999_999)


@pytest.mark.parametrize("unpack", [unpack_compressed, unpack_column, unpack_beginning])
def test_a_stream_that_has_more_than_it_says_is_unpacked_up_to_what_it_says(unpack: Unpack) -> None:
    bomb = zlib.compress(bytes(256 << 20), 1)
    tracemalloc.start()
    try:
        with pytest.raises(Malformed, match="more than"):
            unpack(packed(1000, bomb), LONGEST_BYTES)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
