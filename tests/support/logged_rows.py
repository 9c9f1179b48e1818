"""The rows of row events, read by the manual alone, in plain Python: a second opinion that does not use `protocol`.

A value is the bytes that the binlog has of it, a number for FLOAT and DOUBLE, None for NULL, ABSENT if the image leaves it out.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple


class Absent(Enum):
    """The value of a column that a MINIMAL or NOBLOB image leaves out."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
Value = bytes | float | None | Absent
Row = tuple[Value, ...]

_WRITE: Final = frozenset((23, 30))
_UPDATE: Final = frozenset((24, 31))
_DELETE: Final = frozenset((25, 32))
ROWS: Final = _WRITE | _UPDATE | _DELETE
_SECOND_VERSION: Final = frozenset((30, 31, 32))
_NO_FOREIGN_KEY_CHECKS: Final = 0x0002

_FLOAT, _DOUBLE, _VARCHAR, _BIT, _DECIMAL, _STRING, _ENUM, _SET = 4, 5, 15, 16, 246, 254, 247, 248
_BLOBS: Final = frozenset((242, 245, 252, 255))
"""The metadata of VECTOR, JSON, all BLOBs and TEXTs and GEOMETRY is the number of bytes of the length."""
_SIZES: Final = {1: 1, 2: 2, 9: 3, 3: 4, 8: 8, _FLOAT: 4, _DOUBLE: 8, 13: 1, 10: 3, 14: 3, 11: 3, 7: 4, 12: 8}
_SECONDS: Final = {17: 4, 18: 5, 19: 3}
"""The bytes of TIMESTAMP, DATETIME and TIME since 5.6, without their fractions."""
_METADATA: Final = {
    _FLOAT: 1,
    _DOUBLE: 1,
    _VARCHAR: 2,
    _BIT: 2,
    _DECIMAL: 2,
    _STRING: 2,
    17: 1,
    18: 1,
    19: 1,
} | dict.fromkeys(_BLOBS, 1)
_DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


@dataclass(frozen=True, slots=True)
class MappedTable:
    """A table as a Table_map has it: a type and its metadata for each column."""

    schema: str
    name: str
    types: tuple[int, ...]
    metadata: tuple[bytes, ...]


class RowChange(NamedTuple):
    """A row that was inserted (no before), deleted (no after) or updated. `checked` says that foreign keys hold for it."""

    table: MappedTable
    before: Row | None
    after: Row | None
    checked: bool


class _Bytes:
    """A place in bytes that are read from left to right."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise ValueError(f"{count} bytes are wanted, {self.left} are left")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def packed(self) -> int:
        first = self.number(1)
        return first if first < 251 else self.number({252: 2, 253: 3, 254: 8}[first])

    def bits(self, count: int) -> list[bool]:
        taken = self.take((count + 7) // 8)
        return [bool(taken[at >> 3] >> (at & 7) & 1) for at in range(count)]


def read_table_map(body: bytes) -> tuple[int, MappedTable]:
    """Return (table id, table) of a Table_map's body without header and checksum."""
    read = _Bytes(body)
    number = read.number(6)
    read.take(2)
    schema = read.take(read.number(1)).decode()
    read.take(1)
    name = read.take(read.number(1)).decode()
    read.take(1)
    types = tuple(read.take(read.packed()))
    described = _Bytes(read.take(read.packed()))
    metadata = tuple(described.take(_METADATA.get(kind, 0)) for kind in types)
    return number, MappedTable(schema, name, types, metadata)


def read_rows(kind: int, body: bytes, tables: dict[int, MappedTable]) -> Iterator[RowChange]:
    """Yield the changes in a row event of versions 1 and 2: type and body without header and checksum."""
    read = _Bytes(body)
    table = tables[read.number(6)]
    flags = read.number(2)
    if kind in _SECOND_VERSION:
        read.take(read.number(2) - 2)
    columns = read.packed()
    if columns != len(table.types):
        raise ValueError(f"{columns} columns, and the Table_map of {table.schema}.{table.name} has {len(table.types)}")
    present = read.bits(columns)
    present_after = read.bits(columns) if kind in _UPDATE else present
    checked = not flags & _NO_FOREIGN_KEY_CHECKS
    while read.left:
        first = _row(read, table, present)
        if kind in _WRITE:
            yield RowChange(table, None, first, checked)
        elif kind in _DELETE:
            yield RowChange(table, first, None, checked)
        else:
            yield RowChange(table, first, _row(read, table, present_after), checked)


def _row(read: _Bytes, table: MappedTable, present: list[bool]) -> Row:
    nulls = iter(read.bits(sum(present)))
    return tuple(
        ABSENT if not here else None if next(nulls) else _value(read, kind, metadata)
        for here, kind, metadata in zip(present, table.types, table.metadata, strict=True)
    )


def _value(read: _Bytes, kind: int, metadata: bytes) -> Value:
    if kind == _FLOAT:
        return float(struct.unpack("<f", read.take(4))[0])
    if kind == _DOUBLE:
        return float(struct.unpack("<d", read.take(8))[0])
    if kind in _SIZES:
        return read.take(_SIZES[kind])
    if kind in _SECONDS:
        return read.take(_SECONDS[kind] + (metadata[0] + 1) // 2)
    if kind == _VARCHAR:
        return read.take(read.number(1 if int.from_bytes(metadata, "little") < 256 else 2))
    if kind in _BLOBS:
        return read.take(read.number(metadata[0]))
    if kind == _BIT:
        return read.take(metadata[1] + (metadata[0] > 0))
    if kind == _DECIMAL:
        whole, scale = metadata[0] - metadata[1], metadata[1]
        return read.take(whole // 9 * 4 + _DIGIT_BYTES[whole % 9] + scale // 9 * 4 + _DIGIT_BYTES[scale % 9])
    if kind == _STRING:
        # A CHAR of more than 255 bytes has two bits of its length in the type's byte, turned over.
        real = metadata[0] | 0x30
        if real in (_ENUM, _SET):
            return read.take(metadata[1])
        longest = metadata[1] | ((metadata[0] & 0x30) ^ 0x30) << 4
        return read.take(read.number(1 if longest < 256 else 2))
    raise ValueError(f"a column of type {kind} is not read here")
