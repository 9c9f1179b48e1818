"""Databases that clients choose: a relay has no data in them."""

from typing import Final

from protocol.statements.answers import Answer, Done
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.shapes import Captured
from protocol.statements.session.refusals import unknown_database
from protocol.statements.session.session import StatementSession

# The databases that every server has; tools choose one of these when they do not care.
MOST_NAME_BYTES: Final = 1024
"""The limit of a command that is a name; no name of a server is so long, and cutting one changes no answer."""
DATABASES: Final = ("information_schema", "mysql", "performance_schema")


def choose_database(name: str, session: StatementSession) -> None:
    """Answer USE or COM_INIT_DB. Raises: StatementRefused (1049) for one that a server without data would not have."""
    if name.lower() not in DATABASES:
        raise unknown_database(name)
    session.database = name.lower()


def use_database(statement: Statement, captured: Captured) -> Answer:
    """Answer USE name."""
    choose_database(captured[0][0].text, statement.session)
    return Done()
