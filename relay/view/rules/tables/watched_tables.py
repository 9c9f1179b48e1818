"""The names of tables by which a plain statement is selected for the rules: all others are copied at full speed."""

import functools
from typing import Final

from protocol.kernel.codes import VIEW_DELETE, VIEW_REPLACE, VIEW_WATCHED
from protocol.sql.tables.source_table import TableName

BESIDE_OTHERS: Final = 1
"""The flag of names that count in a transaction with more than one statement."""
ALWAYS: Final = 2
_BASIS: Final = 2166136261
_PRIME: Final = 16777619


def watched_names(beside_others: list[TableName], always: list[TableName], *, every: bool = False) -> bytes:
    """Return the argument of `ViewCopy.watch`. Names that are not in ASCII are always looked at. `every`: so is every statement, but
    not the rows of all tables.
    """
    table = bytearray([ALWAYS if every else 0]) * VIEW_WATCHED
    for names, mark in ((beside_others, BESIDE_OTHERS), (always, ALWAYS)):
        for _schema, name in names:
            table[_number(name)] |= mark
    return bytes(table)


def watched_removals(replaced: list[TableName] | None, deleted: list[TableName]) -> bytes:
    """Return the argument of `ViewCopy.watch_removals`: the tables whose REPLACE (None: all) and whose DELETE is looked at."""
    table = bytearray(VIEW_WATCHED) if replaced is not None else bytearray([VIEW_REPLACE]) * VIEW_WATCHED
    for names, mark in ((replaced or [], VIEW_REPLACE), (deleted, VIEW_DELETE)):
        for _schema, name in names:
            table[_number(name)] |= mark
    return bytes(table)


@functools.lru_cache(maxsize=1 << 16)
def _number(name: str) -> int:
    """Return FNV-1a over the name in lower case."""
    number = _BASIS
    for byte in name.lower().encode("utf-8", "backslashreplace"):
        number = ((number ^ byte) * _PRIME) & 0xFFFFFFFF
    return number & (VIEW_WATCHED - 1)
