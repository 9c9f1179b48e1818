"""Tables that contain accounts and privileges, which servers of other versions store differently."""

from typing import Final

from protocol.sql.tables.source_table import TableName

ACCOUNT_TABLES: Final = frozenset((
    "user", "db", "host", "tables_priv", "columns_priv", "procs_priv", "proxies_priv", "global_grants", "role_edges", "default_roles",
    "password_history",
))  # fmt: skip
"""The tables of the schema `mysql` that contain accounts and privileges, of all versions."""


def is_account_table(name: TableName) -> bool:
    """Return whether the table contains accounts or privileges."""
    return name[0].lower() == "mysql" and name[1].lower() in ACCOUNT_TABLES
