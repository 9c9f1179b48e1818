"""What is kept of statements that define something: their text, and no secret in it."""

import pytest

from relay.schema_history.logged_definition import logged_definition
from tests.support.event_stream import query_body, raw_event


def kept(text: str, flags: int = 0) -> str | None:
    """What the schema file would have of it; None: nothing, or the names only."""
    found = logged_definition(raw_event(2, query_body(text, schema=b"shop"), flags=flags), 13, True, "5.6.24")
    facts = found.facts if found is not None else None
    return str(facts["text"]) if facts is not None else None


def test_the_text_of_a_definition_is_kept() -> None:
    assert kept("CREATE TABLE user (id INT, password CHAR(60))") == "CREATE TABLE user (id INT, password CHAR(60))"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE USER a@b IDENTIFIED BY 'hunter2'",
        "CREATE USER a@b REQUIRE NOTHING THAT IS KNOWN HERE IDENTIFIED BY 'hunter2'",
        "ALTER USER a@b IDENTIFIED WITH mysql_native_password AS 'hunter2'",
        "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD 'hunter2')",
    ],
)
def test_a_statement_with_a_password_is_not_kept(text: str) -> None:
    assert kept(text) is None


@pytest.mark.parametrize("literal", ["'mysql://u:hunter2@h/d/t'", '"mysql://u:hunter2@h/d/t"', "'it''s hunter2'"])
def test_where_a_table_of_another_server_is_stays_out(literal: str) -> None:
    text = kept(f"CREATE TABLE f (id INT) ENGINE=FEDERATED CONNECTION={literal}")
    assert text == "CREATE TABLE f (id INT) ENGINE=FEDERATED CONNECTION=''"


@pytest.mark.parametrize(
    ("text", "is_unclear"),
    [
        ("ALTER TABLE t DROP INDEX u", True),
        ("/* x */ alter ignore table t ADD UNIQUE (a)", True),
        ("CREATE UNIQUE INDEX u ON t (a)", True),
        ("DROP INDEX u ON t", True),
        ("CREATE TEMPORARY TABLE t (a INT, INDEX (a))", False),
        ("CREATE TABLE t (a INT, INDEX (a)) SELECT a FROM temporary", False),
        ("DROP TEMPORARY TABLE t", False),
    ],
)
def test_what_may_have_changed_a_temporary_table_says_nothing_of_one_that_is_called_so(
    text: str, is_unclear: bool
) -> None:
    """MySQL sets 0x0004, LOG_EVENT_THREAD_SPECIFIC_F, where a statement used a temporary table."""
    assert kept(text) == text
    assert kept(text, flags=0x0004) == (None if is_unclear else text)
