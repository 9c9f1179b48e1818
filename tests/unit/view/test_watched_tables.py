"""Of transactions in statement format only those are looked at one by one whose statements may need a rule."""

import struct

import pytest

from protocol.kernel import codes
from relay.view.rules.tables.watched_tables import watched_names, watched_removals
from tests.support.event_stream import EventStream, query_body, walk
from tests.support.kernel_builds import KernelBuild, builds
from tests.support.rule_groups import RuleRun, settings

BUILDS = pytest.mark.parametrize("build", builds(), ids=lambda build: str(build.name))
PLAIN = "INSERT INTO other VALUES (1)"


def looked_at(build: KernelBuild, *statements: str, table: bytes | None) -> bool:
    """Whether a transaction of these statements is left to the rules, by the tables whose statements are wanted."""
    return is_left(build, [(2, query_body(text)) for text in statements], statements=True, watch=table)


def is_left(
    build: KernelBuild,
    events: list[tuple[int, bytes]],
    *,
    statements: bool = False,
    watch: bytes | None = None,
    removals: bool = False,
    watch_removals: bytes | None = None,
    version: int = 50624,
) -> bool:
    """Whether a transaction of these events is left to the rules."""
    stream = EventStream(checksum=True)
    head = len(stream.data)
    for kind, body in ((2, query_body("BEGIN")), *events, (16, bytes(8))):
        stream.add(kind, body)
    data = bytearray(walk(builds()[-1], stream.data, packets=False).produced)
    copy = build.view_copy.ViewCopy(codes.VIEW_ASSIGN, bytes(16), bytes(256), codes.VIEW_TIMES, -1, True)
    lengths = bytearray(256)
    lengths[2], lengths[18], lengths[19] = 13, 26, 8
    copy.begin_file(bytes(lengths), 1, 1, version)
    copy.wants_statements = statements
    copy.watch(watch)
    copy.wants_removals = removals
    copy.watch_removals(watch_removals)
    status = copy.copy(data, head, len(data), bytearray(1 << 20), 0)
    assert status in (codes.VIEW_MORE, codes.VIEW_LOOK)
    return bool(status == codes.VIEW_LOOK)


WATCHED = watched_names([("d", "Plain")], [("d", "triggered")])


@BUILDS
def test_without_a_table_of_names_every_statement_is_looked_at(build: KernelBuild) -> None:
    assert looked_at(build, PLAIN, table=None)


@BUILDS
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO other VALUES (1), (2)",
        "insert  ignore\ninto\t`other` (a) values (1)",
        "REPLACE INTO d.other SET a = 1",
        "UPDATE `d`.`other` SET a = 5 WHERE b = 3",
        "update other\nset a=5",
        "DELETE FROM other",
        "  DELETE FROM `oth er` WHERE a = 5",
        "INSERT INTO other VALUES (@n := 3)",
        "/* of an app */ replace other values (1)",
        "insert other() values ()",
    ],
)
def test_a_plain_statement_of_another_table_is_copied(build: KernelBuild, statement: str) -> None:
    assert not looked_at(build, statement, table=WATCHED)
    assert not looked_at(build, statement, PLAIN, statement, table=WATCHED)
    assert looked_at(build, statement, "DELETE FROM plain", table=WATCHED)


@BUILDS
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO plain VALUES (1)",
        "UPDATE d.`PLAIN` SET a = 5",
        "DELETE FROM `plain` WHERE a = 3",
        "REPLACE plain VALUES (1)",
    ],
)
def test_a_table_without_transactions_counts_beside_other_statements(build: KernelBuild, statement: str) -> None:
    assert not looked_at(build, statement, table=WATCHED)
    assert looked_at(build, PLAIN, statement, table=WATCHED)
    assert looked_at(build, statement, PLAIN, table=WATCHED)


@BUILDS
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO triggered VALUES (1)",
        "UPDATE i, m SET i.a = 1, m.a = 2",
        "UPDATE other AS o SET a = 5",
        "UPDATE other SET a = 5 LIMIT 3",
        "UPDATE other SET a = (@n := @n + 1)",
        "DELETE x FROM other x JOIN plain USING (a)",
        "DELETE FROM other USING other JOIN plain USING (a)",
        "DELETE FROM other ORDER BY a LIMIT 1",
        "DELETE FROM other WHERE MATCH (a) AGAINST ('b')",
        "INSERT INTO other SELECT * FROM plain",
        "INSERT DELAYED INTO other VALUES (1)",
        "INSERT INTO other.plain.more VALUES (1)",
        "INSERT INTO d . plain VALUES (1)",
        "INSERT INTO d/**/.plain VALUES (1)",
        'UPDATE "other" SET a = 5',
        "INSERT INTO `pl``ain` VALUES (1)",
        "INSERT INTO pläin VALUES (1)",
        "/*! x */ INSERT INTO plain VALUES (1)",
        "INSERT INTO other TABLE plain",
        "INSERT INTO",
        "DELETE",
        "UPDATE `x",
    ],
)
def test_what_may_need_a_rule_is_looked_at(build: KernelBuild, statement: str) -> None:
    assert looked_at(build, statement, table=WATCHED)


@BUILDS
def test_a_table_as_a_query_is_looked_at_where_servers_know_such(build: KernelBuild) -> None:
    events = [(2, query_body("INSERT INTO other (a) TABLE plain LIMIT 1"))]
    assert is_left(build, events, statements=True, watch=WATCHED, version=80019)
    assert not is_left(build, events, statements=True, watch=WATCHED)


def rows(table: str, schema: str = "d", *, last: bool = True) -> list[tuple[int, bytes]]:
    """A row of a table of one INT column. last: its statement ends there."""
    names = b"".join(bytes((len(name),)) + name + b"\0" for name in (schema.encode(), table.encode()))
    table_map = struct.pack("<IHH", 7, 0, 1) + names + b"\x01\x03\x00\x01"
    return [(19, table_map), (30, struct.pack("<IHH", 7, 0, last) + b"\x02\0\x01\xff\xfe\1\0\0\0")]


@BUILDS
@pytest.mark.parametrize(
    ("events", "looked"),
    [
        (rows("Plain"), False),
        ([*rows("plain"), *rows("plain")], True),
        ([*rows("plain", last=False), *rows("plain")], False),
        ([*rows("plain", last=False), *rows("other")], True),
        ([*rows("other"), *rows("more")], False),
        ([*rows("triggered"), *rows("other")], False),
        ([*rows("other"), *rows("plain")], True),
        ([*rows("PLAIN"), *rows("other")], True),
        ([*rows("plain", "d"), *rows("plain", "e")], True),
        ([(2, query_body("UPDATE plain SET a = 1")), *rows("other")], True),
        ([*rows("other"), (2, query_body("UPDATE plain SET a = 1"))], True),
        ([*rows("plain"), (2, query_body("UPDATE other SET a = 1"))], True),
        ([*rows("other"), (2, query_body("UPDATE other SET a = 1"))], False),
        ([*rows("other"), *rows("pl\u00e4in")], True),
    ],
)
def test_rows_of_a_table_without_transactions_count_beside_others(
    build: KernelBuild, events: list[tuple[int, bytes]], looked: bool
) -> None:
    assert is_left(build, events, statements=True, watch=WATCHED) == looked
    assert not is_left(build, events, watch=WATCHED)
    is_one = len(events) == 2 or [body[6] & 1 for kind, body in events if kind == 30][:-1] == [0]
    assert is_left(build, events, statements=True) == (
        not is_one or {rows("plain")[0], rows("other")[0]} <= set(events)
    )


def test_what_is_watched_follows_what_is_known() -> None:
    rules = RuleRun(settings(), "9.7.4")
    for definition in ("CREATE DATABASE d", "CREATE TABLE i (a INT)", "CREATE TABLE m (a INT) ENGINE=MyISAM"):
        rules.plan(definition)
    first = rules.rules.watched
    assert first == watched_names([("d", "m")], [])
    rules.plan("BEGIN", "INSERT INTO i VALUES (1)", "COMMIT")
    assert rules.rules.watched is first
    rules.plan("CREATE TRIGGER tr AFTER INSERT ON i FOR EACH ROW INSERT INTO m VALUES (1)")
    assert rules.rules.watched == watched_names([("d", "m")], [("d", "i")])
    rules.plan("DROP TABLE m")
    assert rules.rules.watched == watched_names([], [("d", "i")])
    rules.plan("CREATE VIEW v AS SELECT * FROM i")
    assert rules.rules.watched == watched_names([], [("d", "i"), ("d", "v")])
    innodb = RuleRun(settings(engines="innodb", known_engines={"d.old": "MyISAM"}))
    assert innodb.rules.watched == watched_names([], [])
    assert RuleRun(settings(known_engines={"d.old": "MyISAM"})).rules.watched == watched_names([("d", "old")], [])
    assert RuleRun(settings(known_engines={"*": "MyISAM"})).rules.watched is None


# ---- REPLACE and DELETE ----------------------------------------------------------------------------------------------


def removal_looked_at(build: KernelBuild, statement: str, table: bytes | None) -> bool:
    events = [(2, query_body(PLAIN)), (2, query_body(statement))]
    return is_left(build, events, removals=True, watch_removals=table)


@BUILDS
@pytest.mark.parametrize(
    ("statement", "by_name", "of_all"),
    [
        ("REPLACE INTO parent VALUES (1)", True, True),
        (" /* x */ replace d.`PARENT` set a = 1", True, True),
        ("REPLACE INTO other VALUES (1)", False, True),
        ("REPLACE INTO other SELECT * FROM parent", True, True),
        ("DELETE FROM parent WHERE a = 1", True, True),
        ("DELETE FROM other WHERE a = 1", False, False),
        ("DELETE p, c FROM parent p JOIN c USING (a)", True, True),
        ("DELETE IGNORE FROM other", True, True),
        ("INSERT INTO parent VALUES (1)", False, False),
        ("UPDATE parent SET a = 5 LIMIT 1", False, False),
        ("INSERT INTO parent SELECT * FROM other", False, False),
    ],
)
def test_only_what_removes_rows_is_looked_at(build: KernelBuild, statement: str, by_name: bool, of_all: bool) -> None:
    parents = [("d", "Parent")]
    assert removal_looked_at(build, statement, watched_removals(parents, parents)) == by_name
    assert removal_looked_at(build, statement, watched_removals(None, parents)) == of_all
    assert removal_looked_at(build, statement, None) == statement.lstrip(" /*x").upper().startswith(
        ("REPLACE", "DELETE")
    )
    assert not is_left(build, [(2, query_body(statement))])


@BUILDS
@pytest.mark.parametrize(("mode", "looked"), [(0, False), (1, False), (2, True)])
def test_a_file_that_takes_the_place_of_rows_is_looked_at(build: KernelBuild, mode: int, looked: bool) -> None:
    query = query_body("LOAD DATA INFILE 'x' REPLACE INTO TABLE t")
    event = (18, query[:13] + bytes(12) + bytes([mode]) + query[13:])
    assert is_left(build, [event], removals=True, watch_removals=watched_removals([], [])) == looked
    assert not is_left(build, [event])


def test_whose_removals_are_watched_follows_what_is_known() -> None:
    rules = RuleRun(settings(plain_tables=("*",)))
    assert rules.rules.wants_removals
    rules.plan("CREATE TABLE p (id INT PRIMARY KEY)")
    assert rules.rules.removals == watched_removals([], [])
    rules.plan("CREATE TABLE c (id INT, p INT, FOREIGN KEY (p) REFERENCES p (id))")
    assert rules.rules.removals == watched_removals([], [])
    rules.plan("CREATE TABLE e (id INT, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)")
    first = rules.rules.removals
    assert first == watched_removals([("d", "p")], [])
    rules.plan("BEGIN", "INSERT INTO p VALUES (1)", "COMMIT")
    assert rules.rules.removals is first
    rules.plan("CREATE TABLE f (p INT, FOREIGN KEY (p) REFERENCES e (id) ON DELETE SET NULL)")
    assert rules.rules.removals == watched_removals([("d", "p"), ("d", "e")], [("d", "p")])
    assert RuleRun(settings(foreign_keys="innodb")).rules.removals == watched_removals([], [])
    assert RuleRun(settings()).rules.removals == watched_removals(None, [])
