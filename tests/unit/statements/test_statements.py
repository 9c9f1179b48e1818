"""What replicas of all ages and their tools ask, as they spell it, and what they are told."""

import time
from dataclasses import replace

import pytest

from protocol.errors import ErrorCode, StatementRefused
from protocol.resultset import Rows, Value
from protocol.statements import (
    MAX_USER_VARIABLES,
    Done,
    KillConnection,
    Notice,
    SourceFacts,
    StatementSession,
    answer_statement,
    matches_like,
    tokenize,
)
from protocol.statements.session.secrets import without_secrets
from tests.support.table_answers import answer_of

UUID = "11111111-2222-3333-4444-555555555555"
MYSQL_55 = SourceFacts("mysql", "5.5.62-log", 3)
MYSQL_56 = SourceFacts("mysql", "5.6.24-log", 3, UUID, "CRC32")
MARIADB = SourceFacts("mariadb", "10.11.19-MariaDB-log", 3, None, "CRC32")
NOW = 1_700_000_000.5


def session(facts: SourceFacts = MYSQL_56) -> StatementSession:
    return StatementSession(facts, 42, user="repl", host="192.0.2.1")


def one(statement: str, facts: SourceFacts = MYSQL_56) -> Value:
    answer = answer_statement(statement, session(facts), NOW)
    assert isinstance(answer, Rows)
    return answer.rows[0][0]


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        (
            "CHANGE MASTER TO MASTER_USER='a', MASTER_PASSWORD='geh\\'eim'",
            "CHANGE MASTER TO MASTER_USER='***', MASTER_PASSWORD='***'",
        ),
        ('change master to master_password = "geheim"', "change master to master_password = '***'"),
        ("SET PASSWORD = 'geheim", "SET PASSWORD = '***'"),
        ("SHOW BINLOG EVENTS IN 'f'", "SHOW BINLOG EVENTS IN 'f'"),
        (
            "change master to master_port=3306, master_password=geheim",
            "change master to master_port=***, master_password=***",
        ),
        ("CHANGE MASTER TO MASTER_PASWORD='geheim'", "CHANGE MASTER TO MASTER_PASWORD='***'"),
        ("CHANGE MASTER TO MASTER_P='geheim', FOO=1", "CHANGE MASTER TO MASTER_P='***', FOO=1"),
    ],
)
def test_a_password_in_a_statement_is_not_for_the_log(statement: str, shown: str) -> None:
    assert without_secrets(statement) == shown


MISSPELLED = [
    "CHANGE MASTER TO MASTER_PASSWORD=geheim",
    "CHANGE MASTER TO MASTER_PASSWORD=geheim, MASTER_HOST='h'",
    "CHANGE MASTER TO MASTER_PASSWORD=`geheim`",
    "CHANGE MASTER TO MASTER_PASSWORD=123geheim",
    "CHANGE MASTER TO MASTER_PASSWORD=\u201cgeheim\u201d",
    "CHANGE MASTER TO MASTER_PASSWORD='a' 'geheim",
    'CHANGE MASTER TO MASTER_PASSWORD "geheim"',
    "CHANGE MASTER TO MASTER_USER='it's', MASTER_PASSWORD='geheim'",
    "CHANGE MASTER TO MASTER_PASWORD='geheim'",
    "CHANGE MASTER TO MASTER_PASS='geheim'",
    "CHANGE REPLICATION SOURCE TO SOURCE_PW='geheim'",
    "SET PASSWORD FOR it's 'geheim'",
    "SET PASSWORD = geheim",
    "START SLAVE USER='u' PASWORD='geheim'",
    "CREATE USER u IDENTIFED BY 'geheim'",
    "ALTER USER u IDENTIFIED BY geheim",
    "GRANT ALL ON *.* TO u IDENTIFIED BY 'geheim",
    "SHOW STATUS /* the password is geheim */ FOO",
]


@pytest.mark.parametrize("statement", MISSPELLED)
def test_a_misspelled_statement_brings_no_password_into_the_log_or_the_error(statement: str) -> None:
    with pytest.raises(StatementRefused) as caught:
        answer_of(statement, session(), NOW)
    assert "geheim" not in caught.value.what
    assert "geheim" not in without_secrets(statement)


def test_warnings_are_shown_until_the_next_statement() -> None:
    mine = session()
    mine.notices = (Notice("Note", 1254, "Slave is already running"),)
    answers = [
        answer_statement(text, mine, NOW) for text in ("SHOW WARNINGS", "show warnings", "BEGIN", "SHOW WARNINGS")
    ]
    rows = [answer.rows for answer in answers if isinstance(answer, Rows)]
    assert rows == [(("Note", 1254, "Slave is already running"),)] * 2 + [()]


def refused(statement: str, facts: SourceFacts = MYSQL_56) -> int:
    with pytest.raises(StatementRefused) as caught:
        answer_of(statement, session(facts), NOW)
    return caught.value.number


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("SELECT UNIX_TIMESTAMP()", 1_700_000_000),
        ("SELECT @@GLOBAL.SERVER_ID", 3),
        ("SELECT @@global.server_id", 3),
        ("SELECT @@GLOBAL.GTID_MODE", "OFF"),
        ("SELECT @@GLOBAL.SERVER_UUID", UUID),
        ("SELECT VERSION()", "5.6.24-log"),
        ("select version ( ) ;", "5.6.24-log"),
        ("SELECT @@version", "5.6.24-log"),
        ("select @@version_comment limit 1", "binlog-relay"),
        ("SELECT @@global . binlog_checksum", "CRC32"),
        ("SELECT CONNECTION_ID()", 42),
        ("SELECT NOW()", "2023-11-14 22:13:20"),
        ("SELECT CURRENT_USER()", "repl@%"),
        ("SELECT USER()", "repl@192.0.2.1"),
        ("SELECT DATABASE() FROM DUAL", None),
        ("SELECT CONCAT(@@version, ' ', @@version_comment)", "5.6.24-log binlog-relay"),
        ("SELECT @never_set", None),
        ("SELECT @@log_bin", 1),
        ("SELECT -5", -5),
        ("/* ApplicationName=x */ SELECT 1 -- why\n", 1),
        ("# comment\nSELECT 'it''s'", "it's"),
    ],
)
def test_a_select_is_answered(statement: str, value: Value) -> None:
    assert one(statement) == value


@pytest.mark.parametrize(
    "statement",
    [
        "SET NAMES latin1",
        "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci",
        "/*!40101 SET NAMES utf8 */;",
        "SET CHARACTER SET utf8",
        "SET @master_heartbeat_period= 1799999979520",
        "SET @master_heartbeat_period = 30000001024, @source_heartbeat_period = 30000001024",
        "SET @master_binlog_checksum= @@global.binlog_checksum",
        "SET @master_binlog_checksum='NONE', @source_binlog_checksum = 'NONE'",
        f"SET @slave_uuid = '{UUID}', @replica_uuid = '{UUID}'",
        "SET @mariadb_slave_capability=4",
        "SET @slave_connect_state='0-1-2'",
        "SET @slave_gtid_strict_mode=0",
        "SET @rpl_semi_sync_slave= 1",
        "SET skip_replication=0",
        "SET AUTOCOMMIT = 0",
        "set session sql_mode = ''",
        "SET @@session.wait_timeout=100",
        "COMMIT",
        "ROLLBACK",
        "USE mysql",
    ],
)
def test_a_set_up_statement_is_done(statement: str) -> None:
    assert answer_statement(statement, session(), NOW) == Done()


@pytest.mark.parametrize("name", ["master_binlog_checksum", "source_binlog_checksum"])
def test_the_checksum_can_be_read_back(name: str) -> None:
    mine = session()
    answer_statement(
        "SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum",
        mine,
        NOW,
    )
    answer = answer_statement(f"SELECT @{name}", mine, NOW)
    assert isinstance(answer, Rows)
    assert (answer.names, answer.rows) == ((f"@{name}",), (("CRC32",),))


def test_user_variables_are_known_in_any_case() -> None:
    mine = session()
    answer_statement("SET @Slave_UUID := 'x'", mine, NOW)
    answer = answer_statement("SELECT @`slave_uuid`", mine, NOW)
    assert isinstance(answer, Rows)
    assert (answer.names, answer.rows) == (("@`slave_uuid`",), (("x",),))


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("SHOW VARIABLES LIKE 'SERVER_ID'", (("server_id", "3"),)),
        ("SHOW VARIABLES LIKE 'SERVER_UUID'", (("server_uuid", UUID),)),
        ("show global variables like 'log\\_bin'", (("log_bin", "ON"),)),
        ("SHOW GLOBAL VARIABLES WHERE Variable_name = 'gtid_mode'", (("gtid_mode", "OFF"),)),
        ("SHOW VARIABLES LIKE 'rpl_semi_sync_master_enabled'", ()),
        ("SHOW WARNINGS", ()),
    ],
)
def test_a_show_is_answered(statement: str, rows: tuple[tuple[Value, ...], ...]) -> None:
    answer = answer_statement(statement, session(), NOW)
    assert isinstance(answer, Rows)
    assert answer.rows == rows


@pytest.mark.parametrize("facts", [MYSQL_55, MYSQL_56, MARIADB])
def test_semi_sync_is_offered_to_old_replicas_behind_every_source(facts: SourceFacts) -> None:
    shown = answer_statement(
        "SHOW VARIABLES LIKE 'rpl_semi_sync_master_enabled'", session(replace(facts, semi_sync=True)), NOW
    )
    assert isinstance(shown, Rows)
    assert shown.rows == (("rpl_semi_sync_master_enabled", "ON"),)


@pytest.mark.parametrize("name", ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"])
def test_semi_sync_is_offered_to_new_replicas_behind_an_old_source(name: str) -> None:
    answer = answer_statement(f"SELECT @@global.{name}", session(replace(MYSQL_56, semi_sync=True)), NOW)
    assert isinstance(answer, Rows)
    assert answer.rows == ((1,),)


@pytest.mark.parametrize(
    ("statement", "facts"),
    [
        ("SELECT @@GLOBAL.GTID_MODE", MARIADB),
        ("SELECT @@GLOBAL.GTID_MODE", MYSQL_55),
        ("SELECT @@GLOBAL.SERVER_UUID", MARIADB),
        ("SELECT @@GLOBAL.SERVER_UUID", MYSQL_55),
        ("SELECT @@GLOBAL.gtid_domain_id", MYSQL_56),
        ("SET @master_binlog_checksum= @@global.binlog_checksum", MYSQL_55),
        ("SELECT @@global.rpl_semi_sync_master_enabled", MYSQL_56),
        ("SELECT @@global.rpl_semi_sync_source_enabled", MYSQL_56),
        ("SET nonsense = 1", MYSQL_56),
    ],
)
def test_a_variable_that_this_source_would_not_have_gets_1193(statement: str, facts: SourceFacts) -> None:
    assert refused(statement, facts) == ErrorCode.ER_UNKNOWN_SYSTEM_VARIABLE


@pytest.mark.parametrize("version", ["10.11.19-MariaDB-log", "10.5.99", "5.7.99", "of my own"])
def test_mariadb_tells_its_gtid_domain_whatever_version_it_was_given(version: str) -> None:
    facts = replace(MARIADB, version=version)
    assert one("SELECT @@GLOBAL.gtid_domain_id", facts) == 0
    assert one("SELECT VERSION()", facts) == version


def test_a_mariadb_of_before_its_gtids_has_no_gtid_domain() -> None:
    facts = replace(MARIADB, version="5.5.68-MariaDB-log")
    assert refused("SELECT @@GLOBAL.gtid_domain_id", facts) == ErrorCode.ER_UNKNOWN_SYSTEM_VARIABLE


@pytest.mark.parametrize(
    "statement",
    [
        "FOO",
        "SELECT",
        "SELECT 'open",
        "SELECT /* open",
        "SELECT 1; SELECT 2",
        "SELECT 1 +",
        "SELECT (",
        "SET",
        "SET @a",
        "SET @a = ",
        "SHOW VARIABLES LIKE",
        "KILL",
        "KILL 1.5",
    ],
)
def test_what_is_not_understood_gets_1064(statement: str) -> None:
    assert refused(statement) == ErrorCode.ER_PARSE_ERROR


@pytest.mark.parametrize(
    ("statement", "near"),
    [
        ("DROP  TABLE\n t", "'DROP TABLE t' at line 1"),
        ("SHOW\nSLAVE\nFOO", "'FOO' at line 3"),
        ("SHOW BINARY LOGS FOO", "'FOO' at line 1"),
        ("SELECT 1 +", "'+' at line 1"),
        ("SET @a", "'' at line 1"),
        ("STOP SLAVE FOO, SQL_THREAD", "'FOO, SQL_THREAD' at line 1"),
        ("STOP SLAVE SQL_THREAD FOO", "'FOO' at line 1"),
        ("PURGE BINARY LOGS", "'' at line 1"),
        ("CHANGE MASTER TO FOO=1", "'FOO=1' at line 1"),
        ("CHANGE MASTER TO MASTER_HOST", "'' at line 1"),
        ("SELECT 'open", "''open' at line 1"),
    ],
)
def test_the_error_names_what_was_not_understood_and_the_line(statement: str, near: str) -> None:
    with pytest.raises(StatementRefused) as caught:
        answer_of(statement, session(), NOW)
    assert caught.value.what.endswith(f"does not understand {near}")


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("SELECT SLEEP(1)", 1305),
        ("SELECT binlog_gtid_pos('mysql-bin.000001',4)", 1305),
        ("", 1065),
        (" ; ;", 1065),
        (" \0", 1065),
        ("SELECT 1e400", 1367),
        ("SELECT 1 FROM DUAL WHERE foo", 1054),
        ("SHOW TABLES FROM nowhere", 1049),
        ("SET time_zone = 'Europe/Berlin'", 1298),
        ("SET time_zone = '+14:01'", 1298),
        ("SET SESSION TRANSACTION FOO", 1064),
        ("SELECT 1 FROM t", 1046),
        ("SELECT 1 FROM mysql.t", 1142),
        ("SELECT * FROM information_schema.processlist WHERE a = 'b'", 1054),
        ("SELECT * FROM information_schema.nosuch", 1109),
        ("SELECT @@nothing, a FROM b.c", 1193),
        ("SELECT VERSION(1)", 1582),
        ("SELECT NOW(7)", 1426),
        ("SELECT foo", 1054),
        ("SELECT $$", 1054),
        ("KILL x", 1054),
        ("USE nowhere", 1049),
        ("SHOW TABLES", 1046),
        ("SET NAMES klingon", 1115),
        ("SET character_set_client = klingon", 1115),
        ("SET NAMES ucs2", 1231),
        ("SET NAMES utf8 COLLATE latin1_bin", 1253),
        ("SET NAMES utf8 COLLATE nope_ci", 1273),
        ("SELECT @@session.server_id", 1238),
        ("SELECT @@global.pseudo_thread_id", 1238),
        ("SET SESSION server_id = 1", 1229),
        ("SET autocommit = 2", 1231),
        ("SET wait_timeout = 'x'", 1232),
        ("SET PASSWORD = 'x'", 1235),
        ("RESET MASTER", 1235),
        ("RESET SLAVE ALL", 1235),
        ("RESET BINARY LOGS AND GTIDS", 1235),
        ("SHUTDOWN", 1227),
    ],
)
def test_a_statement_that_a_server_refuses_gets_the_servers_number(statement: str, number: int) -> None:
    assert refused(statement) == number


@pytest.mark.parametrize("statement", ["SET GLOBAL server_id = 4", "SET @@global.server_id = 4"])
def test_global_variables_cannot_be_set(statement: str) -> None:
    assert refused(statement) == ErrorCode.ER_SPECIFIC_ACCESS_DENIED_ERROR


def test_leaving_events_out_is_refused() -> None:
    assert refused("SET skip_replication=1") == ErrorCode.ER_NOT_SUPPORTED_YET


@pytest.mark.parametrize(
    ("statement", "query_only"), [("KILL 12", False), ("kill connection 12;", False), ("KILL QUERY 12", True)]
)
def test_kill_asks_for_that_connection(statement: str, query_only: bool) -> None:
    assert answer_statement(statement, session(), NOW) == KillConnection(12, query_only)


def test_a_set_that_fails_changes_nothing() -> None:
    mine = session()
    with pytest.raises(StatementRefused):
        answer_statement("SET @a = 1, nonsense = 2", mine, NOW)
    assert mine.user_variables == {}


def test_a_session_keeps_a_bounded_number_of_variables() -> None:
    mine = session()
    for number in range(MAX_USER_VARIABLES):
        answer_statement(f"SET @v{number} = 1", mine, NOW)
    with pytest.raises(StatementRefused):
        answer_statement("SET @one_more = 1", mine, NOW)
    answer_statement("SET @v0 = 2", mine, NOW)


@pytest.mark.parametrize("statement", ["SET @a = '" + "x" * 16385 + "'", "SET @" + "a" * 65 + " = 1"])
def test_a_session_keeps_no_large_variables(statement: str) -> None:
    assert refused(statement) == ErrorCode.ER_UNKNOWN_ERROR


@pytest.mark.parametrize(
    "statement",
    [
        "'" + "a'" * 500_000,
        "/* " * 300_000,
        "(" * 1_000_000,
        "SELECT " + "f(" * 400_000,
        "'" + "\\" * 999_999,
        "`" * 999_999,
    ],
    ids=["quotes", "comments", "parentheses", "calls", "backslashes", "backticks"],
)
def test_a_hostile_megabyte_is_refused_in_linear_time(statement: str) -> None:
    started = time.perf_counter()
    refused(statement)
    assert time.perf_counter() - started < 2


def test_like_does_not_backtrack() -> None:
    started = time.perf_counter()
    assert not matches_like("a" * 60, "%a" * 40 + "b")
    assert time.perf_counter() - started < 1


def test_a_version_comment_is_part_of_the_statement() -> None:
    assert [token.text for token in tokenize("SELECT /*!50000 1 */")] == ["SELECT", "1"]
    assert [token.text for token in tokenize("SELECT /*!50000 1 */", SourceFacts("mysql", "", 1))] == ["SELECT"]


@pytest.mark.parametrize(
    ("statement", "texts"),
    [
        ("SELECT @@GLOBAL . a.b, @@`c`", ["SELECT", "a.b", ",", "c"]),
        ("SET @`a` := @1b.c, @'d' = .5", ["SET", "a", ":=", "1b.c", ",", "d", "=", "0.5"]),
        ("SELECT 'a' \"b\" 'c' */ \\G", ["SELECT", "abc"]),
        ("SELECT\xa01 ;;\0", ["SELECT", "1"]),
    ],
)
def test_variables_strings_and_ends_are_one_token_each(statement: str, texts: list[str]) -> None:
    assert [token.text for token in tokenize(statement)] == texts


@pytest.mark.parametrize(
    ("statement", "near"),
    [
        ("SELECT @", "'@'"),
        ("SELECT @@ a", "'@@ a'"),
        ("SELECT @@'a'", "'@@"),
        ("SELECT @@.a", "'@@.a'"),
        ("SELECT 0b01", "'0b01'"),
        ("SELECT 1 \\x", r"'\x'"),
        ("SELECT 'a", "'a"),
        ("SELECT /*!50000 1", "'/*!50000 1'"),
        ("SELECT /* 1", "'/* 1'"),
    ],
)
def test_what_begins_no_token_is_named(statement: str, near: str) -> None:
    with pytest.raises(StatementRefused) as caught:
        tokenize(statement)
    assert caught.value.number == 1064 and near in str(caught.value)


def test_a_statement_of_too_many_words_is_refused() -> None:
    for statement in ("SELECT " + "1," * 1024, "/**/" * 3000):
        with pytest.raises(StatementRefused, match="more than 1024 words and signs"):
            tokenize(statement)
