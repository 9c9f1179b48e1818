"""Statements of a MariaDB that stop a view: never a guess."""

import pytest

from protocol.sql.tables.source_table import Table
from relay.source_tables.known_table import VERSIONED, KnownTable
from tests.support.mariadb_statements import MARIADB_11, stop_of, told, translated, translation_of

DEFINITION, STATEMENT, DIFFERS, CHANGES, UNREADABLE, UNKNOWN = (
    "definition_not_in_target",
    "statement_not_in_target",
    "statement_differs_in_target",
    "definition_differs_in_target",
    "statement_not_parsed",
    "definition_needs_table",
)
ORACLE = 1 << 9


@pytest.mark.parametrize(
    ("text", "name", "error"),
    [
        ("CREATE TABLE t (a DECIMAL(65,31))", DEFINITION, 1425),
        ("CREATE TABLE t (a YEAR(2))", DEFINITION, 1818),
        ("CREATE TABLE t (a INT, s DATE, e DATE, PERIOD FOR p (s, e))", DEFINITION, 1064),
        (
            "CREATE TABLE t (a INT) PARTITION BY SYSTEM_TIME (PARTITION p HISTORY, PARTITION q CURRENT)",
            DEFINITION,
            1064,
        ),
        ("CREATE TABLE t (a INT, p DATE, UNIQUE (a, p WITHOUT OVERLAPS))", DEFINITION, 1064),
        ("CREATE TABLE t (a INT) ENGINE=CONNECT", DEFINITION, 1286),
        ("ALTER IGNORE TABLE t ADD UNIQUE (a)", DEFINITION, 1064),
        ("ALTER TABLE t CONVERT PARTITION p TO TABLE x", DEFINITION, 1064),
        ("ALTER TABLE t ADD SYSTEM VERSIONING", CHANGES, 0),
        ("ALTER TABLE t DROP SYSTEM VERSIONING", CHANGES, 0),
        ("ALTER TABLE t MODIFY a UUID", CHANGES, 0),
        ("CREATE TABLE t (a UUID, b INT AS (length(a)) STORED)", CHANGES, 0),
        ("CREATE TABLE t (a TEXT, b TEXT AS (json_extract(a, '$.b')) VIRTUAL)", CHANGES, 0),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT", UNKNOWN, 1064),
        ("DROP INDEX IF EXISTS a ON t", UNKNOWN, 1064),
        ("ALTER TABLE t DROP PARTITION IF EXISTS p", UNKNOWN, 1064),
        ("ALTER TABLE IF EXISTS t ADD a INT", UNKNOWN, 1064),
        ("CREATE AGGREGATE FUNCTION f(x INT) RETURNS INT RETURN 1", DEFINITION, 1064),
        ("CREATE PACKAGE p AS FUNCTION f RETURN INT; END", DEFINITION, 1064),
        ("CREATE PROCEDURE p(x INT DEFAULT 5) SELECT x", DEFINITION, 1064),
        ("CREATE PROCEDURE p() BEGIN DECLARE u UUID; END", DEFINITION, 1064),
        ("CREATE PROCEDURE p() BEGIN DECLARE r ROW (a INT); END", DEFINITION, 1064),
        ("CREATE PROCEDURE p() BEGIN DECLARE x TYPE OF t.a; END", STATEMENT, 1064),
        ("CREATE PROCEDURE p() FOR i IN 1..5 DO SELECT i; END FOR", STATEMENT, 1064),
        ("CREATE PROCEDURE p() EXECUTE IMMEDIATE 'SELECT 1'", STATEMENT, 1064),
        ("CREATE PROCEDURE p() SELECT password('x')", STATEMENT, 1064),
        ("CREATE FUNCTION f RETURNS INT SONAME 'x.so'", DEFINITION, 1126),
        ("CREATE TABLE t (id INT, v VECTOR(3)) ENGINE=MEMORY", DEFINITION, 1163),
        ("ALTER TABLE t ADD COLUMN v VECTOR(3), ENGINE=HEAP", DEFINITION, 1163),
        ("CREATE VIEW v AS SELECT nvl(a, 1) FROM t", STATEMENT, 1305),
        ("CREATE VIEW v AS SELECT md5(a) FROM t", STATEMENT, 1305),
        ("CREATE VIEW v AS SELECT * FROM seq_1_to_10", STATEMENT, 1146),
        ("CREATE TABLE t (a INT DEFAULT (nvl(1, 2)))", STATEMENT, 1305),
        ("INSERT INTO t VALUES (sformat('{}', 1))", STATEMENT, 1305),
        ("INSERT INTO t VALUES (nextval(s))", STATEMENT, 1064),
        ("INSERT INTO t VALUES (NEXT VALUE FOR s)", STATEMENT, 1064),
        ("INSERT INTO t SELECT GROUP_CONCAT(a ORDER BY b LIMIT 1) FROM x", STATEMENT, 1064),
        ("DELETE FROM t FOR PORTION OF p FROM '2020-01-01' TO '2021-01-01'", STATEMENT, 1064),
        ("INSERT INTO t SELECT * FROM x FOR SYSTEM_TIME ALL", STATEMENT, 1064),
        ("DELETE HISTORY FROM t", STATEMENT, 1064),
        ("INSERT INTO t (VALUES (1), (2))", STATEMENT, 1064),
        ("UPDATE t SET a = CAST(b AS INET6)", STATEMENT, 1064),
        ("INSERT INTO t SELECT a FROM x LIMIT ROWS EXAMINED 5", STATEMENT, 1064),
        ("INSERT INTO mysql.user VALUES (1)", DIFFERS, 0),
        ("CREATE TABLE t (a GEOGRAPHY)", UNREADABLE, 0),
        ("CREATE TABLE t (a INT) NEW_OPTION=1", UNREADABLE, 0),
        ("CREATE TABLE t (a INT NEW_ATTRIBUTE)", UNREADABLE, 0),
        ("CREATE TABLE t (a INT DEFAULT 1 + 1)", UNREADABLE, 0),
        ("ALTER TABLE t NEW_ACTION", UNREADABLE, 0),
        ("CREATE TABLE t (a INT /*M! , b INT)", UNREADABLE, 0),
        ("INSERT INTO t VALUES ('x)", UNREADABLE, 0),
        ("CREATE TABLE t (a CHAR(3) COLLATE uca1400_ai_ci)", UNREADABLE, 0),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (a)) ENGINE=Aria", UNREADABLE, 0),
        ("SET GLOBAL a = 1", UNREADABLE, 0),
        ("NEW STATEMENT", UNREADABLE, 0),
    ],
)
def test_a_statement_that_mysql_does_not_have_stops_by_name(text: str, name: str, error: int) -> None:
    reason = stop_of(text)
    assert (reason.name, reason.error) == (name, error), reason.text
    assert reason.advice


def test_oracles_grammar_stops() -> None:
    assert stop_of("CREATE TABLE t (a DATE)", sql_mode=ORACLE).name == UNREADABLE
    assert stop_of("CREATE PROCEDURE p AS BEGIN NULL; END", sql_mode=ORACLE).name == DEFINITION


def test_statements_over_tables_that_are_others_at_the_replica_stop() -> None:
    known = told(
        "CREATE TABLE u (a UUID, b INT)",
        "CREATE TABLE h (a TEXT, UNIQUE KEY ha (a))",
        "CREATE TABLE d (a INT DEFAULT nextval(`shop`.`s`), b INT)",
        "CREATE TABLE plain (a INT)",
    )
    for table, why in (("u", "type uuid"), ("h", "unique key ha"), ("d", "of a sequence")):
        reason = stop_of(f"UPDATE {table} SET b = 1", known)
        assert reason.name == DIFFERS and why in reason.text
        assert stop_of(f"INSERT INTO plain SELECT b FROM shop.`{table}`", known).name == DIFFERS
    assert translated("UPDATE plain SET a = 1", known) == ["UPDATE plain SET a = 1"]
    versioned = told()
    versioned.put(("shop", "v"), KnownTable(Table("shop", "v", type=VERSIONED)))
    assert stop_of("UPDATE v SET b = 1", versioned).name == DIFFERS
    assert stop_of("ALTER TABLE v ADD b INT", versioned).name == CHANGES
    assert stop_of("CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES v (a))", versioned).error == 6125


@pytest.mark.parametrize(
    "value",
    [
        r"REGEXP_REPLACE('abc', '(b)', '[\\1]')",
        "JSON_EXTRACT(j, '$.b')",
        "json_set(j, '$.b', 1.50)",
        "ST_GeomFromText('POINT(1 2)', 4326)",
        "ST_AsText(g)",
    ],
)
def test_functions_of_statements_that_give_other_values_stop(value: str) -> None:
    reason = stop_of(f"UPDATE x SET v = {value}")
    assert (reason.name, reason.error) == (DIFFERS, 0) and "binlog_format = ROW" in reason.advice
    assert len(translated(f"CREATE VIEW v AS SELECT {value} AS a FROM x")) == 1
    assert len(translated("INSERT INTO x VALUES (ST_GeomFromText('POINT(1 2)'), POINT(1, 2))")) == 1


def test_a_foreign_key_to_what_is_not_unique_stops() -> None:
    known = told("CREATE TABLE p (a INT PRIMARY KEY, b INT, KEY (b))")
    assert stop_of("CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (b))", known).error == 6125
    assert len(translated("CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (a))", known)) == 1


def test_references_behind_a_column_stop_where_mysql_forgets_them() -> None:
    text = "CREATE TABLE c (a INT REFERENCES p (a))"
    assert stop_of(text, target=(8, 4)).name == "definition_ignored_by_target"
    assert translated(text) == [text]


def test_a_value_of_another_collation_stops_where_the_servers_mean_others() -> None:
    text = "CREATE VIEW v AS SELECT CONVERT(a USING utf8mb3) AS b FROM t"
    assert stop_of(text, version=MARIADB_11).name == DIFFERS
    assert translated(text) == [text]


def test_create_select_of_an_engine_without_transactions_stops() -> None:
    assert stop_of("CREATE TABLE t (a INT) ENGINE=MyISAM", rows_follow=True).error == 3979


def test_a_program_is_kept_whose_functions_are_missing_and_that_is_told() -> None:
    made = translation_of("CREATE PROCEDURE p() SELECT nvl(1, md5(2))")
    assert made.texts == (b"CREATE PROCEDURE p() SELECT nvl(1, md5(2))",)
    assert made.reports == (
        "the function nvl, which MySQL 9.7 does not have",
        "the function md5, which MySQL 9.7 does not have",
    )
    assert translation_of("CREATE PROCEDURE p() SELECT md5(2)", target=(8, 4)).reports == ()


GENERATED = "CREATE TABLE t (id INT, d DECIMAL(9,2), x VARCHAR(9), c DATETIME, n DATETIME(6), g {})"


@pytest.mark.parametrize(
    ("generated", "why"),
    [
        ("DECIMAL(20,10) AS (d / 3)", "a division"),
        ("DECIMAL(20,10) AS (d / id) STORED", "a division"),
        ("VARCHAR(9) AS (lpad(x, 9, ''))", "the function lpad"),
        ("INT AS (locate('a', x))", "the function locate"),
        ("INT AS (greatest(id, '9'))", "the function greatest"),
        ("INT AS (extract(hour FROM c))", "the function extract"),
        ("DOUBLE AS (log2(id))", "the function log2"),
        ("DATETIME AS (n)", "fractions of seconds of n"),
        ("DATE AS (n)", "fractions of seconds of n"),
        ("TIME(2) AS (n)", "fractions of seconds of n"),
        ("BIGINT AS (n)", "fractions of seconds of n"),
        ("DATETIME AS (n + INTERVAL 1 DAY)", "fractions of seconds of n"),
        ("VARCHAR(40) AS (cast(n AS datetime))", "fractions of seconds of n"),
        ("VARCHAR(40) AS (time(n))", "fractions of seconds of n"),
        ("DATETIME AS (x)", "fractions of seconds of x"),
        ("TIME AS (d)", "fractions of seconds of d"),
    ],
)
def test_a_generated_column_that_mysql_computes_otherwise_stops(generated: str, why: str) -> None:
    reason = stop_of(GENERATED.format(generated))
    assert (reason.name, reason.error) == (CHANGES, 0)
    assert why in reason.text and "ordinary column g" in reason.advice


@pytest.mark.parametrize(
    "generated",
    [
        "DOUBLE AS (d / 3e0)",
        "INT AS (id DIV 3)",
        "VARCHAR(9) AS (lpad(x, 9, '0'))",
        "INT AS (greatest(id, 9))",
        "INT AS (extract(year FROM n))",
        "DATETIME(6) AS (n)",
        "DATETIME AS (c + INTERVAL 1 DAY)",
        "DATE AS (date(n))",
        "DATE AS (cast(n AS date))",
        "INT AS (hour(n))",
        "INT AS (n > c)",
        "VARCHAR(40) AS (concat(n, x))",
        "VARCHAR(40) AS (cast(n AS datetime(6)))",
        "VARCHAR(9) AS (concat(x, '/', id))",
    ],
)
def test_one_that_it_computes_alike_passes(generated: str) -> None:
    text = GENERATED.format(generated)
    assert translated(text) == [text]


STRICT = 1 << 22
TYPES = "CREATE TABLE t (id INT PRIMARY KEY, x VARCHAR(9), d DECIMAL(9,2), c DATETIME, n DATETIME(6), m TIME(3))"


@pytest.mark.parametrize(
    ("change", "mode", "is_kept"),
    [
        ("MODIFY n BIGINT", STRICT, False),
        ("CHANGE m k INT", STRICT, False),
        ("MODIFY n DATETIME", STRICT, True),
        ("MODIFY c BIGINT", STRICT, True),
        ("MODIFY c YEAR", STRICT, False),
        ("MODIFY x INT", STRICT, True),
        ("MODIFY x INT", 0, False),
        ("MODIFY x TIMESTAMP", 0, False),
        ("MODIFY x VARCHAR(3)", 0, True),
        ("MODIFY d TIME", 0, False),
        ("MODIFY d INT", 0, True),
    ],
)
def test_an_alter_that_makes_other_values_of_what_is_there_stops(change: str, mode: int, is_kept: bool) -> None:
    text, known = f"ALTER TABLE t {change}", told(TYPES)
    if is_kept:
        assert translated(text, known, sql_mode=mode) == [text]
    else:
        assert stop_of(text, known, sql_mode=mode).name == CHANGES


@pytest.mark.parametrize(
    ("clause", "name", "error"),
    [
        ("ADD b DECIMAL(20,9) DEFAULT (1 / 3)", CHANGES, 0),
        ("ADD COLUMN IF NOT EXISTS b INT DEFAULT (locate('a', 'ba'))", CHANGES, 0),
        ("ADD (b INT, c DOUBLE DEFAULT rand())", DEFINITION, 1674),
        ("ADD b VARCHAR(36) DEFAULT uuid()", DEFINITION, 1674),
        ("ADD b VARCHAR(99) DEFAULT current_user()", DEFINITION, 1674),
    ],
)
def test_a_default_that_rows_get_which_are_there_stops_where_it_is_another(clause: str, name: str, error: int) -> None:
    reason = stop_of(f"ALTER TABLE t {clause}", told("CREATE TABLE t (id INT)"))
    assert (reason.name, reason.error) == (name, error)


def test_a_statement_that_takes_a_default_which_is_computed_otherwise_stops() -> None:
    known = told(
        "CREATE TABLE t (id INT, a DECIMAL(20,9) DEFAULT (1 / 3))",
        "CREATE TABLE u (id INT, a VARCHAR(9) DEFAULT 'n/a', b VARCHAR(20) DEFAULT 'yes / no')",
    )
    assert "computed otherwise" in stop_of("INSERT INTO t (id) VALUES (1)", known).text
    assert translated("INSERT INTO u (id) VALUES (1)", known) == ["INSERT INTO u (id) VALUES (1)"]


KEYS = {
    "id INT PRIMARY KEY, a VARCHAR(9) COLLATE utf8mb4_uca1400_ai_ci": True,
    "a VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY": True,
    "a VARCHAR(9) COLLATE utf8mb4_uca1400_ai_ci PRIMARY KEY": False,
    "a INT, b VARCHAR(9) COLLATE utf8mb4_uca1400_ai_ci, PRIMARY KEY (a, b)": False,
}


@pytest.mark.parametrize("columns", KEYS)
@pytest.mark.parametrize("clause", ["ADD n INT AUTO_INCREMENT UNIQUE", "TRUNCATE PARTITION p", "DROP PARTITION p"])
def test_what_comes_to_rows_by_their_place_stops_where_keys_are_sorted_otherwise(columns: str, clause: str) -> None:
    text, known = f"ALTER TABLE t {clause}", told(f"CREATE TABLE t ({columns})")
    if KEYS[columns]:
        assert translated(text, known) == [text]
    else:
        assert stop_of(text, known).name == CHANGES


@pytest.mark.parametrize(
    "table",
    ["CREATE TABLE t (a INT)", "CREATE TABLE t (a UUID PRIMARY KEY)", "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=Aria"],
)
def test_rows_are_not_numbered_anew_where_nobody_knows_their_order(table: str) -> None:
    assert stop_of("ALTER TABLE t ADD n INT AUTO_INCREMENT UNIQUE", told(table)).name == CHANGES


def test_rows_of_myisam_are_numbered_in_the_order_that_they_have_on_both() -> None:
    text = "ALTER TABLE t ADD n INT AUTO_INCREMENT UNIQUE"
    assert translated(text, told("CREATE TABLE t (a INT) ENGINE=MyISAM")) == [text]


@pytest.mark.parametrize(
    "text",
    ["UPDATE t SET a = a / 3", "INSERT INTO t SELECT avg(a) FROM u", "UPDATE t SET a = instr(b, 'x')"],
)
def test_a_statement_that_computes_otherwise_on_mysql_stops(text: str) -> None:
    assert stop_of(text, told("CREATE TABLE t (a INT, b INT)")).name == DIFFERS


def test_a_default_partition_stops() -> None:
    text = "CREATE TABLE t (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (1), PARTITION q DEFAULT)"
    assert stop_of(text).error == 1064


@pytest.mark.parametrize(
    ("items", "is_kept"),
    [
        ("*", True),
        ("x.*, y.b AS c", True),
        ("DISTINCT a, `b` c, 1 AS one, 'x' AS x, count(*) AS n, sum(x.a) AS s", True),
        ("a * a", False),
        ("now() AS w", False),
        ("NULL AS n", False),
        ("1.5 AS d", False),
        ("a FROM (SELECT b * b AS a FROM y) AS z UNION SELECT a", False),
        ("z.a FROM (SELECT b * b AS a FROM y) AS z, x AS o JOIN x", False),
    ],
)
def test_a_table_that_replicas_fill_by_a_query_stops_where_its_types_are_computed(items: str, is_kept: bool) -> None:
    text, known = f"CREATE TABLE t AS SELECT {items} FROM x", told("CREATE TABLE x (a INT, b INT)")
    if is_kept:
        assert translated(text, known) == [text]
    else:
        assert stop_of(text, known).name == DIFFERS
        assert translated(f"CREATE TABLE t AS SELECT {items} FROM x", known, rows_follow=True)


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("UPDATE t JOIN u USING (id) SET t.a = u.a, u.a = t.a + 1", False),
        ("UPDATE t, u SET t.a = 1, u.b = t.a WHERE t.id = u.id", False),
        ("UPDATE t JOIN u USING (id) SET t.a = u.b, u.c = 5 WHERE u.a > 1", True),
        ("UPDATE t JOIN u USING (id) SET t.a = t.a + 1, u.b = 5", True),
        ("UPDATE t SET a = b, b = a", True),
    ],
)
def test_an_update_of_several_tables_that_reads_what_it_changes_stops(text: str, is_kept: bool) -> None:
    if is_kept:
        assert translated(text) == [text]
    else:
        assert "reads columns which it changes" in stop_of(text).text
