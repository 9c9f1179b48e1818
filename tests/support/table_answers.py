"""The final answer to a statement whose answer needs tables: as the running relay gives it, with empty ones."""

import threading
from pathlib import Path

from protocol.resultset import Rows
from protocol.source_side.statement_apart import StatementApart
from protocol.statements import (
    Answer,
    EncodedRows,
    StatementSession,
    TooMuchForTheLoop,
    answer_statement,
)
from protocol.statements.requests import QueryTables
from relay.table_queries.table_queries import TableAsker, TableQuery

NOWHERE = Path("/nonexistent")


def answered(statement: str, session: StatementSession, now_s: float) -> Answer:
    """Return the answer, computed as if in a thread if it is too much work for the event loop. Raises: StatementRefused."""
    try:
        return answer_statement(statement, session, now_s)
    except TooMuchForTheLoop:
        apart = StatementApart(statement, session, now_s)
        answer = apart.run()
        apart.take_over(session)
        return answer


def answer_of(statement: str, session: StatementSession, now_s: float) -> Answer:
    """Return the answer of a relay that has recorded nothing. Raises: StatementRefused."""
    answer = answered(statement, session, now_s)
    if not isinstance(answer, QueryTables):
        return answer
    found: list[Rows] = []

    def keep(rows: Rows) -> EncodedRows:
        found.append(rows)
        return EncodedRows(())

    asker = TableAsker(session.facts, session.user, session.host, session.database, keep)
    TableQuery(answer, asker, {}, NOWHERE, None, threading.Event()).run()
    return found[0]
