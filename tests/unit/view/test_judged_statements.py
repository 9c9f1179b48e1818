"""Statements that a view does not pass on, because the survey has seen the target compute them otherwise, or because nobody tried."""

import pytest

from protocol.binlog.event_type import EventType
from protocol.binlog.query import read_query
from protocol.binlog.status_variables import SQL_MODE, known_values
from protocol.sql.sql_mode import NO_ZERO_DATE, STRICT
from protocol.sql.survey.surveyed import surveyed
from relay.view.rules.group import New
from relay.view.rules.judged import statement_judge
from relay.view.stops.stop_reason import StopReason, Untranslatable
from tests.support.rule_groups import XID, RuleRun, Statement, settings
from tests.support.small_survey import small_survey

SURVEY = small_survey()

TABLES = (
    "CREATE TABLE t (id INT PRIMARY KEY, d DATE, at DATETIME, s VARCHAR(30), c TINYINT NOT NULL)",
    "CREATE TABLE s (k INT)",
    "CREATE TABLE counted (k INT PRIMARY KEY, n INT)",
)


@pytest.fixture(autouse=True)
def _surveyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_judge, "surveyed", lambda _source, _target: SURVEY)


def run(*definitions: str, accept: tuple[str, ...] = ()) -> RuleRun:
    made = RuleRun(settings(accept=accept))
    for one in ("CREATE DATABASE d", *TABLES, *definitions):
        made.plan(one)
    return made


def reason(rules: RuleRun, statement: str | Statement) -> StopReason:
    with pytest.raises(Untranslatable) as raised:
        rules.plan("BEGIN", statement, XID)
    return raised.value.reason


@pytest.mark.parametrize(
    ("statement", "construct"),
    [
        ("UPDATE t SET id = 1 WHERE s REGEXP 'a.b'", "REGEXP"),
        ("DELETE FROM t WHERE d BETWEEN '2020-02-15' AND '2020-02-31'", "BETWEEN"),
        ("INSERT INTO t (id, at, c) VALUES (1, '2020-01-01 10:00:00+02:00', 1)", "store DATETIME"),
        ("INSERT INTO t (id, at, c) VALUES (1, NULL, 1), (2, '2020-01-01 10:00:00+02:00', 1)", "store DATETIME"),
    ],
)
def test_a_statement_with_a_construct_that_differs_stops_the_view_by_its_name(statement: str, construct: str) -> None:
    found = reason(run(), statement)
    assert (found.name, found.error) == ("statement_differs_in_target", 0)
    assert f"computes {construct} of" in found.text
    assert f'accept = ["{construct.lower()}"]' in found.advice


def test_numbers_from_2_to_the_63_on_may_be_left_out_of_the_judgement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_judge, "surveyed", surveyed)
    table, statement = "CREATE TABLE n (id INT PRIMARY KEY, a BIGINT UNSIGNED)", "UPDATE n SET a = IF(a > 0, a - 1, 0)"
    assert 'accept = ["large_unsigned"]' in reason(run(table), statement).advice
    assert run(table, accept=("large_unsigned",)).plan("BEGIN", statement, XID) == [["BEGIN", statement, "(16)"]]


@pytest.mark.parametrize(
    ("written", "passes"),
    [
        ("%Y-%m-01", True),
        ("%Y-%m-%d %H:00", True),
        ("%Y-%m-%d %T-02:00", False),
        ("%Y %T+%d", False),
        ("%Y-%m-%d 00:00:00-05:00", False),
        ("%d-%m-%Y", True),
    ],
)
def test_a_format_says_whether_a_text_may_have_an_offset(
    monkeypatch: pytest.MonkeyPatch, written: str, passes: bool
) -> None:
    monkeypatch.setattr(statement_judge, "surveyed", surveyed)
    rules = run("CREATE TABLE n (id INT PRIMARY KEY, a DATETIME)")
    statement = f"UPDATE n SET a = DATE_FORMAT(a, '{written}')"
    if passes:
        assert rules.plan("BEGIN", statement, XID) == [["BEGIN", statement, "(16)"]]
    else:
        assert "store DATETIME of text offset" in reason(rules, statement).text


def test_formats_are_read_in_statements_that_are_alike_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_judge, "surveyed", surveyed)
    rules = run("CREATE TABLE n (id INT PRIMARY KEY, a DATETIME)")
    rules.plan("BEGIN", "UPDATE n SET a = DATE_FORMAT(a, '%Y-%m-%d %T')", XID)
    assert "text offset" in reason(rules, "UPDATE n SET a = DATE_FORMAT(a, '%Y-%m-%d %T-02:00')").text


def test_a_literal_in_brackets_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_judge, "surveyed", surveyed)
    rules = run("CREATE TABLE n (id INT PRIMARY KEY, a VARCHAR(20))")
    assert rules.plan("BEGIN", "UPDATE n SET a = CONCAT(id, (2))", XID)
    assert rules.plan("BEGIN", "UPDATE n SET a = FORMAT(1.5, (2))", XID)


def test_a_construct_that_is_accepted_is_passed_on() -> None:
    statement = "UPDATE t SET id = 1 WHERE s REGEXP 'a.b'"
    assert run(accept=("regexp",)).plan("BEGIN", statement, XID) == [["BEGIN", statement, "(16)"]]


def test_what_the_target_refuses_stops_the_view_with_its_error() -> None:
    found = reason(run(), "UPDATE t SET id = 1 WHERE d <= '2020-02-31'")
    assert (found.name, found.error) == ("statement_not_in_target", 1525)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (1, '2020-02-01', '2020-02-01 10:00:00', 'x', 1)",
        "UPDATE t SET s = 'b' WHERE s = 'a' AND id < 5",
        "DELETE FROM t WHERE d = '2020-02-01' OR s LIKE 'a%'",
        "UPDATE older SET x = 1 WHERE y = 'abc'",
        "INSERT INTO counted SELECT k, COUNT(*) FROM s GROUP BY k",
    ],
)
def test_a_statement_whose_constructs_are_the_same_is_passed_on(statement: str) -> None:
    assert run().plan("BEGIN", statement, XID) == [["BEGIN", statement, "(16)"]]


def test_the_order_of_groups_is_written_where_the_source_sorts_by_them() -> None:
    made = run().plan("BEGIN", "INSERT INTO counted SELECT k, COUNT(*) FROM s GROUP BY k LIMIT 2", XID)
    assert made == [["BEGIN", "+INSERT INTO counted SELECT k, COUNT(*) FROM s GROUP BY k ORDER BY k LIMIT 2", "(16)"]]


def test_groups_that_are_numbered_by_a_variable_stop_the_view() -> None:
    found = reason(run(), "INSERT INTO counted SELECT k, @n := @n + 1 FROM s GROUP BY k")
    assert "GROUP BY without ORDER BY" in found.text


CAST = "UPDATE t SET c = 1 WHERE CAST(s AS UNSIGNED) = 5"


def test_what_the_target_refuses_in_strict_mode_only_runs_without_it() -> None:
    rules = run()
    loose = NO_ZERO_DATE
    assert rules.plan("BEGIN", Statement(CAST, mode=loose), XID) == [["BEGIN", CAST, "(16)"]]
    for _ in range(2):  # once judged, once remembered
        group = next(iter(rules.groups("BEGIN", Statement(CAST, mode=STRICT | loose), XID)))
        made = [piece for piece in rules.rules.plan(group)[0].pieces if isinstance(piece, New)]
        (one,) = [read_query(piece.type, piece.body, 13) for piece in made if CAST.encode() in piece.body]
        (source,) = [group.body(event) for event in group.events if CAST.encode() in group.body(event)]
        before = read_query(EventType.QUERY, source, 13)
        assert known_values(one.status_variables)[SQL_MODE] == loose.to_bytes(8, "little")
        assert {**known_values(one.status_variables), SQL_MODE: b""} == {
            **known_values(before.status_variables),
            SQL_MODE: b"",
        }
        assert (one.text, one.schema) == (before.text, before.schema)


@pytest.mark.parametrize(
    ("definition", "statement"),
    [
        ("CREATE TRIGGER b BEFORE UPDATE ON t FOR EACH ROW SET NEW.c = 5", CAST),
        ("CREATE TABLE o (id INT)", "UPDATE t SET at = '2020-01-01 10:00:00+02:00' WHERE CAST(s AS UNSIGNED) = 5"),
        ("CREATE TABLE o (id INT)", "CREATE TABLE n SELECT id FROM t WHERE CAST(s AS UNSIGNED) = 5"),
    ],
)
def test_a_statement_that_may_depend_on_strict_mode_stops_the_view(definition: str, statement: str) -> None:
    found = reason(run(definition), Statement(statement, mode=STRICT))
    assert (found.name, found.error) == ("statement_not_in_target", 1292)


BEFORE = "CREATE TRIGGER b BEFORE INSERT ON t FOR EACH ROW SET NEW.c = IFNULL(NEW.c, 5)"


def test_a_trigger_that_reads_null_before_the_server_replaces_it_stops_the_view() -> None:
    found = reason(run(BEFORE), "INSERT INTO t (id, c) VALUES (1, NULL), (2, NULL)")
    assert "trigger BEFORE INSERT, NULL into NOT NULL" in found.text
    assert "the trigger d.b" in found.text


def test_a_trigger_that_reads_a_column_without_a_value_stops_the_view() -> None:
    found = reason(run(BEFORE), "INSERT INTO t (id) VALUES (1)")
    assert "trigger BEFORE INSERT, implicit default" in found.text


def test_a_fraction_as_a_condition_stops_the_view() -> None:
    found = reason(run(), "DELETE FROM t WHERE id > 3 AND COS(id)")
    assert found.name == "statement_differs_in_target"
    assert 'accept = ["condition"]' in found.advice
    run(accept=("condition",)).plan("BEGIN", "DELETE FROM t WHERE id > 3 AND COS(id)", XID)
    run().plan("BEGIN", "DELETE FROM t WHERE id % 2 OR NOT c", XID)


def test_a_trigger_that_gets_no_null_does_not_stop_the_view() -> None:
    run(BEFORE).plan("BEGIN", "INSERT INTO t (id, c) VALUES (1, 5), (2, 6)", XID)


def test_what_differs_in_a_trigger_stops_only_what_fires_it() -> None:
    rules = run("CREATE TRIGGER b AFTER INSERT ON t FOR EACH ROW UPDATE s SET k = 1 WHERE NEW.s REGEXP 'a'")
    rules.plan("BEGIN", "UPDATE t SET s = 'x'", XID)
    assert "the trigger d.b" in reason(rules, "INSERT INTO t (id, c) VALUES (1, 5)").text


def test_what_differs_in_a_function_stops_what_calls_it() -> None:
    rules = run("CREATE FUNCTION f(p TEXT) RETURNS INT DETERMINISTIC RETURN p REGEXP 'a'")
    assert "the function d.f" in reason(rules, "INSERT INTO s VALUES (f('x'))").text


def test_a_text_that_becomes_a_time_stops_the_view() -> None:
    rules = run()
    with pytest.raises(Untranslatable) as raised:
        rules.plan("ALTER TABLE t MODIFY s DATETIME")
    assert "convert DATETIME" in raised.value.reason.text


def test_an_expression_that_cannot_be_read_stops_the_view_unless_it_is_accepted() -> None:
    statement = "UPDATE t SET id = 1 WHERE id = {x '2020-01-01'}"
    assert reason(run(), statement).name == "statement_not_surveyed"
    run(accept=("unread",)).plan("BEGIN", statement, XID)
