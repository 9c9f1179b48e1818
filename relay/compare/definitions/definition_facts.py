"""Definitions of tables at both servers, as far as they mean the same in both: what differs, by table, column and key."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from protocol.sql.tables.source_table import TableName
from relay.compare.definitions.same_words import (
    plain_default,
    plain_extra,
    plain_sql,
    plain_type,
    same_collation,
    same_default,
    same_type,
)
from relay.compare.rows.table_shape import ComparedTables, TableShape
from relay.compare.servers.compared_server import ComparedServer
from relay.upstream.schema.answer_text import answer_text, quoted_text

Facts = dict[str, Any]
ObjectName = tuple[str, str]
"""(kind, name), such as ("column", "shop.orders.id")."""
_COLLATION: Final = "collation"


@dataclass(frozen=True, slots=True)
class Alike:
    """What is not a difference between these two servers. `engines`: the view makes all tables InnoDB."""

    any_engine: bool
    one_product: bool

    def same(self, field: str, source: Any, target: Any) -> bool:
        """Return whether two facts of this name mean the same."""
        if source == target or (field == "engine" and self.any_engine):
            return True
        if field == "order of columns" and sorted(source) != sorted(target):
            return True  # those that are missing are told by name
        if field == _COLLATION:
            return same_collation(source, target)
        if field == "default":
            return same_default(source, target)
        if field == "type":
            return same_type(source, target)
        return field == "expression" and not self.one_product and bool(source) == bool(target)


def name_of(key: TableName) -> str:
    """Return SCHEMA.TABLE."""
    return ".".join(key)


def table_facts(
    server: ComparedServer, shapes: Mapping[TableName, TableShape], wanted: ComparedTables
) -> dict[ObjectName, Facts]:
    """Return what each table, column, key, foreign key and partition is. Raises: CompareStop."""
    found: dict[ObjectName, Facts] = {}
    expressions: dict[tuple[str, str, str], str] = {}
    for schema in sorted({key[0] for key in shapes}):
        expressions |= _expressions(server, schema)
        found |= _foreign_keys(server, schema, wanted)
        found |= _partitions(server, schema, wanted)
    for key, shape in shapes.items():
        found["table", name_of(key)] = {
            "engine": shape.engine.lower(),
            _COLLATION: shape.collation,
            "comment": shape.comment,
            "order of columns": [name.lower() for name in shape.columns],
        }
        for name, one in shape.columns.items():
            found["column", f"{name_of(key)}.{name}"] = {
                "type": plain_type(one.type),
                "null": one.nullable,
                "default": None
                if one.is_generated
                else plain_default(one.default, one.extra, of_mariadb=server.is_mariadb),
                "extra": plain_extra(one.extra),
                "expression": expressions.get((*key, name), ""),
                _COLLATION: one.collation,
                "comment": one.comment,
            }
        for name, index in shape.keys.items():
            parts = [f"{part}({length})" if length else part for part, length, _order in index.parts]
            found["key", f"{name_of(key)}.{name}"] = {
                "unique": index.unique,
                "kind": index.kind.lower(),
                "columns": ", ".join(parts).lower(),
                "expression": plain_sql(index.expression),
            }
    return found


def _expressions(server: ComparedServer, schema: str) -> dict[tuple[str, str, str], str]:
    rows = server.rows_or_none(
        "SELECT TABLE_NAME, COLUMN_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS"
        f" WHERE TABLE_SCHEMA = {quoted_text(schema)} AND GENERATION_EXPRESSION <> ''"
    )
    return {(schema, answer_text(row[0]), answer_text(row[1])): plain_sql(answer_text(row[2])) for row in rows or []}


def _foreign_keys(server: ComparedServer, schema: str, wanted: ComparedTables) -> dict[ObjectName, Facts]:
    columns: dict[tuple[str, str], list[tuple[str, str, str, str]]] = defaultdict(list)
    text = quoted_text(schema)
    for row in server.rows(
        "SELECT TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME"
        f" FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = {text} AND REFERENCED_TABLE_NAME IS NOT NULL"
        " ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION"
    ):
        table, name, column, *to = map(answer_text, row)
        columns[table, name].append((column.lower(), to[0].lower(), to[1].lower(), to[2].lower()))
    found: dict[ObjectName, Facts] = {}
    for row in server.rows(
        "SELECT TABLE_NAME, CONSTRAINT_NAME, UPDATE_RULE, DELETE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS"
        f" WHERE CONSTRAINT_SCHEMA = {text}"
    ):
        table, name, update, delete = map(answer_text, row)
        if wanted.has((schema, table)):
            found["foreign key", f"{schema}.{table}.{name}"] = {
                "columns": ", ".join(f"{one} to {'.'.join(to)}" for one, *to in columns[table, name]),
                "on update": update.replace("RESTRICT", "NO ACTION"),
                "on delete": delete.replace("RESTRICT", "NO ACTION"),
            }
    return found


def _partitions(server: ComparedServer, schema: str, wanted: ComparedTables) -> dict[ObjectName, Facts]:
    found: dict[ObjectName, Facts] = {}
    for row in server.rows(
        "SELECT TABLE_NAME, PARTITION_NAME, PARTITION_METHOD, PARTITION_EXPRESSION, PARTITION_DESCRIPTION, SUBPARTITION_NAME"
        f" FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = {quoted_text(schema)} AND PARTITION_NAME IS NOT NULL"
    ):
        table, name, method, expression, values, sub = map(answer_text, row)
        if wanted.has((schema, table)):
            found["partition", f"{schema}.{table}.{name}{f'.{sub}' if sub else ''}"] = {
                "method": method,
                "by": plain_sql(expression),
                "values": values,
            }
    return found


def changed_facts(source: Facts | None, target: Facts | None, alike: Alike) -> dict[str, tuple[Any, Any]]:
    """Return the facts that differ, of something that both have."""
    if source is None or target is None:
        return {}
    return {
        name: (source.get(name), target.get(name))
        for name in source
        if not alike.same(name, source.get(name), target.get(name))
    }
