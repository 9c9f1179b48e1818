"""What MariaDB packs inside an event: the text of a Query_compressed, the rows of the compressed rows events."""

import zlib
from typing import Final

from protocol.binlog.fields import Fields
from protocol.errors import Malformed, Truncated

# The longest event of any server: nothing that was packed into one had more.
LONGEST_BYTES: Final = 1 << 30


def unpack_compressed(data: bytes, limit_bytes: int = LONGEST_BYTES) -> bytes:
    """The first `limit_bytes` of what is packed in `data`.

    Layout: u8 (bit 7 set, bits 4-6 algorithm: 0 zlib, bits 0-2 size of the length) | length unpacked, big-endian |
    zlib stream.
    Raises: Truncated; Malformed for another algorithm or a broken stream.
    Source: MariaDB 11.8 `binlog_buf_uncompress`.
    """
    fields = Fields(data)
    mark = fields.u8()
    size = mark & 0x07
    if mark & 0xF0 != 0x80 or not 1 <= size <= 4:
        raise Malformed(f"compressed data with mark {mark:#04x}; 0x81 to 0x84 (zlib) exist")
    length = int.from_bytes(fields.take(size), "big")
    stream = zlib.decompressobj()
    try:
        unpacked = stream.decompress(fields.rest(), max(1, min(length, limit_bytes)))
    except zlib.error as error:
        raise Malformed(f"compressed data that zlib cannot read ({error})") from None
    if len(unpacked) < min(length, limit_bytes):
        raise Truncated(f"compressed data that ends after {len(unpacked)} of {length} bytes")
    return unpacked[:length]


def unpack_column(data: bytes, limit_bytes: int = LONGEST_BYTES) -> bytes:
    """The value of a compressed column of MariaDB (VARCHAR COMPRESSED, TEXT COMPRESSED ...).

    Layout: nothing, for the empty value; or u8 (bits 4-7: 0 not compressed, 8 zlib; bit 3: no zlib header; bits 0-2 size of
    the length), length unpacked, big-endian, stream; not compressed: the value follows.
    Raises: Truncated; Malformed for another method, a broken stream or a longer value than any server holds.
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
    if length > limit_bytes:
        raise Malformed(f"compressed column of {length} bytes; the longest value of any server has {limit_bytes}")
    stream = zlib.decompressobj(-zlib.MAX_WBITS if mark & 8 else zlib.MAX_WBITS)
    try:
        unpacked = stream.decompress(fields.rest(), max(1, length))
    except zlib.error as error:
        raise Malformed(f"compressed column that zlib cannot read ({error})") from None
    if len(unpacked) < length:
        raise Truncated(f"compressed column that ends after {len(unpacked)} of {length} bytes")
    return unpacked[:length]
