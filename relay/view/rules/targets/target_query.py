"""A Query event of a newer source, as a target reads it."""

import struct
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.query import Query, read_query
from protocol.binlog.status_variables import (
    CATALOG,
    CHARSETS,
    DATABASE_COLLATION,
    EXPLICIT_TIMESTAMPS,
    FLAGS,
    SQL_MODE,
    UTF8MB4_DEFAULT,
    UnknownVariable,
    decode_status,
    encode_status,
    known_values,
)
from protocol.errors import ProtocolError
from protocol.sql.kind import Purpose, kind_of
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.ddl_statement import TableOption
from relay.view.rules.targets.known.collation_map import CollationMap
from relay.view.rules.targets.known.target import Target
from relay.view.rules.targets.known.target_collations import GENERAL
from relay.view.rules.targets.statement.charset_words import CharsetWords, assigns
from relay.view.rules.targets.statement.new_syntax import check_syntax
from relay.view.rules.targets.statement.source_statement import SourceStatement
from relay.view.rules.targets.statement.statement_differences import check_differences, check_value
from relay.view.rules.targets.statement.statement_kind import (
    is_plain_definition,
    only_counts,
    selects_defined_columns,
    selects_into_new_table,
)
from relay.view.rules.targets.statement.table_clauses import alters, check_clauses, check_schema_options, makes_index
from relay.view.rules.targets.statement.timestamp_columns import ZERO_DATE_MODES, write_out_timestamps
from relay.view.stops import definition_stops, statement_stops

_CHARSETS: Final = struct.Struct("<HHH")
_NO_CHARSETS: Final = _CHARSETS.pack(33, 33, 33)
INTERPRET_UTF8_AS_UTF8MB4: Final = 1 << 33
_FIRST_WITH_0900: Final = 80_001
_STRING_RESULT: Final = 0
_LONGEST_TIME: Final = 200
_PLAIN: Final = frozenset((b"BEGIN", b"COMMIT", b"ROLLBACK"))
_HOW: Final = (("ALGORITHM", ("INSTANT", "INPLACE")), ("LOCK", ("NONE", "SHARED")))


class TargetQuery:
    """The parts of the event, and their translation. All methods raise Untranslatable where that is not sound.

    `source` is its version as 90704. `explicit_timestamps` applies where the event does not say it.
    """

    def __init__(
        self,
        body: bytes,
        event_type: int,
        source: int,
        target: Target,
        collations: CollationMap,
        explicit_timestamps: bool,
    ) -> None:
        try:
            self.query = read_query(event_type, body, 0)
            self._status = decode_status(self.query.status_variables)
        except UnknownVariable as error:
            raise statement_stops.status_variable_unknown(body[-60:], error.code) from error
        except ProtocolError as error:
            raise statement_stops.not_parsed(body[-60:], f"the event is damaged ({error})") from error
        self._event_type = event_type
        self._source = source
        self._target = target
        self._collations = collations
        self._explicit = bool(self._number(EXPLICIT_TIMESTAMPS, explicit_timestamps))
        self._mode = self._number(SQL_MODE, 0)
        version = f"{source // 10_000}.{source // 100 % 100}.{source % 100}"
        self.purpose = kind_of(self.query.text, version).purpose
        self.statement = self._read() if self.query.text not in _PLAIN else None

    def _read(self) -> SourceStatement:
        text = self.query.text
        client = _CHARSETS.unpack(self._status.get(CHARSETS, _NO_CHARSETS))[0]
        try:
            return SourceStatement(text, client, self._mode, self._source, self._target)
        except UnsupportedSyntax as error:
            raise statement_stops.not_parsed(text, str(error)) from error

    @property
    def is_account_statement(self) -> bool:
        """True for CREATE USER, GRANT and the like."""
        return self.purpose is Purpose.ACCOUNTS

    @property
    def only_counts(self) -> bool:
        """True if it gathers statistics that the target does not have."""
        return self._target.version < (8, 0) and self.statement is not None and only_counts(self.statement)

    @property
    def makes_table_with_rows(self) -> bool:
        """True if rows of the same transaction follow this definition (CREATE TABLE ... SELECT, 8.0.21 and later)."""
        return self._target.version < (8, 0) and self._atomic is not None

    @property
    def selects_into_new_table(self) -> bool:
        """True if it is CREATE TABLE ... SELECT, as a statement, and the target has no atomic definitions."""
        return self._target.version < (8, 0) and self.statement is not None and selects_into_new_table(self.statement)

    @property
    def _atomic(self) -> TableOption | None:
        """The START TRANSACTION of a CREATE TABLE whose rows follow (CREATE TABLE ... SELECT, 8.0.21 and later)."""
        made = self.statement.definition if self.statement is not None else None
        return made.written.option("START TRANSACTION") if made is not None else None

    def translated(self) -> bytes:
        """Return the event's body for the target."""
        if self.statement is None or self.purpose is Purpose.CONTROL:
            return self.query._replace(status_variables=self._variables(self._mode, free=True)).encode()
        query = self.query
        mode = self._mode
        self._check_unknown_modes()
        check_clauses(self.statement, query.text, self._source, self._target)
        check_syntax(self.statement, query.text, self._source, self._target)
        if self._target.version < (8, 0):
            mode = self._rewrite(self.statement)
        try:
            query = query.with_text(self.statement.result)
        except ProtocolError as error:
            raise statement_stops.not_parsed(query.text, str(error)) from error
        return query._replace(status_variables=self._variables(mode, free=False)).encode()

    def _check_unknown_modes(self) -> None:
        """Check that the statement does not depend on bits of its sql_mode that are unknown to the target, which does not get them."""
        unknown = self._mode & ~self._target.sql_modes
        if unknown & INTERPRET_UTF8_AS_UTF8MB4 and b"utf8" in self.query.text.lower():
            raise statement_stops.sql_mode_missing(self._target.title, self.query.text, "INTERPRET_UTF8_AS_UTF8MB4")
        if unknown >= INTERPRET_UTF8_AS_UTF8MB4 << 1:
            raise statement_stops.sql_mode_missing(
                self._target.title, self.query.text, f"number {unknown.bit_length() - 1}"
            )

    def _rewrite(self, statement: SourceStatement) -> int:
        """Check and change the statement for a target before 8.0; return the sql_mode that it then needs."""
        text = self.query.text
        default = self._number(UTF8MB4_DEFAULT, 255 if self._source >= _FIRST_WITH_0900 else GENERAL)
        if statement.word(1) in ("DATABASE", "SCHEMA"):
            check_schema_options(statement, text, self._target)
        if self._atomic is not None:
            statement.replace(self._atomic.start, self._atomic.stop, "")
        elif selects_into_new_table(statement) and not selects_defined_columns(statement):
            raise definition_stops.create_select_statement(text, self._target.title)
        if not is_plain_definition(statement) or (alters(statement) and self._mode > self._target.sql_modes):
            check_differences(statement, text, self._mode, self._source, self._target)
        CharsetWords(statement, text, default, self._collations, self._target).translate()
        self._without_algorithm(statement)
        if self._target.highest_status >= EXPLICIT_TIMESTAMPS:
            return self._mode
        if self._explicit:
            write_out_timestamps(statement)
        # the source accepted the definition: zero dates as defaults in it come from us
        return self._mode & ~ZERO_DATE_MODES if is_plain_definition(statement) else self._mode

    def _without_algorithm(self, statement: SourceStatement) -> None:
        """Let the target choose how a table is altered, and what may run meanwhile: older ones refuse more (1800, 1846)."""
        if not (alters(statement) or makes_index(statement) or statement.starts("DROP", "INDEX")):
            return
        for option, values in _HOW:
            for index in statement.places(option):
                value = index + 1 + (statement.word(index + 1) == "=")
                if statement.word(value) in values:
                    word = statement.words[value]
                    statement.replace(word.start, word.stop, "DEFAULT")

    def _number(self, code: int, missing: int) -> int:
        """Return the value of a status variable."""
        value = self._status.get(code)
        return missing if value is None else int.from_bytes(value, "little")

    def _variables(self, mode: int, *, free: bool) -> bytes:
        """Return the variables that the target reads. `free`: nothing is compared, whatever the collations are."""
        made = {}
        for code, value in self._status.items():
            if code > self._target.highest_status:
                continue
            if code == SQL_MODE:
                made[code] = (mode & self._target.sql_modes).to_bytes(8, "little")
            elif code == CHARSETS:
                made[code] = self._charsets(value, free)
            elif code == DATABASE_COLLATION:
                # LOAD DATA: texts from the file have it, where the statement names no other set
                of = self._collations.of_comparison if self._loads_and_compares else self._collations.of_charset
                number = of(int.from_bytes(value, "little"), self.query.text)
                made[code] = number.to_bytes(2, "little")
            else:
                made[code] = value
        return encode_status(made)

    @property
    def _loads_and_compares(self) -> bool:
        """True for LOAD DATA with values that are computed from those of the file."""
        loads = self._event_type == EventType.EXECUTE_LOAD_QUERY
        return loads and self.statement is not None and assigns(self.statement)

    def _charsets(self, value: bytes, free: bool) -> bytes:
        """Return the collations of the client (only its set matters), of the connection (it compares), and of new databases."""
        client, connection, server = _CHARSETS.unpack(value)
        text = self.query.text
        if free or self.statement is None:
            return _CHARSETS.pack(*map(self._collations.of_nothing, (client, connection, server)))
        only_loads = self._event_type == EventType.EXECUTE_LOAD_QUERY and not self._loads_and_compares
        if is_plain_definition(self.statement) or only_loads:
            connection = self._collations.of_nothing(connection)
        else:
            connection = self._collations.of_comparison(connection, text)
        if self.statement.starts("CREATE", "DATABASE") or self.statement.starts("CREATE", "SCHEMA"):
            names_one = any(self.statement.has(*words) for words in (("CHARACTER", "SET"), ("CHARSET",), ("COLLATE",)))
            if not names_one:
                server = self._collations.of_comparison(server, text)
        return _CHARSETS.pack(
            self._collations.of_charset(client, text), connection, self._collations.of_nothing(server)
        )


def statement_like(like: Query, text: bytes, target: Target) -> bytes:
    """Return the body of a Query event with `text`, such as BEGIN, in the session of `like`."""
    collations = CollationMap({}, target)
    kept = {}
    for code, value in known_values(like.status_variables).items():
        if code == CHARSETS:
            kept[code] = _CHARSETS.pack(*map(collations.of_nothing, _CHARSETS.unpack(value)))
        elif code == SQL_MODE:
            number = int.from_bytes(value, "little") & target.sql_modes
            kept[code] = number.to_bytes(8, "little")
        elif code in (FLAGS, CATALOG):
            kept[code] = value
    return Query(like.thread_id, 0, 0, encode_status(kept), like.schema, text).encode()


def user_variable_for(body: bytes, source: int, collations: CollationMap, target: Target) -> bytes:
    """Return a User_var event's body with a collation that the target has. `source` is the version as 90704.

    Layout: name length u32, name | is NULL u8 | where it is not: type u8, collation u32, length u32, value, flags.
    Raises: Untranslatable.
    """
    at = 4 + int.from_bytes(body[:4], "little") + 2
    collation = int.from_bytes(body[at : at + 4], "little")
    if len(body) < at + 4:
        return body
    name = b"user variable @" + body[4 : at - 2]
    if body[at - 1] == _STRING_RESULT:
        length = int.from_bytes(body[at + 4 : at + 8], "little")
        check_value(body[at + 8 : at + 8 + min(length, _LONGEST_TIME)].decode("latin-1"), name, source, target)
    return body[:at] + collations.of_comparison(collation, name).to_bytes(4, "little") + body[at + 4 :]
