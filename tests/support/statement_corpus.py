"""What replicas, tools and people ask: to be answered as a source answers it."""

from typing import Final

# What each generation of replicas asks before its dump, and tools on connect. Values are those of the source.
SAME: Final = [
    "SHOW VARIABLES LIKE 'SERVER_ID'",
    "SELECT @@GLOBAL.SERVER_ID",
    "SET @master_heartbeat_period= 1799999979520",
    "SET @master_heartbeat_period = 30000001024, @source_heartbeat_period = 30000001024",
    "SET @master_binlog_checksum= @@global.binlog_checksum",
    "SELECT @master_binlog_checksum",
    "SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum",
    "SELECT @source_binlog_checksum",
    "SHOW VARIABLES LIKE 'SERVER_UUID'",
    "SELECT @@GLOBAL.SERVER_UUID",
    "SET @slave_uuid= '11111111-2222-3333-4444-555555555555'",
    "SET @slave_uuid = '11111111-2222-3333-4444-555555555555', @replica_uuid = '11111111-2222-3333-4444-555555555555'",
    "SET @mariadb_slave_capability=4",
    "SELECT @@GLOBAL.gtid_domain_id",
    "SET @slave_connect_state=''",
    "SET @slave_gtid_strict_mode=0",
    "SET @slave_gtid_ignore_duplicates=0",
    "SELECT @@global.rpl_semi_sync_source_enabled",
    "SET @rpl_semi_sync_slave= 1",
    "SET NAMES latin1",
    "SELECT VERSION()",
    "SET NAMES utf8mb4",
    "SELECT VERSION(), @@version, 'a', USER(), CURRENT_USER",
    "SHOW VARIABLES LIKE 'version'",
    "SELECT @slave_uuid",
    "SELECT @never_set",
    "SET @a = 5, @b = -3, @c = NULL",
    "SELECT @a, @b, @c",
    "SELECT 1, 'a', NULL, -5, 'it''s' x, TRUE, 12345678901, 1.5, 1e3, 1 AS b, 2 c",
    "SELECT DATABASE(), USER() LIMIT 1",
    "SELECT @@global.log_bin AS Value",
    "SELECT @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS "
    "character_set_client, @@character_set_connection AS character_set_connection, @@character_set_results AS "
    "character_set_results, @@character_set_server AS character_set_server, @@collation_server AS collation_server, "
    "@@collation_connection AS collation_connection, @@init_connect AS init_connect, @@interactive_timeout AS "
    "interactive_timeout, @@lower_case_table_names AS lower_case_table_names, @@net_buffer_length AS "
    "net_buffer_length, @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema, "
    "@@system_time_zone AS system_time_zone, @@time_zone AS time_zone, @@wait_timeout AS wait_timeout",
    "SHOW WARNINGS",
    "SHOW VARIABLES LIKE 'no\\_such%'",
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_id', 'log_bin')",
    "SHOW VARIABLES WHERE Variable_name = 'server_id'",
    "SET NAMES utf8",
    "SELECT 1 = 1, 'a' = 'b', 1 <> 2, 1 < 2, NULL = 1",
    "SELECT IFNULL(@@report_host, '')",
    "SET SESSION wait_timeout = 100, time_zone = '+00:00'",
    "SELECT @@wait_timeout, @@session.time_zone, @@global.wait_timeout",
    "SET autocommit = 0",
    "SELECT @@autocommit",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SELECT LAST_INSERT_ID()",
    "SELECT version ( ) , @@server_id  , 'q' AS \"y\"",
    "USE information_schema",
    "SELECT SCHEMA()",
]

# Values are the relay's own, or the time's.
SAME_SHAPE: Final = [
    "SELECT @@GLOBAL.GTID_MODE",
    "SELECT UNIX_TIMESTAMP()",
    "SELECT NOW(), CURRENT_TIMESTAMP, UTC_TIMESTAMP(), SYSDATE(), NOW(3), CURDATE(), CURTIME()",
    "SELECT CONNECTION_ID()",
    "SELECT @@port, @@server_id, @@read_only, @@report_port",
    "SHOW GLOBAL STATUS LIKE 'Uptime'",
]

# What the console answers, in the words of every version; the rows are the relay's own.
SHOWN: Final = [
    "SHOW MASTER STATUS",
    "SHOW BINARY LOG STATUS",
    "SHOW BINARY LOGS",
    "SHOW BINLOG EVENTS LIMIT 0",
    "SHOW BINLOG EVENTS LIMIT 2",
    "SHOW SLAVE STATUS",
    "SHOW REPLICA STATUS",
    "SHOW ALL SLAVES STATUS",
    "SHOW SLAVE HOSTS",
    "SHOW REPLICAS",
    "SHOW PROCESSLIST",
]

ERRORS: Final = [
    "",
    "FOO",
    "SHOW FOO",
    "SELECT 1 +",
    "SELECT 'open",
    "SELECT foo",
    "SELECT 1 FROM t",
    "SELECT 1 FROM nowhere.t",
    "SELECT @@nothing",
    "SELECT @@global.nothing",
    "SELECT VERSION(1)",
    "SET nothing = 1",
    "SET @a",
    "SET NAMES klingon",
    "SET NAMES ucs2",
    "SET NAMES utf8 COLLATE latin1_bin",
    "SET NAMES utf8 COLLATE nope_ci",
    "SET autocommit = 2",
    "SET wait_timeout = 'x'",
    "SET hostname = 'x'",
    "SELECT @@global.pseudo_thread_id",
    "KILL 999999",
    "CHANGE MASTER TO FOO = 1",
    "FLUSH FOO",
    "SHOW TABLES",
    "SELECT NOW(7)",
    "USE nowhere",
]
# Both dialects are understood, whatever the source's.
DENIED: Final = [
    "SET GLOBAL server_id = 9",
    "STOP SLAVE",
    "START REPLICA",
    "STOP ALL SLAVES",
    "CHANGE MASTER TO MASTER_HOST = 'x'",
    "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'x'",
    "PURGE BINARY LOGS BEFORE NOW()",
    "PURGE MASTER LOGS TO 'mysql-bin.000001'",
    "FLUSH LOGS",
    "SHUTDOWN",
]

# Commands other than statements: (code, body).
COMMANDS: Final = [
    (0x0E, b""),
    (0x02, b"mysql"),
    (0x1B, b"\0\0"),
    (0x1B, b"\1\0"),
    (0x02, b"nowhere"),
    (0x1B, b"\5\0"),
    (0x00, b""),
    (0x05, b"x"),
    (0x0B, b""),
    (0x13, b"t"),
    (0x1D, b""),
    (0x55, b""),
]
