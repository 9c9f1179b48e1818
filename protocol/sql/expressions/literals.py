"""The literals of an expression, and the words that begin none of its values."""

import re
from typing import Final

from protocol.charsets import CHARACTER_SETS, NOT_FOR_CLIENTS
from protocol.sql.expressions.constructs import BOUNDS, NULL, Operand
from protocol.sql.lexer import SqlToken, TokenKind
from protocol.sql.survey.value_class import TEXTS, ValueClass, class_of_text, classes_of_literal, is_hexadecimal

_PREFIXES: Final = frozenset(("X", "B"))
_CHARSETS: Final = frozenset(f"_{name.upper()}" for name in (*CHARACTER_SETS, *NOT_FOR_CLIENTS, "utf8mb3"))
"""What servers read as the character set of the string after it: other words with this first letter are names."""
_WIDE: Final = ("_UCS2", "_UTF16", "_UTF32")
"""Character sets in which digits are several bytes."""
_MOST_DIGITS: Final = 20
_ZERO_DATE: Final = re.compile(r"0000-00-00(?: 00:00(?::00(?:\.0{1,6})?)?)?", re.ASCII)
TEMPORAL: Final = {
    "DATE": frozenset((ValueClass.DATE, ValueClass.DATE_ZERO)),
    "TIMESTAMP": frozenset((ValueClass.DATETIME, ValueClass.DATE_ZERO)),
    "TIME": frozenset((ValueClass.TIME,)),
}
"""Words before a string that make it a literal of time."""
ODBC: Final = {"D": "DATE", "T": "TIME", "TS": "TIMESTAMP"}
"""What the letters in {d '2020-01-31'} mean."""
BARE_FUNCTIONS: Final = frozenset((
    "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP",
    "CURRENT_USER", "CURRENT_ROLE",
))  # fmt: skip
"""Functions that need no brackets."""
UNITS: Final = frozenset((
    "MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "SECOND_MICROSECOND", "MINUTE_MICROSECOND",
    "MINUTE_SECOND", "HOUR_MICROSECOND", "HOUR_SECOND", "HOUR_MINUTE", "DAY_MICROSECOND", "DAY_SECOND", "DAY_MINUTE", "DAY_HOUR",
    "YEAR_MONTH",
))  # fmt: skip
RESERVED: Final = frozenset((
    "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "SET", "VALUES", "INTO", "JOIN", "INNER", "LEFT", "RIGHT",
    "CROSS", "NATURAL", "STRAIGHT_JOIN", "ON", "USING", "AND", "OR", "XOR", "THEN", "ELSE", "WHEN", "AS", "BY", "ASC", "DESC", "FOR",
    "LOCK", "IS", "IN", "LIKE", "BETWEEN", "REGEXP", "RLIKE", "DIV", "PROCEDURE", "END", "DO",
))  # fmt: skip
"""Words that are no column, and no other name for one, unless they are quoted."""


def number_or_string(token: SqlToken) -> Operand:
    """Return the operand of a number or a string."""
    if token.kind is TokenKind.NUMBER:
        is_whole = token.text.isdecimal() and len(token.text) <= _MOST_DIGITS
        below = next((bound for bound in BOUNDS if int(token.text) < bound), 0) if is_whole else 0
        return Operand(frozenset((classes_of_literal(token),)), is_literal=True, below=below)
    return Operand(frozenset((classes_of_literal(token),)), is_literal=True, is_zero=is_zero_date(token.text))


def is_zero_date(text: str) -> bool:
    """Return whether a literal text is the date that has zeros for all its parts."""
    return text.startswith("0000-00-00") and _ZERO_DATE.fullmatch(text) is not None


def is_not_zero(token: SqlToken) -> bool:
    """Return whether the token is a number which is certainly not zero, also after it is rounded."""
    if token.kind is not TokenKind.NUMBER or is_hexadecimal(token) or len(token.text) > _MOST_DIGITS:
        return False
    digits, exponent, power = token.text.lower().partition("e")
    return digits.strip("0.") != "" and not (exponent and power.startswith("-"))


def prefixed(word: SqlToken, text: SqlToken) -> Operand | None:
    """Return the operand of a string with a word before it, X'..', B'..', N'..' or _utf8'..'; None: it is none of them."""
    if text.kind is not TokenKind.STRING:
        return None
    upper = word.upper
    if upper in _PREFIXES and word.stop == text.start:
        return Operand(frozenset((ValueClass.HEX,)), is_literal=True)
    if upper == "_BINARY":
        return Operand(frozenset((ValueClass.BYTES,)), is_literal=True)
    if upper in _CHARSETS or (upper == "N" and word.stop == text.start):
        return number_or_string(text)
    return None


def is_introducer(word: SqlToken, following: SqlToken, after: SqlToken) -> bool:
    """Return whether the word is the character set of a hexadecimal or binary literal, as in `_utf8mb4 0x41` and `_latin1 X'41'`."""
    if word.upper not in _CHARSETS:
        return False
    is_prefix = following.upper in _PREFIXES and after.kind is TokenKind.STRING and following.stop == after.start
    return is_prefix or is_hexadecimal(following)


def introduced(charset: str, digits: str, *, is_hex: bool) -> Operand:
    """Return the operand of such a literal; `charset` is in upper case."""
    if charset == "_BINARY":
        return Operand(frozenset((ValueClass.BYTES,)), is_literal=True)
    if not is_hex or charset.startswith(_WIDE):
        return Operand(TEXTS | {ValueClass.TEXT_DATE}, is_literal=True)
    try:
        text = bytes.fromhex(digits).decode("latin-1")
    except ValueError:
        return Operand(TEXTS | {ValueClass.TEXT_DATE}, is_literal=True)
    return Operand(frozenset((class_of_text(text),)), is_literal=True)


def temporal(kind: str, text: str) -> Operand | None:
    """Return the operand of a literal such as DATE '2020-01-31', which all servers read alike; None: the text is none of that kind."""
    found = class_of_text(text)
    if kind == "TIME":
        return Operand(TEMPORAL[kind], is_literal=True) if found is ValueClass.TEXT_TIME else None
    if found is not ValueClass.TEXT_DATE or (":" in text) != (kind == "TIMESTAMP"):
        return None
    return Operand(TEMPORAL[kind] - {ValueClass.DATE_ZERO}, is_literal=True)


def word_literal(upper: str) -> Operand | None:
    """Return the operand of NULL, TRUE, FALSE; None: the word is none of them."""
    if upper == "NULL":
        return NULL
    return Operand(frozenset((ValueClass.INTEGER,)), is_literal=True) if upper in ("TRUE", "FALSE") else None
