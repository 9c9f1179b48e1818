"""The constructs of which statements are made, with the classes of values that each gets."""

from collections.abc import Mapping

import pytest

from protocol.sql.expressions.constructs import NULL, FiredChange, Operand, StatementConstructs
from protocol.sql.expressions.function_results import NUMBERS
from protocol.sql.expressions.readers.column_scope import KnownColumn
from protocol.sql.expressions.readers.program_reader import ProgramReader
from protocol.sql.expressions.readers.statement_reader import StatementReader
from protocol.sql.expressions.statement_shape import shape_of
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.sql_mode import NO_BACKSLASH_ESCAPES
from protocol.sql.statements.statement import StatementText
from protocol.sql.survey.value_class import ANY, ValueClass, class_of_text, classes_of_type
from protocol.sql.tables.source_table import TableName

TYPES = {
    "t": {"id": "int(11)", "d": "date", "at": "datetime", "s": "varchar(20)", "b": "blob", "g": "longtext"},
    "u": {"id": "int(11)", "n": "decimal(5,2)"},
    "e": {"id": "enum('a')"},
}
_TYPED = {
    "NUM?": NUMBERS,
    "WHOLE?": frozenset((ValueClass.INTEGER, ValueClass.NEGATIVE, ValueClass.UNSIGNED)),
    "BITS?": frozenset((ValueClass.INTEGER, ValueClass.UNSIGNED)),
    "TEXT?": classes_of_type("varchar(9)"),
    "INT?": classes_of_type("int"),
    "INT or TEXT?": classes_of_type("varchar(9)") | classes_of_type("int"),
}
SHORT = {classes - {ValueClass.NULL}: name for name, classes in _TYPED.items()} | {ANY: "ANY"}


class Known:
    """The tables of TYPES; others are not known."""

    def columns_of(self, name: TableName) -> Mapping[str, KnownColumn] | None:
        types = TYPES.get(name[1])
        if types is None:
            return None
        return {
            column: KnownColumn(classes_of_type(kind), kind.partition("(")[0].upper(), column != "id", column != "id")
            for column, kind in types.items()
        }


def read(
    text: str,
    *,
    mode: int = 0,
    version: str = "5.6.24-log",
    variables: Mapping[str, Operand] | None = None,
    numbers: bool = False,
) -> StatementConstructs:
    query = StatementText(text.encode(), "d", mode, version)
    folded = query.read_as(folds_rows=True) if text.startswith(("INSERT", "REPLACE")) else query.read
    reader = StatementReader(query, folded.tokens, variables or {}, Known())
    reader.folded = dict(folded.rows)
    return reader.read(makes_numbers=numbers, sorts_groups="MariaDB" not in version)


def used(text: str, **given: object) -> list[str]:
    """Return the constructs as texts; what is stored is left out, unless it is asked for."""
    made = read(text, **given)  # type: ignore[arg-type]
    return [
        f"{one.name} {' , '.join(SHORT.get(classes, '|'.join(sorted(classes))) for classes in one.arguments)}".strip()
        for one in made.used
        if not one.name.startswith("store ")
    ]


def body(text: str) -> list[str]:
    query = StatementText(text.encode(), "d", 0, "5.6.24-log")
    return [one.name for one in ProgramReader(query, Known(), ("d", "t")).read_body(sorts_groups=True).used]


@pytest.mark.parametrize(
    ("expression", "constructs"),
    [
        ("1 + 2 * 3", ["* integer , integer", "+ integer , integer"]),
        ("-5", []),
        ("- s", ["unary - TEXT?"]),
        ("+ 5", []),
        ("! 0", ["! integer"]),
        ("~ 7", ["~ integer"]),
        ("BINARY s", ["BINARY TEXT?"]),
        ("NOT d", ["NOT date|date zero"]),
        ("s REGEXP 'a.b'", ["REGEXP TEXT? , text other"]),
        ("s NOT RLIKE 'a.b'", ["NOT REGEXP TEXT? , text other"]),
        ("s LIKE 'a%' ESCAPE '|'", ["LIKE TEXT? , text other"]),
        ("s SOUNDS LIKE 'x'", ["SOUNDS LIKE TEXT? , text other"]),
        ("d BETWEEN '2020-02-01' AND '2020-02-31'", ["BETWEEN date|date zero , text date , text no date"]),
        ("d NOT IN ('', 1)", ["NOT IN date|date zero , text empty , integer"]),
        ("(s, id) IN ((1, 2), (3, 4))", ["IN TEXT? , integer", "IN INT? , integer"] * 2),
        ("(s, 1) = (2, 3)", ["= TEXT? , integer", "= integer , integer"]),
        ("id IN (SELECT n FROM u)", ["IN INT? , decimal"]),
        ("EXISTS (SELECT 1 FROM u)", []),
        ("s IS NOT NULL", ["IS NOT NULL TEXT?"]),
        ("s IS NOT TRUE", ["IS TRUE TEXT?"]),
        ("s IS NULL", ["IS NULL TEXT?"]),
        ("1 <=> 2 XOR 3 != 4", ["<=> integer , integer", "<> integer , integer", "XOR integer , integer"]),
        ("1 OR 5 >= 6 AND 7", [">= integer , integer", "AND integer , integer", "OR integer , integer"]),
        ("1 && 2 || 3", ["AND integer , integer", "OR integer , integer"]),
        ("5 DIV 2 MOD 3", ["DIV integer , integer", "% INT? , integer"]),
        ("1 << 2 | 3 & 4 ^ 5", ["<< integer , integer", "^ integer , integer", "& integer , integer", "| BITS? , integer"]),
        ("d + INTERVAL 1 DAY", ["INTERVAL + date zero , integer"]),
        ("INTERVAL (1) HOUR + at", ["INTERVAL + date zero , integer"]),
        ("at + INTERVAL 1 HOUR", ["INTERVAL + date zero , integer"]),
        ("at + INTERVAL 1000000 HOUR", ["INTERVAL + date zero|datetime , integer"]),
        ("d - INTERVAL -1 MONTH", ["INTERVAL - date zero , negative"]),
        ("INTERVAL(3, 1, 2)", ["INTERVAL() integer , integer , integer"]),
        ("DATE_ADD(d, INTERVAL 1 DAY)", ["DATE_ADD() date zero , integer"]),
        ("ADDDATE(d, INTERVAL 1 DAY)", ["ADDDATE() INTERVAL date zero , integer"]),
        ("ADDDATE(d, 1)", ["ADDDATE() date zero , integer"]),
        ("CASE WHEN 1 THEN 'a' ELSE 2 END", ["CASE integer , text other , integer"]),
        ("CASE id WHEN 1 THEN 'a' END", ["CASE value INT? , integer , text other", "CASE integer , text other , null"]),
        ("CAST(s AS SIGNED INTEGER)", ["CAST AS SIGNED TEXT?"]),
        ("CONVERT(s, DECIMAL(5, 2))", ["CAST AS DECIMAL TEXT?"]),
        ("CONVERT(id USING utf8)", ["CONVERT USING INT?"]),
        ("s COLLATE utf8_bin = 'a'", ["COLLATE TEXT?", "= TEXT? , text other"]),
        ("TRIM(BOTH 'x' FROM s)", ["TRIM() text other , TEXT?"]),
        ("SUBSTRING(s FROM 2 FOR 3)", ["SUBSTRING() TEXT? , integer , integer"]),
        ("EXTRACT(YEAR FROM d)", ["EXTRACT(YEAR) date|date zero"]),
        ("TIMESTAMPDIFF(DAY, d, at)", ["TIMESTAMPDIFF() date|date zero , date zero|datetime"]),
        ("GET_FORMAT(DATE, 'USA')", ["GET_FORMAT() text other"]),
        ("POSITION('a' IN s)", ["POSITION() text other , TEXT?"]),
        ("CHAR(65 USING utf8)", ["CHAR() integer"]),
        ("WEIGHT_STRING(s AS CHAR(3) LEVEL 1)", ["WEIGHT_STRING() TEXT?"]),
        ("COUNT(*)", []),
        ("COUNT(DISTINCT id, s)", ["COUNT() INT or TEXT?"]),
        ("GROUP_CONCAT(id ORDER BY s DESC SEPARATOR ';')", ["GROUP_CONCAT() INT?"]),
        ("IF(id, 'a', 5) = 'x'", ["IF() INT? , text other , integer", "= integer|text other , text other"]),
        ("IFNULL(d, 'x')", ["IFNULL() date|date zero , text other"]),
        ("NULLIF(d, 'x') = 1", ["NULLIF() date|date zero , text other", "= date|date zero , integer"]),
        ("CURRENT_TIMESTAMP", ["CURRENT_TIMESTAMP()"]),
        ("UUID()", []),
        ("DATE '2020-01-01' = x'41'", ["= date , hex"]),
        ("_utf8 'é' = N'a'", ["= text wide , text other"]),
        ("_binary 'a' = b'1'", ["= bytes , hex"]),
        ("'a' 'b' = 0x41", ["= text other , hex"]),
        ("18446744073709551615 > 1.5", ["> unsigned , decimal"]),
        ("1e3 < TRUE", ["< double , integer"]),
        ("b & 0xFF", ["& bytes , hex"]),
        ("g->'$.a' = g->>'$.b'", ["-> TEXT? , text other", "->> TEXT? , text other", f"= {'ANY'} , ANY"]),
        ("MATCH (s, g) AGAINST ('x' IN BOOLEAN MODE)", ["MATCH AGAINST TEXT? , text other"]),
        ("ROW(1, 2) = (SELECT 1, 2)", ["= integer , integer"] * 2),
        ("s > ALL (SELECT n FROM u)", ["> TEXT? , decimal"]),
        ("@@sql_mode = 1", ["= ANY , integer"]),
        ("DEFAULT(s) = 'a'", ["= TEXT? , text other"]),
        ("d.t.s = 'a'", ["= TEXT? , text other"]),
        ("`s` = 'a'", ["= TEXT? , text other"]),
    ],
)  # fmt: skip
def test_an_expression_is_made_of_these(expression: str, constructs: list[str]) -> None:
    assert used(f"UPDATE t SET computed = {expression}") == constructs


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET id = 1 WHERE {x '2020-01-01'}",
        "UPDATE t SET id = 1 WHERE",
        "UPDATE t SET id = 1 WHERE id = 1 2",
        "UPDATE t SET id = 1 WHERE id = FROM",
        "UPDATE t SET id = 1 WHERE d + INTERVAL 1 APPLE",
        "SELECT * FROM JSON_TABLE('[]', '$[*]' COLUMNS (a INT PATH '$')) x",
        "SELECT id FROM t PROCEDURE ANALYSE()",
        "SELECT id FROM t WINDOW w AS (ORDER BY id)",
        "SELECT * FROM t FOR SYSTEM_TIME ALL",
        f"UPDATE t SET id = {'(' * 90}1{')' * 90}",
    ],
)
def test_what_cannot_be_read_is_not_guessed(statement: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        read(statement)


def stored(text: str, **given: object) -> list[str]:
    made = read(text, **given)  # type: ignore[arg-type]
    return [
        f"{one.name} {SHORT.get(one.arguments[0], '|'.join(sorted(one.arguments[0])))}{'' if one.is_strict else ' loose'}"
        for one in made.used
        if one.name.startswith("store ")
    ]


STRICT = 1 << 22
STORES = ("store INT", "REPLACE", "store INT", "store DECIMAL")


@pytest.mark.parametrize(
    ("statement", "stores"),
    [
        ("INSERT INTO t (id, at) VALUES (1, 20200101), (-2, 5)", ["store INT INT?", "store DATETIME integer"]),
        ("INSERT INTO t (id, at) VALUES (1, NOW())", ["store DATETIME datetime", "store INT integer"]),
        ("INSERT INTO u VALUES (DEFAULT, 1.5)", ["store DECIMAL decimal"]),
        ("INSERT INTO t SET s = 'x' ON DUPLICATE KEY UPDATE id = VALUES(id) + 1", ["store VARCHAR text other", "store INT INT?"]),
        ("INSERT IGNORE INTO u (id) VALUES (1 + 1)", ["store INT integer loose"]),
        ("INSERT INTO u SELECT id, s FROM t", ["store INT INT?", "store DECIMAL TEXT?"]),
        ("INSERT INTO u (id) (SELECT id FROM t)", ["store INT INT?"]),
        ("REPLACE INTO u (id) VALUES (1)", ["store INT integer"]),
        ("UPDATE t JOIN u USING (id) SET u.n = 5, s = 'y'", ["store DECIMAL integer", "store VARCHAR text other"]),
        ("LOAD DATA INFILE 'x' INTO TABLE u FIELDS TERMINATED BY ',' (id, @x) SET n = @x", ["store INT TEXT?", "store DECIMAL TEXT?"]),
    ],
)  # fmt: skip
def test_values_are_stored_in_columns_of_types(statement: str, stores: list[str]) -> None:
    assert stored(statement, mode=STRICT) == stores


def test_a_literal_text_in_a_column_of_an_unknown_type_is_judged_for_every_type() -> None:
    made = read("INSERT INTO unknown VALUES (1, '2020-01-01 10:00:00+02:00')")
    assert "store DATETIME" in {one.name for one in made.used}
    assert {one.unknown for one in made.used} == {frozenset((("d", "unknown"),))}


@pytest.mark.parametrize(
    ("statement", "clauses"),
    [
        ("DELETE FROM t LIMIT 1", ["LIMIT without ORDER BY"]),
        ("DELETE FROM t ORDER BY id LIMIT 1", []),
        ("DELETE a FROM t a JOIN u b ON a.id = b.id", ["= INT? , INT?"]),
        ("DELETE FROM a, b USING t a JOIN u b ON a.id = b.id", ["= INT? , INT?"]),
        ("UPDATE t SET id = (@n := @n + 1)", ["+ ANY , integer"]),
        ("INSERT INTO u (id) SELECT DISTINCT id FROM t", ["DISTINCT INT?"]),
        ("INSERT IGNORE INTO u (id) SELECT DISTINCT id FROM t", ["DISTINCT INT?", "DISTINCT without ORDER BY"]),
        ("INSERT INTO u (id) SELECT id FROM t UNION ALL SELECT n FROM u", ["UNION"]),
        ("INSERT INTO u (id) SELECT id FROM t GROUP BY id ORDER BY id LIMIT 1", []),
        ("INSERT INTO u (id) SELECT id FROM t GROUP BY id WITH ROLLUP LIMIT 1", ["GROUP BY without ORDER BY"]),
        ("INSERT INTO u (id) SELECT id FROM t GROUP BY id DESC LIMIT 1", ["GROUP BY without ORDER BY"]),
        ("INSERT INTO u SELECT id, @n := 5 FROM t GROUP BY id", ["user variable assigned in a query", "GROUP BY without ORDER BY"]),
        ("INSERT INTO u (id) SELECT id FROM t GROUP BY id", []),
        ("INSERT INTO u (id) SELECT x.id FROM (SELECT id FROM t LIMIT 5) AS x ORDER BY x.id", ["LIMIT without ORDER BY"]),
        ("CREATE TABLE x (a INT) SELECT s REGEXP 'a' FROM t", ["REGEXP TEXT? , text other"]),
        ("CREATE TABLE x (a INT)", []),
        ("CREATE INDEX i ON t (s)", []),
        ("DROP TABLE t", []),
        ("DO 1 + 1, 2", ["+ integer , integer"]),
        ("SET @a = 1 + 1, @b := 2", ["+ integer , integer"]),
        ("SET PASSWORD = 'x'", []),
        ("SELECT t.*, u.n FROM t LEFT JOIN u ON t.id = u.id USE INDEX (a)", None),
        ("SELECT x.n + 1 FROM (SELECT * FROM u) x (id, n), t USE INDEX FOR JOIN (a) WHERE 1 FOR UPDATE", ["+ decimal , integer"]),
        ("WITH c AS (SELECT n FROM u) SELECT n + 1 FROM c LOCK IN SHARE MODE", ["+ decimal , integer"]),
        ("WITH RECURSIVE c (n) AS (SELECT 1 UNION SELECT n + 1 FROM c) SELECT n FROM c LIMIT 5 OFFSET 1", None),
        ("SELECT COUNT(*) INTO @x FROM t HAVING COUNT(*) > 1", ["> INT? , integer"]),
        ("TABLE u", []),
        ("VALUES ROW(1, 2), ROW(3, 4)", []),
        ("(SELECT id FROM t) UNION (SELECT id FROM u) ORDER BY 1 LIMIT 2", ["UNION"]),
    ],
)  # fmt: skip
def test_clauses_are_constructs_where_the_order_of_rows_counts(statement: str, clauses: list[str] | None) -> None:
    if clauses is None:
        try:
            read(statement)
        except UnsupportedSyntax:
            return
    else:
        assert used(statement) == clauses


@pytest.mark.parametrize(
    ("statement", "numbers", "made"),
    [
        ("INSERT INTO u (id) SELECT id FROM t GROUP BY id LIMIT 2", False, "SELECT id FROM t GROUP BY id ORDER BY id LIMIT 2"),
        ("INSERT INTO u (n) SELECT id FROM t GROUP BY id, s", True, "SELECT id FROM t GROUP BY id, s ORDER BY id, s"),
        ("INSERT INTO u (n) SELECT id FROM t GROUP BY id HAVING id > 1", True, "GROUP BY id HAVING id > 1 ORDER BY id"),
        ("INSERT INTO u SELECT id, @n := 1 FROM (SELECT id FROM t GROUP BY id) x", False, "GROUP BY id ORDER BY id) x"),
    ],
)  # fmt: skip
def test_the_order_of_groups_may_be_written(statement: str, numbers: bool, made: str) -> None:
    (one,) = read(statement, numbers=numbers).orders
    assert one.is_exact
    text = statement[: one.end] + " ORDER BY " + statement[one.start : one.stop] + statement[one.end :]
    assert text.endswith(made)


def test_a_mariadb_does_not_say_the_order_of_groups() -> None:
    made = read("INSERT INTO u SELECT id FROM t GROUP BY id LIMIT 2", version="10.11.19-MariaDB")
    assert ([one.name for one in made.used if "GROUP" in one.name], made.orders) == (["GROUP BY without ORDER BY"], [])


def test_user_variables_have_the_values_of_the_events_before() -> None:
    assert used("DO @a + @b", variables={"a": NULL}) == ["+ null , ANY"]
    assert used("SET @a = 5, @c = @a + 1") == ["+ integer , integer"]


def test_pipes_are_what_sql_mode_says() -> None:
    assert used("DO 'a' || 'b'", mode=2) == ["CONCAT() text other , text other"]


def test_columns_of_unknown_tables_are_anything_and_name_their_tables() -> None:
    (one,) = read("DELETE FROM x WHERE c > 5").used
    assert (one.arguments[0], one.unknown) == (ANY, frozenset((("d", "x"),)))


def test_calls_and_changes_are_told() -> None:
    made = read("INSERT INTO u (id) VALUES (e.f(1)), (g(2))")
    assert made.calls == [("e", "f"), ("d", "g")]
    assert read("CALL p(1, 2)").calls == [("d", "p")]
    (fired,) = read("INSERT INTO u (id, n) VALUES (NULL, NULL)").fired
    assert fired == FiredChange("INSERT", ("d", "u"), frozenset(("id",)))
    assert [one.absent for one in read("INSERT INTO u (n) VALUES (1)").fired] == [frozenset(("id",))]
    assert [one.event for one in read("REPLACE INTO u VALUES (1, 2)").fired] == ["REPLACE"]
    assert [one.event for one in read("UPDATE t, u SET t.id = u.id").fired] == ["UPDATE"]
    assert [one.table for one in read("DELETE FROM t").fired] == [("d", "t")]


@pytest.mark.parametrize(
    ("condition", "operands"),
    [
        ("id = 1 AND d", ["date|date zero"]),
        ("COS(id)", ["double"]),
        ("id > 3 OR COS(1) AND id", ["double", "INT?"]),
        ("NOT s", []),
        ("NOT (NOT 0.5)", ["decimal"]),
        ("!(!0.5)", ["decimal"]),
        ("id % 2 AND id & 1", ["INT?", "BITS?"]),
        ("id IN (1, 2) AND NOT id < 3", []),
    ],
)
def test_what_is_taken_for_true_or_false_is_told(condition: str, operands: list[str]) -> None:
    found = [one.partition(" ")[2] for one in used(f"DELETE FROM t WHERE {condition}") if one.startswith("condition ")]
    assert found == operands


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("INSERT INTO e (id) VALUES (NULL)", "NULL into NOT NULL"),
        ("INSERT IGNORE INTO e (id) VALUES (NULL)", "NULL into NOT NULL with IGNORE"),
        ("UPDATE t JOIN u ON t.id = u.id SET t.id = 5, u.n = t.id", "multi-table UPDATE, column set before it is read"),
        ("REPLACE INTO u SELECT id, n FROM (SELECT id, n FROM u ORDER BY n) x", "derived table order"),
    ],
)
def test_clauses_that_servers_read_in_other_ways_are_told(text: str, name: str) -> None:
    assert name in [one.name for one in read(text).used]


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET id = 5, s = id",
        "UPDATE t JOIN u ON t.id = u.id SET t.id = 5, u.n = 6",
        "REPLACE INTO u SELECT id, n FROM (SELECT id, n FROM u ORDER BY n LIMIT 5) x",
        "INSERT INTO u SELECT id, n FROM (SELECT id, n FROM u ORDER BY n) x",
    ],
)
def test_clauses_that_are_read_alike_are_not_told(text: str) -> None:
    assert not {"multi-table UPDATE, column set before it is read", "derived table order"} & {
        one.name for one in read(text).used
    }


def test_each_part_that_is_extracted_is_a_construct_of_its_own() -> None:
    assert used("SELECT EXTRACT(HOUR FROM at) FROM t") == ["EXTRACT(HOUR) date zero|datetime"]
    assert used("SELECT EXTRACT(DAY_HOUR FROM NOW()) FROM t") == ["NOW()", "EXTRACT(DAY_HOUR) datetime"]


def test_null_may_be_written_as_an_escape() -> None:
    assert stored("INSERT INTO t (s) VALUES (\\N), ('x' + 0)")[0] == "store VARCHAR NUM? loose"


def test_an_expression_that_is_too_deep_is_not_read() -> None:
    for sign in ("- ", "NOT ", "! "):
        with pytest.raises(UnsupportedSyntax, match="too deep"):
            read(f"SELECT {sign * 5000}1")


def test_rows_of_literals_are_read_at_once() -> None:
    rows = "(1, '2020-01-01', 'x''y', -3), (2.5, '2020-02-31', _binary 'z', 0x41), (NULL, '', X'41', DEFAULT)"
    assert stored(f"INSERT INTO t (id, at, s, b) VALUES {rows}") == [
        "store INT decimal|integer loose",
        "store DATETIME text date|text empty|text no date loose",
        "store VARCHAR bytes|text other loose",
        "store BLOB hex|negative loose",
    ]


def test_rows_of_the_same_classes_are_one_in_a_shape() -> None:
    one = shape_of("INSERT INTO t VALUES (1, 'a'), (-2, NULL)", 0)
    assert one == shape_of("INSERT INTO t VALUES (-3, NULL),(4, 'b') , (5, 'c'), (6, 'd')", 0)
    assert one != shape_of("INSERT INTO t VALUES (1, 'a'), (-2, '2020-02-31')", 0)
    assert one != shape_of("INSERT INTO t VALUES (1, 'a'), (-2, NULL), (NOW(), 'x')", 0)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("FOR EACH ROW SET NEW.s = IFNULL(NEW.s, 'x'), @a = 1 + 1", ["IFNULL()", "store VARCHAR", "+"]),
        ("FOR EACH ROW INSERT INTO u (id) VALUES (NEW.id)", ["store INT"]),
        (
            "FOR EACH ROW BEGIN DECLARE x INT DEFAULT 1 + 1; DECLARE c CURSOR FOR SELECT id FROM u GROUP BY id; "
            "DECLARE CONTINUE HANDLER FOR NOT FOUND SET x = 1; IF x > 3 THEN SET x = 2; ELSEIF x < 1 THEN CALL p(1); "
            "ELSE DO 5 * 5; END IF; l: WHILE x <> 5 DO SET x = x - 1; LEAVE l; END WHILE l; "
            "CASE x WHEN 3 THEN DELETE FROM u; ELSE BEGIN END; END CASE; REPEAT SET x = 1; UNTIL x = 1 END REPEAT; "
            "m: LOOP ITERATE m; END LOOP; UPDATE u SET id = 2; REPLACE INTO u VALUES (1, 2); SELECT 1 INTO x; "
            "CASE WHEN x THEN SET x = 3; END CASE; WITH q AS (SELECT 1) SELECT * FROM q; END",
            ["+", "store INT", "GROUP BY without ORDER BY", "store INT", ">", "store INT", "<", "*", "<>", "-", "store INT", "=",
             "store INT", "=", *STORES, "store INT"],
        ),
        ("RETURNS VARCHAR(20) CHARACTER SET utf8 DETERMINISTIC RETURN CONCAT(p, 'x')", ["CONCAT()", "store VARCHAR"]),
        ("(IN p INT, q DECIMAL(5, 2)) SELECT p + q INTO @x", ["+"]),
    ],
)  # fmt: skip
def test_the_body_of_a_program_is_made_of_these(text: str, names: list[str]) -> None:
    assert body(text) == names


@pytest.mark.parametrize(
    "text",
    ["BEGIN IF 1 THEN SET x = 1;", "BEGIN LOAD DATA INFILE 'x' INTO TABLE t; END", "BEGIN x; END", "BEGIN " * 50],
)
def test_a_body_that_cannot_be_read_is_not_guessed(text: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        body(text)


def test_statements_of_one_shape_have_literals_of_the_same_classes() -> None:
    one = shape_of("INSERT INTO t1 VALUES (1, 'abc', '2020-01-01', `x`, 1.5)", 0)
    assert one == shape_of("INSERT INTO t1 VALUES (25, 'xyz', '2021-12-31', `x`, 1.5)", 0)
    for other in ("'2020-02-31'", "''", "'2020-01-01 10:00:00+02:00'", "'a\\'b'"):
        assert shape_of(f"INSERT INTO t1 VALUES (1, 'abc', {other}, `x`, 1.5)", 0) != one
    assert shape_of("SELECT 1", 0) != shape_of("SELECT 123456", 0) != shape_of("SELECT 1234567890123456789012", 0)
    assert shape_of("DELETE FROM t WHERE a / 2", 0) != shape_of("DELETE FROM t WHERE a / 0", 0)
    assert shape_of("DELETE FROM t WHERE a MOD 0", 0) != shape_of("DELETE FROM t WHERE a MOD 5", 0)
    assert shape_of("SELECT 0", 0) == shape_of("SELECT 5", 0)
    for comment in ("-- x", "# x", "/* x */"):
        assert shape_of(f"INSERT INTO t VALUES (1) {comment}", 0) is None
    assert shape_of("INSERT INTO t VALUES (1)", 4) is None
    assert shape_of(" " * 5000, 0) is None


@pytest.mark.parametrize(
    ("quoted", "like"),
    [("'it\\'s'", "'its'"), ("'it''s'", "'its'"), ("'\\n12\\n'", "'12'"), ("'\\\\12'", "'x'"), ("'\\0'", "'x'")],
)
def test_an_escaped_literal_has_the_class_of_its_value(quoted: str, like: str) -> None:
    assert shape_of(f"INSERT INTO t VALUES ({quoted})", 0) == shape_of(f"INSERT INTO t VALUES ({like})", 0)


def test_a_backslash_is_a_letter_where_it_does_not_escape() -> None:
    assert shape_of("DO '1\\n'", NO_BACKSLASH_ESCAPES) == shape_of("DO 'x'", 0) != shape_of("DO '1\\n'", 0)


@pytest.mark.parametrize(
    ("value", "text_class"),
    [
        ("_utf8mb4 0x6162", "text other"),
        ("_latin1 X'3132'", "text number"),
        ("_utf8mb4 0xd0b8", "text wide"),
        ("_binary 0x6162", "bytes"),
        ("0x6162", "hex"),
    ],
)
def test_a_hexadecimal_literal_with_a_character_set_is_one_value(value: str, text_class: str) -> None:
    made = read(f"INSERT INTO t (id, d) VALUES (1 + {value}, 1)")
    assert [sorted(kinds) for kinds in made.used[0].arguments] == [["integer"], [text_class]]
    assert [one.name for one in made.used] == ["+", "store INT", "store DATE"]


def test_the_largest_time_of_both_families_may_have_zeros_after_its_point() -> None:
    assert class_of_text("838:59:59.000") == class_of_text("838:59:59") == ValueClass.TEXT_TIME
    assert class_of_text("838:59:59.5") == ValueClass.TEXT_NO_DATE


@pytest.mark.parametrize(
    "call",
    [
        "ST_GeomFromText('POINT(1 2)')",
        "ST_GeomFromText(' LINESTRING (0 0, 1.5 -1e3)')",
        "ST_PolyFromText('POLYGON((0 0,1 0,1 1,0 0),(0 0,2 0,2 2,0 0))')",
        "ST_GeometryFromText('MULTIPOINT((1 1),(2 2))')",
        "ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))')",
        "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(0 0,1 1))')",
    ],
)
def test_geometries_in_well_known_text_are_read_alike(call: str) -> None:
    assert used(f"DO {call}") == []


@pytest.mark.parametrize(
    "call",
    [
        "ST_GeomFromText('POINT(1 2)', 4326)",
        "ST_GeomFromText('POINT(1)')",
        "ST_GeomFromText('POLYGON((0 0,1 0,1 1))')",
        "ST_GeomFromText('POLYGON((0 0,1 0,1 1,5 5))')",
        "ST_PointFromText('LINESTRING(0 0,1 1)')",
        "ST_GeomFromText('GEOMETRYCOLLECTION EMPTY')",
        "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1)POINT(1 1))')",
        "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),)')",
        "ST_PointFromText('GEOMETRYCOLLECTION(POINT(1 1))')",
        "ST_GeomFromText('')",
    ],
)
def test_other_texts_of_geometries_are_judged(call: str) -> None:
    assert len(used(f"DO {call}")) == 1


def test_a_variable_that_a_program_logged_is_its_value() -> None:
    assert stored("INSERT INTO u (id) VALUES (NAME_CONST('x', 129))") == ["store INT integer loose"]


def test_random_whole_numbers_are_rounded_alike() -> None:
    for call, is_judged in (("RAND() * 1000000", False), ("RAND() * 1e300", True), ("1 + RAND() * id", True)):
        assert any(name.startswith("FLOOR()") for name in used(f"DO FLOOR({call})")) is is_judged, call


def test_the_character_set_of_a_file_is_no_assignment() -> None:
    text = "LOAD DATA INFILE 'x' INTO TABLE u CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' (id) SET n = 1.5"
    assert stored(text, mode=STRICT) == ["store INT TEXT?", "store DECIMAL decimal"]
