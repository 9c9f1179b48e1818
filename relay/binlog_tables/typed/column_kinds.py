"""The type of each column of a MySQL or MariaDB table in Spark and in Arrow."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from protocol.sql.tables.source_table import Table

_TYPE: Final = re.compile(r"([a-z0-9]+)(?: varying)?\s*(?:\((\d+)(?:\s*,\s*(\d+))?\))?", re.IGNORECASE)
MOST_DIGITS: Final = 38
"""The most digits of a decimal in Spark and Arrow."""
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")

JSON: Final = "json"
"""This kind is a text in Arrow and a VARIANT in Spark."""

_SIMPLE: Final = {
    "tinyint": "int",
    "smallint": "int",
    "mediumint": "int",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "year": "int",
    "bool": "int",
    "boolean": "int",
    "float": "float",
    "double": "double",
    "real": "double",
    "date": "date",
    "datetime": "timestamp_ntz",
    "timestamp": "timestamp",
    "binary": "binary",
    "varbinary": "binary",
    "tinyblob": "binary",
    "blob": "binary",
    "mediumblob": "binary",
    "longblob": "binary",
    "json": JSON,
    "vector": "array<float>",
}
_UNSIGNED: Final = {"int": "bigint", "integer": "bigint", "bigint": "decimal(20,0)"}
_WIDEST_BIT: Final = 63

_ARROW: Final = {
    "string": pa.string(),
    JSON: pa.string(),
    "variant": pa.string(),
    "binary": pa.binary(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "array<float>": pa.list_(pa.field("element", pa.float32(), nullable=True)),
    "array<string>": pa.list_(pa.field("element", pa.string(), nullable=True)),
}


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A column and its kind: the name of a type in Spark's SQL, or `json`."""

    name: str
    kind: str


def typed_columns(table: Table) -> tuple[TypedColumn, ...]:
    """Return a table's columns, in their order."""
    return tuple(TypedColumn(column.name, kind_of(column.type)) for column in table.columns)


def kind_of(type_text: str) -> str:
    """Return the kind of a type as SHOW CREATE TABLE writes it. A type without a counterpart (TIME, ENUM, spatial types) is a text."""
    match = _TYPE.match(type_text)
    if match is None:
        return "string"
    name, first, second = match[1].lower(), match[2], match[3]
    if name in ("decimal", "numeric", "dec", "fixed"):
        digits = int(first) if first else 10
        return f"decimal({digits},{int(second or 0)})" if digits <= MOST_DIGITS else "string"
    if name == "bit":
        return "bigint" if int(first or 1) <= _WIDEST_BIT else "decimal(20,0)"
    if "unsigned" in type_text.lower() and name in _UNSIGNED:
        return _UNSIGNED[name]
    return _SIMPLE.get(name, "string")


def arrow_type(kind: str) -> pa.DataType:
    """Return the type of a kind's columns in Arrow, before a VARIANT is made of a text."""
    match = _DECIMAL.fullmatch(kind)
    return pa.decimal128(int(match[1]), int(match[2])) if match else _ARROW[kind]


def column_names(columns: Sequence[TypedColumn]) -> tuple[str, ...]:
    """Return the names of columns."""
    return tuple(column.name for column in columns)
