"""What a statement's literals decide is told by its shape, and read to the end."""

import contextlib
import random
import time

import pytest

from protocol.sql.expressions.constructs import Classes
from protocol.sql.expressions.readers.literal_rows import classes_of_rows
from protocol.sql.expressions.statement_shape import shape_of
from protocol.sql.expressions.well_known_text import reads_well_known_text
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.survey.value_class import ValueClass
from tests.unit.sql.test_expressions import read


def stored(statement: str, version: str = "5.6.24-log") -> dict[str, Classes]:
    """Return what a statement stores, by the type of the column."""
    found = [one for one in read(statement, version=version).used if one.name.startswith("store ")]
    return {one.name.removeprefix("store "): one.arguments[0] for one in found}


def names(statement: str, version: str = "5.6.24-log") -> list[str]:
    return [one.name for one in read(statement, version=version).used]


@pytest.mark.parametrize(
    "text",
    [
        "GEOMETRYCOLLECTION(x" + " " * 65_000,
        "GEOMETRYCOLLECTION(" + " " * 65_000,
        "GEOMETRYCOLLECTION" + " " * 65_000 + "x",
        "GEOMETRYCOLLECTION(" + "POINT(1 1)," * 5_900,
        "LINESTRING(" + "1 1," * 16_000 + "x",
        "POINT(" + "1" * 65_000,
        "POINT(" + "1" * 32_000 + " " + "1" * 32_000 + ")",
        "POLYGON" + "(" * 65_000,
        "POLYGON((" + "1 1," * 16_000 + "1 1),(",
        "MULTIPOINT(" + "(1 1)," * 10_000,
        " " * 65_000 + "x",
    ],
)
def test_no_well_known_text_takes_long(text: str) -> None:
    began = time.perf_counter()
    reads_well_known_text("ST_GEOMFROMTEXT", text)
    assert time.perf_counter() - began < 0.05


def test_blanks_around_and_in_a_collection_are_read_like_those_of_other_shapes() -> None:
    assert reads_well_known_text("GEOMFROMTEXT", " GeometryCollection ( POINT(1 1) , POINT(2 2) ) ")
    assert not reads_well_known_text("GEOMFROMTEXT", "GEOMETRYCOLLECTION(POINT(1 1)")
    assert not reads_well_known_text("GEOMFROMTEXT", "\u2003POINT(1 1)")


def test_a_hexadecimal_literal_with_a_large_x_has_a_class_in_a_list_of_rows() -> None:
    assert classes_of_rows("(0X1F)", 0) == [{ValueClass.HEX}]


def test_a_binary_text_in_a_list_of_rows_is_one_however_it_is_written() -> None:
    assert classes_of_rows("(_BINARY '2020-02-30')", 0) == [{ValueClass.BYTES}]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_lexer_takes_for_rows_of_literals_is_read_without_a_fault(seed: int) -> None:
    chance = random.Random(seed)
    letters = "0123456789xXbBeE+-.'\"\\ ()_,:NULDFT\u0660\xe9"
    pieces = [
        *["NULL", "0X1F", "0b1", "1e5", "-0x1", "X'1F'", "_binary'a'", "1.", ".5", "-.5e-3", "'a'", "+5"],
        "9" * 70,
        *letters,
    ]
    for _ in range(3_000):
        text = "".join(chance.choices(pieces, k=chance.randint(1, 5)))
        shape_of(f"INSERT INTO t VALUES ({text})", 0)
        with contextlib.suppress(UnsupportedSyntax):
            read(f"INSERT INTO t VALUES ({text}), (1)")


def test_a_default_in_one_row_hides_no_literal_of_another_one() -> None:
    made = stored("INSERT INTO t (at, s) VALUES (DEFAULT, CONCAT('a')), ('2020-01-31 10:11:12+02:00', CONCAT('b'))")
    assert made["DATETIME"] == {ValueClass.TEXT_OFFSET}


@pytest.mark.parametrize("settings", ["max_statement_time=1", "sql_mode = '', max_statement_time = 1 + 1"])
def test_the_statement_behind_mariadbs_settings_for_it_is_read(settings: str) -> None:
    assert "REGEXP" in names(f"SET STATEMENT {settings} FOR UPDATE t SET s = s REGEXP 'a'", "10.11.19-MariaDB")


def test_a_variable_of_a_program_may_be_called_statement() -> None:
    assert names("SET statement = 1") == []


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE x (a INT) AS (SELECT 1) UNION (SELECT s REGEXP 'a' FROM t)",
        "CREATE TABLE x ((SELECT s REGEXP 'a' FROM t))",
        "CREATE TABLE x (SELECT s REGEXP 'a' FROM t)",
        "CREATE TABLE x ENGINE=InnoDB SELECT s REGEXP 'a' FROM t;",
        "CREATE OR REPLACE TEMPORARY TABLE x SELECT s REGEXP 'a' FROM t",
        "CREATE TABLE x (a INT) WITH SYSTEM VERSIONING AS WITH q AS (SELECT s REGEXP 'a' FROM t) SELECT * FROM q",
        "CREATE TABLE x (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5)) SELECT s REGEXP 'a' FROM t",
    ],
)
def test_the_query_of_a_new_table_is_read_wherever_it_is(statement: str) -> None:
    assert "REGEXP" in names(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE x (a INT, FULLTEXT KEY (a) WITH PARSER ngram) ENGINE=MERGE UNION=(t, u)",
        "CREATE TABLE x (a INT) WITH SYSTEM VERSIONING",
        "CREATE TABLE x LIKE t",
        "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
    ],
)
def test_a_definition_without_a_query_is_made_of_nothing(statement: str) -> None:
    assert names(statement) == []


def test_what_a_query_gives_to_a_column_that_its_new_table_defines_is_stored_there() -> None:
    assert stored("CREATE TABLE x (a INT(11) NOT NULL, KEY (a), b ENUM('a', 'b')) SELECT d AS a, 1 AS c FROM t") == {
        "INT": {ValueClass.DATE, ValueClass.DATE_ZERO}
    }


def told(statement: str) -> set[tuple[object, ...]]:
    """Return what is judged of a statement."""
    return {(one.name, one.arguments, one.unknown, one.is_strict, one.cannot_fail) for one in read(statement).used}


@pytest.mark.parametrize(
    ("statement", "other"),
    [
        ("SELECT ST_GeomFromText('POINT(1 1)')", "SELECT ST_GeomFromText('POINT(1)')"),
        ("SELECT GeomFromText( _latin1'POINT(1 1)')", "SELECT GeomFromText( _latin1'POINT(1)')"),
        ("SELECT FLOOR(RAND()*1000000)", "SELECT FLOOR(RAND()*100000000000000)"),
        (
            "SELECT id FROM t WHERE at = '2020-01-31 10:11' ':12'",
            "SELECT id FROM t WHERE at = '2020-01-31 10:11' '+02:00'",
        ),
        ("SELECT 1 AS 'a', NOW() AS 'b'", "SELECT 1 AS 'b', NOW() AS 'a'"),
        ("SELECT 1 'a', NOW() 'b'", "SELECT 1 'b', NOW() 'a'"),
        ("SELECT t. date 'a', NOW() 'b' FROM t", "SELECT t. date 'b', NOW() 'a' FROM t"),
        ("SELECT t.date 'a', NOW() 'b' FROM t", "SELECT t.date 'b', NOW() 'a' FROM t"),
        ("SELECT UNHEX(" + " " * 13 + "'4142')", "SELECT UNHEX(" + " " * 13 + "'wxyz')"),
        ("DELETE FROM t WHERE id %" + " " * 10 + "5", "DELETE FROM t WHERE id %" + " " * 10 + "0"),
        ("DELETE FROM t WHERE id / -5", "DELETE FROM t WHERE id / -0"),
        ("DELETE FROM t WHERE id / '5'", "DELETE FROM t WHERE id / '0'"),
        ("SELECT id AS 1\u05d0", "SELECT id AS 2\u05d0"),
        ("SELECT id AS 1\xe9", "SELECT id AS 2\xe9"),
        ("SET @'a' = 1, @'b' = NOW(), @c = @'a' + 1", "SET @'b' = 1, @'a' = NOW(), @c = @'a' + 1"),
        ("SELECT f((1), (2.5)), g((2.5), (1))", "SELECT f((2.5), (1)), g((1), (2.5))"),
        ("SELECT (1, 2) IN ((1, 2),(3, 'a'))", "SELECT (1, 2) IN ((3, 'a'),(1, 2))"),
        ("INSERT INTO t (s) VALUES (0x41), ('0xZZ')", "INSERT INTO t (s) VALUES (0x41), ('0xFF')"),
        ("UPDATE t SET d = DATE '2021-12-31'", "UPDATE t SET d = DATE '2020-01-31 10:11'"),
        ("UPDATE t SET at = TIMESTAMP '2020-01-31 10:11'", "UPDATE t SET at = TIMESTAMP '2021-12-31'"),
    ],
)
def test_statements_have_two_shapes_where_a_literals_own_text_decides(statement: str, other: str) -> None:
    assert shape_of(statement, 0) != shape_of(other, 0)


def _random_statement(chance: random.Random) -> str:
    """Return one of few statements that differ in some of their literals."""
    literals = [
        "0",
        "5",
        "00",
        "12345",
        "1000000",
        "9999999999",
        "1588673472",
        "65",
        "'0000-00-00'",
        "'0000-00-00 00:00:00'",
        "'0000-00-00 00:00:01'",
        "1.5",
        "0.0",
        "''",
        "'0'",
        "'5'",
        "'0.0'",
        "'\\.'",
        "'\\0'",
        "'abc'",
        "'xyz'",
        "'b'",
        "'a'",
        "'2020-01-31 10:11'",
        "':12'",
        "'+02:00'",
        "NULL",
        "'2020-02-30'",
        "'2021-12-31'",
        "'POINT(1 1)'",
        "'POINT(1)'",
        "'LINESTRING(1 1, 2 2)'",
        "'4142'",
        "'wxyz'",
        "'0xff'",
        "x'41'",
        "x'ff'",
        "0x41",
        "RAND()",
        "_utf8'0'",
        "_utf8'5'",
        "N'a'",
        "@'a'",
        "@'b'",
        "'a' 'b'",
        '"a"',
        "`a`",
        "DATE'2020-01-01'",
    ]
    one, two, three = chance.choices(literals, k=3)
    templates = (
        "UPDATE t SET id = {0} / {1} WHERE id % {2}",
        "UPDATE t SET id = id DIV {0}, s = id MOD {1}, at = {2}",
        "UPDATE t SET id = id / ({0}), s = id / -{1}, d = {2}",
        "UPDATE t SET id = id / BINARY {0}, s = id % !{1} WHERE NOT {2}",
        "INSERT INTO t (id, at, s) VALUES ({0}, {1}, {2}),({1}, {2}, {0}), ({2}, {0}, {1})",
        "INSERT INTO t (id, s) VALUES ({0}, {1}), (DEFAULT, {2})",
        "INSERT INTO u (id) SELECT x.a FROM (SELECT {0} AS 'a', NOW() AS 'b', {1} 'c') x WHERE x.b = {2}",
        "INSERT INTO u (id) SELECT x.a FROM (SELECT {0} AS 'b', NOW() AS 'a', {1} 'c') x WHERE x.b = {2}",
        "UPDATE t SET s = UNHEX({0}), b = UNHEX( {1}), g = UNHEX(CONCAT({2}, 'a'))",
        "UPDATE t SET b = ST_GeomFromText({0}), g = GEOMFROMTEXT(  {1}), s = PointFromText({2}, 1)",
        "UPDATE t SET at = {0} {1}, s = {2}",
        "UPDATE t SET id = FLOOR(RAND() * {0}), d = d + INTERVAL {1} DAY, at = ADDDATE(at, {2})",
        "SET @'a' = {0}, @'b' = {1}, @c = @'a' + {2}",
        "UPDATE t SET s = CASE {0} WHEN {1} THEN {2} ELSE s END WHERE s LIKE {0} AND at BETWEEN {1} AND {2}",
        "SELECT t.date {0}, {1} {2} FROM t HAVING a > b",
        "SELECT f(({0}),({1}),({2})), GREATEST(({1}),({0})), id IN ({0}, {2}) FROM t",
        "UPDATE t SET at = TIMESTAMP{0}, d = DATE {1}, s = TIME {2}",
        "UPDATE t SET at = FROM_UNIXTIME({0}), s = FORMAT(id, {1}), s = CHAR({2})",
        "UPDATE t SET id = id * {0} + id, s = INSTR(s, {1}) WHERE at = {2} OR at IN ({0}, {1})",
        "UPDATE t SET at = at + INTERVAL {0} SECOND, d = DATE_SUB(at, INTERVAL {1} MICROSECOND), s = CONCAT(ROUND(1.5, {2}))",
    )
    return chance.choice(templates).format(one, two, three)


def test_statements_of_one_shape_are_made_of_the_same_constructs() -> None:
    chance = random.Random(26)
    seen: dict[str, tuple[str, object]] = {}
    compared = 0
    for _ in range(8_000):
        statement = _random_statement(chance)
        shape = shape_of(statement, 0)
        if shape is None or (shape in seen and seen[shape][0] == statement):
            continue
        try:
            made: object = told(statement)
        except UnsupportedSyntax as error:
            made = type(error)
        first = seen.setdefault(shape, (statement, made))
        assert first[1] == made, (first[0], statement)
        compared += first[0] != statement
    assert compared > 500
