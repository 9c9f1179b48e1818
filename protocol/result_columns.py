"""Columns of result sets, as servers describe them."""

from dataclasses import dataclass, replace
from enum import IntEnum, IntFlag
from typing import Final, Self


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
