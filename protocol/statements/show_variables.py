"""SHOW VARIABLES in its forms."""

from dataclasses import replace
from typing import Final

from protocol.resultset import AnswerColumn, ColumnFlag, Rows, Value
from protocol.statements.answers import Answer
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.shapes import Captured
from protocol.statements.expression.show_conditions import row_filter
from protocol.statements.session.facts import SourceFacts
from protocol.statements.session.system_variables import (
    OF_THE_SOURCE,
    SYSTEM_VARIABLES,
    check_source_known,
    shown_value,
)

_NOT_NULL: Final = ColumnFlag.NOT_NULL
_NULLABLE: Final = ColumnFlag(0)
_STEPS_A_VARIABLE: Final = 100


def name_and_value_columns(facts: SourceFacts, what: str, *, is_global: bool) -> tuple[AnswerColumn, AnswerColumn]:
    """Return the columns of SHOW VARIABLES and SHOW STATUS, as a source of this kind describes them. `what`: VARIABLES, STATUS."""
    no_default = _NOT_NULL | ColumnFlag.NO_DEFAULT_VALUE
    scope = "global" if is_global else "session"
    if facts.is_mysql_8:
        schema, table = "performance_schema", f"{scope}_{what.lower()}"
        originals, flags, length = ("Variable_name", "Value"), (no_default, _NULLABLE), 1024
    else:
        schema, table = "information_schema", f"SESSION_{what}" if facts.is_mariadb else what
        originals = ("VARIABLE_NAME", "VARIABLE_VALUE")
        flags, length = ((no_default, no_default), 4096) if facts.is_mariadb else ((_NOT_NULL, _NULLABLE), 1024)
    shared = AnswerColumn("", decimals=0, schema=schema, table=table)
    return (
        replace(shared, name="Variable_name", length=64, flags=flags[0], original_name=originals[0]),
        replace(shared, name="Value", length=length, flags=flags[1], original_name=originals[1]),
    )


def show_variables(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW VARIABLES: names in lower case, values as text."""
    session = statement.session
    wanted = row_filter(statement, captured[0], ("Variable_name", "Value")).search(session.effort)
    rows: list[tuple[Value, ...]] = []
    for name, variable in SYSTEM_VARIABLES.items():
        session.effort.spend(_STEPS_A_VARIABLE)
        # Some values are long, and not asked for.
        if not variable.exists(session.facts) or not wanted.may_accept(0, name):
            continue
        if wanted.accepts(row := (name, shown_value(name, session))):
            rows.append(row)
    if not rows and any(wanted.may_accept(0, name) for name in OF_THE_SOURCE):
        check_source_known(session.facts)
    is_global = statement.tokens[1].is_word("GLOBAL")
    return Rows(name_and_value_columns(session.facts, "VARIABLES", is_global=is_global), tuple(rows))
