"""The classes of the values in long runs of an INSERT's rows of literals, which the lexer folds into a pair of brackets."""

import re
from typing import Final

from protocol.sql.expressions.constructs import Classes
from protocol.sql.lexer import SqlToken, TokenKind
from protocol.sql.sql_mode import NO_BACKSLASH_ESCAPES
from protocol.sql.survey.value_class import ValueClass, class_of_text, classes_of_literal

_LONGEST: Final = 70
"""The letters of a text that decide about its class."""


def _literals(plain: bool) -> re.Pattern[str]:
    mark, escape = ("", "") if plain else (r"\\", r"|\\.")
    single = rf"'(?P<single>(?>(?:[^'{mark}]++|''{escape})*))'"
    double = rf'"(?P<double>(?>(?:[^"{mark}]++|""{escape})*))"'
    number = r"(?P<number>[-+]?[0-9.][\w.]*+(?:(?<=[eE])[-+][0-9]++)?)"
    return re.compile(
        rf"(?P<prefix>[xXbBnN](?=')|(?i:_binary))?\s*+(?:{single}|{double})|{number}|(?P<word>[A-Za-z]++)|(?P<sign>[(),])",
        re.DOTALL,
    )


_LITERALS: Final = {plain: _literals(plain) for plain in (False, True)}
_PREFIXED: Final = {"x": ValueClass.HEX, "b": ValueClass.HEX, "_binary": ValueClass.BYTES}


def classes_of_rows(text: str, sql_mode: int) -> list[Classes]:
    """Return the classes of each column of the rows. DEFAULT counts as nothing."""
    columns: list[set[ValueClass]] = []
    known: dict[str, ValueClass] = {}
    at = 0
    for found in _LITERALS[bool(sql_mode & NO_BACKSLASH_ESCAPES)].finditer(text):
        kind = found.lastgroup
        if kind == "sign":
            at = at + 1 if found[0] == "," else 0
            continue
        if at >= len(columns):
            columns += (set() for _ in range(at + 1 - len(columns)))
        if kind in ("single", "double"):
            value = _PREFIXED.get((found["prefix"] or "").lower()) or _class_of(found[kind], known)
            columns[at].add(value)
        elif kind == "number":
            columns[at].add(_number(found[0], known))
        elif found[0].upper() == "NULL":
            columns[at].add(ValueClass.NULL)
    return [frozenset(one) for one in columns]


def _class_of(text: str, known: dict[str, ValueClass]) -> ValueClass:
    if len(text) > _LONGEST:
        return ValueClass.TEXT_OTHER if text.isascii() else ValueClass.TEXT_WIDE
    found = known.get(text)
    if found is None:
        found = known[text] = class_of_text(text)
        if len(known) > _LONGEST * _LONGEST:
            known.clear()
    return found


def _number(text: str, known: dict[str, ValueClass]) -> ValueClass:
    if text[0] == "-" and text[1:].isdecimal():
        return ValueClass.NEGATIVE
    return classes_of_literal(SqlToken(TokenKind.NUMBER, text.lstrip("+-"), "", 0, 0))
