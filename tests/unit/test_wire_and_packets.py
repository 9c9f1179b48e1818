"""Reads that are checked, packets that are split and joined, and the payloads a server sends."""

import time
from collections.abc import Callable
from itertools import accumulate, pairwise

import pytest

from protocol.capabilities import OFFERED, Capability
from protocol.errors import AnsweredError, Malformed, Truncated, sqlstate_of
from protocol.framing import OutOfOrder, PacketBuffer, PacketTooLarge, frame_payload
from protocol.gtid.codec import decoded_bytes, encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.handshake import decode_login, login_head, login_payload
from protocol.packets import auth_more_payload, err_payload
from protocol.pieces import Pieces
from protocol.printable import cut_text
from protocol.resultset import ColumnType, Rows, result_payloads
from protocol.wire import Cursor, lenenc_int


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b"\x01\x02", lambda c: c.uint(3)),
        (b"abc", lambda c: c.take(4)),
        (b"abc", lambda c: c.skip(4)),
        (b"\x03ab", lambda c: c.short_bytes()),
        (b"\x03ab", lambda c: c.lenenc_bytes()),
        (b"\xfc\x01", lambda c: c.lenenc_int()),
        (b"\xfd\x01\x02", lambda c: c.lenenc_int()),
        (b"\xfe" + bytes(7), lambda c: c.lenenc_int()),
        (b"no end", lambda c: c.nul_bytes()),
        (b"", lambda c: c.short_bytes()),
    ],
)
def test_a_read_beyond_the_end_leaves_the_cursor_alone(data: bytes, read: Callable[[Cursor], object]) -> None:
    cursor = Cursor(data)
    with pytest.raises(Truncated):
        read(cursor)
    assert cursor.offset == 0


@pytest.mark.parametrize("first", [0xFB, 0xFF])
def test_a_byte_that_begins_no_length_is_malformed(first: int) -> None:
    cursor = Cursor(bytes((first,)) + bytes(9))
    with pytest.raises(Malformed):
        cursor.lenenc_int()
    assert cursor.offset == 0


def test_reads_go_from_front_to_back() -> None:
    cursor = Cursor(b"\x02\x00" + b"name\0" + b"\x02hi" + b"\x01x" + b"rest")
    assert (cursor.uint(2), cursor.nul_bytes(), cursor.short_bytes(), cursor.lenenc_bytes()) == (
        2,
        b"name",
        b"hi",
        b"x",
    )
    assert (cursor.remaining, cursor.rest(), cursor.rest()) == (4, b"rest", b"")


@pytest.mark.parametrize(
    ("number", "size"),
    [(0, 1), (250, 1), (251, 3), (2**16 - 1, 3), (2**16, 4), (2**24 - 1, 4), (2**24, 9), (2**32, 9)],
)
def test_length_encoded_integers_take_as_few_bytes_as_can_be(number: int, size: int) -> None:
    assert len(lenenc_int(number)) == size


def test_a_payload_of_16_mib_less_one_is_followed_by_an_empty_packet() -> None:
    framed = frame_payload(bytes(0xFFFFFF), 255)
    assert framed[:4] == b"\xff\xff\xff\xff"
    assert framed[-4:] == b"\0\0\0\0"


def test_a_packet_waits_for_its_rest() -> None:
    buffer = PacketBuffer(100)
    for byte in frame_payload(b"hello", 3)[:-1]:
        buffer.append(bytes((byte,)))
        assert buffer.next_packet(3) is None
    buffer.append(b"o")
    packet = buffer.next_packet(3)
    assert packet is not None and (packet.sequence, packet.payload) == (3, b"hello")


def test_two_packets_in_one_read_come_one_by_one() -> None:
    buffer = PacketBuffer(100)
    buffer.append(frame_payload(b"a", 0) + frame_payload(b"b", 0))
    assert [buffer.next_packet(0).payload, buffer.next_packet(0).payload] == [b"a", b"b"]  # type: ignore[union-attr]
    assert buffer.next_packet(0) is None


def test_a_packet_beyond_the_limit_is_refused_before_it_comes() -> None:
    buffer = PacketBuffer(100)
    buffer.append(b"\x65\0\0\0")
    with pytest.raises(PacketTooLarge):
        buffer.next_packet(0)


def test_a_split_payload_beyond_the_limit_is_refused() -> None:
    buffer = PacketBuffer(0xFFFFFF + 5)
    buffer.append(frame_payload(bytes(0xFFFFFF + 6), 0))
    with pytest.raises(PacketTooLarge):
        buffer.next_packet(0)


def test_a_second_part_with_a_wrong_number_is_refused() -> None:
    buffer = PacketBuffer(1 << 25)
    data = bytearray(frame_payload(bytes(0xFFFFFF), 0))
    data[-1] = 7
    buffer.append(data)
    with pytest.raises(OutOfOrder):
        buffer.next_packet(0)


@pytest.mark.parametrize("size", [1 << 20, (1 << 20) + 1, 0xFFFFFE, 0xFFFFFF, 0xFFFFFF + 5])
@pytest.mark.parametrize("behind", [b"", b"\1\0\0\0x"])
@pytest.mark.parametrize("read", [1 << 24, 65536, 33_000])
def test_a_large_payload_is_whole_whatever_stands_behind_it(size: int, behind: bytes, read: int) -> None:
    buffer = PacketBuffer(1 << 25)
    payload = bytes(range(251)) * (size // 251) + bytes(size % 251)
    framed = frame_payload(payload, 0)
    for at in range(0, len(framed) - 7, read):
        buffer.append(framed[at : min(at + read, len(framed) - 7)])
        assert buffer.next_packet(0) is None
        assert len(buffer) <= len(framed)
    buffer.append(framed[-7:] + behind)
    packet = buffer.next_packet(0)
    assert packet is not None and bytes(packet.payload) == payload
    assert isinstance(packet.payload, Pieces) == (size > 1 << 20)
    buffer.append(b"" if behind else b"\1\0\0\0x")
    following = buffer.next_packet(0)
    assert following is not None and following.payload == b"x"
    assert len(buffer) == 0


@pytest.mark.parametrize("sizes", [[3, 1, 4], [1] * 8, [8], []])
def test_a_slice_of_pieces_is_that_of_their_bytes(sizes: list[int]) -> None:
    whole = bytes(range(sum(sizes)))
    cuts = [0, *accumulate(sizes)]
    pieces = Pieces([whole[start:stop] for start, stop in pairwise(cuts)])
    assert bytes(pieces) == whole and len(pieces) == len(whole)
    for start in range(-1, len(whole) + 2):
        for stop in range(-1, len(whole) + 2):
            part = pieces[start:stop]
            assert (bytes(part), len(part)) == (whole[start:stop], len(whole[start:stop]))
            assert bytes(part[1:]) == whole[start:stop][1:]
    assert [pieces[place] for place in range(len(whole))] == list(whole)


def test_pieces_show_their_size_and_not_their_bytes() -> None:
    assert repr(Pieces([b"secret", b"x"])) == "<7 bytes in 2 pieces>"


@pytest.mark.parametrize(("start", "stop"), [(0, 4), (1, 3), (3, 6), (4, 8), (8, 8)])
def test_a_part_of_pieces_is_their_bytes_from_there_to_there(start: int, stop: int) -> None:
    assert Pieces([b"abcd", b"efgh"]).part(start, stop) == b"abcdefgh"[start:stop]


def test_large_reads_of_a_large_payload_are_kept_as_they_came() -> None:
    buffer = PacketBuffer(1 << 24)
    framed = frame_payload(bytes(range(256)) * 16384, 0)
    buffer.append(framed[:100_000])
    assert buffer.next_packet(0) is None
    for at in range(100_000, len(framed), 1 << 17):
        buffer.append(framed[at : at + (1 << 17)])
    packet = buffer.next_packet(0)
    assert packet is not None and bytes(packet.payload) == framed[4:]


def test_waiting_for_the_rest_of_a_split_payload_copies_nothing() -> None:
    buffer = PacketBuffer(1 << 26)
    framed = frame_payload(bytes(2 * 0xFFFFFF), 0)
    buffer.append(framed[: 0xFFFFFF + 100])
    start = time.process_time()
    for _ in range(100):
        assert buffer.next_packet(0) is None
    # A hundred copies of 16 MB take a hundred times as long.
    assert time.process_time() - start < 0.05


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4, 5, 6])
def test_text_is_never_cut_inside_a_character(limit: int) -> None:
    cut = cut_text("aé€", limit)
    assert len(cut) <= limit
    assert "aé€".startswith(cut.decode())


def test_an_error_carries_its_sqlstate() -> None:
    assert err_payload(AnsweredError(1045, "no")) == b"\xff\x15\x04#28000no"


def test_an_error_instead_of_a_greeting_carries_none() -> None:
    assert err_payload(AnsweredError(1040, "no"), with_sqlstate=False) == b"\xff\x10\x04no"


def test_an_errors_text_is_cut_to_what_clients_hold() -> None:
    assert len(err_payload(AnsweredError(1105, "x" * 1000))) == 9 + 511


def test_an_error_without_a_state_of_its_own_has_hy000() -> None:
    assert sqlstate_of(1236) == "HY000"


def test_more_authentication_data_has_its_own_header() -> None:
    assert auth_more_payload(b"\x03") == b"\x01\x03"


def test_null_is_a_byte_of_its_own_in_a_row() -> None:
    payloads = result_payloads(Rows(("a", "b"), ((None, "x"),)))
    assert payloads[0] == b"\x02"
    assert payloads[-2] == b"\xfb\x01x"


@pytest.mark.parametrize("rows", [(), ((None, None, None),)])
def test_a_number_of_a_show_statement_is_one_also_without_a_value(rows: tuple[tuple[None, ...], ...]) -> None:
    payloads = result_payloads(Rows(("Server_id", "Seconds_Behind_Master", "Host"), rows))
    # Behind the names: 0x0c, character set, length, then the type.
    assert [payload[-6] for payload in payloads[1:4]] == [ColumnType.LONG, ColumnType.LONGLONG, ColumnType.VAR_STRING]


def test_a_result_without_rows_has_columns_and_two_ends() -> None:
    payloads = result_payloads(Rows(("a",), ()))
    assert [payload[:1] for payload in payloads] == [b"\x01", b"\x03", b"\xfe", b"\xfe"]


def test_a_large_payload_keeps_the_pieces_that_came_and_its_first_byte_is_known_all_the_time() -> None:
    payload = bytes(range(256)) * 8192
    buffer, seen = PacketBuffer(len(payload)), set()
    assert buffer.first_byte is None
    framed = frame_payload(payload, 0)
    packet = None
    for start in range(0, len(framed), 50_000):
        buffer.append(framed[start : start + 50_000])
        seen.add(buffer.first_byte)
        packet = packet or buffer.next_packet(0)
    assert packet is not None and bytes(packet.payload) == payload
    assert seen == {0}


@pytest.mark.parametrize("attributes", [{}, {"program_name": "relay", "_pid": "7"}])
@pytest.mark.parametrize("lenenc", [True, False])
def test_a_login_packet_is_read_as_it_was_written(attributes: dict[str, str], lenenc: bool) -> None:
    wanted = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION | Capability.PLUGIN_AUTH | Capability.CONNECT_ATTRS
    wanted |= Capability.PLUGIN_AUTH_LENENC if lenenc else 0
    payload = login_payload(b"repl", "a_plugin", b"token", wanted, login_head(wanted, 1 << 24, 33), attributes)
    login = decode_login(payload, OFFERED)
    assert (login.user, login.plugin, login.auth, dict(login.attributes)) == ("repl", "a_plugin", b"token", attributes)


def test_what_a_set_takes_in_memory_is_known_before_it_is_decoded() -> None:
    one = encode_gtid_set(GtidSet.from_text("00000000-0000-0000-0000-000000000001:1-5"))
    lying = (1 << 40).to_bytes(8, "little") + bytes(100)
    assert len(one) < decoded_bytes(one) < 4096
    assert decoded_bytes(lying) < 4096 and decoded_bytes(b"short") == 5
