"""One statement that only the running relay can answer: what its client is told, and when nothing."""

import asyncio
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from protocol.errors import AnsweredError, ErrorCode, StatementRefused
from protocol.statements import Done, GivenAnswer, Request
from protocol.statements.requests import KillConnection, ShowBinaryLogs
from relay.downstream.connection.client import Client
from relay.downstream.connection.connection_log import ConnectionLog
from relay.downstream.connection.line_bounds import LineBounds
from relay.downstream.connection.pending_statement import PendingStatement


class Changing(Request):
    """One that changes something."""

    privilege = "SUPER"


class Asked:
    """A statement whose answer comes when it is let, and what the client was told."""

    def __init__(
        self, request: Request, failure: Exception | None = None, tells: Callable[[object], None] | None = None
    ) -> None:
        self.go = asyncio.Event()
        self.failure = failure
        self.looked = self.cancelled = 0
        self.told: list[GivenAnswer | AnsweredError] = []
        self.faults: list[Exception] = []
        client = Client()
        log = ConnectionLog(client, LineBounds())
        self.statement = PendingStatement(request, self.find, tells or self.told.append, log, self.faults.append)

    async def find(self) -> GivenAnswer:
        self.looked += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.failure is not None:
            raise self.failure
        return Done()

    @property
    def numbers(self) -> list[int]:
        """Of the errors that the client was told."""
        return [int(answer.number) for answer in self.told if isinstance(answer, AnsweredError)]


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_answer_is_told_once_and_not_before_it_is_found() -> None:
    asked = Asked(ShowBinaryLogs())
    await turns()
    assert (asked.looked, asked.told) == (1, [])
    asked.go.set()
    await turns()
    asked.statement.interrupt()
    asked.statement.drop()
    await turns()
    assert asked.told == [Done()]


async def test_a_refusal_is_told_as_it_is() -> None:
    refusal = StatementRefused(ErrorCode.ER_NO_SUCH_THREAD, "Unknown thread id: 9")
    asked = Asked(KillConnection(9), refusal)
    asked.go.set()
    with capture_logs() as logs:
        await turns()
    assert asked.told == [refusal]
    assert logs == []


async def test_a_bug_is_logged_and_the_client_is_not_left_waiting() -> None:
    asked = Asked(ShowBinaryLogs(), ZeroDivisionError("a bug"))
    asked.go.set()
    with capture_logs() as logs:
        await turns()
    assert asked.numbers == [ErrorCode.ER_UNKNOWN_ERROR]
    assert [(line["event"], line["request"]) for line in logs] == [("statement_failed", "ShowBinaryLogs()")]
    assert "a bug" not in str(asked.told[0])


@pytest.mark.parametrize("turns_before", [0, 1, 2])
async def test_what_shows_something_is_interrupted_and_the_client_is_told(turns_before: int) -> None:
    """Also before its task has taken its first step, where a cancelled one never begins."""
    asked = Asked(ShowBinaryLogs())
    for _ in range(turns_before):
        await asyncio.sleep(0)
    asked.statement.interrupt()
    asked.statement.interrupt()
    await turns()
    assert asked.numbers == [ErrorCode.ER_QUERY_INTERRUPTED]
    assert asked.looked == asked.cancelled


@pytest.mark.parametrize("turns_before", [0, 2])
async def test_what_changes_something_is_not_interrupted(turns_before: int) -> None:
    asked = Asked(Changing())
    for _ in range(turns_before):
        await asyncio.sleep(0)
    asked.statement.interrupt()
    await turns()
    assert (asked.told, asked.cancelled) == ([], 0)
    asked.go.set()
    await turns()
    assert asked.told == [Done()]


def dropped(asked: Asked) -> None:
    asked.statement.drop()


def dropped_as_it_was_interrupted(asked: Asked) -> None:
    asked.statement.interrupt()
    asked.statement.drop()


@pytest.mark.parametrize("ends", [dropped, dropped_as_it_was_interrupted])
@pytest.mark.parametrize("turns_before", [0, 2])
async def test_nobody_is_told_where_nobody_is_left(turns_before: int, ends: Callable[[Asked], None]) -> None:
    asked = Asked(ShowBinaryLogs())
    for _ in range(turns_before):
        await asyncio.sleep(0)
    ends(asked)
    await turns()
    assert (asked.told, asked.faults) == ([], [])
    assert asked.looked == asked.cancelled


async def test_a_fault_in_telling_ends_what_depends_on_it() -> None:
    fault = ZeroDivisionError("a bug")
    asked = Asked(ShowBinaryLogs(), tells=fails_with(fault))
    asked.go.set()
    with capture_logs() as logs:
        await turns()
    assert asked.faults == [fault]
    assert [line["event"] for line in logs] == ["task_failed"]


def fails_with(fault: Exception) -> Callable[[object], None]:
    def fail(_answer: object) -> None:
        raise fault

    return fail
