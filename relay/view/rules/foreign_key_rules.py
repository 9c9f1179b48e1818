"""REPLACE and DELETE as statements: servers execute them differently than older ones if foreign keys or triggers are concerned.

No server reports it: the statement succeeds on the replica, but leaves other rows than at the source. The checks cover what was tried
with MySQL 5.6.24 and 9.7.4; rows in place of statements are not affected.
"""

from collections.abc import Iterable
from typing import Final

from protocol.errors import ProtocolError
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.server_version import version_numbers
from protocol.sql.statements.named_tables import deletes_from_one, load_replaces, written_tables
from protocol.sql.statements.order_dependence import verb_of
from protocol.sql.tables.source_table import TableName
from relay.source_tables.names import in_lower_case
from relay.source_tables.references import BY_THE_SERVER_SINCE
from relay.view.rules.group_parts import GroupPart, PartKind
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.stops import statement_stops
from relay.view.stops.stop_reason import TableUnknown, named

_REMOVES: Final = ("REPLACE", "DELETE")
_PERHAPS: Final = (*_REMOVES, "LOAD", "WITH", "")
"""The first words of such statements; none: it is not known whether the server reads the comment before it."""


def may_differ(settings: ViewSettings) -> bool:
    """Return whether there may be sources whose REPLACE and DELETE the target executes differently."""
    return settings.target_version >= (5, 7)


def check_removals(parts: Iterable[GroupPart], engines: TableEngines, settings: ViewSettings) -> None:
    """Check for a REPLACE, LOAD DATA … REPLACE or DELETE that may leave other rows on the target. Raises: Untranslatable."""
    for part in parts:
        query = part.query
        if part.kind is PartKind.STATEMENT and query is not None and query.kind.verb in _PERHAPS:
            _check(query, engines, settings)


def _check(query: LoggedQuery, engines: TableEngines, settings: ViewSettings) -> None:
    try:
        verb = verb_of(query)
        if verb == "LOAD":
            verb = "REPLACE" if load_replaces(query) else ""
    except (UnsupportedSyntax, ProtocolError):
        return  # the replica reads it or refuses it
    if verb not in _REMOVES:
        return
    try:
        tables = written_tables(query)
    except (UnsupportedSyntax, ProtocolError) as error:
        _check_unknown(query, verb, str(error), engines, settings)
        return
    check_removal(query, verb, tables, engines, settings)


def check_removal(
    query: LoggedQuery, verb: str, tables: tuple[TableName, ...], engines: TableEngines, settings: ViewSettings
) -> None:
    """Check a REPLACE or DELETE of these tables in `query`, or inside a body that it fires. Raises: Untranslatable."""
    if version_numbers(query.server_version)[:2] == settings.target_version:
        return
    by_others = _carried_out_by_others(query, settings)
    if verb == "REPLACE":
        for table in engines.behind_views(tables) if by_others else ():
            _check_replace(query, table, engines)
        return
    if len(tables) > 1:
        _check_several(query, engines.behind_views(tables), engines)
    if by_others:
        for table in engines.behind_views(tables):
            behind = engines.references.left_unfinished(table)
            if behind:
                raise statement_stops.incomplete_cascade(query, table, behind)


def _carried_out_by_others(query: LoggedQuery, settings: ViewSettings) -> bool:
    """Return whether the source's InnoDB executes foreign keys and the target's server, or the other way round."""
    source = version_numbers(query.server_version)[:2]
    moved = (source >= BY_THE_SERVER_SINCE) != (settings.target_version >= BY_THE_SERVER_SINCE)
    return moved and settings.foreign_keys == "server" and query.foreign_key_checks


def _check_unknown(query: LoggedQuery, verb: str, why: str, engines: TableEngines, settings: ViewSettings) -> None:
    """Check a statement whose tables are unknown, if that matters for some table. Raises: Untranslatable."""
    if version_numbers(query.server_version)[:2] == settings.target_version:
        return
    references, by_others = engines.references, _carried_out_by_others(query, settings)
    if verb == "REPLACE":
        if by_others and references.acting_parents:
            raise statement_stops.tables_unknown("replace_in_parent_table", query, why)
    elif by_others and references.deep_parents:
        raise statement_stops.tables_unknown("incomplete_cascade", query, why)
    elif (references.acting_parents or engines.has_triggers) and not deletes_from_one(query):
        raise statement_stops.tables_unknown("multi_table_delete", query, why)


def _check_replace(query: LoggedQuery, table: TableName, engines: TableEngines) -> None:
    changed = engines.references.changed_with(table)
    if changed or not engines.knows_references_to(table, query.thread_id):
        stop = statement_stops.replace_in_parent_table(query, table, changed)
        raise stop if changed else TableUnknown(stop.reason, table)


def _check_several(query: LoggedQuery, tables: tuple[TableName, ...], engines: TableEngines) -> None:
    """Check a DELETE from several tables: the server chooses the order in which it deletes from the tables of a join, and thereby which
    rows a cascade removes before their triggers fire. Raises: Untranslatable."""
    lower = set(map(in_lower_case, tables))
    for table in tables:
        facts = engines.facts(table, query.thread_id)
        if facts is not None and facts.temporary:
            continue
        if any(trigger.event in ("DELETE", "") for trigger in engines.known_triggers(table)):
            raise statement_stops.multi_table_delete(query, f"{named(table)} has DELETE triggers")
        if not engines.knows_triggers_of(table) and not engines.is_known_plain(table):
            why = f"it is not known whether {named(table)} has triggers"
            raise TableUnknown(statement_stops.multi_table_delete(query, why).reason, table)
        reached = engines.references.reached_from(table) & (lower - {in_lower_case(table)})
        if reached and query.foreign_key_checks:
            raise statement_stops.multi_table_delete(
                query, f"rows of {named(*sorted(reached))} go or change with rows of {named(table)}"
            )
