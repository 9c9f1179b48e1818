"""Statements of a MariaDB that the survey has seen MySQL compute otherwise: the view stops before them by name."""

import pytest

from tests.unit.view_mariadb_statements.test_changed_rows import DATABASE, DIFFERS, parts, run, stop

TABLES = (
    "CREATE TABLE t (k INT, n INT, at DATETIME, d DATE, c TIME, s VARCHAR(30), x DOUBLE, e ENUM('a', 'b') NOT NULL)",
    "CREATE TABLE s (k INT, n INT)",
)


@pytest.mark.parametrize(
    ("statement", "construct"),
    [
        ("INSERT INTO s SELECT k, @n := @n + 1 FROM (SELECT k FROM t GROUP BY k) x", "GROUP BY without ORDER BY"),
        ("INSERT INTO t (at) VALUES ('2020-01-01 10:00:00+02:00')", "store DATETIME"),
        ("UPDATE t SET k = 1 WHERE s REGEXP '[a&&b]'", "REGEXP"),
        ("DELETE FROM t WHERE d BETWEEN '2020-02-15' AND '2020-02-31'", "BETWEEN"),
        ("DELETE FROM t WHERE x'30' AND k", "condition"),
        ("DELETE FROM t WHERE k = x'30'", "="),
        ("INSERT INTO t (k, e) VALUES (1, NULL), (2, 'a')", "NULL into NOT NULL"),
    ],
)
def test_what_mysql_computes_otherwise_stops_the_view_by_name(statement: str, construct: str) -> None:
    reason = stop(parts(DATABASE, *TABLES), statement)
    assert reason.name == DIFFERS
    assert f" computes {construct} " in reason.text
    assert f'accept = ["{construct.lower()}"]' in reason.advice


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (1, 2, '2020-01-01 10:00:00.7', '2020-01-01', '10:00:00.7', 'text', 2.5e0, 'a')",
        "UPDATE t SET at = NOW(), d = CURDATE(), s = CONCAT(s, 'x'), x = x * 1.1 WHERE k = 3 AND at > NOW() - INTERVAL 1 DAY",
        "UPDATE t SET at = at + INTERVAL 1 DAY, d = DATE_ADD(d, INTERVAL 1 MONTH) WHERE at BETWEEN NOW() - INTERVAL 2 DAY AND NOW()",
        "UPDATE t SET s = REPLACE(LOWER(TRIM(s)), 'a', 'b'), k = k - 1 WHERE s LIKE 'a%' AND k IN (1, 2, 3)",
        "DELETE FROM t WHERE k % 2 AND COS(k)",
        "UPDATE unheard SET a = 5, b = 'x', c = NOW() WHERE id = 3 AND name = 'abc' AND at > '2020-01-01'",
        "DELETE FROM unheard WHERE k = x'AB'",
    ],
)
def test_what_mysql_computes_alike_is_passed_on(statement: str) -> None:
    assert run(parts(DATABASE, *TABLES, plain=("*",)), statement) == [statement.encode()]
