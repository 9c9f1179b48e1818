"""Whether rows fit the table that replicas have: they take values by place, and say nothing where that is a wrong column."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from protocol.binlog.table_map import MapColumn, TableMap
from protocol.columns.codes import column_codes as codes
from relay.schema_history.table_agreement import columns_fit, type_parts
from relay.schema_history.tables.source_table import UNKNOWN_CHARSET, Column
from relay.view.rules.mariadb.rows.known_table import KnownTable
from relay.view.stops import definition_stops

_TEXTS: Final = frozenset(("char", "varchar"))
_JSON_IS: Final = "longtext"
_FLOAT_BYTES: Final = 4
_HASH_TYPE: Final = codes.FIELD_LONGLONG
_HASH_NAME: Final = b"DB_ROW_HASH_"


def check_definition(found: TableMap, names: Sequence[bytes] | None, known: KnownTable) -> None:
    """Number, types and, where the event tells them, names of the columns. Raises: CannotBeKept."""
    columns = known.columns
    if not columns:
        return
    believed = [f"{column.name} {column.type}" for column in columns]
    types = found.types
    count = len(types)
    hidden = count - len(columns)
    told = names if names is not None else [None] * count
    tail = list(zip(found.types, told, strict=True))[len(columns) :]
    if hidden < 0 or hidden > known.most_hidden_columns or not all(_is_hash(*one) for one in tail):
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


def _is_hash(kind: int, name: bytes | None) -> bool:
    """Whether a column behind those of the definition may be the hash of a UNIQUE key. name: None: not told."""
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
    """What stands in the brackets of a type."""
    return column_type.partition("(")[2].partition(")")[0].strip()


def _shown(column: MapColumn) -> str:
    shown = f"number {column.real_type}"
    if codes.FIELD_TIMESTAMP2 <= column.type <= codes.FIELD_TIME2 or column.type in (
        codes.FIELD_BLOB,
        codes.FIELD_NEWDECIMAL,
    ):
        shown += f" ({', '.join(map(str, column.metadata))})"
    return shown
