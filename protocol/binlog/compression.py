"""MariaDB's compression inside an event: the text of a Query_compressed, the rows of the compressed rows events."""

import zlib
from typing import Final

from protocol.binlog.fields import Fields
from protocol.errors import Malformed, ProtocolError, Truncated

LONGEST_BYTES: Final = 1 << 30
"""The longest event of any server: no compressed one had more."""

MOST_HELD_BYTES: Final = 256 << 20
"""The limit of an event or a value, for readers that keep one at a time and nothing else."""


class TooLarge(ProtocolError):
    """The announced size is above the caller's limit, so it was not unpacked: a megabyte may contain a gigabyte."""


def unpack_compressed(data: bytes | memoryview, most_bytes: int) -> bytes:
    """Return the unpacked `data`: at most `most_bytes`.

    Layout: u8 (bit 7 set, bits 4-6 algorithm: 0 zlib, bits 0-2 size of the length) | length unpacked, big-endian | zlib stream.
    Raises: TooLarge, before it is unpacked; Truncated; Malformed for another algorithm, a broken stream, or a length that is not the
    text's.
    Source: MariaDB 11.8 `binlog_buf_uncompress`.
    """
    length, packed = _announced(data)
    _check_length(length, most_bytes)
    return _inflate(zlib.decompressobj(), packed, length, length)


def unpack_beginning(data: bytes | memoryview, limit_bytes: int) -> bytes:
    """Return the first `limit_bytes` of the unpacked `data`, which may have any length. Raises: as `unpack_compressed`."""
    length, packed = _announced(data)
    _check_length(length, LONGEST_BYTES)
    return _inflate(zlib.decompressobj(), packed, length, min(length, limit_bytes))


def unpack_column(data: bytes, most_bytes: int) -> bytes:
    """Return the value of a compressed column of MariaDB (VARCHAR COMPRESSED, TEXT COMPRESSED ...): at most `most_bytes`.

    Layout: nothing, for the empty value; or u8 (bits 4-7: 0 not compressed, 8 zlib; bit 3: no zlib header; bits 0-2 size of the
    length), length unpacked, big-endian, stream; not compressed: the value follows.
    Raises: TooLarge, before it is unpacked; Truncated; Malformed for another method, a broken stream, or a length that is not the
    value's.
    Source: MariaDB 11.8 `sql/field_comp.cc`.
    """
    if not data:
        return b""
    fields = Fields(data)
    mark = fields.u8()
    if mark >> 4 == 0:
        return fields.rest()
    if mark >> 4 != 8:
        raise Malformed(f"compressed column with mark {mark:#04x}; method 8 (zlib) exists")
    length = int.from_bytes(fields.take(mark & 0x07), "big")
    stream = zlib.decompressobj(-zlib.MAX_WBITS if mark & 8 else zlib.MAX_WBITS)
    _check_length(length, most_bytes)
    return _inflate(stream, fields.rest(), length, length)


def unpacked_column_bytes(data: bytes) -> int:
    """Return the announced bytes of the value of a compressed column, without unpacking it. Raises: Truncated."""
    if not data:
        return 0
    if data[0] >> 4 == 0:
        return len(data) - 1
    fields = Fields(data)
    return int.from_bytes(fields.take(fields.u8() & 0x07), "big")


def _announced(data: bytes | memoryview) -> tuple[int, memoryview]:
    """Return the announced bytes of `data`, and the stream. Raises: Truncated, Malformed."""
    view = memoryview(data)
    if not len(view):
        raise Truncated("compressed data without a byte")
    mark = view[0]
    size = mark & 0x07
    if mark & 0xF0 != 0x80 or not 1 <= size <= 4:
        raise Malformed(f"compressed data with mark {mark:#04x}; 0x81 to 0x84 (zlib) exist")
    if len(view) < 1 + size:
        raise Truncated(f"compressed data of {len(view)} bytes, whose length takes {size}")
    return int.from_bytes(view[1 : 1 + size], "big"), view[1 + size :]


def _check_length(length: int, most_bytes: int) -> None:
    """Check an announced length. Raises: Malformed, TooLarge."""
    if length > LONGEST_BYTES:
        raise Malformed(f"compressed data of {length} bytes; the longest of any server has {LONGEST_BYTES}")
    if length > most_bytes:
        raise TooLarge(f"compressed data of {length} bytes, of which at most {most_bytes} are unpacked here")


def _inflate(stream: "zlib._Decompress", packed: bytes | memoryview, length: int, wanted: int) -> bytes:
    """Return the first `wanted` of the `length` bytes that are in `packed`. Raises: Truncated, Malformed."""
    try:
        # one more than there should be: with too small a length nothing may be omitted
        unpacked = stream.decompress(packed, wanted + 1)
    except zlib.error as error:
        raise Malformed(f"compressed data that zlib cannot read ({error})") from None
    if len(unpacked) < wanted or (wanted == length == len(unpacked) and not stream.eof):
        raise Truncated(f"compressed data that ends after {len(unpacked)} of {length} bytes")
    if len(unpacked) > length:
        raise Malformed(f"compressed data that is more than the {length} bytes it announces")
    return unpacked[:wanted]
