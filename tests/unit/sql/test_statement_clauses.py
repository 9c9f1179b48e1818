"""Clauses of statements in all the forms that servers take: each is read up to its end, and its constructs are told."""

from collections.abc import Mapping

import pytest

from protocol.sql.expressions.construct_names import ACCEPTED_NAMES, accepted_name
from protocol.sql.expressions.constructs import Classes
from protocol.sql.expressions.function_results import NUMBERS
from protocol.sql.expressions.known_differences import known_difference
from protocol.sql.expressions.readers.column_scope import KnownColumn, kind_of_type
from protocol.sql.expressions.readers.literal_rows import classes_of_rows
from protocol.sql.expressions.readers.program_reader import ProgramReader
from protocol.sql.expressions.readers.statement_reader import StatementReader
from protocol.sql.expressions.statement_shape import shape_of
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.sql_mode import NO_ZERO_DATE, NO_ZERO_IN_DATE
from protocol.sql.statements.statement import StatementText
from protocol.sql.survey.surveyed import SurveyKind
from protocol.sql.survey.value_class import ANY, ValueClass, classes_of_type
from protocol.sql.tables.source_table import TableName
from tests.unit.sql.test_expressions import Known, read


@pytest.mark.parametrize(
    ("statement", "constructs"),
    [
        ("SELECT id MEMBER OF (s) FROM t", ["MEMBER OF"]),
        ("SELECT s LIKE 'a|%' ESCAPE '|' FROM t", ["LIKE"]),
        ("SELECT (id, 5) NOT IN ((1, 2)) FROM t", ["NOT IN", "NOT IN"]),
        ("UPDATE t SET id = DEFAULT", []),
        ("UPDATE t SET id = NULL", ["store INT"]),
        ("SELECT RANK() OVER (ORDER BY id), RANK() OVER w FROM t", []),
        ("SELECT DATE_ADD(NOW(), INTERVAL 1 DAY)", ["NOW()"]),
        ("SELECT CURDATE() + INTERVAL 3 MONTH", ["CURDATE()"]),
        ("SELECT GROUP_CONCAT(id, s ORDER BY d) FROM t", ["CONCAT()", "GROUP_CONCAT()"]),
        ("SELECT TRIM(LEADING FROM s), COUNT(DISTINCT (id)) FROM t", ["TRIM()", "COUNT()"]),
        ("SELECT IFNULL(SELECT 1, 2)", ["IFNULL()"]),
        (
            "SELECT CAST(id AS CHARACTER(3)), CAST(id AS CHAR), CONVERT(id, DATE) FROM t",
            ["CAST AS CHAR", "CAST AS DATE"],
        ),
        ("SELECT -1.5, -s FROM t", ["unary -"]),
        ("(WITH c AS (SELECT id FROM t) SELECT id FROM c) UNION SELECT 1 ORDER BY 1 LIMIT 2", ["UNION"]),
        ("SELECT 1, 2 UNION SELECT 3", ["UNION"]),
        ("SELECT DISTINCT SQL_NO_CACHE id FROM DUAL", ["DISTINCT"]),
        ("SELECT d.t.*, t.* FROM t", []),
        ("SELECT id x, id AS 'y', id `z` FROM t HAVING x > 1", [">"]),
        ("SELECT * FROM nowhere", []),
        ("SELECT x.a FROM (SELECT * FROM nowhere) x", []),
        ("SELECT a.id FROM ((t a) JOIN (u b) ON a.id = b.id)", ["="]),
        ("SELECT id FROM t PARTITION (p0) FORCE INDEX FOR ORDER BY (k), IGNORE INDEX (j)", []),
        ("SELECT id INTO @a FROM t", []),
        ("SELECT id FROM t INTO @a", []),
        ("SELECT id FROM t LIMIT 1 INTO OUTFILE 'x' FOR UPDATE", ["LIMIT without ORDER BY"]),
        ("SELECT id FROM t FOR UPDATE OF t NOWAIT INTO @a", []),
        ("SELECT id FROM t GROUP BY id ORDER BY NULL", []),
        ("INSERT INTO u PARTITION (p) (u.id, d.u.n) VALUES (1, 2), (3, 4)", ["store INT", "store DECIMAL"]),
        (
            "INSERT INTO u (id) VALUES (1) AS new (a) ON DUPLICATE KEY UPDATE n = new.id",
            ["store INT", "ON DUPLICATE KEY UPDATE", "store DECIMAL"],
        ),
        ("INSERT INTO nowhere VALUES (1) AS new", []),
        ("INSERT INTO u (id) VALUES (1) RETURNING id, n + 1", ["store INT", "+"]),
        ("INSERT INTO u SELECT * FROM nowhere", []),
        ("INSERT INTO u SET u.id := 5, n = 6", ["store INT", "store DECIMAL"]),
        ("UPDATE IGNORE u SET id = 1", ["store INT"]),
        ("DELETE QUICK FROM u WHERE id = 1 RETURNING n", ["="]),
        ("DELETE d.u, t.* FROM u JOIN t ON u.id = t.id", ["="]),
        ("DELETE FROM u USING u, t", []),
        ("DELETE FROM u.*, t.* USING u, t WHERE u.id = 1", ["="]),
        ("LOAD DATA INFILE 'x' INTO TABLE u (id, @a)", ["store INT"]),
        ("CALL p", []),
        ("INSERT INTO u (id)", []),
        ("INSERT INTO u TABLE t", ["store INT", "store DECIMAL"]),
        ("INSERT INTO t (s) VALUES ('x'), (NULL), (5)", ["store VARCHAR"]),
        ("SELECT 1 UNION SELECT 2 LOCK IN SHARE MODE", ["UNION"]),
        ("SELECT TRUE, NULL, FALSE", []),
        ("SELECT UNIX_TIMESTAMP(), UNHEX('00aF'), COUNT(*)", []),
        ("SELECT UNHEX('00a'), UNHEX('0g'), UNHEX(s) FROM t", ["UNHEX()", "UNHEX()", "UNHEX()"]),
        ("UPDATE t SET at = FROM_UNIXTIME(id) + INTERVAL id DAY", ["FROM_UNIXTIME()", "store DATETIME"]),
        ("SELECT ADDDATE(NOW(), 5), ADDDATE(NOW(), 999999)", ["NOW()", "NOW()", "ADDDATE()"]),
        ("UPDATE t SET d = NOW() WHERE `s` = 'x'", ["NOW()", "store DATE", "="]),
        ("SELECT id FROM t JOIN u USING (id) LIMIT 5 ROWS EXAMINED 10", ["LIMIT without ORDER BY"]),
        ("DELETE u FROM u", []),
    ],
)
def test_a_statement_is_read_up_to_its_end(statement: str, constructs: list[str]) -> None:
    assert [one.name for one in read(statement).used] == constructs


@pytest.mark.parametrize(
    ("mode", "classes"),
    [(0, {"datetime"}), (NO_ZERO_DATE, {"datetime", "date zero"}), (NO_ZERO_IN_DATE, {"datetime", "date zero"})],
)
def test_dates_with_zeros_matter_where_a_mode_forbids_them(mode: int, classes: set[str]) -> None:
    (found,) = read("SELECT DATE(at) FROM t", mode=mode).used
    assert [set(map(str, one)) for one in found.arguments] == [classes]


def test_windows_are_told() -> None:
    made = read("SELECT RANK() OVER (ORDER BY id), RANK() OVER w FROM t", version="9.7.4")
    assert [one.name for one in made.used] == ["OVER", "RANK()", "OVER", "RANK()"]


def test_a_query_of_too_many_queries_is_not_read() -> None:
    with pytest.raises(UnsupportedSyntax, match="too many"):
        read(" UNION ".join(["SELECT 1"] * 2001))


def test_results_that_no_table_has_are_asked_for() -> None:
    query = StatementText(
        b"SELECT SQRT(VERSION()) + LAST_DAY(JSON_TYPE(id)) + STATEMENT_DIGEST(s) FROM t", "d", 0, "9.7.4"
    )
    reader = StatementReader(query, query.tokens, {}, Known())
    asked: list[str] = []

    def results(name: str, _arguments: object) -> Classes:
        asked.append(name)
        return NUMBERS

    reader.results = results
    reader.read(makes_numbers=False, sorts_groups=False)
    assert asked == ["STATEMENT_DIGEST()"]


def test_a_name_that_is_not_of_its_character_set_is_a_column_of_which_nothing_is_known() -> None:
    query = StatementText(b"SELECT `\xff\xfe` FROM t", "d", 0, "5.6.24", "utf8")
    reader = StatementReader(query, query.tokens, {}, Known())
    assert reader.read(makes_numbers=False, sorts_groups=False).used == []


def test_the_columns_that_a_trigger_reads_are_those_that_it_does_not_set() -> None:
    text = b"FOR EACH ROW BEGIN ; SET NEW.id = 5, NEW.s := NEW.d, @x := 1; END"
    query = StatementText(text, "d", 0, "5.6.24")
    reader = ProgramReader(query, Known(), ("d", "t"))
    assert reader.row_columns == {"d"}
    assert "store VARCHAR" in [one.name for one in reader.read_body(sorts_groups=False).used]
    function = StatementText(b"RETURNS INT RETURN COS(x)", "d", 0, "5.6.24")
    used = ProgramReader(function, Known(), None).read_body(sorts_groups=False).used
    assert [one.name for one in used] == ["COS()", "store INT"]


def test_a_variable_hides_a_column_of_its_name() -> None:
    query = StatementText(b"(s INT) UPDATE t SET id = s WHERE t.s = s", "d", 0, "5.6.24")
    made = [one for one in ProgramReader(query, Known(), None).read_body(sorts_groups=False).used if one.name == "="]
    assert made[0].arguments == (
        classes_of_type("varchar(9)") - {ValueClass.NULL},
        classes_of_type("int") - {ValueClass.NULL},
    )


def test_parameters_and_variables_of_a_routine_have_their_types() -> None:
    text = b"(IN a INT, b DECIMAL(5,2), c VARCHAR(9) CHARSET utf8) BEGIN DECLARE d, e DATE DEFAULT NOW(); DO a = b, c = d, e = x; END"
    query = StatementText(text, "d", 0, "5.6.24")
    made = [one for one in ProgramReader(query, Known(), None).read_body(sorts_groups=False).used if one.name == "="]
    dates = {ValueClass.DATE, ValueClass.DATE_ZERO}
    assert made[0].arguments == (classes_of_type("int") - {ValueClass.NULL}, {ValueClass.DECIMAL})
    assert made[1].arguments == (classes_of_type("varchar(9)") - {ValueClass.NULL}, dates)
    assert made[2].arguments == (dates, ANY)


def test_long_and_many_texts_of_rows_have_classes_too() -> None:
    many = ", ".join(f"('{number}')" for number in range(10_000))
    wide = "\xe4" * 90
    assert classes_of_rows(f"{many}, ('{'x' * 90}'), ('{wide}'), ('5')", 0) == [
        {ValueClass.TEXT_NUMBER, ValueClass.TEXT_OTHER, ValueClass.TEXT_WIDE}
    ]


@pytest.mark.parametrize(
    ("statement", "charset", "kind"),
    [
        ("UPDATE x SET a = 0x41", "", ValueClass.TEXT_OTHER),
        ("UPDATE x SET a = b'01000001'", "ascii", ValueClass.TEXT_OTHER),
        ("UPDATE x SET a = x''", "latin1", ValueClass.TEXT_OTHER),
        ("UPDATE x SET a = 0xFF", "utf8", ValueClass.BYTES),
        ("UPDATE x SET a = 0xFF", "latin1", ValueClass.TEXT_OTHER),
        ("UPDATE x SET a = b'11111111'", "utf8mb4", ValueClass.BYTES),
        ("UPDATE x SET a = 0b1", "ascii", ValueClass.TEXT_OTHER),
        ("UPDATE x SET a = x'C3A9'", "utf8", ValueClass.TEXT_OTHER),
        ("UPDATE x SET a = x'C3A9'", "ascii", ValueClass.BYTES),
        ("UPDATE x SET a = x'F09F9880'", "utf8", ValueClass.BYTES),
        ("UPDATE x SET a = x'F09F9880'", "utf8mb4", ValueClass.TEXT_OTHER),
        ("INSERT INTO x VALUES (x'41'), (x'FF')", "utf8", ValueClass.BYTES),
    ],
)
def test_a_hexadecimal_literal_is_text_where_the_character_set_has_its_letters(
    statement: str, charset: str, kind: ValueClass
) -> None:
    columns = {"a": KnownColumn(classes_of_type("varchar(9)"), "VARCHAR", charset=charset)}

    class Only:
        def columns_of(self, name: TableName) -> Mapping[str, KnownColumn] | None:
            return columns

    query = StatementText(statement.encode(), "d", 0, "5.6.24")
    folded = query.read_as(folds_rows=True)
    reader = StatementReader(query, folded.tokens, {}, Only())
    reader.folded = dict(folded.rows)
    used = reader.read(makes_numbers=False, sorts_groups=True).used
    assert [(one.name, one.arguments) for one in used] == [("store VARCHAR", (frozenset((kind,)),))]


def test_strings_whose_letters_decide_are_in_the_shape() -> None:
    for one, other in (("UNHEX('aF')", "UNHEX('zz')"), ("x'41'", "x'FF'"), ("UNHEX( 'a')", "UNHEX( 'b')")):
        assert shape_of(f"SELECT {one}", 0) != shape_of(f"SELECT {other}", 0)


def test_types_with_one_kind_of_values_have_one_name() -> None:
    assert [kind_of_type(one) for one in ("int(11) unsigned", "longtext", "point")] == ["INT", "TEXT", "GEOMETRY"]


def test_constructs_are_accepted_by_names_without_brackets() -> None:
    assert accepted_name("EXTRACT()") == "extract"
    assert {"extract", "condition", "row_size", "store datetime", "null into not null"} <= ACCEPTED_NAMES


OLD, NEW, MARIADB = "5.6.24-log", "9.7.4", "10.11.19-MariaDB"
INTEGER, HEX, TEXT, NO_DATE, DATE, DOUBLE = (
    frozenset((ValueClass(one),)) for one in ("integer", "hex", "text other", "text no date", "date", "double")
)


@pytest.mark.parametrize(
    ("name", "arguments", "source", "target"),
    [
        ("condition", [DOUBLE], OLD, (9, 7)),
        ("condition", [DOUBLE], NEW, (5, 7)),
        ("XOR", [INTEGER, DOUBLE], OLD, (9, 7)),
        ("REGEXP", [TEXT, TEXT], OLD, (9, 7)),
        ("NOT REGEXP", [TEXT, TEXT], MARIADB, (9, 7)),
        ("BETWEEN", [DATE, TEXT, NO_DATE], MARIADB, (9, 7)),
        ("AND", [HEX, INTEGER], MARIADB, (9, 7)),
        ("=", [INTEGER, HEX], MARIADB, (9, 7)),
    ],
)
def test_some_constructs_differ_for_values_that_were_not_surveyed(
    name: str, arguments: list[Classes], source: str, target: tuple[int, int]
) -> None:
    found = known_difference(name, arguments, source, target)
    assert found is not None
    assert found.kind is SurveyKind.DIFFERS
    assert found.at_source != found.at_target


@pytest.mark.parametrize(
    ("name", "arguments", "source"),
    [
        ("condition", [INTEGER], OLD),
        ("condition", [DOUBLE], MARIADB),
        ("condition", [DOUBLE], NEW),
    ],
)
def test_conditions_that_are_alike_need_no_row(name: str, arguments: list[Classes], source: str) -> None:
    found = known_difference(name, arguments, source, (9, 7))
    assert found is not None
    assert found.kind is SurveyKind.SAME


@pytest.mark.parametrize(
    ("name", "arguments", "source"),
    [
        ("BETWEEN", [DATE, TEXT, TEXT], OLD),
        ("=", [TEXT, HEX], MARIADB),
        ("AND", [HEX, INTEGER], OLD),
        ("REGEXP", [TEXT, TEXT], NEW),
    ],
)
def test_what_the_survey_decides_has_no_other_row(name: str, arguments: list[Classes], source: str) -> None:
    assert known_difference(name, arguments, source, (9, 7)) is None
