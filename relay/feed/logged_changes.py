"""Statements in a stretch of the archive that concern tables which are fed: definitions, and changes that have no rows."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from protocol.binlog.schema.definition_names import defined_names
from relay.feed.rows.feed_place import FeedPlace
from relay.schema_history.tables.ddl_parser import parse_ddl
from relay.schema_history.tables.ddl_statement import (
    AddColumn,
    AlterTable,
    ChangeColumn,
    CreateTable,
    DropDatabase,
    DropTables,
    RenameColumn,
    RenameTables,
)
from relay.schema_history.tables.ddl_tokens import NotSure
from relay.schema_history.tables.source_table import TableName

CREATED, ALTERED, DROPPED, TRUNCATED, RENAMED, UNKNOWN_CHANGE = (
    "create",
    "alter",
    "drop",
    "truncate",
    "rename",
    "unknown",
)
_COMMENTS: Final = r"(?:\s|/\*(?![!M]).*?\*/|/\*M?!\d*|\*/|(?:--|#)[^\n]*\n)*"
_WORD: Final = re.compile(_COMMENTS + r"\(*\s*([a-zA-Z]+)", re.DOTALL)
_NAME: Final = r"(`(?:[^`]|``)+`|[\w$\x80-\U0010ffff]+)"
_TRUNCATE: Final = re.compile(
    _COMMENTS + rf"TRUNCATE\s+(?:TABLE\s+)?{_NAME}(?:\s*\.\s*{_NAME})?", re.IGNORECASE | re.DOTALL
)
_NAMES: Final = re.compile(r"`((?:[^`]|``)+)`|([\w$\x80-\U0010ffff]+)")
_DEFINES: Final = frozenset(("create", "alter", "drop", "rename"))
_HARMLESS: Final = frozenset(
    ("begin", "commit", "rollback", "savepoint", "release", "xa", "grant", "revoke", "analyze", "optimize", "flush", "check",
     "start", "lock", "unlock", "install", "uninstall", "purge", "reset", "checksum", "use")
)  # fmt: skip
_REPAIRS: Final = frozenset(("repair",))
_ROLLBACK_TO: Final = re.compile(_COMMENTS + r"ROLLBACK\s+(?:WORK\s+)?TO\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class FedDefinition:
    """A statement that makes, changes or empties a table. `start`, `end`: of its transaction; `position`: of the event.

    `renamed` {new: old}, `added`: columns, as the statement says.
    """

    key: TableName
    action: str
    start: FeedPlace
    end: FeedPlace
    position: int
    sequence: int
    strict: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class UnseenChange:
    """A change in statement format, or one that was taken back in part. `words`: names in it, in lower case; None: any table."""

    start: FeedPlace
    words: frozenset[str] | None
    reason: str
    schema: str = ""
    rollback_in: int | None = None
    """The sequence of the transaction, a part of which was rolled back."""
    position: int = 0


@dataclass(slots=True)
class LoggedChanges:
    """All of a stretch, in order."""

    definitions: list[FedDefinition] = field(default_factory=list)
    unseen: list[UnseenChange] = field(default_factory=list)


Ends = Mapping[tuple[str, int], tuple[FeedPlace, int]]
"""(file, start of a transaction) -> (its end, its sequence)."""


def logged_changes(
    statements: Iterable[Mapping[str, Any]],
    ends: Ends,
    version_of: Callable[[FeedPlace], str],
    known: Iterable[TableName],
) -> LoggedChanges:
    """What the statements come to. `known`: tables that there may be, for DROP DATABASE and what nobody understands."""
    found = LoggedChanges()
    tables = set(known)
    for one in statements:
        text = one["statement"]
        if text is None:
            continue
        start = FeedPlace.at(one["file"], one["transaction"] if one["transaction"] is not None else one["position"])
        end, sequence = ends.get((one["file"], start.position), (FeedPlace.at(one["file"], one["end"]), 0))
        match = _WORD.match(text)
        word = match[1].lower() if match is not None else ""
        if word in _DEFINES:
            for made in _definitions(one, start, end, sequence, version_of, tables):
                found.definitions.append(made)
                tables.add(made.key)
        elif word == "truncate":
            key = _truncated(text, one["schema"] or "")
            if key is not None:
                found.definitions.append(FedDefinition(key, TRUNCATED, start, end, one["position"], sequence))
        elif _ROLLBACK_TO.match(text) is not None:
            found.unseen.append(
                UnseenChange(start, frozenset(), "part of a transaction was rolled back", rollback_in=sequence)
            )
        elif word not in _HARMLESS and not _sets_something(text, word):
            names = frozenset((a or b).replace("``", "`").lower() for a, b in _NAMES.findall(text))
            found.unseen.append(
                UnseenChange(start, names, f"a change in statement format ({word or 'unknown'})", one["schema"] or "")
            )
    return found


def _sets_something(text: str, word: str) -> bool:
    return (
        word == "set" and re.match(_COMMENTS + r"SET\s+(?:PASSWORD|DEFAULT\s+ROLE)\b", text, re.IGNORECASE) is not None
    )


def _definitions(
    one: Mapping[str, Any],
    start: FeedPlace,
    end: FeedPlace,
    sequence: int,
    version_of: Callable[[FeedPlace], str],
    tables: set[TableName],
) -> Iterable[FedDefinition]:
    text, schema, mode = one["statement"], one["schema"] or "", int(one["sql_mode"] or 0)
    strict = bool(mode & (1 << 21 | 1 << 22))

    def made(key: TableName, action: str, **more: Any) -> FedDefinition:
        return FedDefinition(key, action, start, end, one["position"], sequence, strict, text=text, **more)

    try:
        said = parse_ddl(text, schema, mode, version_of(start))
    except NotSure:
        names = defined_names(text.encode())
        for key in sorted(tables):
            if names is None or key[1].lower() in names:
                yield made(key, UNKNOWN_CHANGE)
        return
    if one["error_code"]:
        # it did a part of what it says
        for key in _keys(said, tables):
            yield made(key, UNKNOWN_CHANGE)
        return
    if isinstance(said, CreateTable) and not said.temporary:
        if said.or_replace:
            yield made(said.name, DROPPED)
        yield made(said.name, CREATED)
    elif isinstance(said, AlterTable):
        renamed: dict[str, str] = {}
        added: list[str] = []
        for clause in said.clauses:
            pair = None
            if isinstance(clause, ChangeColumn):
                pair = (clause.old, clause.definition.column.name)
            elif isinstance(clause, RenameColumn):
                pair = (clause.old, clause.new)
            elif isinstance(clause, AddColumn):
                added.append(clause.definition.column.name)
            if pair is not None and pair[0] != pair[1]:
                renamed[pair[1]] = pair[0]
        if said.rename is not None and said.rename != said.name:
            yield made(said.name, RENAMED)
            yield made(said.rename, RENAMED)
        else:
            yield made(said.name, ALTERED, renamed=renamed, added=tuple(added))
    elif isinstance(said, DropTables) and not said.temporary:
        for name in said.names:
            yield made(name, DROPPED)
    elif isinstance(said, RenameTables):
        for old, new in said.pairs:
            yield made(old, RENAMED)
            yield made(new, RENAMED)
    elif isinstance(said, DropDatabase):
        for key in sorted(tables):
            if key[0] == said.name:
                yield made(key, DROPPED)


def _keys(said: Any, tables: set[TableName]) -> list[TableName]:
    if isinstance(said, CreateTable | AlterTable):
        return [said.name]
    if isinstance(said, DropTables):
        return list(said.names)
    if isinstance(said, RenameTables):
        return [name for pair in said.pairs for name in pair]
    return [key for key in sorted(tables) if isinstance(said, DropDatabase) and key[0] == said.name]


def _truncated(text: str, schema: str) -> TableName | None:
    match = _TRUNCATE.match(text)
    if match is None:
        return None
    first, second = (part.strip("`").replace("``", "`") if part else "" for part in match.groups())
    return (first, second) if second else (schema, first)
