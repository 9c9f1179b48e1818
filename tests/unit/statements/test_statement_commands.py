"""Commands other than queries: those of tools, and those that no relay can do."""

import struct

import pytest

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.native import native_token
from protocol.framing import frame_payload
from protocol.source_side.connection_events import Closed, StatementFailed, StatementRequested
from protocol.source_side.connection_states import State
from protocol.source_side.connection_terms import LoginTerms
from protocol.source_side.machine import SourceSide
from protocol.statements import SourceFacts
from protocol.statements.requests import Flush, KillConnection, ShowProcesslist, ShowStatistics

NOW = 100.0
MYSQL_56 = SourceFacts("mysql", "5.6.24-log", 1, "uuid", "CRC32")
MYSQL_84 = SourceFacts("mysql", "8.4.3", 1, "uuid", "CRC32")
MARIADB = SourceFacts("mariadb", "10.11.18-MariaDB-log", 1, None, "CRC32")


def logged_in(
    *,
    admin: bool = False,
    database: bytes = b"",
    collation: int = 33,
    attributes: bytes = b"",
    facts: SourceFacts = MYSQL_56,
) -> SourceSide:
    side = SourceSide(
        connection_id=7,
        facts=facts,
        login=LoginTerms(
            Accounts([Account.with_password("u", "p", admin=admin)], secret=b"s" * 32),
            lambda count: bytes(range(count)),
        ),
        host="192.0.2.1",
        now=NOW,
        wall_offset_s=0.0,
    )
    greeting = side.bytes_to_send()[4:]
    start = greeting.index(b"\0") + 5
    scramble = greeting[start : start + 8] + greeting[start + 27 : start + 39]
    capabilities = 0x00BFA285 & ~0x20
    payload = (
        struct.pack("<IIB23x", capabilities | 0x8, 1 << 24, collation) + b"u\0" + b"\x14" + native_token("p", scramble)
    )
    payload += database + b"\0" + b"mysql_native_password\0" + bytes((len(attributes),)) + attributes
    side.receive(frame_payload(payload, 1), NOW)
    side.bytes_to_send()
    assert side.state is State.COMMAND_EXPECTED
    return side


def send(side: SourceSide, code: int, body: bytes = b"") -> tuple[list[object], bytes]:
    events = side.receive(frame_payload(bytes((code,)) + body, 0), NOW)
    return list(events), side.bytes_to_send()[4:]


def error_of(answer: bytes) -> tuple[int, str]:
    assert answer[0] == 0xFF
    return int.from_bytes(answer[1:3], "little"), answer[4:9].decode()


@pytest.mark.parametrize(
    ("code", "body", "number", "sqlstate"),
    [
        (0x02, b"nowhere", 1049, "42000"),
        (0x04, b"t\0", 1046, "3D000"),
        (0x08, b"", 1227, "42000"),
        (0x0C, b"\1", 1047, "08S01"),
        (0x0D, b"", 1227, "42000"),
        (0x07, b"\x02", 1227, "42000"),
        (0x11, b"user\0", 1047, "08S01"),
        (0x16, b"SELECT 'open", 1064, "42000"),
        (0x17, b"\1\0\0\0\0\1\0\0\0", 1243, "HY000"),
        (0x1A, b"\1\0\0\0", 1243, "HY000"),
        (0x1C, b"\1\0\0\0\1\0\0\0", 1243, "HY000"),
        (0x1B, b"\5\0", 1047, "08S01"),
        (0x1B, b"", 1047, "08S01"),
        (0x55, b"", 1047, "08S01"),
    ],
)
def test_a_command_that_is_refused_gets_the_servers_number_and_the_connection_goes_on(
    code: int, body: bytes, number: int, sqlstate: str
) -> None:
    side = logged_in()
    events, answer = send(side, code, body)
    assert error_of(answer) == (number, sqlstate)
    assert isinstance(events[0], StatementFailed)
    assert send(side, 0x0E)[1] == b"\0\0\0\2\0\0\0"


@pytest.mark.parametrize("code", [0x18, 0x19])
def test_commands_that_have_no_answer_get_none(code: int) -> None:
    side = logged_in()
    assert send(side, code, b"\1\0\0\0") == ([], b"")
    assert send(side, 0x0E)[1][:1] == b"\0"


@pytest.mark.parametrize(
    ("code", "body", "request_made"),
    [
        (0x09, b"", ShowStatistics()),
        (0x0A, b"", ShowProcesslist()),
        (0x0C, b"\7\0\0\0", KillConnection(7)),
        (0x07, b"\x02", Flush(("LOGS",))),
        (0x07, b"\x19", Flush(("PRIVILEGES", "HOSTS", "STATUS"))),
    ],
)
def test_a_command_about_the_relay_becomes_a_request(code: int, body: bytes, request_made: object) -> None:
    side = logged_in(admin=True)
    events, answer = send(side, code, body)
    assert isinstance(events[0], StatementRequested)
    assert (events[0].request, answer, side.state) == (request_made, b"", State.ANSWER_PENDING)


@pytest.mark.parametrize(("code", "body", "first"), [(0x07, b"\0", 0x00), (0x07, b"", 0x00), (0x0D, b"", 0xFE)])
def test_what_an_admin_may_ask_and_nobody_need_do_is_answered(code: int, body: bytes, first: int) -> None:
    assert send(logged_in(admin=True), code, body)[1][0] == first


def test_an_admin_is_told_how_a_relay_is_ended() -> None:
    _, answer = send(logged_in(admin=True), 0x08)
    assert error_of(answer)[0] == 1235
    assert b"SIGTERM" in answer


def test_the_database_of_the_login_and_of_init_db_is_told() -> None:
    side = logged_in(database=b"mysql")
    assert b"mysql" in send(side, 3, b"SELECT DATABASE()")[1]
    send(side, 2, b"Performance_Schema")
    assert b"performance_schema" in send(side, 3, b"SELECT DATABASE()")[1]
    assert error_of(send(side, 4, b"t\0")[1]) == (1146, "42S02")


def test_a_login_may_name_a_database_of_the_source_and_use_may_not() -> None:
    side = logged_in(database=b"app")
    assert b"app" in send(side, 3, b"SELECT DATABASE()")[1]
    assert error_of(send(side, 2, b"app")[1]) == (1049, "42000")
    assert error_of(send(side, 3, b"USE app")[1]) == (1049, "42000")
    assert b"app" in send(side, 3, b"SELECT DATABASE()")[1]


def test_resetting_the_connection_forgets_what_it_has_set() -> None:
    side = logged_in()
    send(side, 3, b"SET @a = 'kept', autocommit = 0")
    assert b"kept" in send(side, 3, b"SELECT @a")[1]
    assert send(side, 0x0E)[1] == b"\0\0\0\0\0\0\0"
    assert send(side, 0x1F)[1][:1] == b"\0"
    assert b"kept" not in send(side, 3, b"SELECT @a")[1]
    assert send(side, 0x0E)[1] == b"\0\0\0\2\0\0\0"


@pytest.mark.parametrize(("facts", "charset"), [(MYSQL_56, b"latin1"), (MYSQL_84, b"utf8mb4"), (MARIADB, b"cp1251")])
def test_resetting_the_connection_chooses_the_character_set_that_a_server_chooses(
    facts: SourceFacts, charset: bytes
) -> None:
    side = logged_in(collation=51, database=b"mysql", facts=facts)
    send(side, 3, b"SET NAMES greek")
    send(side, 0x1F)
    answer = send(side, 3, b"SELECT @@character_set_client, DATABASE()")[1]
    assert charset in answer.rpartition(b"\xfe\0\0")[0]
    assert b"\x05mysql" in answer


def test_an_error_is_shown_by_show_warnings_until_the_next_statement() -> None:
    side = logged_in()
    send(side, 3, b"SELECT @@nothing")
    assert b"\x05Error\x041193" in send(side, 3, b"SHOW WARNINGS")[1]
    assert b"\x011" in send(side, 3, b"SHOW COUNT(*) ERRORS")[1]
    assert b"\x05Error\x041193" in send(side, 3, b"SHOW ERRORS")[1]
    assert b"\x011\x011" in send(side, 3, b"SELECT @@warning_count, @@error_count")[1]
    assert b"1193" not in send(side, 3, b"SHOW WARNINGS")[1]
    assert error_of(send(side, 3, b"SHOW COUNT(*) FOO")[1]) == (1064, "42000")


def test_the_login_chooses_the_character_set_of_statements_and_answers() -> None:
    side = logged_in(collation=8)
    assert "Grüße".encode("latin-1") in send(side, 3, "SELECT 'Grüße'".encode("latin-1"))[1]
    send(side, 3, b"SET NAMES utf8mb4")
    assert "Grüße".encode() in send(side, 3, "SELECT 'Grüße'".encode())[1]


@pytest.mark.parametrize("code", [0x03, 0x02, 0x15])
def test_sixteen_megabytes_are_refused_by_their_header(code: int) -> None:
    side = logged_in()
    events = side.receive(b"\xff\xff\xff\0" + bytes((code,)), NOW)
    assert isinstance(events[0], Closed)
    assert error_of(side.bytes_to_send()[4:]) == (1153, "08S01")
    assert len(side._input) == 0


def test_what_the_client_says_of_itself_is_kept_for_the_processlist() -> None:
    side = logged_in(attributes=b"\x0cprogram_name\x0amysqladmin\x0f_client_version\x069.7.4-")
    assert side.session.attributes == {"program_name": "mysqladmin", "_client_version": "9.7.4-"}
