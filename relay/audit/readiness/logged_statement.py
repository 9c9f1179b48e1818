"""A statement of a binlog, cut into words that checks can look for. It never fails: text that no server understands is one symbol."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from protocol.sql.lexer import ReadAs, SqlText, TokenKind, UnsupportedSyntax, sql_text, with_variables
from protocol.sql.sql_words import SqlWords
from protocol.sql.statements.order_dependence import (
    OrderReason,
    limits_ordered_rows,
    may_depend_on_order,
    order_reasons,
)
from protocol.sql.statements.statement import StatementText
from protocol.sql.tables.ddl_parser import read_table_definition
from protocol.sql.tables.ddl_statement import CreateTable, TableDefinition

INSERT_ID: Final = 2
"""The seed of statements that assign AUTO_INCREMENT values."""
MOST_TOKENS: Final = 50_000
_CREATE_WORDS: Final = frozenset(("OR", "REPLACE", "TEMPORARY", "ONLINE", "OFFLINE", "IGNORE"))


class LoggedStatement(SqlWords):
    """A statement, or its digest text. `sql_mode` is that of its event; `loads` says that its event is an Execute_load_query.

    The content of comments for servers is read, whichever versions they are for: a replica may be of any. U+00A0 is a blank, as for
    clients of latin1.
    """

    def __init__(self, text: str, schema: str = "", sql_mode: int = 0, seeds: int = 0, loads: bool = False) -> None:
        read_as = ReadAs(sql_mode=sql_mode, any_server=True, blank="\xa0", is_lenient=True, most=MOST_TOKENS)
        read = sql_text(text, read_as)
        super().__init__(with_variables(read.tokens))
        self._read = read
        self.text = text
        self.schema = schema
        self.sql_mode = sql_mode
        self.seeds = seeds
        self.loads = loads
        self.too_long = not read.is_whole

    @cached_property
    def verb(self) -> str:
        """The first keyword."""
        index = 0
        while self.word(index) == "(":
            index += 1
        return self.word(index)

    @cached_property
    def object_kind(self) -> str:
        """The kind of object of CREATE, ALTER or DROP, like TABLE; "" for other statements."""
        if self.verb not in ("CREATE", "ALTER", "DROP"):
            return ""
        index = 1
        while self.word(index) in _CREATE_WORDS:
            index += 1
        return self.word(index)

    @property
    def defines_table(self) -> bool:
        """True if it is CREATE TABLE or ALTER TABLE."""
        return self.verb in ("CREATE", "ALTER") and self.object_kind == "TABLE"

    @cached_property
    def order_reasons(self) -> frozenset[OrderReason]:
        """The clauses by which its effect depends on the order of rows; none if its brackets cannot be read."""
        query = self._query
        makes_numbers = self.has("AUTO_INCREMENT") if self.defines_table else bool(self.seeds & INSERT_ID)
        try:
            return frozenset(order_reasons(query, makes_numbers=makes_numbers) if may_depend_on_order(query) else ())
        except UnsupportedSyntax:
            return frozenset()

    @cached_property
    def limits_ordered_rows(self) -> bool:
        """True if a LIMIT in it follows ORDER BY."""
        query = self._query
        try:
            return may_depend_on_order(query) and limits_ordered_rows(query)
        except UnsupportedSyntax:
            return False

    @cached_property
    def _query(self) -> StatementText:
        return _ReadStatement(self.text.encode(errors="replace"), self.schema, self.sql_mode, words=self._read)

    @property
    def changes_rows(self) -> bool:
        """True if it changes rows, and is no definition."""
        return self.verb in ("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "SELECT", "CALL", "DO", "WITH")

    def calls(self) -> Iterator[tuple[str, int]]:
        """Yield names, in upper case and not quoted, directly before a parenthesis, with their index."""
        for index in self.places("("):
            name = index - 1
            if name < 0 or self.words[name].kind is not TokenKind.WORD or self.word(name - 1) == ".":
                continue
            if self.words[name].stop == self.words[index].start:
                yield self.word(name), name

    def option(self, *words: str) -> Iterator[int]:
        """Yield the place of the value of a table's option: after its words, and = if there is one."""
        for index in self.places(*words):
            value = index + len(words)
            yield value + 1 if self.word(value) == "=" else value

    @cached_property
    def definition(self) -> TableDefinition | None:
        """The CREATE TABLE or ALTER TABLE that it is, as far as it is known; None for another statement, or one that cannot be read."""
        try:
            return read_table_definition(self._tokens, "", "?", self.sql_mode, "", lambda token: token.text)
        except UnsupportedSyntax:
            return None

    def elements(self) -> Iterator[tuple[int, int]]:
        """Yield the places [start, stop) of each column, key and constraint of a CREATE TABLE."""
        made = self.definition
        if isinstance(made, CreateTable) and made.written.listed is not None:
            for one in made.written.listed.elements:
                yield self.index_at(one.start), self.index_at(one.stop)


@dataclass
class _ReadStatement(StatementText):
    """A statement whose words are read already. Their places are those of characters."""

    words: SqlText = field(kw_only=True)

    def read_as(self, *, folds_rows: bool = False) -> SqlText:
        """Return its words."""
        return self.words
