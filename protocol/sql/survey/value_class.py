"""What a value is, as far as servers compute differently by it."""

import re
from datetime import date
from enum import StrEnum
from typing import Final

from protocol.sql.lexer import SqlToken, TokenKind


class ValueClass(StrEnum):
    """The class of a value. TRUE and FALSE are integers."""

    NULL = "null"
    INTEGER = "integer"
    NEGATIVE = "negative"
    UNSIGNED = "unsigned"
    """A whole number over 2^63 - 1."""
    DECIMAL = "decimal"
    DOUBLE = "double"
    TEXT_EMPTY = "text empty"
    TEXT_NUMBER = "text number"
    TEXT_DATE = "text date"
    """A literal text that is a date, with or without a time, but without an offset."""
    TEXT_DATE_COLUMN = "text date column"
    """Such a text that is no literal: servers compare it in another way."""
    TEXT_TIME = "text time"
    TEXT_OFFSET = "text offset"
    """A text that is a date and a time with an offset such as +02:00."""
    TEXT_NO_DATE = "text no date"
    """A text with the shape of a date or time that is none, or that has zeros as its month or day."""
    TEXT_OTHER = "text other"
    """Any other text in ASCII."""
    TEXT_WIDE = "text wide"
    """A text with other letters than those of ASCII."""
    BYTES = "bytes"
    """A binary string of a column or of `_binary`."""
    HEX = "hex"
    """A literal such as 0xFF, x'FF' or b'101'."""
    BIT = "bit"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"
    YEAR = "year"
    DATE_ZERO = "date zero"
    """A DATE, DATETIME or TIMESTAMP with zeros as its month or day."""
    ENUM = "enum"
    SET = "set"
    JSON = "json"
    GEOMETRY = "geometry"


ANY: Final = frozenset(ValueClass)
"""All classes: nothing is known of the value."""
TEXTS: Final = frozenset(one for one in ValueClass if one.startswith("text ")) - {ValueClass.TEXT_DATE}
"""Those of a text that is no literal."""
NUMBERS: Final = frozenset(
    (ValueClass.INTEGER, ValueClass.NEGATIVE, ValueClass.UNSIGNED, ValueClass.DECIMAL, ValueClass.DOUBLE)
)
_DATE: Final = r"(\d{4}|\d{1,3})[^\w\s:](\d{1,2})[^\w\s:](\d{1,2})"
_CLOCK: Final = r"(\d{1,3}):(\d{1,2})(?::(\d{1,2})(?:\.\d*)?)?"
_DATES: Final = re.compile(rf"\s*{_DATE}(.*)", re.DOTALL | re.ASCII)
_TIMES: Final = re.compile(rf"\s*-?(?:\d{{1,2}} )?{_CLOCK}\s*", re.ASCII)
_AFTER_DATE: Final = re.compile(rf"(?:[T ]\s*{_CLOCK})?\s*", re.ASCII)
_WITH_OFFSET: Final = re.compile(rf"[T ]\s*{_CLOCK}\s*[+-]\d{{2}}:\d{{2}}\s*", re.ASCII)
_NUMBER: Final = re.compile(r"\s*[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?\s*", re.ASCII)
MOST_LETTERS: Final = 64
"""A longer text is no date and no number that matters; so no pattern reads much."""
_HEX: Final = re.compile(r"0[xXb]", re.ASCII)
_TYPE: Final = re.compile(r"\s*([a-z]+)", re.IGNORECASE | re.ASCII)
_MOST_HOURS: Final = 838
_LARGEST_SIGNED: Final = (1 << 63) - 1
_LARGEST_UNSIGNED: Final = (1 << 64) - 1
_WHOLE: Final = frozenset((ValueClass.NULL, ValueClass.INTEGER, ValueClass.NEGATIVE))
_OF_TYPES: Final[dict[str, frozenset[ValueClass]]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT", "BOOL", "BOOLEAN"), _WHOLE),
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC", "FIXED"), frozenset((ValueClass.DECIMAL,))),
    **dict.fromkeys(("FLOAT", "DOUBLE", "REAL"), frozenset((ValueClass.DOUBLE,))),
    **dict.fromkeys(("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "CHARACTER", "NCHAR"), TEXTS),
    **dict.fromkeys(
        ("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"), frozenset((ValueClass.BYTES,))
    ),
    "BIT": frozenset((ValueClass.BIT,)),
    "DATE": frozenset((ValueClass.DATE, ValueClass.DATE_ZERO)),
    **dict.fromkeys(("DATETIME", "TIMESTAMP"), frozenset((ValueClass.DATETIME, ValueClass.DATE_ZERO))),
    "TIME": frozenset((ValueClass.TIME,)),
    "YEAR": frozenset((ValueClass.YEAR,)),
    "ENUM": frozenset((ValueClass.ENUM,)),
    "SET": frozenset((ValueClass.SET,)),
    "JSON": frozenset((ValueClass.JSON,)),
    **dict.fromkeys(
        ("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
         "GEOMETRYCOLLECTION", "GEOMCOLLECTION"),
        frozenset((ValueClass.GEOMETRY,)),
    ),
}  # fmt: skip


def class_of_text(text: str) -> ValueClass:
    """Return the class of a literal text."""
    if not text:
        return ValueClass.TEXT_EMPTY
    if not text.isascii():
        return ValueClass.TEXT_WIDE
    if len(text) > MOST_LETTERS:
        return ValueClass.TEXT_OTHER
    if _NUMBER.fullmatch(text):
        return ValueClass.TEXT_NUMBER
    dated = _DATES.fullmatch(text)
    if dated is not None:
        return _class_of_date(dated)
    timed = _TIMES.fullmatch(text)
    if timed is not None:
        return ValueClass.TEXT_TIME if _is_time(timed, _MOST_HOURS) else ValueClass.TEXT_NO_DATE
    return ValueClass.TEXT_OTHER


def is_hexadecimal(token: SqlToken) -> bool:
    """Return whether it is a number such as 0x41 or 0b1."""
    return token.kind is TokenKind.NUMBER and _HEX.match(token.text) is not None


def classes_of_literal(token: SqlToken) -> ValueClass:
    """Return the class of a literal. A sign or a word before it, as in `-1`, `x'41'` and `DATE '2020-01-31'`, is not part of it."""
    if token.kind is TokenKind.STRING:
        return class_of_text(token.text)
    if token.kind is not TokenKind.NUMBER:
        return {"TRUE": ValueClass.INTEGER, "FALSE": ValueClass.INTEGER}.get(token.upper, ValueClass.NULL)
    if is_hexadecimal(token):
        return ValueClass.HEX
    if "e" in token.text.lower():
        return ValueClass.DOUBLE
    if "." in token.text or len(token.text) > MOST_LETTERS or int(token.text) > _LARGEST_UNSIGNED:
        return ValueClass.DECIMAL
    return ValueClass.UNSIGNED if int(token.text) > _LARGEST_SIGNED else ValueClass.INTEGER


def classes_of_type(column_type: str) -> frozenset[ValueClass]:
    """Return what a column of this type, as in SHOW CREATE TABLE, may have; nothing for a type that was not surveyed."""
    match = _TYPE.match(column_type)
    found = _OF_TYPES.get(match[1].upper(), frozenset()) if match is not None else frozenset()
    if found is _WHOLE and ("unsigned" in column_type.lower() or "zerofill" in column_type.lower()):
        found = frozenset((ValueClass.INTEGER,))
        if column_type.lower().lstrip().startswith("bigint"):
            found |= {ValueClass.UNSIGNED}
    return found | {ValueClass.NULL} if found else found


def _class_of_date(dated: re.Match[str]) -> ValueClass:
    year, month, day, rest = dated.groups()
    try:
        date(int(year) + (2000 if len(year) < 3 else 0), int(month), int(day))
    except ValueError:
        return ValueClass.TEXT_NO_DATE
    offset = _WITH_OFFSET.fullmatch(rest)
    if offset is not None:
        return ValueClass.TEXT_OFFSET if _is_time(offset, 23) else ValueClass.TEXT_NO_DATE
    after = _AFTER_DATE.fullmatch(rest)
    return ValueClass.TEXT_DATE if after is not None and _is_time(after, 23) else ValueClass.TEXT_NO_DATE


def _is_time(timed: re.Match[str], most_hours: int) -> bool:
    hours, minutes, seconds = (int(part or 0) for part in timed.groups())
    if (hours, minutes, seconds) == (_MOST_HOURS, 59, 59) and timed[0].partition(".")[2].strip("0 "):
        return False  # more than the largest TIME
    return hours <= most_hours and minutes < 60 and seconds < 60
