"""Patterns of SCHEMA.TABLE with * and ?. A schema's or table's own name may contain a dot, so that each dot may be the separator."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

from protocol.sql.tables.source_table import TableName

_WILD: Final = re.compile(r"[*?[]")


def readings(text: str) -> Iterator[TableName]:
    """Yield (schema, table) for each dot of a text that may be the separator."""
    for dot in re.finditer(r"\.", text):
        yield text[: dot.start()], text[dot.end() :]


def names_table(patterns: Iterable[str], key: TableName) -> bool:
    """Return whether one of the patterns names this table."""
    return any(
        fnmatchcase(key[0], schema) and fnmatchcase(key[1], table)
        for one in patterns
        for schema, table in readings(one)
    )


def named_schemas(patterns: Iterable[str]) -> list[str] | None:
    """Return the schemas whose tables the patterns may name; None means any."""
    found = {schema for one in patterns for schema, _table in readings(one)}
    return None if any(_WILD.search(one) for one in found) else sorted(found)
