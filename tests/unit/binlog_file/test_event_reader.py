"""The one reader of binlog files: all events in order whatever a read gives, and what it says where a file is broken."""

import random
from array import array
from dataclasses import dataclass

import pytest

from protocol.binlog.layout import FIRST_EVENT
from protocol.columns.event_columns import whole_events
from protocol.kernel.codes import INFO_BAD_CHECKSUM, TABLE_ROW
from relay.binlog_file.broken import Broken
from relay.binlog_file.event_reader import EventReader, EventRun
from tests.support.binlog_builder import INSIDE, BinlogBuilder


@dataclass
class SlowDisk:
    """A file of which each read gives a few bytes only, as a file system may."""

    data: bytes
    most: int = 1 << 30
    bytes_read: int = 0

    @property
    def size(self) -> int:
        return len(self.data)

    def read_into(self, view: memoryview, offset: int) -> int:
        piece = self.data[offset : offset + min(len(view), self.most)]
        view[: len(piece)] = piece
        self.bytes_read += len(piece)
        return len(piece)


def filled(transactions: int = 20, checksum: bool = True) -> BinlogBuilder:
    binlog = BinlogBuilder(checksum=checksum)
    for number in range(transactions):
        binlog.transaction(*[40 + number] * 3)
    return binlog


def rows(run: EventRun) -> list["array[int]"]:
    return [run.table[at : at + TABLE_ROW] for at in range(0, run.rows * TABLE_ROW, TABLE_ROW)]


def places(reader: EventReader, start: int = FIRST_EVENT, stop: int | None = None) -> list[tuple[int, int]]:
    """Start and end of each event that is given out, until the file ends or breaks."""
    found = []
    try:
        for run in reader.runs(start, stop):
            found += [(row[0], row[0] + row[1]) for row in rows(run)]
    except Broken:
        pass
    return found


def broken(reader: EventReader, start: int = FIRST_EVENT, stop: int | None = None) -> Broken:
    with pytest.raises(Broken) as caught:
        for _run in reader.runs(start, stop):
            pass
    return caught.value


@pytest.mark.parametrize("most", [1, 7, 100, 4096, 1 << 20])
@pytest.mark.parametrize("table_rows", [1, 5, 1000])
def test_every_event_comes_once_and_in_order_however_little_a_read_gives(most: int, table_rows: int) -> None:
    binlog = filled(5)
    reader = EventReader(SlowDisk(bytes(binlog.data), most), table_rows=table_rows)
    assert places(reader) == [(event.start, event.end) for event in binlog.events]
    assert (reader.read_to, reader.unfinished, reader.cut_off()) == (binlog.size, None, None)


def test_a_part_of_the_file_needs_its_head_and_no_other_byte() -> None:
    binlog = filled(400)
    start, stop = binlog.boundaries[300], binlog.boundaries[320]
    disk = SlowDisk(bytes(binlog.data))
    reader = EventReader(disk, table_rows=100)
    assert places(reader, start, stop) == [
        (event.start, event.end) for event in binlog.events if start <= event.start < stop
    ]
    assert disk.bytes_read <= stop - start + 512


def test_parts_are_read_one_after_the_other_by_the_same_reader() -> None:
    binlog = filled(40)
    first, behind = binlog.boundaries[5], binlog.boundaries[30]
    reader = EventReader(SlowDisk(bytes(binlog.data)), table_rows=100)
    found = places(reader, FIRST_EVENT, first) + places(reader, behind, binlog.size)
    assert found == [
        (event.start, event.end) for event in binlog.events if event.start < first or event.start >= behind
    ]


def test_an_event_larger_than_what_is_read_at_once_is_whole_where_that_is_asked_for() -> None:
    binlog = BinlogBuilder().begin().table_map()
    binlog.event(30, b"\1" * 3_000_000, INSIDE).xid().transaction()
    reader = EventReader(SlowDisk(bytes(binlog.data)), table_rows=100, tolerant=True, whole_events=whole_events)
    found = []
    for run in reader.runs(FIRST_EVENT, binlog.size):
        for row in rows(run):
            at = row[0] - run.base
            found.append(bytes(run.buffer[at : at + row[1]]))
    assert b"".join(found) == bytes(binlog.data[4:])


def test_without_that_it_is_read_in_pieces_and_told_at_its_head() -> None:
    binlog = BinlogBuilder().begin().table_map()
    binlog.event(30, b"\1" * 3_000_000, INSIDE).xid().transaction()
    reader = EventReader(SlowDisk(bytes(binlog.data)), table_rows=100)
    assert places(reader) == [(event.start, event.end) for event in binlog.events]
    assert max(len(run.buffer) for run in EventReader(SlowDisk(bytes(binlog.data))).runs()) == 1 << 20


def test_all_bytes_are_handed_on_as_they_are_read() -> None:
    binlog = filled()
    passed: list[bytes] = []
    reader = EventReader(SlowDisk(bytes(binlog.data), 1000), on_read=lambda data: passed.append(bytes(data)))
    for _run in reader.runs():
        pass
    assert b"".join(passed) == bytes(binlog.data[4:])


def test_what_is_before_the_damage_comes_before_the_error() -> None:
    binlog = filled()
    bad = binlog.events[30]
    binlog.data[bad.start + 25] ^= 1
    reader = EventReader(SlowDisk(bytes(binlog.data)), table_rows=1000)
    assert places(reader) == [(event.start, event.end) for event in binlog.events[:30]]
    error = broken(EventReader(SlowDisk(bytes(binlog.data))))
    assert (error.name, error.offset) == ("checksum_mismatch", bad.start)
    assert str(error).startswith(f"at {bad.start}: checksum mismatch: checksum 0x")


def test_a_wrong_checksum_is_a_mark_in_the_row_where_damage_is_tolerated() -> None:
    binlog = filled()
    bad = binlog.events[30]
    binlog.data[bad.start + 25] ^= 1
    reader = EventReader(SlowDisk(bytes(binlog.data)), table_rows=1000, tolerant=True)
    marked = [row[0] for run in reader.runs() for row in rows(run) if row[7] & INFO_BAD_CHECKSUM]
    assert marked == [bad.start]


@pytest.mark.parametrize("cutter", [None, whole_events])
@pytest.mark.parametrize("size", [0, 5, 18, 22, (1 << 30) + 1])
def test_a_length_that_no_event_has_ends_the_reading(size: int, cutter: object) -> None:
    binlog = filled()
    bad = binlog.events[30]
    binlog.data[bad.start + 9 : bad.start + 13] = size.to_bytes(4, "little")
    reader = EventReader(SlowDisk(bytes(binlog.data)), table_rows=1000, tolerant=True, whole_events=cutter)  # type: ignore[arg-type]
    error = broken(reader, FIRST_EVENT, binlog.size)
    assert (error.name, error.offset) == ("event_length_wrong", bad.start)
    assert f"announces {size} bytes; that cannot be an event" in error.text


def test_a_file_that_begins_otherwise_cannot_be_read_from_its_middle() -> None:
    binlog = BinlogBuilder(header=False).transaction()
    error = broken(EventReader(SlowDisk(bytes(binlog.data))), binlog.events[1].start)
    assert (error.name, error.offset) == ("format_description_missing", FIRST_EVENT)


@pytest.mark.parametrize("left", [1, 12, 13, 18, 19, 30])
@pytest.mark.parametrize("cutter", [None, whole_events])
def test_a_file_that_ends_inside_an_event_says_where_and_how_much_is_there(left: int, cutter: object) -> None:
    binlog = filled()
    last = binlog.events[30]
    assert last.end - last.start > left
    data = bytes(binlog.data[: last.start + left])
    reader = EventReader(SlowDisk(data), table_rows=1000, tolerant=True, whole_events=cutter)  # type: ignore[arg-type]
    assert len(places(reader)) == 30
    assert reader.unfinished == (last.start, data[last.start :][:19])
    cut = reader.cut_off()
    assert cut is not None
    size = f"{last.end - last.start}" if left >= 13 else "at least 19"
    text = f"The event has {size} bytes, the file ends after {left} of them."
    assert (cut.name, cut.offset, cut.text) == ("event_truncated", last.start, text)


def test_a_file_that_ends_in_an_event_that_is_read_in_pieces_says_so_too() -> None:
    binlog = BinlogBuilder().begin().table_map()
    binlog.event(30, b"\1" * 3_000_000, INSIDE)
    large = binlog.events[-1]
    reader = EventReader(SlowDisk(bytes(binlog.data[:-10])), table_rows=1000, tolerant=True)
    assert places(reader)[-1] == (large.start, large.end)
    cut = reader.cut_off()
    assert cut is not None
    there = large.end - large.start - 10
    assert (cut.offset, f"ends after {there} of them" in cut.text) == (large.start, True)


def test_any_split_of_the_reads_gives_the_same_index_records() -> None:
    binlog = filled(2000)
    data = bytes(binlog.data)
    wanted = b"".join(run.records for run in EventReader(SlowDisk(data)).runs())
    assert len(wanted) > 24 * 5
    for seed in range(5):
        most = random.Random(seed).randrange(100, 300_000)
        assert b"".join(run.records for run in EventReader(SlowDisk(data, most)).runs()) == wanted, most
