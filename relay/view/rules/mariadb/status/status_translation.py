"""The session of a MariaDB's statement as MySQL reads it: the status variables of a Query or Execute_load_query event."""

import re
import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from protocol.binlog.status_variables import (
    CHARSETS,
    DATABASE_COLLATION,
    EXPLICIT_TIMESTAMPS,
    FLAGS,
    LOCALE,
    MARIADB,
    MARIADB_COLLATIONS,
    MARIADB_GTID_FLAGS,
    MARIADB_MICROSECONDS,
    MARIADB_XID,
    MICROSECONDS,
    SQL_MODE,
    UTF8MB4_DEFAULT,
    UnknownVariable,
    decode_status,
    encode_status,
)
from protocol.errors import ProtocolError
from protocol.sql.gaps import LINE_COMMENT_BYTES
from protocol.sql.kind import Purpose, kind_of
from relay.view.rules.mariadb.status.mariadb_collations import MariadbCollations
from relay.view.rules.mariadb.status.mariadb_user_variable import translate_user_variable
from relay.view.rules.mariadb.status.mode_differences import (
    check_modes,
    is_plain,
    mode_for_target,
    without_engine_check,
)
from relay.view.stops import statement_stops

_EXPLICIT_TIMESTAMPS: Final = 1 << 24
_IF_EXISTS: Final = 1 << 28
_KEPT_FLAGS: Final = 1 << 14 | 1 << 19 | 1 << 26 | 1 << 27
"""sql_auto_is_null, no autocommit, no foreign key checks, relaxed unique checks: as both servers write them."""
_NO_CHECKS: Final = 1 << 15
"""check_constraint_checks = OFF, of 10.11: rows that break a CHECK stop a replica (3819), and nothing turns that off in MySQL."""
_INSERTS_HISTORY: Final = 1 << 30
"""system_versioning_insert_history = ON: in the replicas' tables row_start and row_end are columns like others."""
_KNOWN_FLAGS: Final = _KEPT_FLAGS | _EXPLICIT_TIMESTAMPS | _IF_EXISTS | _NO_CHECKS | _INSERTS_HISTORY
_COLLATIONS: Final = struct.Struct("<HHH")
_PAIR: Final = struct.Struct("<HH")
_UTF8MB4: Final = 45
_LAST_LOCALE: Final = 110
_MOST_HELD: Final = 512
_MICROSECONDS_BYTES: Final = 4
_VARYING: Final = frozenset((MARIADB_MICROSECONDS, MARIADB_XID, MARIADB_GTID_FLAGS))
"""The variables that differ from statement to statement."""
_NO_CLAUSE: Final = re.compile(
    rb"""'(?>(?:[^'\\]++|\\.|'')*)(?:'|\\?\Z)|"(?>(?:[^"\\]++|\\.|"")*)(?:"|\\?\Z)|`(?>(?:[^`]++|``)*)(?:`|\Z)"""
    rb"|/\*(?![!M])(?>.*?(?:\*/|\Z))|" + LINE_COMMENT_BYTES,
    re.DOTALL,
)
"""Strings, names and comments: a COMMENT may contain the words of a clause."""
_NAMES_CHARSET: Final = re.compile(rb"\b(?:charset|character\s+set|collate)\b", re.IGNORECASE)


_BlockUse = tuple[bytes, bool, bool]
"""A block without the varying variables, whether the statement changes rows, whether it makes a database by the server's collation."""


class TranslatedStatus(NamedTuple):
    """The variables of the event, for the replicas and for code that reads its text.

    `status` contains the variables for the replicas, as bytes. `sql_mode` is the source's, by which its text is read. `charset` is the
    number of the client's collation at the source, whose set the text is written in; `connection` and `server` are the same of those;
    0: unknown. `defaults` are the collations that a character set has in this statement where it names none, by the number of the
    compiled one of the set; for sets that are missing it is that one. `explicit_timestamps` decides about TIMESTAMP columns that say
    nothing of NULL. `if_exists`: a replica that logs what it applies drops tables as if the statement said IF EXISTS.
    `without_engine_check` is the `status` for a statement that names an engine which the replicas do not have, and that becomes InnoDB
    there.
    """

    status: bytes
    sql_mode: int
    charset: int
    connection: int
    server: int
    defaults: Mapping[int, int]
    explicit_timestamps: bool
    if_exists: bool
    without_engine_check: bytes


class StatusTranslation:
    """Translates for one view. Earlier blocks are looked up: a source writes few different ones."""

    def __init__(self, collations: MariadbCollations) -> None:
        self._collations = collations
        self._title = collations.title
        self._known: dict[_BlockUse, TranslatedStatus] = {}

    def translate(self, status: bytes, text: bytes, *, is_dml: bool) -> TranslatedStatus:
        """Translate the variables of the statement `text`. `is_dml`: it changes rows, as a statement. Raises: Untranslatable."""
        takes_server_collation = not is_dml and makes_schema_by_server_collation(text)
        known = self._known.get((status, is_dml, takes_server_collation))
        microseconds = b""
        if known is None and status[-_MICROSECONDS_BYTES : -_MICROSECONDS_BYTES + 1] == b"\x80":
            # Known blocks are whole, so that the rest begins with a code.
            microseconds = status[1 - _MICROSECONDS_BYTES :]
            known = self._known.get((status[:-_MICROSECONDS_BYTES], is_dml, takes_server_collation))
        if known is None:
            fixed, microseconds = _split(status, text)
            use = encode_status(fixed), is_dml, takes_server_collation
            known = self._known.get(use)
            if known is None:
                known = self._translated(fixed, text, is_dml, takes_server_collation)
                if len(self._known) >= _MOST_HELD:
                    self._known.clear()
                self._known[use] = known
        if not is_plain(known.sql_mode):
            check_modes(known.sql_mode, text, self._title, is_dml=is_dml)
        if not microseconds:
            return known
        last = bytes((MICROSECONDS,)) + microseconds
        return known._replace(status=known.status + last, without_engine_check=known.without_engine_check + last)

    def user_variable(self, body: bytes) -> bytes:
        """Translate the body of a User_var event. Raises: Untranslatable."""
        return translate_user_variable(body, self._collations)

    def _translated(
        self, values: Mapping[int, bytes], text: bytes, is_dml: bool, takes_server_collation: bool
    ) -> TranslatedStatus:
        flags = int.from_bytes(values.get(FLAGS, b""), "little")
        if flags & ~_KNOWN_FLAGS:
            raise statement_stops.connection_flags_unknown(text, flags)
        mode = int.from_bytes(values.get(SQL_MODE, b""), "little")
        defaults = _pairs(values.get(MARIADB_COLLATIONS, b"\0"))
        made = {**values, FLAGS: (flags & _KEPT_FLAGS).to_bytes(4, "little")}
        made |= {SQL_MODE: mode_for_target(mode).to_bytes(8, "little")}
        client = connection = server = 0
        if CHARSETS in values:
            client, connection, server = _COLLATIONS.unpack(values[CHARSETS])
            made[CHARSETS] = _COLLATIONS.pack(
                self._collations.number_of_charset(client),
                self._number(connection, compares=is_dml),
                self._number(server, compares=takes_server_collation),
            )
        if DATABASE_COLLATION in values:
            number = int.from_bytes(values[DATABASE_COLLATION], "little")
            made[DATABASE_COLLATION] = self._number(number, compares=is_dml).to_bytes(2, "little")
        if int.from_bytes(values.get(LOCALE, b""), "little") > _LAST_LOCALE:
            raise statement_stops.locale_missing(self._title, text, int.from_bytes(values[LOCALE], "little"))
        made.pop(MARIADB_COLLATIONS, None)
        explicit = bool(flags & _EXPLICIT_TIMESTAMPS)
        default = self._collations.number_of_charset(defaults.get(_UTF8MB4, _UTF8MB4))
        made |= {EXPLICIT_TIMESTAMPS: bytes((explicit,)), UTF8MB4_DEFAULT: default.to_bytes(2, "little")}
        lenient = made | {SQL_MODE: without_engine_check(mode_for_target(mode)).to_bytes(8, "little")}
        return TranslatedStatus(
            status=encode_status(made),
            sql_mode=mode,
            charset=client,
            connection=connection,
            server=server,
            defaults=defaults,
            explicit_timestamps=explicit,
            if_exists=bool(flags & _IF_EXISTS),
            without_engine_check=encode_status(lenient),
        )

    def _number(self, number: int, *, compares: bool) -> int:
        return self._collations.number_of(number) if compares else self._collations.number_of_charset(number)


def makes_schema_by_server_collation(text: bytes) -> bool:
    """Return whether it is a CREATE DATABASE that names no character set: the new database has that of the server."""
    kind = kind_of(text)
    may_make = (kind.verb == "CREATE" and kind.thing == "DATABASE") or kind.purpose is Purpose.UNSURE
    return may_make and _NAMES_CHARSET.search(_NO_CLAUSE.sub(b" ", text)) is None


def _split(status: bytes, text: bytes) -> tuple[dict[int, bytes], bytes]:
    """Return the variables that are equal for many statements, and the microseconds, which are not. Raises: Untranslatable."""
    try:
        values = decode_status(status, MARIADB)
    except UnknownVariable as error:
        raise statement_stops.status_variable_unknown(text, error.code) from error
    except ProtocolError as error:
        raise statement_stops.status_damaged(text, str(error)) from error
    microseconds = values.get(MARIADB_MICROSECONDS, b"")
    return {code: value for code, value in values.items() if code not in _VARYING}, microseconds


def _pairs(value: bytes) -> Mapping[int, int]:
    return dict(_PAIR.iter_unpack(value[1:]))
