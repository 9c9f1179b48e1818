"""The columns that a CREATE TABLE defines before its query, as far as what is stored in them depends on their types."""

from collections.abc import Sequence
from typing import Final

from protocol.sql.expressions.readers.column_scope import KnownColumn, kind_of_type
from protocol.sql.survey.value_class import ANY, ValueClass, classes_of_type

_NO_COLUMNS: Final = frozenset((
    "PRIMARY", "KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "PERIOD", "LIKE",
))  # fmt: skip
_KINDS: Final = {
    **{one: one for one in (
        "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE", "CHAR", "VARCHAR", "TEXT", "BINARY",
        "VARBINARY", "BLOB", "BIT", "DATE", "DATETIME", "TIMESTAMP", "TIME", "YEAR", "ENUM", "SET", "JSON", "GEOMETRY",
    )},
    "INTEGER": "INT", "BOOL": "TINYINT", "BOOLEAN": "TINYINT", "DEC": "DECIMAL", "NUMERIC": "DECIMAL", "FIXED": "DECIMAL",
    "REAL": "DOUBLE", "CHARACTER": "CHAR",
}  # fmt: skip
"""The types by the words that a definition may have; nothing is said of others."""


def defined_columns(words: Sequence[str]) -> dict[str, KnownColumn]:
    """Return the columns by names in lower case. `words` are those between the brackets of the definitions."""
    made: dict[str, KnownColumn] = {}
    for name, *rest in _parts(words):
        kind = _KINDS.get(kind_of_type(rest[0])) if rest and name.upper() not in _NO_COLUMNS else None
        if kind is None:
            continue
        text = " ".join(rest)
        nullable = " NOT NULL" not in text.upper()
        classes = classes_of_type(text) or ANY
        made[name.lower()] = KnownColumn(classes if nullable else classes - {ValueClass.NULL}, kind, nullable)
    return made


def _parts(words: Sequence[str]) -> list[list[str]]:
    """Return the definitions; what is in their own brackets is left out."""
    parts: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth == 0 and word == ",":
            parts.append([])
        elif depth == 0 and word != ")":
            parts[-1].append(word)
    return [part for part in parts if part]
