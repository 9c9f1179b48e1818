"""Statements whose result depends on the order in which a table returns its rows, which differs between engines.

MyISAM returns rows in the order in which they lie in its file, InnoDB in that of the primary key. A source warns of most of these
statements as unsafe (1592), and on a replica with the same engines they have the same result all the same. What MATCH finds depends on
the engine, too, so it is checked here.
"""

import functools
import re
from typing import Final

from protocol.errors import ProtocolError
from protocol.sql.lexer import UnsupportedSyntax, sql_tokens
from protocol.sql.statements.named_tables import perhaps_written_tables, read_tables, tables_by_alias, written_tables
from protocol.sql.statements.order_dependence import (
    may_depend_on_order,
    order_counts,
    program_hangs_on_order,
    searches_text,
    values_of_update,
    verb_of,
)
from protocol.sql.tables.ddl_statement import AlterTable, needs
from protocol.sql.tables.source_table import TableName
from relay.source_tables.programs import KnownProgram
from relay.view.rules.group_parts import GroupPart, PartKind
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.stops import statement_stops

_NUMBERS: Final = re.compile(rb"(?<![A-Za-z_$])(?:AUTO_INCREMENT|SERIAL)(?![\w$])", re.IGNORECASE)


def check_row_order(part: GroupPart, engines: TableEngines) -> None:
    """Check for a statement that uses a table whose engine changes, where the order counts, or where either is not certain.
    Raises: Untranslatable.
    """
    query = part.query
    if query is None or part.kind is not PartKind.STATEMENT or not engines.any_without_transactions:
        return
    _check_triggers(query, engines)
    if not may_depend_on_order(query):
        return
    try:
        if searches_text(query):
            found = _changing(_tables(query), query, engines)
            if found:
                raise statement_stops.fulltext_search(query, found)
        if order_counts(query, makes_numbers=part.makes_numbers):
            found = _changing(_tables(query), query, engines)
        else:
            found = _changing(_tables_of_values(query), query, engines)
    except (UnsupportedSyntax, ProtocolError) as error:
        raise statement_stops.row_order_unknown(query, str(error)) from error
    if found:
        raise statement_stops.row_order(query, found)


def check_numbered_rows(part: GroupPart, engines: TableEngines) -> None:
    """Check, before the part's definition is learned, for ALTER TABLE that numbers existing rows, or keeps one of several, in a table
    whose engine changed. Raises: Untranslatable."""
    query = part.query
    if query is None or part.kind is not PartKind.STATEMENT or not engines.any_without_transactions:
        return
    if query.kind.verb not in ("ALTER", ""):
        return
    try:
        made = query.definition
        if made is not None:
            needs(made, "AUTO_INCREMENT", "SERIAL")
    except UnsupportedSyntax as error:
        if _NUMBERS.search(query.raw):
            raise statement_stops.row_order_unknown(query, str(error)) from error
        return
    if not isinstance(made, AlterTable) or not (made.numbers_rows or made.ignores):
        return
    facts = engines.facts(made.name, query.thread_id)
    if facts is not None and not facts.temporary and facts.keeps_rollbacks is not False:
        raise statement_stops.row_order(query, [made.name])


def _check_triggers(query: LoggedQuery, engines: TableEngines) -> None:
    """Check for triggers fired by the statement that depend on the order of rows. Raises: Untranslatable."""
    if not engines.has_triggers:
        return
    try:
        open_ends = list(written_tables(query))
    except (UnsupportedSyntax, ProtocolError):
        return
    seen: set[KnownProgram] = set()
    while open_ends:
        for trigger in engines.known_triggers(open_ends.pop()):
            if trigger in seen:
                continue
            seen.add(trigger)
            names, hangs = _of_trigger(trigger.text, query.server_version)
            changing = engines.changing_among(names) if hangs else []
            if changing:
                raise statement_stops.row_order(query, changing)
            open_ends += [one for one in engines.with_triggers() if names is None or one[1].lower() in names]


@functools.lru_cache(maxsize=256)
def _of_trigger(text: str, server_version: str) -> tuple[frozenset[str] | None, bool]:
    """Return the words of a trigger's statement in lower case, None: it cannot be read; and whether it depends on the order of rows."""
    try:
        tokens = sql_tokens(text, 0, server_version)
    except UnsupportedSyntax:
        return None, True
    return frozenset(token.text.lower() for token in tokens), program_hangs_on_order(tokens)


def _tables(query: LoggedQuery) -> tuple[TableName, ...]:
    """Return the tables that it reads, or changes in an order that counts: the order in which rows are inserted does not."""
    puts = verb_of(query) in ("INSERT", "REPLACE", "CREATE", "LOAD")
    return (*(() if puts else perhaps_written_tables(query)), *read_tables(query))


def _tables_of_values(query: LoggedQuery) -> tuple[TableName, ...]:
    """Return the tables of an UPDATE of several whose columns are assigned to others: the row that is used depends on the order."""
    if verb_of(query) != "UPDATE":
        return ()
    tables = tables_by_alias(query)
    if len(tables) < 2:
        return ()
    given = values_of_update(query)
    try:
        written: tuple[TableName, ...] = written_tables(query)
    except UnsupportedSyntax:
        written = ()
    all_names = list(tables.values())
    found = []
    for alias, name in tables.items():
        is_read = name not in written or all_names.count(name) > 1
        if name is not None and is_read and (given is None or alias in given):
            found.append(name)
    return tuple(found)


def _changing(tables: tuple[TableName, ...], query: LoggedQuery, engines: TableEngines) -> list[TableName]:
    """Return the tables whose engine changes; a view stands for the tables that it reads."""
    return [
        name for name in engines.behind_views(dict.fromkeys(tables)) if _changes_engine(name, engines, query.thread_id)
    ]


def _changes_engine(name: TableName, engines: TableEngines, thread_id: int) -> bool:
    facts = engines.facts(name, thread_id)
    return facts is not None and bool(facts.keeps_rollbacks) and not facts.temporary
