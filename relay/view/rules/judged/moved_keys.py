"""Statements whose effect depends on who executes foreign keys: InnoDB, or since MySQL 9.6 the server itself.

Tried with MySQL 5.6.24, MariaDB 10.11 and MySQL 9.7.4 by random statements on tables that refer to each other. REPLACE and DELETE are
judged by `foreign_key_rules`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from protocol.sql.expressions.constructs import FiredChange, StatementConstructs
from protocol.sql.server_version import version_numbers
from protocol.sql.tables.source_table import Column, TableName
from relay.source_tables.references import BY_THE_SERVER_SINCE, References
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.stops import statement_stops
from relay.view.stops.stop_reason import TableUnknown, named

_REMOVALS: Final = ("DELETE", "REPLACE")

EVERY_COLUMN: Final = frozenset(("",))
"""In `FiredChange.assigned`: any column may be."""


class KnownKeys(Protocol):
    """What is known of the tables at the source and of the references between them."""

    @property
    def columns(self) -> Callable[[TableName], Sequence[Column]]:
        """Return the columns of a table; none: they are not known."""

    @property
    def references(self) -> Callable[[], References]:
        """Return the references between tables."""

    @property
    def knows_references(self) -> Callable[[TableName], bool]:
        """Return whether `references` has all to a table."""

    def updated_with(self, table: TableName, assigned: frozenset[str]) -> list[TableName]:
        """Return the tables whose rows may change where these columns, in lower case, of a row do."""


class ReadBody(NamedTuple):
    """What the body of a program is made of. `inside` says where it is. `leaves_out`: it may leave out a change, and continue."""

    made: StatementConstructs
    inside: str
    leaves_out: bool


def may_leave_out(text: str) -> bool:
    """Return whether a body has IGNORE, or a handler of errors."""
    upper = text.upper()
    return "IGNORE" in upper or "HANDLER" in upper


def are_by_server(server_version: str) -> bool:
    """Return whether a server of this version executes foreign keys itself, where innodb_native_foreign_keys is OFF."""
    return "mariadb" not in server_version.lower() and version_numbers(server_version)[:2] >= BY_THE_SERVER_SINCE


def check_ignored_updates(
    query: LoggedQuery, change: FiredChange, tables: Iterable[TableName], known: KnownKeys, inside: str
) -> None:
    """Check a change with IGNORE of columns that others refer to: where the row stays as it is, for its new key exists, the rows that
    refer to it change all the same on a server that executes foreign keys itself. Raises: Untranslatable."""
    if not change.ignores or change.event != "UPDATE":
        return
    for table in tables:
        children = known.updated_with(table, change.assigned)
        if children or not known.knows_references(table):
            stop = statement_stops.ignored_update(query, table, children, inside)
            raise stop if children else TableUnknown(stop.reason, table)


def runs_unchecked(
    query: LoggedQuery, changes: Sequence[FiredChange], bodies: Iterable[ReadBody], known: KnownKeys
) -> bool:
    """Return whether replicas must run a statement that makes these changes, itself and in the bodies, with foreign_key_checks = 0.

    INSERT … ON DUPLICATE KEY UPDATE of a table that refers to others must be run so. InnoDB checks the row that is inserted or the one
    that is updated; a server that executes foreign keys itself the one that is not inserted, too, and refuses it (1452). Without
    the checks nothing changes with another row, and nothing is left out: where something would be, it is stopped for. Raises:
    Untranslatable.
    """
    references = known.references()
    for change in changes:
        if change.upserts and change.ignores:
            stop = statement_stops.upsert_ignored(query, change.table)
            if references.refers(change.table):
                raise stop
            if not known.columns(change.table):
                raise TableUnknown(stop.reason, change.table)
    upserts = [one.table for one in changes if one.upserts and references.refers(one.table)]
    if not upserts:
        return False
    if any(body.leaves_out for body in bodies):
        raise statement_stops.upsert_refused(query, upserts[0], "leave out rows that a program does not insert")
    for change in changes:
        children = known.updated_with(change.table, change.assigned) if change.event == "UPDATE" else []
        if change.event in _REMOVALS:
            children = references.changed_with(change.table)
        if children:
            missing = f"change rows of {named(*children)} with those of {named(change.table)}"
            raise statement_stops.upsert_refused(query, upserts[0], missing)
        if change.event in ("UPDATE", *_REMOVALS) and not known.knows_references(change.table):
            missing = f"change rows that may refer to {named(change.table)}"
            raise TableUnknown(statement_stops.upsert_refused(query, upserts[0], missing).reason, change.table)
    return True
