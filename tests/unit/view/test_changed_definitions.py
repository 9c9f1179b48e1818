"""A definition whose text a view changes says how TIMESTAMP columns are defined, as those do that are copied."""

import pytest

from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.support.binlog_builder import BinlogBuilder
from tests.support.view_making import marked, settings
from tests.support.view_oracle import events_of

SAYS_OFF = b"\x10\x00"


@pytest.mark.parametrize("gtids", ["assign", "keep"])
@pytest.mark.parametrize("engine", ["MyISAM", "InnoDB"])
def test_a_timestamp_column_is_what_it_was_in_a_table_that_becomes_innodb(engine: str, gtids: str) -> None:
    """Without it, it is NULL for a replica of 8.0, and in statement format the rows differ in silence."""
    data = marked(BinlogBuilder().query(f"CREATE TABLE t (ts TIMESTAMP) ENGINE={engine}").data)
    given = settings(gtids=gtids, engines="innodb")

    def read_into(view: memoryview, offset: int) -> int:
        count = min(len(view), max(len(data) - offset, 0))
        view[:count] = data[offset : offset + count]
        return count

    one = FileTranslation("bin.000001", read_into, given, rules_of(given), ViewCheckpoint.of_file(1, b""), {})
    room = bytearray(1 << 16)
    made = bytes(room[: one.fill(room, 0, len(data), sealed=True)])
    (statement,) = (event for event in events_of(made) if event[4] == 2)
    assert int.from_bytes(statement[19 + 11 : 19 + 13], "little") == len(SAYS_OFF)
    assert statement[19 + 13 : 19 + 15] == SAYS_OFF
    assert statement[:-4].endswith(b"\0CREATE TABLE t (ts TIMESTAMP) ENGINE=InnoDB")
