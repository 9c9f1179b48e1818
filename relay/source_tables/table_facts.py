"""A table as JSON in the files that store tables: `source-schema.jsonl`, `NAME.tables.jsonl` and the state of a view."""

import json
from typing import Any

from protocol.sql.tables.source_table import Column, ForeignKey, Key, Table


def facts_of(table: Table) -> dict[str, Any]:
    """Return `table` for JSON, in one order: the same facts give the same text."""
    columns: list[dict[str, Any]] = []
    for column in table.columns:
        described: dict[str, Any] = {"name": column.name, "type": column.type}
        for name in ("charset", "collation", "extra"):
            if getattr(column, name):
                described[name] = getattr(column, name)
        if not column.nullable:
            described["nullable"] = False
        if column.default is not None:
            described["default"] = column.default
        columns.append(described)
    keys: dict[str, dict[str, Any]] = {
        name: {"unique": key.unique, "columns": list(key.columns)} for name, key in table.keys
    }
    for name, key in table.keys:
        if key.prefixes is not None:
            keys[name]["prefixes"] = list(key.prefixes)
    facts: dict[str, Any] = {
        "schema": table.schema,
        "table": table.name,
        "engine": table.engine,
        "columns": columns,
        "keys": keys,
    }
    if table.foreign_keys is not None:
        facts["foreign_keys"] = {
            name: {
                "columns": list(key.columns),
                "schema": key.schema,
                "table": key.table,
                "referenced": list(key.referenced),
                "on_delete": key.on_delete,
                "on_update": key.on_update,
            }
            for name, key in table.foreign_keys
        }
    if table.charset:
        facts["charset"] = table.charset
    if table.collation:
        facts["collation"] = table.collation
    if table.type:
        facts["type"] = table.type
    return facts


def table_facts(table: Table) -> str:
    """Return `facts_of` as JSON: the same text for the same table."""
    return json.dumps(facts_of(table), ensure_ascii=False)


def table_of_facts(facts: dict[str, Any]) -> Table:
    """Return the inverse of `facts_of`. Raises: KeyError, TypeError, ValueError, AttributeError for what describes no table."""
    columns = tuple(
        Column(
            str(one["name"]),
            str(one["type"]),
            str(one.get("charset", "")),
            str(one.get("collation", "")),
            bool(one.get("nullable", True)),
            str(one.get("extra", "")),
            str(one["default"]) if one.get("default") is not None else None,
        )
        for one in facts["columns"]
    )
    return Table(
        str(facts["schema"]),
        str(facts["table"]),
        str(facts["engine"]),
        columns,
        tuple((str(name), _key(key)) for name, key in facts["keys"].items()),
        str(facts.get("charset", "")),
        _foreign_keys(facts.get("foreign_keys")),
        str(facts.get("collation", "")),
        str(facts.get("type", "")),
    )


def _key(facts: dict[str, Any]) -> Key:
    columns, prefixes = tuple(map(str, facts["columns"])), facts.get("prefixes")
    if not isinstance(prefixes, list) or len(prefixes) != len(columns):
        return Key(columns, bool(facts["unique"]))
    return Key(columns, bool(facts["unique"]), tuple(None if one is None else int(one) for one in prefixes))


def _foreign_keys(facts: dict[str, Any] | None) -> tuple[tuple[str, ForeignKey], ...] | None:
    if facts is None:
        return None
    return tuple(
        (
            str(name),
            ForeignKey(
                tuple(map(str, key["columns"])),
                str(key["schema"]),
                str(key["table"]),
                tuple(map(str, key["referenced"])),
                str(key["on_delete"]),
                str(key["on_update"]),
            ),
        )
        for name, key in facts.items()
    )
