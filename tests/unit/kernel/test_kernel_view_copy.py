"""Which groups a view copies, and which it leaves to the rules."""

import zlib
from typing import Any

import pytest

from protocol.kernel import codes
from tests.support.event_stream import EventStream, query_body, walk
from tests.support.kernel_builds import KernelBuild

BEGIN, COMMIT = query_body("BEGIN"), query_body("COMMIT")


class View:
    """A kernel's, with what it made of one group. data: the group; status: what `copy` said."""

    def __init__(self, kernel: Any, data: bytes, *, copies: bool) -> None:
        self._kernel = kernel
        self.data = data
        self.status = -1
        if copies:
            out = bytearray(2 * len(data) + 4096)
            self.status = int(kernel.copy(data, 0, len(data), out, 0))
            self.made = bytes(out[: kernel.produced])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


def view_of(build: KernelBuild, *bodies: bytes | tuple[int, bytes], copies: bool = True) -> View:
    """Of a group of events: (type, body), or the bodies of Query events."""
    stream = EventStream()
    head = len(stream.data)
    for body in bodies:
        stream.add(*(body if isinstance(body, tuple) else (2, body)))
    data = walk(build, stream.data, packets=False).produced
    kernel: Any = build.view_copy.ViewCopy(codes.VIEW_ASSIGN, b"u" * 16, bytes(256), codes.VIEW_TIMES, 0, True)
    kernel.begin_file((b"\0" + data[19 + 57 : head - 5]).ljust(256, b"\0"), 1, 1, 50624)
    return View(kernel, data[head:], copies=copies)


def outcome(build: KernelBuild, *bodies: bytes, **wants: bool) -> int:
    """What `copy` says of a group of Query events with these bodies."""
    stream = EventStream()
    head = len(stream.data)
    for body in bodies:
        stream.add(2, body)
    data = walk(build, stream.data, packets=False).produced
    copy: Any = build.view_copy.ViewCopy(codes.VIEW_ASSIGN, b"u" * 16, bytes(256), codes.VIEW_TIMES, 0, True)
    copy.begin_file((b"\0" + data[19 + 57 : head - 5]).ljust(256, b"\0"), 1, 1, 50624)
    copy.wants_statements = wants.get("statements", False)
    return int(copy.copy(data[head:], 0, len(data) - head, bytearray(4096), 0))


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT)",
        "/*!50003 INSERT INTO t VALUES (1) */",
        "INSERTED",
        "GRANT ALL ON *.* TO u",
        "insert into mysql.user values (1)",
        "UPDATE t SET a = 1 WHERE b = 'MySQL'",
        "/* " + "a long word of the program " * 9 + "*/\n UPDATE mysql.user SET a = 1",
        "-- INSERT\nDROP TABLE t",
        "",
    ],
)
def test_what_may_need_a_rule_is_looked_at(build: KernelBuild, text: str) -> None:
    assert outcome(build, BEGIN, query_body(text), COMMIT) == codes.VIEW_LOOK


def test_a_change_in_the_schema_of_accounts_is_looked_at(build: KernelBuild) -> None:
    assert outcome(build, BEGIN, query_body("INSERT INTO t VALUES (1)", b"mysql"), COMMIT) == codes.VIEW_LOOK
    assert outcome(build, BEGIN, query_body("INSERT INTO t VALUES (1)", b"mysqlx"), COMMIT) == codes.VIEW_MORE


def test_what_failed_half_way_is_looked_at(build: KernelBuild) -> None:
    failed = bytearray(query_body("INSERT INTO t VALUES (1)"))
    failed[codes.QUERY_ERROR_AT] = 1
    assert outcome(build, BEGIN, bytes(failed), COMMIT) == codes.VIEW_LOOK


@pytest.mark.parametrize("end", ["ROLLBACK", "rollback"])
def test_what_is_rolled_back_is_looked_at(build: KernelBuild, end: str) -> None:
    assert outcome(build, BEGIN, query_body("INSERT INTO t VALUES (1)"), query_body(end)) == codes.VIEW_LOOK
    assert outcome(build, BEGIN, query_body("ROLLBACK TO `s`"), COMMIT) == codes.VIEW_LOOK


@pytest.mark.parametrize("text", ["INSERT INTO t VALUES (1)", "UPDATE t SET a = 1", "/* idr */ DELETE FROM t"])
def test_every_change_is_looked_at_where_statements_are_wanted(build: KernelBuild, text: str) -> None:
    assert outcome(build, BEGIN, query_body(text), COMMIT, statements=True) == codes.VIEW_LOOK
    assert outcome(build, BEGIN, query_body(text), COMMIT) == codes.VIEW_MORE


@pytest.mark.parametrize("cut", [0, 30, 1_000_000])
def test_a_changed_marker_in_a_scanned_group_is_damage_and_a_true_one_ends_it(build: KernelBuild, cut: int) -> None:
    stream = EventStream()
    head = len(stream.data)
    inside = stream.add(2, BEGIN).offset - 4 - head
    stream.query("INSERT INTO t VALUES (1)").add(2, COMMIT)
    data = bytearray(walk(build, stream.data, packets=False).produced)
    group = data[head:]
    length = int.from_bytes(group[inside + 9 : inside + 13], "little")
    group[inside + 18] = group[inside + 18] & ~0x1C | codes.START << 2
    for checked, expected in ((False, codes.BAD_CRC), (True, codes.VIEW_CUT)):
        if checked:
            group[inside + length - 4 : inside + length] = zlib.crc32(group[inside : inside + length - 4]).to_bytes(
                4, "little"
            )
        copy: Any = build.view_copy.ViewCopy(codes.VIEW_ASSIGN, b"u" * 16, bytes(256), codes.VIEW_TIMES, 0, True)
        copy.begin_file((b"\0" + data[19 + 57 : head - 5]).ljust(256, b"\0"), 1, 1, 50624)
        copy.scan_begin()
        place = min(inside + cut, len(group))
        status = copy.scan(group, 0, place, True)
        if status == codes.VIEW_MORE:
            status = copy.scan(group, copy.consumed, len(group), True)
        assert status == expected
        assert not checked or copy.group_stop == inside


INSERT = "INSERT INTO t VALUES (1)"


@pytest.mark.parametrize(
    "status",
    [
        b"\x01\0\0",
        b"\x04\0\0\0\0\0",
        b"\0\0\0\0\0\x06\x04std",
        b"\x02\x03std",
        b"\x05",
        b"\x0b\x01u",
        b"\x0b\x01u\x02h",
        b"\x0c\x02a\0",
        b"\x0c\x01a",
        b"\x0c",
        b"\x0d\0\0",
        b"\x10",
        b"\x80" + bytes(65533),
    ],
)
def test_status_variables_that_cannot_be_read_are_damage(build: KernelBuild, status: bytes) -> None:
    """What is put behind one that is too short would be taken for its end."""
    copy = view_of(build, BEGIN, query_body(INSERT, status=status), COMMIT)
    assert (copy.status, copy.group_damaged) == (codes.VIEW_LOOK, True)
    whole = view_of(build, BEGIN, query_body(INSERT, status=b"\0\0\0\0\0"), COMMIT)
    assert (whole.status, whole.group_damaged) == (codes.VIEW_MORE, False)


def test_the_longest_status_variables_that_have_room_for_one_more_are_no_damage(build: KernelBuild) -> None:
    copy = view_of(build, BEGIN, query_body(INSERT, status=b"\x80" + bytes(65532)), COMMIT)
    assert (copy.status, copy.group_damaged) == (codes.VIEW_MORE, False)
    assert b"\xff\xff\x10\0\x80\0" in copy.made


@pytest.mark.parametrize("kind", [33, 34])
@pytest.mark.parametrize("size", [0, 1, 24])
def test_a_gtid_event_that_is_too_short_is_damage(build: KernelBuild, kind: int, size: int) -> None:
    """A number that is assigned would be written over what stands behind it."""
    copy = view_of(build, (kind, bytes(size)), BEGIN, query_body(INSERT), COMMIT)
    assert (copy.status, copy.group_damaged) == (codes.VIEW_LOOK, True)
    whole = view_of(build, (kind, bytes(25)), BEGIN, query_body(INSERT), COMMIT)
    assert (whole.status, whole.group_damaged) == (codes.VIEW_MORE, False)


@pytest.mark.parametrize("size", [10, 60_000])
@pytest.mark.parametrize("room", [codes.VIEW_LONGEST_GTID, 65_600, 400_000])
def test_what_a_long_statement_is_given_does_not_hang_on_how_it_was_cut(
    build: KernelBuild, size: int, room: int
) -> None:
    text = "INSERT INTO t VALUES ('" + "x" * 80_000 + "')"
    group = [BEGIN, query_body(text, status=b"\0\0\0\0\0\x80" + bytes(size)), COMMIT]
    expected = view_of(build, *group).made
    for cut in (0, 19, 18 + 70 + size, 69_999, 70_000, 70_100, 100_000, 1 << 30):
        copy = view_of(build, *group, copies=False)
        data, made, out = copy.data, bytearray(), bytearray(room)
        places = sorted({min(cut, len(data)), len(data)})
        copy.scan_begin()
        at = 0
        for place in places:
            assert copy.scan(data, at, place, True) in (codes.VIEW_MORE, codes.VIEW_GROUP)
            at = copy.consumed
        assert copy.group_stop == len(data)
        made += out[: copy.gtid(out, 0, copy.group_size, copy.group_time, copy.group_server)]
        copy.scan_begin()
        at = 0
        for place in places:
            while copy.emit(data, at, place, out, 0, False, len(data)) == codes.VIEW_ROOM:
                assert copy.produced
                made += out[: copy.produced]
                at = copy.consumed
            made += out[: copy.produced]
            at = copy.consumed
        assert bytes(made) == expected, cut


@pytest.mark.parametrize("uuid", [b"u" * 16, b"u" * 15 + b"v", b"v" + b"u" * 15])
@pytest.mark.parametrize("next_gno", [1, 2])
def test_a_gtid_of_the_uuid_of_assigned_numbers_is_no_plain_one(build: KernelBuild, next_gno: int, uuid: bytes) -> None:
    own = (33, b"\1" + uuid + bytes((7,)) + bytes(7))
    is_own = uuid == b"u" * 16
    view = view_of(build, own, BEGIN, query_body(INSERT), COMMIT, copies=False)
    kernel = view._kernel
    kernel.next_gno = next_gno
    out = bytearray(4096)
    collides = is_own and next_gno > 1
    assert kernel.copy(view.data, 0, len(view.data), out, 0) == (codes.VIEW_LOOK if collides else codes.VIEW_MORE)
    assert (kernel.group_collides, kernel.uuid_used) == (collides, is_own and not collides)
    clock = kernel.clock()
    kernel.set_clock(7)
    assert not kernel.uuid_used
    kernel.set_clock(clock)
    assert (kernel.uuid_used, kernel.clock()) == (is_own and not collides, clock)
    for head in ((), ((34, b"\1" + bytes(24)),)):
        other = view_of(build, *head, BEGIN, query_body(INSERT), COMMIT, copies=False)
        kernel.scan_begin()
        assert kernel.scan(other.data, 0, len(other.data), True) == codes.VIEW_GROUP
        assert kernel.group_collides == kernel.uuid_used
