"""The effects of statements in triggers and stored functions, and the order in which the triggers of several tables fire.

A server that gets a statement runs these bodies itself, so a REPLACE or DELETE in one is checked as if it was in the binlog. Bodies are
known where the archive contains their definitions.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from protocol.errors import ProtocolError
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.server_version import version_numbers
from protocol.sql.statements.named_tables import called_routines, load_replaces
from protocol.sql.statements.order_dependence import verb_of
from protocol.sql.tables.source_table import TableName
from relay.source_tables.programs import BodyChange
from relay.view.rules.foreign_key_rules import check_removal, check_removals, may_differ
from relay.view.rules.group_parts import GroupPart, PartKind
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.routine_body import change_of
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.stops import statement_stops
from relay.view.stops.stop_reason import TableUnknown, Untranslatable

_NO_THREAD: Final = -1
_REMOVALS: Final = ("REPLACE", "DELETE")
_NO_CALLS: Final = ("ALTER", "DROP", "RENAME", "TRUNCATE", "GRANT", "REVOKE")


class TriggerRisk(NamedTuple):
    """The `tables` whose triggers may have other effects on the target; `calls`: a known function may; `several`: some table has UPDATE
    triggers.
    """

    tables: tuple[TableName, ...]
    calls: bool
    several: bool

    def __bool__(self) -> bool:
        return bool(self.tables) or self.calls or self.several


def fired_risk(engines: TableEngines, settings: ViewSettings) -> TriggerRisk:
    """Return the risk by what is known. It covers more than the stops of `check_changes`, for any source version and session."""
    bodies = engines.bodies
    if not bodies or not may_differ(settings):
        return TriggerRisk((), False, False)
    found = bodies.leading_to(lru_cache(None)(lambda change: _may_differ(change, engines, settings)))
    return TriggerRisk(found.tables, found.functions, bodies.any_on_update)


def _may_differ(change: BodyChange, engines: TableEngines, settings: ViewSettings) -> bool:
    if change.several:
        return True
    if settings.foreign_keys == "innodb":
        return False
    tables = engines.behind_views(change.tables)
    if change.verb == "REPLACE":
        return any(
            engines.references.changed_with(table) or not engines.knows_references_to(table, _NO_THREAD)
            for table in tables
        )
    return change.verb == "DELETE" and any(engines.references.left_unfinished(table) for table in tables)


def check_changes(parts: Iterable[GroupPart], engines: TableEngines, settings: ViewSettings) -> None:
    """Check for a statement that may leave other rows on the target, by itself or by what it fires. Raises: Untranslatable."""
    for part in parts:
        check_removals((part,), engines, settings)
        if part.kind is PartKind.STATEMENT and part.query is not None and engines.bodies:
            _check_fired(part.query, engines, settings)


def _check_fired(query: LoggedQuery, engines: TableEngines, settings: ViewSettings) -> None:
    if not may_differ(settings) or version_numbers(query.server_version)[:2] == settings.target_version:
        return
    try:
        verb = verb_of(query)
        if verb in _NO_CALLS or (verb == "CREATE" and not _makes_table(query)):
            return
        changes = _changes(query, verb, engines)
        calls = _known_calls(query, engines)
    except (UnsupportedSyntax, ProtocolError):
        return  # the replica reads it or refuses it
    for change in changes:
        if change.verb == "UPDATE":
            _check_update(query, change, engines)
    for inner, inside in engines.bodies.reached(changes, calls):
        try:
            if inner.verb in _REMOVALS:
                check_removal(query, inner.verb, inner.tables, engines, settings)
            elif inner.verb == "UPDATE":
                _check_update(query, inner, engines)
        except Untranslatable as stopped:
            stop = statement_stops.inside(inside.told, stopped)
            raise TableUnknown(stop.reason, stopped.table) if isinstance(stopped, TableUnknown) else stop from stopped


def _changes(query: LoggedQuery, verb: str, engines: TableEngines) -> list[BodyChange]:
    """Return what the statement changes itself, except temporary tables. Raises: UnsupportedSyntax."""
    if verb == "LOAD":
        verb = "REPLACE" if load_replaces(query) else "INSERT"
    if verb not in ("INSERT", "REPLACE", "UPDATE", "DELETE"):
        return []
    change = change_of(query, verb)
    tables = (name for name in change.tables if not _is_temporary(name, query, engines))
    return [change._replace(tables=engines.behind_views(tables))]


def _is_temporary(name: TableName, query: LoggedQuery, engines: TableEngines) -> bool:
    facts = engines.facts(name, query.thread_id)
    return facts is not None and facts.temporary


def _known_calls(query: LoggedQuery, engines: TableEngines) -> list[TableName]:
    """Return the known functions that it may call. Raises: UnsupportedSyntax."""
    text = query.raw.lower()
    if not any(not name.isascii() or name.encode() in text for name in engines.bodies.functions):
        return []
    return called_routines(query)


def _makes_table(query: LoggedQuery) -> bool:
    return any(token.upper == "TABLE" for token in query.tokens[:3])


def _check_update(query: LoggedQuery, change: BodyChange, engines: TableEngines) -> None:
    """Check an UPDATE of a join: the server chooses which table's rows it changes at once, and which later. Raises: Untranslatable."""
    triggered = [table for table in change.tables if engines.bodies.has_update_trigger(table)]
    if change.several and len(change.tables) > 1 and triggered:
        raise statement_stops.multi_table_update(query, list(change.tables), triggered)
