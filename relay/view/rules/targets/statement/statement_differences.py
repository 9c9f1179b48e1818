"""Statements that a target runs without an error and with another result."""

import re
from typing import Final

from protocol.sql.lexer import TokenKind
from protocol.sql.server_functions import CLOCK_FUNCTIONS
from protocol.sql.sql_mode import TIME_TRUNCATE_FRACTIONAL
from relay.view.rules.targets.known.target import Target
from relay.view.rules.targets.statement.source_statement import SourceStatement
from relay.view.stops import statement_stops

_REGULAR_EXPRESSIONS: Final = frozenset(("REGEXP", "RLIKE"))
_DATE: Final = r"\d{2,4}\D\d{1,2}\D\d{1,2}[ T]+"
_OFFSET: Final = rf"\s*{_DATE}\d{{1,2}}:\d{{1,2}}(?::\d{{1,2}}(?:\.\d*)?)?\s*[+-]\d{{2}}:\d{{2}}\s*"
_WITH_OFFSET: Final = re.compile(_OFFSET)
_QUOTED_WITH_OFFSET: Final = re.compile(rf"(['\"]){_OFFSET}\1")
# 10:00:00.5, with or without a date or days before it, and the same without signs between
_FRACTION: Final = rf"\s*-?(?:(?:{_DATE}|\d+\s+)?\d{{1,3}}:\d{{1,2}}:\d{{1,2}}|\d{{12}}|\d{{14}})\.0*+[1-9]\d*+\s*"
_WITH_FRACTION: Final = re.compile(_FRACTION)
_ROW_WITH_FRACTION: Final = re.compile(rf"(?:(['\"]){_FRACTION}\1|[(,]{_FRACTION}[,)])")
_BEFORE_BYTES: Final = frozenset(("AS", ",", "SET", "CHARSET", "USING"))
_OF_BITS: Final = frozenset(("BIT_AND", "BIT_OR", "BIT_XOR", "BIT_COUNT"))
_LITERAL_OF_BITS: Final = re.compile(r"0x[0-9A-F]+|0B[01]+", re.IGNORECASE)
_GEOMETRIES: Final = re.compile(
    r"(?:ST_)?(?:GEOM|GEOMETRY|GEOMCOLL|GEOMETRYCOLLECTION|POINT|LINE|LINESTRING|POLY|POLYGON|MPOINT|MULTIPOINT|MLINE|"
    r"MULTILINESTRING|MPOLY|MULTIPOLYGON)FROM(?:TEXT|TXT|WKB)"
)
_SET_VAR: Final = re.compile(r"\bSET_VAR\s*\(\s*`?(\w*)", re.IGNORECASE)
_OF_SPEED_ONLY: Final = frozenset((
    "BULK_INSERT_BUFFER_SIZE", "JOIN_BUFFER_SIZE", "LOCK_WAIT_TIMEOUT", "MAX_EXECUTION_TIME", "MAX_HEAP_TABLE_SIZE",
    "OPTIMIZER_PRUNE_LEVEL", "OPTIMIZER_SEARCH_DEPTH", "OPTIMIZER_SWITCH", "RANGE_OPTIMIZER_MAX_MEM_SIZE", "READ_BUFFER_SIZE",
    "READ_RND_BUFFER_SIZE", "SORT_BUFFER_SIZE", "TMP_TABLE_SIZE",
))  # fmt: skip
_FIRST_THAT_ROUNDS: Final = 50_604
_FIRST_WITH_OFFSETS: Final = 80_000


def check_differences(statement: SourceStatement, text: bytes, sql_mode: int, source: int, target: Target) -> None:
    """Check for such differences. `source` is its version as 90704. Raises: Untranslatable.

    Seen on 9.7.4 and 5.6.24: regular expressions differ since 8.0 (ICU's: `'ä' REGEXP '^.$'` is 1 and was 0); `&`, BIT_OR and the like
    of binary strings give a binary string since 8.0, and a number before, except for literals such as 0xFF00 alone; SET_VAR hints are
    comments before 8.0; an offset in a date (8.0.19 and later) is cut off with a warning where the sql_mode is not strict; functions
    that make geometries with an SRID take latitude and longitude in the reference system's order since 8.0; BINARY after the type of a
    CAST is ignored before 8.0. From the sources: 5.5 cuts fractions of seconds, 5.6.4 and later round them.
    """
    if source >= _FIRST_THAT_ROUNDS and target.version < (5, 6):
        _check_fractions(statement, text, target)
    if source < 80_000 or target.version >= (8, 0):
        return
    if any(name.upper() not in _OF_SPEED_ONLY for hint in statement.hints for name in _SET_VAR.findall(hint)):
        raise statement_stops.statement_differs(target.title, text, "a hint with SET_VAR")
    if any(_QUOTED_WITH_OFFSET.search(rows) for rows in statement.literals):
        raise statement_stops.statement_differs(target.title, text, "a time with an offset")
    for index, word in enumerate(statement.words):
        if word.upper in _REGULAR_EXPRESSIONS:
            raise statement_stops.statement_differs(target.title, text, "regular expressions")
        if word.kind is TokenKind.SYMBOL and word.text in "&|^~<>" and _may_take_bytes(statement, index):
            raise statement_stops.statement_differs(
                target.title, text, "operations on bits, where a side is a binary string,"
            )
        if word.upper in _OF_BITS and _counts_bytes(statement, index):
            raise statement_stops.statement_differs(target.title, text, f"{word.upper} of a binary string")
        if word.kind is TokenKind.STRING and _WITH_OFFSET.fullmatch(word.text):
            raise statement_stops.statement_differs(target.title, text, "a time with an offset")
        if word.kind is TokenKind.WORD and _GEOMETRIES.fullmatch(word.upper) and _arguments(statement, index + 1) > 1:
            raise statement_stops.statement_differs(target.title, text, "a geometry with an SRID")
    _check_casts(statement, text, target)
    if sql_mode & TIME_TRUNCATE_FRACTIONAL:
        raise statement_stops.sql_mode_missing(target.title, text, "TIME_TRUNCATE_FRACTIONAL")


def check_value(value: str, name: bytes, source: int, target: Target) -> None:
    """Do the same check for a string that a user variable has. Raises: Untranslatable."""
    if source >= _FIRST_WITH_OFFSETS and target.version < (8, 0) and _WITH_OFFSET.fullmatch(value):
        raise statement_stops.statement_differs(target.title, name, "a time with an offset")
    if source >= _FIRST_THAT_ROUNDS and target.version < (5, 6) and _WITH_FRACTION.fullmatch(value):
        raise statement_stops.statement_differs(target.title, name, "fractions of a second")


def _check_fractions(statement: SourceStatement, text: bytes, target: Target) -> None:
    found = any(_ROW_WITH_FRACTION.search(rows) for rows in statement.literals)
    for index, word in enumerate(statement.words):
        if word.kind in (TokenKind.STRING, TokenKind.NUMBER):
            found = found or bool(_WITH_FRACTION.fullmatch(word.text))
        elif word.kind is TokenKind.WORD and word.upper in CLOCK_FUNCTIONS and statement.word(index + 1) == "(":
            found = found or statement.word(index + 2) != ")"
    if found:
        raise statement_stops.statement_differs(target.title, text, "fractions of a second")


def _check_casts(statement: SourceStatement, text: bytes, target: Target) -> None:
    for index in statement.places("BINARY"):
        if statement.word(index + 1) not in (")", "CHARACTER", "CHARSET") or statement.word(index - 1) in _BEFORE_BYTES:
            continue
        called = statement.word(statement.brackets.opening(index) - 1) in ("CAST", "CONVERT")
        named = statement.word(index + 1) == ")" and statement.word(index + 2) == "COLLATE"
        if called and not named:
            raise statement_stops.statement_differs(target.title, text, "BINARY behind the type of a CAST")


def _may_take_bytes(statement: SourceStatement, index: int) -> bool:
    """Return whether the sign at `index` is an operation on bits that may have a binary string as a side: no side is a decimal number,
    and not all are literals such as 0xFF00."""
    sign = statement.words[index]
    twins = [
        at
        for at in (index - 1, index + 1)
        if statement.word(at) == sign.text
        and (statement.words[at].stop == sign.start or statement.words[at].start == sign.stop)
    ]
    if sign.text == ">" and statement.word(index - 1) == "-" and statement.words[index - 1].stop == sign.start:
        return False  # -> and ->>
    if sign.text == "<" or sign.text == ">":
        # only << and >>, and only their left side matters
        return index + 1 in twins and not _is_number(statement, index - 1, alone=True)
    if sign.text == "~":
        return not _is_number(statement, index + 1, alone=True)
    if twins:
        return False  # || and &&
    if all(_is_number(statement, side, alone=True) for side in (index - 1, index + 1)):
        return False
    return not any(_is_number(statement, side, alone=False) for side in (index - 1, index + 1))


def _counts_bytes(statement: SourceStatement, index: int) -> bool:
    """Return whether the function at `index` is called with anything but a number."""
    if statement.word(index + 1) != "(" or statement.word(index - 1) == ".":
        return False
    return not (_is_number(statement, index + 2, alone=True) and statement.word(index + 3) == ")")


def _is_number(statement: SourceStatement, index: int, *, alone: bool) -> bool:
    """Return whether there is a number at `index`. `alone`: no side is another binary string, for then 0xFF00 is a number too."""
    if not 0 <= index < len(statement.words):
        return False
    word = statement.words[index]
    if word.kind in (TokenKind.NUMBER, TokenKind.WORD) and _LITERAL_OF_BITS.fullmatch(word.text):
        return alone
    return word.kind is TokenKind.NUMBER


def _arguments(statement: SourceStatement, opened: int) -> int:
    if statement.word(opened) != "(":
        return 0
    depth, count = 0, 1
    for index in range(opened, statement.brackets.closing(opened)):
        symbol = statement.word(index)
        depth += (symbol == "(") - (symbol == ")")
        count += symbol == "," and depth == 1
    return count
