"""The effects that a source kept of rolled back statements: changes of tables without transactions, and temporary tables.

A source writes a rolled back transaction, or ROLLBACK TO a savepoint, only where some effect of it stayed. On a replica whose tables
all have an engine with transactions that would be lost, and the GTID of a group that ends with ROLLBACK is never executed. So what was
undone is left out here, and what stayed is kept, where it is certain which is which.
"""

from collections.abc import Iterable

from protocol.errors import ProtocolError
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.server_version import version_numbers
from protocol.sql.statements.named_tables import StatementTables, read_tables, statement_tables
from protocol.sql.tables.source_table import TableName
from relay.view.rules.group_parts import GroupPart, PartKind
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.sub_transactions import MOST_RANGES, PartRanges
from relay.view.rules.tables.definitions_learned import learn
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.stops import transaction_stops
from relay.view.stops.stop_reason import TableUnknown, named

_CHANGES = (PartKind.STATEMENT, PartKind.ROWS)
# From here on rows of tables without transactions are in groups of their own (tried: 5.6.24; source of 5.5).
_ROWS_APART_SINCE = (5, 5, 0)


class RolledBackEffects:
    """Says of the parts of a group, one after the other, which of them the source's tables have kept."""

    def __init__(self, undone: "UndoneParts", engines: TableEngines, server_version: str) -> None:
        self._undone = undone
        self._engines = engines
        self._server_version = server_version
        self._changed: set[TableName] = set()

    def stays(self, part: GroupPart) -> bool:
        """Return whether a part was kept; savepoints stay where nothing was undone. Its definitions are learned.

        Raises: Untranslatable.
        """
        stays = not self._undone.any or (part.kind in _CHANGES and self._was_kept(part))
        if part.query is not None and part.kind is PartKind.STATEMENT:
            learn(self._engines, part.query)
        return stays

    def _was_kept(self, part: GroupPart) -> bool:
        if part not in self._undone:
            return True
        if part.kind is PartKind.ROWS:
            if _rows_stay(part, self._engines, self._server_version):
                return True
            self._changed.update(part.tables)
            return False
        tables = _read(part)
        if _statement_stays(part, tables, self._engines, self._changed):
            return True
        self._changed.update(tables.writes)
        return False


def learn_all(engines: TableEngines, parts: Iterable[GroupPart]) -> None:
    """Learn what the statements define."""
    for part in parts:
        if part.query is not None and part.kind is PartKind.STATEMENT:
            learn(engines, part.query)


class UndoneParts:
    """The changes of a group that were rolled back, by the savepoints that went by; all of them where `all` is set."""

    def __init__(self) -> None:
        self.all = False
        self._ranges = PartRanges()
        self._savepoints: dict[bytes, tuple[int, int]] = {}
        self._changes = 0

    @property
    def any(self) -> bool:
        """True if something was rolled back."""
        return self.all or bool(self._ranges)

    def see(self, part: GroupPart) -> None:
        """Take the next part. Raises: Untranslatable."""
        if part.kind in _CHANGES:
            self._changes += 1
        elif part.kind is PartKind.SAVEPOINT:
            self._savepoints.pop(part.name, None)
            self._savepoints[part.name] = (part.start, self._changes)
            if len(self._savepoints) > MOST_RANGES:
                raise transaction_stops.too_large(f"more than {MOST_RANGES} savepoints")
        elif part.kind in (PartKind.ROLLBACK_TO, PartKind.RELEASE):
            if part.name not in self._savepoints:
                raise transaction_stops.uncertain_rollback("the savepoint is not in the transaction", part.query)
            at, changes = self._savepoints[part.name]
            goes_back = part.kind is PartKind.ROLLBACK_TO
            while self._savepoints:
                name, one = self._savepoints.popitem()
                if one[0] < at or (one[0] == at and goes_back):
                    self._savepoints[name] = one
                    break
            if goes_back and changes < self._changes:
                self._ranges.add(at, part.start)

    def __contains__(self, part: GroupPart) -> bool:
        return self.all or part.start in self._ranges


def _rows_stay(part: GroupPart, engines: TableEngines, server_version: str) -> bool:
    """Return whether rows that were undone stayed. Raises: Untranslatable."""
    stay: set[bool] = set()
    for name in part.tables:
        facts = engines.facts(name)
        keeps = facts.keeps_rollbacks if facts is not None else None
        if keeps is None and version_numbers(server_version) >= _ROWS_APART_SINCE:
            keeps = False
        if keeps is None:
            raise _unknown(name, f"which engine {named(name)} has", None)
        stay.add(keeps)
    if len(stay) > 1:
        raise transaction_stops.uncertain_rollback(f"one statement changed {named(*part.tables)}", None)
    return True in stay


def _unknown(name: TableName, what: str, query: LoggedQuery | None) -> TableUnknown:
    return TableUnknown(transaction_stops.uncertain_rollback(f"it is not known {what}", query).reason, name)


def _read(part: GroupPart) -> StatementTables:
    assert part.query is not None
    try:
        return statement_tables(part.query)
    except (UnsupportedSyntax, ProtocolError) as error:
        raise transaction_stops.uncertain_rollback(str(error), part.query) from error


def _statement_stays(part: GroupPart, tables: StatementTables, engines: TableEngines, changed: set[TableName]) -> bool:
    """Return whether a statement's effects stayed, though it was rolled back. Raises: Untranslatable where that is not certain."""
    query = part.query
    assert query is not None
    if tables.calls:
        raise transaction_stops.uncertain_rollback("it may call stored functions", query)
    stays = tables.is_temporary_definition
    if not stays:
        stay: set[bool] = set()
        for name in tables.writes:
            facts = engines.facts(name, query.thread_id)
            keeps = facts.keeps_rollbacks if facts is not None else None
            if facts is None or keeps is None:
                raise _unknown(name, f"which engine {named(name)} has", query)
            if not facts.temporary and engines.triggers_of(name) != []:
                raise transaction_stops.uncertain_rollback(f"{named(name)} has triggers, or may have some", query)
            stay.add(keeps)
        if len(stay) > 1:
            raise transaction_stops.uncertain_rollback("it changed tables with and without transactions", query)
        stays = True in stay
    if stays and changed and not tables.drops:
        _check_reads(part, tables, engines, changed)
    return stays


def _check_reads(part: GroupPart, tables: StatementTables, engines: TableEngines, changed: set[TableName]) -> None:
    """Check that what stayed was not computed from what was undone. Raises: Untranslatable."""
    query = part.query
    assert query is not None
    undone = {name[1].lower() for name in changed}
    for _schema, word in tables.words:
        if word.lower() in undone:
            raise transaction_stops.uncertain_rollback(f"it may read {word}, whose changes were undone", query)
    try:
        read = read_tables(query)
    except UnsupportedSyntax as error:
        raise transaction_stops.uncertain_rollback(str(error), query) from error
    for name in read:
        if engines.facts(name, query.thread_id) is None:
            raise _unknown(name, f"what {named(name)} is", query)
