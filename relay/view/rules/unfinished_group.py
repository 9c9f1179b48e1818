"""The effects that a source that crashed inside a transaction kept of it, though its binlog does not contain the end.

This was tried on 5.6.24: a replica that gets such a group and then the next file's format description rolls it back, and keeps its
changes in tables without transactions, as the source does. Where another transaction follows in the same file, its BEGIN commits all of
it. A 9.7 waits for the end for ever.
"""

import json
from typing import Final

from protocol.errors import ProtocolError
from protocol.kernel.codes import TABLE_MAP_EVENT
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.statements.named_tables import statement_tables
from protocol.sql.tables.source_table import TableName
from relay.view.rules.group import SourceGroup
from relay.view.rules.group_parts import GroupPart, GroupParts, PartKind
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.stops import transaction_stops
from relay.view.stops.stop_reason import named, shown

_STATE: Final = b'{"open_end":'


class OpenEnd:
    """The open end of a file: it ended inside a transaction that changed tables, all of them with transactions.

    A source that was restarted has rolled it back. One that continues could not write the rest (a full disk, a limit of a file's size),
    and a replica that gets the next file commits what it has with the next BEGIN (tried: 5.6.24).
    """

    def __init__(self) -> None:
        self._statement: str | None = None
        """One statement of it, for people."""

    def note(self, changed: GroupPart | None) -> None:
        """Note that the file ended inside a transaction with this change; None: it changed nothing."""
        self._statement = None if changed is None else shown(changed.query)

    def source_went_on(self) -> None:
        """Check that the next file may begin without a server start in between. Raises: Untranslatable, and nothing is forgotten."""
        if self._statement is not None:
            raise transaction_stops.open_end(self._statement)

    def in_front_of(self, state: bytes) -> bytes:
        """Return `state` after this object's own, if there is something."""
        return state if self._statement is None else _STATE + json.dumps(self._statement).encode() + b"}\n" + state

    def taken_from(self, state: bytes) -> bytes:
        """Set the knowledge to the first part of a state and nothing else; return the rest."""
        self._statement = None
        if not state.startswith(_STATE):
            return state
        line, _, rest = state.partition(b"\n")
        self._statement = str(json.loads(line)["open_end"])
        return rest


def check_unfinished(group: SourceGroup, engines: TableEngines, *, is_followed: bool) -> GroupPart | None:
    """Check a group without an end; return a change in it; None: it has none. `is_followed`: another group follows in its file.
    Raises: Untranslatable where a replica of the source may keep some effect of it."""
    try:
        return _check(group, engines, is_followed)
    except ProtocolError as error:
        raise transaction_stops.without_end(str(error), None) from error


def _check(group: SourceGroup, engines: TableEngines, is_followed: bool) -> GroupPart | None:
    changed: GroupPart | None = None
    for part in GroupParts(group):
        if part.kind is PartKind.PACKED:
            raise transaction_stops.without_end("it is compressed", None)
        # An open statement has its last event: where that is a Table_map, no rows came.
        changes = part.kind is PartKind.STATEMENT or (part.kind is PartKind.ROWS and part.event.type != TABLE_MAP_EVENT)
        if not changes:
            continue
        if is_followed:
            raise transaction_stops.without_end("another transaction follows it in the same file", part.query)
        why = _of_rows(part, engines) if part.query is None else _of_statement(part.query, engines)
        if why:
            raise transaction_stops.without_end(why, part.query)
        changed = changed or part
    return changed


def _of_rows(part: GroupPart, engines: TableEngines) -> str:
    return next((why for name in part.tables if (why := _of_table(name, engines, None))), "")


def _of_statement(query: LoggedQuery, engines: TableEngines) -> str:
    """Return why some effect of it may be kept; empty: nothing is."""
    if query.kind.may_commit:
        return "a definition commits what stands before it"
    try:
        tables = statement_tables(query)
    except (UnsupportedSyntax, ProtocolError) as error:
        return str(error)
    if tables.calls or not tables.writes:
        return "it may call stored functions, or changes no table that it names"
    for name in tables.writes:
        why = _of_table(name, engines, query.thread_id)
        if why:
            return why
        facts = engines.facts(name, query.thread_id)
        if facts is not None and not facts.temporary and engines.triggers_of(name) != []:
            return f"{named(name)} has triggers, or may have some"
    return ""


def _of_table(name: TableName, engines: TableEngines, thread_id: int | None) -> str:
    facts = engines.facts(name, thread_id)
    keeps = facts.keeps_rollbacks if facts is not None else None
    if facts is not None and facts.temporary:
        return ""  # The crash dropped it.
    if keeps is None:
        return f"the engine of {named(name)} is not known"
    return f"{named(name)} has no transactions" if keeps else ""
