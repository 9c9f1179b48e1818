"""Statements whose outcome hangs on the order in which a table gives its rows: another engine gives them in another.

MyISAM gives rows in the order in which they lie in its file, InnoDB in that of the primary key. A source warns of most of these
statements as unsafe (1592), and on a replica with the same engines they do the same all the same.
"""

import re
from typing import Final

from protocol.kernel.codes import INTVAR_EVENT
from relay.schema_history.tables.ddl_tokens import NotSure, TokenKind
from relay.schema_history.tables.source_table import TableName
from relay.view.rules import stop_reasons
from relay.view.rules.group import SourceGroup
from relay.view.rules.group_parts import GroupPart, PartKind
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.named_tables import read_tables, written_tables
from relay.view.rules.table_engines import TableEngines

_PERHAPS: Final = re.compile(rb"\bLIMIT\b|\bSELECT\b|:=", re.IGNORECASE)
_INSERT_ID: Final = 2


def check_row_order(part: GroupPart, group: SourceGroup, engines: TableEngines) -> None:
    """Raises: CannotBeKept for a statement that reads or writes a table whose engine becomes another, where the order counts."""
    query = part.query
    if query is None or part.kind is not PartKind.STATEMENT or query.is_load or not _PERHAPS.search(query.raw):
        return
    try:
        # In what order rows are put into a table does not count, but in what order others are read.
        changed = () if query.raw.lstrip()[:1] in b"IiRr" else written_tables(query)
        tables = (*changed, *read_tables(query))
        changing = [name for name in tables if _changes_engine(name, engines, query.thread_id)]
        if changing and _order_counts(query, makes_numbers=_makes_numbers(part, group)):
            raise stop_reasons.row_order(query, changing)
    except NotSure:
        return


def _changes_engine(name: TableName, engines: TableEngines, thread_id: int) -> bool:
    facts = engines.facts(name, thread_id)
    return facts is not None and bool(facts.keeps_rollbacks) and not facts.temporary


def _order_counts(query: LoggedQuery, *, makes_numbers: bool) -> bool:
    """Whether the statement does other things with rows in another order. makes_numbers: it gives out AUTO_INCREMENT values."""
    tokens = query.tokens
    words = [token.upper if token.kind is TokenKind.WORD else "" for token in tokens]
    if any(one == "ORDER" and words[number + 1] == "BY" for number, one in enumerate(words[:-1])):
        return False
    assigns = any(
        token.upper == ":" and tokens[number + 1].upper == "=" and tokens[number + 1].start == token.stop
        for number, token in enumerate(tokens[:-1])
    )
    return "LIMIT" in words or assigns or (makes_numbers and "SELECT" in words)


def _makes_numbers(part: GroupPart, group: SourceGroup) -> bool:
    """Whether an Intvar event with INSERT_ID belongs to the statement."""
    return any(
        event.type == INTVAR_EVENT and group.body(event)[:1] == bytes([_INSERT_ID])
        for event in group.events
        if part.start <= event.offset < part.event.offset
    )
