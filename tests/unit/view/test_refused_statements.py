"""Statements of an older MySQL that a newer one refuses: written so that it takes them, or a stop by name."""

import pytest

from relay.view.rules.tables.watched_tables import ALWAYS
from relay.view.stops.stop_reason import Untranslatable
from tests.support.rule_groups import XID, Other, Rows, RuleRun, Statement, settings

FILLED = "BEGIN"


def made(text: str, version: str = "5.6.24-log", mode: int = 0, **changed: object) -> str:
    """Return the statement that replicas run in place of one."""
    run = RuleRun(settings(**changed), version)
    ((first, *rest),) = run.plan(Statement(text, mode=mode))
    return " | ".join((first, *rest)).removeprefix("+")


def changed(text: str, *before: str, **settings_changed: object) -> str:
    """Return a change of rows as replicas run it."""
    run = RuleRun(settings(**settings_changed))
    for one in before:
        run.plan(one)
    ((_begin, statement, _end),) = run.plan("BEGIN", text, XID)
    return statement.removeprefix("+")


def why(text: str, version: str = "5.6.24-log", **changes: object) -> tuple[str, int]:
    """Return the name and the error of a stop."""
    with pytest.raises(Untranslatable) as raised:
        made(text, version, **changes)
    return raised.value.reason.name, raised.value.reason.error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE groups (rank INT, KEY system (rank))", "CREATE TABLE `groups` (`rank` INT, KEY `system` (`rank`))"),
        ("CREATE TABLE t (a INT) COMMENT 'rank'", None),
        ("CREATE TABLE t (`rank` INT)", None),
        ("CREATE TABLE t.rank (a INT)", None),
        ("ALTER TABLE t ADD lead INT AFTER lag, DROP over", "ALTER TABLE t ADD `lead` INT AFTER `lag`, DROP `over`"),
        ("DROP FUNCTION rank", "DROP FUNCTION `rank`"),
        ("DROP FUNCTION function", "DROP FUNCTION `function`"),
        ("CREATE TRIGGER g BEFORE INSERT ON row FOR EACH ROW SET NEW.row = 1",
         "CREATE TRIGGER g BEFORE INSERT ON `row` FOR EACH ROW SET NEW.row = 1"),
        ("CREATE INDEX i ON row (a)", "CREATE INDEX i ON `row` (a)"),
        ("CREATE TABLE t (a INT) /*!50100 PARTITION BY RANGE (a) (PARTITION rank VALUES LESS THAN (1)) */",
         "CREATE TABLE t (a INT) /*!50100 PARTITION BY RANGE (a) (PARTITION `rank` VALUES LESS THAN (1)) */"),
    ],
)  # fmt: skip
def test_names_that_are_reserved_now_are_quoted(text: str, expected: str | None) -> None:
    assert made(text) == (expected or text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO t (id, rank) VALUES (1, 2)", "INSERT INTO t (id, `rank`) VALUES (1, 2)"),
        (
            "UPDATE t SET rank = rank + 1 WHERE t.rank = 'rank'",
            "UPDATE t SET `rank` = `rank` + 1 WHERE t.rank = 'rank'",
        ),
        ("INSERT INTO t SELECT a, @rank := @rank + 1 FROM u", None),
        ("UPDATE t SET a = 1 WHERE ROW(a, b) = ROW(1, 2)", None),
        ("INSERT INTO row (a) VALUES (1)", "INSERT INTO `row` (a) VALUES (1)"),
        ("INSERT INTO t SELECT a, COUNT(*) FROM u GROUP BY a WITH ROLLUP", None),
        ("INSERT INTO t (a, b) VALUES (1, \\N)", "INSERT INTO t (a, b) VALUES (1, NULL)"),
        ("INSERT INTO t SELECT SQL_CACHE a FROM u", "INSERT INTO t SELECT  a FROM u"),
        ("INSERT INTO t VALUES ('SQL_CACHE MD5(x) rank')", None),
    ],
)
def test_words_of_changes_are_what_the_target_takes(text: str, expected: str | None) -> None:
    assert " ".join(changed(text).split()) == " ".join((expected or text).split())


def test_a_word_is_quoted_far_inside_of_a_long_statement() -> None:
    rows = ", ".join(f"({number}, 'text {number}')" for number in range(30_000))
    text = f"INSERT INTO t (a, s) VALUES {rows} ON DUPLICATE KEY UPDATE rank = 1"
    assert changed(text) == text.replace("rank", "`rank`")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("INSERT INTO t VALUES (MD5('x'))", 1305),
        ("UPDATE t SET a = AREA(g)", 1305),
        ("UPDATE t SET a = PASSWORD ('x')", 1064),
        ("INSERT INTO t SELECT a FROM u PROCEDURE ANALYSE()", 1064),
        ("INSERT INTO t SELECT a FROM u GROUP BY a DESC", 1064),
        ("INSERT INTO t SELECT a FROM (SELECT a FROM u GROUP BY a, b ASC) x", 1064),
        ("DELETE FROM mysql.proc WHERE db = 'd'", 1146),
    ],
)
def test_a_change_that_the_target_refuses_stops_the_view(text: str, error: int) -> None:
    with pytest.raises(Untranslatable) as raised:
        changed(text)
    assert (raised.value.reason.name, raised.value.reason.error) == ("statement_not_in_target", error)


def test_functions_of_a_component_are_accepted_by_name() -> None:
    text = "INSERT INTO t VALUES (MD5('x'))"
    with pytest.raises(Untranslatable, match="MD5") as raised:
        changed(text)
    assert "INSTALL COMPONENT" in raised.value.reason.advice
    assert changed(text, accept=("md5",)) == text
    assert changed("INSERT INTO md5 (a) VALUES (1)") == "INSERT INTO md5 (a) VALUES (1)"
    assert made("CREATE TABLE t (md5 INT, x INT, KEY y (x))") == "CREATE TABLE t (md5 INT, x INT, KEY y (x))"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE t (a INT NULL, b INT NULL, PRIMARY KEY (a))", "CREATE TABLE t (a INT, b INT NULL, PRIMARY KEY (a))"),
        ("CREATE TABLE t (a INT NULL AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)"),
        ("ALTER TABLE t MODIFY a INT NULL", "ALTER TABLE t MODIFY a INT"),
        ("ALTER TABLE t CHANGE a b INT DEFAULT NULL FIRST", "ALTER TABLE t CHANGE a b INT FIRST"),
        ("ALTER TABLE t MODIFY a TIMESTAMP NULL", None),
        ("ALTER TABLE t MODIFY a INT NOT NULL", None),
        ("CREATE TABLE t (y YEAR(2), z YEAR(4))", "CREATE TABLE t (y YEAR, z YEAR(4))"),
        ("CREATE PROCEDURE p(y YEAR(2)) SELECT YEAR(y)", "CREATE PROCEDURE p(y YEAR) SELECT YEAR(y)"),
        ("CREATE TABLE t (a INT) ROW_FORMAT=FIXED", "CREATE TABLE t (a INT) ROW_FORMAT=DEFAULT"),
        ("CREATE TABLE t (a INT) ROW_FORMAT=FIXED ENGINE=MyISAM", None),
        ("CREATE TABLE t (a INT) KEY_BLOCK_SIZE=32", "CREATE TABLE t (a INT) KEY_BLOCK_SIZE=0"),
        ("CREATE TABLE t (a INT) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8", None),
        ("CREATE TABLE t (a INT) ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=8", "CREATE TABLE t (a INT) ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=0"),
        ("ALTER TABLE t ROW_FORMAT=COMPACT", "ALTER TABLE t ROW_FORMAT=COMPACT KEY_BLOCK_SIZE=0"),
        ("CREATE TABLE t (a INT) DATA DIRECTORY='/x'", "CREATE TABLE t (a INT) "),
        ("CREATE TABLE t (a INT) TABLESPACE x", "CREATE TABLE t (a INT) "),
        ("CREATE TABLE t (g POINT NOT NULL DEFAULT '')", "CREATE TABLE t (g POINT NOT NULL)"),
        ("CREATE TABLE t (a INT, KEY (a DESC))", "CREATE TABLE t (a INT, KEY (a))"),
        ("CREATE INDEX i ON t (a DESC, b)", "CREATE INDEX i ON t (a, b)"),
        ("CREATE ONLINE INDEX i ON t (a)", "CREATE INDEX i ON t (a)"),
        ("ALTER IGNORE TABLE t ADD b INT", "ALTER TABLE t ADD b INT"),
        ("ALTER ONLINE TABLE t ADD b INT", "ALTER TABLE t ADD b INT"),
    ],
)  # fmt: skip
def test_what_the_source_ignored_is_left_out_of_definitions(text: str, expected: str | None) -> None:
    assert made(text) == (expected if expected is not None else text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE TABLE t (a FLOAT AUTO_INCREMENT PRIMARY KEY)", 1063),
        ("ALTER TABLE t ADD a DOUBLE SERIAL DEFAULT VALUE", 1063),
        ("CREATE TABLE t (a TIMESTAMP NULL PRIMARY KEY)", 1171),
        ("CREATE TABLE t (g POINT NOT NULL PRIMARY KEY)", 3728),
        ("CREATE TABLE t (g POINT NOT NULL, UNIQUE (g))", 3728),
        ("CREATE TABLE t (g POINT NOT NULL, KEY (g(20)))", 1089),
        ("ALTER TABLE t ADD g POINT NOT NULL", 1138),
        ("ALTER IGNORE TABLE t ADD UNIQUE KEY (a)", 1064),
        (f"CREATE TABLE t ({', '.join(f'c{n} VARCHAR(10)' for n in range(250))}) CHARSET utf8mb4", 1118),
    ],
)
def test_a_definition_that_the_target_refuses_stops_the_view(text: str, error: int) -> None:
    assert why(text) == ("definition_not_in_target", error)


def test_long_rows_are_accepted_where_replicas_do_not_check_them() -> None:
    text = f"CREATE TABLE t ({', '.join(f'c{n} CHAR(250)' for n in range(33))}) CHARSET latin1"
    assert why(text) == ("definition_not_in_target", 1118)
    assert made(text, accept=("row_size",)) == text
    assert made(text + " ENGINE=MyISAM") == text + " ENGINE=MyISAM"


def test_the_width_of_a_year_stops_where_the_source_kept_it() -> None:
    assert why("CREATE TABLE t (y YEAR(2))", "5.5.20") == ("definition_not_in_target", 1818)


@pytest.mark.parametrize(
    "body",
    [
        "SHOW MASTER STATUS", "RESET QUERY CACHE", "FLUSH HOSTS", "SET storage_engine = InnoDB", "SELECT @@tx_isolation",
        "GRANT SELECT ON *.* TO u@h IDENTIFIED BY 'p'", "ALTER IGNORE TABLE t ADD UNIQUE (b)", "SELECT PASSWORD('x')",
    ],
)  # fmt: skip
def test_a_program_with_a_statement_that_is_no_more_stops_the_view(body: str) -> None:
    assert why(f"CREATE PROCEDURE q() {body}") == ("statement_not_in_target", 1064)


def test_a_program_may_name_a_missing_function_and_variables_of_its_own() -> None:
    for text in (
        "CREATE PROCEDURE q() SELECT MD5('x')",
        "CREATE PROCEDURE q() BEGIN DECLARE old INT; SET old = 1; END",
        "CREATE PROCEDURE q() SET NAMES utf8",
    ):
        assert made(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FLUSH QUERY CACHE", ["+BEGIN", "+COMMIT"]),
        ("FLUSH HOSTS, DES_KEY_FILE", ["+BEGIN", "+COMMIT"]),
        ("FLUSH STATUS, QUERY CACHE, PRIVILEGES", ["+FLUSH STATUS, PRIVILEGES"]),
        ("FLUSH TABLES t", ["FLUSH TABLES t"]),
        (
            "INSERT INTO mysql.rds_heartbeat2 (id, value) VALUES (1, 5) ON DUPLICATE KEY UPDATE value = 5",
            ["+BEGIN", "+COMMIT"],
        ),
        ("CREATE TABLE IF NOT EXISTS mysql.rds_history (a INT)", ["+BEGIN", "+COMMIT"]),
        ("ALTER TABLE mysql.user ENGINE=MyISAM", ["+BEGIN", "+COMMIT"]),
        ("DROP TABLE IF EXISTS `mysql`.`db`", ["+BEGIN", "+COMMIT"]),
        ("DROP TABLE mysql.user, mysql.event", ["+BEGIN", "+COMMIT"]),
        ("RENAME TABLE mysql.general_log TO mysql.slow_log", ["+BEGIN", "+COMMIT"]),
        ("TRUNCATE TABLE mysql.general_log", ["+BEGIN", "+COMMIT"]),
        ("CREATE TABLE mysql.help_topic (a INT)", ["+BEGIN", "+COMMIT"]),
        ("CREATE TABLE mysql.mine (a INT)", ["CREATE TABLE mysql.mine (a INT)"]),
        ("DROP TABLE mysql.mine", ["DROP TABLE mysql.mine"]),
    ],
)
def test_what_has_no_effect_there_is_an_empty_transaction(text: str, expected: list[str]) -> None:
    assert RuleRun().plan(text) == [expected]


def test_rows_of_a_table_of_the_service_are_left_out() -> None:
    assert RuleRun().plan("BEGIN", Rows(["rds_heartbeat2"], "mysql"), XID) == [["+BEGIN", "+COMMIT"]]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (x BLOB, y BLOB, KEY (x(8)), KEY k (y (30), x(4)))",
        "ALTER TABLE t ADD UNIQUE q (x(30), y(3))",
        "CREATE INDEX q ON t (x(3))",
    ],
)
def test_the_prefix_of_a_keys_column_is_no_call_of_a_removed_function(text: str) -> None:
    assert made(text) == text


def test_each_statement_of_an_older_source_is_looked_at_and_of_the_same_version_none() -> None:
    rules = RuleRun().rules
    rules.of_source("5.6.24-log")
    assert rules.wants_statements
    assert set(rules.watched or b"") == {ALWAYS}
    rules.of_source("9.7.4")
    assert not rules.wants_statements
    assert made("CREATE TABLE rank (a INT)", "9.7.4") == "CREATE TABLE rank (a INT)"


def test_a_partitioned_table_of_another_engine_stops_also_where_an_alter_partitions_it() -> None:
    run = RuleRun()
    run.plan("CREATE TABLE t (a INT) ENGINE=MyISAM")
    with pytest.raises(Untranslatable, match="partitioned MyISAM"):
        run.plan("ALTER TABLE t PARTITION BY HASH (a) PARTITIONS 2")
    run = RuleRun(settings(engines="innodb"))
    run.plan("CREATE TABLE t (a INT) ENGINE=MyISAM")
    assert run.plan("ALTER TABLE t PARTITION BY HASH (a) PARTITIONS 2")


def test_text_that_cannot_be_read_is_the_replicas_affair() -> None:
    text = "CREATE TABLE rank (a INT /* open"
    assert made(text) == text
    assert RuleRun().plan(Other(99))
