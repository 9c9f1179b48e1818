"""Databases: a relay has none, clients choose one all the same."""

from typing import Final

from protocol.resultset import Column, ColumnFlag, Rows
from protocol.statements.answers import Answer, Done
from protocol.statements.expressions import Statement
from protocol.statements.like import NameFilter
from protocol.statements.refusals import no_database, unknown_database
from protocol.statements.session import StatementSession
from protocol.statements.shapes import Captured

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
    """SHOW DATABASES [LIKE 'pattern']."""
    tokens = captured[1]
    pattern = None
    if tokens:
        if len(tokens) != 2 or not tokens[0].is_word("LIKE") or not tokens[1].is_text:
            raise statement.refuse(tokens)
        pattern = tokens[1].text
    wanted = NameFilter(like=pattern)
    column = Column("Database" if pattern is None else f"Database ({pattern})", length=64, flags=ColumnFlag.NOT_NULL)
    return Rows((column,), tuple((name,) for name in DATABASES if wanted.accepts(name)))


def show_tables(statement: Statement, captured: Captured) -> Answer:
    """SHOW TABLES: none of them can be read here."""
    database = statement.session.database
    if database is None and not any(token.is_word("FROM", "IN") for token in captured[0]):
        raise no_database()
    return Rows((Column.text(f"Tables_in_{database}", 64),), ())
