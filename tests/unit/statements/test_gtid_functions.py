"""uuid(), GTID_SUBSET and GTID_SUBTRACT, as connectors and monitors call them."""

import uuid

import pytest

from protocol.errors import StatementRefused
from protocol.resultset import Rows, Value
from protocol.statements import SourceFacts, StatementSession, answer_statement

MYSQL = SourceFacts("mysql", "5.7.44-log", 3, "uuid", "CRC32")
MARIADB = SourceFacts("mariadb", "10.11.19-MariaDB-log", 3)
A, B = "11111111-2222-3333-4444-555555555555", "22222222-2222-3333-4444-555555555555"


def value(expression: str, facts: SourceFacts = MYSQL, session: StatementSession | None = None) -> Value:
    rows = answer_statement(f"SELECT {expression}", session or StatementSession(facts, 42), 0.0)
    assert isinstance(rows, Rows)
    return rows.rows[0][0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"GTID_SUBSET('{A}:1-5', '{A}:1-9')", 1),
        (f"GTID_SUBSET('{A}:1-5', '{A}:2-9')", 0),
        ("GTID_SUBSET('', '')", 1),
        (f"GTID_SUBSET(NULL, '{A}:1')", None),
        (f"GTID_SUBTRACT('{A}:1-9,{B}:1', '{A}:1-5')", f"{A}:6-9,\n{B}:1"),
        (f"GTID_SUBTRACT('{A}:1-9', '{A}:1-9')", ""),
        ("GTID_SUBTRACT('', NULL)", None),
    ],
)
def test_sets_are_compared_and_taken_from_each_other(expression: str, expected: Value) -> None:
    assert value(expression) == expected


def test_what_is_no_set_is_an_error_and_mariadb_has_none_of_them() -> None:
    with pytest.raises(StatementRefused) as caught:
        value("GTID_SUBSET('nonsense', '')")
    assert caught.value.number == 1772
    with pytest.raises(StatementRefused) as caught:
        value("GTID_SUBTRACT('', '')", MARIADB)
    assert caught.value.number == 1305


@pytest.mark.parametrize("facts", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
def test_a_connector_gives_itself_a_uuid(facts: SourceFacts) -> None:
    session = StatementSession(facts, 42)
    answer_statement("set @slave_uuid=uuid()", session, 0.0)
    known = value("@slave_uuid", session=session)
    assert str(uuid.UUID(str(known))) == known
    assert value("UUID()", facts) != value("UUID()", facts)
