"""Of which constructs only the number counts: 2.50 and 2.5 are one as a number, and two as a text."""

import pytest

from tests.unit.sql.test_expressions import read


def numbers(text: str) -> list[str]:
    """Return the constructs of which only the number counts."""
    return [one.name for one in read(text).used if one.only_number]


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE u SET n = ROUND(n, 2)",
        "UPDATE u SET n = n + ROUND(n, 2) * 3",
        "UPDATE u SET n = IF(id = 1, ROUND(n, 2), 0)",
        "UPDATE u SET n = CASE WHEN id = 1 THEN ROUND(n, 2) ELSE n END",
        "UPDATE u SET n = COALESCE(ROUND(n, 2), 0)",
        "INSERT INTO u (n) SELECT ROUND(n, 2) FROM u",
        "UPDATE u SET n = (SELECT MAX(ROUND(n, 2)) FROM t)",
        "DELETE FROM u WHERE ROUND(n, 2) > 5",
        "DELETE FROM u WHERE ROUND(n, 2) BETWEEN 1 AND 2 AND NOT ROUND(n, 2)",
    ],
)
def test_what_is_used_as_a_number_is_marked(text: str) -> None:
    assert "ROUND()" in numbers(text)


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET s = ROUND(id, 2)",
        "UPDATE t SET s = CONCAT(ROUND(id, 2), '')",
        "UPDATE t SET s = IF(id = 1, ROUND(id, 2), 'x')",
        "UPDATE t SET s = CASE WHEN id = 1 THEN ROUND(id, 2) ELSE s END",
        "UPDATE u SET n = ROUND(n, 2) / 3",
        "UPDATE u SET n = LENGTH(ROUND(n, 2))",
        "DELETE FROM t WHERE ROUND(id, 2) = s",
        "DELETE FROM t WHERE ROUND(id, 2) LIKE '1%'",
        "UPDATE u SET n = @x := ROUND(n, 2)",
        "INSERT INTO t (id, s) SELECT x.r, x.r FROM (SELECT ROUND(n, 2) AS r FROM u) x",
        "SELECT ROUND(n, 2) FROM u",
        "INSERT INTO u (n) SELECT x.r FROM (SELECT ROUND(n, 2) AS r FROM u) x",
        "INSERT INTO t (id, s) SELECT x.r, CAST(x.r AS CHAR) FROM (SELECT ROUND(n, 4) AS r FROM u) x",
        "INSERT INTO unknown (a) SELECT ROUND(n, 4) FROM u",
        "CREATE TABLE z AS SELECT ROUND(n, 4) AS r FROM u HAVING r > 5",
        "UPDATE t SET id = f(ROUND(id, 4))",
        "UPDATE u SET n = - CONCAT(-ROUND(n, 4))",
    ],
)
def test_what_may_be_used_as_a_text_is_not_marked(text: str) -> None:
    assert "ROUND()" not in numbers(text)


def test_a_long_sum_takes_no_time() -> None:
    assert len(numbers(f"UPDATE u SET n = ROUND(n, 2){' + n' * 20_000}")) == 20_001
