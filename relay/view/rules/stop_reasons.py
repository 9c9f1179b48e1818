"""Why a view stops before a group: each reason with its words, in one place."""

from typing import Final

from protocol.binlog.event_type import event_type_name
from protocol.binlog.statement_text import one_line
from protocol.sql.tables.source_table import TableName
from relay.view.rules.group import CannotBeKept, StopReason
from relay.view.rules.statement.logged_query import LoggedQuery

_SHOWN_CHARACTERS: Final = 160
_INNODB: Final = 'A view with engines = "innodb" keeps it'
_SKIP: Final = "or repair the tables by hand and `view skip`"
_KEEP: Final = 'A view with engines = "keep" keeps it'
_KNOWN: Final = "Tell the engines of tables from before the archive in the view's known_engines"
_REPEAT: Final = "do on the replicas what it did at the source, and `view skip`"
_ROWS: Final = "binlog_format = ROW at the source has no such statements."
_NATIVE: Final = (
    "Replicas with innodb_native_foreign_keys = ON in my.cnf do as the source: "
    'then write foreign_keys = "innodb" for the view'
)


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


def too_large(why: str) -> CannotBeKept:
    """A group of which more would have to be held than a view holds."""
    return _stop(
        "group_too_large",
        f"the transaction cannot be taken apart: {why}",
        0,
        f'Where it mixes engines, a view with engines = "innodb" need not split it. Or look at it with mysqlbinlog, {_SKIP}.',
    )


def without_end(why: str, query: LoggedQuery | None) -> CannotBeKept:
    """A group that the source's crash left without its end, and of which the source or its replicas may have kept something."""
    return _stop(
        "group_without_end",
        f"the source crashed inside this transaction, which has no end, and what of it was kept is not certain ({why}): {shown(query)}",
        0,
        "Compare the tables that it changed with the source's, repair them on the replicas, then `view skip`: the view has nothing in "
        "its place. Where all of them are of InnoDB, and the source's next file follows, nothing was kept: skip it.",
    )


def open_end(statement: str) -> CannotBeKept:
    """A file that ended inside a transaction, and the source went on without a start."""
    return _stop(
        "group_without_end",
        "the file before this one ends inside a transaction, and the source went on: it could not write the rest of it (a full disk, a "
        f"limit), nor perhaps of others. The view has nothing of it, a replica of the mirror commits what it got: {statement}",
        0,
        "Compare all tables that change with the source's, repair them on the replicas, then `view skip`: nothing of this file is "
        "left out.",
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
    return _stop("definition_not_for_innodb", f"{why}: {shown(query)}", error, f"{_KEEP}; {_SKIP}.")


def failed_half_way(query: LoggedQuery, tables: tuple[TableName, ...]) -> CannotBeKept:
    """A statement that failed, and what it had done stayed."""
    return _stop(
        "failed_half_way",
        f"a statement ended with error {query.error}, and {named(tables)}, without transactions at the source, kept what it had done "
        f"before; with InnoDB the replica keeps nothing: {shown(query)}",
        0,
        f"{_KEEP}; {_SKIP}.",
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


def xa_prepared(query: LoggedQuery | None, tables: list[TableName], error: int) -> CannotBeKept:
    """A prepared XA transaction with something that stays however it ends; no tables: a definition of a temporary one."""
    if not tables:
        what = "it makes or drops a temporary table, which the replica takes in no transaction"
    elif error:
        what = f"it changes {named(tables)}, without transactions, which the replica takes in none"
    else:
        what = f"{named(tables)}, without transactions at the source, keeps its changes however it ends, and InnoDB does not"
    return _stop(
        "xa_without_transactions",
        f"an XA transaction is prepared here and ends in a later group, and {what}: {shown(query)}",
        error,
        f"{_REPEAT.capitalize()}; what ends the XA transaction is then left out too.",
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
    return _hangs_on_order(
        f"what the statement does hangs on the order of rows in {named(tables)}, and InnoDB gives them in another than the source's "
        f"engine: {shown(query)}"
    )


def fulltext_search(query: LoggedQuery, tables: list[TableName]) -> CannotBeKept:
    """A statement that finds other rows by MATCH where the table is of another engine."""
    return _stop(
        "fulltext_search",
        f"what MATCH ... AGAINST finds in {named(tables)} InnoDB finds otherwise: shorter words, and such as stand in every other row: "
        f"{shown(query)}",
        0,
        f'A view with engines = "keep" keeps it; binlog_format = MIXED or ROW at the source writes rows in its place; {_SKIP}.',
    )


def row_order_unknown(query: LoggedQuery, why: str) -> CannotBeKept:
    """A statement of which nobody can tell whether it hangs on the order of rows of a table that becomes another."""
    return _hangs_on_order(
        "it cannot be told whether what the statement does hangs on the order of rows in a table without transactions, which InnoDB "
        f"gives in another ({why}): {shown(query)}"
    )


def _hangs_on_order(text: str) -> CannotBeKept:
    return _stop(
        "row_order",
        text,
        0,
        f"{_KEEP}; binlog_format = MIXED or ROW at the source writes rows in its place; {_SKIP}.",
    )


def failed_unclear(query: LoggedQuery, why: str) -> CannotBeKept:
    """A statement that failed, and nobody can tell in which tables it had done something."""
    return _stop(
        "failed_half_way",
        f"a statement ended with error {query.error}, and it cannot be told whether a table without transactions kept what it had done "
        f"before; with InnoDB the replica keeps nothing ({why}): {shown(query)}",
        0,
        f"{_KEEP}; {_SKIP}.",
    )


def references_not_understood(query: LoggedQuery) -> CannotBeKept:
    """A definition with REFERENCES, and nobody understands where that stands."""
    return _stop(
        "definition_not_understood",
        "a definition with REFERENCES cannot be read: behind a column the source forgets it, and replicas make a foreign key of it: "
        f"{shown(query)}",
        0,
        "Make the table on the replicas by hand, as SHOW CREATE TABLE at the source says, and `view skip`.",
    )


def match_not_understood(query: LoggedQuery) -> CannotBeKept:
    """A foreign key with ON DELETE or ON UPDATE behind MATCH, and nobody knows what the source made of it."""
    return _stop(
        "definition_not_understood",
        "a foreign key has ON DELETE or ON UPDATE behind MATCH; replicas act by it, and the source forgets it, but perhaps not with "
        f"foreign_key_checks = 0 or in a comment for servers: {shown(query)}",
        0,
        "Run the definition on the replicas by hand without MATCH, with the actions that SHOW CREATE TABLE at the source shows, and "
        "`view skip`.",
    )


def commented_key(query: LoggedQuery) -> CannotBeKept:
    """A part of a foreign key stands in a comment for servers, which InnoDB of the source passes over."""
    return _stop(
        "definition_not_understood",
        "a foreign key, or a part of one, stands in a comment /*! */; replicas act by it, and the source's InnoDB reads foreign keys "
        f"without any comments: {shown(query)}",
        0,
        "Run the definition on the replicas by hand, with the keys that SHOW CREATE TABLE at the source shows, and `view skip`.",
    )


def not_understood(query: LoggedQuery) -> CannotBeKept:
    """A definition with an engine that becomes another, and nobody understands the rest of it."""
    return _stop(
        "definition_not_understood",
        f"a definition with an engine without transactions cannot be read: {shown(query)}",
        0,
        f"{_KEEP}; {_SKIP}.",
    )


def replace_of_parent(query: LoggedQuery, table: TableName, children: list[TableName]) -> CannotBeKept:
    """REPLACE of rows that others refer to with ON DELETE CASCADE or SET NULL; no children: nobody knows whether some do."""
    if children:
        told = f"{named(children)} refers to rows of {named([table])}"
        answer = ""
    else:
        told = f"nobody knows whether others refer to rows of {named([table])}, which is older than the archive,"
        answer = "If none do (information_schema.REFERENTIAL_CONSTRAINTS at the source), name it in the view's plain_tables. "
    return _stop(
        "replace_of_parent",
        f"{told} with ON DELETE CASCADE or SET NULL; where a row is replaced, servers before 9.6 delete or empty those, and newer ones "
        f"leave them: {shown(query)}",
        0,
        f"{answer}{_NATIVE}. Or {_REPEAT}. {_ROWS}",
    )


def cascade_unfinished(query: LoggedQuery, table: TableName, behind: list[TableName]) -> CannotBeKept:
    """DELETE whose cascade a server that carries out foreign keys itself does not finish."""
    return _stop(
        "cascade_unfinished",
        f"a DELETE of {named([table])} comes to {named(behind)} more than once by ON DELETE CASCADE, and goes on from there; servers "
        f"from 9.6 on leave rows behind: {shown(query)}",
        0,
        f"{_NATIVE}. Or {_REPEAT}. {_ROWS}",
    )


def replace_unclear(query: LoggedQuery, why: str) -> CannotBeKept:
    """REPLACE of which nobody can tell what table it is about."""
    return _stop("replace_of_parent", _unclear(query, why), 0, f"{_REPEAT.capitalize()}. {_ROWS}")


def cascade_unclear(query: LoggedQuery, why: str) -> CannotBeKept:
    """DELETE of which nobody can tell what tables it is about, where some have cascades over several."""
    return _stop("cascade_unfinished", _unclear(query, why), 0, f"{_REPEAT.capitalize()}. {_ROWS}")


def delete_unclear(query: LoggedQuery, why: str) -> CannotBeKept:
    """DELETE of which nobody can tell what tables it is about, where some have triggers or a cascade."""
    return _stop("delete_of_several", _unclear(query, why), 0, f"{_REPEAT.capitalize()}. {_ROWS}")


def _unclear(query: LoggedQuery, why: str) -> str:
    return (
        f"it cannot be told which tables the statement is about ({why}), and of some, which have foreign keys to them or triggers, "
        f"other rows would be left than at the source: {shown(query)}"
    )


def delete_of_several(query: LoggedQuery, why: str) -> CannotBeKept:
    """DELETE of several tables, whose order counts."""
    return _stop(
        "delete_of_several",
        "one DELETE of several tables; what it leaves, and what triggers do, hangs on which of them the server begins with "
        f"({why}): {shown(query)}",
        0,
        f"{_REPEAT.capitalize()}. Tables from before the archive that have no DELETE trigger, and to which nothing refers with "
        f"ON DELETE CASCADE or SET NULL, may be named in the view's plain_tables. {_ROWS}",
    )


def update_of_several(query: LoggedQuery, tables: list[TableName], triggered: list[TableName]) -> CannotBeKept:
    """UPDATE of several tables, in whose order triggers fire."""
    return _stop(
        "update_of_several",
        f"one UPDATE of several tables ({named(tables)}), and UPDATE of {named(triggered)} fires triggers; in which order they fire is "
        f"the server's choice: {shown(query)}",
        0,
        f"{_REPEAT.capitalize()}. {_ROWS}",
    )


def inside(told: str, stopped: CannotBeKept) -> CannotBeKept:
    """What stops a view, where it stands in a trigger or a function: `the trigger d.tr`."""
    return CannotBeKept(stopped.reason._replace(text=f"in {told}, which the statement sets off, {stopped.reason.text}"))
