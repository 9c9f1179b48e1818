"""Tables of the schema `mysql`: those with accounts and privileges, others of the server itself, and those of services that run it."""

from typing import Final

from protocol.sql.tables.source_table import TableName

ACCOUNT_TABLES: Final = frozenset((
    "user", "db", "host", "tables_priv", "columns_priv", "procs_priv", "proxies_priv", "global_grants", "role_edges", "default_roles",
    "password_history",
))  # fmt: skip
"""The tables of the schema `mysql` that contain accounts and privileges, of all versions."""
_OF_THE_SERVER: Final = frozenset((
    "column_stats", "columns_priv", "component", "engine_cost", "event", "func", "general_log", "global_priv", "gtid_executed",
    "gtid_slave_pos", "help_category", "help_keyword", "help_relation", "help_topic", "index_stats", "innodb_index_stats",
    "innodb_table_stats", "ndb_binlog_index", "plugin", "proc", "roles_mapping", "server_cost", "servers", "slave_master_info",
    "slave_relay_log_info", "slave_worker_info", "slow_log", "table_stats", "time_zone", "time_zone_leap_second", "time_zone_name",
    "time_zone_transition", "time_zone_transition_type", "transaction_registry",
))  # fmt: skip
"""Other tables that a server makes there, MySQL 5.0 to 9.7 and MariaDB to 11.8."""
_OF_SERVICES: Final = frozenset(("ha_health_check", "heartbeat"))
_BEGINNINGS_OF_SERVICES: Final = ("rds_", "__az_", "__firewall_rules__")
"""Tables of RDS, Aurora and Alibaba (rds_…, ha_health_check), Cloud SQL (heartbeat) and Azure in the schema mysql."""


def is_service_table(name: TableName) -> bool:
    """Return whether the table belongs to a service that runs the source, such as the heartbeat of RDS: replicas do not have it."""
    table = name[1].lower()
    return name[0].lower() == "mysql" and (table in _OF_SERVICES or table.startswith(_BEGINNINGS_OF_SERVICES))


def is_system_table(name: TableName) -> bool:
    """Return whether the table is the server's own: each version has its own form of it, and upgrades it itself."""
    return name[0].lower() == "mysql" and (name[1].lower() in _OF_THE_SERVER or is_account_table(name))


def is_account_table(name: TableName) -> bool:
    """Return whether the table contains accounts or privileges."""
    return name[0].lower() == "mysql" and name[1].lower() in ACCOUNT_TABLES
