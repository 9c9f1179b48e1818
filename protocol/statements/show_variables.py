"""SHOW VARIABLES in its forms."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from protocol.resultset import Column, ColumnFlag, Rows, Value
from protocol.statements.answers import Answer
from protocol.statements.expressions import Statement
from protocol.statements.facts import SourceFacts
from protocol.statements.like import NameFilter
from protocol.statements.shapes import Captured
from protocol.statements.show_conditions import row_filter
from protocol.statements.system_variables import SYSTEM_VARIABLES, shown_value
from protocol.statements.tokens import Token

_MAX_NAMES: Final = 64
_NOT_NULL: Final = ColumnFlag.NOT_NULL
_NULLABLE: Final = ColumnFlag(0)


def name_filter(statement: Statement, tokens: Sequence[Token]) -> NameFilter:
    """What follows SHOW VARIABLES or SHOW STATUS: nothing, LIKE a pattern, or WHERE the name is, is one of, or is LIKE.

    Raises: StatementRefused (1064).
    """
    if not tokens:
        return NameFilter()
    if not tokens[0].is_word("WHERE"):
        return _condition(statement, tokens)
    if len(tokens) < 2 or not tokens[1].is_name("VARIABLE_NAME"):
        raise statement.refuse(tokens[1:])
    names: tuple[str, ...] = ()
    rest: Sequence[Token] = tokens
    # Tools chain them: WHERE Variable_name = 'a' OR Variable_name = 'b'.
    while rest:
        if not rest[0].is_word("WHERE", "OR") or len(rest) < 2 or not rest[1].is_name("VARIABLE_NAME"):
            raise statement.refuse(rest)
        end = next((index for index, token in enumerate(rest) if index and token.is_word("OR")), len(rest))
        condition = _condition(statement, rest[2:end])
        rest = rest[end:]
        if condition.names is None:
            if rest or names:
                raise statement.refuse(rest or tokens)
            return condition
        names += condition.names
        if len(names) > _MAX_NAMES:
            raise statement.refuse(rest)
    return NameFilter(names=names)


def _condition(statement: Statement, tokens: Sequence[Token]) -> NameFilter:
    if len(tokens) == 2 and tokens[0].is_symbol("=") and tokens[1].is_text:
        return NameFilter(names=(tokens[1].text,))
    if len(tokens) == 2 and tokens[0].is_word("LIKE") and tokens[1].is_text:
        return NameFilter(like=tokens[1].text)
    if len(tokens) > 3 and tokens[0].is_word("IN") and tokens[1].is_symbol("(") and tokens[-1].is_symbol(")"):
        parts = statement.split(tokens[2:-1])
        if all(len(part) == 1 and part[0].is_text for part in parts):
            return NameFilter(names=tuple(part[0].text for part in parts))
    raise statement.refuse(tokens)


def name_and_value_columns(facts: SourceFacts, what: str, *, is_global: bool) -> tuple[Column, Column]:
    """The columns of SHOW VARIABLES and SHOW STATUS, as a source of this kind describes them. `what`: VARIABLES, STATUS."""
    no_default = _NOT_NULL | ColumnFlag.NO_DEFAULT_VALUE
    scope = "global" if is_global else "session"
    if facts.is_mysql_8:
        schema, table = "performance_schema", f"{scope}_{what.lower()}"
        originals, flags, length = ("Variable_name", "Value"), (no_default, _NULLABLE), 1024
    else:
        schema, table = "information_schema", f"SESSION_{what}" if facts.is_mariadb else what
        originals = ("VARIABLE_NAME", "VARIABLE_VALUE")
        flags, length = ((no_default, no_default), 4096) if facts.is_mariadb else ((_NOT_NULL, _NULLABLE), 1024)
    shared = Column("", decimals=0, schema=schema, table=table)
    return (
        replace(shared, name="Variable_name", length=64, flags=flags[0], original_name=originals[0]),
        replace(shared, name="Value", length=length, flags=flags[1], original_name=originals[1]),
    )


def show_variables(statement: Statement, captured: Captured) -> Answer:
    """Names in lower case, values as text."""
    session = statement.session
    wanted = row_filter(statement, captured[0], ("Variable_name", "Value"))
    rows: list[tuple[Value, ...]] = []
    for name, variable in SYSTEM_VARIABLES.items():
        if variable.exists(session.facts) and wanted.accepts(row := (name, shown_value(name, session))):
            rows.append(row)
    is_global = statement.tokens[1].is_word("GLOBAL")
    return Rows(name_and_value_columns(session.facts, "VARIABLES", is_global=is_global), tuple(rows))
