"""A statement that only the running relay can answer, while its answer is looked for."""

import asyncio
from collections.abc import Awaitable, Callable

from protocol.errors import AnsweredError, ErrorCode, StatementRefused
from protocol.statements import GivenAnswer, Request
from relay.downstream.connection.connection_log import ConnectionLog
from relay.downstream.request.refusal import INTERNAL_ERROR
from relay.process.background import OnFault, begin_task

Answered = Callable[[GivenAnswer | AnsweredError], None]


class PendingStatement:
    """One statement, from its request to its answer. It is created on the event loop and begins at once.

    find: finds the answer, or raises AnsweredError for the client. answered: called once, later, with the answer for the client,
    whatever happens; never after `drop`. on_fault: called with an exception out of `answered`.
    """

    def __init__(
        self,
        request: Request,
        find: Callable[[], Awaitable[GivenAnswer]],
        answered: Answered,
        log: ConnectionLog,
        on_fault: OnFault,
    ) -> None:
        self._request = request
        self._find = find
        self._log = log
        self._has_begun = self._is_interrupted = False
        self._task = begin_task(self._run(answered), "answering a statement", on_fault)

    def interrupt(self) -> None:
        """End it, and answer the client, if it only shows something. A statement that changes something runs to its end."""
        if self._request.privilege or self._is_interrupted:
            return
        self._is_interrupted = True
        # A task that is cancelled before its first step never begins, and would answer nothing.
        if self._has_begun:
            self._task.cancel()

    def drop(self) -> None:
        """End it without an answer: the client has disconnected."""
        self._is_interrupted = False
        self._task.cancel()

    async def _run(self, answered: Answered) -> None:
        self._has_begun = True
        answer: GivenAnswer | AnsweredError
        try:
            answer = _interrupted() if self._is_interrupted else await self._find()
        except AnsweredError as error:
            answer = error.without_trace()
        except asyncio.CancelledError:
            if not self._is_interrupted:
                raise
            answer = _interrupted()
        except Exception:
            # An internal fault must not leave the client waiting without an answer.
            self._log.statement_failed(self._request)
            answer = StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, INTERNAL_ERROR)
        answered(answer)


def _interrupted() -> StatementRefused:
    return StatementRefused(ErrorCode.ER_QUERY_INTERRUPTED, "Query execution was interrupted")
