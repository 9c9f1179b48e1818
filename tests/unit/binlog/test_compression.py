"""What MariaDB packs: all of it comes out, or an error; lengths that lie hide nothing."""

import zlib

import pytest

from protocol.binlog.compression import LONGEST_BYTES, unpack_column, unpack_compressed
from protocol.errors import Malformed, Truncated

TEXT = b"a text that is packed " * 50


def packed(length: int, stream: bytes) -> bytes:
    """As events and columns have it: mark, length of four bytes, zlib stream."""
    return b"\x84" + length.to_bytes(4, "big") + stream


@pytest.mark.parametrize("unpack", [unpack_compressed, unpack_column])
def test_a_packed_text_comes_out_whole(unpack: type) -> None:
    assert unpack(packed(len(TEXT), zlib.compress(TEXT))) == TEXT
    assert unpack(packed(0, zlib.compress(b""))) == b""


@pytest.mark.parametrize("unpack", [unpack_compressed, unpack_column])
def test_more_than_was_announced_is_malformed(unpack: type) -> None:
    with pytest.raises(Malformed, match="more than"):
        unpack(packed(len(TEXT) - 22, zlib.compress(TEXT)))
    with pytest.raises(Malformed, match="more than"):
        unpack(packed(0, zlib.compress(TEXT)))


@pytest.mark.parametrize("unpack", [unpack_compressed, unpack_column])
def test_less_than_was_announced_or_a_stream_without_its_end_is_truncated(unpack: type) -> None:
    with pytest.raises(Truncated):
        unpack(packed(len(TEXT) + 1, zlib.compress(TEXT)))
    with pytest.raises(Truncated):
        unpack(packed(len(TEXT), zlib.compress(TEXT)[:-2]))


@pytest.mark.parametrize("unpack", [unpack_compressed, unpack_column])
def test_a_wrong_sum_behind_the_stream_is_malformed(unpack: type) -> None:
    stream = bytearray(zlib.compress(TEXT))
    stream[-1] ^= 1
    with pytest.raises(Malformed):
        unpack(packed(len(TEXT), bytes(stream)))


@pytest.mark.parametrize("unpack", [unpack_compressed, unpack_column])
def test_nothing_is_longer_than_the_longest_event(unpack: type) -> None:
    with pytest.raises(Malformed, match=str(LONGEST_BYTES)):
        unpack(packed(LONGEST_BYTES + 1, zlib.compress(TEXT)))


def test_whoever_wants_only_the_beginning_gets_it() -> None:
    assert unpack_compressed(packed(len(TEXT), zlib.compress(TEXT)), 10) == TEXT[:10]


@pytest.mark.parametrize("mark", [0x10, 0x94, 0xFF])
def test_a_column_packed_by_a_method_that_nobody_has_is_malformed(mark: int) -> None:
    with pytest.raises(Malformed, match=f"compressed column with mark {mark:#04x}"):
        unpack_column(bytes((mark, 0, 0, 0, 4)))
