"""Checks that rows fit the table that replicas have: they take values by place, and silently use a wrong column."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from protocol.binlog.table_map import MapColumn, TableMap
from protocol.columns.codes import column_codes as codes
from protocol.sql.tables.source_table import UNKNOWN_CHARSET, Column, Key, Table
from relay.schema_history.table_agreement import columns_fit, type_parts
from relay.source_tables.known_table import KnownTable
from relay.view.stops import definition_stops

_LONG_TYPES: Final = frozenset(("text", "blob", "json", "geometry"))
_STRING_TYPES: Final = frozenset(("char", "varchar", "binary", "varbinary"))
_SHORT_KEY: Final = 250
"""The most characters that fit into a key of any engine."""
_TEXTS: Final = frozenset(("char", "varchar"))
_JSON_IS: Final = "longtext"
_FLOAT_BYTES: Final = 4
_HASH_TYPE: Final = codes.FIELD_LONGLONG
_HASH_NAME: Final = b"DB_ROW_HASH_"


def check_definition(found: TableMap, names: Sequence[bytes] | None, known: KnownTable) -> None:
    """Check number, types and, where the event contains them, names of the columns. Raises: Untranslatable."""
    columns = known.columns
    if not columns:
        return
    believed = [f"{column.name} {column.type}" for column in columns]
    types = found.types
    count = len(types)
    hidden = count - len(columns)
    told = names if names is not None else [None] * count
    tail = list(zip(found.types, told, strict=True))[len(columns) :]
    if hidden < 0 or hidden > _most_hidden_columns(known.table) or not all(_is_hash(*one) for one in tail):
        raise definition_stops.table_differs(
            found.name, f"they have {count} columns, and the table {len(columns)}", believed
        )
    for number, (column, definition) in enumerate(zip(found.columns, columns, strict=False), 1):
        name = told[number - 1]
        if name is not None and _text(name).lower() != definition.name.lower():
            what = f"column {number} is `{_text(name)}` at the source, and `{definition.name}` on replicas"
            raise definition_stops.table_differs(found.name, what, believed)
        if not _fits(column, definition):
            what = f"column {number} (`{definition.name}`) has type {_shown(column)} in the binlog, and {definition.type} on replicas"
            raise definition_stops.table_differs(found.name, what, believed)


def _most_hidden_columns(table: Table) -> int:
    """Return how many columns may follow all others in its rows: the hash of each UNIQUE key that is too long to be one of its own."""
    columns = {column.name.lower(): column for column in table.columns}
    return sum(key.unique and _may_be_hashed(key, columns) for name, key in table.keys if name != "PRIMARY")


def _may_be_hashed(key: Key, columns: Mapping[str, Column]) -> bool:
    length = 0
    for name in key.columns:
        kind, argument, _ = type_parts(columns[name.lower()].type) if name.lower() in columns else ("", "", False)
        if kind in _LONG_TYPES:
            return True
        if kind in _STRING_TYPES and argument.isdecimal():
            length += int(argument)
    return length > _SHORT_KEY


def _is_hash(kind: int, name: bytes | None) -> bool:
    """Return whether a column after those of the definition may be the hash of a UNIQUE key. `name` None: not known."""
    return kind == _HASH_TYPE and (name is None or name.startswith(_HASH_NAME))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _fits(column: MapColumn, definition: Column) -> bool:
    name = type_parts(definition.type)[0]
    if name == "json":
        definition = replace(definition, type=_JSON_IS)
    elif name == "vector" and (dimension := _argument(definition.type)).isdecimal():
        return column.number == int(dimension) * _FLOAT_BYTES
    elif name in _TEXTS and not definition.charset:
        definition = replace(definition, charset=UNKNOWN_CHARSET)
    return columns_fit([definition], bytes((column.real_type,)), [column.arguments])


def _argument(column_type: str) -> str:
    """Return the content of a type's brackets."""
    return column_type.partition("(")[2].partition(")")[0].strip()


def _shown(column: MapColumn) -> str:
    shown = f"number {column.real_type}"
    if codes.FIELD_TIMESTAMP2 <= column.type <= codes.FIELD_TIME2 or column.type in (
        codes.FIELD_BLOB,
        codes.FIELD_NEWDECIMAL,
    ):
        shown += f" ({', '.join(map(str, column.metadata))})"
    return shown
