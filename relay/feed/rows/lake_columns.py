"""The form in which a lake keeps a column of the source: its Arrow type, and how it is read from an image's JSON."""

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from protocol.sql.tables.source_table import UNKNOWN_CHARSET, Column, Table
from relay.binlog_tables.plan.recorded import described
from relay.feed.rows.feed_stop import table_stop
from relay.schema_history.table_agreement import type_name

SEQUENCE: Final = "_sequence"
DELETED: Final = "_deleted"
NUMBER_COLUMN: Final = "_number"
ROW: Final = "_row"
"""In a table without a key, this column and _sequence form the row's own name."""
_OWN: Final = frozenset((SEQUENCE, DELETED, NUMBER_COLUMN))
_TYPE: Final = re.compile(r"\s*([a-z][a-z0-9]*)\s*(?:\(([^)]*)\))?(.*)", re.IGNORECASE | re.DOTALL)
_INTEGERS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "integer": 32, "bigint": 64}
_TEXTS: Final = frozenset(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"))
_BYTES: Final = frozenset(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"))
_PLAIN_TEXTS: Final = frozenset(("time", "uuid", "inet4", "inet6"))
_SHAPES: Final = frozenset(
    ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection",
     "vector")
)  # fmt: skip
MOST_DIGITS: Final = 38
"""The most digits of a decimal in Delta, Iceberg and DuckDB; DECIMAL(39..65) is kept as text."""

NUMBER, TEXT, LABEL, BYTES, TIME, DOCUMENT = "number", "text", "label", "bytes", "time", "document"


@dataclass(frozen=True, slots=True)
class LakeColumn:
    """One kept column. `kind` is how it is read, `sql_type` is DuckDB's type."""

    name: str
    arrow: pa.DataType
    kind: str
    sql_type: str
    source: Column

    @property
    def pointer(self) -> str:
        """The JSON pointer to its value in an image."""
        escaped = self.name.replace("~", "~0").replace("/", "~1")
        return f"/{escaped}/base64" if self.kind == BYTES else f"/{escaped}"


def parsed_type(column: Column) -> tuple[str, str, bool]:
    """Return (first word, text in parentheses, whether it is unsigned) of a column's type; a type with two names has one here."""
    match = _TYPE.match(column.type)
    if match is None:
        return column.type.lower(), "", False
    rest = match[3].lower()
    return type_name(match[1]), match[2] or "", "unsigned" in rest or "zerofill" in rest


def lake_column(column: Column) -> LakeColumn | None:
    """Return how the column is kept; None if it is not, because its type or its character set is not known here."""
    base, inside, unsigned = parsed_type(column)
    made: tuple[pa.DataType, str, str] | None = None
    if base in _INTEGERS:
        bits = _INTEGERS[base]
        if bits == 64 and unsigned:
            made = (pa.decimal128(20, 0), NUMBER, "DECIMAL(20,0)")
        elif bits == 64 or (bits == 32 and unsigned):
            made = (pa.int64(), NUMBER, "BIGINT")
        else:
            made = (pa.int32(), NUMBER, "INTEGER")
    elif base == "year":
        made = (pa.int32(), NUMBER, "INTEGER")
    elif base == "bit":
        wide = (inside or "1").strip() == "64"
        made = (pa.decimal128(20, 0), NUMBER, "DECIMAL(20,0)") if wide else (pa.int64(), NUMBER, "BIGINT")
    elif base in ("decimal", "numeric", "dec", "fixed"):
        digits, _, scale = (inside or "10").partition(",")
        precision, places = int(digits or 10), int(scale or 0)
        if precision <= MOST_DIGITS:
            made = (pa.decimal128(precision, places), NUMBER, f"DECIMAL({precision},{places})")
        else:
            made = (pa.string(), TEXT, "VARCHAR")
    elif base == "float":
        made = (pa.float32(), NUMBER, "FLOAT")
    elif base in ("double", "real"):
        made = (pa.float64(), NUMBER, "DOUBLE")
    elif base == "date":
        made = (pa.date32(), TIME, "DATE")
    elif base == "datetime":
        made = (pa.timestamp("us"), TIME, "TIMESTAMP")
    elif base == "timestamp":
        made = (pa.timestamp("us", "UTC"), TIME, "TIMESTAMP")
    elif base in _BYTES or (base in _TEXTS and column.charset == "binary"):
        made = (pa.binary(), BYTES, "BLOB")
    elif base in _TEXTS:
        made = (pa.string(), TEXT, "VARCHAR")
    elif base in ("enum", "set"):
        made = (pa.string(), LABEL, "VARCHAR")
    elif base in _PLAIN_TEXTS:
        made = (pa.string(), TEXT, "VARCHAR")
    elif base == "json" or base in _SHAPES:
        made = (pa.string(), DOCUMENT, "VARCHAR")
    if made is None:
        return None
    return LakeColumn(column.name, made[0], made[1], made[2], column)


def lake_columns(table: Table, place: str) -> list[LakeColumn]:
    """Return the kept columns of a table: all but VIRTUAL ones, which the source computes when it is asked.

    Raises: FeedStop if one cannot be kept.
    """
    name = f"{table.schema}.{table.name}"
    texts = {one.name: one.column_type for one in described(table)}
    found = []
    for column in table.columns:
        if not column.stored:
            continue
        made = lake_column(column)
        if made is None:
            raise table_stop(
                "column_type", place, name, f"Column {column.name} is {column.type}, for which a lake has no type."
            )
        if column.charset == UNKNOWN_CHARSET:
            raise table_stop("charset_unknown", place, name, f"Nobody knows the character set of column {column.name}.")
        if made.kind == LABEL and "(" not in texts[column.name]:
            raise table_stop(
                "labels_unknown", place, name, f"The server shows not all texts of column {column.name}, {column.type}."
            )
        if column.name.lower() in _OWN or (column.name.lower() == ROW and not lake_key(table)):
            raise table_stop("column_name", place, name, f"The feed has a column {column.name} of its own.")
        found.append(made)
    return found


def lake_schema(columns: list[LakeColumn], *, has_key: bool) -> pa.Schema:
    """Return the schema of a table of these columns in a lake."""
    own = [pa.field(SEQUENCE, pa.int64()), *([] if has_key else [pa.field(ROW, pa.int64())])]
    return pa.schema([*(pa.field(one.name, one.arrow) for one in columns), *own])


def lake_key(table: Table) -> tuple[str, ...]:
    """Return the columns that identify a row: the primary key, else a unique one that is never NULL; empty if there is none."""
    if table.primary_key:
        return table.primary_key
    never_null = {column.name for column in table.columns if not column.nullable and column.stored}
    for _name, key in table.keys:
        if key.unique and key.columns and never_null.issuperset(key.columns):
            return key.columns
    return ()
