"""Answers to queries: columns as servers describe them, and rows of text."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocol.binary_rows import binary_row
from protocol.charsets import TextEncoding
from protocol.packets import STATUS_AUTOCOMMIT, eof_payload
from protocol.result_columns import AnswerColumn as AnswerColumn
from protocol.result_columns import ColumnFlag as ColumnFlag
from protocol.result_columns import ColumnType as ColumnType
from protocol.show_columns import NO_TEXT
from protocol.wire import lenenc_bytes, lenenc_int

Value = str | int | None

_CHARSET_BINARY: Final = 63
_DEFAULT_ENCODING: Final = TextEncoding()


@dataclass(frozen=True, slots=True)
class Rows:
    """A result set: columns, and rows of text, integers and NULL.

    A column that is only a name is the servers' column of that name in a SHOW statement; others are of integers if all their values
    are, otherwise of text.
    """

    columns: tuple[AnswerColumn | str, ...]
    rows: tuple[tuple[Value, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column if isinstance(column, str) else column.name for column in self.columns)


def result_payloads(
    result: Rows,
    encoding: TextEncoding = _DEFAULT_ENCODING,
    status: int = STATUS_AUTOCOMMIT,
    *,
    is_binary: bool = False,
) -> list[bytes]:
    """Return the payloads of a result set: column count, column definitions, EOF, rows, EOF. `is_binary`: of a prepared statement."""
    columns = [
        _guessed(column, [row[index] for row in result.rows]) if isinstance(column, str) else column
        for index, column in enumerate(result.columns)
    ]
    payloads = [lenenc_int(len(columns)), *(column_payload(column, encoding) for column in columns)]
    payloads.append(eof_payload(status))
    if is_binary:
        payloads.extend(binary_row(row, columns, encoding) for row in result.rows)
    else:
        payloads.extend(_row_payload(row, encoding) for row in result.rows)
    payloads.append(eof_payload(status))
    return payloads


def _guessed(name: str, values: Sequence[Value]) -> AnswerColumn:
    if name in NO_TEXT:
        return NO_TEXT[name]
    if values and all(isinstance(value, int) for value in values):
        return AnswerColumn.number(name, 21, signed=True)
    return AnswerColumn.text(name, 1024, nullable=True)


def column_payload(column: AnswerColumn, encoding: TextEncoding) -> bytes:
    """Return a column definition: catalog, schema, table, original table, name, original name | 0x0c, charset u16, length u32, type
    u8, flags u16, decimals u8, filler u16.
    """
    table = lenenc_bytes(column.table.encode())
    names = lenenc_bytes(b"def") + lenenc_bytes(column.schema.encode()) + table + table
    names += lenenc_bytes(encoding.encode(column.name)) + lenenc_bytes(column.original_name.encode())
    charset = encoding.collation if column.is_text else _CHARSET_BINARY
    length = column.length * (encoding.charset.character_bytes if column.is_text else 1)
    decimals = encoding.not_fixed if column.decimals is None else column.decimals
    return (
        names
        + b"\x0c"
        + struct.pack("<HIBHBH", charset, min(length, 0xFFFFFFFF), column.kind, column.flags, decimals, 0)
    )


def _row_payload(row: Sequence[Value], encoding: TextEncoding) -> bytes:
    return b"".join(b"\xfb" if value is None else lenenc_bytes(encoding.encode(_text(value))) for value in row)


def _text(value: str | int) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
