"""Whether a statement changes rows of a table by REPLACE, as its text tells: an update in the binlog may be either."""

import re
from enum import Enum
from typing import Final

from protocol.sql.kind import kind_of
from protocol.sql.tables.source_table import TableName
from relay.feed.statements.statement_text import BLANKS, STRINGS

_NAME: Final = r"(`(?>(?:[^`]|``)+)`|[\w$\x80-\U0010ffff]++)"
_TABLE: Final = rf"{_NAME}(?:{BLANKS}\.{BLANKS}{_NAME})?"
_FLAGS: Final = re.DOTALL | re.IGNORECASE
HEAD_CHARACTERS: Final = 1 << 12
"""Of a statement so many are looked at: values come behind the names."""
_INTO: Final = re.compile(
    rf"{BLANKS}REPLACE\b{BLANKS}(?>(?:(?:LOW_PRIORITY|DELAYED)\b{BLANKS})?)(?>(?:INTO\b{BLANKS})?){_TABLE}", _FLAGS
)
_LOADED: Final = re.compile(rf"\bREPLACE\b{BLANKS}INTO\b{BLANKS}TABLE\b{BLANKS}{_TABLE}", _FLAGS)


class RowsEffect(Enum):
    """What a statement does to rows that it meets."""

    REPLACED = "replaced"
    """All columns that it does not name get their defaults."""
    UPDATED = "updated"
    """Columns that it does not name stay as they are."""
    UNSURE = "unsure"
    """The text is not there, or not understood."""


def rows_effect(text: str | None, table: TableName, *, alone: bool) -> RowsEffect:
    """What a statement whose rows of `table` were updated did to them, if no trigger and no function did.

    alone: no table of that name in another schema has rows in its transaction.
    """
    if text is None:
        return RowsEffect.UNSURE
    head = text[:HEAD_CHARACTERS]
    verb = kind_of(head.encode()).verb
    found = _LOADED.search(STRINGS.sub("''", head)) if verb == "LOAD" else _INTO.match(head)
    if found is not None:
        return RowsEffect.REPLACED if _is(found[1], found[2], table, alone=alone) else RowsEffect.UNSURE
    return RowsEffect.UPDATED if verb in ("UPDATE", "INSERT", "DELETE") else RowsEffect.UNSURE


def _is(first: str, second: str | None, table: TableName, *, alone: bool) -> bool:
    """Whether one or two names mean the table; without a schema they may mean another of that name."""
    names = [_unquoted(one).lower() for one in (first, second) if one]
    schema, name = (one.lower() for one in table)
    return names == [schema, name] or (alone and names == [name])


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name[0] == "`" else name
