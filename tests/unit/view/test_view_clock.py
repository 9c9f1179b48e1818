"""Which transactions a replica may apply at the same time, where the source said it and a transaction became two."""

import struct
from pathlib import Path

from protocol.binlog.gtid_event import Gtid, decode_gtid
from relay.archive.archive import Archive
from tests.support.archive_filling import fill
from tests.support.event_stream import EventStream, query_body, raw_event, rows_body
from tests.support.event_stream import format_body as format_of
from tests.support.kernel_builds import KernelBuild
from tests.support.view_making import made_view, marked, settings, until_made
from tests.support.view_oracle import events_of

LENGTHS_OF_57 = bytes.fromhex("380d0008001200040404041200005f00041a08000000080808020000000a0a0a2a2a0012340000")


def anonymous(number: int, last_committed: int) -> bytes:
    """An Anonymous_gtid's body as 5.7 writes it."""
    return b"\1" + bytes(24) + b"\2" + struct.pack("<qq", last_committed, number)


def binlog_of_57() -> bytes:
    made = EventStream(checksum=True, with_format=False)
    made.add_raw(raw_event(15, format_of("5.7.44-log", LENGTHS_OF_57, 1), offset=4))
    begin, table_map = query_body("BEGIN"), struct.pack("<IHH", 7, 0, 1) + b"\x01d\0\x01t\0\x01\x03\x00\x01"
    for number, last_committed in ((1, 0), (2, 0), (3, 1)):
        made.add(34, anonymous(number, last_committed)).add(2, begin).add(19, table_map).add(30, rows_body()).add(
            16, bytes(8)
        )
    made.add(34, anonymous(4, 3)).add(2, begin).query("CREATE TABLE `t` (\n  `a` int(11)\n)").add(19, table_map)
    made.add(30, rows_body()).add(16, bytes(8))
    for number in (5, 6):
        made.add(34, anonymous(number, 4)).add(2, begin).add(19, table_map).add(30, rows_body()).add(16, bytes(8))
    return b"\xfebin" + made.data


def gtids_in(data: bytes) -> list[Gtid]:
    return [decode_gtid(event[19:-4]) for event in events_of(data[4:]) if event[4] == 33]


async def test_behind_a_transaction_that_became_two_each_waits_for_the_one_before(tmp_path: Path) -> None:
    await fill(tmp_path, ("mysql-bin.000001", marked(binlog_of_57())))
    mirror = await Archive.open(tmp_path)
    async with made_view(mirror, settings()) as view:
        await until_made(view)
        made = gtids_in((view.directory / "mysql-bin.000001").read_bytes())
    await mirror.close()
    assert [gtid.gno for gtid in made] == [1, 2, 3, 4, 5, 6, 7]
    numbers = [(gtid.last_committed, gtid.sequence_number) for gtid in made]
    # As the source said up to the CREATE; its rows, and what the source let run beside them, one after the other.
    assert numbers == [(0, 1), (0, 2), (1, 3), (3, 4), (4, 5), (5, 6), (6, 7)]


async def test_what_the_source_lets_run_together_stays_so_where_nobody_knows_the_rows(tmp_path: Path) -> None:
    await fill(tmp_path, ("mysql-bin.000001", marked(binlog_of_57())))
    mirror = await Archive.open(tmp_path)
    async with made_view(mirror, settings(dependencies="writeset")) as view:
        await until_made(view)
        made = gtids_in((view.directory / "mysql-bin.000001").read_bytes())
    await mirror.close()
    numbers = [(gtid.last_committed, gtid.sequence_number) for gtid in made]
    # The second names none, which replicas take for all. Behind the two that the CREATE became the source's numbers count again.
    assert numbers == [(0, 1), (1, 2), (1, 3), (3, 4), (4, 5), (5, 6), (5, 7)]


def test_the_sources_numbers_are_followed_as_long_as_they_are_without_a_gap(build: KernelBuild) -> None:
    waits = build.group_waits.GroupWaits(None)
    waits.begin_file(8)
    told = [(0, 10), (9, 11), (10, 12), (10, 13), (10, 15), (13, 16), (15, 17), (30, 18), (0, 19), (-5, 20), (18, 21)]
    said = [waits.wait_of(number, True, *of_source) for number, of_source in enumerate(told, 1)]
    assert said == [0, 1, 1, 1, 4, 4, 5, 7, 8, 9, 8]
    assert waits.wait_of(12, False, 0, 0) == 11
    assert waits.wait_of(13, True, 1, 22) == 12
    assert (waits.groups, waits.beside) == (13, 5)
