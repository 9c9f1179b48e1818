"""Of transactions in statement format only those are looked at one by one whose statements may need a rule."""

import pytest

from protocol.kernel import codes
from relay.view.rules.watched_tables import watched_names
from tests.support.event_stream import EventStream, query_body, walk
from tests.support.kernel_builds import KernelBuild, builds
from tests.support.rule_groups import RuleRun, settings

BUILDS = pytest.mark.parametrize("build", builds(), ids=lambda build: str(build.name))
PLAIN = "INSERT INTO other VALUES (1)"


def looked_at(build: KernelBuild, *statements: str, table: bytes | None, cut: int = 0) -> bool:
    """Whether a transaction of these statements is left to the rules."""
    stream = EventStream(checksum=True)
    head = len(stream.data)
    for kind, body in ((2, query_body("BEGIN")), *((2, query_body(text)) for text in statements), (16, bytes(8))):
        stream.add(kind, body)
    data = bytearray(walk(builds()[-1], stream.data, packets=False).produced)
    copy = build.view_copy.ViewCopy(codes.VIEW_ASSIGN, bytes(16), bytes(256), codes.VIEW_TIMES, -1, True)
    lengths = bytearray(256)
    lengths[2] = 13
    copy.begin_file(bytes(lengths), 1, 1, 50624)
    copy.wants_statements = True
    copy.watch(table)
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


def test_what_is_watched_follows_what_is_known() -> None:
    rules = RuleRun(settings())
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
    innodb = RuleRun(settings(engines="innodb", known_engines={"d.old": "MyISAM"}))
    assert innodb.rules.watched == watched_names([], [])
    assert RuleRun(settings(known_engines={"d.old": "MyISAM"})).rules.watched == watched_names([("d", "old")], [])
    assert RuleRun(settings(known_engines={"*": "MyISAM"})).rules.watched is None
