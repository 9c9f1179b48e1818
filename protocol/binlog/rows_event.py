"""Row events of every version: their table, and whether the statement ends there. Row values are not decoded."""

from dataclasses import dataclass
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields
from protocol.binlog.format_description import FormatDescription
from protocol.binlog.table_map import table_id_bytes
from protocol.errors import Malformed

STATEMENT_END: Final = 0x0001
_WITH_EXTRA_DATA: Final = frozenset(
    (*range(EventType.WRITE_ROWS, EventType.DELETE_ROWS + 1), EventType.PARTIAL_UPDATE_ROWS)
)
ROWS_EVENTS: Final = _WITH_EXTRA_DATA.union(
    range(EventType.PRE_GA_WRITE_ROWS, EventType.DELETE_ROWS_V1 + 1),
    range(EventType.WRITE_ROWS_COMPRESSED_V1, EventType.DELETE_ROWS_COMPRESSED + 1),
)
"""Types of row events, of every version and server."""


@dataclass(frozen=True, slots=True)
class RowsEvent:
    """The fixed part of a row event, and the width of its table."""

    table_id: int
    flags: int
    column_count: int

    @property
    def ends_statement(self) -> bool:
        """True if it is the last row event of its statement (STMT_END_F)."""
        return bool(self.flags & STATEMENT_END)


def decode_rows_event(body: bytes, event_type: int, format: FormatDescription) -> RowsEvent:
    """Decode the head of a row event, a type of ROWS_EVENTS.

    Layout: table_id u48 (u32 if the post header has 6 bytes) | flags u16 | if the post header has 10 bytes: extra size u16 that
    counts itself, extra data | column count packed | bitmaps and rows (not read).
    Raises: Truncated; Malformed for an extra size below 2.
    """
    fields = Fields(body)
    post_header = format.post_header_length(event_type) or (10 if event_type in _WITH_EXTRA_DATA else 8)
    table_id = fields.uint(table_id_bytes(post_header))
    flags = fields.u16()
    if post_header >= 10:
        extra = fields.u16()
        if extra < 2:
            raise Malformed(f"extra row data of {extra} bytes; its length field alone takes 2")
        fields.skip(extra - 2)
    return RowsEvent(table_id, flags, fields.lenenc_int())
