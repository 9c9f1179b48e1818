"""The source's tables from its information_schema: columns, keys, foreign keys and engines.

They are queried schema by schema, and only for what servers from 5.0 on answer from a table's definition without opening the table.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from protocol.errors import RelayError
from protocol.sql.engines import takes_foreign_keys
from protocol.sql.server_version import version_numbers
from protocol.sql.tables.default_text import told_default
from protocol.sql.tables.source_table import CharsetDefault, Column, Key, Table
from relay.upstream.schema.answer_text import SchemaSource, answer_text, quoted_text
from relay.upstream.schema.foreign_key_query import ForeignKeyQuery, ForeignKeysOfTables, NamedForeignKeys
from relay.upstream.source.answer_bound import TABLE_LIST

_OWN_SCHEMAS: Final = frozenset({"information_schema", "performance_schema", "mysql", "sys"})
_TIMEOUT_S: Final = 120.0
# A schema with more is left out: its tables would crowd a process that exists for a stream.
COLUMNS_LIMIT: Final = 200_000

_QUOTES_DEFAULTS: Final = (10, 2, 7)
_PLAIN: Final = "BASE TABLE"
_TABLES: Final = (
    "SELECT TABLE_NAME, ENGINE, TABLE_COLLATION, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {schema} "
    "AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')"
)
_COLUMNS: Final = (
    "SELECT TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, EXTRA, "
    "COLUMN_DEFAULT FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {schema} LIMIT {limit}"
)
_KEYS: Final = (
    "SELECT TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, NON_UNIQUE, SUB_PART FROM information_schema.STATISTICS "
    "WHERE TABLE_SCHEMA = {schema}"
)


_KeyPart = tuple[int, str, bool, int | None]
"""This tuple contains place, column, whether it is unique, and prefix."""


class TooManyColumns(RelayError):
    """The error for a schema that is left out."""


async def schemas_of(source: SchemaSource) -> dict[str, CharsetDefault]:
    """Return the schemas that the account may see, without the server's own, with their character sets and collations.

    Raises: as `query`.
    """
    statement = (
        "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA"
    )
    rows = await source.query(statement, _TIMEOUT_S, TABLE_LIST)
    found = {answer_text(row[0]): (answer_text(row[1]), answer_text(row[2])) for row in rows}
    return {name: found[name] for name in sorted(found) if name.lower() not in _OWN_SCHEMAS}


async def tables_of(
    source: SchemaSource, schema: str, foreign_keys: ForeignKeyQuery, most_columns: int = COLUMNS_LIMIT
) -> list[Table]:
    """Return the tables of one schema that the account may see, without views. Raises: TooManyColumns; as `query`."""
    limit = max(0, min(most_columns, COLUMNS_LIMIT))
    quoted = quoted_text(schema)
    tables = await source.query(_TABLES.format(schema=quoted), _TIMEOUT_S, TABLE_LIST)
    engines = {answer_text(row[0]): answer_text(row[1]) for row in tables}
    types = {answer_text(row[0]): answer_text(row[3]).upper() for row in tables}
    collations = {answer_text(row[0]): answer_text(row[2]) for row in tables}
    if not engines:
        return []
    rows = await source.query(_COLUMNS.format(schema=quoted, limit=limit + 1), _TIMEOUT_S, TABLE_LIST)
    if len(rows) > limit:
        raise TooManyColumns(f"the schema {schema} has more than {limit} columns, or all schemas together too many")
    is_of_relay = await foreign_keys.is_of_relay()
    quoted_defaults = None if is_of_relay else await _quotes_defaults(source)
    columns: dict[str, list[tuple[int, Column]]] = {name: [] for name in engines}
    for table, number, name, kind, charset, collation, nullable, extra, default in rows:
        if answer_text(table) in columns:
            column = Column(
                answer_text(name),
                answer_text(kind),
                answer_text(charset),
                answer_text(collation),
                answer_text(nullable).upper() != "NO",
                answer_text(extra),
                _default(answer_text(kind), answer_text(extra), default, quoted_defaults),
            )
            columns[answer_text(table)].append((int(number), column))
    keys: dict[str, dict[str, list[_KeyPart]]] = {name: {} for name in engines}
    for table, index, place, name, duplicates, prefix in await source.query(
        _KEYS.format(schema=quoted), _TIMEOUT_S, TABLE_LIST
    ):
        if answer_text(table) in keys:
            parts = keys[answer_text(table)].setdefault(answer_text(index), [])
            length = int(prefix) if prefix is not None else None
            parts.append((int(place), answer_text(name), not int(duplicates), length))
    foreign = await foreign_keys.of_schema(schema)
    found = [
        Table(
            schema,
            name,
            engines[name],
            tuple(column for _number, column in sorted(columns[name], key=lambda one: one[0])),
            tuple(sorted((index, _key(parts, with_prefixes=not is_of_relay)) for index, parts in keys[name].items())),
            collations[name].partition("_")[0],
            _foreign_keys(name, engines[name], foreign),
            "" if is_of_relay else collations[name],
            "" if types[name] == _PLAIN else types[name],
        )
        for name in sorted(engines)
    ]
    named = {table.name.lower(): frozenset(column.name.lower() for column in table.columns) for table in found}
    return [replace(table, foreign_keys=_sound(table, named)) for table in found]


async def _quotes_defaults(source: SchemaSource) -> bool:
    """Return whether COLUMN_DEFAULT has texts in quotation marks, and NULL without: MariaDB from 10.2.7 on."""
    version = answer_text((await source.query("SELECT VERSION()", _TIMEOUT_S))[0][0])
    return "mariadb" in version.lower() and version_numbers(version) >= _QUOTES_DEFAULTS


def _default(column_type: str, extra: str, told: object, quoted: bool | None) -> str | None:
    """Return a default as Column has it. `quoted` is None for a relay, which reports it in that form."""
    if told is None:
        return None
    text = answer_text(told)
    return text if quoted is None else told_default(column_type, extra, text, quoted=quoted)


def _key(parts: Iterable[_KeyPart], *, with_prefixes: bool) -> Key:
    ordered = sorted(parts, key=lambda part: part[0])
    prefixes = tuple(part[3] for part in ordered) if with_prefixes else None
    return Key(tuple(part[1] for part in ordered), ordered[0][2], prefixes)


def _foreign_keys(table: str, engine: str, told: ForeignKeysOfTables | None) -> NamedForeignKeys | None:
    if not takes_foreign_keys(engine):
        return ()
    if told is None:
        return None
    # InnoDB may have a name in lower case that the server has as it was written
    return told[table] if table in told else told.get(table.lower(), ())


def _sound(table: Table, columns: dict[str, frozenset[str]]) -> NamedForeignKeys | None:
    """Return a table's foreign keys; None (not known) if they name missing columns. `columns` are those of the schema's tables, in
    lower case.

    MariaDB's list has columns by their old names if the table refers to itself.
    """
    for _name, key in table.foreign_keys or ():
        parent = columns.get(key.table.lower()) if key.schema.lower() == table.schema.lower() else None
        if not columns[table.name.lower()].issuperset(map(str.lower, key.columns)) or (
            parent is not None and not parent.issuperset(map(str.lower, key.referenced))
        ):
            return None
    return table.foreign_keys
