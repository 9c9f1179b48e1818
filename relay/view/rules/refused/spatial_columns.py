"""Spatial columns as newer servers refuse them: in unique keys, by a prefix in any key, and NOT NULL in a table that may have rows."""

from itertools import pairwise
from typing import Final

from protocol.sql.sql_words import SqlWords
from protocol.sql.tables.ddl_statement import AlterTable, Element, TableDefinition

SPATIAL: Final = frozenset((
    "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION",
))  # fmt: skip
_KEY_WORDS: Final = frozenset(("KEY", "PRIMARY", "UNIQUE"))
_UNIQUE: Final = ("PRIMARY KEY and UNIQUE over spatial columns", 3728)
_PREFIX: Final = ("a key over a part of a spatial column", 1089)
_NOT_NULL: Final = ("a spatial column that is NOT NULL in a table that may have rows", 1138)


def refused_spatial(words: SqlWords, made: TableDefinition) -> tuple[str, int] | None:
    """Return what MySQL 8.0 and later refuses of spatial columns, with its error; None: it takes them."""
    columns = set()
    for element in made.written.elements:
        if not is_spatial(words, element):
            continue
        at = words.index_at(element.type_at)
        columns.add(words.name(at - 1))
        found = [words.word(index) for index in range(at, words.index_at(element.stop))]
        if not _KEY_WORDS.isdisjoint(found):
            return _UNIQUE
        if isinstance(made, AlterTable) and ("NOT", "NULL") in pairwise(found):
            return _NOT_NULL
    for key in made.written.keys:
        parts = [part for part in key.parts if part.name.lower() in columns]
        if parts and key.kind in ("PRIMARY", "UNIQUE"):
            return _UNIQUE
        if any(part.prefix is not None for part in parts):
            return _PREFIX
    return None


def is_spatial(words: SqlWords, element: Element) -> bool:
    """Return whether this element of a definition is a spatial column."""
    return element.type_at >= 0 and words.word(words.index_at(element.type_at)) in SPATIAL
