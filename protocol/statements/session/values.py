"""Values together with the column by which a server describes them. The recordings are in tests/corpus/answers.

Source: column definitions that MySQL 5.6.24, MySQL 9.7.4 and MariaDB 10.11.18 answered with.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from protocol.resultset import AnswerColumn, ColumnFlag, ColumnType, Value
from protocol.statements.session.facts import SourceFacts

_NOT_NULL: Final = ColumnFlag.NOT_NULL
_BINARY: Final = ColumnFlag.BINARY
_UNSIGNED: Final = ColumnFlag.UNSIGNED
_LONG_BITS: Final = 31
_NUMBERS: Final = (ColumnType.LONG, ColumnType.LONGLONG, ColumnType.DOUBLE, ColumnType.NEWDECIMAL)
_LEADING_NUMBER: Final = re.compile(r"\s*+[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?", re.ASCII)
_MOST_CHARACTERS_OF_A_NUMBER: Final = 128
# The decimals of floating-point numbers; MariaDB has another value for text only.
_NOT_FIXED: Final = 31
# The length that MySQL 8 reserves for any variable of text, whatever it contains.
_TEXT_OF_MYSQL_8: Final = 21845


@dataclass(frozen=True, slots=True)
class Typed:
    """A value and its column, which has no name yet."""

    value: Value
    column: AnswerColumn

    @property
    def is_null(self) -> bool:
        """True if this is NULL."""
        return self.value is None

    @property
    def is_number(self) -> bool:
        """True if it is compared as a number."""
        return self.column.kind in _NUMBERS

    @property
    def is_true(self) -> bool:
        """True if IF and WHERE take it for true."""
        return not self.is_null and self.as_number() != 0

    def as_number(self) -> int | Fraction | float:
        """Return its number: for a text the number it begins with, or 0. It must not be NULL."""
        if isinstance(self.value, int):
            return int(self.value)
        text = str(self.value)[:_MOST_CHARACTERS_OF_A_NUMBER]
        if self.column.kind is ColumnType.NEWDECIMAL:
            return Fraction(text)
        match = _LEADING_NUMBER.match(text)
        return float(match[0]) if match is not None else 0.0


def null() -> Typed:
    """Return the literal NULL."""
    return Typed(None, _number(ColumnType.NULL, 0, _BINARY))


def text(value: str | None, *, characters: int | None = None, nullable: bool = True) -> Typed:
    """Return text of as many characters as it has, or may have."""
    length = len(value or "") if characters is None else characters
    return Typed(value, AnswerColumn("", length=length, flags=ColumnFlag(0) if nullable else _NOT_NULL))


def integer(facts: SourceFacts, value: int, digits: int | None = None) -> Typed:
    """Return an integer that is written in the statement, or that a function makes."""
    length = len(str(value)) if digits is None else digits
    if facts.is_mysql_8 and digits is None and value >= 0:
        length += 1  # a place for the sign, which it does not have
    fits = facts.is_mariadb and -(1 << _LONG_BITS) <= value < 1 << _LONG_BITS
    return Typed(value, _number(ColumnType.LONG if fits else ColumnType.LONGLONG, length, _NOT_NULL | _BINARY))


def truth(facts: SourceFacts, value: bool | None) -> Typed:
    """Return the result of a comparison."""
    kind = ColumnType.LONG if facts.is_mariadb else ColumnType.LONGLONG
    flags = _BINARY if value is None else _NOT_NULL | _BINARY
    return Typed(None if value is None else int(value), _number(kind, 1, flags))


def big_integer(value: int, digits: int = 21, flags: ColumnFlag = _NOT_NULL | _BINARY) -> Typed:
    """Return a LONGLONG, whatever the value."""
    return Typed(value, _number(ColumnType.LONGLONG, digits, flags))


def decimal(value: str, length: int | None = None) -> Typed:
    """Return a number with a decimal point, as it is written. `length` is what it may have, if that is not its own."""
    decimals = len(value.partition(".")[2])
    size = len(value) + 1 if length is None else length
    return Typed(value, AnswerColumn("", ColumnType.NEWDECIMAL, size, _NOT_NULL | _BINARY, decimals, is_text=False))


def real(value: str, decimals: int | None = None, digits: int | None = None) -> Typed:
    """Return a floating-point number, as it is written."""
    flags = _BINARY if decimals is not None else _NOT_NULL | _BINARY
    length = len(value) if digits is None else digits
    shown = value if decimals is not None else f"{float(value):.15g}"
    return Typed(
        shown,
        AnswerColumn("", ColumnType.DOUBLE, length, flags, _NOT_FIXED if decimals is None else decimals, is_text=False),
    )


def moment(value: str, kind: ColumnType, length: int | None = None, decimals: int = 0) -> Typed:
    """Return a date, a time, or both."""
    size = len(value) if length is None else length
    return Typed(value, AnswerColumn("", kind, size, _NOT_NULL | _BINARY, decimals, is_text=False))


def system_value(facts: SourceFacts, value: Value, *, is_real: bool = False) -> Typed:
    """Return the value of SELECT @@variable. A bool is ON or OFF, shown as 1 or 0."""
    if isinstance(value, bool):
        return Typed(int(value), _number(ColumnType.LONGLONG, 1, _BINARY))
    if isinstance(value, int):
        return Typed(value, _number(ColumnType.LONGLONG, 21, _BINARY | _UNSIGNED))
    if is_real and value is not None:
        return real(value, 6, 23 if facts.is_mysql_8 else 21)
    return text(value, characters=_TEXT_OF_MYSQL_8 if facts.is_mysql_8 else None)


def user_value(facts: SourceFacts, value: Value, *, was_set: bool, character_bytes: int) -> Typed:
    """Return the value of SELECT @variable. `character_bytes` is that of the client's set, on which a few lengths depend."""
    if isinstance(value, int):
        digits = 20 if facts.is_mariadb else 21 if facts.is_mysql_8 else 20 * character_bytes
        return Typed(int(value), _number(ColumnType.LONGLONG, digits, _BINARY))
    kind = ColumnType.MEDIUM_BLOB if facts.flavour == "mysql" and not facts.is_mysql_8 else ColumnType.LONG_BLOB
    if value is not None:
        characters = 50331645 if facts.is_mysql_8 else 16777215
        return Typed(value, AnswerColumn("", kind, characters))
    if was_set:
        kind = ColumnType.LONG_BLOB if facts.is_mariadb else ColumnType.MEDIUM_BLOB
        return Typed(None, AnswerColumn("", kind, 16777215, _BINARY, is_text=False))
    if facts.is_mysql_8:
        return Typed(
            None,
            AnswerColumn("", ColumnType.VAR_STRING, 65535 // character_bytes * character_bytes, _BINARY, is_text=False),
        )
    return Typed(None, AnswerColumn("", ColumnType.LONG_BLOB, 16777216, _BINARY, is_text=False))


def _number(kind: ColumnType, length: int, flags: ColumnFlag) -> AnswerColumn:
    return AnswerColumn("", kind, length, flags, decimals=0, is_text=False)
