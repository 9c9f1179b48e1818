"""What a source kept of what it rolled back: changes of tables without transactions, and temporary tables.

A source writes a rolled back transaction, or ROLLBACK TO a savepoint, only where something of it stayed. On a replica whose tables
are all of an engine with transactions that would be lost, and the GTID of a group that ends with ROLLBACK is never executed.
So what was undone is left out here, and what stayed is kept, where it is certain which is which.
"""

from collections.abc import Iterable

from protocol.binlog.format_description import version_numbers
from protocol.errors import ProtocolError
from relay.schema_history.tables.ddl_tokens import NotSure
from relay.schema_history.tables.source_table import TableName
from relay.view.rules import stop_reasons
from relay.view.rules.definitions_learned import learn
from relay.view.rules.group_parts import GroupPart, PartKind
from relay.view.rules.statement.named_tables import StatementTables, read_tables, statement_tables
from relay.view.rules.table_engines import TableEngines

_CHANGES = (PartKind.STATEMENT, PartKind.ROWS)
# From here on rows of tables without transactions stand in groups of their own (tried: 5.6.24; source of 5.5).
_ROWS_APART_SINCE = (5, 5, 0)


def left_of_undone(parts: list[GroupPart], engines: TableEngines, server_version: str) -> list[GroupPart]:
    """The parts that the source's tables have kept, in order; savepoints stay where nothing was undone.

    `parts`: without the GTID event, BEGIN and the end; the last is ROLLBACK where all is undone. What they define is learned on
    the way. Raises: CannotBeKept.
    """
    undone = _undone(parts)
    if not undone and not (parts and parts[-1].kind is PartKind.ROLLBACK):
        learn_all(engines, parts)
        return parts
    kept: list[GroupPart] = []
    changed: set[TableName] = set()
    for number, part in enumerate(parts):
        if part.kind not in _CHANGES:
            continue
        if number not in undone:
            kept.append(part)
        elif part.kind is PartKind.ROWS:
            if _rows_stay(part, engines, server_version):
                kept.append(part)
            else:
                changed.update(part.tables)
        else:
            tables = _read(part)
            if _statement_stays(part, tables, engines, changed):
                kept.append(part)
            else:
                changed.update(tables.writes)
        if part.query is not None:
            learn(engines, part.query)
    return kept


def learn_all(engines: TableEngines, parts: Iterable[GroupPart]) -> None:
    """What the statements define is known from now on."""
    for part in parts:
        if part.query is not None and part.kind is PartKind.STATEMENT:
            learn(engines, part.query)


def _undone(parts: list[GroupPart]) -> set[int]:
    """The numbers of the parts that were rolled back. Raises: CannotBeKept."""
    if parts and parts[-1].kind is PartKind.ROLLBACK:
        return {number for number, part in enumerate(parts) if part.kind in _CHANGES}
    undone: set[int] = set()
    savepoints: dict[bytes, int] = {}
    for number, part in enumerate(parts):
        if part.kind is PartKind.SAVEPOINT:
            savepoints.pop(part.name, None)
            savepoints[part.name] = number
        elif part.kind in (PartKind.ROLLBACK_TO, PartKind.RELEASE):
            if part.name not in savepoints:
                raise stop_reasons.rolled_back_unclear("the savepoint is not in the transaction", part.query)
            at = savepoints[part.name]
            keep_itself = part.kind is PartKind.ROLLBACK_TO
            savepoints = {name: one for name, one in savepoints.items() if one < at or (one == at and keep_itself)}
            if keep_itself:
                undone.update(one for one in range(at, number) if parts[one].kind in _CHANGES)
    return undone


def _rows_stay(part: GroupPart, engines: TableEngines, server_version: str) -> bool:
    """Whether rows that were undone stayed. Raises: CannotBeKept."""
    stay: set[bool] = set()
    for name in part.tables:
        facts = engines.facts(name)
        keeps = facts.keeps_rollbacks if facts is not None else None
        if keeps is None and version_numbers(server_version) >= _ROWS_APART_SINCE:
            keeps = False
        if keeps is None:
            raise stop_reasons.rolled_back_unclear(f"nobody knows the engine of {stop_reasons.named([name])}", None)
        stay.add(keeps)
    if len(stay) > 1:
        raise stop_reasons.rolled_back_unclear(f"one statement changed {stop_reasons.named(part.tables)}", None)
    return True in stay


def _read(part: GroupPart) -> StatementTables:
    assert part.query is not None
    try:
        return statement_tables(part.query)
    except (NotSure, ProtocolError) as error:
        raise stop_reasons.rolled_back_unclear(str(error), part.query) from error


def _statement_stays(part: GroupPart, tables: StatementTables, engines: TableEngines, changed: set[TableName]) -> bool:
    """Whether what a statement did stayed, though it was rolled back. Raises: CannotBeKept where that is not certain."""
    query = part.query
    assert query is not None
    if tables.calls:
        raise stop_reasons.rolled_back_unclear("it may call stored functions", query)
    stays = tables.is_temporary_definition
    if not stays:
        stay: set[bool] = set()
        for name in tables.writes:
            facts = engines.facts(name, query.thread_id)
            keeps = facts.keeps_rollbacks if facts is not None else None
            if facts is None or keeps is None:
                raise stop_reasons.rolled_back_unclear(
                    f"nobody knows the engine of {stop_reasons.named([name])}", query
                )
            if not facts.temporary and engines.triggers_of(name) != []:
                raise stop_reasons.rolled_back_unclear(
                    f"{stop_reasons.named([name])} has triggers, or may have some", query
                )
            stay.add(keeps)
        if len(stay) > 1:
            raise stop_reasons.rolled_back_unclear("it changed tables with and without transactions", query)
        stays = True in stay
    if stays and changed and not tables.drops:
        _check_reads(part, tables, engines, changed)
    return stays


def _check_reads(part: GroupPart, tables: StatementTables, engines: TableEngines, changed: set[TableName]) -> None:
    """Raises: CannotBeKept where what stayed may have been computed from what was undone."""
    query = part.query
    assert query is not None
    undone = {name[1].lower() for name in changed}
    for _schema, word in tables.words:
        if word.lower() in undone:
            raise stop_reasons.rolled_back_unclear(f"it may read {word}, whose changes were undone", query)
    try:
        read = read_tables(query)
    except NotSure as error:
        raise stop_reasons.rolled_back_unclear(str(error), query) from error
    for name in read:
        if engines.facts(name, query.thread_id) is None:
            raise stop_reasons.rolled_back_unclear(f"nobody knows what {stop_reasons.named([name])} is", query)
