"""Whole numbers over 2^63 - 1: a BIGINT UNSIGNED has them, and in a BIGINT servers make other numbers of them."""

import pytest

from protocol.sql.survey.surveyed import PAIRS, SurveyKind, read_survey
from tests.unit.sql import test_expressions
from tests.unit.sql.test_expressions import read

TYPES = {"n": "bigint(20) unsigned", "m": "bigint(20)", "small": "int(10) unsigned"}
LARGE = "18446744073709551615"


def verdicts(monkeypatch: pytest.MonkeyPatch, statement: str) -> dict[tuple[str, str], SurveyKind]:
    monkeypatch.setitem(test_expressions.TYPES, "k", TYPES)
    made = read(statement)
    return {
        pair: max(read_survey(*pair).verdict(one.name, one.arguments, one.is_strict).kind for one in made.used)
        for pair in PAIRS
    }


@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT INTO k (n) VALUES (-1), ({LARGE})",
        f"INSERT IGNORE INTO k (n) VALUES ({LARGE})",
        f"UPDATE k SET n = {LARGE}",
        "INSERT INTO k (n) SELECT n FROM k",
        "UPDATE k SET n = m, m = small",
    ],
)
def test_they_are_stored_alike_in_an_unsigned_column(monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    assert set(verdicts(monkeypatch, statement).values()) == {SurveyKind.SAME}


@pytest.mark.parametrize("statement", [f"INSERT IGNORE INTO k (m) VALUES ({LARGE})", "UPDATE k SET m = n"])
def test_a_signed_column_of_another_mysql_has_another_number(monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    found = verdicts(monkeypatch, statement)
    assert found["mysql-5.6", "mysql-9.7"] is SurveyKind.DIFFERS
    assert found["mariadb-10.11", "mysql-9.7"] is SurveyKind.SAME
