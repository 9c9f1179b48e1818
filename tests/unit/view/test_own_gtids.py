"""Transactions with a GTID of the source's own, where a view changes what is in them."""

import struct
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from protocol.binlog.gtid_event import Gtid, decode_gtid
from protocol.binlog.gtid_tagged import decode_gtid_tagged, encode_gtid_tagged
from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.kernel.gtid_head import TaggedFields
from protocol.wire import lenenc_int
from relay.view.translate.source_gtid import with_clock, with_length
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.support.binlog_builder import ALONE, CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.view_making import marked, settings
from tests.support.view_oracle import events_of

GTID, ANONYMOUS, TAGGED = 33, 34, 42
CLOCK = struct.pack("<Bqq", 2, 0, 1)
TIME, WITH_ORIGINAL = (5).to_bytes(7, "little"), (5 | 1 << 55).to_bytes(7, "little") + (4).to_bytes(7, "little")
VERSION = struct.pack("<I", 90704)
TOLD = Gtid(1, UUID(int=9), 7, "tag", 0, 1, 5, 5, 1000, 90704, 90704)


def made_of(binlog: BinlogBuilder, most: int = 1 << 20, **changes: object) -> list[bytes]:
    """The events that a view has, from its Previous_gtids on. most: bytes that are read at once."""
    data = marked(binlog.data)
    given = settings(**changes)

    def read_into(view: memoryview, offset: int) -> int:
        count = min(len(view), most, max(len(data) - offset, 0))
        view[:count] = data[offset : offset + count]
        return count

    one = FileTranslation("bin.000001", read_into, given, rules_of(given), ViewCheckpoint.of_file(1, b""), {})
    room, made = bytearray(1 << 17), b""
    while count := one.fill(room, 0, len(data), sealed=True):
        made += room[:count]
    return list(events_of(made))[1:]


def head(kind: int, *parts: bytes) -> bytes:
    number = struct.pack("<q", 1 if kind == GTID else 0)
    return b"\1" + (b"u" * 16 if kind == GTID else bytes(16)) + number + b"".join(parts)


@pytest.mark.parametrize("gtids", ["assign", "anonymous", "keep"])
@pytest.mark.parametrize("kind", [GTID, ANONYMOUS])
@pytest.mark.parametrize("time", [TIME, WITH_ORIGINAL])
@pytest.mark.parametrize("wide", [lenenc_int(200), lenenc_int(1000), lenenc_int(70_000), b"\xfe" + bytes(8)])
def test_a_changed_transaction_tells_its_own_length(wide: bytes, time: bytes, kind: int, gtids: str) -> None:
    binlog = BinlogBuilder(version="8.0.36").event(kind, head(kind, CLOCK, time, wide, VERSION), OPENS)
    binlog.query("GRANT SELECT ON d.* TO u", CLOSES)
    _, gtid, *rest = made_of(binlog, gtids=gtids)
    assert len(rest) == 2  # BEGIN and COMMIT
    told = decode_gtid(gtid[19:-4])
    assert told.transaction_length == len(gtid) + sum(map(len, rest))
    assert (told.immediate_commit_us, told.immediate_server_version) == (5, 90704)


@pytest.mark.parametrize("parts", [(), (CLOCK,), (CLOCK, TIME), (CLOCK, WITH_ORIGINAL), (CLOCK, TIME, b"\xfc")])
def test_one_that_tells_no_length_tells_none(parts: tuple[bytes, ...]) -> None:
    binlog = BinlogBuilder(version="8.0.36").event(GTID, head(GTID, *parts), OPENS).query("BEGIN", INSIDE)
    binlog.query("UPDATE mysql.user SET a = 1", INSIDE).query("COMMIT", CLOSES)
    _, gtid, *rest = made_of(binlog)
    assert len(rest) == 2
    assert gtid[19:-4] == head(GTID, *parts)


ROWS = struct.pack("<IHH", 7, 0, 1) + b"\1\xff\0" + bytes(4)


@pytest.mark.parametrize("gtids", ["assign", "anonymous", "keep"])
@pytest.mark.parametrize("kind", [GTID, ANONYMOUS, TAGGED])
@pytest.mark.parametrize("time", [TIME, WITH_ORIGINAL])
@pytest.mark.parametrize("wide", [lenenc_int(200), lenenc_int(1000), lenenc_int(70_000), b"\xfe" + bytes(8)])
@pytest.mark.parametrize("row_bytes", [1, 40, 300, 70_000, 1_200_000])
def test_a_transaction_with_rows_of_version_1_tells_its_length_with_rows_of_version_2(
    row_bytes: int, wide: bytes, time: bytes, kind: int, gtids: str
) -> None:
    """By the kernel, and in pieces, where it is longer than a buffer."""
    binlog = BinlogBuilder(version="8.0.36")
    own = encode_gtid_tagged(TOLD) if kind == TAGGED else head(kind, CLOCK, time, wide, VERSION)
    for _ in range(2):
        binlog.event(kind, own, OPENS).query("BEGIN", INSIDE)
        binlog.event(19, struct.pack("<IHH", 7, 0, 1) + b"\x01d\0\x01t\0\x01\x03\x00\x01", INSIDE)
        binlog.event(23, ROWS + bytes(row_bytes), INSIDE).event(16, bytes(8), CLOSES)
    made = made_of(binlog, gtids=gtids)[1:]
    for group in (made[:5], made[5:]):
        assert [event[4] for event in group[1:]] == [2, 19, 30, 16]
        told = (decode_gtid_tagged if kind == TAGGED else decode_gtid)(group[0][19:-4])
        assert told.transaction_length == sum(map(len, group))
        assert (told.immediate_commit_us, told.immediate_server_version) == (5, 90704)


@pytest.mark.parametrize("row_bytes", [10, 1_200_000])
@pytest.mark.parametrize("strange", [(b"\xfb",), (b"\xff", VERSION), (b"\xfe\1",)])
def test_a_length_that_is_none_stays_as_it_was(strange: tuple[bytes, ...], row_bytes: int) -> None:
    binlog = BinlogBuilder(version="8.0.36").event(GTID, head(GTID, CLOCK, TIME, *strange), OPENS)
    binlog.query("BEGIN", INSIDE).event(23, ROWS + bytes(row_bytes), INSIDE).event(16, bytes(8), CLOSES)
    _, gtid, *rest = made_of(binlog)
    assert [event[4] for event in rest] == [2, 30, 16]
    assert gtid[19:-4] == head(GTID, CLOCK, TIME, *strange)


def test_a_changed_transaction_with_a_tag_tells_its_own_length() -> None:
    binlog = BinlogBuilder(version="9.7.4").event(TAGGED, encode_gtid_tagged(TOLD), OPENS)
    binlog.query("GRANT SELECT ON d.* TO u", CLOSES)
    _, gtid, *rest = made_of(binlog)
    told = decode_gtid_tagged(gtid[19:-4])
    assert told == replace(TOLD, transaction_length=len(gtid) + sum(map(len, rest)))


@pytest.mark.parametrize("size", [*range(30, 400), 16_380, 16_400, 1 << 21, 1 << 40])
def test_a_length_in_a_tagged_event_counts_itself(size: int) -> None:
    body = encode_gtid_tagged(TOLD)
    made = with_length(TAGGED, body, size + len(body))
    assert decode_gtid_tagged(made) == replace(TOLD, transaction_length=size + len(made))


def test_a_tagged_event_with_what_nobody_knows_stays_as_it_was() -> None:
    without = encode_gtid_tagged(replace(TOLD, transaction_length=None))
    for body in (without, encode_gtid_tagged(TOLD) + b"\x18\2", b"\1", b""):
        assert with_length(TAGGED, body, 1000) == body


@pytest.mark.parametrize("most", [1, 7, 18, 19])
def test_what_was_executed_before_is_there_however_little_is_read_at_once(most: int) -> None:
    own = GtidSet.from_text("75757575-7575-7575-7575-757575757575:1-3")
    binlog = BinlogBuilder().event(35, encode_gtid_set(own), ALONE).transaction()
    made = made_of(binlog, most)
    assert decode_gtid_set(made[0][19:-4]) == own
    assert made == made_of(binlog)


def with_a_split(*heads: bytes) -> BinlogBuilder:
    """A transaction that becomes two, and behind it one with each of these events with a tag."""
    binlog = BinlogBuilder(version="9.7.4")
    for text in ("CREATE TABLE m (a INT) ENGINE=MyISAM", "CREATE TABLE i (a INT) ENGINE=InnoDB"):
        binlog.event(ANONYMOUS, head(ANONYMOUS, CLOCK), OPENS).query(text, CLOSES)
    binlog.event(ANONYMOUS, head(ANONYMOUS, struct.pack("<Bqq", 2, 2, 3)), OPENS).query("BEGIN", INSIDE)
    binlog.query("INSERT INTO m VALUES (1)", INSIDE).query("INSERT INTO i VALUES (1)", INSIDE)
    binlog.event(16, bytes(8), CLOSES)
    for one in heads:
        binlog.event(TAGGED, one, OPENS).query("BEGIN", INSIDE).query("INSERT INTO i VALUES (2)", INSIDE)
        binlog.event(16, bytes(8), CLOSES)
    return binlog


def test_one_with_a_tag_behind_a_transaction_that_became_two_waits_for_the_one_before() -> None:
    length = len(b"".join(made_of(with_a_split(encode_gtid_tagged(TOLD)))[-4:]))
    own = [
        replace(TOLD, gno=number, last_committed=2, sequence_number=number, transaction_length=length)
        for number in (4, 5)
    ]
    made = made_of(with_a_split(*map(encode_gtid_tagged, own)))
    groups = made[-8:-4], made[-4:]
    told = [decode_gtid_tagged(group[0][19:-4]) for group in groups]
    assert [(gtid.last_committed, gtid.sequence_number) for gtid in told] == [(4, 5), (5, 6)]
    assert [replace(gtid, last_committed=2, sequence_number=gtid.gno) for gtid in told] == [
        replace(gtid, transaction_length=sum(map(len, group))) for gtid, group in zip(own, groups, strict=True)
    ]


def sized(body: bytes) -> bytes:
    """With its length, of less than 64 bytes, told again."""
    return body[:1] + bytes((len(body) * 2,)) + body[2:]


@pytest.mark.parametrize(
    "made",
    [
        lambda gtid: encode_gtid_tagged(gtid),
        lambda gtid: encode_gtid_tagged(replace(gtid, commit_group_ticket=1 << 40)),
        # A field of a server that does not exist yet: number 12, of which nobody knows how long it is.
        lambda gtid: sized(encode_gtid_tagged(gtid) + b"\x18\2\7\7"),
    ],
)
@pytest.mark.parametrize("number", [1, 63, 64, 8191, 8192, 1 << 40, (1 << 62) - 1])
def test_numbers_of_dependencies_in_a_tagged_event_are_told_anew_and_the_rest_stays(
    number: int, made: Callable[[Gtid], bytes]
) -> None:
    body = made(TOLD)
    changed = with_clock(TAGGED, body, number)
    assert decode_gtid_tagged(changed) == replace(
        decode_gtid_tagged(body), last_committed=number - 1, sequence_number=number
    )
    assert changed.endswith(body[-4:])
    assert TaggedFields().read_number(changed, 1) == len(changed)


def test_a_tagged_event_without_such_numbers_or_that_is_cut_gets_none() -> None:
    without = encode_gtid_tagged(replace(TOLD, last_committed=None, sequence_number=None))
    for body in (without, encode_gtid_tagged(TOLD)[:6], b""):
        assert with_clock(TAGGED, body, 7) == body
