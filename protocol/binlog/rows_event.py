"""Row events of every version: which table, and whether the statement ends here. Row values are not decoded."""

from dataclasses import dataclass
from typing import Final

from protocol.binlog.fields import Fields
from protocol.binlog.format_description import FormatDescription
from protocol.errors import Malformed

STATEMENT_END: Final = 0x0001


@dataclass(frozen=True, slots=True)
class RowsEvent:
    """The fixed part of a row event, and the width of its table."""

    table_id: int
    flags: int
    column_count: int

    @property
    def ends_statement(self) -> bool:
        """Whether it is the last row event of its statement (STMT_END_F)."""
        return bool(self.flags & STATEMENT_END)


def decode_rows_event(body: bytes, event_type: int, format: FormatDescription) -> RowsEvent:
    """Decode the head of a row event: types 20-25, 30-32, 39, 166-171.

    Layout: table_id u48 (u32 where the post header has 6 bytes) | flags u16 | where the post header has 10 bytes:
    extra size u16 that counts itself, extra data | column count packed | bitmaps and rows (not read).
    Raises: Truncated; Malformed for an extra size below 2.
    """
    fields = Fields(body)
    post_header = format.post_header_length(event_type) or (10 if event_type in (30, 31, 32, 39) else 8)
    table_id = fields.uint(4 if post_header == 6 else 6)
    flags = fields.u16()
    if post_header >= 10:
        extra = fields.u16()
        if extra < 2:
            raise Malformed(f"extra row data of {extra} bytes; its length field alone takes 2")
        fields.skip(extra - 2)
    return RowsEvent(table_id, flags, fields.lenenc_int())
