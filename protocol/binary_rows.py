"""Rows of prepared statements: values as bytes of their columns' kinds.

Layout: 0 | NULL bits, from the third on | the other values. Source: MySQL 9.x reference, "Binary Protocol Resultset".
"""

import struct
from collections.abc import Sequence
from typing import Final

from protocol.charsets import TextEncoding
from protocol.result_columns import AnswerColumn, ColumnType
from protocol.wire import lenenc_bytes

_RESERVED_BITS: Final = 2
_LONG_MASK: Final = (1 << 32) - 1
_LONGLONG_MASK: Final = (1 << 64) - 1
_MOMENTS: Final = (ColumnType.DATE, ColumnType.DATETIME, ColumnType.TIMESTAMP)


def binary_row(row: Sequence[str | int | None], columns: Sequence[AnswerColumn], encoding: TextEncoding) -> bytes:
    """Return the payload of one row."""
    nulls = bytearray((len(columns) + _RESERVED_BITS + 7) // 8)
    values = bytearray()
    for number, (value, column) in enumerate(zip(row, columns, strict=True), _RESERVED_BITS):
        if value is None or column.kind is ColumnType.NULL:
            nulls[number // 8] |= 1 << number % 8
        else:
            values += _value(value, column, encoding)
    return b"\0" + bytes(nulls) + bytes(values)


def _value(value: str | int, column: AnswerColumn, encoding: TextEncoding) -> bytes:
    if column.kind is ColumnType.LONG:
        return struct.pack("<I", int(value) & _LONG_MASK)
    if column.kind is ColumnType.LONGLONG:
        return struct.pack("<Q", int(value) & _LONGLONG_MASK)
    if column.kind is ColumnType.DOUBLE:
        return struct.pack("<d", float(value))
    if column.kind in _MOMENTS:
        return _moment(str(value))
    if column.kind is ColumnType.TIME:
        return _time(str(value))
    return lenenc_bytes(encoding.encode(str(int(value)) if isinstance(value, bool) else str(value)))


def _numbers(text: str) -> list[int]:
    return [int(part) if part.isdecimal() else 0 for part in text.replace("-", " ").replace(":", " ").split()]


def _moment(text: str) -> bytes:
    """Encode `2025-01-31 23:59:59.5` as length u8 | year u16 | month | day | hour | minute | second u8 | microseconds u32."""
    shown, _point, fraction = text.partition(".")
    parts = (_numbers(shown) + [0] * 6)[:6]
    microseconds = int(fraction.ljust(6, "0")[:6]) if fraction.isdecimal() else 0
    if not any(parts) and not microseconds:
        return b"\0"
    packed = struct.pack("<H5BI", parts[0] & 0xFFFF, *(part & 0xFF for part in parts[1:]), microseconds)
    size = 11 if microseconds else 7 if any(parts[3:]) else 4
    return bytes((size,)) + packed[:size]


def _time(text: str) -> bytes:
    """Encode `-26:03:04` as length u8 | is negative u8 | days u32 | hours | minutes | seconds u8."""
    hours, minutes, seconds = (_numbers(text.partition(".")[0]) + [0] * 3)[:3]
    if not (hours or minutes or seconds):
        return b"\0"
    days, hours = divmod(hours, 24)
    return struct.pack("<BBI3B", 8, text.startswith("-"), days, hours, minutes & 0xFF, seconds & 0xFF)
