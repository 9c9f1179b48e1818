"""What a Table_map says about the columns of its table: types, their arguments, and the optional metadata of newer servers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from protocol.binlog.fields import Fields
from protocol.binlog.schema.column_charsets import charset_of_column
from protocol.errors import Malformed, Truncated

TYPE_ENUM: Final = 247
TYPE_SET: Final = 248
TYPE_STRING: Final = 254
TYPE_GEOMETRY: Final = 255
# What has a bit of signedness: YEAR and the old DECIMAL among them.
_NUMERIC: Final = frozenset((0, 1, 2, 3, 4, 5, 8, 9, 13, 246))
_CHARACTER: Final = frozenset((15, 242, 252, 253, 254))
_MARIADB_CHARACTER: Final = frozenset((15, 140, 141, 252, 253, 254, 255))
_ONE_ARGUMENT: Final = frozenset((4, 5, 17, 18, 19, 140, 242, 245, 249, 250, 251, 252, 255))
_TWO_ARGUMENTS: Final = frozenset((15, 16, 141, 246, 247, 248, 253, 254))
_MOST_TEXTS: Final = 65535


@dataclass(slots=True)
class TableColumn:
    """One column. `type`: of an ENUM or SET that one, not STRING. `arguments`: metadata, as the type has them (a length of
    STRING whole). `unsigned`, `charset`, `texts`, `name`: None where the event does not tell; texts in `charset`.
    """

    type: int
    arguments: tuple[int, int] = (0, 0)
    name: bytes | None = None
    unsigned: bool | None = None
    charset: str | None = None
    texts: list[bytes] | None = None


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns, and whether the optional metadata could not be read to its end."""

    columns: list[TableColumn]
    optional_malformed: bool


def decode_table_columns(body: bytes, id_size: int, mariadb: bool) -> TableColumns:
    """Decode the columns of a Table_map's body, whose table id has `id_size` bytes.

    Layout: see TableMaps.take_map; then optional metadata: (type u8, length packed, value)*.
    Raises: Malformed where names or types are cut.
    Source: MySQL 9.7 `Table_map_event`, MariaDB 11.8 `Table_map_log_event::Optional_metadata_fields`.
    """
    fields = Fields(body)
    fields.skip(id_size + 2)
    for _ in range(2):
        fields.skip(fields.lenenc_int() + 1)
    types = fields.lenenc_bytes()
    arguments = Fields(fields.lenenc_bytes() if fields.remaining else b"")
    columns = []
    for code in types:
        try:
            columns.append(_column(code, arguments))
        except Truncated:  # behind a type that nobody knows, whose arguments may have any length
            columns.append(TableColumn(code))
    fields.skip(min((len(types) + 7) // 8, fields.remaining))
    try:
        _take_optional(columns, fields, mariadb)
    except (Truncated, Malformed):
        return TableColumns(columns, True)
    return TableColumns(columns, False)


def _column(code: int, arguments: Fields) -> TableColumn:
    if code in _ONE_ARGUMENT:
        return TableColumn(code, (arguments.u8(), 0))
    if code not in _TWO_ARGUMENTS:
        return TableColumn(code)
    first, second = arguments.u8(), arguments.u8()
    if code == TYPE_STRING:
        # the length's upper two bits are inverted in the type
        if first & 0x30 != 0x30:
            second |= ((first & 0x30) ^ 0x30) << 4
            first |= 0x30
        if first in (TYPE_ENUM, TYPE_SET):
            return TableColumn(first, (first, second))
        return TableColumn(code, (first, second))
    if code in (15, 141, 253):
        return TableColumn(code, (first | second << 8, 0))
    return TableColumn(code, (first, second))


def _take_optional(columns: list[TableColumn], fields: Fields, mariadb: bool) -> None:
    """Fills in what the optional metadata tell. Raises: Truncated, Malformed."""
    character = _MARIADB_CHARACTER if mariadb else _CHARACTER
    numbers = [column for column in columns if column.type in _NUMERIC]
    texts = [column for column in columns if column.type in character]
    choices = [column for column in columns if column.type in (TYPE_ENUM, TYPE_SET)]
    while fields.remaining:
        kind = fields.u8()
        value = Fields(fields.lenenc_bytes())
        if kind == 1:
            bits = value.take((len(numbers) + 7) // 8)
            for i, column in enumerate(numbers):
                column.unsigned = bool(bits[i >> 3] << (i & 7) & 0x80)
        elif kind in (2, 10):
            _take_default_charset(texts if kind == 2 else choices, value)
        elif kind in (3, 11):
            for column in texts if kind == 3 else choices:
                column.charset = charset_of_column(value.lenenc_int())
        elif kind == 4:
            names = [value.lenenc_bytes() for _ in columns]
            for column, name in zip(columns, names, strict=True):
                column.name = name
        elif kind in (5, 6):
            for column in choices:
                if column.type == (TYPE_SET if kind == 5 else TYPE_ENUM):
                    column.texts = list(_strings(value))


def _take_default_charset(columns: list[TableColumn], value: Fields) -> None:
    """The collation that most columns have, then pairs: which of the columns has which other."""
    default = charset_of_column(value.lenenc_int())
    for column in columns:
        column.charset = default
    while value.remaining:
        which, collation = value.lenenc_int(), value.lenenc_int()
        if which >= len(columns):
            raise Malformed(f"charset of text column {which}; the table has {len(columns)}")
        columns[which].charset = charset_of_column(collation)


def _strings(value: Fields) -> Iterator[bytes]:
    count = value.lenenc_int()
    if count > _MOST_TEXTS:
        raise Malformed(f"{count} texts of an ENUM or SET")
    for _ in range(count):
        yield value.lenenc_bytes()
