"""Table_map: the number that row events use for a table."""

from dataclasses import dataclass

from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields
from protocol.binlog.format_description import FormatDescription


@dataclass(frozen=True, slots=True)
class TableMap:
    """Table id and names; columns and metadata are not read."""

    table_id: int
    flags: int
    schema: str
    table: str


def decode_table_map(body: bytes, format: FormatDescription) -> TableMap:
    """Decode the head of a Table_map event.

    Layout: table_id u48 (u32 where the post header has 6 bytes: 5.1 before GA) | flags u16 |
    schema length packed, schema, zero | table length packed, table, zero | columns (not read).
    Raises: Truncated.
    """
    fields = Fields(body)
    table_id = fields.uint(4 if format.post_header_length(EventType.TABLE_MAP) == 6 else 6)
    flags = fields.u16()
    schema = fields.take(fields.lenenc_int())
    fields.skip(1)
    table = fields.take(fields.lenenc_int())
    fields.skip(1)
    return TableMap(
        table_id, flags, schema.decode("utf-8", "backslashreplace"), table.decode("utf-8", "backslashreplace")
    )
