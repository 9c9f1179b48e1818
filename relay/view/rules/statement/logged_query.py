"""A Query or Execute_load_query event of a group."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from protocol.binlog.query import Query, read_query
from protocol.binlog.schema.column_charsets import charset_of_column
from protocol.binlog.status_variables import CATALOG, CHARSETS, FLAGS, SQL_MODE, encode_status, known_values
from protocol.kernel.codes import EXECUTE_LOAD_QUERY_EVENT
from protocol.sql.expressions.statement_shape import shape_of
from protocol.sql.lexer import SqlToken, TokenKind
from protocol.sql.sql_mode import STRICT
from protocol.sql.statements.statement import SqlStatement

_FIXED: Final = 13
"""The bytes of a Query event before its status variables."""
_NO_FOREIGN_KEY_CHECKS: Final = 1 << 26
# The variables of a statement that our own BEGIN and COMMIT copy: flags, sql_mode, catalog, character sets.
_TAKEN_OVER: Final = frozenset((FLAGS, SQL_MODE, CHARSETS, CATALOG))


class RunsAs(NamedTuple):
    """How replicas must run a statement. `lenient`: without strict mode. `unchecked`: with foreign_key_checks = 0."""

    lenient: bool = False
    unchecked: bool = False


AS_LOGGED: Final = RunsAs()


@dataclass  # not frozen: there is one for each statement, and that costs time
class LoggedQuery(SqlStatement):
    """The statement of an event; `head` is the body up to the text."""

    head: bytes
    raw: bytes
    thread_id: int
    error: int
    schema_bytes: bytes
    status: bytes
    server_version: str
    is_load: bool = False

    @property
    def schema(self) -> str:
        """The default database."""
        return self.schema_bytes.decode("utf-8", "backslashreplace")

    @cached_property
    def sql_mode(self) -> int:
        """The sql_mode under which it ran."""
        return int.from_bytes(self._values.get(SQL_MODE, b""), "little")

    @cached_property
    def shape(self) -> str | None:
        """Its shape, by which rules remember what they found; None: it has none."""
        return shape_of(self.text, self.sql_mode)

    @property
    def foreign_key_checks(self) -> bool:
        """True if it ran with foreign_key_checks = 1."""
        return not int.from_bytes(self._values.get(FLAGS, b""), "little") & _NO_FOREIGN_KEY_CHECKS

    def with_text(self, raw: bytes) -> bytes:
        """Return the body of the event with another statement."""
        return self.head + raw

    def head_as(self, runs: RunsAs) -> bytes:
        """Return `head` for a Query event that replicas run so."""
        if runs == AS_LOGGED:
            return self.head
        at = self.head.index(self.status, _FIXED)
        return self.head[:at] + status_as(self.status, runs) + self.head[at + len(self.status) :]

    def control(self, text: bytes) -> bytes:
        """Return the body of a Query for BEGIN or COMMIT of the same connection, in the same database, under the same modes."""
        status = encode_status({code: value for code, value in self._values.items() if code in _TAKEN_OVER})
        return Query(self.thread_id, 0, 0, status, self.schema_bytes, text).encode()

    @cached_property
    def charset(self) -> str | None:
        """The character set of the client that wrote it."""
        return charset_of_column(int.from_bytes(self._values.get(CHARSETS, b"")[:2], "little"))

    @cached_property
    def _values(self) -> dict[int, bytes]:
        return known_values(self.status)


def read_logged_query(event_type: int, body: bytes, post_lengths: bytes, server_version: str) -> LoggedQuery:
    """Return the statement of a Query or Execute_load_query event; `post_lengths` are by type code. Raises: Malformed."""
    query = read_query(event_type, body, post_lengths[event_type])
    return LoggedQuery(
        head=body[: len(body) - len(query.text)],
        raw=query.text,
        thread_id=query.thread_id,
        error=query.error_code,
        schema_bytes=query.schema,
        status=query.status_variables,
        server_version=server_version,
        is_load=event_type == EXECUTE_LOAD_QUERY_EVENT,
    )


def status_as(status: bytes, runs: RunsAs) -> bytes:
    """Return the status variables of a statement that replicas run so."""
    if runs == AS_LOGGED:
        return status
    values = known_values(status)
    unknown = status[len(encode_status(values)) :]
    if runs.lenient:
        mode = int.from_bytes(values.get(SQL_MODE, b""), "little") & ~STRICT
        values = {**values, SQL_MODE: mode.to_bytes(8, "little")}
    if runs.unchecked:
        flags = int.from_bytes(values.get(FLAGS, b""), "little") | _NO_FOREIGN_KEY_CHECKS
        values = {**values, FLAGS: flags.to_bytes(4, "little")}
    return encode_status(values) + unknown


def is_word(token: SqlToken, *words: str) -> bool:
    """Return whether the token is one of these keywords, not quoted."""
    return token.kind is TokenKind.WORD and token.upper in words
