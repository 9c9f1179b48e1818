"""Load, New_load and Create_file: LOAD DATA in the logs of MySQL 3.23 to 4.1."""

from dataclasses import dataclass

from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields


@dataclass(frozen=True, slots=True)
class Load:
    """The table that is loaded and the file's name; `file_id` and the first block only in a Create_file."""

    thread_id: int
    schema: bytes
    table: bytes
    file: bytes
    file_id: int | None = None
    block_bytes: int = 0


def decode_load(body: bytes, event_type: int) -> Load:
    """Decode a Load (6), New_load (12) or Create_file (8) event.

    Layout: thread_id u32 | execution time u32 | skipped lines u32 | table length u8 | schema length u8 |
    field count u32 | Create_file: file_id u32 | Load: 7 bytes of separators; the others: 5 texts with a length byte
    each, flags u8 | field name lengths u8 each | field names, table, schema, each zero terminated |
    file name (Create_file: zero terminated, then the first block).
    Raises: Truncated.
    Source: MySQL 4.1 `Load_log_event::copy_log_event`, `Create_file_log_event`.
    """
    fields = Fields(body)
    thread_id = fields.u32()
    fields.skip(8)
    table_length, schema_length, field_count = fields.u8(), fields.u8(), fields.u32()
    file_id = fields.u32() if event_type == EventType.CREATE_FILE else None
    if event_type == EventType.LOAD:
        fields.skip(7)
    else:
        for _ in range(5):
            fields.skip(fields.u8())
        fields.skip(1)
    lengths = fields.take(field_count)
    fields.skip(sum(lengths) + len(lengths))
    table = fields.take(table_length)
    fields.skip(1)
    schema = fields.take(schema_length)
    fields.skip(1)
    if file_id is None:
        return Load(thread_id, schema, table, fields.rest())
    return Load(thread_id, schema, table, fields.nul_bytes(), file_id, fields.remaining)
