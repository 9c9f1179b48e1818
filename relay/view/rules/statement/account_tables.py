"""Tables that contain accounts and privileges, which servers of other versions store differently."""

from typing import Final

from protocol.sql.tables.source_table import TableName

ACCOUNT_TABLES: Final = frozenset((
    "user", "db", "host", "tables_priv", "columns_priv", "procs_priv", "proxies_priv", "global_grants", "role_edges", "default_roles",
    "password_history",
))  # fmt: skip
"""The tables of the schema `mysql` that contain accounts and privileges, of all versions."""
_OF_SERVICES: Final = frozenset(("ha_health_check", "heartbeat"))
_BEGINNINGS_OF_SERVICES: Final = ("rds_", "__az_", "__firewall_rules__")
"""Tables of RDS, Aurora and Alibaba (rds_…, ha_health_check), Cloud SQL (heartbeat) and Azure in the schema mysql."""


def is_service_table(name: TableName) -> bool:
    """Return whether the table belongs to a service that runs the source, such as the heartbeat of RDS: replicas do not have it."""
    table = name[1].lower()
    return name[0].lower() == "mysql" and (table in _OF_SERVICES or table.startswith(_BEGINNINGS_OF_SERVICES))


def is_account_table(name: TableName) -> bool:
    """Return whether the table contains accounts or privileges."""
    return name[0].lower() == "mysql" and name[1].lower() in ACCOUNT_TABLES
