"""Transactions that change tables with and without transactions, which servers with GTIDs refuse (1785), are split: each run of
statements that may be together becomes one.

The order is that of the source's binlog: a replica of the mirror applies it so, and a statement may read what the one before it wrote.
Another order is right only where no statement reads the other tables, which triggers and functions hide.
"""

from protocol.errors import ProtocolError
from protocol.sql.engines import has_transactions
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.statements.named_tables import written_tables
from protocol.sql.tables.source_table import TableName
from relay.view.rules.group_parts import GroupPart, PartKind
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.stops import transaction_stops


def is_plain(part: GroupPart, engines: TableEngines) -> bool:
    """Return whether it changes a table that has no transactions on the replica either, and must be a transaction of its own.

    Raises: Untranslatable for one that changes tables of both kinds.
    """
    kinds = _by_kind(part, engines)
    if kinds[True] and kinds[False]:
        raise transaction_stops.both_engines(part.query, kinds[True], kinds[False])
    return bool(kinds[True])


def changes_without_transactions(part: GroupPart, engines: TableEngines) -> list[TableName]:
    """Return the tables that a part of a transaction changes, and that are known to keep at the source what is rolled back."""
    return _by_kind(part, engines)[True]


def _by_kind(part: GroupPart, engines: TableEngines) -> dict[bool, list[TableName]]:
    """Return the tables that it changes, except temporary ones; key True: those that are known to have no transactions."""
    kinds: dict[bool, list[TableName]] = {True: [], False: []}
    if part.kind is PartKind.ROWS:
        tables, thread_id = list(part.tables), None
    elif part.kind is PartKind.STATEMENT and part.query is not None:
        thread_id = part.query.thread_id
        try:
            tables = list(engines.behind_views(written_tables(part.query)))
        except (UnsupportedSyntax, ProtocolError):
            return kinds  # where it is one after all, the replica says so
        fired = [trigger for table in tables for trigger in engines.known_triggers(table)]
        tables += [name for trigger in fired for change in trigger.body.changes for name in change.tables]
    else:
        return kinds
    for name in tables:
        facts = engines.facts(name, thread_id)
        if facts is None or not facts.temporary:
            kinds[facts is not None and has_transactions(facts.engine) is False].append(name)
    return kinds
