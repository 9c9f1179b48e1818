"""Transactions with a GTID of the source's own, where a view changes what is in them."""

import struct

import pytest

from protocol.binlog.gtid_event import decode_gtid
from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.wire import lenenc_int
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.support.binlog_builder import ALONE, CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.view_making import marked, settings
from tests.support.view_oracle import events_of

GTID, ANONYMOUS = 33, 34
CLOCK = struct.pack("<Bqq", 2, 0, 1)
TIME, WITH_ORIGINAL = (5).to_bytes(7, "little"), (5 | 1 << 55).to_bytes(7, "little") + (4).to_bytes(7, "little")
VERSION = struct.pack("<I", 90704)


def made_of(binlog: BinlogBuilder, most: int = 1 << 20, **changes: object) -> list[bytes]:
    """The events that a view has, from its Previous_gtids on. most: bytes that are read at once."""
    data = marked(binlog.data)
    given = settings(**changes)

    def read_into(view: memoryview, offset: int) -> int:
        count = min(len(view), most, max(len(data) - offset, 0))
        view[:count] = data[offset : offset + count]
        return count

    one = FileTranslation("bin.000001", read_into, given, rules_of(given), ViewCheckpoint.of_file(1, b""), {})
    room = bytearray(1 << 17)
    return list(events_of(bytes(room[: one.fill(room, 0, len(data), sealed=True)])))[1:]


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


@pytest.mark.parametrize("most", [1, 7, 18, 19])
def test_what_was_executed_before_is_there_however_little_is_read_at_once(most: int) -> None:
    own = GtidSet.from_text("75757575-7575-7575-7575-757575757575:1-3")
    binlog = BinlogBuilder().event(35, encode_gtid_set(own), ALONE).transaction()
    made = made_of(binlog, most)
    assert decode_gtid_set(made[0][19:-4]) == own
    assert made == made_of(binlog)
