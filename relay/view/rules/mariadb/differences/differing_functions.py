"""Functions and operators that give other values on MySQL for ordinary arguments, where no server reports it.

They were found by some 640 expressions on MariaDB 10.11 and 11.8 and on MySQL 9.7, each stored into seven types of columns. Those that
differ only where a value is outside of a type's range (`FROM_UNIXTIME` of a year that 10.11 does not have, `STR_TO_DATE` of February 31
without strict modes, sums of times over 838 hours) are not among them.
"""

import re
from typing import Final

from protocol.sql.lexer import TokenKind
from protocol.sql.server_functions import UNSAFE_AS_DEFAULT
from relay.view.rules.mariadb.differences.read_words import ReadWords

_BEFORE_TABLES: Final = frozenset(
    ("INTO", "TABLE", "JOIN", "UPDATE", "FROM", "REFERENCES", "INSERT", "WITH", "RECURSIVE", "REPLACE", "IGNORE")
)
"""The words before the name of a table: a bracket after it opens a list of columns."""
_SAME_FUNCTIONS: Final = frozenset(("JSON_VALID", "JSON_LENGTH", "ST_SRID"))
_OTHER_VALUES: Final = frozenset((
    "AVG",  # a division
    "BIT_COUNT",  # of bytes: of the number that they spell, or of their bits
    "COERCIBILITY", "COLLATION", "WEIGHT_STRING",
    "INSTR", "LOCATE", "POSITION",  # whether é is e, and where an empty text is found
    "LOG2",  # another last digit
    "TIME_TO_SEC",  # with a fraction, or without
))  # fmt: skip
_PADS: Final = frozenset(("LPAD", "RPAD"))
_EXTREMES: Final = frozenset(("GREATEST", "LEAST"))
_FUNCTION: Final = re.compile(
    rf"\b(?:{'|'.join(sorted(_OTHER_VALUES | _PADS | _EXTREMES))}|JSON_(?!VALID\b|LENGTH\b)\w+|REGEXP_\w+)\s*\(",
    re.IGNORECASE,
)
_CALL: Final = re.compile(r"[\w`]*+\s*+\(")
_TERMS: Final = re.compile(r"[\w`.+*/ -]*+")
_OPERAND: Final = re.compile(r"[\d`]")
_QUOTED: Final = re.compile(
    r"'(?>(?:[^'\\]|''|\\.)*)(?:'|\Z)|\"(?>(?:[^\"\\]|\"\"|\\.)*)(?:\"|\Z)|`[^`]*+(?:`|\Z)", re.DOTALL
)


def is_called(words: ReadWords, index: int) -> bool:
    """Return whether a function is called there."""
    return words.at_word(index + 1) == "(" and words.at_word(index - 1) not in (".", *_BEFORE_TABLES)


def differing_function(words: ReadWords, first: int, stop: int, *, is_judged: bool = False) -> str:
    """Return the description of what gives other values on MySQL in the words [first, stop); "": nothing. `is_judged`: quotients are
    judged by what they divide, where the columns are known.

    `\\1` is no group of REGEXP_REPLACE there, but `$1`; JSON values lose zeros and their order; SRID 4326 has latitude first; a
    quotient has at least 9 digits after the point at the source, and 4 more than the dividend there.
    """
    without: dict[str, int] = {}
    for index in range(first, stop):
        word = words.at_word(index)
        if word == "/" and not is_judged and not _divides_doubles(words, index):
            return "a division (of other numbers than DOUBLE)"
        if word in _SAME_FUNCTIONS or (is_judged and word == "AVG") or not is_called(words, index):
            continue
        if (
            word.startswith(("JSON_", "REGEXP_"))
            or word in _OTHER_VALUES
            or _differs_by_arguments(words, index, without)
        ):
            return f"the function {words.tokens[index].text}"
    return ""


def unsafe_function(words: ReadWords, first: int, stop: int) -> str:
    """Return a function in the words [first, stop) that gives another value at each call, which MySQL refuses for existing rows (1674);
    "": none."""
    for index in range(first, stop):
        if words.at_word(index) in UNSAFE_AS_DEFAULT and (
            is_called(words, index) or words.at_word(index) == "CURRENT_USER"
        ):
            return words.tokens[index].text
    return ""


def default_differs(text: str) -> bool:
    """Return whether a column's default, as its definition contains it, may give other values on MySQL."""
    bare = _QUOTED.sub("", text)
    return _is_expression(bare) and ("/" in bare or _FUNCTION.search(bare) is not None)


def _is_expression(text: str) -> bool:
    """Return whether the default begins as an expression: a literal has lost its quotation marks, and may look so by chance."""
    if _CALL.match(text) is not None:
        return True
    terms = _TERMS.match(text)
    operand = _OPERAND.search(terms[0]) if terms is not None else None
    return terms is not None and operand is not None and " / " in terms[0][operand.end() :]


def _divides_doubles(words: ReadWords, index: int) -> bool:
    """Return whether one of both is a number such as 3e0, which makes the result a DOUBLE, as it is on both."""
    return any(
        words.tokens[at].kind is TokenKind.NUMBER and "e" in words.tokens[at].text.lower().removeprefix("0x")
        for at in (index - 1, index + 1)
        if 0 <= at < len(words.tokens) and not words.tokens[at].text.lower().startswith("0x")
    )


def _differs_by_arguments(words: ReadWords, index: int, without: dict[str, int]) -> bool:
    """Return whether the arguments make the function differ; `without` is for `_has_text`."""
    word, stop = words.at_word(index), words.brackets.closing(index + 1)
    inside = range(index + 2, stop)
    if word.startswith("ST_"):
        return not (word.endswith(("FROMTEXT", "FROMWKB")) and not words.brackets.holds(index + 1, ","))
    if word in _PADS:
        last = words.tokens[stop - 1]
        is_text = last.kind is TokenKind.STRING and words.at_word(stop - 2) == "," and len(last.text.strip("'\"")) > 0
        return not is_text  # an empty text gives NULL at the source
    if word in _EXTREMES:
        return _has_text(words, inside, "", without)  # numbers and texts, dates and texts
    if word == "EXTRACT":
        return "HOUR" in words.at_word(index + 2)  # of times of more than a day
    if word == "DATE_FORMAT":
        return _has_text(words, inside, "%z", without)
    return False


def _has_text(words: ReadWords, inside: range, part: str, without: dict[str, int]) -> bool:
    """Return whether there is a string that contains `part`. `without` says, by part, up to where there is none: the content of nested
    brackets is looked at once."""
    if inside.stop <= without.get(part, 0):
        return False
    if any(words.tokens[at].kind is TokenKind.STRING and part in words.tokens[at].text.lower() for at in inside):
        return True
    without[part] = inside.stop
    return False
