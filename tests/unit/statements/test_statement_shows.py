"""SHOW statements that tools begin with, WHERE behind them, and what a session's own settings change."""

import pytest

from protocol.errors import StatementRefused
from protocol.resultset import Rows, Value
from protocol.statements import Done, SourceFacts, StatementSession, answer_statement
from protocol.statements.requests import PurgeBefore, ShowBinlogEvents, ShowStatus
from protocol.statements.session.effort import Effort
from tests.support.table_answers import answer_of

MYSQL_56 = SourceFacts("mysql", "5.6.24-log", 3, "uuid", "CRC32", hostname="relay1", max_connections=77)
MYSQL_84 = SourceFacts("mysql", "8.4.3", 3, "uuid", "CRC32", hostname="relay1")
MARIADB = SourceFacts("mariadb", "10.11.19-MariaDB-log", 3, None, "CRC32", hostname="relay1")
NOW = 1_700_000_000.25  # 2023-11-14 22:13:20.25


def session(facts: SourceFacts = MYSQL_56, *, is_admin: bool = False) -> StatementSession:
    return StatementSession(facts, 42, user="u", host="h", is_admin=is_admin)


def rows(statement: str, asker: StatementSession | None = None) -> tuple[tuple[Value, ...], ...]:
    answer = answer_statement(statement, asker or session(), NOW)
    assert isinstance(answer, Rows)
    return answer.rows


def refused(statement: str, asker: StatementSession | None = None) -> int:
    with pytest.raises(StatementRefused) as caught:
        answer_of(statement, asker or session(), NOW)
    return caught.value.number


@pytest.mark.parametrize("statement", ["/* ping */", "-- x", "# x", "/*!99999 x */", "/* x */;"])
def test_a_statement_of_comments_alone_is_done(statement: str) -> None:
    assert answer_statement(statement, session(), NOW) == Done()


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("Variable_name LIKE 'hostname' OR Variable_name = 'port'", {"hostname", "port"}),
        ("Variable_name IN ('hostname', 'port') AND Value <> '3306'", {"hostname"}),
        ("variable_name NOT LIKE '%' OR Value = 'relay1'", {"hostname"}),
        ("`Variable_name` LIKE 'max\\_conn%' AND Value = 77", {"max_connections"}),
    ],
)
def test_variables_are_chosen_by_conditions(where: str, names: set[str]) -> None:
    assert {row[0] for row in rows(f"SHOW VARIABLES WHERE {where}")} == names


@pytest.mark.parametrize(
    "where",
    [
        *("", "Foo = 'x'", "Variable_name", "Variable_name LIKE", "Value IN ()", "Value = 'x' OR", "Value = (1)"),
        " OR ".join(["Value LIKE '%a%'"] * 9),
        " OR ".join(["Value = 'a'"] * 65),
    ],
)
def test_other_conditions_are_refused(where: str) -> None:
    assert refused(f"SHOW VARIABLES WHERE {where}") == 1064


def test_sqlalchemy_finds_the_collation_it_asks_for() -> None:
    statement = "show collation where `Charset` = 'utf8mb4' and `Collation` = 'utf8mb4_bin'"
    for facts in (MYSQL_56, MYSQL_84, MARIADB):
        ((name, charset, number, *_),) = rows(statement, session(facts))
        assert (name, charset, number) == ("utf8mb4_bin", "utf8mb4", 46)


def test_collations_are_those_of_the_version() -> None:
    named = {
        facts: {row[0] for row in rows("SHOW COLLATION", session(facts))} for facts in (MYSQL_56, MYSQL_84, MARIADB)
    }
    assert {"utf8_bin", "utf8mb4_general_ci"} <= named[MYSQL_56]
    assert not {"utf8mb3_bin", "utf8mb4_0900_ai_ci"} & named[MYSQL_56]
    assert {"utf8mb3_bin", "utf8mb4_0900_ai_ci"} <= named[MYSQL_84]
    assert {"utf8mb3_bin", "utf8mb4_uca1400_ai_ci"} <= named[MARIADB]
    defaults = {row[0] for row in rows("SHOW COLLATION WHERE `Default` = 'Yes'", session(MYSQL_84))}
    assert {"utf8mb4_0900_ai_ci", "latin1_swedish_ci"} <= defaults
    assert "utf8mb4_general_ci" not in defaults


@pytest.mark.parametrize(
    ("facts", "is_admin", "grant"),
    [
        (MYSQL_56, False, "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'u'@'%'"),
        (MYSQL_84, True, "GRANT RELOAD, PROCESS, SUPER, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `u`@`%`"),
        (MARIADB, False, "GRANT REPLICATION SLAVE, BINLOG MONITOR, SLAVE MONITOR ON *.* TO `u`@`%`"),
    ],
)
def test_an_account_is_shown_what_it_may_do(facts: SourceFacts, is_admin: bool, grant: str) -> None:
    for statement in ("SHOW GRANTS", "show grants for current_user", "SHOW GRANTS FOR CURRENT_USER()"):
        assert rows(statement, session(facts, is_admin=is_admin)) == ((grant,),)


def test_nobody_is_shown_who_else_there_is() -> None:
    assert refused("SHOW GRANTS FOR 'dba'@'%'") == 1141
    assert refused("SHOW GRANTS FOO") == 1064


def test_engines_and_plugins_are_none() -> None:
    assert [rows(f"SHOW {what}") for what in ("ENGINES", "STORAGE ENGINES", "PLUGINS")] == [(), (), ()]


@pytest.mark.parametrize(
    ("behind", "found"),
    [("LIMIT 0,1", 1), ("LIMIT 1,1", 0), ("LIMIT 1 OFFSET 0", 1), ("LIMIT 1 OFFSET 1", 0), ("LIMIT 0 OFFSET 0", 0)],
)
def test_a_limit_has_an_offset(behind: str, found: int) -> None:
    assert len(rows(f"SELECT 5 {behind}")) == found


@pytest.mark.parametrize(("condition", "found"), [("1", 1), ("1 = 1", 1), ("0", 0), ("NULL", 0), ("@@port = 1", 0)])
def test_a_condition_behind_dual_is_looked_at(condition: str, found: int) -> None:
    assert len(rows(f"SELECT 5 FROM DUAL WHERE {condition} LIMIT 1")) == found


def test_the_clock_is_that_of_the_sessions_time_zone() -> None:
    asker = session()
    answer_statement("SET time_zone = '+05:30'", asker, NOW)
    assert rows("SELECT NOW(), CURDATE(), CURTIME(), UTC_TIMESTAMP(), UTC_DATE(), UTC_TIME()", asker) == (
        ("2023-11-15 03:43:20", "2023-11-15", "03:43:20", "2023-11-14 22:13:20", "2023-11-14", "22:13:20"),
    )
    assert rows("SELECT UNIX_TIMESTAMP('2023-11-15 03:43:20'), UNIX_TIMESTAMP(NOW(2))", asker) == (
        (1_700_000_000, "1700000000.25"),
    )
    answer_statement("SET time_zone = SYSTEM", asker, NOW)
    assert rows("SELECT NOW()", asker) == (("2023-11-14 22:13:20",),)


@pytest.mark.parametrize(
    ("zone", "moment", "unix_s"),
    [
        ("+00:00", "'2023-11-14 22:13:20'", 1_700_000_000),
        ("+02:00", "'2023-11-14 22:13:20'", 1_700_000_000 - 7200),
        ("-05:00", "20231114221320", 1_700_000_000 + 18000),
        ("+05:30", "NOW()", 1_700_000_000),
        ("+05:30", "NOW() - INTERVAL 1 DAY", 1_700_000_000 - 86400),
        ("+05:30", "'2023-03-01' - INTERVAL 1 MONTH", 1_675_189_800),
    ],
)
def test_a_purge_goes_by_the_sessions_time_zone(zone: str, moment: str, unix_s: int) -> None:
    asker = session(is_admin=True)
    answer_statement(f"SET time_zone = '{zone}'", asker, NOW)
    assert answer_statement(f"PURGE BINARY LOGS BEFORE {moment}", asker, NOW) == PurgeBefore(unix_s)


def test_a_time_zone_that_is_not_known_is_not_taken() -> None:
    asker = session()
    for zone in ("'Europe/Berlin'", "'+14:01'", "'-14:00'", "'+5'", "''", "5"):
        assert refused(f"SET time_zone = {zone}", asker) == 1298
    assert rows("SELECT @@time_zone", asker) == (("SYSTEM",),)


def test_the_isolation_level_that_was_set_is_shown() -> None:
    asker = session(MYSQL_84)
    answer_statement("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY", asker, NOW)
    shown = (("READ-COMMITTED", 1),)
    assert rows("SELECT @@transaction_isolation, @@transaction_read_only", asker) == shown
    answer_statement("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", asker, NOW)
    assert rows("SELECT @@transaction_isolation, @@transaction_read_only", asker) == shown
    assert refused("SET SESSION TRANSACTION ISOLATION LEVEL FOO", asker) == 1064
    assert refused("SET SESSION TRANSACTION READ ONLY 'x'", asker) == 1064


def test_tables_are_those_of_the_database_that_is_named() -> None:
    answer = answer_of("SHOW FULL TABLES FROM mysql LIKE 'a%'", session(), NOW)
    assert isinstance(answer, Rows)
    assert answer.names == ("Tables_in_mysql (a%)", "Table_type")
    assert refused("SHOW TABLES FROM nowhere") == 1049
    assert refused("SHOW TABLES FOO") == 1064
    assert refused("SHOW TABLES FROM 'mysql'") == 1064


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("CAST('abc' AS CHAR(2))", "ab"),
        ("CAST(15 AS CHAR)", "15"),
        ("CAST(NULL AS CHAR(5))", None),
        ("CAST('x' AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_bin", "x"),
    ],
)
def test_a_cast_to_text_is_text(expression: str, value: Value) -> None:
    assert rows(f"SELECT {expression} AS a") == ((value,),)


@pytest.mark.parametrize("expression", ["CAST('1' AS JSON)", "CAST()", "CAST('a')", "CAST(AS CHAR)"])
def test_other_casts_are_refused(expression: str) -> None:
    assert refused(f"SELECT {expression}") == 1064


@pytest.mark.parametrize(
    ("comparison", "holds"),
    [
        ("1.0 = 1", 1),
        ("'1.0' = 1", 1),
        ("'10' < 9", 0),
        ("'10' < '9'", 1),
        ("'abc' = 0", 1),
        ("5.6 <= @@version", 1),
        ("@@long_query_time > 9", 1),
        ("9007199254740993 = 9007199254740992", 0),
        ("'1e999' > 5", 1),
        ("NULL = 0", None),
    ],
)
def test_numbers_are_compared_as_numbers(comparison: str, holds: int | None) -> None:
    assert rows(f"SELECT {comparison}") == ((holds,),)


@pytest.mark.parametrize(("condition", "chosen"), [("'x'", 2), ("'0.0'", 2), ("0.1", 1), ("NULL", 2), ("'1x'", 1)])
def test_only_numbers_other_than_nothing_are_true(condition: str, chosen: int) -> None:
    assert rows(f"SELECT IF({condition}, 1, 2)") == ((chosen,),)


def test_status_is_chosen_by_conditions() -> None:
    statement = "SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Threads%' OR Variable_name LIKE 'Up%' AND Value <> '0'"
    answer = answer_statement(statement, session(), NOW)
    assert isinstance(answer, ShowStatus) and answer.is_global
    search = answer.wanted.search(Effort())
    shown = [("Threads_running", "1"), ("Uptime", "5"), ("Uptime", "0"), ("Queries", "7")]
    assert [row for row in shown if search.accepts(row)] == shown[:2]
    assert refused("SHOW STATUS WHERE Foo = 'x'") == 1064


@pytest.mark.parametrize(
    "statement",
    [
        "SHOW RELAYLOG EVENTS IN 'mysql-bin.000002' FROM 4 LIMIT 1",
        "SHOW RELAYLOG EVENTS IN 'mysql-bin.000002' LIMIT 1 FOR CHANNEL ''",
    ],
)
def test_the_relay_log_is_the_archive(statement: str) -> None:
    assert answer_statement(statement, session(), NOW) == ShowBinlogEvents("mysql-bin.000002", 4, 0, 1)
