"""Whatever a peer sends, the machine gives an event, an answer or silence; any split gives the same."""

import contextlib
import functools
import itertools
import struct

from hypothesis import example, given
from hypothesis import strategies as st

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.authenticator import Channel
from protocol.auth.caching_sha2 import StoredSha2
from protocol.auth.credentials import Credentials
from protocol.auth.native import native_token
from protocol.auth.rsa_key import RsaKey
from protocol.capabilities import OFFERED, Capability
from protocol.commands import decode_binlog_dump, decode_register_slave
from protocol.errors import Malformed, StatementRefused
from protocol.framing import PacketBuffer, frame_payload
from protocol.handshake import decode_login
from protocol.source_side.connection_events import CheckRequested, Closed, DumpRequested, Event, StatementRequested
from protocol.source_side.connection_states import State
from protocol.source_side.connection_terms import LoginTerms
from protocol.source_side.machine import SourceSide
from protocol.statements import Done, SourceFacts, StatementSession, answer_statement, matches_like, tokenize
from protocol.wire import Cursor, lenenc_bytes, lenenc_int

FACTS = SourceFacts("mysql", "5.6.24-log", 1, "uuid", "CRC32")


def machine() -> SourceSide:
    return SourceSide(
        connection_id=1,
        facts=FACTS,
        login=LoginTerms(Accounts([Account.with_password("r", "p")], secret=bytes(32)), lambda count: bytes(count)),
        host="h",
        now=0.0,
        wall_offset_s=0.0,
    )


def logged_in() -> SourceSide:
    side = machine()
    side.bytes_to_send()
    token = native_token("p", b"!" * 20)
    payload = struct.pack("<IIB23x", OFFERED, 1 << 24, 33) + b"r\0" + b"\x14" + token + b"\0mysql_native_password\0"
    side.receive(frame_payload(payload, 1), 0.0)
    assert side.state is State.COMMAND_EXPECTED
    side.bytes_to_send()
    return side


def told(event: Event) -> object:
    """What can be compared: two errors of the same words are not equal."""
    if isinstance(event, Closed) and event.error is not None:
        return type(event.error), event.error.number, event.error.what
    return event


def converse(side: SourceSide, pieces: list[bytes], *, admits: bool = True) -> tuple[list[Event], bytes]:
    """What happened, and what was said. admits: a dump begins as soon as it is asked for, else not while pieces come."""
    events: list[Event] = []
    for piece in pieces:
        todo = side.receive(piece, 1.0)
        while todo:
            event = todo.pop(0)
            events.append(event)
            if isinstance(event, StatementRequested):
                todo += side.answer(Done(), 1.0)
            elif isinstance(event, DumpRequested) and side.state is State.DUMP_REQUESTED and admits:
                side.accept_dump()
    return events, side.bytes_to_send()


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


COMMANDS = st.lists(
    st.one_of(
        st.binary(max_size=40).map(lambda body: frame_payload(body, 0)),
        st.text(max_size=40).map(lambda text: frame_payload(b"\x03" + text.encode(), 0)),
        st.sampled_from(["SELECT @@server_id", "SET @a=1", "KILL 3", "SHOW VARIABLES"]).map(
            lambda text: frame_payload(b"\x03" + text.encode(), 0)
        ),
    ),
    max_size=6,
).map(b"".join)


@given(st.binary(max_size=300))
def test_garbage_before_the_login_is_answered_or_ends_the_connection(data: bytes) -> None:
    side = machine()
    side.bytes_to_send()
    events, _ = converse(side, [data])
    assert all(isinstance(event, Closed) for event in events)
    assert side.account is None


@given(st.binary(max_size=200))
def test_garbage_as_a_login_never_logs_in(body: bytes) -> None:
    side = machine()
    side.bytes_to_send()
    converse(side, [frame_payload(body, 1)])
    assert side.account is None


STORED = StoredSha2(5000, b"12345678901234567890", b"." * 43)
ONE_KEY = functools.cache(RsaKey.new)


def in_the_middle_of_a_login(plugin: str, *, tls: bool) -> SourceSide:
    """A machine that waits for the next packet of `plugin`'s conversation."""
    accounts = Accounts(
        [Account("r", Credentials(sha2=STORED)), Account.with_password("p", "p")], secret=bytes(32), rsa_key=ONE_KEY
    )
    side = SourceSide(
        connection_id=1,
        facts=FACTS,
        login=LoginTerms(accounts, lambda count: bytes(count), offer_tls=tls),
        host="h",
        now=0.0,
        wall_offset_s=0.0,
    )
    offered = OFFERED | Capability.SSL
    sequence = 1
    if tls:
        side.receive(frame_payload(struct.pack("<IIB23x", offered, 1 << 24, 33), 1), 0.0)
        side.tls_established(Channel("TLSv1.3"))
        sequence = 2
    user = b"r" if plugin == "caching_sha2_password" else b"p"
    payload = struct.pack("<IIB23x", offered, 1 << 24, 33) + user + b"\0\0\0" + plugin.encode() + b"\0"
    side.receive(frame_payload(payload, sequence), 0.0)
    assert side.state is State.TOKEN_EXPECTED
    side.bytes_to_send()
    return side


@given(
    st.sampled_from(["caching_sha2_password", "client_ed25519"]),
    st.booleans(),
    st.lists(
        st.one_of(
            st.binary(max_size=40), st.sampled_from([b"", b"\0", b"\2", bytes(20), bytes(32), bytes(64), bytes(256)])
        ),
        max_size=5,
    ),
)
def test_garbage_in_the_middle_of_a_login_never_logs_in(plugin: str, tls: bool, said: list[bytes]) -> None:
    side = in_the_middle_of_a_login(plugin, tls=tls)
    sequence = 4 if tls else 3
    for payload in said:
        todo = side.receive(frame_payload(payload, sequence), 0.0)
        while todo:
            event = todo.pop(0)
            if isinstance(event, CheckRequested):
                todo += side.answer_check(event.work(), 0.0)
        sequence += 2
        side.bytes_to_send()
    assert side.account is None
    assert len(said) < 4 or side.state is State.CLOSED


@given(st.one_of(COMMANDS, st.binary(max_size=300)))
def test_garbage_after_the_login_raises_nothing(data: bytes) -> None:
    converse(logged_in(), [data])


@given(COMMANDS, st.lists(st.integers(0, 1 << 16), max_size=8))
@example(frame_payload(b"\x1e", 0), [])
@example(frame_payload(b"\x1e", 0), [1, 3])
@example(frame_payload(b"\x12" + bytes(25), 0) + frame_payload(b"", 0), [30])
def test_any_split_gives_the_same_conversation(data: bytes, cuts: list[int]) -> None:
    pieces = pieces_of(data, cuts)
    whole, split = converse(logged_in(), [data]), converse(logged_in(), pieces)
    assert [told(event) for event in whole[0]] == [told(event) for event in split[0]]
    # What breaks the rules is told before a dump begins and not in the stream, and when it begins is not the split's doing.
    assert converse(logged_in(), [data], admits=False)[1] == converse(logged_in(), pieces, admits=False)[1]


@given(st.binary(max_size=300))
def test_a_login_decodes_or_is_malformed(data: bytes) -> None:
    with contextlib.suppress(Malformed):
        decode_login(data, OFFERED)


@given(st.binary(max_size=100))
def test_commands_decode_or_are_malformed(data: bytes) -> None:
    for decode in (decode_register_slave, decode_binlog_dump):
        with contextlib.suppress(Malformed):
            decode(data)


@given(st.text(max_size=200))
def test_a_statement_is_answered_or_refused(text: str) -> None:
    try:
        answer_statement(text, StatementSession(FACTS, 1), 0.0, in_a_thread=True)
    except StatementRefused as error:
        assert len(error.what.encode()) < 511


@given(st.lists(st.sampled_from(["SELECT", "SET", "@a", "=", "(", ")", ",", "1", "'x'", "@@server_id", "AS", "LIMIT"])))
def test_statements_of_known_words_are_answered_or_refused(words: list[str]) -> None:
    with contextlib.suppress(StatementRefused):
        answer_statement(" ".join(words), StatementSession(FACTS, 1), 0.0, in_a_thread=True)


@given(st.text(alphabet="ab_'\"`\\@/*-# \n", max_size=60))
def test_tokens_are_in_order_and_inside_the_statement(text: str) -> None:
    try:
        tokens = tokenize(text)
    except StatementRefused:
        return
    end = 0
    for token in tokens:
        assert end <= token.start < token.stop <= len(text)
        end = token.stop


@given(st.text(alphabet="ab%_\\", max_size=12), st.text(alphabet="ab_", max_size=12))
def test_like_is_what_a_backtracking_matcher_says(pattern: str, text: str) -> None:
    def slow(p: str, t: str) -> bool:
        if not p:
            return not t
        if p[0] == "%":
            return any(slow(p[1:], t[index:]) for index in range(len(t) + 1))
        if p[0] == "\\":
            escaped = p[1:2] or "\\"
            return t[:1] == escaped and slow(p[2:], t[1:])
        return bool(t) and p[0] in ("_", t[0]) and slow(p[1:], t[1:])

    assert matches_like(text, pattern) == slow(pattern, text)


@given(st.integers(0, 2**64 - 1))
def test_length_encoded_integers_come_back(number: int) -> None:
    encoded = lenenc_int(number)
    assert Cursor(encoded).lenenc_int() == number
    for size in range(len(encoded)):
        cursor = Cursor(encoded[:size])
        try:
            cursor.lenenc_int()
        except Malformed:
            assert cursor.offset == 0


@given(st.binary(max_size=300))
def test_length_encoded_strings_come_back(data: bytes) -> None:
    assert Cursor(lenenc_bytes(data)).lenenc_bytes() == data


@given(st.integers(0, 255), st.sampled_from([0, 1, 5, 0xFFFFFE, 0xFFFFFF, 0x1000000]))
def test_payloads_come_back_from_their_packets(sequence: int, size: int) -> None:
    buffer = PacketBuffer(1 << 25)
    buffer.append(frame_payload(bytes(size), sequence))
    packet = buffer.next_packet(sequence)
    assert packet is not None
    assert len(packet.payload) == size
    assert len(buffer) == 0
