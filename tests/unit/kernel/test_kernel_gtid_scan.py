"""The scanner of GTIDs: the same rows however its input is cut, in both builds, and against a slow and plain reading."""

import struct
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.binlog.gtid_event import Gtid, encode_gtid
from protocol.kernel.codes import SCAN_ROW
from tests.support.gtid_stream import ALONE, END, HEADER, INSIDE, START, event, gtid_event, mariadb_event
from tests.support.kernel_builds import KernelBuild, builds


@dataclass
class File:
    """A file's events with what they should be counted as. `held`: (offset, key, number) of each whole transaction."""

    data: bytearray = field(default_factory=bytearray)
    held: list[tuple[int, bytes, int]] = field(default_factory=list)
    anonymous: int = 0

    def transaction(self, head: bytes, key: bytes | None, number: int, sizes: list[int]) -> None:
        start = 4 + len(self.data)
        self.data += head
        for size in sizes[:-1]:
            self.data += event(30, bytes(size), INSIDE)
        self.data += event(16, bytes(sizes[-1]), END)
        if key is None:
            self.anonymous += 1
        else:
            self.held.append((start, key, number))


U = [bytes(16), bytes(range(16)), b"\xff" * 16, b"\xff" * 16 + b"tag", bytes(16) + b"_9"]
SIZES = st.lists(st.integers(0, 300), min_size=1, max_size=3)
MYSQL_STEP = st.tuples(st.sampled_from([*U, None]), st.integers(1, 6) | st.integers(1, 2**63 - 2), SIZES)
MARIADB_STEP = st.tuples(
    st.tuples(st.sampled_from([0, 1, 2**32 - 1]), st.sampled_from([1, 2**32 - 1])), st.integers(0, 2**63 - 1), SIZES
)


def fed(build: KernelBuild, data: bytes, pieces: list[int], gap_bytes: int) -> Any:
    """A scanner that took `data` in pieces of these sizes, over and over."""
    scanner = build.gtid_scan.GtidScanner(gap_bytes)
    waiting = b""
    at = turn = 0
    while at < len(data):
        size = pieces[turn % len(pieces)]
        turn += 1
        waiting += data[at : at + size]
        at += size
        waiting = waiting[scanner.feed(waiting, 0, len(waiting)) :]
    assert waiting == b""
    scanner.finish()
    return scanner


def check(file: File, pieces: list[int], gap_bytes: int) -> None:
    tables = []
    for build in builds():
        scanner = fed(build, bytes(file.data), pieces, gap_bytes)
        assert scanner.problem is None
        assert scanner.position == 4 + len(file.data)
        assert scanner.transactions == len(file.held) + file.anonymous
        assert scanner.anonymous == file.anonymous
        flat = scanner.take_rows()
        rows = [tuple(flat[at : at + SCAN_ROW]) for at in range(0, len(flat), SCAN_ROW)]
        keys = [scanner.source_key(number) for number in range(scanner.source_count)]
        assert len(set(keys)) == len(keys)
        tables.append((rows, keys))
        found = set()
        place = -1
        for start, source, first, last, _serial in rows:
            assert start >= place
            place = start
            if source >= 0:
                found |= {(start, keys[source], number) for number in range(first, last + 1)}
        blocks = [(start, stop) for start, source, _a, _t, stop in rows if source < 0]
        assert all(stop - start >= gap_bytes for start, stop in blocks[:-1])
        wanted = set()
        for offset, key, number in file.held:
            (home,) = [start for start, stop in blocks if start <= offset < stop]
            wanted.add((home, key, number))
        assert found == wanted
        assert sum(anonymous for _s, source, anonymous, _t, _e in rows if source < 0) == file.anonymous
    assert all(table == tables[0] for table in tables)


@settings(deadline=None)
@given(st.lists(MYSQL_STEP, max_size=12), st.lists(st.integers(1, 400), min_size=1, max_size=5), st.integers(0, 900))
def test_each_transaction_of_mysql_is_in_its_stretch_however_the_input_is_cut(
    steps: list[tuple[bytes | None, int, list[int]]], pieces: list[int], gap_bytes: int
) -> None:
    file = File()
    for key, gno, sizes in steps:
        head = event(34, encode_gtid(Gtid(0, UUID(int=0), 0)), START) if key is None else b""
        file.transaction(head or gtid_event(key or b"", gno), key, gno, sizes)
    check(file, pieces, gap_bytes)


@settings(deadline=None)
@given(st.lists(MARIADB_STEP, max_size=12), st.lists(st.integers(1, 400), min_size=1, max_size=5), st.integers(0, 900))
def test_each_group_of_mariadb_is_in_its_stretch_however_the_input_is_cut(
    steps: list[tuple[tuple[int, int], int, list[int]]], pieces: list[int], gap_bytes: int
) -> None:
    file = File()
    for (domain, server), number, sizes in steps:
        key = struct.pack("<II", domain, server)
        file.transaction(mariadb_event(domain, server, number), key, number, sizes)
    check(file, pieces, gap_bytes)


KEY = bytes(range(16))


def rows_of(build: KernelBuild, *events: bytes, gap_bytes: int = 0) -> tuple[Any, list[tuple[int, ...]]]:
    data = b"".join(events)
    scanner = fed(build, data, [len(data)], gap_bytes)
    flat = scanner.take_rows()
    return scanner, [tuple(flat[at : at + SCAN_ROW]) for at in range(0, len(flat), SCAN_ROW)]


def test_a_transaction_without_its_end_does_not_count(build: KernelBuild) -> None:
    scanner, rows = rows_of(build, gtid_event(KEY, 1), event(30, b"", INSIDE))
    assert rows == []
    assert scanner.in_group
    scanner, rows = rows_of(build, gtid_event(KEY, 1), gtid_event(KEY, 2), event(16, b"", END))
    assert [row[2] for row in rows if row[1] >= 0] == [2]


def test_what_was_cut_back_is_forgotten_and_counts_when_it_comes_again(build: KernelBuild) -> None:
    whole = gtid_event(KEY, 1) + event(16, b"", END)
    scanner = build.gtid_scan.GtidScanner(0)
    part = whole + gtid_event(KEY, 2) + b"half of a header"
    scanner.feed(part, 0, len(part))
    scanner.begin(4 + len(whole))
    again = gtid_event(KEY, 3) + event(16, b"", END)
    scanner.feed(again, 0, len(again))
    scanner.finish()
    flat = scanner.take_rows()
    assert [flat[at + 2] for at in range(0, len(flat), SCAN_ROW) if flat[at + 1] >= 0] == [1, 3]


def test_in_a_file_without_markers_a_transaction_ends_where_the_next_begins(build: KernelBuild) -> None:
    scanner, rows = rows_of(build, gtid_event(KEY, 1, 0), event(30, b""), gtid_event(KEY, 2, 0), event(4, b"\4" * 20))
    assert scanner.transactions == 2
    assert [row[2] for row in rows if row[1] >= 0] == [1, 2]


def test_transactions_of_servers_without_gtids_are_counted_by_their_markers(build: KernelBuild) -> None:
    scanner, _rows = rows_of(
        build,
        event(2, b"BEGIN", START), event(30, b"", INSIDE), event(16, b"", END),
        event(2, b"CREATE", ALONE), event(26, b"", ALONE), event(4, b"\4" * 20, ALONE),
    )  # fmt: skip
    assert (scanner.transactions, scanner.anonymous) == (2, 2)


def test_what_has_no_gtid_event_belongs_to_the_numbered_transaction_before_it_and_starts_no_stretch(
    build: KernelBuild,
) -> None:
    """MySQL 5.6 logs several DROP TEMPORARY TABLE of a stored function so."""
    first = gtid_event(KEY, 1) + event(2, b"DROP a", END)
    more = event(2, b"DROP b", ALONE) + event(2, b"BEGIN", START) + event(16, b"", END)
    scanner, rows = rows_of(build, first, more, gtid_event(KEY, 2), event(16, b"", END))
    assert (scanner.transactions, scanner.anonymous) == (2, 0)
    assert [row[0] for row in rows if row[1] < 0] == [4, 4 + len(first) + len(more)]


def test_a_transaction_after_an_anonymous_one_has_no_number(build: KernelBuild) -> None:
    scanner, _rows = rows_of(
        build,
        gtid_event(KEY, 1), event(2, b"DROP a", END), event(34, bytes(25), START), event(2, b"DROP b", END), event(2, b"DROP c", ALONE),
    )  # fmt: skip
    assert (scanner.transactions, scanner.anonymous) == (3, 2)


def test_the_head_of_the_file_is_captured_whole(build: KernelBuild) -> None:
    previous = event(35, bytes(range(200)))
    data = previous + gtid_event(KEY, 1) + event(16, b"", END)
    for size in (1, 7, 10_000):
        scanner = fed(build, data, [size], 0)
        assert (scanner.captured_type, bytes(scanner.captured)) == (35, previous)
        assert scanner.transactions == 1


def test_an_artificial_list_is_passed_over(build: KernelBuild) -> None:
    scanner, _rows = rows_of(build, event(163, bytes(6), 0x20))
    assert scanner.captured is None


def test_more_sources_than_there_was_room_for_are_kept_apart(build: KernelBuild) -> None:
    keys = [number.to_bytes(16, "big") for number in range(1, 700)]
    scanner, rows = rows_of(build, *(gtid_event(key, 5) + event(16, b"", END) for key in keys * 2), gap_bytes=1 << 30)
    assert [scanner.source_key(number) for number in range(scanner.source_count)] == keys
    assert len(rows) == 2 * len(keys) + 1
    with pytest.raises(IndexError):
        scanner.source_key(len(keys))


@pytest.mark.parametrize(
    "bad",
    [
        HEADER.pack(7, 30, 1, 18, 0, 0) + bytes(20),
        HEADER.pack(7, 30, 1, 0, 0, 0) + bytes(20),
        gtid_event(KEY, 0),
        gtid_event(KEY, -1),
        gtid_event(KEY, 2**63 - 1),
        event(33, bytes(20)),
        event(162, bytes(8)),
        event(42, b""),
        event(42, b"\2\x20\0\0\2"),
        event(42, b"\2\x20\0\4\4\6\x42" + b"a" * 33),
        event(42, b"\2\x20\0\4\4\6\2A"),
        event(42, b"\2\x20\0\4\4\6\x10ab"),
        event(42, b"\2\x20\0\4\2\6\2a"),
        event(42, b"\2\x20\0\2" + b"\xff" * 60),
        gtid_event(KEY + b"t", 0),
    ],
)  # fmt: skip
def test_what_cannot_be_stops_the_scanner_where_it_stands(build: KernelBuild, bad: bytes) -> None:
    good = gtid_event(KEY, 1) + event(16, b"", END)
    scanner = build.gtid_scan.GtidScanner(0)
    data = good + bad + good
    assert scanner.feed(data, 0, len(data)) == len(good)
    assert scanner.problem is not None
    assert (scanner.position, scanner.transactions) == (4 + len(good), 1)


def test_the_shortest_tagged_gtid_is_taken(build: KernelBuild) -> None:
    # What those above would be without their one fault.
    scanner, rows = rows_of(build, event(42, b"\2\x20\0\4\4\6\2a", START), event(16, b"", END))
    assert scanner.problem is None
    assert [row[2] for row in rows if row[1] >= 0] == [1]
    assert scanner.source_key(0) == bytes(16) + b"a"


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([2, 33, 34, 35, 42, 162, 163]), st.binary(max_size=80)), max_size=6))
def test_any_bodies_are_taken_alike_by_both_builds(bodies: list[tuple[int, bytes]]) -> None:
    data = b"".join(event(kind, body, START) + event(16, b"", END) for kind, body in bodies)
    seen = []
    for build in builds():
        scanner = build.gtid_scan.GtidScanner(0)
        used = scanner.feed(data, 0, len(data))
        scanner.finish()
        keys = [scanner.source_key(number) for number in range(scanner.source_count)]
        seen.append((used, scanner.problem, scanner.position, list(scanner.take_rows()), keys, scanner.transactions))
    assert all(one == seen[0] for one in seen)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (3, 2), (0, 5)])
def test_a_range_outside_of_the_input_is_an_index_error(build: KernelBuild, start: int, stop: int) -> None:
    with pytest.raises(IndexError):
        build.gtid_scan.GtidScanner().feed(bytes(4), start, stop)
