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
