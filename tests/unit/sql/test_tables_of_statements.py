"""Which tables a statement names, where each clause has them, which of them it writes, and what it calls."""

from typing import Any

import pytest

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.sql_mode import ANSI_QUOTES
from protocol.sql.statements.named_tables import (
    called_routines,
    deletes_from_one,
    is_simple,
    load_replaces,
    may_write_several,
    perhaps_written_tables,
    read_tables,
    statement_tables,
    table_places,
    tables_by_alias,
    written_tables,
)
from protocol.sql.statements.statement import StatementText


def named(text: str) -> list[str]:
    tokens = StatementText(text.encode(), "d").tokens
    return [tokens[place].text for _, place in table_places(tokens, 0, len(tokens) - 1)]


@pytest.mark.parametrize(
    ("text", "tables"),
    [("INSERT INTO a (x) SELECT 1 FROM b JOIN d.c ON b.x = c.x, e WHERE x = 1", ["a", "b", "c", "e"]),
     ("SELECT 1 FROM (a, b) JOIN c USING (x)", ["a", "b", "c"]),
     ("DELETE FROM a USING b AS a JOIN c", ["a", "b", "c"]),
     ("INSERT INTO a TABLE b", ["a", "b"]),
     ("UPDATE LOW_PRIORITY a, (SELECT x FROM b) y SET a.x = REPLACE(y.x, 'FROM', 1), a.z = EXTRACT(DAY FROM z)", ["a", "b"]),
     ("INSERT INTO a SELECT * FROM b ON DUPLICATE KEY UPDATE x = 1, y = 2", ["a", "b"]),
     ("SELECT CONVERT(x USING latin1) FROM a ORDER BY x, y FOR UPDATE", ["a"]),
     ("SELECT a FROM 5 JOIN b, c.", ["b"]),
     ("DELETE FROM a WHERE x) OR EXTRACT(DAY FROM y) = 1", ["a"]),
     ("ALTER IGNORE TABLE a RENAME TO b", [])],
)  # fmt: skip
def test_a_name_is_a_tables_where_the_clause_has_tables(text: str, tables: list[str]) -> None:
    assert named(text) == tables


def test_a_statement_reads_the_tables_of_its_queries_and_not_its_target() -> None:
    statement = StatementText(b"INSERT INTO a SELECT * FROM b, c.e", "d")
    assert read_tables(statement) == (("d", "b"), ("c", "e"))


def query(text: str, **setting: Any) -> StatementText:
    return StatementText(text.encode(), "d", **setting)


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("INSERT INTO a VALUES (1)", ["d.a"]), ("/* x */ INSERT LOW_PRIORITY INTO e.a VALUES (1)", ["e.a"]),
        ("INSERT a VALUES (1)", ["d.a"]),
        ("LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE a", ["d.a"]), ("UPDATE `a` AS x SET y = 1", ["d.a"]),
        ("UPDATE a JOIN e.b USING (x), (SELECT 1) c SET a.x = (1), e.b.y = f(1, 2) + 1 WHERE 1", ["d.a", "e.b"]),
        ("UPDATE (a PARTITION (p), LATERAL (SELECT 1) AS 'c') SET a.x = 1", ["d.a"]),
        ("WITH x (y) AS (SELECT 1), z AS (SELECT 2) UPDATE a, x SET a.y = x.y", ["d.a"]),
        ("DELETE QUICK a, b.* FROM a JOIN b WHERE 1", ["d.a", "d.b"]), ("DELETE FROM e.x.*, y.* USING e.a x, y", ["e.a", "d.y"]),
        ("DELETE FROM x.*, y.* USING e.a x, y", ["e.a", "d.y"]), ("DELETE IGNORE FROM a ORDER BY x", ["d.a"]),
        ("DELETE e.a FROM e.a, b", ["e.a"]),
        ("TRUNCATE TABLE a", ["d.a"]), ("CREATE TEMPORARY TABLE IF NOT EXISTS a (x INT)", ["d.a"]),
        ("DROP TEMPORARY TABLE IF EXISTS a, e.b", ["d.a", "e.b"]),
    ],
)  # fmt: skip
def test_a_statement_writes_the_tables_that_it_names_as_its_targets(text: str, tables: list[str]) -> None:
    assert [".".join(name) for name in written_tables(query(text))] == tables


def test_quoted_names_are_read_as_the_sql_mode_says() -> None:
    text = 'DELETE FROM "a" WHERE 1'
    assert written_tables(query(text, sql_mode=ANSI_QUOTES)) == (("d", "a"),)
    assert is_simple(query("DELETE FROM a"))
    assert not is_simple(query("DELETE FROM a", sql_mode=ANSI_QUOTES))


@pytest.mark.parametrize(
    "text",
    [
        "(SELECT 1)", "DROP TABLE a", "LOAD DATA INFILE 'x'", "UPDATE a, b SET x = 1", "UPDATE a, b SET c.x = 1", "DELETE a FROM b, c",
        "UPDATE a, a SET x = 1", "UPDATE (SELECT 1) x SET x.a = 1", "+", "DELETE FROM a USING", "INSERT INTO 5 VALUES (1)",
    ],
)  # fmt: skip
def test_a_statement_whose_targets_it_does_not_show_is_not_sure(text: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        written_tables(query(text))


def test_a_name_that_is_not_of_its_character_set_is_not_sure() -> None:
    for charset, raw in (("utf8mb4", b"DELETE FROM `\xff`"), ("gbk", b"DELETE FROM `\xb0\xa1`")):
        with pytest.raises(UnsupportedSyntax):
            written_tables(StatementText(raw, "d", charset=charset))
    assert written_tables(StatementText(b"DELETE FROM `\xe9`", "d", charset="latin1")) == (("d", "é"),)


def test_an_update_may_write_all_that_it_joins_where_it_does_not_say_which() -> None:
    assert perhaps_written_tables(query("UPDATE a, e.b, (SELECT 1) c SET x = 1")) == (("d", "a"), ("e", "b"))
    assert perhaps_written_tables(query("DELETE FROM a")) == (("d", "a"),)
    with pytest.raises(UnsupportedSyntax):
        perhaps_written_tables(query("DELETE a FROM b, c"))


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("UPDATE a, b SET a.x = 1, b.x = 1", True), ("UPDATE a, b SET a.x = 1", False), ("UPDATE a, b SET x = f(1, 2)", False),
        ("UPDATE a, b SET x = 1, y = 2", True), ("UPDATE IGNORE a, b SET x = 1 WHERE (1, 2) = (3, 4)", False), ("DELETE FROM a", False),
    ],
)  # fmt: skip
def test_an_update_may_write_several_tables_if_it_sets_several_columns(text: str, several: bool) -> None:
    assert may_write_several(query(text)) == several


@pytest.mark.parametrize(
    ("text", "one"),
    [
        ("DELETE FROM a WHERE 1", True), ("WITH x AS (SELECT 1) DELETE QUICK FROM e.a", True), ("DELETE FROM a, b USING a, b", False),
        ("DELETE FROM a USING a", False), ("DELETE a FROM a", False), ("UPDATE a SET x = 1", False),
        ("DELETE FROM a.b.*, c USING c", False),
    ],
)  # fmt: skip
def test_a_delete_from_one_table_is_known(text: str, one: bool) -> None:
    assert deletes_from_one(query(text)) == one


@pytest.mark.parametrize(
    ("text", "replaces"),
    [
        ("LOAD DATA INFILE 'x' REPLACE INTO TABLE a", True), ("LOAD DATA INFILE 'REPLACE' INTO TABLE a", False),
        ("LOAD DATA INFILE 'x' IGNORE INTO TABLE a SET x = REPLACE(y, 1, 2)", False), ("LOAD XML INFILE 'x'", False),
    ],
)  # fmt: skip
def test_a_load_that_replaces_rows_is_known(text: str, replaces: bool) -> None:
    assert load_replaces(query(text)) == replaces


def test_an_updates_tables_are_known_by_what_qualifies_columns() -> None:
    assert tables_by_alias(query("UPDATE e.A AS x LEFT JOIN b ON (1) STRAIGHT_JOIN (SELECT 1) y SET x.a = 1")) == {
        "x": ("e", "A"), "b": ("d", "b"), "y": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("INSERT INTO a (x) VALUES (NOW(), f(1))", ["d.f"]), ("INSERT INTO a SELECT e.f(x), `g`(y) FROM b (z)", ["e.f", "d.g"]),
        ("CALL p", ["d.p"]), ("CALL e.p(1)", ["e.p"]), ("INSERT INTO a VALUES (COUNT(1), 'f(1)')", []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", ["", "5.6.24", "9.7.4", "10.11.6-MariaDB"])
def test_a_statement_calls_what_is_no_function_of_its_server(text: str, calls: list[str], version: str) -> None:
    assert [".".join(name) for name in called_routines(query(text, server_version=version))] == calls


def test_the_tables_and_names_of_a_statement_are_known_together() -> None:
    tables = statement_tables(query("INSERT INTO e.a (x) SELECT f(`y`) FROM b"))
    assert tables.writes == (("e", "a"),)
    assert tables.calls
    assert {("e", "a"), ("", "b"), ("", "y")} <= tables.words
    assert not statement_tables(query("INSERT INTO e.a (x) VALUES (1)")).calls
    dropped = statement_tables(query("DROP TEMPORARY TABLE a"))
    assert dropped.is_temporary_definition and dropped.drops
    made = statement_tables(query("CREATE TEMPORARY TABLE a (x INT)"))
    assert made.is_temporary_definition and not made.drops
