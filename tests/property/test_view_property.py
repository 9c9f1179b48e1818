"""A view's bytes: what the kernel makes is what the book says, however the source was cut and whatever room there was."""

import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.kernel import codes
from tests.support.event_stream import EventStream, query_body, rows_body, walk
from tests.support.kernel_builds import KernelBuild, builds
from tests.support.view_oracle import OracleSettings, ViewOracle, groups_of

BUILDS = pytest.mark.parametrize("build", builds(), ids=lambda build: str(build.name))
LIMITS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
POLICIES = {"keep": codes.VIEW_KEEP, "assign": codes.VIEW_ASSIGN, "anonymous": codes.VIEW_ANONYMOUS}
NO_LOOKS = bytes(256)
BEGIN, XID = (2, query_body("BEGIN")), (16, bytes(8))


def load_body(status: bytes) -> bytes:
    """Of LOAD DATA behind its blocks."""
    body = query_body("LOAD DATA INFILE 'f' INTO TABLE t", status=status)
    return body[:13] + struct.pack("<IIIB", 1, 9, 15, 0) + body[13:]


def gtid_of_8_0(kind: int, moved: bool, width: int) -> tuple[int, bytes]:
    """A GTID event that tells its transaction's length, in so many bytes; moved: and the time of another commit."""
    time = (5 | moved << 55).to_bytes(7, "little") + (4).to_bytes(7, "little") * moved
    told = {0: b"\xfb", 1: b"\x99", 2: b"", 3: b"\xfc\x99\1", 4: b"\xfd\x99\1\0", 9: b"\xfe\x99" + bytes(7)}[width]
    body = b"\1" + b"u" * 16 + struct.pack("<qBqq", 7, 2, 1, 2) + time + told
    return kind, body + (struct.pack("<I", 80036) if width > 2 else b"")


gtids_of_8_0 = st.builds(gtid_of_8_0, st.sampled_from([33, 34]), st.booleans(), st.sampled_from([0, 1, 2, 3, 4, 9]))

fixed = st.sampled_from([(0, 4), (1, 8), (3, 4), (4, 6), (7, 2), (8, 2), (9, 8), (10, 4), (13, 3)])
texts = st.binary(max_size=12).map(lambda text: bytes([len(text)]) + text)
known = st.one_of(
    fixed.flatmap(lambda one: st.binary(min_size=one[1], max_size=one[1]).map(lambda value: (one[0], value))),
    texts.map(lambda text: (2, text + b"\0")),
    st.tuples(st.sampled_from([5, 6]), texts),
    st.tuples(texts, texts).map(lambda two: (11, b"".join(two))),
    st.lists(st.sampled_from([b"d\0", b"\0", b"x" * 190 + b"\0"]), max_size=16).map(
        lambda names: (12, bytes([len(names)]) + b"".join(names))
    ),
    st.sampled_from([(12, b"\xfe"), (12, b"\x11")]),
)
behind = st.sampled_from(
    [b"", b"", b"\x10\0", b"\x10\1", b"\x10\0\x11" + bytes(8), b"\x0e", b"\x80abc", b"\x12\xff\0\x10\1"]
)
statuses = st.tuples(st.lists(known, max_size=8, unique_by=lambda one: one[0]).map(sorted), behind).map(
    lambda drawn: b"".join(bytes([code]) + value for code, value in drawn[0]) + drawn[1]
)
plain = st.sampled_from(["INSERT INTO t VALUES (1)", "update t SET a = 1", "replace t VALUES (1)", "SAVEPOINT `s`"])
statements = st.one_of(
    st.tuples(plain, statuses).map(lambda drawn: (2, query_body(drawn[0], status=drawn[1]))),
    statuses.map(lambda status: (18, load_body(status))),
    st.integers(0, 400).map(lambda size: (2, query_body("INSERT INTO t VALUES ('" + "x" * size + "')"))),
    st.sampled_from(
        [
            (2, query_body("update t SET a = 1")),
            (2, query_body("/* app */ delete FROM t", status=b"\0\0\0\0\0")),
            (2, query_body("REPLACE t VALUES (1)")),
            (2, query_body("SAVEPOINT `s`")),
            (5, bytes(9)),
        ]
    ),
)
changes = st.sampled_from([23, 24, 25, 30, 31, 32]).flatmap(
    lambda kind: st.integers(1, 300).map(lambda size: [(19, bytes(20)), (kind, rows_body(data=b"r" * size))])
)
groups = st.one_of(
    st.lists(statements, max_size=4).map(lambda inner: [BEGIN, *inner, XID]),
    st.lists(changes, max_size=3).map(lambda inner: [BEGIN, *(event for pair in inner for event in pair), XID]),
    st.lists(statements, max_size=2).map(lambda inner: [BEGIN, *inner, (2, query_body("COMMIT"))]),
    st.integers(1, 999).map(lambda n: [(34, b"\0" + bytes(24) + b"\2" + struct.pack("<qq", n - 1, n)), BEGIN, XID]),
    st.just([(33, b"\1" + b"u" * 16 + bytes(8)), BEGIN, XID]),
    st.tuples(gtids_of_8_0, st.lists(changes, max_size=3)).map(
        lambda drawn: [drawn[0], BEGIN, *(event for pair in drawn[1] for event in pair), XID]
    ),
    st.tuples(gtids_of_8_0, statements).map(lambda drawn: [drawn[0], BEGIN, drawn[1], XID]),
    st.just([(2, query_body("insert INTO t VALUES (2)"))]),
)
sources = st.tuples(st.lists(groups, min_size=1, max_size=6), st.booleans())
wanted = st.builds(
    OracleSettings,
    policy=st.sampled_from(sorted(POLICIES)),
    layout=st.sampled_from([codes.VIEW_BARE, codes.VIEW_CLOCK, codes.VIEW_TIMES]),
    explicit=st.sampled_from([-1, 0, 1]),
    new_rows=st.booleans(),
    strips=st.booleans(),
)


def archived(drawn: tuple[list[list[tuple[int, bytes]]], bool]) -> tuple[bytes, bytes]:
    """The file's format description, and the groups as an archive has them, with markers."""
    steps, checksum = drawn
    stream = EventStream(checksum=checksum)
    head = len(stream.data)
    for group in steps:
        for kind, body in group:
            stream.add(kind, body)
    data = walk(builds()[-1], stream.data, packets=False).produced
    return data[:head], data[head:]


def copier(build: KernelBuild, head: bytes, given: OracleSettings, *, checksum: bool) -> Any:
    copy = build.view_copy.ViewCopy(
        POLICIES[given.policy], given.uuid.bytes, NO_LOOKS, given.layout, given.explicit, given.new_rows
    )
    lengths = b"\0" + head[19 + 57 : len(head) - 5]
    copy.begin_file(lengths.ljust(256, b"\0"), int(checksum), int(checksum and not given.strips), given.server_version)
    copy.position = 1000
    return copy


def by_the_book(data: bytes, given: OracleSettings, *, checksum: bool) -> bytes:
    return ViewOracle(replace(given, checksum=checksum), 1000).view_of(groups_of(data))


@BUILDS
@LIMITS
@given(drawn=sources, given_settings=wanted)
def test_plain_groups_are_copied_as_the_book_says(
    build: KernelBuild, drawn: tuple[list[list[tuple[int, bytes]]], bool], given_settings: OracleSettings
) -> None:
    head, data = archived(drawn)
    checksum = drawn[1]
    copy = copier(build, head, given_settings, checksum=checksum)
    out = bytearray(len(data) * 2 + 4096)
    status = copy.copy(data, 0, len(data), out, 0)
    expected = by_the_book(data, given_settings, checksum=checksum)
    assert (status, copy.consumed, bytes(out[: copy.produced])) == (codes.VIEW_MORE, len(data), expected)
    assert copy.position == 1000 + len(expected)


@BUILDS
@LIMITS
@given(drawn=sources, given_settings=wanted, room=st.integers(codes.VIEW_LONGEST_GTID, 900), cut=st.floats(0, 1))
def test_a_group_in_pieces_is_what_it_is_whole(
    build: KernelBuild,
    drawn: tuple[list[list[tuple[int, bytes]]], bool],
    given_settings: OracleSettings,
    room: int,
    cut: float,
) -> None:
    head, data = archived(drawn)
    checksum = drawn[1]
    expected = by_the_book(data, given_settings, checksum=checksum)
    copy = copier(build, head, given_settings, checksum=checksum)
    made = bytearray()
    for group in groups_of(data):
        source = b"".join(group)
        places = sorted({int(cut * len(source)), len(source)})
        copy.scan_begin()
        held = 0
        for place in places:
            status = copy.scan(source, held, place, True)
            held = copy.consumed
        assert (status, copy.group_stop) == (codes.VIEW_GROUP, len(source))
        first = group[0][4]
        has_gtid = given_settings.policy == "keep" or first in (33, 34)
        if first in (33, 34):
            return  # its numbers are followed by `copy`, and by who calls `emit`
        out = bytearray(room)
        at = 0
        if not has_gtid:
            at = copy.gtid(out, 0, copy.group_size, copy.group_time, copy.group_server)
        else:
            copy.sequence += 1
        copy.scan_begin()
        begins, held = has_gtid, 0
        for place in places:
            while True:
                status = copy.emit(source, held, place, out, at, begins, len(source))
                begins = begins and copy.consumed == held
                held, at = copy.consumed, copy.produced
                if status == codes.VIEW_MORE:
                    break
                assert status == codes.VIEW_ROOM and at > 0
                made += out[:at]
                at = 0
        assert held == len(source)
        made += out[:at]
    assert bytes(made) == expected


@BUILDS
@LIMITS
@given(drawn=sources, place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_of_a_group_with_a_changed_bit_nothing_is_copied(
    build: KernelBuild, drawn: tuple[list[list[tuple[int, bytes]]], bool], place: float, bit: int
) -> None:
    head, data = archived((drawn[0], True))
    at = int(place * len(data))
    damaged = bytearray(data)
    damaged[at] ^= 1 << bit
    copy = copier(build, head, OracleSettings(), checksum=True)
    out = bytearray(len(data) * 2 + 4096)
    status = copy.copy(damaged, 0, len(data), out, 0)
    groups_before, end = [], 0
    for group in groups_of(data):
        end += sum(map(len, group))
        if end > at:
            break
        groups_before.append(group)
    expected = ViewOracle(OracleSettings(), 1000).view_of(groups_before)
    assert bytes(out[: copy.produced]) == expected
    assert status != codes.VIEW_ROOM
    assert copy.consumed <= at
