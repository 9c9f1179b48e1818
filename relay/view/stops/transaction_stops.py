"""The reasons why a view stops before a transaction: its events, its GTID, its engines, its end."""

from typing import Final

from protocol.binlog.event_type import event_type_name
from protocol.binlog.statement_text import one_line
from protocol.errors import ErrorCode
from protocol.sql.tables.source_table import TableName
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.stops.stop_reason import (
    KEEP_ENGINES,
    NEWER_RELAY,
    SKIP,
    TO_INNODB,
    VERIFY,
    Untranslatable,
    named,
    shown,
    stop,
)

UNKNOWN_EVENT: Final = 13121
"""The error with which the applier of MySQL 8.4 and later stops at an event that it does not read."""
_KNOWN_ENGINES: Final = "name the engines of tables from before the archive in the view's known_engines"
_NOTHING_LEFT_OUT: Final = (
    "compare the tables that it changed with the source's, repair them on the replicas, then `view skip`"
)


def event_unsupported(kind: int, *ways: str, error: int = UNKNOWN_EVENT) -> Untranslatable:
    """Return the stop at an event of the type code `kind`, which no replica of the view reads."""
    text = f"no replica of this view reads events of type {event_type_name(kind)} ({kind})"
    return stop("event_unsupported", error, text, *ways or (SKIP.removeprefix("or "),))


def event_not_in_target(kind: int, title: str) -> Untranslatable:
    """Return the stop at an event of a newer source that the target does not read and that is not optional."""
    text = f"{title} cannot read an event of type {event_type_name(kind)}"
    return stop("event_not_in_target", ErrorCode.ER_SLAVE_RELAY_LOG_READ_FAILURE, text, NEWER_RELAY, SKIP)


def incident() -> Untranslatable:
    """The source reports that it lost something."""
    text = "the source wrote here that it lost changes (Incident event)"
    return stop(
        "source_incident",
        ErrorCode.ER_SLAVE_INCIDENT,
        text,
        "compare the tables of source and replicas, repair them, then `view skip`",
    )


def malformed(why: str) -> Untranslatable:
    """An event of the transaction cannot be read."""
    return stop("malformed_transaction", 0, why, VERIFY)


def user_variable_cut(name: bytes) -> Untranslatable:
    """A User_var event ends before its value."""
    text = f"the event of the user variable @{one_line(name, 80)} is cut"
    return stop("malformed_transaction", ErrorCode.ER_SLAVE_RELAY_LOG_READ_FAILURE, text, VERIFY)


def group_damaged() -> Untranslatable:
    """Return the stop at a transaction to whose events nothing can be added."""
    return malformed(
        "a GTID event is too short, or the status variables of a statement cannot be read: one exceeds their end"
    )


def too_large(why: str, *ways: str) -> Untranslatable:
    """More of a transaction would have to be in memory than a view allows."""
    look = ("where it mixes engines, " + TO_INNODB, "look at it with mysqlbinlog", SKIP)
    return stop("transaction_too_large", 0, f"the transaction cannot be taken apart: {why}", *ways or look)


def row_event_too_large(table: TableName, most: int) -> Untranslatable:
    """A row event that must be rewritten exceeds `most` bytes."""
    text = f"a row event of {named(table)} must be rewritten, and would exceed the {most} bytes that a view keeps in memory"
    return stop("transaction_too_large", 0, text, "look at the rows with mariadb-binlog", SKIP)


def without_end(why: str, statement: LoggedQuery | None) -> Untranslatable:
    """The source crashed inside the transaction, and it or its replicas may have kept some of it."""
    return stop(
        "unfinished_transaction",
        0,
        f"the source crashed inside this transaction, which has no end, and what was kept of it is uncertain ({why}): "
        f"{shown(statement)}",
        f"{_NOTHING_LEFT_OUT}. The view has nothing in its place. Where all of the tables use InnoDB, and the source's "
        "next file follows, "
        "nothing was kept: skip it",
    )


def open_end(statement: str) -> Untranslatable:
    """A file ended inside a transaction, and the source continued without a restart."""
    return stop(
        "unfinished_transaction",
        0,
        "the file before this one ends inside a transaction, and the source continued: it could not write the rest of "
        "it (a full disk, a "
        "limit), and perhaps not of others either. The view has nothing of it, and a replica of the mirror commits what it received: "
        f"{statement}",
        f"{_NOTHING_LEFT_OUT}: nothing of this file is left out",
    )


def both_engines(statement: LoggedQuery | None, plain: list[TableName], others: list[TableName]) -> Untranslatable:
    """One statement writes tables with and without transactions."""
    text = f"one statement changes {named(*plain)}, without transactions, and {named(*others)}, with them: {shown(statement)}"
    return stop("statement_mixes_engines", ErrorCode.ER_GTID_UNSAFE_NON_TRANSACTIONAL_TABLE, text, TO_INNODB, SKIP)


def not_splittable() -> Untranslatable:
    """A transaction with a GTID of the source would have to become several."""
    text = "the transaction has a GTID of the source, and would have to become several"
    return stop("transaction_not_splittable", ErrorCode.ER_GTID_UNSAFE_NON_TRANSACTIONAL_TABLE, text, TO_INNODB, SKIP)


def uncertain_rollback(why: str, statement: LoggedQuery | None) -> Untranslatable:
    """It is uncertain which rolled back changes the source's tables kept."""
    text = (
        f"a part of the transaction was rolled back, and what the source's tables kept of it is uncertain ({why}): "
        f"{shown(statement)}"
    )
    return stop("uncertain_rollback", 0, text, _KNOWN_ENGINES, SKIP)


def nothing_kept() -> Untranslatable:
    """A transaction ends with ROLLBACK for no reason that is known."""
    return stop(
        "uncertain_rollback",
        0,
        "the transaction ends with ROLLBACK, which a source writes only where a table kept something of it; none of "
        "its tables is known to "
        "be without transactions",
        _KNOWN_ENGINES,
        SKIP,
    )


def failed_partway(statement: LoggedQuery, tables: tuple[TableName, ...], why: str = "") -> Untranslatable:
    """A statement failed, and its changes in `tables` remained; (): the tables are unknown, for the reason `why`."""
    kept = f"{named(*tables)}, without transactions at the source, kept what it had done before"
    if not tables:
        kept = f"whether a table without transactions kept what it had done before is unknown ({why})"
    text = f"a statement ended with error {statement.error}, and {kept}; with InnoDB the replica keeps nothing: {shown(statement)}"
    return stop("statement_failed_partway", 0, text, KEEP_ENGINES, SKIP)


def xa_changes_plain_tables(statement: LoggedQuery | None, tables: list[TableName], error: int) -> Untranslatable:
    """A prepared XA transaction changes something that remains however it ends. `tables` (): it defines a temporary table."""
    if not tables:
        what = "it creates or drops a temporary table, which the replica takes in no transaction"
    elif error:
        what = f"it changes {named(*tables)}, without transactions, which the replica takes in none"
    else:
        what = f"{named(*tables)}, without transactions at the source, keeps its changes however it ends, and InnoDB does not"
    text = f"an XA transaction is prepared here and ends in a later transaction, and {what}: {shown(statement)}"
    way = (
        "make its changes on the replicas by hand, then `view skip`: what ends the XA transaction is then left out too"
    )
    return stop("xa_without_transactions", error, text, way)


def xa_prepared(xid: str, title: str) -> Untranslatable:
    """An XA transaction is prepared in one transaction of the binlog and committed in another."""
    return stop(
        "xa_prepared_transaction",
        ErrorCode.ER_SLAVE_RELAY_LOG_READ_FAILURE,
        f"XA transaction {xid} is prepared here and ends in a later transaction; {title} loses it when it stops between them",
        "commit XA transactions in one phase on the source, or use none",
        f"{SKIP}: what ends it is then left out too",
    )


def partial_updates(title: str) -> Untranslatable:
    """Return the stop at update events that contain changes of JSON values only."""
    text = f"rows whose JSON columns are logged as changes only (Partial_update_rows), which {title} cannot read"
    return stop(
        "partial_update_rows",
        ErrorCode.ER_SLAVE_RELAY_LOG_READ_FAILURE,
        text,
        "SET GLOBAL binlog_row_value_options='' on the source",
        SKIP,
    )


def payload_unreadable(why: str, way: str) -> Untranslatable:
    """Return the stop at a compressed transaction that cannot be unpacked."""
    text = f"the transaction is compressed and cannot be unpacked: {why}"
    return stop("compressed_transaction", ErrorCode.ER_SLAVE_RELAY_LOG_READ_FAILURE, text, way)


def tagged_gtid(gtid: str, title: str) -> Untranslatable:
    """Return the stop at a GTID with a tag, which the view must keep."""
    return stop(
        "tagged_gtid",
        ErrorCode.ER_SLAVE_RELAY_LOG_READ_FAILURE,
        f"the transaction has the GTID {gtid}, and {title} does not support tags",
        "use no tags on the source (gtid_next)",
        'use a view with gtids = "anonymous"',
        "or `view skip`: its GTID is lost then",
    )


def mariadb_gtid_missing() -> Untranslatable:
    """The server wrote no GTIDs."""
    return stop(
        "mariadb_gtid_missing",
        0,
        "the transaction has no GTID: servers before MariaDB 10.0 write none, and the view's GTIDs are made of the source's",
        "begin the view with the first file of MariaDB 10.0 or later (`start`), or replicate through such a server",
    )


def sequence_not_increasing(domain: int, sequence: int, last: int) -> Untranslatable:
    """The number does not increase: replicas would take the transaction for one that they have."""
    return stop(
        "sequence_not_increasing",
        0,
        f"the sequence number {sequence} of domain {domain} follows {last}: the GTIDs of a domain do not increase, and replicas would "
        "skip the transaction silently",
        "set gtid_strict_mode = ON at the source, and give each server that is written to its own gtid_domain_id. This "
        "transaction gets no "
        "GTID: make its changes on the replicas by hand, then `view skip`; or begin another view after it, and seed its replicas again",
    )


def sequence_too_large(domain: int, sequence: int) -> Untranslatable:
    """The number is too large: MySQL's numbers have 63 bits."""
    text = f"the sequence number {sequence} of domain {domain} is above what a GTID of MySQL may have"
    return stop(
        "sequence_too_large",
        ErrorCode.ER_MALFORMED_GTID_SPECIFICATION,
        text,
        "give the source another gtid_domain_id",
        SKIP,
    )


def commits_inside_transaction() -> Untranslatable:
    """A statement that commits follows others of its transaction."""
    return stop(
        "statement_commits",
        0,
        "a statement that becomes two, of which the first commits, follows others of its transaction",
        "write DROP TABLE IF EXISTS and CREATE TABLE in place of CREATE OR REPLACE at the source",
        SKIP,
    )
