"""Whatever a stranger, an account, an HTTP client or a source gives as a name or a text is shown without what is obeyed.

All that can be named is named by `tests.support.hostile_names`; then every output is looked at: error packets, rows, HTTP, commands
and the log.
"""

import contextlib
import http.client
import json
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pymysql
import pytest
from pymysql.constants import COMMAND

from protocol.framing import frame_payload
from relay.http.answers.openapi import PATHS
from tests.floods import http_port
from tests.support.binlog_builder import BinlogBuilder
from tests.support.chain import wait_until
from tests.support.fake_source import Dump, FakeSource
from tests.support.free_port import free_port
from tests.support.hostile_names import OBEYED, TEXTS, Shown, quoted
from tests.support.http_relay import TOKEN, http_section
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess

FIRST = "mysql-bin.000001"
ADMIN = "dba"
STATEMENTS = (
    "{bare}",
    "{text}",
    "KILL {text}",
    "KILL {bare}",
    "USE {name}",
    "SELECT {bare}",
    "SELECT 1 AS {name}",
    "SELECT {name} FROM information_schema.PROCESSLIST",
    "SELECT * FROM {name}.{name}",
    "SELECT * FROM information_schema.PROCESSLIST WHERE USER = {text}",
    "SELECT GET_LOCK({text}, 0)",
    "SELECT MASTER_POS_WAIT({text}, 4, -1)",
    "SELECT MASTER_GTID_WAIT({text}, 0)",
    "SELECT BINLOG_GTID_POS({text}, 4)",
    "SELECT GTID_SUBTRACT({text}, {text})",
    "SELECT CONVERT_TZ({text}, {text}, {text})",
    "SELECT {name}()",
    "SET @slave_uuid = {text}",
    "SET @master_binlog_checksum = {text}",
    "SET @master_heartbeat_period = {text}",
    "SET @slave_connect_state = {text}",
    "SET {name} = 1",
    "SET GLOBAL {name} = {text}",
    "SET sql_mode = {text}",
    "SET lc_time_names = {text}",
    "SET NAMES {text}",
    "SET NAMES utf8 COLLATE {text}",
    "SET character_set_results = {text}",
    "SET time_zone = {text}",
    "SHOW BINLOG EVENTS IN {text}",
    "SHOW GRANTS FOR {text}",
    "SHOW GRANTS FOR {text}@{text}",
    "SHOW TABLES FROM {name}",
    "SHOW CREATE TABLE {name}",
    "SHOW VARIABLES LIKE {text}",
    "SHOW STATUS WHERE Variable_name = {text}",
    "SHOW VARIABLES WHERE {name} = 1",
    "SHOW SLAVE STATUS FOR CHANNEL {text}",
    "SHOW {bare}",
    "PURGE BINARY LOGS TO {text}",
    "PURGE BINARY LOGS BEFORE {text}",
    "FLUSH {bare}",
    "CALL mysql.{name}()",
    "CALL mysql.relay_accept_gap({text}, {text})",
    "CALL relay.{name}({text})",
    "STOP SLAVE FOR CHANNEL {text}",
    "START SLAVE FOR CHANNEL {text}",
    "START SLAVE USER = {text}",
    "PREPARE {name} FROM {text}",
    "EXECUTE {name}",
    "CHANGE MASTER TO {name} = 1",
    "CHANGE MASTER TO MASTER_LOG_FILE = {text}, MASTER_LOG_POS = 4",
    "CHANGE MASTER TO MASTER_SSL_CA = {text}",
    "CHANGE MASTER TO MASTER_HOST = {text}",
)
LISTS = (
    "SHOW FULL PROCESSLIST",
    "SHOW SLAVE HOSTS",
    "SELECT * FROM information_schema.PROCESSLIST",
    "SHOW SLAVE STATUS",
    "SHOW BINARY LOGS",
    "SHOW MASTER STATUS",
    "SHOW STATUS",
    "SHOW VARIABLES",
    "SHOW WARNINGS",
    "SHOW GRANTS",
)
COMMANDS = (
    ("status",),
    ("status", "--json"),
    ("archive", "list"),
    ("archive", "verify", "--deep"),
    ("doctor", "--json"),
    ("check-config",),
)


@pytest.fixture
def source() -> Iterator[FakeSource]:
    with FakeSource({FIRST: bytes(BinlogBuilder().ddl().transaction(20).data)}) as one:
        yield one


@pytest.fixture
def relay(tmp_path: Path, source: FakeSource) -> Iterator[RelayProcess]:
    sections: dict[str, dict[str, Any]] = {
        "listen": {"max_login_failures": 0},
        **http_section(free_port()),
    }
    one = RelayProcess(tmp_path / "relay", source, port=free_port(), sections=sections)
    one.add_account(user=ADMIN, password=REPLICA_PASSWORD, admin=True)
    with one:
        one.wait_archived(FIRST, len(source.files[FIRST]))
        yield one


class Speaker:
    """A client whose every name is `text`, and who notes what it is answered."""

    def __init__(self, relay: RelayProcess, shown: Shown, user: str, text: str) -> None:
        self._shown = shown
        self._who = user if user in (REPLICA_USER, ADMIN) else "a stranger"
        link: Any = pymysql.Connection(
            host="127.0.0.1", port=relay.port, user=user, password=REPLICA_PASSWORD, database=text[:200], program_name=text[:300],
            read_timeout=20, autocommit=None, defer_connect=True,
        )  # fmt: skip
        link._connect_attrs |= {"_client_version": text[:300], text[:200]: text[:300]}
        self._link = link

    def log_in(self) -> bool:
        try:
            self._link.connect()
        except pymysql.MySQLError as error:
            self._shown.text(f"the login of {self._who}", str(error.args[1]))
            return False
        return True

    def ask(self, statement: str, *, rows: bool = False) -> None:
        """rows: what comes back is of others, and looked at as well."""
        where = f"{self._who}: {statement[:40]!r}"
        try:
            with self._link.cursor() as cursor:
                cursor.execute(statement)
                found = cursor.fetchall()
                names = [column[0] for column in cursor.description or ()]
        except pymysql.err.InterfaceError:
            self._link.connect()
        except pymysql.MySQLError as error:
            self._shown.text(where, str(error.args[-1]))
            if not self._link.open:
                self._link.connect()
        else:
            self._shown.values(f"{where} columns", names)
            if rows:
                self._shown.values(f"{where} rows", found)

    def command(self, code: int, body: bytes) -> None:
        try:
            self._link._execute_command(code, body)
            self._link._read_packet()
        except pymysql.MySQLError as error:
            self._shown.text(f"{self._who}: command {code}", str(error.args[-1]))
            if not self._link.open:
                self._link.connect()

    def leave(self) -> None:
        self._link._force_close()


def registration(text: str) -> bytes:
    """COM_REGISTER_SLAVE, all of whose names are this."""
    name = text.encode()[:90]
    counted = bytes([len(name)]) + name
    return struct.pack("<I", 4711) + counted * 3 + struct.pack("<HII", 3306, 0, 0)


def asked_by_http(port: int, shown: Shown, path: str, **headers: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection), contextlib.suppress(http.client.HTTPException, OSError):
        connection.putrequest("GET", path, skip_host="Host" in headers)
        for name, value in {"Authorization": f"Bearer {TOKEN}", **headers}.items():
            connection.putheader(name, value.encode())
        connection.endheaders()
        answer = connection.getresponse()
        shown.values(f"{path[:40]} headers", dict(answer.getheaders()))
        shown.answer(f"{path[:60]} {list(headers)}", answer.read())


def look(relay: RelayProcess, shown: Shown, commands: Sequence[Sequence[str]] = COMMANDS) -> None:
    """At everything that a relay shows."""
    admin = Speaker(relay, shown, ADMIN, "shown")
    assert admin.log_in()
    for statement in LISTS:
        admin.ask(statement, rows=True)
    admin.leave()
    port = http_port(relay)
    for path in ("/metrics", "/readyz", "/healthz", *(f"/api/v1/{name}" for name in PATHS)):
        asked_by_http(port, shown, path)
    for words in commands:
        done = relay.command(*words)
        assert done.returncode != 70, done.stderr
        for output in (done.stdout, done.stderr):
            if output.startswith("{"):
                shown.lines(f"{words}, the line itself", output)
                for line in output.splitlines():
                    shown.values(" ".join(words), json.loads(line))
            else:
                shown.lines(" ".join(words), output.replace("\t", " "))  # which part the columns of a list
    shown.log("the log", relay.log_path.read_bytes())


def without_ends(text: str) -> str:
    """HTTP's own clients send no line ends in a header."""
    return text.replace("\r", "").replace("\n", "")


def test_what_clients_choose_as_names_is_shown_without_what_is_obeyed(relay: RelayProcess) -> None:
    shown = Shown()
    port = http_port(relay)
    stay: list[Speaker] = []
    for text in TEXTS:
        assert not Speaker(relay, shown, text[:60], text).log_in()
        for raw in (text.encode(), b"\xff\x1b[2J" * 20):
            with socket.create_connection(("127.0.0.1", relay.port), timeout=10) as stranger:
                stranger.recv(4096)
                stranger.sendall(
                    frame_payload(struct.pack("<IIB23x", 0x000FA685, 1 << 24, 33) + raw[:60] + b"\0\x14" + raw, 1)
                )
                answered = stranger.recv(4096)
            if answered[4:5] == b"\xff":
                shown.values("a broken login", answered[13:])
        values = {"text": quoted(text[:600]), "name": f"`{text[:200].replace('`', '``')}`", "bare": text}
        for user in (REPLICA_USER, ADMIN):
            speaker = Speaker(relay, shown, user, text)
            assert speaker.log_in()
            for statement in STATEMENTS:
                speaker.ask(statement.format(**values))
            for code, body in (
                (COMMAND.COM_INIT_DB, text.encode()),
                (COMMAND.COM_FIELD_LIST, text.encode() + b"\0"),
                (COMMAND.COM_STMT_PREPARE, text.encode()),
                (COMMAND.COM_CHANGE_USER, text.encode()[:100] + b"\0\0" + text.encode()[:100] + b"\0"),
                (COMMAND.COM_REGISTER_SLAVE, registration(text)[:-9]),
            ):
                speaker.command(code, body)
            for file in (text, text[:60] + ".000001"):
                speaker.command(COMMAND.COM_BINLOG_DUMP, struct.pack("<IHI", 4, 0, 4711) + file.encode())
            speaker.ask(f"SET @slave_uuid = {values['text']}")
            speaker.command(COMMAND.COM_REGISTER_SLAVE, registration(text))
            speaker.command(COMMAND.COM_INIT_DB, text.encode()[:190])
            stay.append(speaker)
        for path in (
            f"/{quote(text)}",
            f"/api/v1/{quote(text)}",
            f"/api/v1/replicas?{quote(text)}={quote(text)}",
            "/api/v1/map?generation=" + quote(text),
        ):
            asked_by_http(port, shown, path)
        plain = without_ends(text)
        asked_by_http(port, shown, "/metrics", Host=plain)
        asked_by_http(port, shown, "/metrics", Authorization=plain)
        asked_by_http(port, shown, "/", **{"If-None-Match": plain, "User-Agent": plain, "X-Forwarded-For": plain})
    replica = Speaker(relay, shown, REPLICA_USER, TEXTS[0])
    assert replica.log_in()
    replica.ask("SET @master_binlog_checksum = 'CRC32'")
    replica.ask(f"SET @slave_uuid = {quoted(TEXTS[0])}")
    replica.command(COMMAND.COM_REGISTER_SLAVE, registration(TEXTS[0]))
    replica.command(COMMAND.COM_BINLOG_DUMP, struct.pack("<IHI", 4, 0, 4711) + FIRST.encode())
    look(relay, shown)
    for speaker in (*stay, replica):
        speaker.leave()
    shown.check()


def served_with(text: str, what: str) -> Any:
    """A source that names `text` in its stream."""

    def serve(dump: Dump) -> None:
        if what == "error":
            dump.error(1236, text)
        elif what == "file":
            dump.rotate(text[:150] + ".000009")
            dump.wait()
        else:
            dump.head()
            dump.rest()
            dump.rotate(text[:150] + ".000009")
            dump.wait()

    return serve


def test_what_a_source_chooses_as_names_is_shown_without_what_is_obeyed(
    relay: RelayProcess, source: FakeSource
) -> None:
    shown = Shown()
    text, count = TEXTS[0], 0

    def lost() -> None:
        nonlocal count
        relay.sql("STOP SLAVE", ADMIN)
        relay.sql("START SLAVE", ADMIN)
        wait_until(lambda: troubles() > count, "the next trouble")
        count = troubles()

    def troubles() -> int:
        return len(relay.logged("source_lost")) + len(relay.logged("source_given_up"))

    for what in ("error", "file", "next file"):
        source.serve = served_with(text, what)
        lost()
    for version, uuid in ((f"5.6.24-log{OBEYED}", source.server_uuid), ("5.6.24-log", text[:200])):
        source.version, source.server_uuid = version, uuid
        lost()
    source.version, source.server_uuid = "5.6.24-log", "11111111-2222-3333-4444-555555555555"
    source.variables = {
        "binlog_checksum": text[:200],
        "version_comment": text[:200],
        "gtid_mode": text[:200],
        "time_zone": text[:200],
    }
    lost()
    source.variables = {}
    source.greeting = frame_payload(b"\xff" + struct.pack("<H", 1040) + text.encode(), 0)
    lost()
    source.greeting = frame_payload(b"\x0a" + text.encode() + b"\0" + bytes(60), 0)
    lost()
    source.greeting = None
    source.query_error = (1227, text)
    lost()
    look(relay, shown)
    admin = Speaker(relay, shown, ADMIN, "shown")
    assert admin.log_in()
    admin.ask("STOP SLAVE")
    for options in (
        "MASTER_HOST = {text}",
        "MASTER_USER = {text}",
        "MASTER_SSL_CA = {text}",
        "MASTER_LOG_FILE = {text}, MASTER_LOG_POS = 4",
    ):
        admin.ask(f"CHANGE MASTER TO {options.format(text=quoted(text[:60]))}", rows=True)
        admin.ask("SHOW WARNINGS", rows=True)
        admin.ask("START SLAVE")
        look(relay, shown, commands=())
        admin.ask("STOP SLAVE")
    admin.leave()
    shown.check()
