"""Why a view stops before a group: each reason with its words, in one place."""

from typing import Final

from protocol.binlog.event_type import event_type_name
from protocol.binlog.statement_text import one_line
from relay.schema_history.tables.source_table import TableName
from relay.view.rules.group import CannotBeKept, StopReason
from relay.view.rules.statement.logged_query import LoggedQuery

_SHOWN_CHARACTERS: Final = 160
_INNODB: Final = 'A view with engines = "innodb" keeps it'
_SKIP: Final = "or repair the tables by hand and `view skip`"
_KNOWN: Final = "Tell the engines of tables from before the archive in the view's known_engines"


def shown(query: LoggedQuery | None) -> str:
    """A statement for people, without what its strings hold."""
    from protocol.statements.session.secrets import without_strings

    return "rows" if query is None else without_strings(one_line(query.raw, _SHOWN_CHARACTERS))


def named(tables: "list[TableName] | tuple[TableName, ...]") -> str:
    """Tables for people."""
    return ", ".join(".".join(name) for name in tables)


def _stop(name: str, text: str, error: int, advice: str) -> CannotBeKept:
    return CannotBeKept(StopReason(name, text, error, advice))


def event_type(kind: int, error: int, advice: str) -> CannotBeKept:
    """An event that no replica of the target reads."""
    return _stop(
        "event_unsupported",
        f"no replica of this view reads events of type {event_type_name(kind)} ({kind})",
        error,
        advice,
    )


def incident() -> CannotBeKept:
    """The source says that it lost something."""
    return _stop(
        "source_incident",
        "the source wrote here that it lost changes (Incident event)",
        1590,
        f"Compare the tables of source and replicas, repair them, {_SKIP.removeprefix('or repair the tables by hand and ')}.",
    )


def malformed(why: str) -> CannotBeKept:
    """What is in the event is none."""
    return _stop("group_malformed", why, 0, "`binlog-relay verify` tells more; fetch the file from the source again.")


def too_large() -> CannotBeKept:
    """A group too large to be taken apart."""
    return _stop(
        "group_too_large",
        "a transaction that ends with ROLLBACK and is too large to be taken apart",
        0,
        f"Look at it with mysqlbinlog, {_SKIP}.",
    )


def both_engines(query: LoggedQuery | None, plain: list[TableName], others: list[TableName]) -> CannotBeKept:
    """One statement writes tables with and without transactions."""
    return _stop(
        "statement_mixes_engines",
        f"one statement changes {named(plain)}, without transactions, and {named(others)}, with them: {shown(query)}",
        1785,
        f"{_INNODB}; {_SKIP}.",
    )


def create_select(query: LoggedQuery, engine: str) -> CannotBeKept:
    """CREATE TABLE … SELECT into a table without transactions."""
    return _stop(
        "create_select", f"CREATE TABLE ... SELECT into {engine}: {shown(query)}", 1786, f"{_INNODB}; {_SKIP}."
    )


def partitioned(query: LoggedQuery, engine: str) -> CannotBeKept:
    """A partitioned table of an engine that cannot."""
    return _stop(
        "partitions_not_supported", f"a partitioned {engine} table: {shown(query)}", 1178, f"{_INNODB}; {_SKIP}."
    )


def engine_gone(query: LoggedQuery, engine: str, error: int) -> CannotBeKept:
    """An engine that the target does not have, or that cannot be another."""
    return _stop(
        "engine_not_supported",
        f"the engine {engine} has nothing in its place on the replica: {shown(query)}",
        error,
        f"Make the table on the replicas by hand, {_SKIP}.",
    )


def not_for_innodb(query: LoggedQuery, why: str, error: int) -> CannotBeKept:
    """A definition that InnoDB refuses, or takes for something else."""
    return _stop(
        "definition_not_for_innodb", f"{why}: {shown(query)}", error, f'A view with engines = "keep" keeps it; {_SKIP}.'
    )


def failed_half_way(query: LoggedQuery, tables: tuple[TableName, ...]) -> CannotBeKept:
    """A statement that failed, and what it had done stayed."""
    return _stop(
        "failed_half_way",
        f"a statement ended with error {query.error}, and {named(tables)}, without transactions at the source, kept what it had done "
        f"before; with InnoDB the replica keeps nothing: {shown(query)}",
        0,
        f'A view with engines = "keep" keeps it; {_SKIP}.',
    )


def rolled_back_unclear(why: str, query: LoggedQuery | None) -> CannotBeKept:
    """It is not certain what the source kept of what it rolled back."""
    return _stop(
        "rollback_unclear",
        f"a part of the transaction was rolled back, and what the source's tables kept of it is not certain ({why}): {shown(query)}",
        0,
        f"{_KNOWN}, {_SKIP}.",
    )


def nothing_kept() -> CannotBeKept:
    """A group that ends with ROLLBACK, and nobody knows why it is there."""
    return _stop(
        "rollback_unclear",
        "the transaction ends with ROLLBACK, and a source writes that only where a table kept something of it; none of its tables is "
        "known to be without transactions",
        0,
        f"{_KNOWN}, {_SKIP}.",
    )


def two_gtids() -> CannotBeKept:
    """A group with a GTID of its own that would have to become several."""
    return _stop(
        "gtid_for_several",
        "the transaction has a GTID of the source, and would have to become several",
        1785,
        f"{_INNODB}; {_SKIP}.",
    )


def password_hash(query: LoggedQuery) -> CannotBeKept:
    """SET PASSWORD with a hash, which newer servers take for the password."""
    return _stop(
        "password_hash",
        "SET PASSWORD with a hash, which servers from 5.7.6 on take for the password itself",
        0,
        'Give the view account_statements = "skip", and make the accounts on the replicas by hand.',
    )


def row_order(query: LoggedQuery, tables: list[TableName]) -> CannotBeKept:
    """A statement that does something else where a table gives its rows in another order."""
    return _stop(
        "row_order",
        f"what the statement does hangs on the order of rows in {named(tables)}, and InnoDB gives them in another than the source's "
        f"engine: {shown(query)}",
        0,
        f'A view with engines = "keep" keeps it; binlog_format = MIXED or ROW at the source writes rows in its place; {_SKIP}.',
    )


def not_understood(query: LoggedQuery) -> CannotBeKept:
    """A definition with an engine that becomes another, and nobody understands the rest of it."""
    return _stop(
        "definition_not_understood",
        f"a definition with an engine without transactions cannot be read: {shown(query)}",
        0,
        f'A view with engines = "keep" keeps it; {_SKIP}.',
    )
