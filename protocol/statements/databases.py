"""Databases: a relay has none, clients choose one all the same."""

from typing import Final

from protocol.resultset import Column, ColumnFlag, Rows
from protocol.statements.answers import Answer, Done
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.shapes import Captured
from protocol.statements.expression.show_conditions import row_filter
from protocol.statements.expression.tokens import Kind
from protocol.statements.session.refusals import no_database, unknown_database
from protocol.statements.session.session import StatementSession

# What every server has; tools choose one of these when they do not care.
DATABASES: Final = ("information_schema", "mysql", "performance_schema")


def choose_database(name: str, session: StatementSession) -> None:
    """USE, COM_INIT_DB. Raises: StatementRefused (1049) for one that a server without data would not have."""
    if name.lower() not in DATABASES:
        raise unknown_database(name)
    session.database = name.lower()


def use_database(statement: Statement, captured: Captured) -> Answer:
    """USE name."""
    choose_database(captured[0][0].text, statement.session)
    return Done()


def show_databases(statement: Statement, captured: Captured) -> Answer:
    """SHOW DATABASES [LIKE 'pattern' | WHERE ...]."""
    tokens = captured[1]
    wanted = row_filter(statement, tokens, ("Database",))
    name = f"Database ({tokens[1].text})" if tokens and tokens[0].is_word("LIKE") else "Database"
    column = Column(name, length=64, flags=ColumnFlag.NOT_NULL)
    return Rows((column,), tuple((name,) for name in DATABASES if wanted.accepts((name,))))


def show_tables(statement: Statement, captured: Captured) -> Answer:
    """SHOW [FULL] TABLES [FROM database] [LIKE 'pattern' | WHERE ...]: none of them can be read here."""
    database, tokens = statement.session.database, captured[0]
    if tokens and tokens[0].is_word("FROM", "IN"):
        if len(tokens) < 2 or tokens[1].kind not in (Kind.WORD, Kind.NAME):
            raise statement.refuse(tokens[1:])
        database, tokens = tokens[1].text.lower(), tokens[2:]
        if database not in DATABASES:
            raise unknown_database(database)
    pattern = ""
    if len(tokens) == 2 and tokens[0].is_word("LIKE") and tokens[1].is_text:
        pattern = f" ({tokens[1].text})"
    elif tokens and not tokens[0].is_word("WHERE"):
        raise statement.refuse(tokens)
    if database is None:
        raise no_database()
    columns = (Column.text(f"Tables_in_{database}{pattern}", 64), Column.text("Table_type", 11))
    return Rows(columns if statement.tokens[1].is_word("FULL") else columns[:1], ())
