"""The column `row_flags`: what all rows events of a transaction say that update or delete."""

import struct

import pytest

from protocol.binlog.event_type import EventType
from tests.support.binlog_builder import INSIDE, BinlogBuilder
from tests.support.kernel_builds import KernelBuild
from tests.support.kernel_columns import transaction_rows


def change(binlog: BinlogBuilder, kind: EventType, flags: int) -> None:
    extra = b"" if kind in (EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1) else b"\x02\0"
    binlog.event(kind, struct.pack("<IHH", 42, 0, flags) + extra + b"\x01\xff\xff\0\0", INSIDE)


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([], None),
        ([(EventType.WRITE_ROWS, 0x11)], None),
        ([(EventType.UPDATE_ROWS, 0x11)], 0x11),
        ([(EventType.WRITE_ROWS, 0x01), (EventType.DELETE_ROWS, 0x11)], 0x11),
        ([(EventType.DELETE_ROWS, 0x10), (EventType.UPDATE_ROWS, 0x11)], 0x10),
        ([(EventType.DELETE_ROWS, 0x11), (EventType.PARTIAL_UPDATE_ROWS, 0x00)], 0),
        ([(EventType.DELETE_ROWS_V1, 0x03), (EventType.UPDATE_ROWS_V1, 0xFF02)], 2),
    ],
)
def test_the_flags_that_all_have_are_told(
    build: KernelBuild, events: list[tuple[EventType, int]], told: int | None
) -> None:
    binlog = BinlogBuilder()
    binlog.begin().table_map()
    for kind, flags in events:
        change(binlog, kind, flags)
    binlog.xid()
    assert [row["row_flags"] for row in transaction_rows(build, bytes(binlog.data)).rows] == [told]
