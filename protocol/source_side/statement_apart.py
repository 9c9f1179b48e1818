"""A statement that is too much work for the event loop, and is answered in a thread while its connection waits."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from protocol.statements.answers import Answer
from protocol.statements.requests import KillConnection, Request, UseLocks
from protocol.statements.session.effort import too_much_work
from protocol.statements.session.facts import SourceFacts
from protocol.statements.session.session import StatementSession
from protocol.statements.table import answer_statement


class StatementApart:
    """One such statement. It is made on the event loop, which calls `take_over` when the answer is there; `run` is for the thread.

    Until then it sets variables in a copy: a statement that is interrupted has changed nothing.
    """

    def __init__(self, text: str, session: StatementSession, now_s: float) -> None:
        self._text = text
        self._now_s = now_s
        self._session = replace(
            session,
            facts=_as_now(session.facts),
            user_variables=dict(session.user_variables),
            system_variables=dict(session.system_variables),
        )

    def run(self) -> Answer:
        """Return the answer. Raises: StatementRefused (also 1104 if it is too much work for a thread, or changes the relay)."""
        answer = answer_statement(self._text, self._session, self._now_s, in_a_thread=True)
        if isinstance(answer, KillConnection | UseLocks) or (isinstance(answer, Request) and answer.privilege):
            # They act at once, or not at all: no client words them so long.
            raise too_much_work()
        return answer

    def take_over(self, session: StatementSession) -> None:
        """Give `session` the variables that the statement has set."""
        done = self._session
        session.user_variables, session.system_variables = done.user_variables, done.system_variables
        session.held_bytes = done.held_bytes
        session.database, session.notices, session.encoding = done.database, done.notices, done.encoding


@dataclass(frozen=True, slots=True)
class AnswerApart(Request):
    """A request for such an answer, which may be a request again."""

    statement: StatementApart


def _as_now(facts: SourceFacts) -> SourceFacts:
    """Return the facts at this moment: what they call later belongs to the event loop."""
    gtids = facts.gtids()
    settings: Mapping[str, str] = dict(facts.settings())
    why = facts.unreached() if facts.unreached is not None else None
    return replace(
        facts,
        gtids=lambda: gtids,
        settings=lambda: settings,
        unreached=(lambda: why) if why is not None else None,
    )
