"""The status variables of a Query event: the settings under which its statement ran.

Layout: code u8, value; one after the other, in the order of their codes. A reader stops at an unknown code, as the length of its
value is not in the event.
Source: MySQL 9.7 `libs/mysql/binlog/event/statement_events.h`; MariaDB 11.8 `sql/log_event.h`.
"""

from collections.abc import Callable, Mapping
from typing import Final

from protocol.errors import ProtocolError, Truncated
from protocol.kernel import codes

FLAGS: Final = codes.VARIABLE_FLAGS
SQL_MODE: Final = codes.VARIABLE_SQL_MODE
CHARSETS: Final = codes.VARIABLE_CHARSETS
CATALOG: Final = codes.VARIABLE_CATALOG
LOCALE: Final = codes.VARIABLE_LC_TIME_NAMES
DATABASE_COLLATION: Final = codes.VARIABLE_SCHEMA_COLLATION
MICROSECONDS: Final = codes.VARIABLE_MICROSECONDS
EXPLICIT_TIMESTAMPS: Final = codes.VARIABLE_EXPLICIT_TIMESTAMPS
UTF8MB4_DEFAULT: Final = 18
MARIADB_MICROSECONDS: Final = 128
MARIADB_XID: Final = 129
MARIADB_GTID_FLAGS: Final = 130
MARIADB_COLLATIONS: Final = 131
_OF_ALTER: Final = 0x0C

_End = int | Callable[[bytes, int], int]
"""The end of a value: its length; or a function of the status variables and the value's start that returns its end."""


def _text(status: bytes, at: int) -> int:
    """Return the end of length u8, bytes."""
    return at + 1 + status[at]


def _text_and_zero(status: bytes, at: int) -> int:
    return _text(status, at) + 1


def _two_texts(status: bytes, at: int) -> int:
    return _text(status, _text(status, at))


def _schemas(status: bytes, at: int) -> int:
    """Return the end of count u8, names that end in zero; none if the count means that there were too many."""
    count = status[at]
    at += 1
    for _ in range(count if count <= codes.VARIABLE_MOST_SCHEMAS else 0):
        at = status.index(0, at) + 1
    return at


def _gtid_flags(status: bytes, at: int) -> int:
    """Return the end of flags u8; in an ALTER in two phases also the sequence number u64 of its beginning."""
    return at + (9 if status[at] & _OF_ALTER else 1)


def _collations(status: bytes, at: int) -> int:
    """Return the end of count u8, pairs of numbers u16: a character set's compiled collation, and its default one."""
    return at + 1 + 4 * status[at]


_ROWS: Final[tuple[tuple[int, str, _End, str], ...]] = (
    (FLAGS, "flags2", 4, "both"),
    (SQL_MODE, "sql_mode", 8, "both"),
    (codes.VARIABLE_CATALOG_WITH_ZERO, "catalog of 5.0.0 to 5.0.3", _text_and_zero, "both"),
    (3, "auto_increment_increment u16, auto_increment_offset u16", 4, "both"),
    (CHARSETS, "client, connection, new databases: collations u16", 6, "both"),
    (codes.VARIABLE_TIME_ZONE, "time_zone", _text, "both"),
    (CATALOG, "catalog", _text, "both"),
    (LOCALE, "lc_time_names", 2, "both"),
    (DATABASE_COLLATION, "collation_database, for LOAD DATA", 2, "both"),
    (codes.VARIABLE_UPDATED_TABLES, "bits of the tables that an UPDATE of several changes", 8, "both"),
    (10, "bytes of the event at the source of a source", 4, "both"),
    (codes.VARIABLE_INVOKER, "account: user, host", _two_texts, "both"),
    (codes.VARIABLE_UPDATED_SCHEMAS, "schemas that it changes, 5.6", _schemas, "mysql"),
    (MICROSECONDS, "microseconds of its time, 5.6", 3, "mysql"),
    (14, "a logical time, while 5.7 was developed", 8, "mysql"),
    (15, "two logical times, the same", 16, "mysql"),
    (EXPLICIT_TIMESTAMPS, "explicit_defaults_for_timestamp", 1, "mysql"),
    (17, "xid of a definition, 8.0", 8, "mysql"),
    (UTF8MB4_DEFAULT, "default_collation_for_utf8mb4, 8.0", 2, "mysql"),
    (19, "sql_require_primary_key, 8.0", 1, "mysql"),
    (20, "default_table_encryption, 8.0", 1, "mysql"),
    (21, "seen on 9.7.4 in front of INSERT, UPDATE, DELETE and REPLACE, always 0; 9.6", 1, "mysql"),
    (MARIADB_MICROSECONDS, "microseconds of its time", 3, "mariadb"),
    (MARIADB_XID, "xid of a definition", 8, "mariadb"),
    (MARIADB_GTID_FLAGS, "more flags of its GTID", _gtid_flags, "mariadb"),
    (MARIADB_COLLATIONS, "character_set_collations", _collations, "mariadb"),
)
"""Code, meaning (and the first version that wrote it), value, and the servers that write it."""
_ALL: Final = {code: end for code, _says, end, _server in _ROWS}
MYSQL: Final = {code: end for code, _says, end, server in _ROWS if server != "mariadb"}
"""The variables that MySQL writes."""
MARIADB: Final = {code: end for code, _says, end, server in _ROWS if server != "mysql"}
"""The variables that MariaDB writes."""


class UnknownVariable(ProtocolError):
    """A code is unknown: neither its value nor the variables after it can be read."""

    def __init__(self, code: int) -> None:
        super().__init__(f"status variable {code}")
        self.code = code


def decode_status(status: bytes, written: Mapping[int, _End] = MYSQL) -> dict[int, bytes]:
    """Return the values by their codes, in the event's order. `written` are the server's variables, MYSQL or MARIADB.

    Raises: Truncated; UnknownVariable.
    """
    found: dict[int, bytes] = {}
    _walk(status, written, found)
    return found


def known_values(status: bytes) -> dict[int, bytes]:
    """Return the values of any server's variables, up to one that is unknown or cut."""
    found: dict[int, bytes] = {}
    try:
        _walk(status, _ALL, found)
    except ProtocolError:
        return found  # the wanted variable mostly precedes it
    return found


def encode_status(values: Mapping[int, bytes]) -> bytes:
    """Encode the result of `decode_status`."""
    return b"".join([bytes((code,)) + value for code, value in values.items()])


def _walk(status: bytes, written: Mapping[int, _End], found: dict[int, bytes]) -> None:
    at, size = 0, len(status)
    try:
        while at < size:
            code = status[at]
            end = written[code]
            start = at + 1
            at = start + end if isinstance(end, int) else end(status, start)
            if at > size:
                raise Truncated(f"status variable {code} passes the {size} bytes of all")
            found[code] = status[start:at]
    except KeyError:
        raise UnknownVariable(status[at]) from None
    except (IndexError, ValueError):
        raise Truncated(f"status variable {status[at]} passes the {size} bytes of all") from None
