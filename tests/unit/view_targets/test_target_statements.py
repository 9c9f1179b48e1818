"""Statements of a newer source for an older target: what is written otherwise, and what stops the view."""

import struct
import time

import pytest

from protocol.binlog.query import read_query
from protocol.binlog.status_variables import decode_status
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.rules.targets.statement.source_statement import SourceStatement
from relay.view.rules.targets.target_rules import TargetRules
from relay.view.stops.stop_reason import Untranslatable
from tests.support.target_groups import (
    STRICT,
    mode_made,
    plan,
    query_made,
    settings,
    statement,
    status_made,
    stop_of,
    text_made,
)

# ---- under what it runs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["BEGIN", "COMMIT", "SAVEPOINT `s`", "ROLLBACK TO `s`"])
def test_words_of_transactions_need_no_collation(text: str) -> None:
    query = query_made(statement(text))
    assert query.text == text.encode()
    assert decode_status(query.status_variables)[4] == struct.pack("<HHH", 45, 45, 45)


@pytest.mark.parametrize(
    ("target", "last"), [("mysql-5.5", 6), ("mysql-5.6", 12), ("mysql-5.7", 16), ("mysql-8.0", 20)]
)
def test_status_variables_that_the_target_does_not_know_are_left_out(target: str, last: int) -> None:
    event = statement("DROP TABLE t", explicit=1, more=[(20, b"\0"), (21, b"\0")])
    assert max(status_made(event, target)) == last


def test_a_variable_that_nobody_knows_stops_the_view() -> None:
    reason = stop_of(statement("DROP TABLE t", more=[(99, b"")]))
    assert (reason.name, reason.error) == ("status_variable_unknown", 0)
    assert "99" in reason.text


def test_a_definition_compares_nothing_and_needs_no_choice_of_collations() -> None:
    assert status_made(statement("DROP TABLE t"))[4] == struct.pack("<HHH", 45, 45, 45)
    assert status_made(statement("CREATE TABLE t (a INT)"))[4] == struct.pack("<HHH", 45, 45, 45)


@pytest.mark.parametrize(
    "text", ["INSERT INTO t VALUES ('a')", "CREATE VIEW v AS SELECT 'a'", "CREATE DATABASE e", "UPDATE t SET a = 1"]
)
def test_what_compares_or_makes_a_database_needs_a_choice(text: str) -> None:
    reason = stop_of(statement(text))
    assert (reason.name, reason.error) == ("collation_not_in_target", 22)
    assert "utf8mb4_0900_ai_ci" in reason.text and "collations" in reason.advice
    assert status_made(statement(text), collations={255: 224})[4] in (
        struct.pack("<HHH", 45, 224, 45),
        struct.pack("<HHH", 45, 45, 224),
    )


def test_a_choice_that_the_target_does_not_have_either_stops_the_view() -> None:
    reason = stop_of(statement("INSERT INTO t VALUES ('a')"), collations={255: 309})
    assert reason.name == "collation_not_in_target" and "utf8mb4_0900_bin" in reason.text


def test_a_database_with_a_collation_of_its_own_needs_no_choice() -> None:
    assert text_made("CREATE DATABASE e CHARACTER SET latin1") == "CREATE DATABASE e CHARACTER SET latin1"


def test_collations_of_old_sets_stay() -> None:
    query = query_made(statement("INSERT INTO t VALUES ('a')", collations=(8, 48, 33)))
    assert decode_status(query.status_variables)[4] == struct.pack("<HHH", 8, 48, 33)


def test_modes_that_change_nothing_are_taken_away() -> None:
    assert mode_made(statement("BEGIN", mode=STRICT | 1 << 32)) == STRICT
    assert mode_made(statement("DROP TABLE t", mode=1 << 32)) == 0


def test_a_mode_that_cuts_fractions_stops_statements_that_write() -> None:
    event = statement("INSERT INTO t VALUES (NOW(6))", mode=1 << 32, collations=(33, 33, 33))
    assert stop_of(event).name == "sql_mode_not_in_target"
    assert stop_of(statement("ALTER TABLE t MODIFY a DATETIME", mode=1 << 32)).name == "sql_mode_not_in_target"


def test_utf8_that_means_utf8mb4_stops_the_view() -> None:
    event = statement("CREATE TABLE t (a CHAR(3)) CHARSET=utf8", mode=1 << 33)
    assert stop_of(event).name == "sql_mode_not_in_target"


def test_a_mode_that_8_x_does_not_have_stops_what_it_changes() -> None:
    for target in ("mysql-8.0", "mysql-8.4"):
        changed = statement("CREATE TABLE t (a CHAR(3)) CHARSET=utf8", mode=1 << 33)
        assert stop_of(changed, target=target).name == "sql_mode_not_in_target"
        assert mode_made(statement("CREATE TABLE t (a INT)", mode=1 << 33), target) == 0
        assert stop_of(statement("DROP TABLE t", mode=1 << 40), target=target).name == "sql_mode_not_in_target"
        assert mode_made(statement("BEGIN", mode=1 << 40), target) == 0


def test_load_data_compares_where_it_computes_values() -> None:
    load = struct.pack("<IIIB", 1, 9, 26, 0)
    head = "LOAD DATA INFILE '/tmp/x' INTO TABLE `t` "
    plain = statement(f"{head}CHARACTER SET utf8mb4 (`a`)", load=load)
    assert status_made(plain)[4] == struct.pack("<HHH", 45, 45, 45)
    for text in ("(@`v`) SET `a`= (@`v` = 'x')", "CHARACTER SET latin1 (@`v`) SET `a`= (@`v` = 'x')"):
        event = statement(head + text, load=load)
        assert stop_of(event).name == "collation_not_in_target"
        assert status_made(event, collations={255: 224})[4] == struct.pack("<HHH", 45, 224, 45)
    # what comes from the file has the file's set, in its default collation, or in the schema's
    from_file = statement(f"{head}CHARACTER SET utf8mb4 (@`v`) SET `a`= (@`v` = 'x')", load=load)
    assert stop_of(from_file).name == "collation_not_in_target"
    assert stop_of(from_file, collations={255: 224}).name == "statement_differs_in_target"
    assert query_made(from_file, collations={255: 45}).text.endswith(b"= (@`v` = 'x')")
    of_schema = statement(f"{head}(@`v`) SET `a`= (@`v` = 'x')", load=load, more=[(8, struct.pack("<H", 255))])
    assert status_made(of_schema, collations={255: 224})[8] == struct.pack("<H", 224)


def test_load_data_keeps_the_place_of_its_file() -> None:
    text = "LOAD DATA INFILE '/tmp/x' INTO TABLE `t` CHARACTER SET utf8mb4 /*!80000 (a) */"
    load = struct.pack("<IIIB", 1, 9, 26, 0)
    query = query_made(statement(text, load=load))
    assert query.text == b"LOAD DATA INFILE '/tmp/x' INTO TABLE `t` CHARACTER SET utf8mb4   (a)  "
    assert query.load == load
    moved = statement("LOAD /*!80000 DATA */ INFILE '/tmp/x' INTO TABLE `t`", load=struct.pack("<IIIB", 1, 22, 40, 0))
    assert stop_of(moved).name == "statement_not_parsed"


# ---- version comments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("DROP TABLE /*!40000 IF EXISTS */ t", "DROP TABLE /*!40000 IF EXISTS */ t"),
        ("DROP TABLE /*!50600 IF EXISTS */ t", "DROP TABLE /*!50600 IF EXISTS */ t"),
        ("DROP TABLE /*! IF EXISTS */ t", "DROP TABLE /*! IF EXISTS */ t"),
        ("DROP TABLE /*!80000 IF EXISTS */ t", "DROP TABLE   IF EXISTS   t"),
        ("DROP TABLE /*!50700 IF EXISTS */ t", "DROP TABLE   IF EXISTS   t"),
        ("DROP TABLE /*!080000 IF EXISTS */ t", "DROP TABLE   IF EXISTS   t"),
        ("DROP TABLE /*!050600 IF EXISTS */ t", "DROP TABLE   IF EXISTS   t"),
        ("DROP TABLE /*!90800 IF EXISTS */ t", "DROP TABLE /*!90800 IF EXISTS */ t"),
        ("DROP TABLE /*!100000 IF EXISTS */ t", "DROP TABLE   t"),
        ("DROP TABLE t /* /*!80000 x */", "DROP TABLE t /* /*!80000 x */"),
        ("DROP TABLE t -- /*!80000 x", "DROP TABLE t -- /*!80000 x"),
        ("CREATE DATABASE e CHARSET latin1 /*!80016 DEFAULT ENCRYPTION='N' */", "CREATE DATABASE e CHARSET latin1  "),
        ("CREATE TABLE t (a INT) ENCRYPTION='N'", "CREATE TABLE t (a INT) "),
        ("CREATE TABLE t (a CHAR(30) DEFAULT '/*!80000 x */')", "CREATE TABLE t (a CHAR(30) DEFAULT '/*!80000 x */')"),
    ],
)
def test_what_the_source_read_in_a_version_comment_the_target_reads_too(text: str, made: str) -> None:
    assert text_made(text) == made


@pytest.mark.parametrize("target", ["mysql-8.0", "mysql-8.4"])
@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("INSERT INTO t VALUES (1) /*!90000 , (2) */", "INSERT INTO t VALUES (1)   , (2)  "),
        ("CREATE TABLE t (v INT /*!90000 DEFAULT 5 */)", "CREATE TABLE t (v INT   DEFAULT 5  )"),
        ("CREATE TABLE t (v INT /*!090000 DEFAULT 5 */)", "CREATE TABLE t (v INT   DEFAULT 5  )"),
        ("DROP TABLE /*!80000 IF EXISTS */ t", "DROP TABLE /*!80000 IF EXISTS */ t"),
        ("DROP TABLE /*!100000 IF EXISTS */ t", "DROP TABLE /*!100000 IF EXISTS */ t"),
    ],
)
def test_what_9_x_read_in_a_version_comment_8_x_reads_too(target: str, text: str, made: str) -> None:
    assert text_made(text, target) == made


def test_backslashes_are_letters_where_the_mode_says_so() -> None:
    text = "CREATE TABLE t (a CHAR(9) DEFAULT 'x\\', b INT /*!80000 UNIQUE */)"
    assert text_made(text, mode=1 << 20).endswith("b INT   UNIQUE  )")
    # with backslashes the string goes on, and has no end
    assert stop_of(statement(text)).name == "statement_not_parsed"


@pytest.mark.parametrize("text", ["DROP TABLE `t", "DROP TABLE /*!80000 t", "INSERT INTO t VALUES ('a"])
def test_what_has_no_end_stops_the_view(text: str) -> None:
    assert stop_of(statement(text, collations=(33, 33, 33))).name == "statement_not_parsed"


def test_characters_that_end_with_a_quote_are_no_quotes() -> None:
    text = b"DROP TABLE `" + "十\x60".encode("cp932")[:2] + b"` /*!80000 x */"
    made = query_made(statement(text, collations=(95, 95, 95))).text
    assert made == text.replace(b"/*!80000 x */", b"  x  ")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("(1, 'a'), (-2.5e3, NULL), (0x0F, x'00'), (DEFAULT, _binary 'b')", 2),
        ("(1, 'a\\'), ('), (2, 'it''s')", 2),
        ("(1, 'a'), (2, UPPER('b')), (3, 'c')", 14),
        ("(1, UPPER('b')), (2, 'c')", 11),
        ("(1, 'a') /*!80000 , (2, 'b') */", 5),
        ("(1) ON DUPLICATE KEY UPDATE a = VALUES(a), b = (1)", 18),
    ],
)
def test_rows_of_literals_are_a_pair_of_brackets(rows: str, words: int) -> None:
    text = f"INSERT INTO t VALUES {rows}"
    read = SourceStatement(text.encode(), 33, 0, 90704, TARGETS_BY_NAME["mysql-5.6"])
    assert len(read.words) == 4 + words
    assert text_made(text, collations={255: 45}).replace(" ", "") == text.replace("/*!80000", "").replace(
        "*/", ""
    ).replace(" ", "")


def test_what_is_written_in_rows_of_literals_is_judged_all_the_same() -> None:
    for row in (
        "('2020-01-01 10:00:00+05:30')",
        "(1), ('2020-01-01 10:00:00+05:30')",
        "('a' REGEXP 'b')",
        "(1), (b & c)",
    ):
        assert (
            stop_of(statement(f"INSERT INTO t VALUES {row}", collations=(33, 33, 33))).name
            == "statement_differs_in_target"
        )
    large = "INSERT INTO t VALUES " + ", ".join(["(1, 'a')"] * 200_000)
    assert text_made(large, collations={255: 45}) == large


# ---- names of sets and collations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (
            "CREATE TABLE t (a CHAR(3) COLLATE utf8mb4_0900_ai_ci)",
            "CREATE TABLE t (a CHAR(3) COLLATE utf8mb4_unicode_ci)",
        ),
        ("CREATE TABLE t (a INT) COLLATE='UTF8MB4_0900_AI_CI'", "CREATE TABLE t (a INT) COLLATE=utf8mb4_unicode_ci"),
        ("CREATE TABLE t (a INT) CHARSET=utf8mb4", "CREATE TABLE t (a INT) CHARSET=utf8mb4 COLLATE utf8mb4_unicode_ci"),
        (
            "CREATE TABLE t (a CHAR(3) CHARACTER SET utf8mb4 NOT NULL, b CHAR(3) CHARSET 'utf8mb4' COLLATE utf8mb4_bin)",
            "CREATE TABLE t (a CHAR(3) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL,"
            " b CHAR(3) CHARSET 'utf8mb4' COLLATE utf8mb4_bin)",
        ),
        ("CREATE TABLE t (a CHAR(3) CHARSET utf8mb4 BINARY)", "CREATE TABLE t (a CHAR(3) CHARSET utf8mb4 BINARY)"),
        (
            "CREATE TABLE t (a INT) CHARSET=utf8mb4 COMMENT='x' COLLATE=utf8mb4_bin",
            "CREATE TABLE t (a INT) CHARSET=utf8mb4 COMMENT='x' COLLATE=utf8mb4_bin",
        ),
        (
            "CREATE TABLE t (a INT) COLLATE=utf8mb4_bin CHARSET=utf8mb4",
            "CREATE TABLE t (a INT) COLLATE=utf8mb4_bin CHARSET=utf8mb4 COLLATE utf8mb4_bin",
        ),
        (
            "CREATE TABLE t (a INT) COLLATE latin1_bin DEFAULT CHARSET latin1",
            "CREATE TABLE t (a INT) COLLATE latin1_bin DEFAULT CHARSET latin1 COLLATE latin1_bin",
        ),
        (
            "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, ADD b INT",
            "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci, ADD b INT",
        ),
        (
            "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, MODIFY b VARCHAR(10) COLLATE utf8mb4_bin",
            "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci, MODIFY b VARCHAR(10) COLLATE utf8mb4_bin",
        ),
        (
            "ALTER TABLE t DEFAULT CHARSET utf8mb4, ADD c CHAR(3) COLLATE latin1_bin",
            "ALTER TABLE t DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci, ADD c CHAR(3) COLLATE latin1_bin",
        ),
        (
            "ALTER TABLE t ADD c CHAR(3) COLLATE latin1_bin, DEFAULT CHARSET utf8mb4, ADD (d CHAR(3) COLLATE latin1_bin)",
            "ALTER TABLE t ADD c CHAR(3) COLLATE latin1_bin, DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci,"
            " ADD (d CHAR(3) COLLATE latin1_bin)",
        ),
        (
            "ALTER TABLE t CHARSET utf8mb4, ADD b INT, COLLATE utf8mb4_bin",
            "ALTER TABLE t CHARSET utf8mb4, ADD b INT, COLLATE utf8mb4_bin",
        ),
        (
            "CREATE TABLE t (a CHAR(3)) CHARSET=utf8mb4 PARTITION BY LIST COLUMNS(a)"
            " (PARTITION p VALUES IN ('x' COLLATE utf8mb4_bin))",
            "CREATE TABLE t (a CHAR(3)) CHARSET=utf8mb4 COLLATE utf8mb4_unicode_ci PARTITION BY LIST COLUMNS(a)"
            " (PARTITION p VALUES IN ('x' COLLATE utf8mb4_bin))",
        ),
        (
            "CREATE TABLE t (a INT) CHARSET=utf8mb4 SELECT b COLLATE utf8mb4_bin AS a FROM u",
            "CREATE TABLE t (a INT) CHARSET=utf8mb4 COLLATE utf8mb4_unicode_ci SELECT b COLLATE utf8mb4_bin AS a FROM u",
        ),
        (
            "CREATE TABLE t (a CHAR(3) BINARY CHARACTER SET utf8mb4)",
            "CREATE TABLE t (a CHAR(3) BINARY CHARACTER SET utf8mb4)",
        ),
        (
            "CREATE FUNCTION f(a CHAR(3) CHARSET utf8mb4, b CHAR(3) CHARSET utf8mb4 COLLATE utf8mb4_bin)"
            " RETURNS CHAR(3) CHARSET utf8mb4 RETURN a COLLATE utf8mb4_bin",
            "CREATE FUNCTION f(a CHAR(3) CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci, b CHAR(3) CHARSET utf8mb4 COLLATE utf8mb4_bin)"
            " RETURNS CHAR(3) CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci RETURN a COLLATE utf8mb4_bin",
        ),
        (
            "CREATE FUNCTION f(a CHAR(3) BINARY CHARSET latin1, b CHAR(3) CHARSET utf8mb4 BINARY) RETURNS INT RETURN 1",
            "CREATE FUNCTION f(a CHAR(3) BINARY CHARSET latin1 COLLATE latin1_bin,"
            " b CHAR(3) CHARSET utf8mb4 BINARY COLLATE utf8mb4_bin) RETURNS INT RETURN 1",
        ),
        ("ALTER DATABASE d CHARSET utf8mb4", "ALTER DATABASE d CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci"),
        ("CREATE TABLE t (a CHAR(3)) CHARSET=utf8mb3", "CREATE TABLE t (a CHAR(3)) CHARSET=utf8mb3"),
    ],
)
def test_collations_are_written_out_as_the_view_chooses(text: str, made: str) -> None:
    assert text_made(text, collations={255: 224}) == made


def test_utf8mb4_alone_means_the_same_where_general_ci_was_its_default() -> None:
    text = "CREATE TABLE t (a INT) CHARSET=utf8mb4"
    assert text_made(text, default=45) == text
    assert text_made(text, collations={255: 45}) == text


def test_utf8mb4_without_a_collation_needs_a_choice() -> None:
    for default in (255, None):
        reason = stop_of(statement("CREATE TABLE t (a INT) CHARSET=utf8mb4", default=default))
        assert reason.name == "collation_not_in_target"
    assert stop_of(statement("UPDATE t SET a = _utf8mb4'x'", collations=(33, 33, 33))).name == "collation_not_in_target"


@pytest.mark.parametrize(
    "value",
    [
        "CONVERT(b USING utf8mb4)",
        "CAST(b AS CHAR CHARACTER SET utf8mb4)",
        "CONVERT(b, CHAR CHARSET utf8mb4)",
        "_utf8mb4'y'",
    ],
)
def test_a_value_of_utf8mb4_has_the_targets_own_collation(value: str) -> None:
    text = f"DELETE FROM t WHERE {value} = 'x'"
    assert stop_of(statement(text, collations=(33, 33, 33))).name == "collation_not_in_target"
    assert stop_of(statement(text), collations={255: 224}).name == "statement_differs_in_target"
    assert text_made(text, collations={255: 45}) == text
    assert text_made(text, default=45, collations={255: 224}) == text
    named = text.replace(" =", " COLLATE utf8mb4_bin =")
    assert text_made(named, collations={255: 224}) == named


def test_a_statement_of_many_columns_takes_as_long_as_its_length_says() -> None:
    def seconds(number: int) -> float:
        columns = ", ".join(
            f"c{at} CHAR(3) CHARACTER SET utf8mb4, d{at} CHAR(3) COLLATE utf8mb4_bin" for at in range(number)
        )
        casts = ", ".join(f"c{at} = CAST(d{at} AS CHAR CHARACTER SET utf8mb4)" for at in range(number))
        texts = (f"CREATE TABLE t ({columns})", f"UPDATE t SET {casts}")
        start = time.process_time()
        for text in texts:
            text_made(text, collations={255: 45})
        return time.process_time() - start

    assert min(seconds(2000) for _ in range(3)) < 16 * min(seconds(250) for _ in range(3))


def test_a_set_that_the_target_does_not_have_stops_the_view() -> None:
    assert stop_of(statement("CREATE TABLE t (a INT) CHARSET=gb18030")).name == "definition_not_in_target"
    assert text_made("CREATE TABLE t (a INT) CHARSET=gb18030", "mysql-5.7")


# ---- TIMESTAMP ------------------------------------------------------------------------------------------------------

ZERO = "DEFAULT '0000-00-00 00:00:00'"


@pytest.mark.parametrize(
    ("column", "made"),
    [
        ("a TIMESTAMP", "a TIMESTAMP NULL"),
        ("a TIMESTAMP(3) COMMENT 'x'", "a TIMESTAMP(3) NULL COMMENT 'x'"),
        ("a TIMESTAMP DEFAULT NULL", "a TIMESTAMP NULL DEFAULT NULL"),
        ("a TIMESTAMP DEFAULT CURRENT_TIMESTAMP", "a TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP"),
        ("a TIMESTAMP NULL", "a TIMESTAMP NULL"),
        ("a TIMESTAMP NOT NULL", f"a TIMESTAMP {ZERO} NOT NULL"),
        ("a TIMESTAMP(2) NOT NULL ON UPDATE NOW(2)", f"a TIMESTAMP(2) {ZERO} NOT NULL ON UPDATE NOW(2)"),
        ("a TIMESTAMP PRIMARY KEY", f"a TIMESTAMP {ZERO} PRIMARY KEY"),
        ("a TIMESTAMP NOT NULL DEFAULT '2001-01-01'", "a TIMESTAMP NOT NULL DEFAULT '2001-01-01'"),
        ("`timestamp` INT, b INT DEFAULT 1", "`timestamp` INT, b INT DEFAULT 1"),
        ("timestamp TIMESTAMP", "timestamp TIMESTAMP NULL"),
        ("a DATETIME", "a DATETIME"),
        ("a INT, KEY timestamp (a)", "a INT, KEY timestamp (a)"),
    ],
)
def test_timestamps_are_written_out(column: str, made: str) -> None:
    assert text_made(f"CREATE TABLE t ({column})", explicit=1) == f"CREATE TABLE t ({made})"
    # where the source does as the target, they stay; and a version that reads the variable has it
    assert text_made(f"CREATE TABLE t ({column})", explicit=0) == f"CREATE TABLE t ({column})"
    assert text_made(f"CREATE TABLE t ({column})", "mysql-5.7", explicit=1) == f"CREATE TABLE t ({column})"


def test_timestamps_of_alterations_are_written_out() -> None:
    text = "ALTER TABLE d.t ADD a TIMESTAMP, ADD COLUMN (b TIMESTAMP, c INT), MODIFY d TIMESTAMP AFTER a, CHANGE e f TIMESTAMP, DROP g"
    assert text_made(text, explicit=1) == (
        "ALTER TABLE d.t ADD a TIMESTAMP NULL, ADD COLUMN (b TIMESTAMP NULL, c INT), MODIFY d TIMESTAMP NULL AFTER a,"
        " CHANGE e f TIMESTAMP NULL, DROP g"
    )


def test_definitions_run_without_the_modes_that_refuse_a_zero_date() -> None:
    assert mode_made(statement("ALTER TABLE t ADD a INT", explicit=1)) == STRICT & ~0x1800000
    event = statement("CREATE PROCEDURE p() SELECT 1", collations=(33, 33, 33))
    assert mode_made(event) == STRICT, "a program keeps the mode that it is made under"


# ---- clauses --------------------------------------------------------------------------------------------------------

REFUSED = [
    "CREATE TABLE t (a JSON)", "CREATE TABLE t (a VECTOR(3))", "CREATE TABLE t (a INT INVISIBLE)",
    "CREATE TABLE t (a INT /*!80023 INVISIBLE */)", "CREATE TABLE t (a INT, KEY k (a) /*!80000 INVISIBLE */)",
    "CREATE TABLE t (a INT, b INT AS (a + 1))", "CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (a + 1) STORED)",
    "CREATE TABLE t (a INT DEFAULT (1 + 1))", "CREATE TABLE t (a INT, KEY ((a + 1)))", "CREATE TABLE t (a INT, UNIQUE k (a, (a + 1)))",
    "CREATE INDEX i ON t ((a + 1))", "CREATE TABLE t (a POINT SRID 4326)", "CREATE TABLE t (a POINT /*!80003 SRID 4326 */)",
    "ALTER TABLE t RENAME COLUMN a TO b", "ALTER TABLE t RENAME INDEX a TO b", "ALTER TABLE t DROP CHECK c",
    "ALTER TABLE t DROP CONSTRAINT c", "ALTER TABLE t ALTER INDEX i INVISIBLE", "ALTER TABLE t ADD a INT DEFAULT (1)",
    "ALTER TABLE t ALTER COLUMN a SET DEFAULT (1)", "ALTER TABLE t ALTER a SET INVISIBLE", "CREATE TABLE t (a INT) COMPRESSION='zlib'",
    "CREATE TABLE t (a INT) ENCRYPTION='Y'", "ALTER TABLE t ENGINE_ATTRIBUTE='{}'",
    "CREATE DATABASE e DEFAULT ENCRYPTION='Y' CHARSET latin1",
]  # fmt: skip
IGNORED = [
    "CREATE TABLE t (a INT CHECK (a > 0))", "CREATE TABLE t (a INT, CHECK (a > 0))",
    "CREATE TABLE t (a INT, CONSTRAINT c CHECK (a > 0))",
    "ALTER TABLE t ADD CHECK (a > 0)", "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)", "ALTER TABLE t ADD b INT CHECK (b > 0)",
    "CREATE TABLE t (a INT, KEY (a DESC))", "CREATE TABLE t (a INT, PRIMARY KEY (a DESC))", "CREATE UNIQUE INDEX i ON t (a, b DESC)",
    "ALTER TABLE t ADD INDEX (a DESC)", "CREATE TABLE t (a INT REFERENCES p (a) ON DELETE CASCADE)",
    "ALTER TABLE t ADD a INT REFERENCES p",
]  # fmt: skip
KEPT = [
    "CREATE TABLE t (a INT, `check` INT, KEY (`check`))", "CREATE TABLE t (a INT COMMENT 'CHECK (1)') COMMENT='DESC'",
    "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (a))", "CREATE TABLE t (a INT, `json` INT)",
    "ALTER TABLE t CHECK PARTITION p0",
    "ALTER TABLE t ORDER BY a DESC", "CREATE TABLE t (a INT, KEY k (a ASC))", "CREATE TABLE t (a INT DEFAULT 1, b INT NOT NULL)",
    "CREATE TABLE t (a INT, KEY k (a(10), b(5)))", "CREATE TABLE t LIKE u", "DROP TABLE t",
    "CREATE TABLE t (a INT) TABLESPACE innodb_system",
    "ALTER TABLE t DROP FOREIGN KEY f, DROP COLUMN a", "CREATE TABLE t (a ENUM('JSON', 'AS (')) ENGINE=MyISAM",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_target_refuses_is_named(text: str) -> None:
    reason = stop_of(statement(text, explicit=1))
    assert (reason.name, reason.error) == ("definition_not_in_target", 1064)


@pytest.mark.parametrize("text", IGNORED)
def test_what_the_target_ignores_is_named(text: str) -> None:
    reason = stop_of(statement(text, explicit=1))
    assert (reason.name, reason.error) == ("definition_ignored_by_target", 0)


@pytest.mark.parametrize("text", KEPT)
def test_other_definitions_are_kept_as_they_are(text: str) -> None:
    assert text_made(text, explicit=1) == text


def test_foreign_keys_behind_a_column_stop_every_version_that_ignores_them() -> None:
    text = "CREATE TABLE t (a INT REFERENCES p (a))"
    for target in ("mysql-5.7", "mysql-8.0", "mysql-8.4"):
        assert stop_of(statement(text), target=target).name == "definition_ignored_by_target"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("ALTER TABLE t ADD a INT, ALGORITHM=INSTANT", "ALTER TABLE t ADD a INT, ALGORITHM=DEFAULT"),
        (
            "ALTER TABLE t ADD a INT, ALGORITHM INPLACE, LOCK=NONE",
            "ALTER TABLE t ADD a INT, ALGORITHM DEFAULT, LOCK=DEFAULT",
        ),
        (
            "CREATE INDEX i ON t (a) ALGORITHM=INPLACE LOCK SHARED",
            "CREATE INDEX i ON t (a) ALGORITHM=DEFAULT LOCK DEFAULT",
        ),
        ("DROP INDEX i ON t LOCK=NONE", "DROP INDEX i ON t LOCK=DEFAULT"),
        (
            "ALTER TABLE t ADD a INT, ALGORITHM=COPY, LOCK=EXCLUSIVE",
            "ALTER TABLE t ADD a INT, ALGORITHM=COPY, LOCK=EXCLUSIVE",
        ),
        ("CREATE VIEW `lock` AS SELECT 1", "CREATE VIEW `lock` AS SELECT 1"),
    ],
)
def test_how_a_table_is_altered_is_the_targets_choice(text: str, made: str) -> None:
    assert text_made(text, collations={255: 45}) == made


# ---- statements that do something else ------------------------------------------------------------------------------

DIFFERENT = [
    "UPDATE t SET a = 1 WHERE b REGEXP '^.$'", "DELETE FROM t WHERE b RLIKE 'x'",
    "INSERT /*+ SET_VAR(timestamp = 1) */ INTO t VALUES (1)",
    "INSERT INTO t VALUES ('2020-01-01 10:00:00+05:30')", "UPDATE t SET a = b & c", "UPDATE t SET a = ~b", "UPDATE t SET a = b << 2",
    "UPDATE t SET b = b & 0xFF00", "UPDATE t SET b = 0b11 ^ b", "UPDATE t SET b = (SELECT BIT_OR(c) FROM u)",
    "UPDATE t SET a = BIT_COUNT(b)", "UPDATE t SET a = CAST(b AS CHAR BINARY) = 'x'",
    "UPDATE t SET a = CAST(b AS CHAR(3) CHARSET latin1 BINARY) = 'x'",
    "INSERT INTO t VALUES (ST_GeomFromText('POINT(1 2)', 4326))", "CREATE TABLE u SELECT * FROM t",
    "CREATE TABLE u (a INT) AS SELECT 1 AS b",
    "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.a = NEW.b REGEXP 'x'",
]  # fmt: skip
SAME = [
    "UPDATE t SET a = a & 4 WHERE b || c AND d && e", "UPDATE t SET a = 1 << b, c = ~5 WHERE a <> b AND c <= d AND a >= 3",
    "UPDATE t SET a = 0xFF & 0x0F, b = ~0xFF, c = 0xFF << 2, d = BIT_COUNT(0xFF)",
    "UPDATE t SET a = CONVERT(b USING binary), c = CAST(d AS BINARY)",
    "INSERT INTO t VALUES (ST_GeomFromText('POINT(1 2)'))", "INSERT /*+ MAX_EXECUTION_TIME(5) */ INTO t VALUES ('REGEXP')",
    "INSERT /*+ SET_VAR(sort_buffer_size = 16M) SET_VAR(`join_buffer_size`=1M) */ INTO t VALUES (1)",
    "INSERT INTO t VALUES ('2020-01-01 10:00:00', '10:00+05:30x')", "UPDATE t SET a = b <=> c WHERE d < e AND f > g",
]  # fmt: skip


@pytest.mark.parametrize("text", DIFFERENT)
def test_a_statement_with_another_result_is_named(text: str) -> None:
    reason = stop_of(statement(text, collations=(33, 33, 33), default=45))
    assert reason.name in ("statement_differs_in_target", "create_select_statement") and reason.error == 0


FRACTIONS = [
    "INSERT INTO t VALUES ('2020-01-01 10:00:00.9')", "INSERT INTO t VALUES (1, '10:00:00.5'), (2, 3)",
    "UPDATE t SET a = '1 10:00:00.5'",
    "INSERT INTO t VALUES (1, 20200101100000.9)", "UPDATE t SET a = 20200101100000.9", "UPDATE t SET a = NOW(6)",
]  # fmt: skip
NO_FRACTIONS = [
    "INSERT INTO t VALUES ('2020-01-01 10:00:00.000')", "UPDATE t SET a = NOW(), b = CURRENT_TIMESTAMP, c = 1.5, d = '1.5'",
    "INSERT INTO t VALUES (1.5, '10.00.00.5')",
]  # fmt: skip


@pytest.mark.parametrize("version", ["5.6.24-log", "5.7.44-log"])
@pytest.mark.parametrize("text", FRACTIONS)
def test_5_5_cuts_fractions_that_later_versions_round(version: str, text: str) -> None:
    event = statement(text, collations=(33, 33, 33), default=None)
    with pytest.raises(Untranslatable) as stopped:
        plan(TargetRules(settings("mysql-5.5")), event, version=version)
    assert stopped.value.reason.name == "statement_differs_in_target"
    assert query_made(event, "mysql-5.6", collations={255: 45}).text.decode() == text


@pytest.mark.parametrize("text", NO_FRACTIONS)
def test_what_5_5_does_not_cut_is_kept(text: str) -> None:
    ((made,),) = plan(
        TargetRules(settings("mysql-5.5")), statement(text, collations=(33, 33, 33)), version="5.6.24-log"
    )
    assert read_query(made.type, made.body, 0).text.decode() == text


@pytest.mark.parametrize("text", SAME)
def test_other_statements_are_kept_as_they_are(text: str) -> None:
    assert query_made(statement(text, collations=(33, 33, 33), default=45)).text.decode() == text


@pytest.mark.parametrize(
    ("text", "defined"),
    [
        ("CREATE TABLE u (a INT, b INT) SELECT a, t.b FROM t", True),
        ("CREATE TABLE u (a INT, `B` INT) AS SELECT DISTINCT MAX(c) + 1 AS a, d.t.`b` FROM t", True),
        ("CREATE TABLE u (a INT) SELECT 5 AS a", True),
        ("CREATE TABLE u (a INT) (SELECT a FROM t UNION SELECT c FROM t)", True),
        ("CREATE TABLE u (a INT) SELECT a, b FROM t", False),
        ("CREATE TABLE u (a INT) SELECT * FROM t", False),
        ("CREATE TABLE u (a INT) SELECT t.* FROM t", False),
        ("CREATE TABLE u (a INT) SELECT a b FROM t", False),
        ("CREATE TABLE u (a INT) SELECT a + a FROM t", False),
        ("CREATE TABLE u SELECT a FROM t", False),
        ("CREATE TABLE u (KEY (a)) SELECT a FROM t", False),
    ],
)
def test_a_table_of_what_is_selected_is_kept_where_it_defines_all_of_it(text: str, defined: bool) -> None:
    event = statement(text, collations=(33, 33, 33), default=45)
    if defined:
        assert query_made(event).text.decode() == text
    else:
        assert stop_of(event).name == "create_select_statement"


@pytest.mark.parametrize("text", DIFFERENT[:8])
def test_they_are_kept_where_the_target_does_the_same(text: str) -> None:
    assert text_made(text, "mysql-8.0") == text


UNKNOWN_TO_5_6 = {
    "UPDATE t SET a = REGEXP_REPLACE(b, 'x', 'y')": 1305, "UPDATE t SET a = JSON_EXTRACT(b, '$.a')": 1305,
    "INSERT INTO t SELECT UUID_TO_BIN(UUID())": 1305, "INSERT INTO t SELECT ROW_NUMBER() OVER () FROM u": 1064,
    "INSERT INTO t WITH c AS (SELECT 1) SELECT * FROM c": 1064, "WITH RECURSIVE c (a) AS (SELECT 1) DELETE FROM t": 1064,
    "INSERT INTO t VALUES (1) AS n ON DUPLICATE KEY UPDATE a = n.a": 1064,
    "INSERT INTO t SET a = 1 AS n ON DUPLICATE KEY UPDATE a = n.a": 1064,
    "REPLACE INTO t TABLE s": 1064, "INSERT INTO t (a) TABLE s": 1064, "CREATE TABLE t TABLE s": 1064,
    "CREATE TABLE t AS TABLE `s`": 1064,
    "INSERT INTO t SELECT * FROM (TABLE s) AS x": 1064, "INSERT INTO t VALUES ROW(1)": 1064,
    "ALTER INSTANCE ROTATE INNODB MASTER KEY": 1064,
    "UPDATE t SET a = b->'$.a'": 1064, "DELETE FROM t AS x WHERE x.a = 1": 1064, "DELETE FROM t x": 1064,
    "UPDATE t SET a = CAST(b AS JSON)": 1064, "UPDATE t SET a = CAST(b AS DOUBLE)": 1064,
    "INSERT INTO t SELECT 1 EXCEPT SELECT 2": 1064,
    "INSERT INTO t SELECT a FROM u FOR UPDATE SKIP LOCKED": 1064, "CREATE TABLESPACE x ADD DATAFILE 'x.ibd'": 1064,
    "CREATE PROCEDURE IF NOT EXISTS p() SELECT 1": 1064, "CREATE VIEW IF NOT EXISTS v AS SELECT 1": 1064,
    "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW FOLLOWS q SET @a = 1": 1064,
    "INSERT INTO t SELECT 1 FROM u, LATERAL (SELECT 1) AS x": 1064, "UPDATE t SET a = 1 MEMBER OF ('[1]')": 1064,
}  # fmt: skip
KNOWN_TO_5_6 = [
    "DELETE FROM t", "DELETE FROM d.t WHERE a = 1", "DELETE QUICK FROM `t` ORDER BY a LIMIT 1",
    "DELETE FROM t USING t JOIN u ON t.a = u.a",
    "DELETE t FROM t AS x", "DELETE FROM t PARTITION (p0)", "DELETE FROM t.*, u USING t JOIN u",
    "INSERT INTO t SELECT a AS b FROM u", "INSERT INTO t SELECT a, COUNT(*) FROM u GROUP BY a WITH ROLLUP",
    "UPDATE t SET a = d.regexp_replace(b), c = x.over, e = 'TABLE'",
    "INSERT INTO json_set (a) VALUES (1)", "CREATE INDEX i ON json_set (a)",
    "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", "TRUNCATE TABLE t", "RENAME TABLE t TO u",
    "CREATE TABLE t (`rank` INT, json_set INT)",
    "CREATE PROCEDURE p() BEGIN DROP TEMPORARY TABLE IF EXISTS t; ANALYZE TABLE u; END", "UPDATE t SET a = `table` + 1",
    "CREATE TABLE t (a TEXT, FULLTEXT KEY (a) WITH PARSER ngram)", "CREATE VIEW v AS SELECT 1 WITH CHECK OPTION",
    "CREATE TABLE t (a INT, KEY etag (a))", "INSERT INTO t SELECT 1 AS json",
]  # fmt: skip


@pytest.mark.parametrize("text", UNKNOWN_TO_5_6)
def test_what_came_after_the_target_is_named(text: str) -> None:
    reason = stop_of(statement(text, collations=(33, 33, 33), default=45))
    assert (reason.name, reason.error) == ("statement_not_in_target", UNKNOWN_TO_5_6[text])


@pytest.mark.parametrize("text", KNOWN_TO_5_6)
def test_what_only_looks_like_it_is_kept(text: str) -> None:
    assert query_made(statement(text, collations=(33, 33, 33), default=45)).text.decode() == text


def test_what_a_target_has_is_kept_and_names_that_a_source_had_no_function_of_are_the_users() -> None:
    for text in list(UNKNOWN_TO_5_6)[:10]:
        assert text_made(text, "mysql-8.0") == text
    vector = "INSERT INTO t SELECT VECTOR_DIM(a) FROM u"
    assert stop_of(statement(vector), target="mysql-8.4").error == 1305
    event = statement("UPDATE t SET a = UUID_TO_BIN(b)", collations=(33, 33, 33), default=None)
    assert plan(TargetRules(settings("mysql-5.6")), event, version="5.7.44-log")
    with pytest.raises(Untranslatable):
        plan(TargetRules(settings("mysql-5.6")), event, version="8.0.11")


def test_damaged_status_variables_stop_the_view() -> None:
    event = statement("DROP TABLE t")
    cut = event._replace(body=event.body[:20])
    assert stop_of(cut).name == "statement_not_parsed"
    assert list(decode_status(b"\x0c\xfe\x0b\x01u\x01h\x0d\x01\x02\x03")) == [12, 11, 13]
