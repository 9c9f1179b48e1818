"""Expressions, functions and assignments that only people write."""

import pytest

from protocol.errors import StatementRefused
from protocol.resultset import Rows
from protocol.statements import SourceFacts, StatementSession
from protocol.statements.requests import AskGtidPosition
from protocol.statements.set_variables import MAX_VALUE_CHARACTERS
from tests.support.table_answers import answer_of, answered

MYSQL = SourceFacts("mysql", "5.6.24-log", 3, "uuid", "CRC32")
MARIADB = SourceFacts("mariadb", "10.11.19-MariaDB", 3)
NOW = 1_700_000_000.25  # 2023-11-14 22:13:20.25 UTC


def value(expression: str, facts: SourceFacts = MYSQL) -> object:
    rows = answered(f"SELECT {expression}", StatementSession(facts, 42, "u", "h"), NOW)
    assert isinstance(rows, Rows)
    return rows.rows[0][0]


def number(statement: str, session: StatementSession | None = None) -> int:
    with pytest.raises(StatementRefused) as caught:
        answer_of(statement, session or StatementSession(MYSQL, 42), NOW)
    return caught.value.number


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("(5)", 5),
        ("((VERSION()))", "5.6.24-log"),
        ("+5", 5),
        ("-1.5", "-1.5"),
        ("-0x10", -16),
        ("0x123456789abcdef0123", "0x123456789abcdef0123"),
        ("FALSE", 0),
        ("2 >= 2", 1),
        ("2 <= 1", 0),
        ("2 > 1", 1),
        ("2 != 2", 0),
        ("'A' = 'a'", 1),
        ("'a' < 'b'", 1),
        ("5 = '5'", 1),
        ("NULL <> 1", None),
        ("VERSION() = '5.6.24-log'", 1),
        ("NOW(3)", "2023-11-14 22:13:20.250"),
        ("CURRENT_TIMESTAMP(1)", "2023-11-14 22:13:20.2"),
        ("CURDATE()", "2023-11-14"),
        ("UTC_DATE", "2023-11-14"),
        ("CURTIME()", "22:13:20"),
        ("UTC_TIME()", "22:13:20"),
        ("UNIX_TIMESTAMP('1970-01-02')", 86400),
        ("UNIX_TIMESTAMP(NOW())", 1_700_000_000),
        ("UNIX_TIMESTAMP('never')", None),
        ("IF(1, 'yes', 'no')", "yes"),
        ("IF(NULL, 'yes', 'no')", "no"),
        ("IF('0', 'yes', 'no')", "no"),
        ("IFNULL(NULL, 'x')", "x"),
        ("IFNULL('y', 'x')", "y"),
        ("IFNULL(NULL, NULL)", None),
        ("COALESCE(NULL, NULL, 3)", 3),
        ("LOWER('AbC')", "abc"),
        ("UCASE('AbC')", "ABC"),
        ("UPPER(NULL)", None),
        ("CONCAT('a', NULL)", None),
        ("CONCAT('a', TRUE, @@log_bin)", "a11"),
        ("LAST_INSERT_ID()", 0),
        ("SESSION_USER()", "u@h"),
        ("SQL_NO_CACHE 1", 1),
        ("DISTINCT 1", 1),
        ("'a' 'b' \"c\"", "abc"),
        ("'tab\\tquote\\'\\\\'", "tab\tquote'\\"),
        ("@`strange name`", None),
    ],
)
def test_an_expression_has_its_value(expression: str, expected: object) -> None:
    assert value(expression) == expected


def test_what_a_mariadb_replica_asks_of_its_place_is_for_the_relay_to_say() -> None:
    session = StatementSession(MARIADB, 42, "u", "h")
    for statement, label in (
        ("SELECT binlog_gtid_pos('mysql-bin.000001',4)", "binlog_gtid_pos('mysql-bin.000001',4)"),
        ("SELECT BINLOG_GTID_POS( 'mysql-bin.000001', 4 ) AS place", "place"),
    ):
        assert answered(statement, session, NOW) == AskGtidPosition("mysql-bin.000001", 4, label)
    # Among other things nothing is said: whatever it is would be loaded into the replica's state.
    assert value("COALESCE(binlog_gtid_pos('mysql-bin.000001', 4), 'nothing')", MARIADB) == "nothing"
    assert value("binlog_gtid_pos('mysql-bin.000001', -4)", MARIADB) is None


def test_a_text_of_many_kilobytes_is_not_made() -> None:
    session = StatementSession(MYSQL, 42)
    answered(f"SET @a = '{'x' * MAX_VALUE_CHARACTERS}'", session, NOW)
    rows = answered("SELECT CONCAT(@a, @a, @a, @a), CONCAT(@a, @a, @a, @a, 'x')", session, NOW)
    assert isinstance(rows, Rows)
    first, second = rows.rows[0]
    assert (len(str(first)), second) == (65536, None)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT", 1064),
        ("SELECT ()", 1064),
        ("SELECT (1", 1064),
        ("SELECT NOW() 5", 1064),
        ("SELECT NOW(1", 1064),
        ("SELECT 1 ! 2", 1064),
        ("SELECT = 1", 1064),
        ("SELECT 1 =", 1064),
        ("SELECT *", 1064),
        ("SELECT 1 AS 5", 1064),
        ("SELECT 1 FROM", 1064),
        ("SELECT FROM DUAL", 1064),
        ("SELECT 1 FROM 'x'", 1064),
        ("SELECT " + "(" * 40 + "1" + ")" * 40, 1064),
        ("SELECT 1." + "0" * 256, 1064),
        ("SELECT '" + "x" * 65536 + "'", 1064),
        ("SELECT " + ", ".join(["1"] * 300), 1064),
        ("SELECT NOW('x')", 1426),
        ("SELECT NOW(-1)", 1426),
        ("SELECT IF(1, 2)", 1582),
        ("SET @a = 1,", 1064),
        ("SET @a 1", 1064),
        ("SET GLOBAL @a = 1", 1064),
        ("SET 5 = 1", 1064),
        ("SET NAMES 5", 1064),
        ("SET NAMES utf8 COLLATE", 1064),
        ("SET NAMES utf8 FOO utf8_bin", 1064),
        ("SET CHARSET klingon", 1115),
        ("SET time_zone = NULL", 1231),
        ("SET sql_mode = '" + "x" * (MAX_VALUE_CHARACTERS + 1) + "'", 1231),
        ("SET version = 'x'", 1238),
        ("SET PERSIST server_id = 5", 1227),
        ("SET @@persist_only.server_id = 5", 1193),
        ("SHOW DATABASES LIKE", 1064),
        ("SHOW VARIABLES WHERE", 1064),
        ("SHOW VARIABLES FOO", 1064),
    ],
    ids=lambda item: item[:40] if isinstance(item, str) else None,
)
def test_what_is_wrong_has_its_number(statement: str, expected: int) -> None:
    assert number(statement) == expected


@pytest.mark.parametrize(
    ("statement", "collation"),
    [
        ("SET NAMES DEFAULT", 45),
        ("SET NAMES latin1", 8),
        ("SET NAMES 'utf8mb3' COLLATE 'utf8mb3_bin'", 83),
        ("SET NAMES utf8mb4 COLLATE DEFAULT", 45),
        ("SET NAMES utf8mb4 COLLATE utf8mb4_polish_ci", 45),
        ("SET CHARACTER SET cp1251", 51),
        ("SET CHARSET gbk", 28),
        ("SET character_set_results = latin1", 8),
        ("SET character_set_results = NULL", 33),
        ("SET collation_connection = utf8mb4_bin", 33),
        ("SET @a = 1, NAMES binary", 63),
    ],
)
def test_the_character_set_of_the_session_is_chosen(statement: str, collation: int) -> None:
    session = StatementSession(MYSQL, 42)
    answered(statement, session, NOW)
    assert session.encoding.collation == collation


def test_a_set_of_a_character_set_that_fails_chooses_none() -> None:
    session = StatementSession(MYSQL, 42)
    assert number("SET NAMES latin1, @@nothing = 1", session) == 1193
    assert session.encoding.collation == 33


def test_databases_are_those_that_every_server_has() -> None:
    rows = answer_of("SHOW DATABASES LIKE 'my%'", StatementSession(MYSQL, 42), NOW)
    assert isinstance(rows, Rows)
    assert (rows.names, rows.rows) == (("Database (my%)",), (("mysql",),))


def test_a_database_that_was_chosen_has_no_tables_to_read() -> None:
    session = StatementSession(MYSQL, 42)
    answered("USE `mysql`", session, NOW)
    rows = answer_of("SHOW TABLES", session, NOW)
    assert isinstance(rows, Rows)
    assert (rows.names, rows.rows) == (("Tables_in_mysql",), ())
    assert number("SELECT * FROM user", session) == 1142
