"""A column's default as one text, from any origin: `5`, `x`, `'7'` for the text that looks like a number, `(a + 1)`."""

import re
from typing import Final

_TEXTS: Final = frozenset(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"))
_LABELS: Final = frozenset(("enum", "set"))
_NUMBERS: Final = frozenset(
    ("tinyint", "smallint", "mediumint", "int", "integer", "bigint", "decimal", "numeric", "float", "double", "year")
)
# Without quotation marks these could be taken for a number, bytes, a call, a word or an expression.
_LIKE_NO_TEXT: Final = re.compile(
    r"\s*+NULL\s*+|'.*|0[xb].*|[bxn]'[^']*'|_\w+\s*'.*'|[-+\d.]*e[-+\d]+|.*[()/`].*|\s*+[-+]?+\s*+[\d.]++\s*+"
    r"|(?:CURRENT_TIMESTAMP|NOW|LOCALTIME|LOCALTIMESTAMP)",
    re.IGNORECASE | re.DOTALL,
)
_LITERAL: Final = re.compile(r"'((?>(?:[^'\\]|''|\\.)*))'", re.DOTALL)
_ESCAPED: Final = re.compile(r"''|\\(.)", re.DOTALL)
_CONTROLS: Final = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}
_NUMBER: Final = re.compile(r"\s*([-+]?)(\d+(?:\.\d*)?|\.\d+)\s*", re.ASCII)
_NOW: Final = re.compile(r"current_timestamp(?:\(\d*\))?", re.IGNORECASE)
_OF_MARIADB: Final = re.compile(r"[-+]?[\d.]+(?:e[-+]?\d+)?|b'[01]*'", re.IGNORECASE | re.ASCII)
_CANONICAL: Final = {
    "DATE": re.compile(r"[1-9]\d{3}-\d\d-\d\d", re.ASCII),
    "TIME": re.compile(r"(?:\d\d|[1-8]\d\d):[0-5]\d:[0-5]\d(?:\.\d{1,6})?", re.ASCII),
    "TIMESTAMP": re.compile(r"[1-9]\d{3}-\d\d-\d\d [0-2]\d:[0-5]\d:[0-5]\d(?:\.\d{1,6})?", re.ASCII),
}
_MOST_DIGITS: Final = 30
"""Numbers with more digits may lose some of them before they are a text."""
_ASCII_SETS: Final = frozenset(("_ascii", "_latin1", "_utf8", "_utf8mb3", "_utf8mb4", "n"))


def text_default(text: str) -> str:
    """Return a text's default: itself, or in quotation marks, with backslashes and quotation marks doubled, if it is ambiguous."""
    if _LIKE_NO_TEXT.fullmatch(text) is None:
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def literal_text(default: str) -> str | None:
    """Return the text of a default in quotation marks; None: it has none, or there is text beside them."""
    match = _LITERAL.fullmatch(default)
    if match is None:
        return None
    return _ESCAPED.sub(lambda found: "'" if found[1] is None else _CONTROLS.get(found[1], found[1]), match[1])


def number_default(number: str) -> str:
    """Return a number's default as servers print it, `7` for 007 and `0.5` for .5; others, such as 1e3, as they are."""
    match = _NUMBER.fullmatch(number)
    if match is None:
        return number
    whole, point, places = match[2].partition(".")
    whole = whole.lstrip("0") or "0"
    made = f"{whole}.{places}" if point and places else whole
    return f"-{made}" if match[1] == "-" and made.strip("0.") else made


def expression_default(text: str) -> str:
    """Return an expression's default, in brackets."""
    return text if text.startswith("(") else f"({text})"


def introduced_default(word: str, text: str, statement: str) -> str:
    """Return the default for a string after a word, _latin1'a': the text, or `statement` in brackets if that may be another text."""
    pattern = _CANONICAL.get(word)
    same = (
        pattern.fullmatch(text) is not None if pattern is not None else word.lower() in _ASCII_SETS and text.isascii()
    )
    return text_default(text) if same else expression_default(statement)


def default_of_type(column_type: str, default: str | None) -> str | None:
    """Return a column's default for its type and the statement's `default`: a number in a text, or a text in a number."""
    if default is None:
        return None
    base = column_type.partition("(")[0].partition(" ")[0].lower()
    if base in _NUMBERS:
        text = literal_text(default)
        return number_default(text) if text is not None and _NUMBER.fullmatch(text) else default
    if _NUMBER.fullmatch(default) is None:
        return default
    if base in _LABELS:  # 1 is the first text, or the text 1: servers differ
        return expression_default(default)
    return text_default(default) if base in _TEXTS and len(default) <= _MOST_DIGITS else default


def told_default(column_type: str, extra: str, told: str, *, quoted: bool) -> str | None:
    """Return a column's default from information_schema. `quoted`: texts there are in quotation marks, and NULL is not."""
    base = column_type.partition("(")[0].partition(" ")[0].lower()
    if not quoted:
        if "DEFAULT_GENERATED" in extra.upper() or base not in _TEXTS | _LABELS:
            return f"'{told}'" if told.upper() == "NULL" else number_default(told) if base in _NUMBERS else told
        return text_default(told)
    text = literal_text(told)
    if text is not None:
        return text_default(text)
    if told.upper() == "NULL":
        return None
    if _NOW.fullmatch(told) or _OF_MARIADB.fullmatch(told):
        return number_default(told)
    return expression_default(told)
