"""Acknowledgements of semi-sync replicas: bytes, and what the protocol machine takes while a dump goes on."""

import pytest

from protocol.errors import ErrorCode, Malformed, PeerError, Truncated
from protocol.framing import frame_payload
from protocol.position import Position
from protocol.semisync import decode_acknowledgement, encode_acknowledgement, wants_semi_sync
from protocol.source_side.connection_events import AckReceived, Closed
from protocol.source_side.connection_states import State
from protocol.source_side.machine import SourceSide
from tests.unit.source_side.test_source_side import dump, logged_in

END = Position("mysql-bin.000001", 1177)
ACK = b"\xef" + (1177).to_bytes(8, "little") + b"mysql-bin.000001"


def dumping(*, takes_acks: bool = True) -> SourceSide:
    side = logged_in()
    side.receive(dump(), 101.0)
    side.accept_dump(takes_acks=takes_acks)
    return side


def test_an_acknowledgement_is_decoded_and_encoded() -> None:
    assert decode_acknowledgement(ACK) == END
    assert encode_acknowledgement(END) == ACK


def test_a_position_beyond_4_gib_is_kept_whole() -> None:
    far = Position("mysql-bin.000001", 2**32 + 5)
    assert decode_acknowledgement(encode_acknowledgement(far)) == far


@pytest.mark.parametrize("size", range(9))
def test_an_acknowledgement_that_is_cut_in_its_position_is_truncated(size: int) -> None:
    with pytest.raises(Truncated):
        decode_acknowledgement(ACK[:size])


@pytest.mark.parametrize(
    "payload",
    [b"\xee" + ACK[1:], ACK[:9], ACK[:9] + b"no number", ACK[:9] + b"\xff\xfe.000001", ACK[:9] + b"a/b.000001"],
)
def test_what_is_no_acknowledgement_is_malformed(payload: bytes) -> None:
    with pytest.raises(Malformed):
        decode_acknowledgement(payload)


def test_a_file_name_of_any_length_is_not_taken() -> None:
    with pytest.raises(Malformed, match="at most 521"):
        decode_acknowledgement(ACK[:9] + b"x" * 506 + b".000001")


@pytest.mark.parametrize(
    ("variables", "wants"),
    [
        ({}, False),
        ({"rpl_semi_sync_slave": 1}, True),
        ({"rpl_semi_sync_replica": 1}, True),
        ({"rpl_semi_sync_slave": 0}, False),
        ({"rpl_semi_sync_slave": None}, False),
        ({"rpl_semi_sync_replica": "1"}, True),
    ],
)
def test_a_replica_says_by_a_variable_that_it_acknowledges(variables: dict[str, int | None], wants: bool) -> None:
    assert wants_semi_sync(variables) is wants


def test_acknowledgements_are_taken_while_a_dump_goes_on() -> None:
    side = dumping()
    assert side.receive(frame_payload(ACK, 0) * 2, 102.0) == [AckReceived(END), AckReceived(END)]
    assert (side.state, side.bytes_to_send()) == (State.DUMPING, b"")


def test_an_acknowledgement_that_comes_byte_by_byte_is_the_same() -> None:
    side = dumping()
    data = frame_payload(ACK, 0)
    events = [event for at in range(len(data)) for event in side.receive(data[at : at + 1], 102.0)]
    assert events == [AckReceived(END)]


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (frame_payload(ACK, 1), ErrorCode.ER_NET_PACKETS_OUT_OF_ORDER),
        (frame_payload(ACK[:5], 0), ErrorCode.ER_MALFORMED_PACKET),
        (frame_payload(b"\x03SELECT 1", 0), ErrorCode.ER_UNKNOWN_COM_ERROR),
        (frame_payload(b"", 0), ErrorCode.ER_UNKNOWN_COM_ERROR),
        ((100_000).to_bytes(3, "little") + b"\0", ErrorCode.ER_NET_PACKET_TOO_LARGE),
    ],
)
def test_anything_else_ends_the_dump_without_bytes_in_the_stream(data: bytes, number: int) -> None:
    side = dumping()
    (closed,) = side.receive(data, 102.0)
    assert isinstance(closed, Closed) and closed.error is not None
    assert (closed.error.number, side.state, side.bytes_to_send()) == (number, State.CLOSED, b"")


def test_who_gets_no_semi_sync_may_not_acknowledge() -> None:
    side = dumping(takes_acks=False)
    (closed,) = side.receive(frame_payload(ACK, 0), 102.0)
    assert isinstance(closed, Closed) and closed.error is not None


def test_a_dump_can_be_broken_off_without_a_word() -> None:
    side = dumping()
    error = PeerError(ErrorCode.ER_MALFORMED_PACKET, "a lie")
    assert (side.break_off(error), side.state, side.bytes_to_send()) == (Closed(error), State.CLOSED, b"")


def test_after_the_dump_commands_are_as_long_as_before() -> None:
    side = dumping()
    side.end_dump(5, 102.0)
    side.bytes_to_send()
    assert side.receive(frame_payload(b"\x03SELECT '" + b"x" * 5000 + b"'", 0), 103.0) == []
    assert side.state is State.COMMAND_EXPECTED
