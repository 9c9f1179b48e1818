"""Statements and rows that change accounts and privileges, which servers of other versions keep otherwise."""

import re
from typing import Final

from protocol.sql.gaps import GAPS
from protocol.sql.tables.source_table import TableName

ACCOUNT_TABLES: Final = frozenset((
    "user", "db", "host", "tables_priv", "columns_priv", "procs_priv", "proxies_priv", "global_grants", "role_edges", "default_roles",
    "password_history",
))  # fmt: skip
"""Tables of the schema `mysql` that hold accounts and privileges, of all versions."""
_ACCOUNT_STATEMENT: Final = re.compile(
    rb"%(gaps)s(?:(?:CREATE|ALTER|DROP|RENAME)%(gap)s(?:USER|ROLE)\b|GRANT\b|REVOKE\b|SET%(gap)sPASSWORD\b|SET%(gap)sDEFAULT%(gap)sROLE\b)"
    % GAPS,
    re.IGNORECASE | re.DOTALL,
)
_SET_PASSWORD: Final = re.compile(
    rb"%(gaps)sSET%(gap)sPASSWORD\b" % GAPS,
    re.IGNORECASE | re.DOTALL,
)
_SEEN_BYTES: Final = 4096


def is_account_statement(text: bytes) -> bool:
    """Whether it makes, changes or drops accounts, roles or privileges."""
    return _ACCOUNT_STATEMENT.match(text, 0, _SEEN_BYTES) is not None


def sets_password(text: bytes) -> bool:
    """Whether it is SET PASSWORD, whose hash servers from 5.7.6 on take for the password itself."""
    return _SET_PASSWORD.match(text, 0, _SEEN_BYTES) is not None


def is_account_table(name: TableName) -> bool:
    """Whether the table holds accounts or privileges."""
    return name[0].lower() == "mysql" and name[1].lower() in ACCOUNT_TABLES
