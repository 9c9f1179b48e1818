"""Statements that a target runs without an error and with another result."""

import re
from typing import Final

from relay.view.rules.targets.known import target_stops
from relay.view.rules.targets.known.target import Target
from relay.view.rules.targets.statement.source_statement import Kind, SourceStatement
from relay.view.rules.targets.statement.table_clauses import closing

_REGULAR_EXPRESSIONS: Final = frozenset(("REGEXP", "RLIKE"))
_OFFSET: Final = r"\s*\d{2,4}\D\d{1,2}\D\d{1,2}[ T]+\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?\s*[+-]\d{2}:\d{2}\s*"
_WITH_OFFSET: Final = re.compile(_OFFSET)
_QUOTED_WITH_OFFSET: Final = re.compile(rf"(['\"]){_OFFSET}\1")
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
TIME_TRUNCATE_FRACTIONAL: Final = 1 << 32
INTERPRET_UTF8_AS_UTF8MB4: Final = 1 << 33


def check_differences(statement: SourceStatement, text: bytes, sql_mode: int, source: int, target: Target) -> None:
    """Raises: CannotBeKept. `source`: its version as 90704.

    Seen on 9.7.4 and 5.6.24: regular expressions are others since 8.0 (ICU's: `'ä' REGEXP '^.$'` is 1 and was 0); `&` and the like
    of two binary strings give a binary string since 8.0, and a number before; SET_VAR hints are comments before 8.0; an
    offset in a date (8.0.19 and later) is cut off with a warning where the sql_mode is not strict; functions that make
    geometries with an SRID take latitude and longitude in the reference system's order since 8.0.
    """
    if source < 80_000 or target.version >= (8, 0):
        return
    if any(name.upper() not in _OF_SPEED_ONLY for hint in statement.hints for name in _SET_VAR.findall(hint)):
        target_stops.statement_differs("a hint with SET_VAR", text, target)
    if any(_QUOTED_WITH_OFFSET.search(rows) for rows in statement.literals):
        target_stops.statement_differs("a time with an offset", text, target)
    for index, word in enumerate(statement.words):
        if word.kind is Kind.WORD and word.text in _REGULAR_EXPRESSIONS:
            target_stops.statement_differs("regular expressions", text, target)
        if word.kind is Kind.SYMBOL and word.text in "&|^~<>" and _may_take_bytes(statement, index):
            target_stops.statement_differs("operations on bits, where both sides are binary strings,", text, target)
        if word.kind is Kind.STRING and _WITH_OFFSET.fullmatch(word.text):
            target_stops.statement_differs("a time with an offset", text, target)
        if word.kind is Kind.WORD and _GEOMETRIES.fullmatch(word.text) and _arguments(statement, index + 1) > 1:
            target_stops.statement_differs("a geometry with an SRID", text, target)
    if sql_mode & TIME_TRUNCATE_FRACTIONAL:
        target_stops.sql_mode_missing("TIME_TRUNCATE_FRACTIONAL", text, target)


def _may_take_bytes(statement: SourceStatement, index: int) -> bool:
    """Whether the sign at `index` is an operation on bits none of whose sides is written as a number."""
    sign = statement.words[index]
    twins = [
        at
        for at in (index - 1, index + 1)
        if statement.word(at) == sign.text
        and (statement.words[at].stop == sign.start or statement.words[at].start == sign.stop)
    ]
    if sign.text == "<" or sign.text == ">":
        # only << and >>, and only what is moved counts
        return index + 1 in twins and not _is_number(statement, index - 1)
    if sign.text == "~":
        return not _is_number(statement, index + 1)
    if twins:
        return False  # || and &&
    return not (_is_number(statement, index - 1) or _is_number(statement, index + 1))


def _is_number(statement: SourceStatement, index: int) -> bool:
    return 0 <= index < len(statement.words) and statement.words[index].kind is Kind.NUMBER


def _arguments(statement: SourceStatement, opened: int) -> int:
    if statement.word(opened) != "(":
        return 0
    depth, count = 0, 1
    for index in range(opened, closing(statement, opened)):
        symbol = statement.word(index)
        depth += (symbol == "(") - (symbol == ")")
        count += symbol == "," and depth == 1
    return count
