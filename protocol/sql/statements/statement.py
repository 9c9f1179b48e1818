"""A statement as text whose offsets are those of its bytes, and the setting under which a server reads it."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

from protocol.binlog.schema.column_charsets import decode_text
from protocol.sql.byte_text import blank_of, byte_text, is_wide
from protocol.sql.kind import StatementKind, kind_of
from protocol.sql.lexer import ReadAs, SqlText, SqlToken, UnsupportedSyntax, sql_text
from protocol.sql.tables.ddl_parser import read_table_definition
from protocol.sql.tables.ddl_statement import TableDefinition


class SqlStatement:
    """`raw`: its bytes. `server_version`: of the server that ran it. Raises of all methods: UnsupportedSyntax, where the text cannot be
    read."""

    raw: bytes
    server_version: str

    @property
    @abstractmethod
    def schema(self) -> str:
        """The default database."""

    @property
    @abstractmethod
    def sql_mode(self) -> int:
        """Under which it ran."""

    @property
    @abstractmethod
    def charset(self) -> str | None:
        """Of the client that wrote it; None: it is not known."""

    @cached_property
    def kind(self) -> StatementKind:
        """What kind of statement it is, by its first words."""
        return kind_of(self.raw, self.server_version)

    @cached_property
    def text(self) -> str:
        """The statement, one character for each byte: names in it are read with `name`.

        Where characters may hold bytes below 0x80 (gbk …) the others are no ASCII, so what quotes and ends is found all the same.
        """
        return byte_text(self.raw, self.charset)

    def name(self, token: SqlToken) -> str:
        """The text of a name or a string. Raises: UnsupportedSyntax where it is not of its character set."""
        if token.text.isascii():
            return token.text
        charset = self.charset
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
        read_as = ReadAs(self.server_version, self.sql_mode, folds_rows=folds_rows, blank=blank_of(self.charset))
        return sql_text(self.text, read_as)

    @cached_property
    def definition(self) -> TableDefinition | None:
        """The CREATE TABLE or ALTER TABLE that it is, as far as it is known; None: it is neither. Raises: UnsupportedSyntax."""
        return read_table_definition(self.tokens, self.text, self.schema, self.sql_mode, self.server_version, self.name)


@dataclass
class StatementText(SqlStatement):
    """A statement whose setting is given. The defaults are those of a client in UTF-8."""

    raw: bytes
    schema: str = ""
    sql_mode: int = 0
    server_version: str = ""
    charset: str | None = "utf8mb4"
    is_head: bool = False
    """Its end may be missing, and it is not known which server ran it: comments for any server are read."""

    def read_as(self, *, folds_rows: bool = False) -> SqlText:
        """The same; folds_rows: see `ReadAs`. Raises: UnsupportedSyntax."""
        if not self.is_head:
            return super().read_as(folds_rows=folds_rows)
        return sql_text(self.text, ReadAs(sql_mode=self.sql_mode, any_server=True, is_lenient=True))
