"""What statements set off in triggers, functions and by views, by the definitions in the archive."""

from collections.abc import Sequence

import pytest

from relay.view.inspect.dry_run_stops import find_stops
from relay.view.stops.stop_reason import StopReason, Untranslatable
from tests.support.binlog_builder import ALONE, CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.event_stream import query_body
from tests.support.memory_file import looked_at
from tests.support.rule_groups import XID, Item, RuleRun, Statement, settings
from tests.support.view_making import marked

P = "CREATE TABLE p (id INT PRIMARY KEY, v INT) ENGINE=InnoDB"
C = "CREATE TABLE c (id INT, p INT, CONSTRAINT k FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE) ENGINE=InnoDB"
W = "CREATE TABLE w (a INT) ENGINE=InnoDB"
TRIGGER = "CREATE DEFINER=`root`@`%` TRIGGER tr {} ON w FOR EACH ROW {}"
REPLACE = "REPLACE INTO p VALUES (1, 2)"
FUNCTION = "CREATE DEFINER=`root`@`%` FUNCTION `f`(x INT) RETURNS INT BEGIN {}; RETURN x; END"
INSERT = "INSERT INTO w VALUES (1)"


def run(*definitions: Item, version: str = "5.6.24-log", **changes: object) -> RuleRun:
    """Rules that have seen these definitions, each a group, in a schema that was made in the archive."""
    made = RuleRun(settings(**changes), version)
    for definition in ("CREATE DATABASE d", P, C, W, *definitions):
        made.plan(definition)
    return made


def stopped(rules: RuleRun, *items: Item) -> StopReason | None:
    try:
        rules.plan("BEGIN", *items, XID)
    except Untranslatable as raised:
        assert raised.reason.error == 0
        return raised.reason
    return None


@pytest.mark.parametrize(
    ("event", "statement"),
    [
        ("AFTER INSERT", INSERT),
        ("BEFORE INSERT", "INSERT INTO w SELECT 1"),
        ("AFTER INSERT", "INSERT INTO d.W VALUES (1)"),
        ("AFTER INSERT", "REPLACE INTO d.w VALUES (1)"),
        ("AFTER DELETE", "REPLACE INTO w VALUES (1)"),
        ("AFTER UPDATE", "UPDATE w SET a = 3"),
        ("AFTER UPDATE", "INSERT INTO w VALUES (1) ON DUPLICATE KEY UPDATE a = 2"),
        ("AFTER UPDATE", "UPDATE w JOIN c ON w.a = c.id SET a = 3"),
        ("AFTER DELETE", "DELETE w FROM w JOIN c ON w.a = c.id"),
        ("AFTER INSERT", "LOAD DATA INFILE 'x' INTO TABLE w (a)"),
        ("AFTER DELETE", "LOAD DATA INFILE 'x' REPLACE INTO TABLE w (a)"),
    ],
)
def test_a_trigger_that_the_statement_fires_counts(event: str, statement: str) -> None:
    rules = run(TRIGGER.format(event, REPLACE))
    reason = stopped(rules, statement)
    assert reason is not None
    assert reason.name == "replace_in_parent_table"
    assert reason.text.startswith("in the trigger d.tr, which the statement executes, d.c refers to rows of d.p")
    assert stopped(run(TRIGGER.format(event, REPLACE), foreign_keys="innodb"), statement) is None
    assert stopped(run(TRIGGER.format(event, REPLACE), version="9.7.4"), statement) is None
    assert stopped(run(TRIGGER.format(event, REPLACE), "DROP TRIGGER d.tr"), statement) is None


@pytest.mark.parametrize(
    ("event", "statement"),
    [
        ("AFTER INSERT", "UPDATE w SET a = 3"),
        ("AFTER UPDATE", INSERT),
        ("AFTER DELETE", "INSERT INTO w VALUES (1) ON DUPLICATE KEY UPDATE a = 2"),
        ("AFTER DELETE", "LOAD DATA INFILE 'x' IGNORE INTO TABLE w (a)"),
        ("AFTER INSERT", "INSERT INTO c VALUES (1, 1)"),
        ("AFTER INSERT", "ALTER TABLE w ADD b INT"),
    ],
)
def test_a_trigger_that_it_does_not_fire_does_not(event: str, statement: str) -> None:
    assert stopped(run(TRIGGER.format(event, REPLACE)), statement) is None


@pytest.mark.parametrize(
    "body",
    [
        "begin if NEW.a > 1 then replace d.p set id = NEW.a; end if; end",
        "BEGIN DECLARE CONTINUE HANDLER FOR NOT FOUND REPLACE INTO p VALUES (1, 2); SET @a = 1; END",
        "BEGIN CASE NEW.a WHEN 1 THEN SET @x = 'a;b'; ELSE REPLACE LOW_PRIORITY INTO p SELECT 1, 2; END CASE; END",
        "w: WHILE 0 DO REPLACE INTO `d`.`p` VALUES (REPLACE('a', 'b', 'c'), 2); END WHILE",
        "INSERT INTO c VALUES (NEW.a, f(1))",
        "SET @x = d.f(3)",
        "CALL q()",
        "CALL d.q",
        "INSERT INTO v VALUES (1)",
    ],
)
def test_bodies_are_read_to_any_depth(body: str) -> None:
    made = [
        FUNCTION.format(REPLACE),
        "CREATE PROCEDURE q() BEGIN CALL r(1); END",
        f"CREATE PROCEDURE r(IN x INT) {REPLACE}",
        "CREATE TABLE far (a INT) ENGINE=InnoDB",
        f"CREATE TRIGGER other AFTER INSERT ON far FOR EACH ROW {REPLACE}",
        "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW `v` AS SELECT * FROM far",
    ]
    reason = stopped(run(*made, TRIGGER.format("AFTER INSERT", body)), INSERT)
    assert reason is not None
    assert reason.name == "replace_in_parent_table"


@pytest.mark.parametrize(
    "body",
    [
        "SET NEW.a = REPLACE('a', 'b', 'c')",
        "BEGIN DECLARE x INT; SELECT id FROM p FOR UPDATE INTO x; END",
        "INSERT INTO c VALUES (1, 1) ON DUPLICATE KEY UPDATE p = 3",
        "DELETE FROM p WHERE id = 1",
        "SET @x = 'REPLACE INTO p VALUES (1, 2)'",
        "BEGIN /* REPLACE INTO p VALUES (1, 2); */ END",
        "CALL loops()",
        "CREATE TEMPORARY TABLE t REPLACE SELECT 1 AS a",
    ],
)
def test_bodies_that_do_nothing_of_it_go_on(body: str) -> None:
    loops = "CREATE PROCEDURE loops() BEGIN CALL loops(); INSERT INTO w VALUES (1); END"
    assert stopped(run(loops, TRIGGER.format("BEFORE INSERT", body)), INSERT) is None


@pytest.mark.parametrize(
    "statement",
    ["SELECT `d`.`f`(1)", "INSERT INTO c VALUES (F (1), 2)", "DO f(1)", "UPDATE c SET p = d.f(2)", "SET @a = f(1)",
     "CREATE TABLE n SELECT f(1) AS a", "INSERT INTO c SELECT id, f(id) FROM p"],
)  # fmt: skip
def test_a_function_that_it_calls_counts(statement: str) -> None:
    reason = stopped(run(FUNCTION.format(REPLACE)), statement)
    assert reason is not None
    assert reason.text.startswith("in the function d.f,")
    assert stopped(run(FUNCTION.format(REPLACE), "DROP FUNCTION IF EXISTS f"), statement) is None
    assert stopped(run(FUNCTION.format("SET @x = 1")), statement) is None


def test_names_of_functions_in_other_places_do_not() -> None:
    rules = run(FUNCTION.format(REPLACE), "CREATE TABLE f (a INT) ENGINE=InnoDB")
    for statement in (
        "INSERT INTO f (a) VALUES (1)",
        "UPDATE c SET p = 'f(1)'",
        "INSERT INTO c VALUES (other.f(1), 1)",
    ):
        assert stopped(rules, statement) is None
    assert stopped(rules, Statement("INSERT INTO d.c VALUES (f(1), 1)", schema="other")) is None


VIEW = "CREATE VIEW v AS SELECT * FROM p"


@pytest.mark.parametrize(
    ("more", "stops"),
    [
        ((VIEW,), True),
        (("CREATE VIEW u AS SELECT * FROM p", "CREATE OR REPLACE VIEW v (a, b) AS SELECT * FROM u"), True),
        (("CREATE VIEW u AS SELECT * FROM p", "RENAME TABLE u TO v"), True),
        (("CREATE VIEW v AS SELECT 1", "ALTER ALGORITHM=MERGE VIEW v AS SELECT * FROM p"), True),
        (("CREATE VIEW v AS SELECT * FROM c",), False),
        ((VIEW, "DROP VIEW v", "CREATE TABLE v (a INT) ENGINE=InnoDB"), False),
    ],
)
def test_a_view_stands_for_the_tables_that_it_reads(more: Sequence[str], stops: bool) -> None:
    reason = stopped(run(*more), "REPLACE INTO v VALUES (1, 2)")
    assert (reason is not None and "d.c refers to rows of d.p" in reason.text) == stops


ON_UPDATE = "CREATE TRIGGER u AFTER UPDATE ON w FOR EACH ROW SET @x = 1"


@pytest.mark.parametrize(
    ("statement", "stops"),
    [
        ("UPDATE w JOIN c ON w.a = c.id SET w.a = 1, c.p = 2", True),
        ("UPDATE w x, c SET x.a = 1, c.p = 2 WHERE x.a = c.id", True),
        ("UPDATE w, c SET a = IF(1, 2, 3), p = 2 WHERE w.a = c.id", True),
        ("UPDATE w, c SET a = IF(1, 2, 3) WHERE a IN (1, 2)", False),
        ("UPDATE w, c SET w.a = c.id", False),
        ("UPDATE p, c SET p.v = 1, c.p = 2", False),
        ("UPDATE w SET a = 1", False),
    ],
)
def test_an_update_of_several_tables_with_triggers_stops_the_view(statement: str, stops: bool) -> None:
    for changes in ({}, {"foreign_keys": "innodb"}):
        reason = stopped(run(ON_UPDATE, **changes), statement)
        assert (reason is not None and reason.name == "multi_table_update") == stops
    assert stopped(run(ON_UPDATE, version="9.7.4"), statement) is None
    assert stopped(run(), statement) is None


def test_all_of_it_is_known_again_from_the_state() -> None:
    made = run(
        FUNCTION.format(REPLACE), TRIGGER.format("AFTER INSERT", "CALL q()"), f"CREATE PROCEDURE q() {REPLACE}", VIEW
    )
    other = RuleRun()
    other.rules.restore(made.rules.state())
    assert other.rules.state() == made.rules.state()
    for statement in (INSERT, "SELECT f(1)", "REPLACE INTO v VALUES (1, 2)"):
        reason = stopped(other, statement)
        assert reason is not None
    other.plan("DROP DATABASE d")
    assert other.rules.state().endswith(
        b'"complete":[["d",false]],"absent":[],"doubtful":[],"doubtful_words":[],"temporary":[],"programs":[]}'
    )


@pytest.mark.parametrize(
    "text", ["CREATE FUNCTION lib RETURNS STRING SONAME 'x.so'", "DROP FUNCTION lib", "DROP PROCEDURE IF EXISTS no"]
)
def test_functions_of_libraries_are_none_of_a_schema(text: str) -> None:
    rules = run()
    known = rules.rules.state()
    rules.plan(Statement(text, schema=""))
    assert rules.rules.state() == known


@pytest.mark.parametrize(
    ("definition", "statement"),
    [
        (TRIGGER.format("AFTER INSERT", REPLACE), INSERT),
        (FUNCTION.format(REPLACE), "INSERT INTO w VALUES (f(1))"),
        (ON_UPDATE, "UPDATE w JOIN c ON w.a = c.id SET w.a = 1, c.p = 2"),
    ],
)
def test_plain_statements_that_set_it_off_do_not_go_by(definition: str, statement: str) -> None:
    made = BinlogBuilder()
    for text in ("CREATE DATABASE d", P, C, W, definition):
        made.event(2, query_body(text, b"d"), ALONE)
    made.event(2, query_body("BEGIN", b"d"), OPENS)
    made.event(2, query_body("INSERT INTO c VALUES (1, 1)", b"d"), INSIDE)
    start = len(made.data)
    made.event(16, bytes(8), CLOSES)
    made.event(2, query_body("BEGIN", b"d"), OPENS)
    made.event(2, query_body(statement, b"d"), INSIDE)
    made.event(16, bytes(8), CLOSES)
    data = marked(made.data)
    found = find_stops([looked_at("bin.000001", data)], settings())
    assert [stop.offset > start for stop in found.stops] == [True]
