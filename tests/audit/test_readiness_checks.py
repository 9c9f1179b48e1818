"""Each check of readiness, on statements alone. tests/interop/test_readiness_facts.py asks real servers the same."""

from pathlib import Path

import pytest

from protocol.columns.digest import StatementDigest
from protocol.sql.server_words import NEW_IN_MARIADB
from protocol.sql.sql_mode import NO_ENGINE_SUBSTITUTION
from relay.audit.readiness.bare_names import used_as_names
from relay.audit.readiness.check import Effect
from relay.audit.readiness.checks import ALL, BY_NAME, STATEMENTS, found_in, shown
from relay.audit.readiness.logged_statement import MOST_TOKENS, LoggedStatement
from tests.support.readiness_cases import HARMLESS, MAY_DIFFER, NOT_WARNED, STOPS, UNSAFE, UNSAFE_TO_KNOW, Case

DIGEST = StatementDigest()
EVERY = [*STOPS, *MAY_DIFFER, *UNSAFE, *NOT_WARNED]


def digested(text: str) -> str:
    """What the level `statements` says of a statement."""
    return DIGEST.of(text.encode()).decode() if LoggedStatement(text).changes_rows else text


def found(text: str, sql_mode: int = 0, seeds: int = 0, family: str = "mysql", loads: bool = False) -> set[str]:
    statement = LoggedStatement(digested(text), "test", sql_mode, seeds, loads)
    return {check.name for check in found_in(statement, family)}


def worth(names: set[str]) -> set[str]:
    return {name for name in names if BY_NAME[name].effect is not Effect.TO_KNOW}


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.statement[:60])
def test_what_would_stop_or_surprise_a_newer_replica_is_found(case: Case) -> None:
    mode = NO_ENGINE_SUBSTITUTION if case.sql_mode else 0
    seeds = 2 if "auto_increment_select" in case.checks else 0
    assert worth(found(case.statement, mode, seeds)) == set(case.checks)


@pytest.mark.parametrize("statement", [*HARMLESS, "CREATE USER a@b IDENTIFIED BY 'password'", "DROP USER a@b", "BEGIN"])
def test_what_is_harmless_is_not_found(statement: str) -> None:
    assert worth(found(statement)) == set()


@pytest.mark.parametrize("statement", UNSAFE_TO_KNOW)
def test_a_limit_with_an_order_is_only_to_know(statement: str) -> None:
    assert found(statement) == {"limit_with_order"}


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("CREATE TABLE k (a CHAR(1) CHARACTER SET utf8)", "utf8_alias"),
        ("CREATE TABLE k (a CHAR(1) COLLATE utf8_bin)", "utf8_alias"),
        ("INSERT INTO t VALUES (1, 1) ON DUPLICATE KEY UPDATE b = 2", "duplicate_key_update"),
        ("CREATE TEMPORARY TABLE k (a INT)", "temporary_table"),
    ],
)
def test_what_is_only_to_know_is_found_too(statement: str, name: str) -> None:
    assert found(statement) == {name}


def test_modes_files_and_long_statements_are_found() -> None:
    assert found("BEGIN", sql_mode=1 << 28) == {"sql_mode_gone"}
    assert found("LOAD DATA INFILE 'x' INTO TABLE t", loads=True) == {"load_data"}
    long = "CREATE PROCEDURE p() BEGIN " + "SET @x = y + 1;" * MOST_TOKENS
    assert found(long) == {"statement_not_examined"}


@pytest.mark.parametrize("word", sorted(NEW_IN_MARIADB))
def test_a_newer_mariadb_has_reserved_words_of_its_own(word: str) -> None:
    assert found(f"CREATE TABLE k ({word} INT)", family="mariadb") == {"reserved_word_mariadb"}
    assert not list(used_as_names(LoggedStatement("SELECT a FROM t LIMIT ? OFFSET ?"), NEW_IN_MARIADB))


def test_a_newer_mariadb_still_has_what_mysql_lost() -> None:
    for statement in (
        "ALTER IGNORE TABLE t ADD UNIQUE (b)",
        "INSERT INTO t SELECT SQL_CACHE a FROM t",
        "SET PASSWORD FOR a = PASSWORD('x')",
        "CREATE TABLE k (a INT) ENGINE=Aria",
    ):
        assert found(statement, family="mariadb") == set()
    assert found("CREATE TABLE k (a INT) ENGINE=TokuDB", family="mariadb") == {"engine_unknown_mariadb"}


def test_quotes_are_what_the_sql_mode_says() -> None:
    assert found('UPDATE t SET b = 1 WHERE "rank" = 1 LIMIT 1', sql_mode=4) == {"limit_without_order"}
    assert not found('CREATE TABLE k ("rank" INT)', sql_mode=4)


def test_the_documentation_lists_the_checks_as_they_are() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "AUDITS.md").read_text()
    lines = [f"| `{one.name}` | {one.effect.value} | {one.title} | {one.concerns} |" for one in ALL]
    assert [line for line in text.splitlines() if line.startswith("| `") and line.count(" | ") == 3] == lines


def test_every_check_of_statements_is_provoked_by_some_test() -> None:
    provoked = {name for case in EVERY for name in case.checks} | {
        "utf8_alias", "duplicate_key_update", "temporary_table", "sql_mode_gone", "load_data", "limit_with_order",
        "statement_not_examined", "reserved_word_mariadb", "engine_unknown_mariadb",
    }  # fmt: skip
    assert provoked == {one.name for one in STATEMENTS}
    assert len(BY_NAME) == len(ALL)


@pytest.mark.parametrize(
    "statement",
    [
        "SET PASSWORD FOR 'a'@'b' = 'hunter2'",
        'GRANT ALL ON *.* TO a IDENTIFIED BY "hunter2"',
        "CREATE USER a IDENTIFIED BY 'hunter2",
        "CREATE TABLE f (a INT) ENGINE=FEDERATED CONNECTION='mysql://u:hunter2@h/d/t'",
        "UPDATE mysql.user SET Password = PASSWORD('hunter2') WHERE User = 'x''hunter2'",
    ],
)
def test_no_secret_of_a_statement_is_shown(statement: str) -> None:
    assert "hunter2" not in shown(digested(statement))
    assert shown(statement).split()[0] == statement.split()[0]
