"""Tables that hold accounts and privileges, which servers of other versions keep otherwise."""

from typing import Final

from protocol.sql.tables.source_table import TableName

ACCOUNT_TABLES: Final = frozenset((
    "user", "db", "host", "tables_priv", "columns_priv", "procs_priv", "proxies_priv", "global_grants", "role_edges", "default_roles",
    "password_history",
))  # fmt: skip
"""Tables of the schema `mysql` that hold accounts and privileges, of all versions."""


def is_account_table(name: TableName) -> bool:
    """Whether the table holds accounts or privileges."""
    return name[0].lower() == "mysql" and name[1].lower() in ACCOUNT_TABLES
