"""Definitions that depend on the order in which rows are stored, or on their partitions: both differ on the replicas where their keys
sort, or hash, differently than the source's."""

from collections.abc import Callable
from typing import Final

from protocol.sql.engines import names_of_engines
from protocol.sql.tables.source_table import Column, Table
from relay.schema_history.table_agreement import type_parts

_TEXTS: Final = frozenset(("char", "varchar", "text", "enum", "set"))
_IN_ORDER_OF_KEYS: Final = frozenset(("", "innodb"))
_IN_ORDER_OF_ROWS: Final = names_of_engines(lambda engine: engine.as_inserted)
IsSame = Callable[[Column], bool]
"""Says whether the replicas' column has the very collation of the source's."""


def order_differs(table: Table, is_same: IsSame) -> str:
    """Return why rows of the table may be stored in another order on the replicas, in words; "": they are not."""
    engine = table.engine.lower()
    if engine in _IN_ORDER_OF_ROWS:
        return ""
    if engine not in _IN_ORDER_OF_KEYS:
        return f"tables of {table.engine} have no order that InnoDB has"
    primary = next((key for name, key in table.keys if name.upper() == "PRIMARY"), None)
    if primary is None:
        return "it has no primary key"
    for column in _columns(table, primary.columns):
        if type_parts(column.type)[0] == "uuid":
            return f"its key's column {column.name} of type UUID is sorted by other bytes"
        if not _is_alike(column, is_same):
            return f"its key's column {column.name} is sorted by another collation"
    return ""


def partitions_differ(table: Table, is_same: IsSame) -> str:
    """Return why rows may be in other partitions on the replicas, in words; "": they are not. The columns that decide are not known;
    each unique key has them."""
    unique = [{name.lower() for name in key.columns} for _name, key in table.keys if key.unique]
    deciding = set.intersection(*unique) if unique else {column.name.lower() for column in table.columns}
    for column in table.columns:
        if column.name.lower() in deciding and not _is_alike(column, is_same):
            return f"its column {column.name} has another collation there"
    return ""


def _columns(table: Table, names: tuple[str, ...]) -> list[Column]:
    wanted = {name.lower() for name in names}
    return [column for column in table.columns if column.name.lower() in wanted]


def _is_alike(column: Column, is_same: IsSame) -> bool:
    return type_parts(column.type)[0] not in _TEXTS or column.charset == "binary" or is_same(column)
