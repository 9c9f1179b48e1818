"""Statements whose judgement depends on a table that is not known: what is recorded of it decides for each group by itself."""

import pytest

from protocol.sql.tables.source_table import Column, Table, TableName
from relay.view.rules.judged import statement_judge
from relay.view.stops.stop_reason import Untranslatable
from tests.support.rule_groups import XID, RuleRun, Statement
from tests.support.small_survey import small_survey

STATEMENT = "UPDATE t SET at = (SELECT a FROM u)"
OF_TEXTS = Table("d", "u", "InnoDB", (Column("a", "varchar(30)"),), foreign_keys=())
OF_NUMBERS = Table("d", "u", "InnoDB", (Column("a", "int"),), foreign_keys=())


class Recorded:
    """What is recorded of one table. `may_ask`: a look-up may block. `behind`: it is known from this place on."""

    def __init__(self, table: Table, *, may_ask: bool = True) -> None:
        self.table: Table | None = table
        self.may_ask = may_ask
        self.asked = 0

    def exists(self, _name: TableName, _file: str, _offset: int) -> bool | None:
        return None

    def around(self, name: TableName, _file: str, _offset: int) -> list[Table] | None:
        self.asked += 1
        known = self.table
        return [known] if self.may_ask and known is not None and name == (known.schema, known.name) else None


def run(monkeypatch: pytest.MonkeyPatch, recorded: Recorded) -> RuleRun:
    survey = small_survey()
    monkeypatch.setattr(statement_judge, "surveyed", lambda _source, _target: survey)
    made = RuleRun()
    made.plan("CREATE DATABASE d")
    made.plan("CREATE TABLE t (id INT PRIMARY KEY, at DATETIME)")
    made.rules.before = recorded
    return made


def test_a_table_that_was_not_known_for_one_group_is_looked_up_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(OF_TEXTS)
    recorded.table = None
    rules = run(monkeypatch, recorded)
    assert rules.plan("BEGIN", STATEMENT, XID)
    recorded.table = OF_TEXTS
    with pytest.raises(Untranslatable) as stopped:
        rules.plan("BEGIN", STATEMENT, XID)
    assert stopped.value.reason.name == "statement_differs_in_target"


def test_a_group_that_looks_nothing_up_gives_all_tables_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = run(monkeypatch, Recorded(OF_TEXTS))
    planned = 0
    plan = rules.rules._plan

    def counted(group: object) -> object:
        nonlocal planned
        planned += 1
        return plan(group)  # type: ignore[arg-type]

    monkeypatch.setattr(rules.rules, "_plan", counted)
    statements = [STATEMENT.replace("FROM u", f"FROM u{number}") for number in range(20)]
    groups = list(rules.groups("BEGIN", Statement("CREATE TEMPORARY TABLE x (a INT)"), *statements, XID))
    temporary = groups[0]._replace(
        events=[one._replace(flags=one.flags | 4) if at == 1 else one for at, one in enumerate(groups[0].events)]
    )
    rules.rules.plan(temporary)
    assert planned == 2


def test_where_nothing_may_be_looked_up_now_a_group_is_not_judged_by_less(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = run(monkeypatch, Recorded(OF_NUMBERS, may_ask=False))
    with pytest.raises(Untranslatable) as stopped:
        rules.plan("BEGIN", STATEMENT, XID)
    assert stopped.value.reason.name == "unknown_table_definition"
