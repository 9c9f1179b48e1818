"""Answers to queries: columns as servers describe them, and rows of text."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, IntFlag
from typing import Final, Self

from protocol.charsets import TextEncoding
from protocol.packets import STATUS_AUTOCOMMIT, eof_payload
from protocol.wire import lenenc_bytes, lenenc_int

Value = str | int | None

_CHARSET_BINARY: Final = 63
_DEFAULT_ENCODING: Final = TextEncoding()


class ColumnType(IntEnum):
    """Type codes of the protocol. Source: MySQL 9.x `include/field_types.h`."""

    LONG = 3
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    DATE = 10
    TIME = 11
    DATETIME = 12
    NEWDECIMAL = 246
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    VAR_STRING = 253
    STRING = 254


class ColumnFlag(IntFlag):
    """Flags of a column definition. Source: MySQL 9.x `include/mysql_com.h`."""

    NOT_NULL = 1
    UNSIGNED = 32
    BINARY = 128
    NO_DEFAULT_VALUE = 4096


_NULLABLE: Final = ColumnFlag(0)


@dataclass(frozen=True, slots=True)
class Column:
    """One column's definition.

    `length`: in characters for text (`is_text`), in bytes otherwise. `decimals` None: no fixed number of them.
    """

    name: str
    kind: ColumnType = ColumnType.VAR_STRING
    length: int = 1024
    flags: ColumnFlag = _NULLABLE
    decimals: int | None = None
    is_text: bool = True
    schema: str = ""
    table: str = ""
    original_name: str = ""

    @classmethod
    def text(cls, name: str, characters: int = 255, *, nullable: bool = False) -> Self:
        """A text column of a SHOW statement."""
        return cls(name, length=characters, flags=_NULLABLE if nullable else ColumnFlag.NOT_NULL)

    @classmethod
    def number(
        cls, name: str, digits: int = 20, *, nullable: bool = False, big: bool = True, signed: bool = False
    ) -> Self:
        """An integer column of a SHOW statement."""
        flags = ColumnFlag.BINARY
        if not nullable:
            flags |= ColumnFlag.NOT_NULL
        if not signed:
            flags |= ColumnFlag.UNSIGNED
        kind = ColumnType.LONGLONG if big else ColumnType.LONG
        return cls(name, kind, digits, flags, decimals=0, is_text=False)

    def named(self, name: str) -> Self:
        """The same column with another name."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True)
class Rows:
    """A result set: columns, and rows of text, integers and NULL.

    A column that is only a name is of integers if all its values are, else of text.
    """

    columns: tuple[Column | str, ...]
    rows: tuple[tuple[Value, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column if isinstance(column, str) else column.name for column in self.columns)


def result_payloads(
    result: Rows, encoding: TextEncoding = _DEFAULT_ENCODING, status: int = STATUS_AUTOCOMMIT
) -> list[bytes]:
    """The payloads of a text result set: column count, column definitions, EOF, rows, EOF."""
    payloads = [lenenc_int(len(result.columns))]
    for index, column in enumerate(result.columns):
        if isinstance(column, str):
            column = _guessed(column, [row[index] for row in result.rows])
        payloads.append(_column_payload(column, encoding))
    payloads.append(eof_payload(status))
    payloads.extend(_row_payload(row, encoding) for row in result.rows)
    payloads.append(eof_payload(status))
    return payloads


def _guessed(name: str, values: Sequence[Value]) -> Column:
    if values and all(isinstance(value, int) for value in values):
        return Column.number(name, 21, signed=True)
    return Column.text(name, 1024, nullable=True)


def _column_payload(column: Column, encoding: TextEncoding) -> bytes:
    """Column definition: catalog, schema, table, original table, name, original name | 0x0c, charset u16, length u32,
    type u8, flags u16, decimals u8, filler u16."""
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
