"""Whatever a peer sends, the machine gives an event, an answer or silence; any split gives the same."""

import contextlib
import itertools
import struct

from hypothesis import given
from hypothesis import strategies as st

from protocol.auth import Account, native_hash, native_token
from protocol.capabilities import OFFERED
from protocol.commands import decode_binlog_dump, decode_register_slave
from protocol.errors import Malformed, StatementRefused
from protocol.framing import PacketBuffer, frame_payload
from protocol.handshake import decode_login
from protocol.source_side import Closed, DumpAsked, Event, KillAsked, SourceSide, State
from protocol.statements import SourceFacts, StatementSession, answer_statement, matches_like, tokenize
from protocol.wire import Cursor, lenenc_bytes, lenenc_int

FACTS = SourceFacts("mysql", "5.6.24-log", 1, "uuid", "CRC32")


def machine() -> SourceSide:
    return SourceSide(
        connection_id=1,
        facts=FACTS,
        accounts={"r": Account("r", native_hash("p"))},
        host="h",
        random_bytes=lambda count: bytes(count),
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


def converse(side: SourceSide, pieces: list[bytes]) -> tuple[list[Event], bytes]:
    events: list[Event] = []
    for piece in pieces:
        todo = side.receive(piece, 1.0)
        while todo:
            event = todo.pop(0)
            events.append(event)
            if isinstance(event, KillAsked):
                todo += side.answer_kill(1.0, found=True)
            elif isinstance(event, DumpAsked) and side.state is State.DUMP_REQUESTED:
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


@given(st.one_of(COMMANDS, st.binary(max_size=300)))
def test_garbage_after_the_login_raises_nothing(data: bytes) -> None:
    converse(logged_in(), [data])


@given(COMMANDS, st.lists(st.integers(0, 1 << 16), max_size=8))
def test_any_split_gives_the_same_conversation(data: bytes, cuts: list[int]) -> None:
    assert converse(logged_in(), [data]) == converse(logged_in(), pieces_of(data, cuts))


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
        answer_statement(text, StatementSession(FACTS, 1), 0.0)
    except StatementRefused as error:
        assert len(error.message.encode()) < 511


@given(st.lists(st.sampled_from(["SELECT", "SET", "@a", "=", "(", ")", ",", "1", "'x'", "@@server_id", "AS", "LIMIT"])))
def test_statements_of_known_words_are_answered_or_refused(words: list[str]) -> None:
    with contextlib.suppress(StatementRefused):
        answer_statement(" ".join(words), StatementSession(FACTS, 1), 0.0)


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
