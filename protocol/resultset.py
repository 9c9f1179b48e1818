"""Answers to queries as rows of text."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocol.packets import eof_payload
from protocol.wire import lenenc_bytes, lenenc_int

Value = str | int | None

_TYPE_LONGLONG: Final = 0x08
_TYPE_VAR_STRING: Final = 0xFD
_CHARSET_BINARY: Final = 63
_CHARSET_UTF8: Final = 33
_FLAG_BINARY_NUMBER: Final = 0x0080 | 0x8000


@dataclass(frozen=True, slots=True)
class Rows:
    """A result set: column names, and rows of text, integers and NULL. Columns are integers if all their values are."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


def result_payloads(result: Rows) -> list[bytes]:
    """The payloads of a text result set: column count, column definitions, EOF, rows, EOF."""
    payloads = [lenenc_int(len(result.columns))]
    for index, name in enumerate(result.columns):
        payloads.append(_column_payload(name, [row[index] for row in result.rows]))
    payloads.append(eof_payload())
    payloads.extend(_row_payload(row) for row in result.rows)
    payloads.append(eof_payload())
    return payloads


def _column_payload(name: str, values: Sequence[Value]) -> bytes:
    """Column definition: catalog, schema, table, original table, name, original name | 0x0c, charset u16, length u32,
    type u8, flags u16, decimals u8, filler u16."""
    is_number = bool(values) and all(isinstance(value, int) for value in values)
    charset, kind, flags = (
        (_CHARSET_BINARY, _TYPE_LONGLONG, _FLAG_BINARY_NUMBER) if is_number else (_CHARSET_UTF8, _TYPE_VAR_STRING, 0)
    )
    label = name.encode()
    names = lenenc_bytes(b"def") + lenenc_bytes(b"") * 3 + lenenc_bytes(label) + lenenc_bytes(b"")
    return names + b"\x0c" + struct.pack("<HIBHBH", charset, 21 if is_number else 3072, kind, flags, 0, 0)


def _row_payload(row: Sequence[Value]) -> bytes:
    return b"".join(b"\xfb" if value is None else lenenc_bytes(str(value).encode()) for value in row)
