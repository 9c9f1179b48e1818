"""The end of a SHOW statement: LIKE a pattern, or WHERE with conditions on its columns."""

from collections.abc import Sequence
from typing import Final

from protocol.errors import ErrorCode, StatementRefused
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.regexp import Regexp, RegexpRefused
from protocol.statements.expression.row_filter import Condition, RowFilter
from protocol.statements.expression.tokens import Kind, Token

_CONSTANTS: Final = (Kind.STRING, Kind.NUMBER)
# All rows are compared with each of them; patterns take longer.
_MAX_CONDITIONS: Final = 64
_MAX_PATTERNS: Final = 8
# The steps for preparing a pattern for the search.
_STEPS_A_CHARACTER: Final = 60


def row_filter(statement: Statement, tokens: Sequence[Token], columns: Sequence[str]) -> RowFilter:
    """Parse the end of a SHOW statement: nothing, LIKE a pattern for its first column, or WHERE with AND and OR.

    Raises: StatementRefused (1064).
    """
    if not tokens:
        return RowFilter()
    if tokens[0].is_word("LIKE"):
        return RowFilter(((_condition(statement, 0, tokens),),))
    if not tokens[0].is_word("WHERE"):
        raise statement.refuse(tokens)
    alternatives: list[tuple[Condition, ...]] = []
    for alternative in _split_at(tokens[1:], "OR"):
        conditions: list[Condition] = []
        for part in _split_at(alternative, "AND"):
            index = next((n for n, name in enumerate(columns) if part and part[0].is_name(name.upper())), None)
            if index is None:
                raise statement.refuse(part or tokens)
            conditions.append(_condition(statement, index, part[1:]))
        alternatives.append(tuple(conditions))
    conditions = [condition for alternative in alternatives for condition in alternative]
    patterns = sum(condition.kind != "among" for condition in conditions)
    if len(conditions) > _MAX_CONDITIONS or patterns > _MAX_PATTERNS:
        raise statement.refuse(tokens)
    return RowFilter(tuple(alternatives))


def _split_at(tokens: Sequence[Token], word: str) -> list[Sequence[Token]]:
    parts: list[Sequence[Token]] = []
    start = 0
    for index, token in enumerate(tokens):
        if token.is_word(word):
            parts.append(tokens[start:index])
            start = index + 1
    return [*parts, tokens[start:]]


def _condition(statement: Statement, column: int, tokens: Sequence[Token]) -> Condition:
    is_negated = bool(tokens) and tokens[0].is_word("NOT")
    rest = tokens[1:] if is_negated else tokens
    if len(rest) == 2 and rest[0].is_word("LIKE") and rest[1].is_text:
        statement.session.effort.spend(_STEPS_A_CHARACTER * len(rest[1].text))
        return Condition(column, "like", (rest[1].text,), is_negated)
    if len(rest) == 2 and rest[0].is_word("REGEXP", "RLIKE") and rest[1].is_text:
        statement.session.effort.spend(_STEPS_A_CHARACTER * len(rest[1].text))
        try:
            Regexp.of(rest[1].text)
        except RegexpRefused as error:
            raise StatementRefused(ErrorCode.ER_REGEXP_ERROR, f"Got error '{error}' from regexp") from None
        return Condition(column, "regexp", (rest[1].text,), is_negated)
    if len(rest) > 3 and rest[0].is_word("IN") and rest[1].is_symbol("(") and rest[-1].is_symbol(")"):
        parts = statement.split(rest[2:-1])
        if all(len(part) == 1 and part[0].kind in _CONSTANTS for part in parts):
            return Condition(column, "among", tuple(part[0].text.lower() for part in parts), is_negated)
    operator = "".join(token.text for token in rest[:-1])
    if not is_negated and rest and rest[-1].kind in _CONSTANTS and operator in ("=", "<>", "!="):
        return Condition(column, "among", (rest[-1].text.lower(),), operator != "=")
    raise statement.refuse(tokens)
