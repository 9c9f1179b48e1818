"""Patterns of SCHEMA.TABLE with * and ?. A schema's or table's own name may have a dot, so that each dot may be the one between them."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

from protocol.sql.tables.source_table import TableName

_WILD: Final = re.compile(r"[*?[]")


def readings(text: str) -> Iterator[TableName]:
    """(schema, table) for each dot of a text that may be the one between them."""
    for dot in re.finditer(r"\.", text):
        yield text[: dot.start()], text[dot.end() :]


def names_table(patterns: Iterable[str], key: TableName) -> bool:
    """Whether one of the patterns is of this table."""
    return any(
        fnmatchcase(key[0], schema) and fnmatchcase(key[1], table)
        for one in patterns
        for schema, table in readings(one)
    )


def named_schemas(patterns: Iterable[str]) -> list[str] | None:
    """The schemas of which the patterns may name tables; None: any."""
    found = {schema for one in patterns for schema, _table in readings(one)}
    return None if any(_WILD.search(one) for one in found) else sorted(found)
