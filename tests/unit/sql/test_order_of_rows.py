"""Which statements have another effect with rows in another order, by their words alone."""

import pytest

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.sql_mode import ONLY_FULL_GROUP_BY
from protocol.sql.statements.order_dependence import (
    may_depend_on_order,
    order_counts,
    program_hangs_on_order,
    searches_text,
    values_of_update,
    verb_of,
)
from protocol.sql.statements.statement import StatementText


def query(text: str, sql_mode: int = 0) -> StatementText:
    return StatementText(text.encode(), "d", sql_mode)


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM a LIMIT 1", "UPDATE IGNORE a SET x = 1", "UPDATE a SET x = 1 ORDER BY NULL LIMIT 1",
        "DELETE FROM a ORDER BY 1 LIMIT 1", "DELETE FROM a ORDER BY RAND() LIMIT 1", "UPDATE a SET x = (@n := @n + 1)",
        "INSERT INTO a SELECT GROUP_CONCAT(x) FROM b", "INSERT INTO a SELECT GROUP_CONCAT(x ORDER BY 'a') FROM b",
        "INSERT INTO a SELECT x FROM b UNION SELECT x FROM c LIMIT 1", "REPLACE INTO a SELECT * FROM b", "REPLACE INTO a TABLE b",
        "INSERT IGNORE INTO a TABLE b", "INSERT INTO a TABLE b ON DUPLICATE KEY UPDATE x = 1", "INSERT IGNORE INTO a SELECT * FROM b",
        "INSERT INTO a SELECT * FROM b ON DUPLICATE KEY UPDATE x = 1", "CREATE TABLE a (x INT UNIQUE) IGNORE SELECT x FROM b",
        "CREATE TABLE a REPLACE AS (SELECT x FROM b)", "CREATE TABLE a SELECT x FROM b LIMIT 1",
        "INSERT INTO a SELECT x, y FROM b GROUP BY x", "INSERT INTO a SELECT (SELECT 1), y, MAX(x) FROM b",
        "INSERT INTO a SELECT * FROM b GROUP BY 7; ", "(SELECT x FROM a LIMIT 1)",
        "LOAD DATA INFILE 'x' INTO TABLE a SET x = (SELECT y FROM b LIMIT 1)",
    ],
)  # fmt: skip
def test_the_order_of_rows_counts_where_some_of_them_are_picked(text: str) -> None:
    assert order_counts(query(text), makes_numbers=False)


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM a ORDER BY x LIMIT 1", "UPDATE IGNORE a SET x = 1 ORDER BY x",
        "INSERT INTO a SELECT GROUP_CONCAT(x ORDER BY x) FROM b",
        "INSERT INTO a SELECT x FROM b ORDER BY 1 LIMIT 1", "REPLACE INTO a SELECT * FROM b ORDER BY x",
        "REPLACE INTO a VALUES ((SELECT 1))",
        "REPLACE INTO a SET x = (SELECT MAX(x) FROM b)", "CREATE TABLE a SELECT x FROM b", "CREATE TABLE a (x INT)",
        "CREATE VIEW v AS SELECT x FROM a LIMIT 1", "DROP TABLE a", "INSERT INTO a TABLE b", "UPDATE a SET x = (SELECT MAX(y) FROM b)",
        "LOAD DATA INFILE 'x' INTO TABLE a (@x) SET x = (@n := @n + 1)", "REPLACE INTO a TABLE b ORDER BY x",
        "INSERT INTO a SELECT x, b.y z, COUNT(*) FROM b GROUP BY x, z", "INSERT INTO a SELECT `MAX`(x) FROM b",
        "INSERT INTO a SELECT x + 1, 3 FROM b GROUP BY 1", "CREATE TABLE a (x INT) SELECT x FROM b IGNORE INDEX (i)",
    ],
)  # fmt: skip
def test_the_order_of_rows_does_not_count_where_all_are_taken_or_sorted(text: str) -> None:
    assert not order_counts(query(text), makes_numbers=False)


def test_the_order_of_rows_counts_where_they_get_numbers() -> None:
    for text in ("INSERT INTO a SELECT x FROM b", "INSERT INTO a TABLE b", "CREATE TABLE a SELECT x FROM b"):
        assert order_counts(query(text), makes_numbers=True)
        assert not order_counts(query(f"{text} ORDER BY x"), makes_numbers=True)


def test_a_query_of_full_groups_returns_one_value_for_each() -> None:
    assert not order_counts(
        query("INSERT INTO a SELECT x, y FROM b GROUP BY x", ONLY_FULL_GROUP_BY), makes_numbers=False
    )


@pytest.mark.parametrize("text", ["DELETE FROM a)", "INSERT INTO a SELECT GROUP_CONCAT(x FROM b"])
def test_brackets_that_do_not_fit_are_not_sure(text: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        order_counts(query(text), makes_numbers=False)


def test_queries_that_are_nested_too_deeply_are_not_sure() -> None:
    nested = "(SELECT x FROM " * 2000 + "a" + ") x" * 2000
    with pytest.raises(UnsupportedSyntax, match="too many queries"):
        order_counts(query(f"INSERT INTO a SELECT x FROM {nested}"), makes_numbers=False)


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("UPDATE a SET x = 1", "UPDATE"), ("(SELECT 1)", "SELECT"),
        ("((WITH x AS (SELECT 1) SELECT 2))", "SELECT"), ("WITH x AS (SELECT 1) DELETE FROM a", "DELETE"),
        ("WITH RECURSIVE x (a, b) AS (SELECT 1, 2), y AS (SELECT 1) UPDATE a SET x = 1", "UPDATE"),
    ],
)  # fmt: skip
def test_a_statements_verb_comes_after_brackets_and_with(text: str, verb: str) -> None:
    assert verb_of(query(text)) == verb


def test_words_in_texts_and_comments_are_no_reason_to_examine_a_statement() -> None:
    assert may_depend_on_order(query("INSERT INTO a SELECT 1"))
    assert may_depend_on_order(query("UPDATE a, b SET a.x = b.x"))
    assert not may_depend_on_order(query("UPDATE a SET x = 'LIMIT 1'"))
    assert not may_depend_on_order(query("INSERT INTO a VALUES ('SELECT', /* LIMIT */ `limit`)"))
    assert searches_text(query("DELETE FROM a WHERE MATCH (x) AGAINST ('y')"))
    assert not searches_text(query("DELETE FROM a WHERE x = 'AGAINST'"))


@pytest.mark.parametrize(
    ("program", "hangs"),
    [
        ("BEGIN DELETE FROM a LIMIT 1; END", True), ("BEGIN DECLARE c CURSOR FOR SELECT x FROM a; END", True),
        ("DELETE FROM a);", True),
        ("BEGIN DECLARE c CURSOR FOR SELECT x FROM a ORDER BY x; END", False), ("BEGIN SET @n := 1; DELETE FROM a; END", False),
        ("UPDATE a SET x = (@n := @n + 1)", True),
    ],
)  # fmt: skip
def test_a_program_hangs_on_the_order_of_rows_if_one_of_its_statements_does(program: str, hangs: bool) -> None:
    assert program_hangs_on_order(query(program).tokens) == hangs


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("UPDATE a, b SET a.x = b.y + d.c.z, a.z = `e`.x WHERE a.x = f.x", {"b", "c", "e"}),
        ("UPDATE a, b SET a.x = 5, b.y = f(NOW(), 'x')", set()), ("UPDATE a, b SET a.x = y", None),
        ("UPDATE a, b SET a.x = NOW() - INTERVAL 1 DAY, b.y = TIMESTAMPDIFF(DAY, b.z, 1)", {"b"}),
        ("UPDATE a, b SET a.x = @y, b.y = NULL ORDER BY z", set()), ("DELETE FROM a", set()),
    ],
)  # fmt: skip
def test_an_update_of_several_tables_assigns_the_columns_of_some(text: str, tables: set[str] | None) -> None:
    assert values_of_update(query(text)) == tables
