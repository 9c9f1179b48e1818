"""A statement that may define tables, out of its Query event."""

import re
from typing import Final

from protocol.binlog.compression import unpack_compressed
from protocol.binlog.event_type import EventType
from protocol.binlog.layout import CHECKSUM_SIZE, HEADER_SIZE
from protocol.errors import ProtocolError

_LEAST_POST_LENGTH: Final = 11
_LONGEST_TEXT: Final = 1 << 20
_DEFINES: Final = re.compile(
    rb"\s*+(?:(?:/\*(?![!M]).*?\*/|/\*M?!\d*|(?:--|#)[^\n]*+\n)\s*+)*+(?:create|alter|drop|rename)\b",
    re.IGNORECASE | re.DOTALL,
)


def definition_statement(event: bytes, post_length: int, checksum: bool) -> tuple[bytes, bytes | None] | None:
    """(default schema, text) of a Query event, compressed ones unpacked; the text is None where it cannot be had.

    `event`: with header and, if `checksum`, its CRC32. `post_length`: of Query, from the format description.
    None: the statement defines nothing (which of a compressed one shows only here).
    """
    post = post_length if post_length >= _LEAST_POST_LENGTH else 13
    body = event[HEADER_SIZE : len(event) - CHECKSUM_SIZE if checksum else None]
    status = int.from_bytes(body[11:13], "little") if post >= 13 else 0
    at = post + status
    schema = body[at : at + body[8]]
    text: bytes | None = body[at + body[8] + 1 :]
    if event[4] == EventType.QUERY_COMPRESSED:
        try:
            text = unpack_compressed(text or b"", _LONGEST_TEXT)
        except ProtocolError:
            return schema, None
        if not _DEFINES.match(text):
            return None
    return schema, text
