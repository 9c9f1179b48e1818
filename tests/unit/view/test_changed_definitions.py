"""A definition whose text a view changes says how TIMESTAMP columns are defined, as those do that are copied."""

import struct
import zlib

import pytest

from relay.view.stops.view_stop import ViewStop, ViewStopped
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.support.binlog_builder import ALONE, BinlogBuilder
from tests.support.event_stream import query_body
from tests.support.view_making import marked, settings
from tests.support.view_oracle import events_of

SAYS_OFF, SAYS_ON = b"\x10\x00", b"\x10\x01"
BEFORE = b"\0\0\0\0\0" + b"\x01" + bytes(8) + b"\x06\x03std" + b"\x04" + bytes(6) + b"\x05\x06+02:00"
UNKNOWN = b"\x80abc"


def translation_of(data: bytes, **changes: object) -> tuple[FileTranslation, bytearray]:
    given = settings(**changes)

    def read_into(view: memoryview, offset: int) -> int:
        count = min(len(view), max(len(data) - offset, 0))
        view[:count] = data[offset : offset + count]
        return count

    one = FileTranslation("bin.000001", read_into, given, rules_of(given), ViewCheckpoint.of_file(1, b""), {})
    return one, bytearray(1 << 18)


def statement_of(text: str, status: bytes, **changes: object) -> bytes:
    """The body of the statement that a view has in place of one."""
    data = marked(BinlogBuilder(version="5.7.44-log").event(2, query_body(text, status=status), ALONE).data)
    one, room = translation_of(data, **changes)
    made = bytes(room[: one.fill(room, 0, len(data), sealed=True)])
    (statement,) = (event for event in events_of(made) if event[4] == 2)
    return statement[19:-4]


@pytest.mark.parametrize("gtids", ["assign", "keep"])
@pytest.mark.parametrize("engine", ["MyISAM", "InnoDB"])
@pytest.mark.parametrize(
    ("status", "made"),
    [
        (b"", SAYS_OFF),
        (BEFORE, BEFORE + SAYS_OFF),
        (BEFORE + SAYS_ON, BEFORE + SAYS_ON),
        (BEFORE + UNKNOWN, BEFORE + SAYS_OFF + UNKNOWN),
        (b"\x80" + bytes(65532), SAYS_OFF + b"\x80" + bytes(65532)),
    ],
)
def test_a_timestamp_column_is_what_it_was_in_a_table_that_becomes_innodb(
    status: bytes, made: bytes, engine: str, gtids: str
) -> None:
    """Without it, it is NULL for a replica of 8.0, and in statement format the rows differ in silence.

    MySQL 5.6 does not know the variable and reads nothing behind it: not the time zone, nor the sql_mode.
    """
    body = statement_of(f"CREATE TABLE t (ts TIMESTAMP) ENGINE={engine}", status, gtids=gtids, engines="innodb")
    assert body[11:13] == struct.pack("<H", len(made))
    assert body[13 : 13 + len(made)] == made
    assert body[13 + len(made) :] == b"test\0CREATE TABLE t (ts TIMESTAMP) ENGINE=InnoDB"


@pytest.mark.parametrize("text", ["CREATE TABLE t (ts TIMESTAMP) ENGINE=MyISAM", "INSERT INTO t VALUES (1)"])
@pytest.mark.parametrize("status", [BEFORE + b"\x0d\0", b"\x80" + bytes(65533)])
def test_a_statement_whose_status_variables_cannot_be_read_stops_the_view(text: str, status: bytes) -> None:
    """What is put behind them would be taken for the end of the last one."""
    data = marked(BinlogBuilder().event(2, query_body(text, status=status), ALONE).transaction().data)
    one, room = translation_of(data, engines="innodb")
    one.fill(room, 0, len(data), sealed=True)
    with pytest.raises(ViewStopped) as stopped:
        one.fill(room, 0, len(data), sealed=True)
    assert (stopped.value.stop.reason.name, stopped.value.stop.reason.error) == ("malformed_transaction", 0)
    told: list[ViewStop] = []
    one, room = translation_of(data, engines="innodb")
    one.on_stop = told.append
    made = bytes(room[: one.fill(room, 0, len(data), sealed=True)])
    assert [stop.offset for stop in told] == [stopped.value.stop.offset]
    assert sum(event[4] == 33 for event in events_of(made)) == 2


@pytest.mark.parametrize("kind", [2, 18])
def test_a_file_whose_statements_have_longer_heads_than_any_server_writes_stops_the_view(kind: int) -> None:
    data = bytearray(BinlogBuilder(checksum=False).data)
    data[4 + 19 + 57 + kind - 1] += 1
    body = bytes(data[4:-4])
    one, room = translation_of(bytes(data[:4]) + body + struct.pack("<I", zlib.crc32(body)))
    with pytest.raises(ViewStopped, match="longer heads") as stopped:
        one.fill(room, 0, len(data), sealed=True)
    assert stopped.value.stop.reason.name == "format_unsupported"
