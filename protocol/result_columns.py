"""Columns of result sets, as servers describe them."""

from dataclasses import dataclass, replace
from enum import IntEnum, IntFlag
from typing import Final, Self

from protocol.columns.codes import column_codes as codes


class ColumnType(IntEnum):
    """Type codes of the protocol, which are those of columns in the binlog."""

    LONG = codes.FIELD_LONG
    DOUBLE = codes.FIELD_DOUBLE
    NULL = codes.FIELD_NULL
    TIMESTAMP = codes.FIELD_TIMESTAMP
    LONGLONG = codes.FIELD_LONGLONG
    DATE = codes.FIELD_DATE
    TIME = codes.FIELD_TIME
    DATETIME = codes.FIELD_DATETIME
    NEWDECIMAL = codes.FIELD_NEWDECIMAL
    MEDIUM_BLOB = codes.FIELD_MEDIUM_BLOB
    LONG_BLOB = codes.FIELD_LONG_BLOB
    VAR_STRING = codes.FIELD_VAR_STRING
    STRING = codes.FIELD_STRING


class ColumnFlag(IntFlag):
    """Flags of a column definition. Source: MySQL 9.x `include/mysql_com.h`."""

    NOT_NULL = 1
    UNSIGNED = 32
    BINARY = 128
    NO_DEFAULT_VALUE = 4096


_NULLABLE: Final = ColumnFlag(0)


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """One column's definition.

    `length` is in characters for text (`is_text`), in bytes otherwise. `decimals` None: no fixed number of them.
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
        """Return a text column of a SHOW statement."""
        return cls(name, length=characters, flags=_NULLABLE if nullable else ColumnFlag.NOT_NULL)

    @classmethod
    def number(
        cls, name: str, digits: int = 20, *, nullable: bool = False, big: bool = True, signed: bool = False
    ) -> Self:
        """Return an integer column of a SHOW statement."""
        flags = ColumnFlag.BINARY
        if not nullable:
            flags |= ColumnFlag.NOT_NULL
        if not signed:
            flags |= ColumnFlag.UNSIGNED
        kind = ColumnType.LONGLONG if big else ColumnType.LONG
        return cls(name, kind, digits, flags, decimals=0, is_text=False)

    def named(self, name: str) -> Self:
        """Return the same column with another name."""
        return replace(self, name=name)
