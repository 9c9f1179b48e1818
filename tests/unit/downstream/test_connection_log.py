"""The lines of one connection: what each says, at which level, and what is not said."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from protocol.auth.account import Account
from protocol.auth.authenticator import Channel
from protocol.commands import BinlogDump, DumpFlag, RegisterSlave
from protocol.errors import AnsweredError, ErrorCode, PeerError, PositionRefused
from protocol.position import Position
from protocol.source_side.connection_events import Closed, Event, LoggedIn, LoginRefused, Registered, StatementFailed
from protocol.statements.requests import ShowBinaryLogs
from relay.downstream.connection import line_bounds
from relay.downstream.connection.client import Client
from relay.downstream.connection.connection_log import ConnectionLog
from relay.downstream.connection.line_bounds import LineBounds
from relay.downstream.stream.acknowledgements import Acknowledgements
from relay.downstream.stream.dump import Dump

ACCOUNT = Account.with_password("repl", "s3cret")
NUMBERED = {"connection_id": 7, "replica_address": "192.0.2.1:40000"}
REPLICA = {"user": "repl", "server_id": 9, "uuid": "uuid"}
FILE = "mysql-bin.000001"
DUMP = cast(Dump, SimpleNamespace(position=Position(FILE, 400), sent_bytes=396))


def a_client(user: str = "repl") -> Client:
    client = Client()
    account = ACCOUNT if user else None
    session = SimpleNamespace(user_variables={"slave_uuid": "uuid"}, database=None)
    client.machine = cast(Any, SimpleNamespace(account=account, session=session))
    client.server_id = 9
    client.connection_id, client.address = 7, "192.0.2.1:40000"
    return client


def greeted(user: str = "repl", bounds: LineBounds | None = None) -> ConnectionLog:
    log = ConnectionLog(a_client(user), bounds or LineBounds())
    log.greeted()
    return log


def written(event: Event, user: str = "repl") -> list[Any]:
    with capture_logs() as logs:
        greeted(user).happened(event)
    return logs


async def test_a_login_says_with_what_and_nothing_that_could_forge_a_line() -> None:
    attributes = {"program_name": "mysql\n" + "x" * 200, "_client_version": "5.6.24", "password": "s3cret"}
    (line,) = written(LoggedIn(ACCOUNT, attributes, "mysql_native_password", Channel("TLSv1.3")))
    assert line == {
        "event": "replica_logged_in",
        "log_level": "info",
        **NUMBERED,
        "user": "repl",
        "plugin": "mysql_native_password",
        "tls": "TLSv1.3",
        "program_name": "mysql?" + "x" * 94,
        "client_version": "5.6.24",
    }


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (LoginRefused("eve", "no account"), ("login_refused", "warning", {"user": "eve", "reason": "no account"})),
        (
            StatementFailed("USE x", 1049, "Unknown database 'x'"),
            ("statement_refused", "info", {"user": "repl", "statement": "USE x", "number": 1049}),
        ),
        (Registered(RegisterSlave(9, "", "", 3306)), ("replica_registered", "info", REPLICA)),
        (
            Closed(PeerError(ErrorCode.ER_UNKNOWN_COM_ERROR, "no such command")),
            ("connection_ended", "warning", {"user": "repl", "number": 1047, "reason": "no such command"}),
        ),
    ],
)
async def test_what_happens_has_a_line_of_its_own(event: Event, line: tuple[str, str, dict[str, Any]]) -> None:
    name, level, fields = line
    assert written(event) == [{"event": name, "log_level": level, **NUMBERED, **fields}]


@pytest.mark.parametrize(
    "event",
    [
        Closed(),
        Closed(PeerError(ErrorCode.ER_ACCESS_DENIED_ERROR, "Access denied")),  # told as a refused login
        Closed(AnsweredError(ErrorCode.ER_SERVER_SHUTDOWN, "Server shutdown in progress")),
    ],
)
async def test_an_end_that_is_no_news_has_none(event: Event) -> None:
    assert written(event) == []


async def test_strangers_get_as_many_lines_as_help_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_bounds, "_MOST_LINES", 2)
    bounds = LineBounds()
    closed = Closed(PeerError(ErrorCode.ER_HANDSHAKE_ERROR, "Bad handshake"))
    with capture_logs() as logs:
        for _ in range(2):
            greeted("", bounds).happened(closed)
            greeted("", bounds).sent_away_before_login()
        greeted("repl", bounds).happened(closed)
    assert [(line["event"], line.get("user")) for line in logs] == [
        ("connection_ended", ""), ("stranger_sent_away", None), ("connection_ended", "repl")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "level"), [(ErrorCode.ER_HOST_IS_BLOCKED, "debug"), (ErrorCode.ER_CON_COUNT_ERROR, "warning")]
)
async def test_who_is_not_greeted_has_an_address_and_no_number(number: ErrorCode, level: str) -> None:
    with capture_logs() as logs:
        ConnectionLog(a_client(""), LineBounds()).refused(AnsweredError(number, "not now"))
    assert logs == [
        {
            "event": "connection_refused",
            "log_level": level,
            "replica_address": "192.0.2.1:40000",
            "reason": "not now",
        }
    ]


async def test_the_lines_of_a_stream_say_whose_it_is_and_where() -> None:
    asked = BinlogDump(FILE, 4, DumpFlag(0), 9)
    acknowledgements = cast(Acknowledgements, SimpleNamespace(acked=Position(FILE, 300), open=2))
    log = greeted()
    with capture_logs() as logs:
        log.dump_started({"by_gtid": False})
        log.dump_refused(asked, PositionRefused(1236, "not here"))
        log.dump_not_begun((FILE, 4), Position(FILE, 900))
        log.dump_not_begun((FILE, 4), None)
        log.dump_ended(DUMP, None, "the replica said goodbye")
        log.dump_stopped(DUMP, acknowledgements, "the archive is damaged")
    assert all({**line, **NUMBERED, **REPLICA} == line for line in logs)
    assert [(line["event"], line["log_level"]) for line in logs] == [
        ("dump_started", "info"),
        ("dump_refused", "warning"),
        ("dump_not_begun", "info"),
        ("dump_not_begun", "info"),
        ("dump_ended", "info"),
        ("dump_stopped", "warning"),
    ]
    started, refused, not_begun, of_nothing, ended, stopped = logs
    assert started["by_gtid"] is False
    assert (refused["file"], refused["offset"], refused["number"], refused["reason"]) == (FILE, 4, 1236, "not here")
    assert (not_begun["file"], not_begun["offset"], not_begun["archive_end"]) == (FILE, 4, f"{FILE}:900")
    assert of_nothing["archive_end"] is None
    assert (ended["file"], ended["offset"], ended["sent_bytes"]) == (FILE, 400, 396)
    assert "acknowledged" not in ended
    assert (stopped["acknowledged"], stopped["unanswered"]) == (f"{FILE}:300", 2)


async def test_faults_of_ours_have_a_traceback_where_they_are_handled() -> None:
    log = greeted()
    with capture_logs() as logs:
        log.broken_off(ZeroDivisionError("secret"))
        log.tls_broken("what came is no TLS")
        log.closed()
        try:
            raise ZeroDivisionError("a bug")
        except ZeroDivisionError:
            log.login_check_failed()
            log.statement_failed(ShowBinaryLogs())
            log.dump_request_failed(BinlogDump(FILE, 4, DumpFlag(0), 9))
    assert [(line["event"], line["log_level"], line.get("exc_info", False)) for line in logs] == [
        ("connection_broken_off", "warning", False),
        ("tls_broken", "warning", False),
        ("connection_closed", "debug", False),
        ("login_check_failed", "error", True),
        ("statement_failed", "error", True),
        ("dump_request_failed", "error", True),
    ]
    assert "secret" not in str(logs[0])
