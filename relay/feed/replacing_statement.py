"""Whether a statement changes rows of a table by REPLACE, as its text tells: an update in the binlog may be either."""

import re
from enum import Enum
from typing import Final

from relay.feed.statement_text import BLANKS, STRINGS
from relay.schema_history.tables.source_table import TableName

_NAME: Final = r"(`(?:[^`]|``)++`|[\w$\x80-\U0010ffff]++)"
_TABLE: Final = rf"{_NAME}(?:{BLANKS}\.{BLANKS}{_NAME})?"
_FLAGS: Final = re.DOTALL | re.IGNORECASE
HEAD_CHARACTERS: Final = 1 << 12
"""Of a statement so many are looked at: values come behind the names."""
_INTO: Final = re.compile(
    rf"{BLANKS}(REPLACE|INSERT)\b{BLANKS}(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE)\b{BLANKS})*+(?:INTO\b{BLANKS})?+{_TABLE}",
    _FLAGS,
)
_LOAD: Final = re.compile(rf"{BLANKS}LOAD\b", _FLAGS)
_LOADED: Final = re.compile(rf"\bREPLACE\b{BLANKS}INTO\b{BLANKS}TABLE\b{BLANKS}{_TABLE}", _FLAGS)
_UPDATE: Final = re.compile(rf"{BLANKS}UPDATE\b(.*?)(?<![\w$`.])SET\b", _FLAGS)
_TARGETS: Final = re.compile(
    rf"(?:^|,|\(|\b(?:JOIN|LOW_PRIORITY|IGNORE)\b){BLANKS}(?!(?:LOW_PRIORITY|IGNORE)\b){_TABLE}", _FLAGS
)


class RowsEffect(Enum):
    """What a statement does to rows that it meets."""

    REPLACED = "replaced"
    """All columns that it does not name get their defaults."""
    UPDATED = "updated"
    """Columns that it does not name stay as they are."""
    UNSURE = "unsure"
    """A trigger may have done it, or the text is not there, or not understood."""


def rows_effect(text: str | None, table: TableName, *, alone: bool) -> RowsEffect:
    """What a statement whose rows of `table` were updated did to them. `alone`: no table of that name in another schema has rows in its transaction.

    A statement that names another table changed this one by a trigger or a function, which its text does not tell.
    """
    if text is None:
        return RowsEffect.UNSURE
    head = text[:HEAD_CHARACTERS]
    match = _INTO.match(head)
    if match is not None:
        if not _is(match[2], match[3], table, alone=alone):
            return RowsEffect.UNSURE
        return RowsEffect.REPLACED if match[1].upper() == "REPLACE" else RowsEffect.UPDATED
    if _LOAD.match(head) is not None:
        match = _LOADED.search(STRINGS.sub("''", head))
        replaces = match is not None and _is(match[1], match[2], table, alone=alone)
        return RowsEffect.REPLACED if replaces else RowsEffect.UNSURE
    match = _UPDATE.match(STRINGS.sub("''", head))
    if match is not None and any(
        _is(first, second, table, alone=alone) for first, second in _TARGETS.findall(match[1])
    ):
        return RowsEffect.UPDATED
    return RowsEffect.UNSURE


def _is(first: str, second: str | None, table: TableName, *, alone: bool) -> bool:
    """Whether one or two names mean the table; without a schema they may mean another of that name."""
    names = [_unquoted(one).lower() for one in (first, second) if one]
    schema, name = (one.lower() for one in table)
    return names == [schema, name] or (alone and names == [name])


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name[0] == "`" else name
