"""A statement that may define tables, out of its Query event."""

import re
from dataclasses import dataclass
from typing import Final

from protocol.binlog.compression import unpack_compressed
from protocol.binlog.event_type import EventType
from protocol.binlog.layout import CHECKSUM_SIZE, HEADER_SIZE
from protocol.errors import ProtocolError

_LEAST_POST_LENGTH: Final = 11
_FLAGS_VARIABLE: Final = 0
_MODE_VARIABLE: Final = 1
_CATALOG_VARIABLE: Final = 2
_CHARSET_VARIABLE: Final = 4
_INVOKER_VARIABLE: Final = 11
_SCHEMAS_VARIABLE: Final = 12
_TIMESTAMPS_VARIABLE: Final = 16
_UTF8MB4_VARIABLE: Final = 18
_COLLATIONS_VARIABLE: Final = 131
_TOO_MANY_SCHEMAS: Final = 254
_UTF8MB4: Final = 45
_TIMESTAMPS_FLAG: Final = 1 << 24
"""Of a MariaDB's flags2."""
_VARIABLE_SIZES: Final = {
    0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 16: 1, 17: 8, 18: 2, 19: 1, 20: 1, 128: 3,
}  # fmt: skip
_VARIABLE_TEXTS: Final = frozenset((2, 5, 6))
_LONGEST_TEXT: Final = 1 << 20

_BLANKS: Final = rb"[\s\x80-\xff]*+"
BEFORE_VERB: Final = _BLANKS + rb"(?>(?:(?:/\*(?![!M]).*?\*/|/\*M?!\d*|\*/|(?:--|#)[^\n]*+\n)" + _BLANKS + rb")*)"
"""The pattern of what may stand in front of a statement's first word. What stands in comments for servers is read;
one of them may be empty. Bytes above ASCII are blanks in some character sets, as 0xA0 in latin1."""

_DEFINES: Final = re.compile(BEFORE_VERB + rb"(?:create|alter|drop|rename)\b", re.IGNORECASE | re.DOTALL)


def begins_definition(text: bytes) -> bool:
    """Whether a statement begins as one that defines something."""
    return _DEFINES.match(text) is not None


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
        if not begins_definition(text):
            return None
    return schema, text


def defines(event: bytes, post_length: int, checksum: bool) -> bool:
    """Whether a Query event, compressed or not, may define something; also where that cannot be told."""
    try:
        found = definition_statement(event, post_length, checksum)
    except (ProtocolError, IndexError):
        return True
    return found is not None and (found[1] is None or begins_definition(found[1]))


@dataclass(frozen=True, slots=True)
class StatementSetting:
    """Under what a statement ran. `error`: 0, it succeeded. Collations by their numbers, 0: the event does not tell.

    `client_collation`: of the statement's text; `server_collation`: of new databases; `default_collations`: (any collation
    of a character set, the one that it has where nobody says another), where the event tells. `explicit_timestamps`: the server's
    explicit_defaults_for_timestamp as a MySQL's event has it (8.0 and newer; None: it does not tell), `timestamps_flag` as a MariaDB's.
    """

    thread_id: int
    error: int
    sql_mode: int = 0
    client_collation: int = 0
    server_collation: int = 0
    default_collations: tuple[tuple[int, int], ...] = ()
    explicit_timestamps: bool | None = None
    timestamps_flag: bool | None = None


def statement_setting(event: bytes, post_length: int) -> StatementSetting:
    """Decode what stands before the statement in a Query event.

    Layout: thread_id u32 | execution_time u32 | schema length u8 | error u16 | status length u16 | status variables: code u8, value.
    Source: MySQL 9.7 `libs/mysql/binlog/event/statement_events.h`; MariaDB 11.8 `Query_log_event`.
    """
    body = event[HEADER_SIZE:]
    post = post_length if post_length >= _LEAST_POST_LENGTH else 13
    status = body[post : post + int.from_bytes(body[11:13], "little")] if post >= 13 else b""
    mode = client = server = at = 0
    defaults: list[tuple[int, int]] = []
    explicit: bool | None = None
    flag: bool | None = None
    while at < len(status):
        code = status[at]
        if code == _FLAGS_VARIABLE:
            flag = bool(int.from_bytes(status[at + 1 : at + 5], "little") & _TIMESTAMPS_FLAG)
        elif code == _TIMESTAMPS_VARIABLE:
            explicit = bool(status[at + 1 : at + 2] != b"\0")
        elif code == _MODE_VARIABLE:
            mode = int.from_bytes(status[at + 1 : at + 9], "little")
        elif code == _CHARSET_VARIABLE:
            client = int.from_bytes(status[at + 1 : at + 3], "little")
            server = int.from_bytes(status[at + 5 : at + 7], "little")
        elif code == _UTF8MB4_VARIABLE:
            defaults = [(_UTF8MB4, int.from_bytes(status[at + 1 : at + 3], "little"))]
        if code in _VARIABLE_SIZES:
            at += 1 + _VARIABLE_SIZES[code]
        elif code == _COLLATIONS_VARIABLE and at + 1 < len(status):
            pairs = status[at + 2 : at + 2 + 4 * status[at + 1]]
            defaults = [
                (int.from_bytes(pairs[one : one + 2], "little"), int.from_bytes(pairs[one + 2 : one + 4], "little"))
                for one in range(0, len(pairs), 4)
            ]
            at += 2 + len(pairs)
        elif code == _INVOKER_VARIABLE and at + 1 < len(status):
            at += 2 + status[at + 1]  # the account's name, then its host
            at += 1 + status[at] if at < len(status) else 0
        elif code == _SCHEMAS_VARIABLE and at + 1 < len(status):
            names = status[at + 1] if status[at + 1] < _TOO_MANY_SCHEMAS else 0
            at += 2
            for _ in range(names):
                end = status.find(b"\0", at)
                at = end + 1 if end >= 0 else len(status)
        elif code in _VARIABLE_TEXTS and at + 1 < len(status):
            at += 2 + status[at + 1] + (code == _CATALOG_VARIABLE)
        else:
            break  # what was wanted is written before it
    thread_id, error = int.from_bytes(body[:4], "little"), int.from_bytes(body[9:11], "little")
    return StatementSetting(thread_id, error, mode, client, server, tuple(defaults), explicit, flag)
