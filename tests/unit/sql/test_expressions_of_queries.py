"""Queries of statements: their columns in order, their unions, and how many and how deep they may be."""

from collections.abc import Callable
from time import process_time

import pytest

from protocol.sql.expressions.constructs import StatementConstructs
from protocol.sql.lexer import UnsupportedSyntax
from tests.unit.sql.test_expressions import body, read, stored, used

SECONDS = 20.0
"""Much more than a statement takes that is given up early."""


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (f"SELECT {', '.join(['t.*'] * 1000)} FROM t", "too many columns of a query"),
        (f"SELECT 1 FROM t {', t' * 61}", "too many tables of a query"),
        (" UNION ".join([f"SELECT {', '.join(['t.*'] * 500)} FROM t"] * 35), "too many columns"),
    ],
)
def test_a_query_of_more_columns_or_tables_than_servers_take_is_not_read(statement: str, why: str) -> None:
    begin = process_time()
    with pytest.raises(UnsupportedSyntax, match=why):
        read(statement)
    assert process_time() - begin < SECONDS


@pytest.mark.parametrize(
    ("opened", "inside", "closed"),
    [
        ("SELECT 1 FROM ", "(", "t"),
        ("", "(", "SELECT 1"),
        ("SELECT 1 ", "FROM (SELECT 1 ", "FROM t"),
        ("", "WITH a AS (", "SELECT 1"),
        ("SELECT ", "(SELECT ", "1"),
        ("SELECT ", "1 OR 1 XOR 1 AND 1 = 1 | 1 & 1 << 1 + 1 * 1 ^ IFNULL(1, ", "1"),
        ("SELECT 1 FROM ", "(t JOIN (SELECT 1 FROM t JOIN ", "t"),
        ("SELECT ", "1 IN (SELECT 1 FROM t WHERE ", "1"),
    ],
)
@pytest.mark.parametrize("depth", [70, 80, 600])
def test_what_is_nested_too_deep_is_not_read(opened: str, inside: str, closed: str, depth: int) -> None:
    with pytest.raises(UnsupportedSyntax):
        read(opened + inside * depth + closed)


@pytest.mark.parametrize("read_it", [read, body])
def test_what_people_nest_is_read(read_it: Callable[[str], object]) -> None:
    text = f"DO {'IF(n, 1, ' * 25}(SELECT COUNT(*) FROM (SELECT 1 FROM ((t))) x){')' * 25}"
    read_it(text if read_it is read else f"{'BEGIN ' * 20}{text};{' END;' * 20}")


@pytest.mark.parametrize("union", ["UNION", "UNION ALL", "UNION DISTINCT"])
def test_a_union_is_one_of_whatever_columns(union: str) -> None:
    assert used(f"INSERT INTO u SELECT id, n FROM u {union} SELECT id, s FROM t") == ["UNION"]


@pytest.mark.parametrize(
    ("query", "stores"),
    [
        ("SELECT * FROM (SELECT 5, '2020-01-01 00:00:00+02:00') x", ["store INT integer", "store DATE text offset"]),
        ("SELECT * FROM (SELECT COUNT(*), MAX(d) m FROM t) x", ["store INT INT?", "store DATE date|date zero"]),
        ("SELECT x.* FROM (SELECT 5 a, 1.5 a) x", ["store INT integer", "store DATE decimal"]),
        ("WITH x AS (SELECT 5, 1.5) SELECT * FROM x", ["store INT integer", "store DATE decimal"]),
        ("WITH x (a) AS (SELECT n FROM u) SELECT 1, a FROM x", ["store INT integer", "store DATE decimal"]),
    ],
)
def test_the_columns_of_a_query_in_from_keep_their_places(query: str, stores: list[str]) -> None:
    made = [text.removesuffix(" loose") for text in stored(f"INSERT INTO t (id, d) {query}")]
    assert made == stores


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 + (SELECT * FROM v)",
        "SELECT 1 + (SELECT * FROM (SELECT * FROM v) x)",
        "WITH x AS (SELECT * FROM v) SELECT 1 + a FROM x",
        "WITH x AS (SELECT * FROM v UNION SELECT 1, 2) SELECT 1 + a FROM x",
        "SELECT 1 + a FROM (SELECT 1, 2 UNION SELECT * FROM v) x",
    ],
)
def test_all_columns_of_an_unknown_table_are_anything_and_name_it(query: str) -> None:
    assert unknown_of(read(query)) == {("d", "v")}


def unknown_of(made: StatementConstructs) -> set[tuple[str, str]]:
    return {name for one in made.used if one.name == "+" for name in one.unknown}


def test_the_columns_of_a_recursive_query_are_anything() -> None:
    query = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n * 2 FROM c"
    assert used(query) == ["+ ANY , integer", "UNION", "* ANY , integer"]


@pytest.mark.parametrize(
    ("tables", "stores"),
    [
        ("u a JOIN t USING (id)", ["INT?", "decimal", "date|date zero"]),
        ("t LEFT JOIN u USING (id)", ["INT?", "date|date zero", "date zero|datetime"]),
        ("u NATURAL JOIN t", ["INT?", "decimal", "date|date zero"]),
        ("u x, u a JOIN t USING (id)", ["INT?", "decimal", "INT?"]),
        ("u x JOIN (u a JOIN t USING (id)) ON 1", ["INT?", "decimal", "INT?"]),
        ("u JOIN t ON 1", ["INT?", "decimal", "INT?"]),
        ("(SELECT 1 n, 2 id) a JOIN u USING (id, n)", ["decimal|integer", "INT?"]),
    ],
)
def test_the_columns_of_a_join_are_in_the_order_of_the_standard(tables: str, stores: list[str]) -> None:
    made = [
        text.split(" ", 2)[2].removesuffix(" loose")
        for text in stored(f"INSERT INTO t (s, g, b) SELECT * FROM {tables}")
    ]
    assert made == stores


@pytest.mark.parametrize(
    "tables", ["u RIGHT JOIN t USING (id)", "u NATURAL RIGHT JOIN t", "u JOIN t JOIN e USING (id) USING (id)"]
)
def test_the_columns_of_other_joins_are_not_guessed(tables: str) -> None:
    with pytest.raises(UnsupportedSyntax, match="order of the columns"):
        read(f"SELECT * FROM {tables}")
    assert used(f"SELECT 1 + n FROM {tables} WHERE EXISTS (SELECT * FROM t)")[-1].startswith("+ integer")


def test_a_join_with_an_unknown_table_is_anything() -> None:
    assert unknown_of(read("SELECT 1 + (SELECT * FROM u JOIN v USING (id))")) == {("d", "v")}
