"""The decision, by its text, whether a statement changes rows of a table by REPLACE: an update in the binlog may be either."""

from enum import Enum
from typing import Final

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.statements.named_tables import load_replaces, written_tables
from protocol.sql.statements.order_dependence import verb_of
from protocol.sql.statements.statement import StatementText
from protocol.sql.tables.source_table import TableName
from relay.source_tables.names import in_lower_case

HEAD_CHARACTERS: Final = 1 << 12
"""So many characters of a statement are examined: values come after the names."""


class RowsEffect(Enum):
    """The effect of a statement on rows that it meets."""

    REPLACED = "replaced"
    """All columns that it does not name get their defaults."""
    UPDATED = "updated"
    """Columns that it does not name stay as they are."""
    UNSURE = "unsure"
    """The text is missing, or not understood."""


def rows_effect(text: str | None, table: TableName, *, alone: bool) -> RowsEffect:
    """Return the effect of a statement on the updated rows of `table`, if no trigger and no function caused it.

    `alone` says that no table of that name in another schema has rows in its transaction.
    """
    if text is None:
        return RowsEffect.UNSURE
    begin = text[:HEAD_CHARACTERS].replace("\xa0", " ")  # a blank for clients of latin1
    head = StatementText(begin.encode(), table[0] if alone else "", is_head=True)
    try:
        verb = verb_of(head)
        if verb in ("UPDATE", "INSERT", "DELETE"):
            return RowsEffect.UPDATED
        replaces = verb == "REPLACE" or (verb == "LOAD" and load_replaces(head))
        named = replaces and in_lower_case(written_tables(head)[0]) == in_lower_case(table)
    except UnsupportedSyntax:
        named = False
    return RowsEffect.REPLACED if named else RowsEffect.UNSURE
