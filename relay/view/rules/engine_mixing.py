"""Transactions that change tables with and without transactions, which servers with GTIDs refuse (1785): one for each run of
statements that may stand together.

The order stays that of the source's binlog: a replica of the mirror applies it so, and a statement may read what the one before it
wrote. What goes first in any other order is right only where no statement reads the other tables, which triggers and functions hide.
"""

import re
from typing import Final

from protocol.errors import ProtocolError
from relay.schema_history.tables.ddl_tokens import NotSure
from relay.schema_history.tables.source_table import TableName
from relay.view.rules import stop_reasons
from relay.view.rules.group_parts import GroupPart, PartKind
from relay.view.rules.statement.named_tables import written_tables
from relay.view.rules.table_engines import TableEngines, is_without_transactions

_NAME: Final = r"((?>`(?:[^`]|``)++`|[\w$]++)(?>\s*+\.\s*+(?>`(?:[^`]|``)++`|[\w$]++))?+)"
_TRIGGER_WRITES: Final = re.compile(
    rf"\b(?:(?:INSERT|REPLACE)\s++(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE)\s++)*+(?:INTO\s++)?+|UPDATE\s++|DELETE\s++FROM\s++){_NAME}",
    re.IGNORECASE,
)


def split_by_engine(parts: list[GroupPart], engines: TableEngines) -> list[list[GroupPart]]:
    """The parts in runs, each a transaction of its own that the replica takes; one run where nothing must be split.

    `parts`: what changes something, and savepoints. Raises: CannotBeKept where one statement changes tables of both kinds.
    """
    plain = [_is_plain(part, engines) for part in parts]
    if True not in plain:
        return [parts]
    runs: list[list[GroupPart]] = []
    open_run: list[GroupPart] = []
    for part, alone in zip(parts, plain, strict=True):
        if part.kind not in (PartKind.STATEMENT, PartKind.ROWS):
            continue  # savepoints: what was undone is no longer there; behind a table without transactions they are refused (1837)
        if alone:
            if open_run:
                runs.append(open_run)
            runs.append([part])
            open_run = []
        else:
            open_run.append(part)
    return [*runs, open_run] if open_run else runs


def _is_plain(part: GroupPart, engines: TableEngines) -> bool:
    """Whether it changes a table that has none on the replica either. Raises: CannotBeKept for one that changes both kinds."""
    if part.kind is PartKind.ROWS:
        tables, thread_id = list(part.tables), None
    elif part.kind is PartKind.STATEMENT and part.query is not None:
        thread_id = part.query.thread_id
        try:
            tables = list(written_tables(part.query))
        except (NotSure, ProtocolError):
            return False  # where it is one after all, the replica says so
        tables += [name for table in tables for name in _by_triggers(table, engines)]
    else:
        return False
    kinds: dict[bool, list[TableName]] = {True: [], False: []}
    for name in tables:
        facts = engines.facts(name, thread_id)
        if facts is None or not facts.temporary:
            kinds[facts is not None and bool(is_without_transactions(facts.engine))].append(name)
    if kinds[True] and kinds[False]:
        raise stop_reasons.both_engines(part.query, kinds[True], kinds[False])
    return bool(kinds[True])


def _by_triggers(table: TableName, engines: TableEngines) -> list[TableName]:
    """The tables that the known triggers of a table change."""
    found: list[TableName] = []
    for trigger in engines.triggers_of(table) or ():
        for match in _TRIGGER_WRITES.finditer(trigger.text):
            names = [_plain_name(name) for name in re.findall(r"`(?:[^`]|``)+`|[\w$]+", match[1])]
            found.append((names[0], names[1]) if len(names) == 2 else (trigger.schema, names[0]))
    return found


def _plain_name(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
