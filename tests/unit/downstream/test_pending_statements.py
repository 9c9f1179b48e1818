"""Statements that only the running relay can answer: who waits for whom, and what ends with a connection."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pymysql
import pytest
from structlog.testing import capture_logs

from protocol.auth.account import Account
from protocol.errors import StatementRefused
from protocol.framing import frame_payload
from protocol.resultset import Rows
from protocol.statements import Done, GivenAnswer, Request
from protocol.statements.requests import ShowBinaryLogs, ShowProcesslist
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from relay.downstream.connection.client_status import ClientStatus
from relay.downstream.server import DownstreamServer
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder
from tests.support.replica_client import PASSWORD, USER, ReplicaClient

T = TypeVar("T")


class SlowConsole:
    """Answers when it is let, and remembers what became of its answers."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.cancelled = 0
        self.go = asyncio.Event()
        self.failure: Exception | None = None

    async def answer(self, request: Request, asker: ClientStatus) -> GivenAnswer:
        self.asked.append(request)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.failure is not None:
            raise self.failure
        return Rows(("Log_name",), (("mysql-bin.000001",),)) if isinstance(request, ShowBinaryLogs) else Done()


class Served:
    """A server whose console is slow."""

    def __init__(self, server: DownstreamServer, console: SlowConsole) -> None:
        self.server = server
        self.console = console
        self.clients: list[ReplicaClient] = []

    async def client(self, user: str = USER) -> ReplicaClient:
        client = await call(lambda: ReplicaClient(self.server.port, user=user))
        self.clients.append(client)
        return client


async def call(function: Callable[[], T]) -> T:
    return await asyncio.wait_for(asyncio.to_thread(function), 20)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.01)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    generation = await Generation.open(tmp_path / "archive")
    generation.set_identity(SourceIdentity("mysql", "5.6.24-log", 1, "11111111-2222-3333-4444-555555555555"))
    await generation.begin_file("mysql-bin.000001")
    await append_all(generation, BinlogBuilder().transaction(20).data)
    accounts = [Account.with_password(USER, PASSWORD), Account.with_password("dba", PASSWORD, admin=True)]
    console = SlowConsole()
    server = DownstreamServer(Archive.of(generation), accounts, console=console)
    await server.start("127.0.0.1", 0)
    served = Served(server, console)
    yield served
    for client in served.clients:
        client.cut()
    await server.close()
    await generation.close()


async def test_a_client_that_leaves_takes_its_question_along(served: Served) -> None:
    client = await served.client()
    await call(lambda: client.command(3, b"SHOW BINARY LOGS"))
    await until(lambda: served.console.asked)
    client.cut()
    await until(lambda: served.console.cancelled)
    await until(lambda: not served.server.sessions)


async def test_commands_behind_a_question_are_answered_after_it_and_in_order(served: Served) -> None:
    client = await served.client()
    sock = client.connection._sock
    statements = [b"SHOW BINARY LOGS", b"SELECT 5", b"SHOW PROCESSLIST"]
    await call(lambda: sock.sendall(b"".join(frame_payload(b"\x03" + text, 0) for text in statements)))
    await until(lambda: served.console.asked)
    await asyncio.sleep(0.1)
    assert served.console.asked == [ShowBinaryLogs()]
    served.console.go.set()
    answers = [await call(lambda: read_result(client)) for _ in statements]
    assert answers == [(("mysql-bin.000001",),), ((5,),), None]
    assert served.console.asked == [ShowBinaryLogs(), ShowProcesslist()]


def read_result(client: ReplicaClient) -> object:
    client.connection._result = None
    result = pymysql.connections.MySQLResult(client.connection)
    client.connection._next_seq_id = 1
    result.read()
    return result.rows


async def test_kill_query_ends_the_statement_and_not_the_connection(served: Served) -> None:
    first, second = await served.client(), await served.client()
    ((number,),) = await call(lambda: first.query("SELECT CONNECTION_ID()"))
    asking = asyncio.ensure_future(call(lambda: first.query("SHOW BINARY LOGS")))
    await until(lambda: served.console.asked)
    await call(lambda: second.query(f"KILL QUERY {number}"))
    with pytest.raises(pymysql.MySQLError) as caught:
        await asking
    assert caught.value.args[0] == 1317
    assert await call(lambda: first.query("SELECT 5")) == ((5,),)


async def test_kill_query_leaves_what_changes_something_alone(served: Served) -> None:
    first = await served.client(user="dba")
    ((number,),) = await call(lambda: first.query("SELECT CONNECTION_ID()"))
    asking = asyncio.ensure_future(call(lambda: first.query("FLUSH STATUS")))
    await until(lambda: served.console.asked)
    killer = await served.client(user="dba")
    await call(lambda: killer.query(f"KILL QUERY {number}"))
    served.console.go.set()
    await asking
    assert served.console.cancelled == 0


async def test_others_are_answered_meanwhile(served: Served) -> None:
    first, second = await served.client(), await served.client()
    await call(lambda: first.command(3, b"SHOW BINARY LOGS"))
    await until(lambda: served.console.asked)
    assert await call(lambda: second.query("SELECT 5")) == ((5,),)


async def test_what_floods_in_behind_a_question_is_not_read_until_it_is_answered(served: Served) -> None:
    client = await served.client()
    sock = client.connection._sock
    await call(lambda: client.command(3, b"SHOW BINARY LOGS"))
    await until(lambda: served.console.asked)
    sock.settimeout(0.5)
    ping = frame_payload(b"\x0e", 0)
    sent = 0
    with contextlib.suppress(TimeoutError):
        for _ in range(400):
            await call(lambda: sock.sendall(ping * 20000))
            sent += 1
    assert sent < 400
    (session,) = served.server.sessions
    assert session.client.machine is not None
    assert len(session.client.machine._input) < 1 << 20


async def test_a_bug_in_the_console_is_an_error_and_the_connection_goes_on(served: Served) -> None:
    client = await served.client()
    served.console.failure = RuntimeError("bug")
    served.console.go.set()
    with capture_logs() as logs, pytest.raises(pymysql.MySQLError) as caught:
        await call(lambda: client.query("SHOW BINARY LOGS"))
    assert caught.value.args[0] == 1105
    assert [line["event"] for line in logs] == ["statement_failed", "statement_refused"]
    assert await call(lambda: client.query("SELECT 5")) == ((5,),)


async def test_a_refusal_of_the_console_is_told_and_logged_without_secrets(served: Served) -> None:
    client = await served.client()
    served.console.failure = StatementRefused(1235, "not so")
    served.console.go.set()
    with capture_logs() as logs, pytest.raises(pymysql.MySQLError) as caught:
        await call(lambda: client.query("SHOW STATUS LIKE 'identified by s3cret'"))
    assert caught.value.args == (1235, "not so")
    assert [(line["event"], line["number"]) for line in logs] == [("statement_refused", 1235)]
    assert "s3cret" not in str(logs)


@pytest.mark.parametrize(
    "statement",
    [
        "CHANGE MASTER TO MASTER_PASSWORD = 's3cret'",
        "CHANGE MASTER TO MASTER_PASSWORD 's3cret'",
        "SET PASSWORD = 's3cret'",
        "START SLAVE USER = 'u' PASSWORD = 's3cret'",
    ],
)
async def test_no_refused_statement_brings_a_password_into_the_log(served: Served, statement: str) -> None:
    client = await served.client()
    with capture_logs() as logs, pytest.raises(pymysql.MySQLError):
        await call(lambda: client.query(statement))
    assert [line["event"] for line in logs] == ["statement_refused"]
    assert "s3cret" not in str(logs)
