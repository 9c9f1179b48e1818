"""The body of a Table_map event taken apart, so that columns can be others and the rest stays."""

from typing import Final, NamedTuple

from protocol.binlog.fields import Fields
from protocol.columns.codes.column_codes import MOST_COLUMNS
from protocol.errors import Malformed
from protocol.wire import lenenc_bytes, lenenc_int

ID_BYTES: Final = 6
"""Of the table id, which the body begins with."""
_HEAD_BYTES: Final = ID_BYTES + 2
_LONGEST_NAME: Final = 64 * 4

TIMESTAMP_OLD: Final = 7
TIME_OLD: Final = 11
DATETIME_OLD: Final = 12
VARCHAR: Final = 15
BIT: Final = 16
TIMESTAMP: Final = 17
DATETIME: Final = 18
TIME: Final = 19
BLOB_COMPRESSED: Final = 140
VARCHAR_COMPRESSED: Final = 141
VECTOR: Final = 242
JSON: Final = 245
DECIMAL: Final = 246
ENUM: Final = 247
SET: Final = 248
BLOB: Final = 252
STRING: Final = 254
GEOMETRY: Final = 255

METADATA_BYTES: Final[dict[int, int]] = {
    1: 0, 2: 0, 3: 0, 4: 1, 5: 1, TIMESTAMP_OLD: 0, 8: 0, 9: 0, 10: 0, TIME_OLD: 0, DATETIME_OLD: 0, 13: 0, 14: 0, VARCHAR: 2,
    BIT: 2, TIMESTAMP: 1, DATETIME: 1, TIME: 1, BLOB_COMPRESSED: 1, VARCHAR_COMPRESSED: 2, VECTOR: 1, JSON: 1, DECIMAL: 2, ENUM: 2,
    SET: 2, BLOB: 1, STRING: 2, GEOMETRY: 1,
}  # fmt: skip
"""Column type -> how many bytes of metadata it has. A type that is not here: nobody knows, and nothing behind it can be read."""


class UnknownColumnType(Exception):
    """A type of which nobody knows how long its metadata is. number: of the column, from 1."""

    def __init__(self, kind: int, number: int, schema: bytes, table: bytes) -> None:
        super().__init__(f"column {number} of type {kind}")
        self.kind = kind
        self.number = number
        self.schema = schema
        self.table = table


class MapColumn(NamedTuple):
    """A column: its type and its metadata as they stand in the event."""

    type: int
    metadata: bytes = b""

    @property
    def real_type(self) -> int:
        """The type, of ENUM and SET that one and not STRING, which they stand under."""
        return self.metadata[0] if self.type == STRING and self.metadata[0] in (ENUM, SET) else self.type

    @property
    def string_bytes(self) -> int:
        """Of a STRING that is no ENUM or SET: the most bytes that a value has. Its upper two bits are inverted in the type."""
        return self.metadata[1] | ((self.metadata[0] & 0x30) ^ 0x30) << 4

    @property
    def number(self) -> int:
        """The metadata as one number, little-endian."""
        return int.from_bytes(self.metadata, "little")


class TableMapBody(NamedTuple):
    """head: table id and flags. nullable: a bit a column. optional: the optional metadata, as they stand in the event."""

    head: bytes
    schema: bytes
    table: bytes
    columns: tuple[MapColumn, ...]
    nullable: bytes
    optional: bytes

    @property
    def name(self) -> tuple[str, str]:
        """Schema and table."""
        return self.schema.decode("utf-8", "backslashreplace"), self.table.decode("utf-8", "backslashreplace")

    @property
    def types(self) -> bytes:
        """The real type of each column."""
        return bytes(column.real_type for column in self.columns)

    def encode(self) -> bytes:
        """The event's body."""
        return b"".join((
            self.head,
            lenenc_bytes(self.schema), b"\0",
            lenenc_bytes(self.table), b"\0",
            lenenc_int(len(self.columns)), bytes(column.type for column in self.columns),
            lenenc_bytes(b"".join(column.metadata for column in self.columns)),
            self.nullable,
            self.optional,
        ))  # fmt: skip


def decode_map_body(body: bytes) -> TableMapBody:
    """Takes a Table_map's body without checksum apart.

    Layout: table id u48 | flags u16 | schema length packed, schema, zero | table length packed, table, zero | number of columns
    packed | a type u8 each | metadata length packed, metadata | nullable, a bit each | optional metadata.
    Raises: Truncated, Malformed; UnknownColumnType.
    """
    fields = Fields(body)
    head = fields.take(_HEAD_BYTES)
    schema = _name(fields)
    table = _name(fields)
    count = fields.lenenc_int()
    if not 0 < count <= MOST_COLUMNS:
        raise Malformed(f"a table of {count} columns; servers have 1 to {MOST_COLUMNS}")
    types = fields.take(count)
    metadata = Fields(fields.lenenc_bytes())
    columns = []
    for number, kind in enumerate(types, 1):
        size = METADATA_BYTES.get(kind)
        if size is None:
            raise UnknownColumnType(kind, number, schema, table)
        columns.append(MapColumn(kind, metadata.take(size)))
    if metadata.remaining:
        raise Malformed(f"{metadata.remaining} bytes of metadata are no column's")
    nullable = fields.take((count + 7) // 8)
    return TableMapBody(head, schema, table, tuple(columns), nullable, fields.rest())


def _name(fields: Fields) -> bytes:
    name = fields.lenenc_bytes()
    if len(name) > _LONGEST_NAME:
        raise Malformed(f"a name of {len(name)} bytes")
    if fields.u8():
        raise Malformed("a name without a zero behind it")
    return name
