"""The protocol machine: every state with every input, and conversations as scripts."""

import itertools
import struct
from collections.abc import Callable

import pytest

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.authenticator import REFUSED
from protocol.auth.native import native_token
from protocol.capabilities import OFFERED, Capability
from protocol.commands import DumpFlag, decode_binlog_dump
from protocol.errors import ErrorCode, PositionRefused, StatementRefused
from protocol.framing import frame_payload
from protocol.gtid.dump_request import BinlogDumpGtid, encode_binlog_dump_gtid
from protocol.resultset import Rows
from protocol.source_side.connection_events import (
    Closed,
    DumpRequested,
    LoggedIn,
    LoginRefused,
    Registered,
    StatementFailed,
    StatementRequested,
)
from protocol.source_side.connection_states import TRANSITIONS, IllegalInput, Input, State, step
from protocol.source_side.connection_terms import Limits, LoginTerms, TurnTime
from protocol.source_side.machine import READERS, SourceSide
from protocol.source_side.statement_apart import AnswerApart
from protocol.statements import Done, EncodedRows, GivenAnswer, KillConnection, Notice, SourceFacts, StatisticsText
from tests.support.login_client import packets

PASSWORD = "s3cret"
FACTS = SourceFacts("mysql", "5.6.24-log", 1, "11111111-2222-3333-4444-555555555555", "CRC32")
CLIENT_56 = Capability(0x00BFA285) & ~Capability.COMPRESS
CLIENT_97 = Capability(0x19FFA685)


def machine(facts: SourceFacts = FACTS, limits: Limits | None = None) -> SourceSide:
    return SourceSide(
        connection_id=7,
        facts=facts,
        login=LoginTerms(
            Accounts([Account.with_password("repl", PASSWORD)], secret=bytes(32)), lambda count: bytes(range(count))
        ),
        host="192.0.2.1",
        now=100.0,
        wall_offset_s=1_000_000.0,
        limits=limits,
    )


def scramble_of(greeting: bytes) -> bytes:
    payload = greeting[4:]
    start = payload.index(b"\0") + 5
    return payload[start : start + 8] + payload[start + 27 : start + 39]


def login(
    scramble: bytes,
    *,
    user: str = "repl",
    password: str = PASSWORD,
    plugin: str = "mysql_native_password",
    capabilities: Capability = CLIENT_56,
    attributes: bytes = b"",
) -> bytes:
    token = native_token(password, scramble) if password else b""
    payload = struct.pack("<IIB23x", capabilities, 1 << 24, 33) + user.encode() + b"\0"
    payload += bytes((len(token),)) + token
    if capabilities & Capability.CONNECT_WITH_DB:
        payload += b"\0"
    if capabilities & Capability.PLUGIN_AUTH:
        payload += plugin.encode() + b"\0"
    if capabilities & Capability.CONNECT_ATTRS:
        payload += bytes((len(attributes),)) + attributes
    return frame_payload(payload, 1)


def logged_in(limits: Limits | None = None) -> SourceSide:
    side = machine(limits=limits)
    side.receive(login(scramble_of(side.bytes_to_send())), 100.0)
    side.bytes_to_send()
    assert side.state is State.COMMAND_EXPECTED
    return side


def command(code: int, body: bytes = b"") -> bytes:
    return frame_payload(bytes((code,)) + body, 0)


def dump(file: bytes = b"mysql-bin.000001", offset: int = 4, flags: int = 0, server_id: int = 9) -> bytes:
    return command(0x12, struct.pack("<IHI", offset, flags, server_id) + file)


def dumping() -> SourceSide:
    side = logged_in()
    side.receive(dump(), 101.0)
    side.accept_dump()
    return side


@pytest.mark.parametrize(("state", "what"), list(itertools.product(State, Input)))
def test_every_state_takes_an_input_by_the_table_or_refuses_it(state: State, what: Input) -> None:
    if (state, what) in TRANSITIONS:
        assert step(state, what) is TRANSITIONS[state, what]
    else:
        with pytest.raises(IllegalInput):
            step(state, what)


def test_nothing_leaves_the_closed_state() -> None:
    assert not [pair for pair in TRANSITIONS if pair[0] is State.CLOSED]


def test_every_open_state_can_break() -> None:
    assert all((state, Input.BROKEN) in TRANSITIONS for state in State if state is not State.CLOSED)


def test_a_peer_is_read_unless_somebody_else_has_the_word() -> None:
    waits = {State.TLS_EXPECTED, State.CHECK_PENDING, State.VERDICT_HELD, State.ANSWER_PENDING, State.CLOSED}
    assert set(State) - set(READERS) == waits


def test_the_greeting_offers_what_is_spoken_and_no_more() -> None:
    payload = machine().bytes_to_send()[4:]
    assert payload.startswith(b"\x0a5.6.24-log\0" + struct.pack("<I", 7))
    assert payload.endswith(b"mysql_native_password\0")
    for bit in ("SSL", "COMPRESS", "DEPRECATE_EOF", "QUERY_ATTRIBUTES", "MULTI_STATEMENTS", "LOCAL_FILES"):
        assert not OFFERED & Capability[bit]


def test_mariadb_10_greets_with_the_prefix_that_old_replicas_need() -> None:
    side = machine(SourceFacts("mariadb", "10.11.19-MariaDB-log", 1))
    assert side.bytes_to_send()[5:].startswith(b"5.5.5-10.11.19-MariaDB-log\0")


@pytest.mark.parametrize("capabilities", [CLIENT_56, CLIENT_97, CLIENT_56 & ~Capability.PLUGIN_AUTH])
def test_a_client_logs_in_with_the_bits_both_sides_have(capabilities: Capability) -> None:
    side = machine()
    events = side.receive(login(scramble_of(side.bytes_to_send()), capabilities=capabilities), 100.0)
    assert isinstance(events[0], LoggedIn)
    assert packets(side.bytes_to_send())[0] == (2, b"\x00\x00\x00\x02\x00\x00\x00")


def test_a_login_that_comes_byte_by_byte_is_the_same_login() -> None:
    side = machine()
    packet = login(scramble_of(side.bytes_to_send()))
    events = [event for byte in packet for event in side.receive(bytes((byte,)), 100.0)]
    assert isinstance(events[0], LoggedIn)


def test_connection_attributes_are_read() -> None:
    side = machine()
    attributes = b"\x0c_client_name\x08libmysql"
    events = side.receive(login(scramble_of(side.bytes_to_send()), attributes=attributes), 100.0)
    assert isinstance(events[0], LoggedIn)
    assert events[0].attributes == {"_client_name": "libmysql"}


@pytest.mark.parametrize("attributes", [b"\xfe", b"\x05a", b"\x01a\xfc\xff", b"\x01a\xfe" + b"\xff" * 8, b"\x01a\xfb"])
def test_an_attribute_that_lies_about_its_length_is_a_bad_handshake(attributes: bytes) -> None:
    side = machine()
    events = side.receive(login(scramble_of(side.bytes_to_send()), attributes=attributes), 100.0)
    assert isinstance(events[0], Closed)
    assert events[0].error is not None
    assert events[0].error.number == ErrorCode.ER_HANDSHAKE_ERROR


def test_a_client_with_another_plugin_is_switched_and_logs_in() -> None:
    side = machine()
    side.bytes_to_send()
    assert side.receive(login(b"x" * 20, plugin="sha256_password", capabilities=CLIENT_97), 100.0) == []
    sequence, switch = packets(side.bytes_to_send())[0]
    name = b"\xfemysql_native_password\0"
    assert switch.startswith(name)
    assert switch.endswith(b"\0")
    token = native_token(PASSWORD, switch[len(name) : -1])
    assert isinstance(side.receive(frame_payload(token, sequence + 1), 100.0)[0], LoggedIn)


@pytest.mark.parametrize("user", ["repl", "nobody"])
@pytest.mark.parametrize("plugin", ["mysql_native_password", "sha256_password"])
def test_unknown_users_and_wrong_passwords_get_the_same_answers(user: str, plugin: str) -> None:
    side = machine()
    packet = login(scramble_of(side.bytes_to_send()), user=user, password="wrong", plugin=plugin)
    events = side.receive(packet, 100.0)
    if plugin != "mysql_native_password":
        assert side.state is State.TOKEN_EXPECTED
        events = side.receive(frame_payload(b"x" * 20, 3), 100.0)
    assert isinstance(events[0], LoginRefused)
    _, answer = packets(side.bytes_to_send())[-1]
    assert answer == b"\xff\x15\x04#28000Access denied for user '%s'@'192.0.2.1' (using password: YES)" % user.encode()


def test_after_a_refused_login_nothing_is_answered_not_even_what_came_with_it() -> None:
    side = machine()
    packet = login(scramble_of(side.bytes_to_send()), password="wrong")
    side.receive(packet + command(3, b"SELECT 1"), 100.0)
    assert len(packets(side.bytes_to_send())) == 1
    assert side.receive(command(3, b"SELECT 1"), 100.0) == []
    assert side.bytes_to_send() == b""


def test_a_query_before_the_login_is_a_bad_handshake() -> None:
    side = machine()
    side.bytes_to_send()
    events = side.receive(frame_payload(b"\x03SELECT 1", 1), 100.0)
    assert isinstance(events[0], Closed)
    assert side.state is State.CLOSED


def test_a_login_packet_beyond_the_limit_is_refused_by_its_header() -> None:
    side = machine()
    side.bytes_to_send()
    events = side.receive(b"\xff\xff\xff\x01", 100.0)
    assert isinstance(events[0], Closed)
    assert events[0].error is not None
    assert events[0].error.number == ErrorCode.ER_NET_PACKET_TOO_LARGE


def test_a_command_beyond_the_limit_is_refused_by_its_header() -> None:
    events = logged_in().receive((1 << 20 | 1).to_bytes(3, "little") + b"\0\3", 100.0)
    assert isinstance(events[0], Closed)


def test_a_command_with_a_wrong_packet_number_ends_the_connection() -> None:
    events = logged_in().receive(frame_payload(b"\x0e", 3), 100.0)
    assert isinstance(events[0], Closed)
    assert events[0].error is not None
    assert events[0].error.number == ErrorCode.ER_NET_PACKETS_OUT_OF_ORDER


@pytest.mark.parametrize(
    ("packet", "number"),
    [
        ((1 << 20 | 1).to_bytes(3, "little") + b"\0\3", 1),
        (frame_payload(b"\x0e", 3), 4),
        (frame_payload(b"\x0e", 255), 0),
    ],
)
def test_a_command_that_is_refused_by_its_header_is_answered_with_the_next_number(packet: bytes, number: int) -> None:
    side = logged_in()
    side.receive(packet, 100.0)
    ((sequence, answer),) = packets(side.bytes_to_send())
    assert (sequence, answer[:1]) == (number, b"\xff")


def test_a_tls_request_that_was_not_offered_is_a_bad_handshake() -> None:
    side = machine()
    side.bytes_to_send()
    request = struct.pack("<IIB23x", CLIENT_97 | Capability.SSL, 1 << 24, 33)
    assert isinstance(side.receive(frame_payload(request, 1), 100.0)[0], Closed)


def test_a_login_that_does_not_come_in_time_is_ended() -> None:
    side = machine(limits=Limits(login_wait_s=5.0))
    assert side.next_deadline() == 105.0
    assert side.pass_time(104.9) == []
    assert isinstance(side.pass_time(105.0)[0], Closed)
    assert side.next_deadline() is None


def test_a_token_that_does_not_come_in_time_is_ended() -> None:
    side = machine(limits=Limits(login_wait_s=5.0))
    side.receive(login(b"x" * 20, plugin="caching_sha2_password"), 104.0)
    assert isinstance(side.pass_time(105.0)[0], Closed)


def test_each_command_gives_the_connection_more_time() -> None:
    side = logged_in(Limits(command_wait_s=10.0))
    assert side.next_deadline() == 110.0
    side.receive(command(0x0E), 105.0)
    assert side.next_deadline() == 115.0


def test_a_dump_has_no_deadline() -> None:
    assert dumping().next_deadline() is None


@pytest.mark.parametrize(
    ("code", "body", "first"),
    [(0x0E, b"", b"\x00"), (0x02, b"mysql", b"\x00"), (0x1B, b"\0\0", b"\xfe"), (0x1F, b"", b"\x00")],
)
def test_small_commands_are_answered(code: int, body: bytes, first: bytes) -> None:
    side = logged_in()
    assert side.receive(command(code, body), 100.0) == []
    sequence, answer = packets(side.bytes_to_send())[0]
    assert (sequence, answer[:1]) == (1, first)


@pytest.mark.parametrize("code", [0x00, 0x05, 0x0B, 0x11, 0x13, 0x1D, 0x20, 0xFF])
def test_other_commands_get_1047_and_keep_the_connection(code: int) -> None:
    side = logged_in()
    events = side.receive(command(code), 100.0)
    assert isinstance(events[0], StatementFailed)
    assert packets(side.bytes_to_send())[0][1] == b"\xff\x17\x04#08S01Unknown command"
    assert side.state is State.COMMAND_EXPECTED


def test_an_empty_command_gets_1047() -> None:
    side = logged_in()
    assert isinstance(side.receive(frame_payload(b"", 0), 100.0)[0], StatementFailed)


def test_registration_is_answered_and_told() -> None:
    side = logged_in()
    body = bytes.fromhex("800d0000 00 00 00 800d 00000000 00000000")
    events = side.receive(command(0x15, body), 100.0)
    assert isinstance(events[0], Registered)
    assert (events[0].replica.server_id, events[0].replica.port) == (3456, 3456)


@pytest.mark.parametrize("body", [b"", b"\1\0\0\0\x05ab", bytes(9)])
def test_a_registration_that_lies_about_its_lengths_gets_an_error(body: bytes) -> None:
    side = logged_in()
    assert isinstance(side.receive(command(0x15, body), 100.0)[0], StatementFailed)
    assert side.state is State.COMMAND_EXPECTED


def test_a_dump_request_waits_for_the_shell() -> None:
    side = logged_in()
    events = side.receive(dump(offset=120, server_id=9), 100.0)
    assert isinstance(events[0], DumpRequested)
    assert (events[0].request.file, events[0].request.offset) == ("mysql-bin.000001", 120)
    assert side.state is State.DUMP_REQUESTED
    assert side.bytes_to_send() == b""
    assert side.accept_dump() == 1


@pytest.mark.parametrize(
    ("sent", "file"),
    [
        (b"bin.000001", "bin.000001"),
        (b"bin.000001\0", "bin.000001"),
        (b"\0\0\0", ""),
        (b"bin.000001\0\xff", "bin.000001"),
    ],
)
def test_the_file_of_a_dump_request_ends_at_a_zero_byte_as_a_server_reads_it(sent: bytes, file: str) -> None:
    assert decode_binlog_dump(struct.pack("<IHI", 4, 0, 9) + sent).file == file


def test_a_refused_dump_gets_its_error_and_the_connection_ends() -> None:
    side = logged_in()
    side.receive(dump(), 100.0)
    assert isinstance(side.refuse_dump(PositionRefused(1236, "no"))[0], Closed)
    assert packets(side.bytes_to_send()) == [(1, b"\xff\xd4\x04#HY000no")]
    assert side.state is State.CLOSED


@pytest.mark.parametrize("body", [b"", bytes(9), bytes(10) + b"\xff\xfe", bytes(10) + b"a" * 600])
def test_a_dump_request_that_is_no_request_gets_an_error(body: bytes) -> None:
    side = logged_in()
    assert isinstance(side.receive(command(0x12, body), 100.0)[0], StatementFailed)


def gtid_dump(held: bytes = bytes(8)) -> bytes:
    return command(0x1E, encode_binlog_dump_gtid(held, flags=2, server_id=9))


def test_a_gtid_dump_request_is_handed_on() -> None:
    side = logged_in()
    (asked,) = side.receive(gtid_dump(), 100.0)
    assert asked == DumpRequested(BinlogDumpGtid("", 4, DumpFlag(2), 9, bytes(8)))
    assert side.state is State.DUMP_REQUESTED


@pytest.mark.parametrize("body", [b"", bytes(9), bytes(6) + b"\xff\xff\xff\x7f", bytes(22)[:-4] + b"\1\0\0\0"])
def test_a_gtid_dump_request_whose_sizes_lie_ends_the_connection(body: bytes) -> None:
    side = logged_in()
    assert isinstance(side.receive(command(0x1E, body), 100.0)[0], Closed)
    assert packets(side.bytes_to_send()) == [(1, b"\xff\x2b\x07#HY000Malformed communication packet.")]


def test_a_set_of_gtids_may_be_greater_than_any_other_command() -> None:
    limits = Limits(command_bytes=100, gtid_dump_bytes=1000)
    side = logged_in(limits)
    packet = gtid_dump(bytes(900))
    assert side.receive(packet[:4], 100.0) == []
    assert isinstance(side.receive(packet[4:], 100.0)[0], DumpRequested)


@pytest.mark.parametrize("packet", [gtid_dump(bytes(1000)), command(3, bytes(200))])
def test_each_command_has_its_greatest_size(packet: bytes) -> None:
    side = logged_in(Limits(command_bytes=100, gtid_dump_bytes=1000))
    assert isinstance(side.receive(packet, 100.0)[0], Closed)


def test_before_the_login_a_gtid_dump_is_as_limited_as_all_else() -> None:
    side = machine(limits=Limits(login_bytes=100))
    assert isinstance(side.receive(frame_payload(b"\x1e" + bytes(200), 1), 100.0)[0], Closed)


def test_after_eof_commands_are_taken_again() -> None:
    side = dumping()
    side.end_dump(200, 102.0)
    assert packets(side.bytes_to_send())[0] == (200, b"\xfe\x00\x00\x02\x00")
    side.receive(command(0x0E), 102.0)
    assert packets(side.bytes_to_send())[0][0] == 1


def test_an_error_in_the_stream_has_the_streams_number() -> None:
    side = dumping()
    assert isinstance(side.fail_dump(255, PositionRefused(1236, "gone"))[0], Closed)
    assert packets(side.bytes_to_send())[0][0] == 255


@pytest.mark.parametrize("make", [logged_in, dumping])
def test_goodbye_ends_the_connection_without_a_word(make: Callable[[], SourceSide]) -> None:
    side = make()
    assert side.receive(command(0x01), 100.0) == [Closed()]
    assert side.bytes_to_send() == b""


def test_a_command_in_a_dump_breaks_it_without_bytes_in_the_stream() -> None:
    side = dumping()
    assert isinstance(side.receive(command(0x0E), 100.0)[0], Closed)
    assert side.bytes_to_send() == b""


ANSWERS: list[tuple[GivenAnswer | StatementRefused, int]] = [
    (Done(), 0x00),
    (EncodedRows((b"\x01", b"rest")), 1),
    (StatementRefused(1094, "no"), 0xFF),
    (Rows(("a",), ()), 1),
    (StatisticsText("Uptime"), 0x55),
]


def test_the_answer_to_a_request_may_leave_warnings() -> None:
    side = logged_in()
    side.receive(command(3, b"KILL 12"), 100.0)
    side.answer(Done((Notice("Warning", 1867, "in use"),)), 100.0)
    ok = [payload for _, payload in packets(side.bytes_to_send())][-1]
    assert ok[-2:] == b"\x01\x00"
    assert [notice.number for notice in side.session.notices] == [1867]


@pytest.mark.parametrize(("answer", "first"), ANSWERS)
def test_a_request_waits_for_the_shell_and_later_commands_wait_too(
    answer: GivenAnswer | StatementRefused, first: int
) -> None:
    side = logged_in()
    events = side.receive(command(3, b"KILL 12") + command(0x0E), 100.0)
    assert side.account is not None
    assert events == [StatementRequested(KillConnection(12), side.account)]
    assert side.bytes_to_send() == b""
    side.answer(answer, 100.0)
    answers = [payload[0] for _, payload in packets(side.bytes_to_send())]
    assert (answers[0], answers[-1]) == (first, 0x00)


def test_commands_that_were_sent_ahead_are_answered_a_few_at_a_time_and_in_order() -> None:
    side = logged_in()
    ahead = command(0x0E) + b"".join(command(3, b"SELECT %d" % number) for number in range(1, 40))
    side.receive(ahead, 100.0)
    answered = [side.bytes_to_send()]
    while side.has_more_to_do:
        side.go_on(100.0)
        answered.append(side.bytes_to_send())
    assert len(answered) == 3
    rows = [
        payload[1:] for _, payload in packets(b"".join(answered)) if len(payload) in (2, 3) and payload[0] in (1, 2)
    ]
    assert rows == [b"%d" % number for number in range(1, 40)]


def test_of_many_that_send_ahead_each_has_one_command_a_turn() -> None:
    side = logged_in()
    side._turns = TurnTime(itertools.count().__next__, lambda: 0.0)
    side.receive(command(0x0E) * 3, 100.0)
    answered = [len(packets(side.bytes_to_send()))]
    while side.has_more_to_do:
        side.go_on(100.0)
        answered.append(len(packets(side.bytes_to_send())))
    assert answered == [1, 1, 1]


def test_a_command_that_comes_while_there_is_no_time_waits_for_its_turn() -> None:
    side = logged_in()
    side._turns = TurnTime(has_time=lambda: False)
    assert side.receive(command(0x0E), 100.0) == [] and side.has_more_to_do
    side._turns = TurnTime()
    side.receive(command(0x0E), 100.0)
    assert not side.bytes_to_send(), "what came later goes before what waits"
    side.go_on(100.0)
    assert len(packets(side.bytes_to_send())) == 2


def test_a_statement_that_is_much_work_is_answered_apart_and_sets_what_it_sets_when_it_is_answered() -> None:
    side = logged_in()
    text = b"SET @a = '" + b"x" * 16_000 + b"' /*" + b" " * 40_000 + b"*/"
    (asked,) = side.receive(command(3, text), 100.0)
    assert isinstance(asked, StatementRequested) and isinstance(asked.request, AnswerApart)
    assert side.held_bytes > 4 * len(text)
    side.answer(asked.request.statement.run(), 100.0)
    assert len(packets(side.bytes_to_send())) == 1 and side.session.user_variables == {"a": "x" * 16_000}


def test_a_statement_of_more_characters_than_are_read_is_refused_and_the_connection_goes_on() -> None:
    side = logged_in()
    (failed,) = side.receive(command(3, b"SELECT '" + b"x" * 70_000 + b"'"), 100.0)
    assert isinstance(failed, StatementFailed) and len(failed.statement) < 1000
    assert packets(side.bytes_to_send())[0][1][:1] == b"\xff"
    assert side.state is State.COMMAND_EXPECTED


def test_a_connection_that_was_forgotten_takes_nothing_more() -> None:
    side = logged_in()
    side.forget()
    assert side.state is State.CLOSED and side.held_bytes == 0
    assert (side.receive(command(0x0E), 100.0), side.tls_failed("late"), side.answer_check(REFUSED, 100.0)) == (
        [],
        [],
        [],
    )


def test_a_gtid_request_is_known_before_it_has_come() -> None:
    side = logged_in()
    whole = command(0x1E, b"x" * 40)
    assert not side.is_receiving_dump_request
    side.receive(whole[:10], 100.0)
    assert side.is_receiving_dump_request


def test_large_answers_to_commands_that_were_sent_ahead_are_not_all_made_at_once() -> None:
    side = logged_in()
    side.receive(b"".join(command(3, b"SELECT '%s'" % (b"x" * 8000)) for _ in range(8)), 100.0)
    assert side.has_more_to_do
    assert len(side.bytes_to_send()) < 40_000


def test_what_floods_in_behind_commands_that_are_left_for_later_is_not_read() -> None:
    side = logged_in()
    side.receive(command(0x0E) * 20_000, 100.0)
    side.bytes_to_send()
    assert side.holds_unread_commands
    while side.has_more_to_do:
        side.go_on(100.0)
        side.bytes_to_send()
    assert not side.holds_unread_commands
