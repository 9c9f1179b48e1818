"""Which groups a view copies, and which it leaves to the rules."""

from typing import Any

import pytest

from protocol.kernel import codes
from tests.support.event_stream import EventStream, query_body, walk
from tests.support.kernel_builds import KernelBuild

BEGIN, COMMIT = query_body("BEGIN"), query_body("COMMIT")


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
