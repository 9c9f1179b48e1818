"""A Query or Execute_load_query event taken apart so that it can be put together again."""

import struct
from dataclasses import dataclass, replace
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields
from protocol.errors import Malformed
from relay.view.rules.targets.query_variables import StatusVariable, decode_status, encode_status

_HEAD: Final = struct.Struct("<IIBHH")
_LOAD_BYTES: Final = 13
_LOAD: Final = struct.Struct("<IIIB")


@dataclass(frozen=True, slots=True)
class QueryBody:
    """The parts of the body. load: of an Execute_load_query: file id u32, start and end of the file's name in the text u32, u32,
    duplicates u8; b"" for a Query."""

    thread_id: int
    execution_time_s: int
    error_code: int
    load: bytes
    variables: tuple[StatusVariable, ...]
    schema: bytes
    text: bytes

    def variable(self, code: int) -> bytes | None:
        """The value of that status variable; None: it is not there."""
        return next((value for found, value in self.variables if found == code), None)

    def number(self, code: int, missing: int) -> int:
        """The value of that status variable as a number."""
        value = self.variable(code)
        return missing if value is None else int.from_bytes(value, "little")

    def with_text(self, text: bytes) -> "QueryBody":
        """With another statement. Raises: Malformed where the place of the file's name in it would be another."""
        if self.load:
            end = _LOAD.unpack(self.load)[2]
            if text[:end] != self.text[:end]:
                raise Malformed("the part of LOAD DATA up to its file's name would change")
        return replace(self, text=text)

    def encode(self) -> bytes:
        """The event's body."""
        status = encode_status(self.variables)
        head = _HEAD.pack(self.thread_id, self.execution_time_s, len(self.schema), self.error_code, len(status))
        return head + self.load + status + self.schema + b"\0" + self.text


def decode_query_body(body: bytes, event_type: int) -> QueryBody:
    """Layout: thread_id u32 | execution time u32 s | schema length u8 | error u16 | status length u16 | of Execute_load_query: 13 bytes
    (`QueryBody.load`) | status variables | schema, zero | text. Of MySQL 5.0 and later.

    Raises: Truncated, Malformed, UnknownVariable.
    """
    fields = Fields(body)
    thread_id, execution_time_s, schema_length, error_code, status_length = _HEAD.unpack(fields.take(_HEAD.size))
    load = fields.take(_LOAD_BYTES) if event_type == EventType.EXECUTE_LOAD_QUERY else b""
    variables = tuple(decode_status(fields.take(status_length)))
    schema = fields.take(schema_length)
    if fields.u8() != 0:
        raise Malformed(f"no zero byte behind the schema's {schema_length} bytes")
    return QueryBody(thread_id, execution_time_s, error_code, load, variables, schema, fields.rest())
