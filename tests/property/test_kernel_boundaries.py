"""Kernel, readable parser and oracle agree on every sequence of events, sensible or not, in any cuts."""

import struct
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.binlog.boundary import BoundaryParser, BoundaryType
from tests.support import boundary_oracle
from tests.support.boundary_oracle import Judged, Oracle
from tests.support.event_stream import EventStream, packetise, query_body, rows_body, walk
from tests.support.kernel_builds import KernelBuild, builds

# A step of a stream: type, body, flags.
Step = tuple[int, bytes, int]
Group = list[Step]

BUILDS = pytest.mark.parametrize("build", builds(), ids=lambda build: str(build.name))
LIMITS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def query(text: str, status: bytes = b"") -> Step:
    return (2, query_body(text, status=status), 0)


def load_begin(file_id: int) -> Step:
    return (17, struct.pack("<I", file_id) + b"1,a\n", 0)


def load_query(file_id: int) -> Step:
    return (18, struct.pack("<IIBHH", 7, 0, 4, 0, 0) + struct.pack("<IIIB", file_id, 9, 37, 0) + b"test\0LOAD DATA", 0)


def create_file(file_id: int) -> Step:
    load = struct.pack("<IIIBBI", 7, 0, 0, 1, 4, 1)
    return (8, load + struct.pack("<I", file_id) + b'\x01,\x01"\x01\n\0\0t\0test\0f\0data', 0)


def mariadb_gtid(flags2: int) -> Step:
    return (162, struct.pack("<QIB6x", 77, 0, flags2), 8)


TEXTS = [
    "BEGIN", "begin", "COMMIT", "commit", "ROLLBACK", "rollback", "ROLLBACK TO `s`", "rollback to savepoint s",
    "ROLLBACK WORK TO SAVEPOINT s", "ROLLBACK\nTO s", "Rollback  work\tto s", "ROLLBACK/* COMMIT */TO`s`",
    "ROLLBACK /* x", "ROLLBACK AND CHAIN", "SAVEPOINT `s`", "savepoint s",
    "XA START X'61',X'',1", "XA END X'61',X'',1", "XA PREPARE X'61',X'',1", "XA COMMIT X'61',X'',1",
    "XA ROLLBACK X'61',X'',1", "xa rollback 'a'", "INSERT INTO t VALUES (1)", "CREATE TABLE t (a INT)", "B", "COMMITS",
    "BEGINS", "/* COMMIT */ DROP TABLE t", "XA", "", " BEGIN", "BEGIN ", "ROLLBAC", "RELEASE SAVEPOINT s",
]  # fmt: skip

STATUS = st.sampled_from([b"", b"\0\0\0\0\0", bytes(range(60)), b"\x55" * 300])
FILE_IDS = st.integers(1, 3)
ROWS_TYPES = [20, 21, 22, 23, 24, 25, 30, 31, 32, 39, 166, 167, 168, 169, 170, 171]

queries = st.builds(lambda text, status: query(text, status), st.sampled_from(TEXTS), STATUS)
loads = st.one_of(
    st.builds(load_begin, FILE_IDS),
    st.builds(load_query, FILE_IDS),
    st.builds(create_file, FILE_IDS),
    st.builds(
        lambda kind, file_id: (kind, struct.pack("<I", file_id) + b"block", 0), st.sampled_from([9, 10, 11]), FILE_IDS
    ),
)
rows = st.builds(lambda kind, last: (kind, rows_body(last), 0), st.sampled_from(ROWS_TYPES), st.booleans())
gtids = st.one_of(
    st.sampled_from([(33, bytes(25), 0), (34, bytes(42), 0), (42, bytes(30), 0)]),
    st.builds(mariadb_gtid, st.sampled_from([0, 1, 0x08, 0x0C, 0x29, 0x4C, 0x8D])),
)
plain = st.sampled_from(
    [1, 3, 5, 6, 7, 12, 13, 14, 16, 19, 26, 28, 29, 35, 36, 37, 38, 40, 160, 161, 163, 164, 165, 172]
).map(lambda kind: (kind, bytes(24), 0x80 if kind == 164 else 0))
artificial = st.sampled_from([(163, bytes(4), 0x20), (4, bytes(8) + b"mysql-bin.000002", 0x20)])
strange = st.builds(
    lambda kind, flags: (kind, b"strange", flags),
    st.sampled_from([0, 43, 99, 127, 159, 173, 255]),
    st.sampled_from([0, 0x80]),
)
any_step = st.one_of(queries, queries, loads, rows, gtids, plain, plain, strange, artificial)


# --- what healthy servers write -------------------------------------------------------------------------------------

MAP: Step = (19, bytes(20), 0)


@st.composite
def row_statement(draw: Any, kinds: Iterable[int] = (30, 31, 32), extra: int = 29) -> Group:
    """A statement in row format: its text, table maps, rows events, the last with STMT_END_F."""
    kind = draw(st.sampled_from(list(kinds)))
    steps: Group = [(extra, b"\0INSERT", 0x80)] if draw(st.booleans()) else []
    steps += [MAP] * draw(st.integers(1, 2))
    steps += [(kind, rows_body(False), 0)] * draw(st.integers(0, 2))
    return [*steps, (kind, rows_body(True), 0)]


SEEDS: list[Step] = [(5, bytes(9), 0), (13, bytes(16), 0), (14, bytes(14), 0)]
seeds = st.lists(st.sampled_from(SEEDS), min_size=1, max_size=3)


@st.composite
def statement(draw: Any) -> Group:
    """A statement in statement format, in a transaction."""
    which = draw(st.integers(0, 4))
    if which == 0:
        return [query("INSERT INTO t VALUES (1)")]
    if which == 1:
        return [*draw(seeds), query("INSERT INTO t VALUES (RAND())")]
    if which == 2:
        return [query("SAVEPOINT `s`"), query("INSERT INTO t VALUES (2)"), query(draw(st.sampled_from(TEXTS[6:12])))]
    if which == 3:
        blocks = [(9, struct.pack("<I", 5) + b"x", 0)] * draw(st.integers(0, 2))
        return [load_begin(5), *blocks, *draw(st.just([]) | seeds), load_query(5)]
    return [query("CREATE TABLE t2 (a INT)")]


@st.composite
def old_group(draw: Any) -> Group:
    """A group of 4.x to 5.6 without GTIDs, the Start first and the End last."""
    which = draw(st.integers(0, 9))
    if which <= 3:
        inner = draw(st.lists(st.one_of(statement(), row_statement((20, 21, 23, 24, 25, 30))), max_size=3))
        end = draw(st.sampled_from([(16, bytes(8), 0), query("COMMIT"), query("ROLLBACK"), query("rollback")]))
        return [query("BEGIN"), *(step for group in inner for step in group), end]
    if which == 4:
        return [
            query(draw(st.sampled_from(["CREATE TABLE t (a INT)", "XA COMMIT 'a'", "XA ROLLBACK 'a'", "FLUSH TABLES"])))
        ]
    if which == 5:
        return [*draw(seeds), query("INSERT INTO t VALUES (@a)")]
    if which == 6:
        return draw(row_statement((20, 22, 23, 25)))
    if which == 7:
        blocks = [(9, struct.pack("<I", 7) + b"x", 0)] * draw(st.integers(0, 2))
        last = draw(st.sampled_from([load_query(7), (11, struct.pack("<I", 7), 0)]))
        others = draw(
            st.sampled_from([[], [query("INSERT INTO u VALUES (1)")], [query("BEGIN"), query("x"), (16, bytes(8), 0)]])
        )
        return [load_begin(7), *others, *blocks, *draw(st.just([]) | seeds), last]
    if which == 8:
        last = (draw(st.sampled_from([10, 11])), struct.pack("<I", 8), 0)
        return [
            *draw(st.just([]) | seeds),
            create_file(8),
            (9, struct.pack("<I", 8) + b"x", 0),
            *draw(st.just([]) | seeds),
            last,
        ]
    return [draw(st.sampled_from([(6, bytes(30), 0), (12, bytes(30), 0), (26, bytes(3), 0)]))]


@st.composite
def gtid_group(draw: Any) -> Group:
    """A group of MySQL 5.6 to 9.x behind its Gtid or Anonymous_gtid event."""
    gtid = draw(st.sampled_from([(33, bytes(42), 0), (34, bytes(42), 0), (42, bytes(30), 0)]))
    which = draw(st.integers(0, 9))
    if which <= 3:
        inner = draw(st.lists(st.one_of(statement(), row_statement((30, 31, 32, 39))), max_size=3))
        end = draw(st.sampled_from([(16, bytes(8), 0), query("COMMIT"), query("ROLLBACK")]))
        extra: Group = draw(st.sampled_from([[], [(37, bytes(60), 0)]]))
        return [gtid, query("BEGIN"), *extra, *(step for group in inner for step in group), end]
    if which == 4:
        return [gtid, query("CREATE TABLE t (a INT)")]
    if which == 5:
        return [gtid, *draw(seeds), query("CREATE TABLE t AS SELECT @a")]
    if which == 6:
        return [gtid, (40, bytes(50), 0)]
    if which == 7:
        inner = draw(st.lists(row_statement(), max_size=2))
        return [
            gtid,
            query("XA START X'61',X'',1"),
            *(s for g in inner for s in g),
            query("XA END X'61',X'',1"),
            (38, bytes(14), 0),
        ]
    if which == 8:
        return [gtid, query(draw(st.sampled_from(["XA COMMIT X'61',X'',1", "XA ROLLBACK X'61',X'',1"])))]
    return [gtid, (26, bytes(3), 0)]


@st.composite
def mariadb_group(draw: Any) -> Group:
    """A group of MariaDB 10.0 to 11.x behind its Gtid event."""
    which = draw(st.integers(0, 6))
    kinds = (23, 24, 25, 166, 167, 168)
    if which <= 2:
        inner = draw(st.lists(st.one_of(statement(), row_statement(kinds, 160)), max_size=3))
        if draw(st.booleans()):
            inner.append([(165, b"compressed" * 3, 0)])
        end = draw(st.sampled_from([(16, bytes(8), 0), query("COMMIT"), query("ROLLBACK"), (38, bytes(14), 0)]))
        return [mariadb_gtid(0x0C), *(step for group in inner for step in group), end]
    if which == 3:
        return [mariadb_gtid(0x29), query("CREATE TABLE t (a INT)")]
    if which == 4:
        return [
            mariadb_gtid(0x01),
            *draw(seeds),
            draw(st.sampled_from([query("INSERT INTO t VALUES (@a)"), (165, bytes(30), 0)])),
        ]
    if which == 5:
        return [mariadb_gtid(0x8D), query(draw(st.sampled_from(["XA COMMIT X'61',X'',1", "XA ROLLBACK X'61',X'',1"])))]
    inner = draw(st.lists(row_statement(kinds, 160), min_size=1, max_size=2))
    return [mariadb_gtid(0x4C), *(s for g in inner for s in g), query("XA END X'61',X'',1"), (38, bytes(14), 0)]


NEUTRAL: list[Step] = [(28, b"note", 0x80), (43, b"large", 0x80), (161, bytes(4) + b"x", 0), (99, b"new", 0)]
ALONE: list[Step] = [(35, bytes(8), 0), (163, bytes(4), 0), (36, bytes(30), 0)]


@st.composite
def healthy(draw: Any, groups: st.SearchStrategy[Group]) -> list[tuple[Step, int]]:
    """Groups with what may stand between and in them; each event with the boundary that it must get."""
    result: list[tuple[Step, int]] = []
    for group in draw(st.lists(groups, max_size=8)):
        if draw(st.integers(0, 4)) == 0:
            result.append((draw(st.sampled_from(ALONE)), boundary_oracle.SELF))
        for number, step in enumerate(group):
            if draw(st.integers(0, 7)) == 0:
                result.append((draw(st.sampled_from(NEUTRAL)), boundary_oracle.IGNORE))
            first, last = number == 0, number == len(group) - 1
            boundary = {
                (True, True): boundary_oracle.SELF,
                (True, False): boundary_oracle.START,
                (False, True): boundary_oracle.END,
            }.get((first, last), boundary_oracle.INSIDE)
            result.append((step, boundary))
    return result


# --- the comparison -------------------------------------------------------------------------------------------------


def stream_of(steps: Iterable[Step], *, checksum: bool, marks: Callable[[int], int] | None = None) -> EventStream:
    stream = EventStream(checksum=checksum, version="10.11.19-MariaDB-log")
    for number, (kind, body, flags) in enumerate(steps):
        stream.add(kind, body, flags=flags | (marks(number) << 10 if marks else 0), server_id=9)
    return stream


def body_of(event: bytes, checksum: bool) -> bytes:
    return event[:-4] if checksum or event[4] == 15 else event


def stamped(event: bytes, boundary: int, checksum: bool) -> bytes:
    """The event with its marker and a checksum that covers it, computed again."""
    marked = bytearray(event)
    marked[18] |= boundary << 2
    if checksum or event[4] == 15:
        marked[-4:] = struct.pack("<I", zlib.crc32(marked[:-4]))
    return bytes(marked)


def agree(build: KernelBuild, stream: EventStream, judged: list[Judged], cuts: list[int], packets: bool) -> None:
    """The kernel marks as judged, reports the same violations, and knows the same newest boundary."""
    data = packetise(stream.events) if packets else stream.data
    got = walk(build, data, cuts, packets=packets)
    assert (got.status < 16, got.error_text, got.left) == (True, "", 0)
    marked = [stamped(e, j.boundary, stream.checksum) for e, j in zip(stream.events, judged, strict=True)]
    at = 0
    for event, expected in zip(stream.events, marked, strict=True):
        assert got.produced[at : at + len(event)] == expected, f"type {event[4]} at {at + 4}"
        at += len(event)
    offset, violations = 4, []
    boundary, quiet, was_in = 4, False, False
    for event, judgement in zip(stream.events, judged, strict=True):
        if judgement.violation is not None:
            violations.append((offset, *judgement.violation, event[4]))
        starts = judgement.boundary == boundary_oracle.START
        if judgement.boundary != boundary_oracle.IGNORE:
            quiet = (
                not judgement.in_group
                and judgement.boundary in (boundary_oracle.INSIDE, boundary_oracle.END)
                and (judgement.violation is not None or not was_in)
            )
        if starts:
            boundary = offset
        offset += len(event)
        if not judgement.in_group and not quiet:
            boundary = offset
        was_in = judgement.in_group
    assert [row[:4] for row in got.violations] == violations
    assert (got.boundary, got.in_group, got.position) == (boundary, was_in, offset)


def split_points(data: st.DataObject, size: int) -> list[int]:
    return data.draw(st.lists(st.integers(1, max(size, 2)), max_size=12), label="cuts")


@BUILDS
@LIMITS
@given(steps=st.lists(any_step, max_size=40), checksum=st.booleans(), packets=st.booleans(), data=st.data())
def test_any_sequence_gets_the_boundaries_of_the_oracle(
    build: KernelBuild, steps: list[Step], checksum: bool, packets: bool, data: st.DataObject
) -> None:
    if packets:
        steps = [step for step in steps if not (step[0] == 4 and step[2] & 0x20)]
    stream = stream_of(steps, checksum=checksum)
    oracle = Oracle()
    judged = [oracle.judge(body_of(event, checksum)) for event in stream.events]
    agree(build, stream, judged, split_points(data, len(stream.data)), packets)


@BUILDS
@pytest.mark.parametrize("groups", [old_group(), gtid_group(), mariadb_group()], ids=["old", "gtid", "mariadb"])
@LIMITS
@given(data=st.data())
def test_a_healthy_stream_has_no_violation_and_each_group_one_start_and_one_end(
    build: KernelBuild, groups: st.SearchStrategy[Group], data: st.DataObject
) -> None:
    wanted = data.draw(healthy(groups))
    checksum = data.draw(st.booleans())
    stream = stream_of([step for step, _boundary in wanted], checksum=checksum)
    got = walk(build, packetise(stream.events), split_points(data, len(stream.data)))
    at = len(stream.events[0])
    marks = []
    for event in stream.events[1:]:
        marks.append(got.produced[at + 18] >> 2 & 7)
        at += len(event)
    assert (marks, got.violations) == ([boundary for _step, boundary in wanted], [])


@pytest.mark.parametrize("groups", [old_group(), gtid_group(), mariadb_group()], ids=["old", "gtid", "mariadb"])
@LIMITS
@given(data=st.data())
def test_the_oracle_itself_finds_no_fault_with_healthy_streams(
    groups: st.SearchStrategy[Group], data: st.DataObject
) -> None:
    wanted = data.draw(healthy(groups))
    oracle = Oracle()
    stream = stream_of([step for step, _boundary in wanted], checksum=False)
    judged = [oracle.judge(body_of(event, False)) for event in stream.events][1:]
    assert [(j.boundary, j.violation) for j in judged] == [(boundary, None) for _step, boundary in wanted]


@BUILDS
@LIMITS
@given(marks=st.lists(st.integers(1, 5), max_size=40), packets=st.booleans())
def test_marks_that_arrive_are_used_and_checked_by_the_readable_parser_and_the_kernel_alike(
    build: KernelBuild, marks: list[int], packets: bool
) -> None:
    stream = stream_of([(28, b"any", 0)] * len(marks), checksum=True, marks=lambda number: marks[number])
    parser = BoundaryParser()
    violations = []
    offset = 4 + len(stream.events[0])
    for event, mark in zip(stream.events[1:], marks, strict=True):
        violation = parser.feed(BoundaryType(mark))
        if violation is not None:
            violations.append((offset, int(violation.from_type), int(violation.to_type)))
        offset += len(event)
    got = walk(build, packetise(stream.events) if packets else stream.data, packets=packets)
    assert ([row[:3] for row in got.violations], got.in_group) == (violations, parser.in_group)
    assert got.produced[len(stream.events[0]) :] == stream.data[len(stream.events[0]) :]


@LIMITS
@given(
    steps=st.lists(st.tuples(any_step, st.integers(0, 7)), max_size=40),
    checksum=st.booleans(),
    stamp=st.booleans(),
    data=st.data(),
)
def test_both_builds_agree_on_streams_that_are_marked_in_part(
    steps: list[tuple[Step, int]], checksum: bool, stamp: bool, data: st.DataObject
) -> None:
    stream = stream_of([step for step, _mark in steps], checksum=checksum, marks=lambda number: steps[number][1])
    cuts = split_points(data, len(stream.data))
    results = [walk(build, stream.data, cuts, packets=False, stamp=stamp) for build in builds()]
    results.append(walk(builds()[0], stream.data, packets=False, stamp=stamp))
    assert results.count(results[0]) == len(results)
