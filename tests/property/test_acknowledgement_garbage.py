"""A semi-sync replica that sends anything at all while it is served: acknowledgements, or a closed connection."""

from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Malformed, PeerError
from protocol.framing import frame_payload
from protocol.position import Position
from protocol.semisync import decode_acknowledgement, encode_acknowledgement
from protocol.source_side.connection_events import AckReceived, Closed
from protocol.source_side.connection_states import State
from protocol.source_side.machine import SourceSide
from relay.downstream.stream.acknowledgements import Acknowledgements, AcknowledgementSums
from tests.unit.source_side.test_semisync import dumping

POSITIONS = st.builds(
    Position,
    st.integers(0, 10**7).map(lambda number: f"mysql-bin.{number:06}"),
    st.integers(0, 2**64 - 1),
)
PACKETS = st.lists(
    st.one_of(
        POSITIONS.map(lambda position: frame_payload(encode_acknowledgement(position), 0)),
        st.binary(max_size=40).map(lambda body: frame_payload(b"\xef" + body, 0)),
        st.binary(max_size=20).map(lambda body: frame_payload(body, 0)),
        st.binary(max_size=20),
    ),
    max_size=8,
).map(b"".join)


@given(POSITIONS)
def test_an_acknowledgement_is_read_as_it_was_written(position: Position) -> None:
    assert decode_acknowledgement(encode_acknowledgement(position)) == position


@given(st.binary(max_size=700))
def test_any_bytes_are_an_acknowledgement_or_malformed(payload: bytes) -> None:
    try:
        position = decode_acknowledgement(payload)
    except Malformed:
        return
    assert encode_acknowledgement(position) == payload


def taken(side: SourceSide, pieces: list[bytes]) -> list[object]:
    return [event for piece in pieces for event in side.receive(piece, 102.0)]


@given(PACKETS)
def test_whatever_comes_in_a_dump_is_acknowledgements_and_then_perhaps_the_end(data: bytes) -> None:
    side = dumping()
    events = taken(side, [data])
    assert all(isinstance(event, AckReceived) for event in events[:-1])
    if events and isinstance(events[-1], Closed):
        assert side.state is State.CLOSED
    else:
        assert side.state is State.DUMPING
    assert side.bytes_to_send() == b""


@given(PACKETS)
def test_byte_by_byte_is_the_same_conversation(data: bytes) -> None:
    whole, cut = dumping(), dumping()
    one = taken(whole, [data])
    other = taken(cut, [data[at : at + 1] for at in range(len(data))])
    assert [str(event) for event in one] == [str(event) for event in other]
    assert whole.state is cut.state


@given(st.lists(POSITIONS, max_size=20), POSITIONS, st.integers(0, 10))
def test_no_lie_moves_what_is_acknowledged_beyond_what_was_asked_for(
    said: list[Position], asked: Position, count: int
) -> None:
    acknowledgements = Acknowledgements(AcknowledgementSums(), lambda name: True)
    acknowledgements.ask(asked, count, 1.0)
    believed = 0
    for position in said:
        try:
            acknowledgements.take(position, 2.0)
        except PeerError:
            continue
        believed += 1
    assert believed <= count
    assert acknowledgements.acked is None or acknowledgements.acked <= asked
