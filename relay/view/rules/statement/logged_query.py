"""A Query or Execute_load_query event of a group: its statement as text whose offsets are those of the bytes, and its setting."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from protocol.binlog.query import Query, read_query
from protocol.binlog.schema.column_charsets import charset_of_column, decode_text
from protocol.binlog.status_variables import CATALOG, CHARSETS, FLAGS, SQL_MODE, encode_status, known_values
from protocol.kernel.codes import EXECUTE_LOAD_QUERY_EVENT
from protocol.sql.byte_text import blank_of, byte_text, is_wide
from protocol.sql.kind import StatementKind, kind_of
from protocol.sql.lexer import ReadAs, SqlText, SqlToken, TokenKind, UnsupportedSyntax, sql_text
from protocol.sql.tables.ddl_parser import read_table_definition
from protocol.sql.tables.ddl_statement import TableDefinition

_NO_FOREIGN_KEY_CHECKS: Final = 1 << 26
# What BEGIN and COMMIT of our own take over of a statement: flags, sql_mode, catalog, character sets.
_TAKEN_OVER: Final = frozenset((FLAGS, SQL_MODE, CHARSETS, CATALOG))


@dataclass  # not frozen: there is one for each statement, and that costs
class LoggedQuery:
    """`head`: the body up to the text; `raw`: the statement's bytes. Raises of all methods: UnsupportedSyntax, where the text cannot
    be read."""

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
    def kind(self) -> StatementKind:
        """What kind of statement it is, by its first words."""
        return kind_of(self.raw, self.server_version)

    @cached_property
    def sql_mode(self) -> int:
        """Under which it ran."""
        return int.from_bytes(self._values.get(SQL_MODE, b""), "little")

    @property
    def foreign_key_checks(self) -> bool:
        """Whether it ran with foreign_key_checks = 1."""
        return not int.from_bytes(self._values.get(FLAGS, b""), "little") & _NO_FOREIGN_KEY_CHECKS

    @cached_property
    def text(self) -> str:
        """The statement, one character for each byte: names in it are read with `name`.

        Where characters may hold bytes below 0x80 (gbk …) the others are no ASCII, so what quotes and ends is found all the same.
        """
        return byte_text(self.raw, self._charset)

    def name(self, token: SqlToken) -> str:
        """The text of a name or a string. Raises: UnsupportedSyntax where it is not of its character set."""
        if token.text.isascii():
            return token.text
        charset = self._charset
        if is_wide(charset):
            raise UnsupportedSyntax("a name in a character set of several bytes")
        made = decode_text(token.text.encode("latin-1"), charset)
        if "\ufffd" in made:
            raise UnsupportedSyntax("a name that is not of its character set")
        return made

    @cached_property
    def tokens(self) -> list[SqlToken]:
        """Its words, with where they stand in `raw`; the last is of kind END. Raises: UnsupportedSyntax."""
        return self.read.tokens

    @cached_property
    def read(self) -> SqlText:
        """Its words and comments. Raises: UnsupportedSyntax."""
        return self.read_as()

    def read_as(self, *, folds_rows: bool = False) -> SqlText:
        """The same; folds_rows: see `ReadAs`. Raises: UnsupportedSyntax."""
        read_as = ReadAs(self.server_version, self.sql_mode, folds_rows=folds_rows, blank=blank_of(self._charset))
        return sql_text(self.text, read_as)

    @cached_property
    def definition(self) -> TableDefinition | None:
        """The CREATE TABLE or ALTER TABLE that it is, as far as it is known; None: it is neither. Raises: UnsupportedSyntax."""
        return read_table_definition(self.tokens, self.text, self.schema, self.sql_mode, self.server_version, self.name)

    def with_text(self, raw: bytes) -> bytes:
        """The body of the event with another statement."""
        return self.head + raw

    def control(self, text: bytes) -> bytes:
        """The body of a Query for BEGIN or COMMIT of the same connection, in the same database, under the same modes."""
        status = encode_status({code: value for code, value in self._values.items() if code in _TAKEN_OVER})
        return Query(self.thread_id, 0, 0, status, self.schema_bytes, text).encode()

    @property
    def _charset(self) -> str | None:
        return charset_of_column(int.from_bytes(self._values.get(CHARSETS, b"")[:2], "little"))

    @cached_property
    def _values(self) -> dict[int, bytes]:
        return known_values(self.status)


def read_logged_query(event_type: int, body: bytes, post_lengths: bytes, server_version: str) -> LoggedQuery:
    """The statement of a Query or Execute_load_query event. `post_lengths`: by type code. Raises: Malformed."""
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


def is_word(token: SqlToken, *words: str) -> bool:
    """Whether the token is one of these keywords, not quoted."""
    return token.kind is TokenKind.WORD and token.upper in words
