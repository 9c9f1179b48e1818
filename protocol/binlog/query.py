"""Query, Execute_load_query and MariaDB's compressed Query: a statement with its schema."""

from dataclasses import dataclass
from typing import Final

from protocol.binlog.compression import unpack_compressed
from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields
from protocol.binlog.format_description import FormatDescription, query_post_header_length
from protocol.errors import Malformed

# A compressed statement may announce up to 4 GiB; whoever wants to read it says how much.
TEXT_LIMIT_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Query:
    """A statement as the source ran it.

    `schema` is UTF-8, `text` in the client's character set, which only the status variables tell.
    """

    thread_id: int
    execution_time_s: int
    error_code: int
    status_variables: bytes
    schema: bytes
    text: bytes


@dataclass(frozen=True, slots=True)
class ExecuteLoadQuery:
    """LOAD DATA as MySQL 5.0 and later log it: the statement, and the file's blocks named by `file_id`."""

    query: Query
    file_id: int


def decode_query(body: bytes, format: FormatDescription) -> Query:
    """Decode a Query event.

    Layout: thread_id u32 | execution_time u32 s | schema length u8 | error u16 | status length u16 (not in 4.x) |
    status variables | schema, zero | text to the end of the body (not zero terminated).
    Raises: Truncated; Malformed when the byte behind the schema is not zero.
    Source: MySQL 5.0-9.7 and MariaDB 5.5-11.8 `Query_log_event`.
    """
    fields = Fields(body)
    query, _ = _decode(fields, query_post_header_length(format), 0)
    return query


def decode_execute_load_query(body: bytes, format: FormatDescription) -> ExecuteLoadQuery:
    """Decode an Execute_load_query event: a Query whose fixed part is followed by file_id u32,
    start and end of the file name in the text u32 u32, and duplicate handling u8.
    """
    post_header = format.post_header_length(EventType.EXECUTE_LOAD_QUERY) or 26
    query, extra = _decode(Fields(body), post_header - 13, 13)
    return ExecuteLoadQuery(query, Fields(extra).u32())


def decode_query_compressed(body: bytes, format: FormatDescription, limit_bytes: int = TEXT_LIMIT_BYTES) -> Query:
    """Decode MariaDB's Query_compressed event; at most `limit_bytes` of the text are unpacked.

    Layout: as Query, with the text replaced by: u8 (bit 7 set, bits 4-6 algorithm: 0 zlib, bits 0-2 size of the
    length) | length of the text, big-endian | zlib stream.
    Raises: Truncated; Malformed for another algorithm or a broken stream.
    Source: MariaDB 11.8 `query_event_uncompress`, `binlog_buf_uncompress`.
    """
    packed = decode_query(body, format)
    return Query(
        packed.thread_id,
        packed.execution_time_s,
        packed.error_code,
        packed.status_variables,
        packed.schema,
        unpack_compressed(packed.text, limit_bytes),
    )


def _decode(fields: Fields, post_header: int, extra_from: int) -> tuple[Query, bytes]:
    """`extra_from` 0: the post header is a Query's own; else it is a Query's 13 bytes and `post_header` more."""
    thread_id = fields.u32()
    execution_time_s = fields.u32()
    schema_length = fields.u8()
    error_code = fields.u16()
    known = 11
    status_length = 0
    if extra_from or post_header >= 13:
        status_length = fields.u16()
        known = 13
    extra = fields.take(post_header if extra_from else max(0, post_header - known))
    status = fields.take(status_length)
    schema = fields.take(schema_length)
    if fields.u8() != 0:
        raise Malformed(f"no zero byte behind the schema's {schema_length} bytes")
    return Query(thread_id, execution_time_s, error_code, status, schema, fields.rest()), extra
