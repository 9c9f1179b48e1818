"""The shape of a statement: its text with the class of each literal in the literal's place. Those of one shape are judged alike.

A literal whose own text may decide stays as it is: a string wherever it is not certain to be a value of an expression, since it may be
the name of a column or a part of another string.
"""

import re
from bisect import bisect_right
from functools import lru_cache
from typing import Final

from protocol.sql.expressions.constructs import BOUNDS
from protocol.sql.expressions.hex_literals import HexText, widest_of
from protocol.sql.expressions.literals import is_zero_date
from protocol.sql.lexer import without_escapes
from protocol.sql.sql_mode import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from protocol.sql.survey.value_class import MOST_LETTERS, ValueClass, class_of_text

LONGEST: Final = 4096
"""The bytes of the longest statement that has a shape: a longer one is unlikely to come again."""
_LETTERS: Final = re.compile(r"[A-Za-z_][ -\[\]-~]*+")
_CODES: Final = {one: f"\x01{chr(2 + at)}" for at, one in enumerate(ValueClass)}
"""What is written in place of a literal: no server takes such a character in a statement outside of a literal."""
_TEXT: Final = _CODES[ValueClass.TEXT_OTHER]
_WHOLE: Final = [f"\x02{chr(3 + at)}" for at in range(len(BOUNDS) + 1)]
"""Whole numbers by the first of `BOUNDS` that they are below, those that are below none last."""
_ZERO_DATE: Final = "\x02\x02"
_HUGE_DIGITS: Final = 18
_BEFORE_DIVISOR: Final = frozenset(("DIV", "MOD", "BINARY", "NOT", "INTERVAL", "DATE", "TIME", "TIMESTAMP"))
"""The words of `_BEFORE_VALUE` after which a 0 may be a divisor."""
_BEFORE_VALUE: Final = frozenset((
    "SELECT", "DISTINCT", "WHERE", "HAVING", "ON", "BY", "AND", "OR", "XOR", "NOT", "LIKE", "REGEXP", "RLIKE", "BETWEEN", "DIV", "MOD",
    "CASE", "WHEN", "THEN", "ELSE", "INTERVAL", "ESCAPE", "SEPARATOR", "DATE", "TIME", "TIMESTAMP", "BINARY", "INFILE", "RETURN", "DO",
))  # fmt: skip
"""The words after which a string is no name."""
_WITH_DATE: Final = frozenset(("DATE", "TIMESTAMP"))
_SIGNS_BEFORE_VALUE: Final = frozenset("(,=<>+-*/%|&^~!")
_SIGNS_BEFORE_ZERO: Final = frozenset(",=<>")
"""The signs after which a 0 is no divisor."""
_READS_TEXTS: Final = re.compile(r"UNHEX|FROMTEXT|DATE_FORMAT", re.ASCII | re.IGNORECASE)
"""Functions whose texts are read."""
_READS_NUMBERS: Final = re.compile(r"(?<![A-Z_])(?<!AS )(?:FORMAT|CHAR)\s*\(", re.ASCII | re.IGNORECASE)
"""Functions of which the numbers decide."""
_ZERO: Final = re.compile(r"(?>(?:[0.]|\\\.)+)")
_MOST_REMEMBERED: Final = 8192


def _pattern(plain: bool) -> re.Pattern[str]:
    escapes, escaped = ("", "") if plain else (r"\\", r"|\\.")
    quoted = rf"'(?>(?:[^'{escapes}]++|''{escaped})*)'|\"(?>(?:[^\"{escapes}]++|\"\"{escaped})*)\""
    letters = r"\w$\x80-\uffff"
    return re.compile(
        rf"({quoted})|[xXbB]'[0-9A-Fa-f]*+'|([0-9]++)(?![{letters}.])"
        rf"|(`[^`(]*+`|[A-Za-z_$@\x80-\uffff][{letters}]*+|[0-9.][{letters}.]*+)|(--|\#|/\*|`)",
        re.DOTALL,
    )


_PARTS: Final = {plain: _pattern(plain) for plain in (False, True)}
_ROW: Final = r"\((?>(?:[\x01-\x1f ,.+\-0-9]++|NULL|DEFAULT)*)\)"
_ROWS: Final = re.compile(rf"(?<=VALUE)(S?\s*+)({_ROW}(?>(?:\s*,\s*{_ROW})+))", re.ASCII | re.IGNORECASE)
_STRING_FOLLOWS: Final = re.compile(r"\s*+['\"]", re.ASCII)
_ONE_ROW: Final = re.compile(_ROW, re.ASCII | re.IGNORECASE)


def shape_of(text: str, sql_mode: int) -> str | None:
    """Return the shape; None for one that is long, has comments, quotes names like strings, or has names with brackets in them."""
    if len(text) > LONGEST or sql_mode & ANSI_QUOTES:
        return None
    made: list[str] = []
    plain = bool(sql_mode & NO_BACKSLASH_ESCAPES)
    reads_numbers = _READS_NUMBERS.search(text) is not None
    reads_texts = _READS_TEXTS.search(text) is not None
    may_join = True
    last: re.Match[str] | None = None
    at = 0
    for found in _PARTS[plain].finditer(text):
        kind = found.lastindex
        if kind == 4:
            return None
        if kind == 1 or kind == 2:
            start, stop = found.span()
            one = found[0]
            before = _before(text, last, start)
            if kind == 2:
                one = one if reads_numbers else _number(one, before)
            elif not reads_texts and _STRING_FOLLOWS.match(text, stop) is None:
                one = _string(one, plain, before)
            may_join = may_join and "(" not in one
            made += (text[at:start], one)
            at = stop
        last = found
    made.append(text[at:])
    shape = "".join(made)
    return _ROWS.sub(_distinct_rows, shape) if may_join and ("),(" in shape or "), (" in shape) else shape


def shortens_all(text: str) -> bool:
    """Return whether no function in the statement reads the letters or digits of a literal: its shape has classes in their place."""
    return _READS_NUMBERS.search(text) is None and _READS_TEXTS.search(text) is None


def _before(text: str, last: re.Match[str] | None, start: int) -> str:
    """Return the sign or the word before a literal; "" if it is another literal, or the name of a column. `last` is the last before it
    that is no sign.
    """
    if last is None:
        return text[:start].strip()[-1:]
    signs = text[last.end() : start].strip()
    if signs:
        return signs[-1]
    word = last[0].upper() if last.lastindex == 3 else ""
    return "" if word in _BEFORE_VALUE and text[: last.start()].rstrip().endswith(".") else word


def _distinct_rows(found: re.Match[str]) -> str:
    """Return each of a list of literal rows once: a judgement asks for the classes in each column."""
    return found[1] + ",".join(sorted(set(_ONE_ROW.findall(found[2]))))


def _string(quoted: str, plain: bool, before: str) -> str:
    """Return the class of a string that follows this sign or word; the string itself where its letters may decide."""
    if before not in _SIGNS_BEFORE_VALUE and before not in _BEFORE_VALUE and before[:1] != "_":
        return quoted
    if _ZERO.fullmatch(quoted, 1, len(quoted) - 1) and not _is_no_divisor(before):
        return quoted
    if before in _WITH_DATE and (":" in quoted) != (before == "TIMESTAMP"):
        return quoted  # servers read a DATE with a time, and a TIMESTAMP without, each in its way
    return _code(quoted, plain)


def _is_no_divisor(before: str) -> bool:
    """Return whether a literal that follows this sign or word divides nothing."""
    return before in _SIGNS_BEFORE_ZERO or (before in _BEFORE_VALUE and before not in _BEFORE_DIVISOR)


def _number(digits: str, before: str) -> str:
    if len(digits) > _HUGE_DIGITS or not (digits.strip("0") or _is_no_divisor(before)):
        return digits
    return _WHOLE[bisect_right(BOUNDS, int(digits))]


@lru_cache(maxsize=_MOST_REMEMBERED)
def _code(quoted: str, plain: bool) -> str:
    if widest_of(quoted) is not HexText.ASCII:
        return quoted  # it counts as a hexadecimal literal
    inside = quoted[1:-1]
    if _LETTERS.fullmatch(inside) is not None:
        return _TEXT
    # The class of a longer text does not depend on what its escapes are.
    if len(inside) <= 2 * MOST_LETTERS and ("\\" in inside or quoted[0] in inside):
        mark = quoted[0]
        inside = inside.replace(mark + mark, mark) if plain else without_escapes(inside, 0, len(inside), mark)
    return _ZERO_DATE if is_zero_date(inside) else _CODES[class_of_text(inside)]
