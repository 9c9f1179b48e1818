"""The clause REFERENCES, in which a definition of a foreign key or a column names the rows that it refers to."""

from dataclasses import dataclass
from typing import Final

from protocol.sql.lexer import SqlToken, TokenKind, UnsupportedSyntax
from protocol.sql.tables.source_table import TableName
from protocol.sql.tables.token_cursor import TokenCursor

_TWO_WORDS: Final = frozenset(("SET", "NO"))
"""The first words of SET NULL, SET DEFAULT and NO ACTION."""


@dataclass(frozen=True, slots=True)
class ReferencesClause:
    """The clause as it is written; ServerDialect contains its meaning for servers.

    `tokens` are all of its own. `columns` are names, in the order of the foreign key's; none: the parent's primary key. `on_delete`,
    `on_update` are in upper case, "" if missing. `before_match` is the part before MATCH, as a clause of its own; None: it has no
    MATCH.
    """

    tokens: tuple[SqlToken, ...]
    parent: TableName
    columns: tuple[SqlToken, ...]
    on_delete: str
    on_update: str
    before_match: "ReferencesClause | None" = None

    @property
    def from_match(self) -> tuple[SqlToken, ...]:
        """MATCH and what follows it; empty: it has none."""
        return self.tokens[len(self.before_match.tokens) :] if self.before_match is not None else ()


def read_references(cursor: TokenCursor, schema: str) -> ReferencesClause:
    """Read REFERENCES table (columns) MATCH … ON DELETE … ON UPDATE …; the cursor is after it then.

    `schema` is that of the table with the key, and not the connection's: a parent without one is in it. Raises: UnsupportedSyntax.
    """
    start = cursor.at
    cursor.expect("REFERENCES")
    table = cursor.name()
    parent = (table, cursor.name()) if cursor.accept(".") else (schema, table)
    columns = _columns(cursor) if cursor.word() == "(" else ()
    on_delete, on_update = "", ""
    before_match: ReferencesClause | None = None
    while True:
        if cursor.accept("MATCH"):
            before = tuple(cursor.tokens[start : cursor.at - 1]) if before_match is None else ()
            cursor.take()
            before_match = before_match or ReferencesClause(before, parent, columns, on_delete, on_update)
        elif cursor.accept("ON", "DELETE"):
            on_delete = _action(cursor)
        elif cursor.accept("ON", "UPDATE"):
            on_update = _action(cursor)
        else:
            tokens = tuple(cursor.tokens[start : cursor.at])
            return ReferencesClause(tokens, parent, columns, on_delete, on_update, before_match)


def _columns(cursor: TokenCursor) -> tuple[SqlToken, ...]:
    cursor.expect("(")
    found = []
    while True:
        token = cursor.take()
        if token.kind not in (TokenKind.WORD, TokenKind.NAME):
            raise UnsupportedSyntax(f"{token.text} in place of a column")
        found.append(token)
        if cursor.accept(")"):
            return tuple(found)
        cursor.expect(",")


def _action(cursor: TokenCursor) -> str:
    first = cursor.take().upper
    return f"{first} {cursor.take().upper}" if first in _TWO_WORDS else first
