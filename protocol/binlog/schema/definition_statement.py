"""A statement that may define tables, from its Query event."""

import struct
from typing import Final, NamedTuple

from protocol.binlog.compression import unpack_beginning
from protocol.binlog.layout import CHECKSUM_SIZE, HEADER_SIZE, TYPE_AT
from protocol.binlog.query import query_post, read_query, text_at
from protocol.binlog.status_variables import (
    CHARSETS,
    EXPLICIT_TIMESTAMPS,
    FLAGS,
    MARIADB_COLLATIONS,
    SQL_MODE,
    UTF8MB4_DEFAULT,
    known_values,
)
from protocol.errors import ProtocolError
from protocol.kernel.codes import QUERY_COMPRESSED_EVENT, QUERY_EVENT, QUERY_SCHEMA_LENGTH_AT
from protocol.sql.kind import kind_of

_UTF8MB4: Final = 45
_TIMESTAMPS_FLAG: Final = 1 << 24
"""The bit in a MariaDB's flags2."""
_CHARSETS: Final = struct.Struct("<HHH")
_NO_CHARSETS: Final = bytes(_CHARSETS.size)
_PAIR: Final = struct.Struct("<HH")
_LONGEST_TEXT: Final = 1 << 20
_FIRST_BYTES: Final = 256
_BEGINNING: Final = 1 << 16
"""The length in which a compressed statement's first word is found: few define something, and unpacking each whole one costs."""


def definition_statement(event: bytes, post_length: int, checksum: bool) -> tuple[bytes, bytes | None] | None:
    """Return (default schema, text) of a Query event, compressed ones unpacked; the text is None if it is not available.

    `event` has its header and, if `checksum`, its CRC32. `post_length` is Query's, from the format description. None: the statement
    defines nothing (a compressed one shows this only here). Raises: Malformed.
    """
    body = event[HEADER_SIZE : len(event) - CHECKSUM_SIZE if checksum else None]
    at = text_at(body, query_post(QUERY_EVENT, post_length))
    schema, text = body[at - 1 - body[QUERY_SCHEMA_LENGTH_AT] : at - 1], body[at:]
    if event[TYPE_AT] != QUERY_COMPRESSED_EVENT:
        return schema, text
    try:
        if not kind_of(unpack_beginning(text, _BEGINNING)).may_define:
            return None
        return schema, unpack_beginning(text, _LONGEST_TEXT)
    except ProtocolError:
        return schema, None


def defines(event: bytes, post_length: int, checksum: bool) -> bool:
    """Return whether a Query event, compressed or not, may define something; also if that cannot be decided."""
    try:
        return kind_of(_beginning(event, post_length, checksum, _BEGINNING)).may_define
    except ProtocolError:
        return True


def may_define(event: bytes, post_length: int, checksum: bool) -> bool:
    """Answer `defines` by the text's first bytes: it costs the same for a text of any length, and is True if they do not suffice."""
    try:
        text = _beginning(event, post_length, checksum, _FIRST_BYTES)
    except ProtocolError:
        return True
    return kind_of(text).may_define or (len(text) == _FIRST_BYTES and not text[:1].isalpha())


def _beginning(event: bytes, post_length: int, checksum: bool, most: int) -> bytes:
    """Return the beginning of the text. Raises: Malformed."""
    body = memoryview(event)[HEADER_SIZE : len(event) - CHECKSUM_SIZE if checksum else None]
    at = text_at(body, query_post(QUERY_EVENT, post_length))
    if event[TYPE_AT] == QUERY_COMPRESSED_EVENT:
        return unpack_beginning(body[at:], most)
    return bytes(body[at : at + most])


class StatementSetting(NamedTuple):
    """The settings under which a statement ran. `error` 0: it succeeded. Collations are numbers, 0: not in the event.

    `client_collation` is the statement's text's, `server_collation` that of new databases; `default_collations` are, if in the event,
    (any collation of a character set, its default one). `explicit_timestamps` is the server's explicit_defaults_for_timestamp in a
    MySQL's event (8.0 and newer; None: it is not in it), `timestamps_flag` in a MariaDB's.
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
    """Return the settings in a Query event. Raises: Malformed."""
    query = read_query(QUERY_EVENT, event[HEADER_SIZE:], post_length)
    values = known_values(query.status_variables)
    flags, explicit = values.get(FLAGS), values.get(EXPLICIT_TIMESTAMPS)
    client, _connection, server = _CHARSETS.unpack(values.get(CHARSETS, _NO_CHARSETS))
    defaults: tuple[tuple[int, int], ...] = ()
    if MARIADB_COLLATIONS in values:
        defaults = tuple(_PAIR.iter_unpack(values[MARIADB_COLLATIONS][1:]))
    if UTF8MB4_DEFAULT in values:
        defaults = ((_UTF8MB4, int.from_bytes(values[UTF8MB4_DEFAULT], "little")),)
    return StatementSetting(
        query.thread_id,
        query.error_code,
        int.from_bytes(values.get(SQL_MODE, b""), "little"),
        client,
        server,
        defaults,
        None if explicit is None else explicit != b"\0",
        None if flags is None else bool(int.from_bytes(flags, "little") & _TIMESTAMPS_FLAG),
    )
