"""The queries of monitors, failover tools and readers of binlogs, as they send them; by tool.

Sources: orchestrator 3.2.6, ProxySQL 2.7, MHA 0.58, mysqld_exporter 0.14 to 0.17, PMM 2, Zabbix 6's templates, Canal 1.1, Debezium
2 and 3, asyncmy 0.2, python-mysql-replication 1, zongji 0.5, go-mysql's canal, Percona Toolkit 3, mysql-shell.
"""

from typing import Final

PROCESSES: Final = {
    "orchestrator": [
        "select substring_index(host, ':', 1) as slave_hostname from information_schema.processlist "
        "where command IN ('Binlog Dump', 'Binlog Dump GTID')",
    ],
    "mysqld_exporter": [
        "SELECT user, SUBSTRING_INDEX(host, ':', 1) AS host, COALESCE(command, '') AS command, COALESCE(state, '') AS state, "
        "COUNT(*) AS processes, SUM(time) AS seconds FROM information_schema.processlist WHERE ID != connection_id() AND TIME >= 0 "
        "GROUP BY user, host, command, state",
    ],
    "PMM": [
        "SELECT COALESCE(command,''), COALESCE(state,''), count(*), sum(time) FROM information_schema.processlist "
        "WHERE ID != connection_id() AND TIME >= 1 GROUP BY command,state ORDER BY null",
    ],
    "people": [
        "SELECT ID, USER, HOST, DB, COMMAND, TIME, STATE, INFO FROM information_schema.PROCESSLIST ORDER BY ID DESC LIMIT 5",
        "SELECT COUNT(*), MAX(TIME), MIN(ID) FROM information_schema.PROCESSLIST p WHERE p.USER LIKE '%'",
    ],
}
"""Queries for connected clients: rows are each server's own."""

SCHEMA: Final = {
    "mysqld_exporter": [
        "SELECT SCHEMA_NAME FROM information_schema.schemata WHERE SCHEMA_NAME NOT IN ('mysql', 'performance_schema', "
        "'information_schema', 'sys')",
        "SELECT c.table_schema, c.table_name, column_name, auto_increment, pow(2, case data_type when 'tinyint' then 7 "
        "when 'smallint' then 15 when 'mediumint' then 23 when 'int' then 31 when 'bigint' then 63 end+(column_type like "
        "'% unsigned'))-1 as max_int FROM information_schema.columns c STRAIGHT_JOIN information_schema.tables t ON "
        "(BINARY c.table_schema=t.table_schema AND BINARY c.table_name=t.table_name) WHERE c.extra = 'auto_increment' "
        "AND t.auto_increment IS NOT NULL AND t.table_schema = 'nosuch'",
    ],
    "asyncmy, python-mysql-replication": [
        "SELECT COLUMN_NAME, COLLATION_NAME, CHARACTER_SET_NAME, COLUMN_COMMENT, COLUMN_TYPE, COLUMN_KEY, ORDINAL_POSITION "
        "FROM information_schema.columns WHERE table_schema = 'shop' AND table_name = 'orders' ORDER BY ORDINAL_POSITION",
    ],
    "zongji": [
        "SELECT COLUMN_NAME, COLLATION_NAME, CHARACTER_SET_NAME, COLUMN_COMMENT, COLUMN_TYPE FROM information_schema.columns "
        "WHERE table_schema='shop' AND table_name='orders' ORDER BY ORDINAL_POSITION",
    ],
    "Debezium": [
        "SELECT SCHEMA_NAME FROM INFORMATION_SCHEMA.SCHEMATA WHERE SCHEMA_NAME = 'shop'",
        "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'shop' AND TABLE_TYPE = 'BASE TABLE'",
        "SELECT K.TABLE_NAME, K.COLUMN_NAME, K.ORDINAL_POSITION FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE K JOIN "
        "INFORMATION_SCHEMA.TABLE_CONSTRAINTS T ON K.CONSTRAINT_NAME = T.CONSTRAINT_NAME AND K.TABLE_SCHEMA = T.TABLE_SCHEMA AND "
        "K.TABLE_NAME = T.TABLE_NAME WHERE T.CONSTRAINT_TYPE = 'PRIMARY KEY' AND K.TABLE_SCHEMA = 'shop' ORDER BY "
        "K.ORDINAL_POSITION",
    ],
    "Connector/J": [
        "SELECT A.TABLE_SCHEMA, A.TABLE_NAME, A.COLUMN_NAME, B.SEQ_IN_INDEX, B.INDEX_NAME FROM INFORMATION_SCHEMA.COLUMNS A, "
        "INFORMATION_SCHEMA.STATISTICS B WHERE A.COLUMN_KEY IN ('PRI','pri') AND B.INDEX_NAME = 'PRIMARY' AND A.TABLE_SCHEMA = "
        "'shop' AND A.TABLE_NAME = 'orders' AND B.TABLE_SCHEMA = 'shop' AND B.TABLE_NAME = 'orders' AND A.COLUMN_NAME = "
        "B.COLUMN_NAME ORDER BY A.COLUMN_NAME",
        "SELECT CONSTRAINT_NAME, UNIQUE_CONSTRAINT_NAME, UPDATE_RULE FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS WHERE "
        "CONSTRAINT_SCHEMA = 'shop'",
    ],
    "pt-duplicate-key-checker and others": [
        "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX SEPARATOR ',') AS c, "
        "MAX(NON_UNIQUE) AS n FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'shop' GROUP BY TABLE_SCHEMA, TABLE_NAME, "
        "INDEX_NAME ORDER BY INDEX_NAME",
        "SELECT DATA_TYPE, COUNT(*), COUNT(DISTINCT TABLE_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'shop' "
        "GROUP BY DATA_TYPE ORDER BY DATA_TYPE",
        "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, "
        "IS_NULLABLE, EXTRA FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'shop' ORDER BY TABLE_NAME, ORDINAL_POSITION",
    ],
}
"""Queries for the source's tables: rows are the source's."""

FACTS: Final = {
    "ProxySQL": ["SELECT @@global.read_only&@@global.innodb_read_only read_only"],
    "Debezium": [
        "SHOW VARIABLES WHERE Variable_name REGEXP 'character_set_server|collation_server'",
        "SELECT GTID_SUBTRACT('11111111-2222-3333-4444-555555555555:1-9', '11111111-2222-3333-4444-555555555555:1-5')",
        "SELECT GTID_SUBSET('11111111-2222-3333-4444-555555555555:1-5', '11111111-2222-3333-4444-555555555555:1-9')",
    ],
    "MHA": [
        "SELECT GET_LOCK('MHA_Master_High_Availability_Monitor', '0') AS Value",
        "SELECT IS_USED_LOCK('MHA_nobody') AS Value",
        "SELECT IS_FREE_LOCK('MHA_Master_High_Availability_Monitor') AS Value",
        "SELECT RELEASE_LOCK('MHA_Master_High_Availability_Monitor') As Value",
        "SELECT RELEASE_LOCK('MHA_Master_High_Availability_Monitor') As Value",
        "DO RELEASE_LOCK('MHA_nobody')",
    ],
    "orchestrator": [
        "select timestampdiff(second, '2020-01-01 00:00:00', '2020-01-02 00:00:01') as d",
    ],
    "people": [
        "SELECT 1+1, 7 & 3, 4 | 1, 1 << 3, 7 % 4, 2 * 3 - 1",
        "SELECT IF(1 > 0 AND 2 > 1, 'yes', 'no') AS a, 'abc' LIKE 'a%' AS b, NOT 1 AS c, 5 BETWEEN 1 AND 9 AS d, 3 IN (1, 2, 3) AS e",
        "SELECT CONCAT_WS('-', 'a', NULL, 'b') AS a, LEFT('abc', 2) AS b, LENGTH('abc') AS c, FIND_IN_SET('b', 'a,b') AS d",
    ],
}
"""Queries with the same answer at every server."""

SHOWN: Final = {
    "go-mysql's canal": [
        "SHOW COLUMNS FROM orders FROM shop WHERE Field <> 'amount'",
        "SHOW FULL COLUMNS FROM `shop`.`nosuch`",
    ],
    "Debezium": [
        "SHOW DATABASES LIKE 'sh%'",
        "SHOW FULL TABLES IN `shop` where Table_Type = 'BASE TABLE'",
        "SHOW TABLES FROM nowhere",
        "SHOW COLUMNS FROM nowhere.t",
    ],
    "Canal, people": [
        "DESC shop.empty_one",
        "describe `shop`.`orders` 'state'",
        "EXPLAIN shop.empty_one",
        "SHOW TABLES IN shop LIKE 'ord%'",
        "SHOW COLUMNS FROM shop.orders LIKE 's%'",
        "SHOW INDEX FROM shop.nosuch",
        "SHOW KEYS FROM shop.empty_one",
        "SHOW TABLES FROM shop WHERE Tables_in_shop LIKE 'x%'",
    ],
}
"""The same in older words: rows are the source's."""

SHOWN_WITH_SIZES: Final = {
    "people": ["SHOW TABLE STATUS FROM shop", "SHOW TABLE STATUS LIKE 'x'", "SHOW INDEX FROM shop.orders"],
    "go-mysql's canal": ["SHOW FULL COLUMNS FROM `shop`.`empty_one`"],
}
"""Columns are the source's; sizes, times and an account's privileges are not recorded."""

EMPTY: Final = {
    "mysqld_exporter": [
        "SELECT page_size, compress_ops, compress_ops_ok, compress_time, uncompress_ops, uncompress_time FROM "
        "information_schema.innodb_cmp WHERE page_size = 0",
        "SELECT page_size, buffer_pool_instance, pages_used, pages_free, relocation_ops, relocation_time FROM "
        "information_schema.innodb_cmpmem WHERE page_size = 0",
        "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name "
        "WHERE EVENT_NAME = 'nosuch'",
        "SELECT OBJECT_SCHEMA, OBJECT_NAME, COUNT_FETCH, SUM_TIMER_DELETE FROM performance_schema.table_io_waits_summary_by_table "
        "WHERE OBJECT_SCHEMA NOT IN ('mysql', 'performance_schema') AND OBJECT_SCHEMA = 'nosuch'",
        "SELECT ifnull(SCHEMA_NAME, 'NONE') as SCHEMA_NAME, DIGEST, LEFT(DIGEST_TEXT, 120) as DIGEST_TEXT, COUNT_STAR FROM ( SELECT * "
        "FROM performance_schema.events_statements_summary_by_digest WHERE SCHEMA_NAME NOT IN ('mysql') AND LAST_SEEN > "
        "DATE_SUB(NOW(), INTERVAL 86400 SECOND) AND SCHEMA_NAME = 'nosuch' ORDER BY LAST_SEEN DESC )Q GROUP BY Q.SCHEMA_NAME, "
        "Q.DIGEST, Q.DIGEST_TEXT, Q.COUNT_STAR ORDER BY COUNT_STAR DESC LIMIT 250",
    ],
    "replication-manager, PMM": [
        "SELECT plugin_status FROM information_schema.plugins WHERE plugin_name = 'nosuch'",
        "SELECT * FROM performance_schema.replication_group_members WHERE MEMBER_ID = 'nosuch'",
        "SELECT * FROM performance_schema.replication_applier_status_by_worker",
        "SELECT * FROM information_schema.innodb_trx WHERE trx_id = 'nosuch'",
    ],
    "Zabbix": [
        "SELECT COALESCE(SUM(DATA_LENGTH + INDEX_LENGTH), 0) AS size FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'nosuch'",
    ],
}
"""Tables that a relay has and knows nothing of, queried for what no server has either: columns are the server's."""

STATUS: Final = {
    "ProxySQL, replication-manager": [
        "SELECT @@global.read_only|@@global.innodb_read_only read_only",
        "SELECT (SELECT VARIABLE_VALUE FROM INFORMATION_SCHEMA.GLOBAL_STATUS WHERE VARIABLE_NAME='WSREP_LOCAL_STATE') AS w",
        "SELECT (SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME='WSREP_LOCAL_STATE') AS w",
    ],
    "orchestrator, PMM": [
        "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'UPTIME'",
        "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.global_variables WHERE VARIABLE_NAME = 'server_id'",
        "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.global_variables WHERE VARIABLE_NAME IN ('server_id')",
        "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Uptime'",
        "SELECT CHANNEL_NAME, HOST, PORT, USER FROM performance_schema.replication_connection_configuration",
        "SELECT CHANNEL_NAME, SERVICE_STATE, LAST_ERROR_NUMBER, RECEIVED_TRANSACTION_SET FROM "
        "performance_schema.replication_connection_status",
        "SELECT conn_status.channel_name as channel_name, conn_status.service_state as IO_thread, applier_status.service_state as "
        "SQL_thread FROM performance_schema.replication_connection_status AS conn_status JOIN "
        "performance_schema.replication_applier_status AS applier_status ON applier_status.channel_name = conn_status.channel_name",
    ],
}
"""Queries for which a relay has its own rows: columns are the server's; a server that is no replica has no rows in some."""

DENIED: Final = {
    "orchestrator": ["select count(*) > 0 and MAX(User_name) != '' from mysql.slave_master_info"],
    "MHA, mysqld_exporter": [
        "SELECT user, host FROM mysql.user",
        "SELECT Repl_slave_priv AS Value FROM mysql.user WHERE user = 'x'",
    ],
}
"""Queries that an account of a replica may not run at the source either."""
