"""An event of MariaDB as MySQL writes it, where only packing or numbering differ."""

from typing import Final

from protocol.binlog.compression import TooLarge, unpack_compressed
from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields
from protocol.binlog.query import text_at
from protocol.kernel import codes
from relay.view.stops import transaction_stops

MOST_BYTES: Final = 64 << 20
"""The most bytes of rows that are unpacked: they are in memory."""
MOST_OF_TEXT: Final = 16 << 20
"""The most bytes of a statement that is unpacked: it becomes words. This is MariaDB's default of max_allowed_packet."""
_V1_ROWS: Final = range(EventType.WRITE_ROWS_V1, EventType.DELETE_ROWS_V1 + 1)
_PACKED_V1: Final = range(EventType.WRITE_ROWS_COMPRESSED_V1, EventType.DELETE_ROWS_COMPRESSED_V1 + 1)
_PACKED_V2: Final = range(EventType.WRITE_ROWS_COMPRESSED, EventType.DELETE_ROWS_COMPRESSED + 1)
_V2_ROWS: Final = range(EventType.WRITE_ROWS, EventType.DELETE_ROWS + 1)
_UPDATES: Final = frozenset((
    EventType.UPDATE_ROWS_V1, EventType.UPDATE_ROWS, EventType.UPDATE_ROWS_COMPRESSED_V1, EventType.UPDATE_ROWS_COMPRESSED,
))  # fmt: skip
PACKED_ROWS: Final = frozenset((*_PACKED_V1, *_PACKED_V2))
ROWS: Final = frozenset((*_V1_ROWS, *_V2_ROWS)) | PACKED_ROWS
"""All events with rows."""
ROWS_FLAGS_AT: Final = 6
_V1_POST: Final = 8


def opened_rows(kind: int, body: bytes) -> tuple[int, bytes]:
    """Return type and unpacked body of an event with rows. Raises: Truncated, Malformed; Untranslatable where it is too large."""
    if kind not in PACKED_ROWS:
        return kind, body
    at = _rows_at(kind, body)
    rows = _unpacked(body[at:], MOST_BYTES)
    plain = kind - _PACKED_V1.start + _V1_ROWS.start if kind in _PACKED_V1 else kind - _PACKED_V2.start + _V2_ROWS.start
    return plain, body[:at] + rows


def as_version_2(kind: int, body: bytes) -> tuple[int, bytes]:
    """Return type and body of an event with unpacked rows, in version 2."""
    if kind not in _V1_ROWS:
        return kind, body
    return kind - _V1_ROWS.start + _V2_ROWS.start, body[:_V1_POST] + b"\x02\x00" + body[_V1_POST:]


def opened_query(body: bytes, post: int) -> bytes:
    """Return the body of a Query, from a Query_compressed: the text after the schema is packed. `post` is the size of its fixed part.

    Raises: Truncated, Malformed; Untranslatable.
    """
    at = text_at(body, post)
    return body[:at] + _unpacked(body[at:], MOST_OF_TEXT)


def with_statement_end(body: bytes) -> bytes:
    """Return the body of an event with rows as that of its statement's last."""
    flags = int.from_bytes(body[ROWS_FLAGS_AT : ROWS_FLAGS_AT + 2], "little") | codes.ROWS_STATEMENT_END
    return body[:ROWS_FLAGS_AT] + flags.to_bytes(2, "little") + body[ROWS_FLAGS_AT + 2 :]


def _rows_at(kind: int, body: bytes) -> int:
    """Return where the rows begin: after the head, the number of columns and the bits of those that exist."""
    fields = Fields(body)
    fields.skip(_V1_POST)
    if kind in _PACKED_V2 or kind in _V2_ROWS:
        fields.skip(fields.u16() - 2)
    columns = fields.lenenc_int()
    fields.skip((columns + 7) // 8 * (2 if kind in _UPDATES else 1))
    return len(body) - fields.remaining


def _unpacked(data: bytes, most: int) -> bytes:
    try:
        return unpack_compressed(data, most)
    except TooLarge:
        raise transaction_stops.too_large(
            f"an event of it has more than {most >> 20} MiB when it is unpacked"
        ) from None
