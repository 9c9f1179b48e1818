"""The tables of information_schema that describe the source's tables, from the relay's record of them.

Rows are facts by the columns' names in upper case; a column without a fact is NULL, or empty if it cannot be NULL. Defaults,
comments, lengths of keys' parts, foreign keys and views are not recorded.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from protocol.resultset import Value
from protocol.sql.tables.source_table import Column, Key, Table

Facts = dict[str, Value]
_CATALOG: Final = "def"
_PRIMARY: Final = "PRIMARY"
_TYPE: Final = re.compile(r"\s*+([A-Za-z]++)(?:\((.*)\))?", re.DOTALL)
_INTEGER_DIGITS: Final = {"tinyint": 3, "smallint": 5, "mediumint": 7, "int": 10, "bigint": 19}
_TEXT_BYTES: Final = {
    "tinytext": 255, "text": 65535, "mediumtext": 16777215, "longtext": 4294967295,
    "tinyblob": 255, "blob": 65535, "mediumblob": 16777215, "longblob": 4294967295,
}  # fmt: skip
_CHARACTER_BYTES: Final = {"utf8mb4": 4, "utf8": 3, "utf8mb3": 3, "ucs2": 2, "utf16": 4, "utf16le": 4, "utf32": 4}
_TIMES: Final = ("datetime", "timestamp", "time")


def schemata(tables: Sequence[Table], own: Sequence[str], charset: str, collation: str) -> Iterator[Facts]:
    """Yield the schemas: `own`, which every server has, and those of the tables."""
    for name in sorted({*own, *(table.schema for table in tables)}):
        yield {
            "CATALOG_NAME": _CATALOG,
            "SCHEMA_NAME": name,
            "DEFAULT_CHARACTER_SET_NAME": charset,
            "DEFAULT_COLLATION_NAME": collation,
            "DEFAULT_ENCRYPTION": "NO",
        }


def tables_facts(tables: Sequence[Table]) -> Iterator[Facts]:
    """Yield the source's tables."""
    for table in tables:
        collation = next((column.collation for column in table.columns if column.collation), None)
        yield {
            "TABLE_CATALOG": _CATALOG,
            "TABLE_SCHEMA": table.schema,
            "TABLE_NAME": table.name,
            "TABLE_TYPE": "BASE TABLE",
            "ENGINE": table.engine or None,
            "VERSION": 10,
            "ROW_FORMAT": "Dynamic",
            "TABLE_COLLATION": collation,
            "CREATE_OPTIONS": "",
            "TABLE_COMMENT": "",
        }


def columns_facts(tables: Sequence[Table]) -> Iterator[Facts]:
    """Yield their columns."""
    for table in tables:
        for number, column in enumerate(table.columns, 1):
            yield {
                "TABLE_CATALOG": _CATALOG,
                "TABLE_SCHEMA": table.schema,
                "TABLE_NAME": table.name,
                "COLUMN_NAME": column.name,
                "ORDINAL_POSITION": number,
                "IS_NULLABLE": "YES" if column.nullable else "NO",
                **_type_facts(column),
                "CHARACTER_SET_NAME": column.charset or None,
                "COLLATION_NAME": column.collation or None,
                "COLUMN_TYPE": column.type,
                "COLUMN_KEY": _key_mark(table, column.name),
                "EXTRA": column.extra,
                "PRIVILEGES": "select",
                "COLUMN_COMMENT": "",
                "IS_GENERATED": "ALWAYS" if column.generated else "NEVER",
            }


def _type_facts(column: Column) -> Facts:
    """Return the lengths and digits of the type."""
    match = _TYPE.match(column.type)
    if match is None:
        return {"DATA_TYPE": column.type}
    name, inside = match[1].lower(), match[2]
    facts: Facts = {"DATA_TYPE": name}
    numbers = [int(part) for part in (inside or "").split(",") if part.strip().isdecimal() and len(part) < 10]
    width = _CHARACTER_BYTES.get(column.charset, 1)
    if name in _INTEGER_DIGITS:
        is_unsigned_big = name == "bigint" and "unsigned" in column.type.lower()
        facts |= {"NUMERIC_PRECISION": _INTEGER_DIGITS[name] + is_unsigned_big, "NUMERIC_SCALE": 0}
    elif name == "decimal":
        facts |= {"NUMERIC_PRECISION": numbers[0] if numbers else 10, "NUMERIC_SCALE": [*numbers, 0, 0][1]}
    elif name in ("float", "double"):
        precision = numbers[0] if numbers else 12 if name == "float" else 22
        facts |= {"NUMERIC_PRECISION": precision, "NUMERIC_SCALE": numbers[1] if len(numbers) > 1 else None}
    elif name == "bit":
        facts |= {"NUMERIC_PRECISION": numbers[0] if numbers else 1}
    elif name in ("char", "varchar", "binary", "varbinary"):
        length = numbers[0] if numbers else 1
        facts |= {"CHARACTER_MAXIMUM_LENGTH": length, "CHARACTER_OCTET_LENGTH": length * width}
    elif name in _TEXT_BYTES:
        facts |= {"CHARACTER_MAXIMUM_LENGTH": _TEXT_BYTES[name], "CHARACTER_OCTET_LENGTH": _TEXT_BYTES[name]}
    elif name in ("enum", "set"):
        values = [one.replace("''", "'") for one in re.findall(r"'((?>(?:[^']|'')*))'", inside or "")]
        length = max(map(len, values), default=0) if name == "enum" else len(",".join(values))
        facts |= {"CHARACTER_MAXIMUM_LENGTH": length, "CHARACTER_OCTET_LENGTH": length * width}
    elif name in _TIMES:
        facts |= {"DATETIME_PRECISION": numbers[0] if numbers else 0}
    return facts


def _key_mark(table: Table, column: str) -> str:
    """Return PRI, UNI for the one column of a unique key, MUL for the first of another, as in SHOW COLUMNS."""
    if column in table.primary_key:
        return "PRI"
    if any(key.unique and key.columns == (column,) for _name, key in table.keys):
        return "UNI"
    return "MUL" if any(key.columns[:1] == (column,) for _name, key in table.keys) else ""


def _keys(table: Table) -> list[tuple[str, Key]]:
    """Return the keys in the order that servers show: the primary one, unique ones, others."""
    return sorted(table.keys, key=lambda one: (one[0] != _PRIMARY, not one[1].unique))


def statistics_facts(tables: Sequence[Table]) -> Iterator[Facts]:
    """Yield the parts of their keys."""
    for table in tables:
        nullable = {column.name for column in table.columns if column.nullable}
        for name, key in _keys(table):
            for place, column in enumerate(key.columns, 1):
                yield {
                    "TABLE_CATALOG": _CATALOG,
                    "TABLE_SCHEMA": table.schema,
                    "TABLE_NAME": table.name,
                    "NON_UNIQUE": int(not key.unique),
                    "INDEX_SCHEMA": table.schema,
                    "INDEX_NAME": name,
                    "SEQ_IN_INDEX": place,
                    "COLUMN_NAME": column or None,
                    "COLLATION": "A",
                    "NULLABLE": "YES" if column in nullable else "",
                    "INDEX_TYPE": "BTREE",
                    "COMMENT": "",
                    "INDEX_COMMENT": "",
                    "IS_VISIBLE": "YES",
                    "IGNORED": "NO",
                }


def _unique_keys(table: Table) -> Iterator[tuple[str, Key, Facts]]:
    for name, key in _keys(table):
        if key.unique:
            yield (
                name,
                key,
                {
                    "CONSTRAINT_CATALOG": _CATALOG,
                    "CONSTRAINT_SCHEMA": table.schema,
                    "CONSTRAINT_NAME": name,
                    "TABLE_CATALOG": _CATALOG,
                    "TABLE_SCHEMA": table.schema,
                    "TABLE_NAME": table.name,
                },
            )


def key_column_usage_facts(tables: Sequence[Table]) -> Iterator[Facts]:
    """Yield the columns of primary and unique keys."""
    for table in tables:
        for _name, key, constraint in _unique_keys(table):
            for place, column in enumerate(key.columns, 1):
                yield {**constraint, "COLUMN_NAME": column, "ORDINAL_POSITION": place}


def table_constraints_facts(tables: Sequence[Table]) -> Iterator[Facts]:
    """Yield the primary and unique keys."""
    for table in tables:
        for name, _key, constraint in _unique_keys(table):
            kind = "PRIMARY KEY" if name == _PRIMARY else "UNIQUE"
            yield {**constraint, "CONSTRAINT_TYPE": kind, "ENFORCED": "YES"}


RECORDED: Final[dict[str, Callable[[Sequence[Table]], Iterator[Facts]]]] = {
    "columns": columns_facts,
    "key_column_usage": key_column_usage_facts,
    "statistics": statistics_facts,
    "table_constraints": table_constraints_facts,
    "tables": tables_facts,
}
"""Tables of information_schema that are derived from the record alone: functions from its tables to their rows."""
