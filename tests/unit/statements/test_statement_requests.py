"""What people and monitors type, in both dialects, and what of it the running relay is asked."""

import pytest

from protocol.errors import StatementRefused
from protocol.statements import Request, SourceFacts, StatementSession, Words, answer_statement
from protocol.statements.expression.row_filter import Condition, RowFilter
from protocol.statements.requests import (
    ChangeSource,
    Flush,
    KillConnection,
    PurgeBefore,
    PurgeTo,
    ShowBinaryLogs,
    ShowBinlogEvents,
    ShowMasterStatus,
    ShowProcesslist,
    ShowReplicas,
    ShowReplicaStatus,
    ShowStatus,
    StartReplica,
    StopReplica,
)

OLD, NEW = Words.MASTER_SLAVE, Words.SOURCE_REPLICA
FACTS = SourceFacts("mysql", "5.6.24-log", 3)
MARIADB = SourceFacts("mariadb", "10.11.19-MariaDB-log", 3)
NOW = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC
DAY = 86400.0


def admin(facts: SourceFacts = FACTS) -> StatementSession:
    return StatementSession(facts, 42, is_admin=True)


REQUESTS: list[tuple[str, Request]] = [
    ("SHOW BINARY LOGS", ShowBinaryLogs()),
    ("show master logs;", ShowBinaryLogs()),
    ("SHOW MASTER STATUS", ShowMasterStatus(OLD)),
    ("SHOW BINARY LOG STATUS", ShowMasterStatus(NEW)),
    ("SHOW BINLOG STATUS", ShowMasterStatus(NEW)),
    ("SHOW BINLOG EVENTS", ShowBinlogEvents()),
    ("SHOW BINLOG EVENTS IN 'mysql-bin.000002'", ShowBinlogEvents("mysql-bin.000002")),
    ("SHOW BINLOG EVENTS FROM 120", ShowBinlogEvents(None, 120)),
    ("SHOW BINLOG EVENTS IN 'a.1' FROM 120 LIMIT 5", ShowBinlogEvents("a.1", 120, 0, 5)),
    ("SHOW BINLOG EVENTS IN 'a.1' LIMIT 2, 5", ShowBinlogEvents("a.1", 4, 2, 5)),
    ("SHOW BINLOG EVENTS LIMIT 5 OFFSET 2", ShowBinlogEvents(None, 4, 2, 5)),
    ("SHOW SLAVE STATUS", ShowReplicaStatus(OLD)),
    ("SHOW REPLICA STATUS", ShowReplicaStatus(NEW)),
    ("SHOW SLAVE STATUS FOR CHANNEL ''", ShowReplicaStatus(OLD)),
    ("SHOW REPLICA STATUS FOR CHANNEL 'one'", ShowReplicaStatus(NEW, "one")),
    ("SHOW SLAVE 'one' STATUS", ShowReplicaStatus(OLD, "one")),
    ("SHOW SLAVE STATUS\\G", ShowReplicaStatus(OLD)),
    ("SHOW ALL SLAVES STATUS", ShowReplicaStatus(OLD, all_channels=True)),
    ("SHOW ALL REPLICAS STATUS", ShowReplicaStatus(NEW, all_channels=True)),
    ("SHOW SLAVE HOSTS", ShowReplicas(OLD)),
    ("SHOW REPLICAS", ShowReplicas(NEW)),
    ("SHOW REPLICA HOSTS", ShowReplicas(NEW)),
    ("SHOW PROCESSLIST", ShowProcesslist()),
    ("SHOW FULL PROCESSLIST", ShowProcesslist(full=True)),
    ("SHOW STATUS", ShowStatus()),
    (
        "SHOW GLOBAL STATUS LIKE 'Uptime%'",
        ShowStatus(RowFilter(((Condition(0, "like", ("Uptime%",)),),)), is_global=True),
    ),
    ("SHOW STATUS WHERE Variable_name = 'Uptime'", ShowStatus(RowFilter(((Condition(0, "among", ("uptime",)),),)))),
    (
        "SHOW GLOBAL STATUS WHERE `Variable_name` IN ('a', 'b')",
        ShowStatus(RowFilter(((Condition(0, "among", ("a", "b")),),)), is_global=True),
    ),
    (
        "SHOW STATUS WHERE Variable_name = 'a' OR Variable_name = 'b'",
        ShowStatus(RowFilter(((Condition(0, "among", ("a",)),), (Condition(0, "among", ("b",)),)))),
    ),
    ("STOP SLAVE", StopReplica(OLD)),
    ("STOP REPLICA", StopReplica(NEW)),
    ("STOP SLAVE IO_THREAD", StopReplica(OLD, frozenset({"IO"}))),
    ("STOP SLAVE SQL_THREAD, IO_THREAD", StopReplica(OLD, frozenset({"IO", "SQL"}))),
    ("STOP REPLICA IO_THREAD FOR CHANNEL ''", StopReplica(NEW, frozenset({"IO"}))),
    ("STOP SLAVE 'one' IO_THREAD", StopReplica(OLD, frozenset({"IO"}), "one")),
    ("STOP ALL SLAVES", StopReplica(OLD, all_channels=True)),
    ("START SLAVE", StartReplica(OLD)),
    ("START REPLICA IO_THREAD FOR CHANNEL 'x'", StartReplica(NEW, frozenset({"IO"}), "x")),
    ("START ALL SLAVES", StartReplica(OLD, all_channels=True)),
    ("PURGE BINARY LOGS TO 'mysql-bin.000003'", PurgeTo("mysql-bin.000003")),
    ('PURGE MASTER LOGS TO "mysql-bin.000003"', PurgeTo("mysql-bin.000003")),
    ("PURGE BINARY LOGS BEFORE '2023-11-14 22:13:20'", PurgeBefore(NOW)),
    ("PURGE BINARY LOGS BEFORE '2023-11-14'", PurgeBefore(NOW - 80000)),
    ("PURGE BINARY LOGS BEFORE TIMESTAMP '2023-11-14 22:13:20'", PurgeBefore(NOW)),
    ("PURGE BINARY LOGS BEFORE 20231114221320", PurgeBefore(NOW)),
    ("PURGE BINARY LOGS BEFORE NOW()", PurgeBefore(NOW)),
    ("PURGE BINARY LOGS BEFORE NOW() - INTERVAL 3 DAY", PurgeBefore(NOW - 3 * DAY)),
    ("PURGE BINARY LOGS BEFORE (NOW() - INTERVAL 1 HOUR)", PurgeBefore(NOW - 3600)),
    ("PURGE BINARY LOGS BEFORE DATE_SUB(NOW(), INTERVAL 7 DAY)", PurgeBefore(NOW - 7 * DAY)),
    ("PURGE BINARY LOGS BEFORE DATE_SUB('2023-11-14 22:13:20', INTERVAL '1' WEEK)", PurgeBefore(NOW - 7 * DAY)),
    ("PURGE BINARY LOGS BEFORE '2024-03-31' - INTERVAL 1 MONTH", PurgeBefore(1709164800.0)),
    ("PURGE BINARY LOGS BEFORE NOW() - INTERVAL 1 YEAR", PurgeBefore(NOW - 365 * DAY)),
    ("FLUSH LOGS", Flush(("LOGS",))),
    ("FLUSH BINARY LOGS", Flush(("BINARY LOGS",))),
    ("FLUSH NO_WRITE_TO_BINLOG STATUS", Flush(("STATUS",))),
    ("FLUSH LOCAL HOSTS, STATUS", Flush(("HOSTS", "STATUS"))),
    ("TRUNCATE TABLE performance_schema.host_cache", Flush(("HOSTS",))),
    ("KILL 7", KillConnection(7)),
    ("KILL CONNECTION 7", KillConnection(7)),
    ("KILL QUERY 7", KillConnection(7, query_only=True)),
    ("KILL CONNECTION_ID()", KillConnection(42)),
    ("/* app */ SHOW /*!50000 SLAVE */ STATUS -- now", ShowReplicaStatus(OLD)),
]


@pytest.mark.parametrize(("statement", "request_made"), REQUESTS)
def test_a_statement_about_the_relay_becomes_a_request(statement: str, request_made: Request) -> None:
    assert answer_statement(statement, admin(), NOW) == request_made


@pytest.mark.parametrize(("statement", "request_made"), [(s, r) for s, r in REQUESTS if r.privilege])
def test_what_changes_the_relay_needs_an_admin_account(statement: str, request_made: Request) -> None:
    with pytest.raises(StatementRefused, match=r"^Access denied; you need .* privilege.*admin = true$") as caught:
        answer_statement(statement, StatementSession(FACTS, 1), NOW)
    assert caught.value.number == 1227


def test_what_only_shows_needs_none() -> None:
    shows = [r for _, r in REQUESTS if not r.privilege and not isinstance(r, KillConnection)]
    assert len(shows) > 20
    for statement, request in REQUESTS:
        if not request.privilege:
            answer_statement(statement, StatementSession(FACTS, 42), NOW)


@pytest.mark.parametrize(
    ("statement", "options"),
    [
        ("CHANGE MASTER TO MASTER_HOST='h', MASTER_PORT=3307", {"SOURCE_HOST": "h", "SOURCE_PORT": 3307}),
        ("change replication source to source_host = 'h' , source_port = 3307 ;", {"SOURCE_HOST": "h", "SOURCE_PORT": 3307}),
        (
            "CHANGE MASTER TO MASTER_LOG_FILE='mysql-bin.000001', MASTER_LOG_POS=120, MASTER_SSL=1, MASTER_SSL_CA='/ca'",
            {"SOURCE_LOG_FILE": "mysql-bin.000001", "SOURCE_LOG_POS": 120, "SOURCE_SSL": 1, "SOURCE_SSL_CA": "/ca"},
        ),
        ("CHANGE MASTER TO MASTER_USE_GTID=slave_pos", {"SOURCE_USE_GTID": "SLAVE_POS"}),
        ("CHANGE MASTER TO MASTER_HEARTBEAT_PERIOD=0.5, MASTER_CONNECT_RETRY=1",
         {"SOURCE_HEARTBEAT_PERIOD": "0.5", "SOURCE_CONNECT_RETRY": 1}),
        ("CHANGE MASTER TO IGNORE_SERVER_IDS=(1, 2), DO_DOMAIN_IDS=()", {"IGNORE_SERVER_IDS": (1, 2), "DO_DOMAIN_IDS": ()}),
        ("CHANGE REPLICATION SOURCE TO PRIVILEGE_CHECKS_USER = NULL", {"PRIVILEGE_CHECKS_USER": None}),
        ("CHANGE REPLICATION SOURCE TO PRIVILEGE_CHECKS_USER = 'u'@'h'", {"PRIVILEGE_CHECKS_USER": "'u'@'h'"}),
        ("CHANGE MASTER TO GET_MASTER_PUBLIC_KEY=1", {"GET_SOURCE_PUBLIC_KEY": 1}),
        ("CHANGE REPLICATION SOURCE TO SOURCE_TLS_CIPHERSUITES=NULL, SOURCE_DELAY=0",
         {"SOURCE_TLS_CIPHERSUITES": None, "SOURCE_DELAY": 0}),
        ("CHANGE REPLICATION SOURCE TO ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS=LOCAL",
         {"ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS": "LOCAL"}),
    ],
)  # fmt: skip
def test_the_options_of_a_change_have_the_newer_names(statement: str, options: dict[str, object]) -> None:
    answer = answer_statement(statement, admin(), NOW)
    assert isinstance(answer, ChangeSource)
    assert answer.options == options


@pytest.mark.parametrize(
    ("statement", "words", "channel"),
    [
        ("CHANGE MASTER TO MASTER_HOST='h'", OLD, ""),
        ("CHANGE MASTER 'one' TO MASTER_HOST='h'", OLD, "one"),
        ("CHANGE MASTER TO MASTER_HOST='h' FOR CHANNEL 'one'", OLD, "one"),
        ("CHANGE REPLICATION SOURCE TO SOURCE_HOST='h' FOR CHANNEL ''", NEW, ""),
    ],
)
def test_a_change_keeps_its_words_and_its_channel(statement: str, words: Words, channel: str) -> None:
    answer = answer_statement(statement, admin(), NOW)
    assert isinstance(answer, ChangeSource)
    assert (answer.words, answer.channel) == (words, channel)


@pytest.mark.parametrize(
    "statement",
    [
        "CHANGE MASTER TO",
        "CHANGE MASTER TO MASTER_HOST",
        "CHANGE MASTER TO MASTER_HOST=",
        "CHANGE MASTER TO MASTER_HOST='a', MASTER_HOST='b'",
        "CHANGE MASTER TO MASTER_HOST='a', SOURCE_HOST='b'",
        "CHANGE MASTER TO MASTER_HOST=5",
        "CHANGE MASTER TO MASTER_PORT='x'",
        "CHANGE MASTER TO MASTER_PORT=1.5",
        "CHANGE MASTER TO MASTER_SSL=2",
        "CHANGE MASTER TO NOTHING=1",
        "CHANGE MASTER TO IGNORE_SERVER_IDS=1",
        "CHANGE MASTER TO IGNORE_SERVER_IDS=(a)",
        "CHANGE MASTER TO MASTER_HOST='a' 5",
        "CHANGE MASTER TO MASTER_HOST='a',",
        "CHANGE MASTER 'one'",
        "CHANGE REPLICATION SOURCE SOURCE_HOST='a'",
        "STOP SLAVE IO_THREAD,",
        "STOP SLAVE FOR CHANNEL",
        "STOP SLAVE FOR CHANNEL 5",
        "SHOW SLAVE",
        "SHOW SLAVE FOO",
        "SHOW SLAVE STATUS FOO",
        "SHOW SLAVE 'one'",
        "SHOW ALL SLAVES",
        "SHOW BINLOG EVENTS IN",
        "SHOW BINLOG EVENTS FROM 'x'",
        "SHOW BINLOG EVENTS LIMIT",
        "SHOW BINLOG EVENTS LIMIT 1,",
        "SHOW BINLOG EVENTS LIMIT 1.5",
        "SHOW BINLOG EVENTS FOO",
        "PURGE BINARY LOGS TO",
        "PURGE BINARY LOGS TO 5",
        "PURGE BINARY LOGS BEFORE NOW() - INTERVAL",
        "PURGE BINARY LOGS BEFORE NOW() - INTERVAL 1",
        "PURGE BINARY LOGS BEFORE NOW() - INTERVAL 1 FORTNIGHT",
        "PURGE BINARY LOGS BEFORE NOW() - INTERVAL x DAY",
        "PURGE BINARY LOGS BEFORE NOW() - INTERVAL 1.5 DAY",
        "PURGE BINARY LOGS BEFORE DATE_SUB(NOW())",
        "PURGE BINARY LOGS BEFORE " + "(" * 99 + "NOW()" + ")" * 99,
        "FLUSH",
        "FLUSH FOO",
        "FLUSH LOGS FOO",
        "TRUNCATE TABLE t",
        "KILL",
        "KILL 'x'",
        "KILL QUERY",
        "SHOW STATUS WHERE Value 'x'",
        "SHOW STATUS WHERE Variable_name",
        "SHOW STATUS LIKE",
        "SHOW STATUS WHERE Variable_name IN ()",
        "SHOW STATUS WHERE Variable_name IN (NOW(), 1)",
        "SHOW STATUS WHERE Variable_name = 'a' OR",
        "SHOW STATUS WHERE Variable_name LIKE 'a' OR OR Variable_name = 'b'",
        "SHOW STATUS WHERE Variable_name = 'a' AND",
        "SHOW DATABASES FOO",
    ],
)
def test_what_no_server_understands_gets_1064(statement: str) -> None:
    with pytest.raises(StatementRefused) as caught:
        answer_statement(statement, admin(), NOW)
    assert caught.value.number == 1064


@pytest.mark.parametrize("moment", ["'yesterday'", "'2023-02-30'", "5", "NULL", "99999999", "''"])
def test_a_time_that_is_none_is_an_error_and_purges_nothing(moment: str) -> None:
    with pytest.raises(StatementRefused) as caught:
        answer_statement(f"PURGE BINARY LOGS BEFORE {moment}", admin(), NOW)
    assert caught.value.number == 1525


def test_an_interval_of_thousands_of_years_ends_at_the_first() -> None:
    answer = answer_statement("PURGE BINARY LOGS BEFORE NOW() - INTERVAL 99999999 YEAR", admin(), NOW)
    assert isinstance(answer, PurgeBefore)
    assert answer.unix_s < NOW


@pytest.mark.parametrize(
    "statement",
    [
        "START SLAVE UNTIL MASTER_LOG_FILE='x', MASTER_LOG_POS=4",
        "START REPLICA USER='u' PASSWORD='p'",
        "RESET MASTER",
        "RESET REPLICA ALL",
        "SHUTDOWN",
        "SET GLOBAL read_only = 0",
    ],
)
def test_what_a_relay_does_not_do_is_refused_by_name_to_an_admin_too(statement: str) -> None:
    with pytest.raises(StatementRefused, match="binlog-relay does not support") as caught:
        answer_statement(statement, admin(), NOW)
    assert caught.value.number == 1235


PASSWORD = "v3ry-s3cret"


@pytest.mark.parametrize(
    "statement",
    [
        f"CHANGE MASTER TO MASTER_PASSWORD='{PASSWORD}', FOO=1",
        f"CHANGE MASTER TO MASTER_PASSWORD '{PASSWORD}'",
        f"CHANGE MASTER TO MASTER_PASSWORD={PASSWORD[:2]}'{PASSWORD}'",
        f"CHANGE MASTER TO FOO=1, MASTER_PASSWORD='{PASSWORD}'",
        f"CHANGE MASTER TO MASTER_PASSWORD='{PASSWORD}",
        f"SET PASSWORD = '{PASSWORD}'",
        f"CREATE USER x IDENTIFIED BY '{PASSWORD}'",
        f"START SLAVE USER='u' PASSWORD='{PASSWORD}'",
    ],
)
def test_no_error_repeats_a_password(statement: str) -> None:
    with pytest.raises(StatementRefused) as caught:
        answer_statement(statement, admin(), NOW)
    assert PASSWORD not in caught.value.what


def test_a_password_is_in_no_repr() -> None:
    answer = answer_statement(f"CHANGE MASTER TO MASTER_PASSWORD='{PASSWORD}'", admin(), NOW)
    assert isinstance(answer, ChangeSource)
    assert answer.options["SOURCE_PASSWORD"] == PASSWORD
    assert PASSWORD not in repr(answer)
