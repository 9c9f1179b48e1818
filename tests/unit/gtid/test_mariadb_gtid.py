"""MariaDB's GTIDs, positions and lists. What servers answered was asked of MariaDB 10.11."""

import struct

import pytest

from protocol.errors import Malformed, Truncated
from protocol.gtid.mariadb import (
    IGN_GTIDS,
    UNTIL_REACHED,
    DomainGtid,
    GtidList,
    GtidPosition,
    decode_gtid_list,
    encode_gtid_list,
)

# What SET GLOBAL gtid_slave_pos took, and what it said then.
ANSWERED = [
    ("", ""),
    ("0-1-5", "0-1-5"),
    ("1-2-7,0-1-5", "0-1-5,1-2-7"),
    ("5-1-1,3-1-1,4-1-1,10-1-1,2-1-1", "2-1-1,3-1-1,4-1-1,5-1-1,10-1-1"),
    ("0-1-0", "0-1-0"),
    ("0-0-5", "0-0-5"),
    ("0-1-18446744073709551615", "0-1-18446744073709551615"),
    ("4294967295-4294967295-1", "4294967295-4294967295-1"),
    ("00-01-05", "0-1-5"),
]
REFUSED = [
    "0-1-5,0-2-6",
    "0-1-18446744073709551616",
    "4294967296-1-1",
    "0-4294967296-1",
    "0 - 1 - 5",
    "0-1",
    "-1-1-1",
    "0-1--5",
    "0-1-5x",
    "0-1-5-6",
    "0-1-" + "9" * 100_000,
]


@pytest.mark.parametrize(("text", "answer"), ANSWERED)
def test_a_position_is_taken_and_printed_as_by_a_server(text: str, answer: str) -> None:
    assert str(GtidPosition.from_text(text)) == answer


@pytest.mark.parametrize("text", REFUSED)
def test_a_text_that_is_no_position_is_malformed(text: str) -> None:
    with pytest.raises(Malformed) as caught:
        GtidPosition.from_text(text)
    assert len(str(caught.value)) < 200


def test_spaces_between_members_are_taken() -> None:
    assert str(GtidPosition.from_text(" 1-2-7 ,\n0-1-5, ")) == "0-1-5,1-2-7"


def test_a_position_has_one_group_of_each_domain() -> None:
    position = GtidPosition.from_text("0-1-5,7-2-9")
    assert position.domain(7) == DomainGtid(7, 2, 9)
    assert position.domain(1) is None
    assert [gtid.domain_id for gtid in position] == [0, 7]
    assert len(position) == 2
    with pytest.raises(Malformed, match="0-1-6 and 0-1-5 conflict"):
        GtidPosition.from_text("0-1-5,0-1-6")


def test_a_position_advances_to_what_comes_next_whatever_its_number() -> None:
    position = GtidPosition.from_text("0-1-5")
    later = position.advanced(DomainGtid(0, 2, 3)).advanced(DomainGtid(1, 1, 1))
    assert str(later) == "0-2-3,1-1-1"
    assert str(position) == "0-1-5"
    assert later == GtidPosition.from_text("1-1-1,0-2-3")
    assert hash(later) == hash(GtidPosition.from_text("1-1-1,0-2-3"))
    assert later != position
    assert position != "0-1-5"
    assert repr(position) == "GtidPosition.from_text('0-1-5')"


# SET GLOBAL gtid_binlog_state = ...: the variable, @@gtid_binlog_pos, SHOW BINLOG EVENTS, the body of the event.
STATES = [
    ("", "", "", "", "000000000000"),
    ("0-2-9,0-1-5", "0-2-9,0-1-5", "0-1-5", "0-1-5,0-2-9",
     "02000000" "000000000200000009000000" "00000000" "000000000100000005000000" "00000000"),
    ("1-1-1,0-2-9,0-1-5,0-1-6", "0-2-9,0-1-6,1-1-1", "0-1-6,1-1-1", "0-1-6,0-2-9,1-1-1",
     "03000000" "010000000100000001000000" "00000000" "000000000200000009000000" "00000000" "000000000100000006000000"
     "00000000"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "state", "position", "shown", "body"), STATES)
def test_a_list_is_printed_read_and_written_as_by_a_server(
    text: str, state: str, position: str, shown: str, body: str
) -> None:
    decoded = decode_gtid_list(bytes.fromhex(body))
    assert decoded == GtidList.from_text(text)
    assert str(decoded) == state
    assert str(decoded.position) == position
    assert decoded.event_text == shown
    assert encode_gtid_list(decoded).hex() == body


def test_the_flags_of_a_list_are_kept() -> None:
    body = bytes.fromhex("010000b0000000000100000005000000" + "00000000")
    decoded = decode_gtid_list(body)
    assert decoded.flags & UNTIL_REACHED
    assert decoded.flags & IGN_GTIDS
    assert encode_gtid_list(decoded) == body
    assert decoded != GtidList.from_text("0-1-5")


@pytest.mark.parametrize("count", [1, 0x0FFF_FFFF, 0xFFFF_FFFF])
def test_a_list_that_announces_more_than_it_has_is_truncated(count: int) -> None:
    with pytest.raises(Truncated):
        decode_gtid_list(struct.pack("<I", count) + bytes(15))


def test_a_list_contains_what_its_servers_wrote_before() -> None:
    state = GtidList.from_text("0-1-5,0-2-9,7-1-3")
    assert state.contains(DomainGtid(0, 1, 5))
    assert state.contains(DomainGtid(0, 2, 1))
    assert not state.contains(DomainGtid(0, 1, 6))
    assert not state.contains(DomainGtid(0, 3, 1))
    assert not state.contains(DomainGtid(7, 2, 1))
    assert state.server(0, 2) == DomainGtid(0, 2, 9)
    assert state.server(1, 2) is None


def test_a_list_advances_and_the_newest_group_comes_last() -> None:
    state = GtidList.from_text("0-1-5,0-2-9").advanced([DomainGtid(0, 1, 6), DomainGtid(3, 1, 1)])
    assert str(state) == "0-2-9,0-1-6,3-1-1"
    assert str(state.position) == "0-1-6,3-1-1"
    assert [str(gtid) for gtid in state] == ["0-2-9", "0-1-6", "3-1-1"]
    assert len(state) == 3


def test_lists_are_equal_when_they_mean_the_same() -> None:
    # The order of a domain's older groups is chance; which is the newest is not.
    first, second = GtidList.from_text("0-1-5,0-3-7,0-2-9"), GtidList.from_text("0-3-7,0-1-5,0-2-9")
    assert first == second
    assert hash(first) == hash(second)
    assert first != GtidList.from_text("0-2-9,0-3-7,0-1-5")
    assert first != "0-1-5,0-3-7,0-2-9"
    assert repr(first) == "GtidList.from_text('0-1-5,0-3-7,0-2-9')"
