"""Query, Execute_load_query and MariaDB's compressed Query: a statement with its schema."""

import struct
from typing import Final, NamedTuple

from protocol.binlog.compression import unpack_beginning
from protocol.binlog.format_description import FormatDescription
from protocol.errors import Malformed, Truncated
from protocol.kernel.codes import (
    EXECUTE_LOAD_QUERY_EVENT,
    EXECUTE_LOAD_QUERY_POST,
    QUERY_EVENT,
    QUERY_POST,
    QUERY_POST_3,
    QUERY_SCHEMA_LENGTH_AT,
    QUERY_STATUS_LENGTH_AT,
)

# A compressed statement may announce up to 4 GiB; a reader that wants more chooses how much.
TEXT_LIMIT_BYTES: Final = 1 << 20
_HEAD: Final = struct.Struct("<IIBH")
_HEAD_WITH_STATUS: Final = struct.Struct("<IIBHH")
_FILE_NAME_END: Final = slice(8, 12)


class Query(NamedTuple):
    """A statement as the source ran it.

    `schema` is UTF-8, `text` in the client's character set, which is in the status variables only (`status_variables.decode_status`).
    `load` belongs to an Execute_load_query: file_id u32, start and end of the file's name in the text u32 u32, duplicates u8.
    """

    thread_id: int
    execution_time_s: int
    error_code: int
    status_variables: bytes
    schema: bytes
    text: bytes
    load: bytes = b""

    @property
    def file_id(self) -> int:
        """The number of the file whose blocks an Execute_load_query reads."""
        return int.from_bytes(self.load[:4], "little")

    def with_text(self, text: bytes) -> "Query":
        """Return the query with another statement. Raises: Malformed if the place of the file's name in it would differ."""
        end = int.from_bytes(self.load[_FILE_NAME_END], "little")
        if text[:end] != self.text[:end]:
            raise Malformed("the part of LOAD DATA up to its file's name would change")
        return self._replace(text=text)

    def encode(self) -> bytes:
        """Encode the event's body, as in MySQL 5.0 and later."""
        head = _HEAD_WITH_STATUS.pack(
            self.thread_id, self.execution_time_s, len(self.schema), self.error_code, len(self.status_variables)
        )
        return head + self.load + self.status_variables + self.schema + b"\0" + self.text


def query_post(event_type: int, post_length: int) -> int:
    """Return the bytes of the fixed part from the format description, 0 if it is not listed; at least those that are known."""
    if event_type == EXECUTE_LOAD_QUERY_EVENT:
        return max(post_length, EXECUTE_LOAD_QUERY_POST)
    return post_length if post_length >= QUERY_POST_3 else QUERY_POST


def text_at(body: bytes | memoryview, post: int) -> int:
    """Return where the statement begins in the body, whose fixed part has `post` bytes. Raises: Truncated."""
    try:
        at = post + body[QUERY_SCHEMA_LENGTH_AT] + 1
        if post >= QUERY_POST:
            at += body[QUERY_STATUS_LENGTH_AT] | body[QUERY_STATUS_LENGTH_AT + 1] << 8
    except IndexError:
        at = len(body) + 1
    if at > len(body):
        raise Truncated(f"a statement whose lengths pass its event's {len(body)} bytes")
    return at


def read_query(event_type: int, body: bytes, post_length: int) -> Query:
    """Decode a Query or Execute_load_query event, or a compressed Query whose text stays compressed.

    Layout: thread_id u32 | execution_time u32 s | schema length u8 | error u16 | status length u16 (not in 4.x) | of an
    Execute_load_query: `Query.load` | status variables | schema, zero | text to the end of the body (not zero terminated).
    `post_length` is as in `query_post`.
    Raises: Truncated; Malformed when the byte after the schema is not zero.
    Source: MySQL 5.0-9.7 and MariaDB 5.5-11.8 `Query_log_event`.
    """
    post = query_post(event_type, post_length)
    at = text_at(body, post)
    thread_id, execution_time_s, schema_length, error_code = _HEAD.unpack_from(body)
    schema = at - 1 - schema_length
    if body[at - 1]:
        raise Malformed(f"no zero byte after the schema's {schema_length} bytes")
    return Query(
        thread_id,
        execution_time_s,
        error_code,
        body[post:schema],
        body[schema : at - 1],
        body[at:],
        body[QUERY_POST:post],
    )


def decode_query(body: bytes, format: FormatDescription) -> Query:
    """Decode a Query event with `read_query`."""
    return read_query(QUERY_EVENT, body, format.post_header_length(QUERY_EVENT))


def decode_execute_load_query(body: bytes, format: FormatDescription) -> Query:
    """Decode an Execute_load_query event with `read_query`."""
    kind = EXECUTE_LOAD_QUERY_EVENT
    return read_query(kind, body, format.post_header_length(kind))


def decode_query_compressed(body: bytes, format: FormatDescription, limit_bytes: int = TEXT_LIMIT_BYTES) -> Query:
    """Decode MariaDB's Query_compressed event; at most `limit_bytes` of the text are unpacked.

    Layout: as Query, with the text replaced by: u8 (bit 7 set, bits 4-6 algorithm: 0 zlib, bits 0-2 size of the length) | length of
    the text, big-endian | zlib stream.
    Raises: Truncated; Malformed for another algorithm or a broken stream.
    Source: MariaDB 11.8 `query_event_uncompress`, `binlog_buf_uncompress`.
    """
    packed = decode_query(body, format)
    return packed._replace(text=unpack_beginning(packed.text, limit_bytes))
