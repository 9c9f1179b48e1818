"""XA transactions of MySQL 5.7 and later in a view: they are prepared in one group and end in another, or are all in one."""

import struct

import pytest

from protocol.binlog.event_type import EventType
from relay.view.rules.group_rules import MysqlRules
from tests.support.rule_groups import Item, Other, Rows, RuleRun, Statement, settings, stopped

TABLES = (
    "CREATE DATABASE d",
    "CREATE TABLE i (a INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE m (a INT PRIMARY KEY) ENGINE=MyISAM",
)
XID = "X'78',X'',1"
START, END = f"XA START {XID}", f"XA END {XID}"
COMMIT, ROLLBACK = f"XA COMMIT {XID}", f"XA ROLLBACK {XID}"
INNO, ISAM = "INSERT INTO i VALUES (1)", "INSERT INTO m VALUES (1)"


def xa_prepare(*, one_phase: bool = False) -> Other:
    return Other(EventType.XA_PREPARE, struct.pack("<BIII", one_phase, 1, 1, 0) + b"x")


PREPARED, ONE_PHASE = xa_prepare(), xa_prepare(one_phase=True)


def run(**changes: object) -> RuleRun:
    made = RuleRun(settings(**changes), version="5.7.44-log")
    for definition in TABLES:
        made.plan(definition)
    return made


def skip(rules: RuleRun, *items: Item) -> None:
    (group,) = rules.groups(*items)
    rules.rules.skipped(group)


def test_what_only_innodb_keeps_is_copied_as_it_is() -> None:
    for engines in ("keep", "innodb"):
        rules = run(engines=engines)
        assert rules.plan(START, INNO, END, PREPARED) == [[START, INNO, END, f"({EventType.XA_PREPARE})"]]
        assert rules.plan(COMMIT) == [[COMMIT]]
        assert rules.plan(START, Rows(["i"]), END, PREPARED)[0][1] == "rows of i"
        assert rules.plan(ROLLBACK) == [[ROLLBACK]]
        assert len(rules.plan(START, INNO, END, ONE_PHASE)[0]) == 4


def test_a_prepared_transaction_with_changes_that_stay_however_it_ends_stops_the_view() -> None:
    kept = stopped(run(engines="keep"), START, INNO, ISAM, END, PREPARED)
    assert (kept.name, kept.error) == ("xa_without_transactions", 1785)
    lost = stopped(run(engines="innodb"), START, INNO, ISAM, END, PREPARED)
    assert (lost.name, lost.error) == ("xa_without_transactions", 0)
    assert "d.m" in lost.text
    assert "XA" in lost.advice


def test_a_target_that_takes_both_engines_in_one_gets_them_as_they_were() -> None:
    group = [START, INNO, ISAM, END, f"({EventType.XA_PREPARE})"]
    assert run(engines="keep", target="mysql-5.5", gtids="keep").plan(START, INNO, ISAM, END, PREPARED) == [group]


def test_in_one_phase_it_is_a_transaction_like_another() -> None:
    assert run(engines="innodb").plan(START, INNO, ISAM, END, ONE_PHASE) == [
        [START, INNO, ISAM, END, f"({EventType.XA_PREPARE})"]
    ]
    assert run(engines="keep").plan(START, INNO, ISAM, END, ONE_PHASE) == [
        ["+BEGIN", INNO, "+COMMIT"], ["+BEGIN", ISAM, "+COMMIT"]
    ]  # fmt: skip


@pytest.mark.parametrize("engines", ["keep", "innodb"])
@pytest.mark.parametrize("end", [(END, ROLLBACK), (END, "ROLLBACK"), (ROLLBACK,)])
def test_of_one_that_was_rolled_back_at_once_stays_what_the_source_kept(engines: str, end: tuple[str, ...]) -> None:
    assert run(engines=engines).plan(START, INNO, ISAM, *end) == [["+BEGIN", ISAM, "+COMMIT"]]


def test_one_that_was_rolled_back_and_kept_nothing_known_stops_as_others_do() -> None:
    assert stopped(run(), START, INNO, END, ROLLBACK).name == "uncertain_rollback"


@pytest.mark.parametrize("end", [PREPARED, ONE_PHASE])
def test_the_rules_for_statements_are_those_of_other_transactions(end: Other) -> None:
    limited = "DELETE FROM m LIMIT 1"
    assert stopped(run(engines="innodb"), START, INNO, limited, END, end).name == "row_order"
    failed = Statement("INSERT INTO m VALUES (1), (1)", error=1062)
    assert stopped(run(engines="innodb"), START, INNO, failed, END, end).name == "statement_failed_partway"
    of_accounts = "UPDATE mysql.user SET max_questions = 5"
    (made,) = run().plan(START, INNO, of_accounts, END, end)
    assert of_accounts not in made
    assert INNO in made


def test_what_was_undone_in_it_is_left_out() -> None:
    group = (START, INNO, "SAVEPOINT s", "INSERT INTO i VALUES (2)", "ROLLBACK TO s", "INSERT INTO i VALUES (3)", END)
    for end in (PREPARED, ONE_PHASE):
        (made,) = run(engines="innodb").plan(*group, end)
        assert [one.lstrip("+") for one in made if one.startswith("INSERT")] == [INNO, "INSERT INTO i VALUES (3)"]
    undone = (START, INNO, "SAVEPOINT s", ISAM, "ROLLBACK TO s", END)
    assert stopped(run(engines="innodb"), *undone, PREPARED).name == "xa_without_transactions"
    assert [ISAM in group for group in run(engines="innodb").plan(*undone, ONE_PHASE)] == [True]


@pytest.mark.parametrize("last", [COMMIT, ROLLBACK])
def test_what_ends_one_that_was_left_out_is_left_out_too(last: str) -> None:
    rules = run(engines="innodb")
    before = rules.rules.state()
    skip(rules, START, INNO, ISAM, END, PREPARED)
    later = MysqlRules(rules.settings)
    later.restore(rules.rules.state())
    rules.rules = later
    other = last.replace("78", "79")
    assert rules.plan(other) == [[other]]
    assert rules.plan(last) == [["+BEGIN", "+COMMIT"]]
    assert rules.rules.state() == before
    assert rules.plan(last) == [[last]]


def test_a_name_that_is_used_again_is_another_transaction() -> None:
    rules = run()
    skip(rules, START, INNO, END, PREPARED)
    rules.plan(START, INNO, END, PREPARED)
    assert rules.plan(COMMIT) == [[COMMIT]]
    skip(rules, START, INNO, END, PREPARED)
    skip(rules, COMMIT)
    assert rules.plan(COMMIT) == [[COMMIT]]
