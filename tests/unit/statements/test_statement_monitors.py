"""What monitors, connectors and newer replicas ask by themselves is answered, for a source of any generation."""

from dataclasses import replace

import pytest

from protocol.errors import StatementRefused
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from protocol.resultset import Rows
from protocol.statements import Answer, Done, Request, SourceFacts, StatementSession, answer_statement
from protocol.statements.session.gtid_variables import GtidVariables
from protocol.statements.session.source_settings import SOURCE_SETTINGS

MYSQL_55 = SourceFacts("mysql", "5.5.62-log", 3, hostname="relay1", port=3307, data_directory="/var/lib/relay")
MYSQL_56 = SourceFacts("mysql", "5.6.24-log", 3, "uuid", "CRC32", hostname="relay1", port=3307)
MYSQL_57 = SourceFacts("mysql", "5.7.44-log", 3, "uuid", "CRC32", hostname="relay1", port=3307)
MYSQL_84 = SourceFacts("mysql", "8.4.3", 3, "uuid", "CRC32", hostname="relay1", port=3307)
MARIADB_10 = SourceFacts("mariadb", "10.11.19-MariaDB-log", 3, None, "CRC32", hostname="relay1", port=3307)
MARIADB_11 = SourceFacts("mariadb", "11.8.6-MariaDB", 3, None, "CRC32", hostname="relay1", port=3307)
EVERYBODY = [MYSQL_55, MYSQL_56, MYSQL_57, MYSQL_84, MARIADB_10, MARIADB_11]
NOW = 1_700_000_000.0

CONNECTOR_J = (
    "/* mysql-connector-j-8.0.33 (Revision: x) */SELECT  @@session.auto_increment_increment AS auto_increment_increment, "
    "@@character_set_client AS character_set_client, @@character_set_connection AS character_set_connection, "
    "@@character_set_results AS character_set_results, @@character_set_server AS character_set_server, @@collation_server AS "
    "collation_server, @@collation_connection AS collation_connection, @@init_connect AS init_connect, @@interactive_timeout "
    "AS interactive_timeout, @@license AS license, @@lower_case_table_names AS lower_case_table_names, @@max_allowed_packet "
    "AS max_allowed_packet, @@net_buffer_length AS net_buffer_length, @@net_write_timeout AS net_write_timeout, {more} "
    "@@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, {isolation} AS "
    "transaction_isolation, @@wait_timeout AS wait_timeout"
)
QUERY_CACHE = "@@query_cache_size AS query_cache_size, @@query_cache_type AS query_cache_type,"


def answer(statement: str, facts: SourceFacts, *, is_admin: bool = False) -> Answer:
    return answer_statement(statement, StatementSession(facts, 42, user="u", host="h", is_admin=is_admin), NOW)


def row(statement: str, facts: SourceFacts) -> tuple[object, ...]:
    rows = answer(statement, facts)
    assert isinstance(rows, Rows)
    return rows.rows[0]


@pytest.mark.parametrize("facts", EVERYBODY, ids=lambda facts: facts.version)
@pytest.mark.parametrize(
    "statement",
    [
        # orchestrator
        "select @@global.hostname, ifnull(@@global.report_host, ''), @@global.server_id, @@global.version, "
        "@@global.version_comment, @@global.read_only, @@global.binlog_format, @@global.log_bin, @@global.log_slave_updates",
        "show global status like 'Uptime'",
        "show global variables like 'rpl\\_semi\\_sync\\_%'",
        "show global status like 'rpl_semi_sync_%'",
        "show slave hosts",
        "show slave status",
        "show master status",
        "show databases",
        # MHA, replication-manager, MaxScale, ProxySQL
        "SELECT @@global.log_bin As Value",
        "SELECT @@global.datadir AS Value",
        "SELECT @@global.relay_log_purge As Value",
        "SELECT @@server_id, @@read_only;",
        "SELECT @@global.read_only read_only",
        "SELECT UNIX_TIMESTAMP()",
        "SHOW VARIABLES",
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only','server_id')",
        # mysqld_exporter, pmm
        "SET lock_wait_timeout=2",
        "SET @@session.wait_timeout = 10",
        "SELECT @@version",
        "SHOW GLOBAL STATUS",
        "SHOW BINARY LOGS",
        "SHOW /*!50002 GLOBAL */ VARIABLES LIKE 'version'",
        "SHOW WARNINGS",
        # connectors and clients
        "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'",
        "SET character_set_results = NULL",
        "SET autocommit=1, sql_mode=concat(@@sql_mode,',STRICT_TRANS_TABLES')",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "set autocommit=1, tx_isolation='READ-COMMITTED'",
        "SELECT @@max_allowed_packet,@@wait_timeout",
        "SELECT @@version_comment limit 1",
        "select DATABASE(), USER() limit 1",
        "select @@character_set_client, @@character_set_connection, @@character_set_server, @@character_set_database limit 1",
        "SELECT 1",
        "/* ping */ SELECT 1",
        "SELECT CURRENT_USER(), CONNECTION_ID()",
        "SET SQL_SAFE_UPDATES=1,SQL_SELECT_LIMIT=1000,MAX_JOIN_SIZE=1000000",
        "SET sql_log_bin=0",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        "DO 1",
    ],
)
def test_what_is_asked_by_itself_is_answered(facts: SourceFacts, statement: str) -> None:
    assert isinstance(answer(statement, facts), Rows | Done | Request)


@pytest.mark.parametrize(
    ("facts", "more", "isolation"),
    [
        (MYSQL_55, QUERY_CACHE, "@@tx_isolation"),
        (MYSQL_56, QUERY_CACHE + " @@performance_schema AS performance_schema,", "@@tx_isolation"),
        (MYSQL_57, QUERY_CACHE, "@@transaction_isolation"),
        (MYSQL_84, "@@performance_schema AS performance_schema,", "@@transaction_isolation"),
        (MARIADB_10, QUERY_CACHE, "@@tx_isolation"),
        (MARIADB_11, QUERY_CACHE, "@@transaction_isolation"),
    ],
    ids=lambda item: item.version if isinstance(item, SourceFacts) else "",
)
def test_connector_j_gets_a_value_for_each_of_its_names(facts: SourceFacts, more: str, isolation: str) -> None:
    rows = answer(CONNECTOR_J.format(more=more, isolation=isolation), facts)
    assert isinstance(rows, Rows)
    assert rows.names[0] == "auto_increment_increment"
    assert dict(zip(rows.names, rows.rows[0], strict=True))["transaction_isolation"] == "REPEATABLE-READ"


def test_orchestrator_sees_the_relays_own_host_and_port() -> None:
    assert row("select @@global.hostname, @@global.port, @@global.report_port, @@global.datadir", MYSQL_55) == (
        "relay1", 3307, 3307, "/var/lib/relay/",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "expected"),
    [(MYSQL_56, ("OFF", "uuid", "", "", 0, "FULL")), (MYSQL_57, ("OFF", "uuid", "", "", 0, "FULL"))],
    ids=lambda item: item.version if isinstance(item, SourceFacts) else "",
)
def test_orchestrators_comparison_is_answered(facts: SourceFacts, expected: tuple[object, ...]) -> None:
    statement = (
        "select @@global.gtid_mode, @@global.server_uuid, @@global.gtid_executed, @@global.gtid_purged, "
        "@@global.master_info_repository = 'TABLE', @@global.binlog_row_image"
    )
    assert row(statement, facts) == expected


QUORUM = (
    "SELECT * FROM (   SELECT CASE     WHEN ((SELECT count(*) from information_schema.plugins WHERE            PLUGIN_NAME "
    "LIKE 'group_replication') <> 1)     THEN (SELECT 2)     WHEN ((SELECT IF(MEMBER_STATE='ONLINE' AND           ((SELECT "
    "COUNT(*) FROM             performance_schema.replication_group_members             WHERE MEMBER_STATE != 'ONLINE' AND "
    "MEMBER_STATE != 'RECOVERING')             >= ((SELECT COUNT(*) FROM                  "
    "performance_schema.replication_group_members)/2)=0),1,0)        FROM performance_schema.replication_group_members      "
    "  WHERE member_id=@@global.server_uuid) = 1)     THEN (SELECT 1)     ELSE (SELECT 2)   END AS QUORUM ) Q "
)


@pytest.mark.parametrize("facts", [MYSQL_56, MYSQL_84], ids=lambda facts: facts.version)
def test_a_replica_that_looks_for_a_group_is_told_that_there_is_none(facts: SourceFacts) -> None:
    rows = answer(QUORUM, facts)
    assert isinstance(rows, Rows)
    assert (rows.names, rows.rows) == (("QUORUM",), ((2,),))


def test_in_front_of_mariadb_that_question_is_one_for_a_variable_that_is_not_there() -> None:
    with pytest.raises(StatementRefused) as caught:
        answer(QUORUM, MARIADB_10)
    assert caught.value.number == 1193


def test_a_replica_that_asks_for_members_of_a_group_gets_1193_as_from_any_server() -> None:
    statement = (
        "SELECT @@global.group_replication_group_name, PRGM.MEMBER_HOST,        PRGM.MEMBER_PORT, PRGM.MEMBER_STATE, "
        "PRGM.MEMBER_ROLE FROM performance_schema.replication_group_members PRGM"
    )
    with pytest.raises(StatementRefused) as caught:
        answer(statement, MYSQL_84)
    assert caught.value.number == 1193


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        (MYSQL_56, ["rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled"]),
        (MARIADB_10, ["rpl_semi_sync_master_enabled"]),
    ],
    ids=lambda item: item.version if isinstance(item, SourceFacts) else "",
)
@pytest.mark.parametrize("semi_sync", [True, False])
def test_semi_sync_is_a_variable_where_it_is_offered(facts: SourceFacts, shown: list[str], semi_sync: bool) -> None:
    offering = SourceFacts(facts.flavour, facts.version, 3, facts.server_uuid, semi_sync=semi_sync)
    rows = answer("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%'", offering)
    assert isinstance(rows, Rows)
    assert [name for name, _ in rows.rows] == (shown if semi_sync else [])


def test_what_a_session_sets_it_reads_back_and_nobody_else() -> None:
    mine, other = StatementSession(MYSQL_56, 1), StatementSession(MYSQL_56, 2)
    for statement in ("SET time_zone = '+02:00', sql_mode = ANSI, autocommit = OFF", "SET wait_timeout = 5"):
        answer_statement(statement, mine, NOW)
    read = "SELECT @@time_zone, @@sql_mode, @@autocommit, @@wait_timeout, @@global.wait_timeout"
    assert [one.rows[0] for one in (answer_statement(read, session, NOW) for session in (mine, other)) if isinstance(one, Rows)] == [
        ("+02:00", "ANSI", 0, 5, 28800), ("SYSTEM", "", 1, 28800, 28800),
    ]  # fmt: skip
    answer_statement("SET time_zone = DEFAULT", mine, NOW)
    assert answer_statement("SELECT @@time_zone", mine, NOW) == answer_statement("SELECT @@time_zone", other, NOW)


@pytest.mark.parametrize("statement", ["SELECT 1 LIMIT 0", "SELECT @@version LIMIT 0"])
def test_a_limit_of_none_leaves_no_row(statement: str) -> None:
    rows = answer(statement, MYSQL_56)
    assert isinstance(rows, Rows)
    assert rows.rows == ()


@pytest.mark.parametrize(
    ("statement", "facts", "tokens_count"),
    [
        ("SELECT /*!50600 1, */ 2", MYSQL_56, 2), ("SELECT /*!50700 1, */ 2", MYSQL_56, 1),
        ("SELECT /*!50700 1, */ 2", MYSQL_57, 2), ("SELECT /*!50700 1, */ 2", MARIADB_10, 1),
        ("SELECT /*!100100 1, */ 2", MARIADB_10, 2), ("SELECT /*M!100100 1, */ 2", MARIADB_10, 2),
        ("SELECT /*M!100100 1, */ 2", MYSQL_84, 1), ("SELECT /*M! 1, */ 2", MARIADB_10, 2), ("SELECT /*! 1, */ 2", MYSQL_55, 2),
        ("SELECT /*!110500 1, */ 2", MYSQL_55, 1),
    ],
    ids=lambda item: item.version if isinstance(item, SourceFacts) else "",
)  # fmt: skip
def test_a_version_comment_counts_for_its_versions(statement: str, facts: SourceFacts, tokens_count: int) -> None:
    assert len(row(statement, facts)) == tokens_count


def test_gtid_variables_are_as_they_are_at_the_moment_of_the_question() -> None:
    uuid = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
    held = [GtidVariables("OFF_PERMISSIVE")]
    facts = replace(MYSQL_57, gtids=lambda: held[-1])
    statement = (
        "SELECT @@global.gtid_mode, @@global.gtid_executed, @@global.gtid_purged, @@global.enforce_gtid_consistency"
    )
    assert row(statement, facts) == ("OFF_PERMISSIVE", "", "", "OFF")
    held.append(GtidVariables("ON", GtidSet.from_text(f"{uuid}:1-9"), GtidSet.from_text(f"{uuid}:1-2")))
    assert row(statement, facts) == ("ON", f"{uuid}:1-9", f"{uuid}:1-2", "ON")


def test_mariadbs_gtid_variables_are_the_archives_end_and_the_sources_settings() -> None:
    held = GtidVariables(binlog_state=GtidList.from_text("0-1-5,0-2-6,7-1-3"), domain_id=7, strict_mode=True)
    statement = (
        "SELECT @@gtid_binlog_pos, @@gtid_current_pos, @@gtid_binlog_state, @@gtid_domain_id, @@gtid_strict_mode"
    )
    shown = row(statement, replace(MARIADB_10, gtids=lambda: held))
    assert shown == ("0-2-6,7-1-3", "0-2-6,7-1-3", "0-1-5,0-2-6,7-1-3", 7, 1)


@pytest.mark.parametrize(
    ("facts", "statement", "expected"),
    [
        (MYSQL_56, "SELECT @@binlog_gtid_simple_recovery, @@session.gtid_next", (0, "AUTOMATIC")),
        (MYSQL_84, "SELECT @@gtid_executed_compression_period, @@session_track_gtids", (0, "OFF")),
        (
            MARIADB_10,
            "SELECT @@gtid_ignore_duplicates, @@gtid_seq_no, @@last_gtid, @@gtid_cleanup_batch_size",
            (0, 0, "", 64),
        ),
    ],
)
def test_the_other_gtid_variables_have_a_servers_defaults(
    facts: SourceFacts, statement: str, expected: tuple[object, ...]
) -> None:
    assert row(statement, facts) == expected


def test_what_the_source_said_of_its_settings_is_shown_and_else_what_its_version_has() -> None:
    said: dict[str, str] = {}
    facts = replace(MARIADB_11, settings=lambda: said)
    asked = "SELECT @@binlog_format, @@global.log_bin_compress, @@max_binlog_size, @@binlog_row_metadata, @@collation_database"
    assert row(asked, facts) == ("MIXED", 0, 1073741824, "NO_LOG", "utf8mb4_uca1400_ai_ci")
    said |= {"binlog_format": "ROW", "log_bin_compress": "ON", "max_binlog_size": "4096", "binlog_row_metadata": "FULL"}
    said |= {"collation_server": "latin1_swedish_ci"}
    assert row(asked, facts) == ("ROW", 1, 4096, "FULL", "latin1_swedish_ci")
    assert row("SHOW VARIABLES LIKE 'log_bin_compress'", facts) == ("log_bin_compress", "ON")


@pytest.mark.parametrize("text", ["", "-1", "1e9", "²", "9" * 21])
def test_a_number_that_is_none_is_not_shown_for_one(text: str) -> None:
    assert row("SELECT @@max_binlog_size", replace(MYSQL_84, settings=lambda: {"max_binlog_size": text})) == (
        1073741824,
    )


@pytest.mark.parametrize("name", SOURCE_SETTINGS)
def test_each_setting_that_the_source_is_asked_for_is_shown(name: str) -> None:
    facts = [replace(one, settings=lambda: {name: "1"}) for one in EVERYBODY]
    shown = [answer(f"SHOW GLOBAL VARIABLES LIKE '{name}'", one) for one in facts]
    values = {rows.rows[0][1] for rows in shown if isinstance(rows, Rows) and rows.rows}
    assert values in ({"1"}, {"ON"})
