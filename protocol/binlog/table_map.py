"""Table_map: the number that row events use for a table, and its columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Final, NamedTuple

from protocol.binlog.fields import Fields
from protocol.columns.codes import column_codes as codes
from protocol.errors import Malformed, ProtocolError, Truncated
from protocol.wire import lenenc_bytes, lenenc_int

_FLAGS_BYTES: Final = 2
_LONGEST_NAME: Final = 64 * 4
_PACKED: Final = 0xFB
"""The least first byte of a length that has more bytes."""
_WITHOUT_METADATA: Final = (
    codes.FIELD_DECIMAL, codes.FIELD_TINY, codes.FIELD_SHORT, codes.FIELD_LONG, codes.FIELD_NULL, codes.FIELD_TIMESTAMP,
    codes.FIELD_LONGLONG, codes.FIELD_INT24, codes.FIELD_DATE, codes.FIELD_TIME, codes.FIELD_DATETIME, codes.FIELD_YEAR,
    codes.FIELD_NEWDATE,
)  # fmt: skip
_ONE_BYTE: Final = (
    codes.FIELD_FLOAT, codes.FIELD_DOUBLE, codes.FIELD_TIMESTAMP2, codes.FIELD_DATETIME2, codes.FIELD_TIME2,
    codes.FIELD_BLOB_COMPRESSED, codes.FIELD_VECTOR, codes.FIELD_JSON, codes.FIELD_TINY_BLOB, codes.FIELD_MEDIUM_BLOB,
    codes.FIELD_LONG_BLOB, codes.FIELD_BLOB, codes.FIELD_GEOMETRY,
)  # fmt: skip
_LENGTHS: Final = (codes.FIELD_VARCHAR, codes.FIELD_VARCHAR_COMPRESSED, codes.FIELD_VAR_STRING)
_TWO_BYTES: Final = (
    *_LENGTHS,
    codes.FIELD_BIT,
    codes.FIELD_NEWDECIMAL,
    codes.FIELD_ENUM,
    codes.FIELD_SET,
    codes.FIELD_STRING,
)
METADATA_BYTES: Final[dict[int, int]] = (
    dict.fromkeys(_WITHOUT_METADATA, 0) | dict.fromkeys(_ONE_BYTE, 1) | dict.fromkeys(_TWO_BYTES, 2)
)
"""Bytes of metadata by column type. After another type metadata cannot be read."""


class MetadataKind(IntEnum):
    """The kind of a field of the optional metadata. Source: MySQL 9.7 `Table_map_event::Optional_metadata_field_type`; MariaDB 11.8."""

    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    COLUMN_NAME = 4
    SET_STR_VALUE = 5
    ENUM_STR_VALUE = 6
    SIMPLE_PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIX = 9
    ENUM_AND_SET_DEFAULT_CHARSET = 10
    ENUM_AND_SET_COLUMN_CHARSET = 11
    VECTOR_DIMENSIONALITY = 13


class UnknownColumnType(ProtocolError):
    """A type's metadata have an unknown length. `number` is the column's, from 1."""

    def __init__(self, kind: int, number: int) -> None:
        super().__init__(f"column {number} of type {kind}")
        self.kind = kind
        self.number = number


class MapColumn(NamedTuple):
    """A column: its type and its metadata as in the event; empty if they are not in it."""

    type: int
    metadata: bytes = b""

    @property
    def real_type(self) -> int:
        """The type, which for ENUM and SET is not the event's STRING."""
        if (
            self.type == codes.FIELD_STRING
            and self.metadata
            and self.metadata[0] in (codes.FIELD_ENUM, codes.FIELD_SET)
        ):
            return self.metadata[0]
        return self.type

    @property
    def string_bytes(self) -> int:
        """The most bytes of a value of a STRING that is no ENUM or SET. The upper two bits are inverted in the type."""
        return self.metadata[1] | ((self.metadata[0] & 0x30) ^ 0x30) << 4

    @property
    def number(self) -> int:
        """The metadata as one number, little-endian."""
        return int.from_bytes(self.metadata, "little")

    @property
    def arguments(self) -> tuple[int, int]:
        """The metadata in the form of the type: a length whole, a STRING's as the second of two; zeros if there are none."""
        if len(self.metadata) < 2 or self.type in _LENGTHS:
            return self.number, 0
        if self.type == codes.FIELD_STRING:
            return self.metadata[0] | 0x30, self.string_bytes
        return self.metadata[0], self.metadata[1]


class MetadataField(NamedTuple):
    """A field of the optional metadata: its kind (MetadataKind, or one of later servers) and its value."""

    kind: int
    value: bytes

    def encode(self) -> bytes:
        """Encode the field: kind u8 | length packed | value."""
        return bytes((self.kind,)) + lenenc_bytes(self.value)


@dataclass  # not frozen: there are many, and that costs
class TableMap:
    """The table id and names; `rest` is the body after them, which is decoded only when the columns are needed.

    Properties of the columns raise: Truncated, Malformed.
    """

    table_id: int
    flags: int
    schema_bytes: bytes
    table_bytes: bytes
    rest: bytes
    _found: tuple[bytes, bytes, bytes, bytes] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def schema(self) -> str:
        """The database's name."""
        return self.schema_bytes.decode("utf-8", "backslashreplace")

    @property
    def table(self) -> str:
        """The table's name in it."""
        return self.table_bytes.decode("utf-8", "backslashreplace")

    @property
    def name(self) -> tuple[str, str]:
        """Schema and table."""
        return self.schema, self.table

    @property
    def types(self) -> bytes:
        """A type code for each column, as in the event."""
        return self._parts()[0]

    @cached_property
    def columns(self) -> tuple[MapColumn, ...]:
        """The columns with their metadata. Those after an unknown type have none, or others'."""
        types, metadata, _nullable, _optional = self._parts()
        found = []
        at = 0
        for kind in types:
            stop = at + METADATA_BYTES.get(kind, 0)
            found.append(MapColumn(kind, metadata[at:stop] if stop <= len(metadata) else b""))
            at = stop
        return tuple(found)

    @property
    def nullable(self) -> bytes:
        """A bit for each column that may be NULL."""
        return self._parts()[2]

    @property
    def optional(self) -> bytes:
        """The optional metadata, as in the event."""
        return self._parts()[3]

    def optional_fields(self) -> Iterator[MetadataField]:
        """Yield the optional metadata in their order."""
        optional = self.optional
        at = 0
        while at < len(optional):
            length, start = _packed(optional, at + 1)
            if start + length > len(optional):
                raise Truncated(f"optional metadata whose last field lacks {start + length - len(optional)} bytes")
            yield MetadataField(optional[at], optional[start : start + length])
            at = start + length

    def _parts(self) -> tuple[bytes, bytes, bytes, bytes]:
        """Return types; their metadata, which the first servers with Table_map did not write; nullable; optional."""
        if self._found is None:
            rest = self.rest
            count, at = _packed(rest, 0)
            stop = at + count
            size, metadata = _packed(rest, stop) if stop < len(rest) else (0, stop)
            nullable = metadata + size
            if nullable > len(rest):
                raise Truncated(f"a Table_map whose columns pass its event by {nullable - len(rest)} bytes")
            optional = nullable + (count + 7) // 8
            self._found = rest[at:stop], rest[metadata:nullable], rest[nullable:optional], rest[optional:]
        return self._found

    def check_columns(self) -> None:
        """Check that the columns are as today's servers write them. Raises: Truncated, Malformed; UnknownColumnType."""
        types, metadata, nullable, _optional = self._parts()
        if not 0 < len(types) <= codes.MOST_COLUMNS:
            raise Malformed(f"a table of {len(types)} columns; servers have 1 to {codes.MOST_COLUMNS}")
        if max(len(self.schema_bytes), len(self.table_bytes)) > _LONGEST_NAME:
            raise Malformed(f"a name of more than {_LONGEST_NAME} bytes")
        for number, kind in enumerate(types, 1):
            if kind not in METADATA_BYTES:
                raise UnknownColumnType(kind, number)
        spare = len(metadata) - sum(map(METADATA_BYTES.__getitem__, types))
        if spare > 0:
            raise Malformed(f"{spare} bytes of metadata are no column's")
        if spare < 0 or len(nullable) < (len(types) + 7) // 8:
            raise Truncated(f"{len(types)} columns, whose metadata are cut")

    def with_columns(self, columns: Sequence[MapColumn], optional: bytes) -> "TableMap":
        """Return the map with as many other columns, and other optional metadata."""
        types = bytes(column.type for column in columns)
        metadata = lenenc_bytes(b"".join(column.metadata for column in columns))
        return replace(self, rest=lenenc_int(len(types)) + types + metadata + self.nullable + optional)

    def encode(self) -> bytes:
        """Encode the event's body, with a table id of 6 bytes."""
        names = lenenc_bytes(self.schema_bytes) + b"\0" + lenenc_bytes(self.table_bytes) + b"\0"
        return self.table_id.to_bytes(6, "little") + self.flags.to_bytes(_FLAGS_BYTES, "little") + names + self.rest


def table_id_bytes(post_length: int) -> int:
    """Return the size of the table id in a Table_map or row event with a fixed part of `post_length` bytes: 4 before 5.1 was
    released.
    """
    return 4 if post_length == 6 else 6


def decode_table_map(body: bytes, id_size: int = 6) -> TableMap:
    """Decode a Table_map event. `id_size` is the bytes of the table id, see `table_id_bytes`.

    Layout: table id | flags u16 | schema length packed, schema, zero | table length packed, table, zero | number of columns packed |
    a type u8 each | metadata length packed, metadata | nullable, a bit each | optional metadata: (kind u8, length packed, value)*, in
    newer servers.
    Raises: Truncated; Malformed if no zero follows a name. The columns are checked only when they are needed.
    Source: MySQL 9.7 `Table_map_event`, MariaDB 11.8 `Table_map_log_event`.
    """
    flags_end = id_size + _FLAGS_BYTES
    schema, at = _name(body, flags_end)
    table, at = _name(body, at)
    number, flags = int.from_bytes(body[:id_size], "little"), int.from_bytes(body[id_size:flags_end], "little")
    return TableMap(number, flags, schema, table, body[at:])


def _name(body: bytes, at: int) -> tuple[bytes, int]:
    """Return a name and the offset after its zero."""
    length, start = _packed(body, at)
    stop = start + length
    if stop >= len(body):
        raise Truncated(f"a Table_map whose names pass its event's {len(body)} bytes")
    if body[stop]:
        raise Malformed("a name without a zero after it")
    return body[start:stop], stop + 1


def _packed(data: bytes, at: int) -> tuple[int, int]:
    """Return a packed number, and where it ends. Nearly all have one byte, which is fast here."""
    if at < len(data) and data[at] < _PACKED:
        return data[at], at + 1
    fields = Fields(data[at:])
    return fields.lenenc_int(), at + fields.offset


def packed_texts(value: bytes, count: int, at: int = 0) -> tuple[list[bytes], int]:
    """Return `count` texts, each after its packed length, from `at` on, and where they end. Raises: Truncated, Malformed."""
    found = []
    for _ in range(count):
        length, start = _packed(value, at)
        at = start + length
        if at > len(value):
            raise Truncated(f"a text of {length} bytes, of which {len(value) - start} are here")
        found.append(value[start:at])
    return found, at


def default_charset(value: bytes, count: int) -> tuple[int, list[tuple[int, int]]]:
    """Decode DEFAULT_CHARSET or ENUM_AND_SET_DEFAULT_CHARSET of `count` columns.

    The result is the commonest collation, and the other columns, from 0, with their collations. Raises: Truncated, Malformed.
    Layout: the collation packed; then pairs: the column packed, its collation packed.
    """
    fields = Fields(value)
    default = fields.lenenc_int()
    others = []
    while fields.remaining:
        which, collation = fields.lenenc_int(), fields.lenenc_int()
        if which >= count:
            raise Malformed(f"a character set of text column {which}; the table has {count}")
        others.append((which, collation))
    return default, others
