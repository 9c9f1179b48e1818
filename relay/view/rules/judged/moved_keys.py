"""Statements whose effect depends on who executes foreign keys: InnoDB, or since MySQL 9.6 the server itself.

Tried with MySQL 5.6.24, MariaDB 10.11 and MySQL 9.7.4 by random statements on tables that refer to each other. REPLACE and DELETE are
judged by `foreign_key_rules`.
"""

from collections.abc import Callable, Iterable, Sequence

from protocol.sql.expressions.constructs import FiredChange
from protocol.sql.server_version import version_numbers
from protocol.sql.tables.source_table import TableName
from relay.source_tables.references import BY_THE_SERVER_SINCE, References
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.stops import statement_stops
from relay.view.stops.stop_reason import TableUnknown

UpdatedWith = Callable[[TableName, frozenset[str]], list[TableName]]
"""As `References.updated_with`, for tables whose columns are known."""


def are_by_server(server_version: str) -> bool:
    """Return whether a server of this version executes foreign keys itself, where innodb_native_foreign_keys is OFF."""
    return "mariadb" not in server_version.lower() and version_numbers(server_version)[:2] >= BY_THE_SERVER_SINCE


def check_ignored_updates(
    query: LoggedQuery,
    change: FiredChange,
    tables: Iterable[TableName],
    updated_with: UpdatedWith,
    knows: Callable[[TableName], bool],
    inside: str,
) -> None:
    """Check a change with IGNORE of columns that others refer to: where the row stays as it is, for its new key exists, the rows that
    refer to it change all the same on a server that executes foreign keys itself. Raises: Untranslatable."""
    if not change.ignores or change.event != "UPDATE":
        return
    for table in tables:
        children = updated_with(table, change.assigned)
        if children or not knows(table):
            stop = statement_stops.ignored_update(query, table, children, inside)
            raise stop if children else TableUnknown(stop.reason, table)


def runs_unchecked(
    query: LoggedQuery, changes: Sequence[FiredChange], references: References, updated_with: UpdatedWith
) -> bool:
    """Return whether replicas must run a statement that makes these changes with foreign_key_checks = 0.

    INSERT … ON DUPLICATE KEY UPDATE of a table that refers to others must be run so. InnoDB checks the row that is inserted or the one
    that is updated; a server that executes foreign keys itself the one that is not inserted, too, and refuses it (1452). Without
    the checks nothing changes with another row: where something would, it is stopped for; so is INSERT IGNORE, which leaves out the
    rows that refer to none. Raises: Untranslatable.
    """
    upserts = [one for one in changes if one.upserts and references.refers(one.table)]
    for change in upserts:
        if change.ignores:
            raise statement_stops.upsert_ignored(query, change.table)
    for change in changes if upserts else ():
        children = updated_with(change.table, change.assigned) if change.event == "UPDATE" else []
        if change.event in ("DELETE", "REPLACE"):
            children = references.changed_with(change.table)
        if children:
            raise statement_stops.upsert_refused(query, upserts[0].table, change.table, children)
    return bool(upserts)
