"""A statement that may define tables, out of its Query event."""

import re
from dataclasses import dataclass
from typing import Final

from protocol.binlog.compression import unpack_compressed
from protocol.binlog.event_type import EventType
from protocol.binlog.layout import CHECKSUM_SIZE, HEADER_SIZE
from protocol.errors import ProtocolError

_LEAST_POST_LENGTH: Final = 11
_MODE_VARIABLE: Final = 1
_CATALOG_VARIABLE: Final = 2
_CHARSET_VARIABLE: Final = 4
_VARIABLE_SIZES: Final = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 128: 3}
_VARIABLE_TEXTS: Final = frozenset((2, 5, 6))
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


def defines(event: bytes, post_length: int, checksum: bool) -> bool:
    """Whether a Query event, compressed or not, may define something; also where that cannot be told."""
    try:
        found = definition_statement(event, post_length, checksum)
    except (ProtocolError, IndexError):
        return True
    return found is not None and (found[1] is None or _DEFINES.match(found[1]) is not None)


@dataclass(frozen=True, slots=True)
class StatementSetting:
    """Under what a statement ran. `error`: 0, it succeeded. Collations by their numbers, 0: the event does not tell.

    `client_collation`: of the statement's text; `server_collation`: of new databases.
    """

    thread_id: int
    error: int
    sql_mode: int = 0
    client_collation: int = 0
    server_collation: int = 0


def statement_setting(event: bytes, post_length: int) -> StatementSetting:
    """Decode what stands before the statement in a Query event.

    Layout: thread_id u32 | execution_time u32 | schema length u8 | error u16 | status length u16 | status variables: code u8, value.
    Source: MySQL 9.7 `libs/mysql/binlog/event/statement_events.h`; MariaDB 11.8 `Query_log_event`.
    """
    body = event[HEADER_SIZE:]
    post = post_length if post_length >= _LEAST_POST_LENGTH else 13
    status = body[post : post + int.from_bytes(body[11:13], "little")] if post >= 13 else b""
    mode = client = server = at = 0
    while at < len(status):
        code = status[at]
        if code == _MODE_VARIABLE:
            mode = int.from_bytes(status[at + 1 : at + 9], "little")
        elif code == _CHARSET_VARIABLE:
            client = int.from_bytes(status[at + 1 : at + 3], "little")
            server = int.from_bytes(status[at + 5 : at + 7], "little")
        if code in _VARIABLE_SIZES:
            at += 1 + _VARIABLE_SIZES[code]
        elif code in _VARIABLE_TEXTS and at + 1 < len(status):
            at += 2 + status[at + 1] + (code == _CATALOG_VARIABLE)
        else:
            break  # what was wanted is written before it
    return StatementSetting(
        int.from_bytes(body[:4], "little"), int.from_bytes(body[9:11], "little"), mode, client, server
    )
