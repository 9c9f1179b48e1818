"""Bodies of the events that begin a transaction, as servers wrote them, read and written again."""

import struct
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.binlog.event_type import EventType
from protocol.binlog.gtid_event import Gtid, decode_gtid, encode_gtid
from protocol.binlog.gtid_tagged import (
    decode_gtid_tagged,
    encode_gtid_tagged,
    signed,
    variable_signed,
    variable_unsigned,
    with_clock,
)
from protocol.binlog.mariadb_gtid import (
    GROUP_COMMIT_ID,
    PREPARED_XA,
    MariadbGtid,
    decode_mariadb_gtid,
    encode_mariadb_gtid,
)
from protocol.binlog.xa_prepare import Xid
from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.mariadb import decode_gtid_list, encode_gtid_list
from protocol.kernel.gtid_head import TaggedFields

RECORDED = Path(__file__).resolve().parents[2] / "corpus" / "recorded"

UUID_OF_ONE = UUID(int=1)
# 5.6.24; 9.7.4; 9.7.4 with another original commit time.
GTIDS = [
    "01d0f0e99ae58e11f1a66d02fc000000010100000000000000",
    "01d06de5a2e58e11f1b4d902fc00000001010000000000000002000000000000000001000000000000001adcec12c66006b050620100",
    "00d06de5a2e58e11f1b4d902fc00000001020000000000000002020000000000000005000000000000002a5eed12c660860100a40731af05fc1001"
    "50620100",
]  # fmt: skip
# 9.7.4: AUTOMATIC:mytag; uuid:other_tag_x:900000000000; another original time and version.
TAGGED = [
    "0278000002024103da950389029503390222c503d102650304f103000000020404060a6d7974616708040a080c7fae4eed12c66006102103128312"
    "0b",
    "028a000000027c22e9038ee22903228503790266210314a502845502c4041f001417c66806166f746865725f7461675f7808080a100c7f415aed12"
    "c660061059041283120b",
    "028e000000024103da950389029503390222c503d102650304f103000000020404060661626308080a180c7f6860ed12c660060e7f0200a40731af"
    "051061041283120b14c33106",
]  # fmt: skip


@pytest.mark.parametrize("recorded", GTIDS)
def test_a_gtid_event_is_written_as_it_was_read(recorded: str) -> None:
    assert encode_gtid(decode_gtid(bytes.fromhex(recorded))).hex() == recorded


@pytest.mark.parametrize("recorded", TAGGED)
def test_a_tagged_gtid_event_is_written_as_it_was_read(recorded: str) -> None:
    assert encode_gtid_tagged(decode_gtid_tagged(bytes.fromhex(recorded))).hex() == recorded


def bodies(name: str) -> list[tuple[int, bytes]]:
    """Type and body of each event of a recorded binlog with CRC32."""
    data = (RECORDED / name).read_bytes()
    found = []
    at = 4
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 9)
        found.append((data[at + 4], data[at + 19 : at + size - 4]))
        at += size
    return found


@pytest.mark.parametrize("name", ["mysql56-gtid", "mysql97-gtid", "mysql97-anonymous", "mysql97-compressed"])
def test_each_gtid_event_of_a_recorded_binlog_of_mysql_is_written_as_it_was_read(name: str) -> None:
    seen = 0
    for kind, body in bodies(f"{name}.binlog"):
        if kind in (EventType.GTID, EventType.ANONYMOUS_GTID):
            assert encode_gtid(decode_gtid(body)) == body
            seen += 1
        elif kind == EventType.PREVIOUS_GTIDS:
            assert encode_gtid_set(decode_gtid_set(body)) == body
            seen += 1
    assert seen > 1


@pytest.mark.parametrize("name", ["mariadb", "mariadb118", "mariadb-compressed"])
def test_each_gtid_event_of_a_recorded_binlog_of_mariadb_is_written_as_it_was_read(name: str) -> None:
    seen = 0
    for kind, body in bodies(f"{name}.binlog"):
        if kind == EventType.MARIADB_GTID:
            written = encode_mariadb_gtid(decode_mariadb_gtid(body)).rstrip(b"\0")
            # What 10.6 and later put behind it is not decoded.
            assert body.startswith(written)
            assert len(body) - len(written) <= 12
            seen += 1
        elif kind == EventType.GTID_LIST:
            assert encode_gtid_list(decode_gtid_list(body)) == body
            seen += 1
    assert seen > 1


def test_each_version_of_a_gtid_event_ends_where_its_fields_do() -> None:
    whole = Gtid(1, UUID_OF_ONE, 5, "", 3, 4, 123, 99, 256, 90704, 50744, 7)
    assert [len(encode_gtid(gtid)) for gtid in (
        Gtid(1, UUID_OF_ONE, 5),
        Gtid(1, UUID_OF_ONE, 5, "", 3, 4),
        Gtid(1, UUID_OF_ONE, 5, "", 3, 4, 123, 123),
        Gtid(1, UUID_OF_ONE, 5, "", 3, 4, 123, 99, 256),
        whole,
    )] == [25, 42, 49, 59, 75]  # fmt: skip
    assert decode_gtid(encode_gtid(whole)) == whole


NUMBERS = st.integers(1, 2**55 - 1)
VERSIONS = st.integers(1, 2**31 - 1)
WHOLE_GTIDS = st.builds(
    Gtid, st.integers(0, 255), st.uuids(), st.integers(1, 2**63 - 2), st.just("tag"), NUMBERS, NUMBERS, NUMBERS, NUMBERS,
    st.integers(0, 2**64 - 1), VERSIONS, VERSIONS, st.integers(1, 2**64 - 1),
)  # fmt: skip


@given(WHOLE_GTIDS)
def test_any_tagged_gtid_is_read_as_it_was_written(gtid: Gtid) -> None:
    body = encode_gtid_tagged(gtid)
    assert decode_gtid_tagged(body) == gtid
    fields = TaggedFields()
    fields.read_number(body, 0)
    assert fields.read_number(body, fields.at) == len(body)


@given(st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1))
def test_any_number_of_64_bits_is_read_as_it_was_written(large: int, negative: int) -> None:
    fields = TaggedFields()
    assert fields.read_number(variable_unsigned(large), 0) == large
    assert fields.at == len(variable_unsigned(large))
    assert signed(fields.read_number(variable_signed(negative), 0)) == negative


@pytest.mark.parametrize(
    ("gtid", "size"),
    [
        (MariadbGtid(2**64 - 1, 2**32 - 1, 0), 19),
        (MariadbGtid(1, 0, GROUP_COMMIT_ID, 77), 21),
        (MariadbGtid(1, 0, PREPARED_XA, None, Xid(1, b"ab", b"")), 21),
        (MariadbGtid(1, 0, PREPARED_XA | GROUP_COMMIT_ID, 5, Xid(1, b"ab", b"c" * 64)), 93),
    ],
)
def test_a_gtid_event_of_mariadb_is_read_as_it_was_written(gtid: MariadbGtid, size: int) -> None:
    body = encode_mariadb_gtid(gtid)
    assert len(body) == size
    assert decode_mariadb_gtid(body) == gtid


def test_a_flag_without_its_field_is_not_written() -> None:
    with pytest.raises(ValueError, match="commit id"):
        encode_mariadb_gtid(MariadbGtid(1, 0, GROUP_COMMIT_ID))
    with pytest.raises(ValueError, match="XA identifier"):
        encode_mariadb_gtid(MariadbGtid(1, 0, PREPARED_XA))


@given(WHOLE_GTIDS, NUMBERS, NUMBERS)
def test_a_tagged_gtid_with_other_numbers_of_dependencies_is_else_the_same(
    gtid: Gtid, last: int, sequence: int
) -> None:
    told = decode_gtid_tagged(with_clock(encode_gtid_tagged(gtid), last, sequence))
    assert told == replace(gtid, last_committed=last, sequence_number=sequence)


def test_a_tagged_gtid_without_numbers_of_dependencies_is_given_none() -> None:
    body = encode_gtid_tagged(Gtid(1, UUID_OF_ONE, 5, "tag"))
    assert with_clock(body, 7, 8) == body


def test_fields_of_a_tagged_gtid_that_nobody_knows_stay_behind_other_numbers() -> None:
    body = encode_gtid_tagged(Gtid(1, UUID_OF_ONE, 5, "tag", 3, 4, 123, 123))
    longer = body[:1] + variable_unsigned(len(body) + 2) + body[2:] + variable_unsigned(60) + variable_unsigned(9)
    made = with_clock(longer, 1_000_000, 1_000_001)
    assert made.endswith(variable_unsigned(60) + variable_unsigned(9))
    assert decode_gtid_tagged(made).sequence_number == 1_000_001
