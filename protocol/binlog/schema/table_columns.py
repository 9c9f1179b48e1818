"""The columns of a Table_map's table: types, their arguments, and the optional metadata of newer servers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from protocol.binlog.fields import Fields
from protocol.binlog.schema.column_charsets import charset_of_column
from protocol.binlog.table_map import MapColumn, MetadataField, MetadataKind, TableMap, default_charset, packed_texts
from protocol.columns.codes import column_codes as codes
from protocol.errors import Malformed

# The types that have a bit of signedness: YEAR and the old DECIMAL among them.
_NUMERIC: Final = frozenset(
    (
        codes.FIELD_DECIMAL, codes.FIELD_TINY, codes.FIELD_SHORT, codes.FIELD_LONG, codes.FIELD_FLOAT, codes.FIELD_DOUBLE,
        codes.FIELD_LONGLONG, codes.FIELD_INT24, codes.FIELD_YEAR, codes.FIELD_NEWDECIMAL,
    )
)  # fmt: skip
_SHARED_TEXTS: Final = frozenset((codes.FIELD_VARCHAR, codes.FIELD_BLOB, codes.FIELD_STRING))
MYSQL_TEXTS: Final = _SHARED_TEXTS | {codes.FIELD_VECTOR, codes.FIELD_VAR_STRING}
"""Types that have a character set in a MySQL's optional metadata."""
MARIADB_TEXTS: Final = _SHARED_TEXTS | {
    codes.FIELD_BLOB_COMPRESSED, codes.FIELD_VARCHAR_COMPRESSED, codes.FIELD_VAR_STRING, codes.FIELD_GEOMETRY,
}  # fmt: skip
"""Types that have a character set in a MariaDB's optional metadata."""
CHOICES: Final = frozenset((codes.FIELD_ENUM, codes.FIELD_SET))
"""Types whose character sets are in fields of their own."""
_MOST_TEXTS: Final = 65535


@dataclass(slots=True)
class TableColumn:
    """One column. For an ENUM or SET `type` is that, not STRING. `arguments` are the metadata in the form of the type (a length of
    STRING whole). `unsigned`, `charset`, `texts` and `name` are None if not in the event; texts are in `charset`.
    """

    type: int
    arguments: tuple[int, int] = (0, 0)
    name: bytes | None = None
    unsigned: bool | None = None
    charset: str | None = None
    texts: list[bytes] | None = None


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns, and whether the optional metadata were unreadable before their end."""

    columns: list[TableColumn]
    optional_malformed: bool


def described_columns(table: TableMap, mariadb: bool) -> TableColumns:
    """Return the columns with all facts of the event. Raises: Malformed if the types are cut.

    Source: MySQL 9.7 `Table_map_event`, MariaDB 11.8 `Table_map_log_event::Optional_metadata_fields`.
    """
    columns = [TableColumn(*_meaning(column)) for column in table.columns]
    try:
        _describe(columns, table.optional_fields(), MARIADB_TEXTS if mariadb else MYSQL_TEXTS)
    except Malformed:
        return TableColumns(columns, True)
    return TableColumns(columns, False)


@lru_cache(maxsize=4096)  # there are many columns, and few that differ
def _meaning(column: MapColumn) -> tuple[int, tuple[int, int]]:
    return column.real_type, column.arguments


def _describe(columns: list[TableColumn], fields: Iterator[MetadataField], character: frozenset[int]) -> None:
    """Add the facts of the optional metadata. Raises: Malformed."""
    texts = [column for column in columns if column.type in character]
    choices = [column for column in columns if column.type in CHOICES]
    for kind, data in fields:
        value = Fields(data)
        if kind == MetadataKind.SIGNEDNESS:
            numbers = [column for column in columns if column.type in _NUMERIC]
            bits = value.take((len(numbers) + 7) // 8)
            for i, column in enumerate(numbers):
                column.unsigned = bool(bits[i >> 3] << (i & 7) & 0x80)
        elif kind in (MetadataKind.DEFAULT_CHARSET, MetadataKind.ENUM_AND_SET_DEFAULT_CHARSET):
            _set_charsets(texts if kind == MetadataKind.DEFAULT_CHARSET else choices, data)
        elif kind in (MetadataKind.COLUMN_CHARSET, MetadataKind.ENUM_AND_SET_COLUMN_CHARSET):
            for column in texts if kind == MetadataKind.COLUMN_CHARSET else choices:
                column.charset = charset_of_column(value.lenenc_int())
        elif kind == MetadataKind.COLUMN_NAME:
            names, _stop = packed_texts(data, len(columns))
            for column, name in zip(columns, names, strict=True):
                column.name = name
        elif kind in (MetadataKind.SET_STR_VALUE, MetadataKind.ENUM_STR_VALUE):
            for column in choices:
                if column.type == (codes.FIELD_SET if kind == MetadataKind.SET_STR_VALUE else codes.FIELD_ENUM):
                    count = value.lenenc_int()
                    if count > _MOST_TEXTS:
                        raise Malformed(f"{count} texts of an ENUM or SET")
                    column.texts = [value.lenenc_bytes() for _ in range(count)]


def _set_charsets(columns: list[TableColumn], value: bytes) -> None:
    default, others = default_charset(value, len(columns))
    name = charset_of_column(default)
    for column in columns:
        column.charset = name
    for which, collation in others:
        columns[which].charset = charset_of_column(collation)
