"""The source's tables, asked from its information_schema: columns, keys and engines.

Asked schema by schema, and only for what servers from 5.0 on answer from a table's definition without opening the table.
"""

from collections.abc import Iterable
from typing import Any, Final, Protocol

from relay.schema_history.tables.source_table import Column, Key, Table

_OWN_SCHEMAS: Final = frozenset({"information_schema", "performance_schema", "mysql", "sys"})
_TIMEOUT_S: Final = 120.0
# A schema with more is left out: its tables would crowd a process that is there for a stream.
COLUMNS_LIMIT: Final = 200_000

_TABLES: Final = (
    "SELECT TABLE_NAME, ENGINE, TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = {schema} AND TABLE_TYPE IN "
    "('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')"
)
_COLUMNS: Final = (
    "SELECT TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, EXTRA, "
    "COLUMN_DEFAULT FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {schema} LIMIT {limit}"
)
_KEYS: Final = (
    "SELECT TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, NON_UNIQUE FROM information_schema.STATISTICS "
    "WHERE TABLE_SCHEMA = {schema}"
)


class SchemaSource(Protocol):
    """A connection to the source."""

    async def query(self, statement: str, timeout_s: float | None = None) -> list[tuple[Any, ...]]:
        """The rows of a statement."""


class TooManyColumns(Exception):
    """A schema that is left out."""


async def schemas_of(source: SchemaSource) -> dict[str, str]:
    """The schemas that the account may see, the server's own left out, with their character sets. Raises: as `query`."""
    rows = await source.query(
        "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA", _TIMEOUT_S
    )
    found = {_text(row[0]): _text(row[1]) for row in rows}
    return {name: found[name] for name in sorted(found) if name.lower() not in _OWN_SCHEMAS}


async def tables_of(source: SchemaSource, schema: str, most_columns: int = COLUMNS_LIMIT) -> list[Table]:
    """The tables of one schema that the account may see, views left out. Raises: TooManyColumns; as `query`."""
    limit = max(0, min(most_columns, COLUMNS_LIMIT))
    quoted = _quoted(schema)
    tables = await source.query(_TABLES.format(schema=quoted), _TIMEOUT_S)
    engines = {_text(row[0]): _text(row[1]) for row in tables}
    charsets = {_text(row[0]): _text(row[2]).partition("_")[0] for row in tables}
    if not engines:
        return []
    rows = await source.query(_COLUMNS.format(schema=quoted, limit=limit + 1), _TIMEOUT_S)
    if len(rows) > limit:
        raise TooManyColumns(f"the schema {schema} has more than {limit} columns, or all schemas together too many")
    columns: dict[str, list[tuple[int, Column]]] = {name: [] for name in engines}
    for table, number, name, kind, charset, collation, nullable, extra, default in rows:
        if _text(table) in columns:
            column = Column(
                _text(name),
                _text(kind),
                _text(charset),
                _text(collation),
                _text(nullable).upper() != "NO",
                _text(extra),
                None if default is None else _text(default),
            )
            columns[_text(table)].append((int(number), column))
    keys: dict[str, dict[str, list[tuple[int, str, bool]]]] = {name: {} for name in engines}
    for table, index, place, name, duplicates in await source.query(_KEYS.format(schema=quoted), _TIMEOUT_S):
        if _text(table) in keys:
            parts = keys[_text(table)].setdefault(_text(index), [])
            parts.append((int(place), _text(name), not int(duplicates)))
    return [
        Table(
            schema,
            name,
            engines[name],
            tuple(column for _number, column in sorted(columns[name], key=lambda one: one[0])),
            tuple(sorted((index, _key(parts)) for index, parts in keys[name].items())),
            charsets[name],
        )
        for name in sorted(engines)
    ]


def _key(parts: Iterable[tuple[int, str, bool]]) -> Key:
    ordered = sorted(parts)
    return Key(tuple(name for _place, name, _unique in ordered), ordered[0][2])


def _text(value: object) -> str:
    """A value as text: old servers send some of these columns as bytes. NULL, as for the column of a key on an expression: ''."""
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else str(value)


def _quoted(text: str) -> str:
    """A string literal that is right whatever sql_mode says of backslashes."""
    return f"CONVERT(x'{text.encode().hex()}' USING utf8)" if "\\" in text else "'" + text.replace("'", "''") + "'"
