"""The statements in a stretch of the archive that concern fed tables: definitions, and changes that have no rows."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from protocol.errors import ErrorCode
from protocol.sql.control import Control, control_of
from protocol.sql.kind import Purpose, StatementKind, kind_of
from protocol.sql.lexer import LINE_COMMENT, UnsupportedSyntax
from protocol.sql.sql_mode import NO_AUTO_VALUE_ON_ZERO, PAD_CHAR_TO_FULL_LENGTH, STRICT
from protocol.sql.statements.named_tables import called_routines, written_tables
from protocol.sql.statements.statement import StatementText
from protocol.sql.statements.statement_names import defined_names, names_in
from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.ddl_statement import (
    AddColumn,
    AlterTable,
    ChangeColumn,
    Clause,
    CreateTable,
    DropColumn,
    DropDatabase,
    DropTables,
    RenameColumn,
    RenameTables,
    SetCharset,
)
from protocol.sql.tables.source_table import TableName
from relay.feed.rows.feed_place import FeedOffset
from relay.source_tables.names import in_lower_case

CREATED, ALTERED, DROPPED, TRUNCATED, RENAMED, UNKNOWN_CHANGE = (
    "create",
    "alter",
    "drop",
    "truncate",
    "rename",
    "unknown",
)
_DEFINES: Final = frozenset(("create", "alter", "drop", "rename"))
_HARMLESS: Final = frozenset(
    ("begin", "start", "analyze", "optimize", "flush", "check", "lock", "unlock", "install", "uninstall", "purge", "reset", "checksum",
     "use")
)  # fmt: skip
_STRINGS: Final = re.compile(r"'(?>(?:[^'\\]|\\.|'')*)(?:'|\\?$)|\"(?>(?:[^\"\\]|\\.|\"\")*)(?:\"|\\?$)", re.DOTALL)
_QUOTED_OR_COMMENT: Final = re.compile(
    rf"(`(?>(?:[^`]|``)*)`|{_STRINGS.pattern})|/\*(?![!M])(?>.*?(?:\*/|\Z))|/\*M?!\d*|\*/|{LINE_COMMENT}", re.DOTALL
)
_SECRETS: Final = re.compile(r"\b(?:connection|password|identified)\b", re.IGNORECASE)
_TAKES: Final = frozenset(("update", "replace"))


@dataclass(frozen=True, slots=True)
class DdlChange:
    """A statement that creates, changes or empties a table. `start` and `end` are those of its transaction, `position` is that of the
    event.

    `clauses` are those of an ALTER TABLE. For a RENAME `source` is the table whose rows it has afterwards (None: it has none), and
    `target` the one that takes its previous rows; `if_exists` limits it to existing tables. `time` is when it ran. `hides` is its
    effect on rows that no binlog records.
    """

    key: TableName
    action: str
    start: FeedOffset
    end: FeedOffset
    position: int
    sequence: int
    strict: bool = False
    clauses: tuple[Clause, ...] = ()
    text: str = ""
    time: Any = None
    source: TableName | None = None
    target: TableName | None = None
    if_exists: bool = False
    hides: str = ""
    made_anew: bool = False
    """True for a DROP if the same statement creates the table again."""
    if_not_exists: bool = False
    version: str = ""
    """The version of the server."""
    keeps_zero: bool = False
    """True with NO_AUTO_VALUE_ON_ZERO."""
    pads: bool = False
    """True with PAD_CHAR_TO_FULL_LENGTH."""

    @property
    def changes_columns(self) -> bool:
        """True if the table's columns may differ after it."""
        return any(
            isinstance(one, AddColumn | ChangeColumn | RenameColumn | DropColumn)
            or (isinstance(one, SetCharset) and one.converts)
            for one in self.clauses
        )


@dataclass(frozen=True, slots=True)
class UnseenChange:
    """A change in statement format, or one that was partly rolled back. `words` are the names in it, in lower case; None means any
    table."""

    start: FeedOffset
    words: frozenset[str] | None
    reason: str
    schema: str = ""
    rollback_in: int | None = None
    """The sequence of the transaction, a part of which was rolled back."""
    brings: bool = False
    """True for an INSERT or LOAD DATA."""
    position: int = 0
    of_rows: bool = False
    """True if rows show which tables it changes: no others, through triggers or views."""

    def names(self, key: TableName) -> bool:
        """Return whether the statement may name the table."""
        if self.words is None:
            return True
        return key[1].lower() in self.words and (self.schema.lower() == key[0].lower() or key[0].lower() in self.words)

    @property
    def may_cascade(self) -> bool:
        """True if its changes may change tables that refer to it: not if it only adds rows."""
        if self.rollback_in is not None:
            return False
        return self.words is None or not self.brings or bool(_TAKES & self.words)


def unseen_at(version: int, reason: str) -> UnseenChange:
    """Return a change of one table that the binlog does not record."""
    return UnseenChange(FeedOffset.of_version(version), frozenset(), reason)


_TABLES_NAMED: Final = 256
"""The first characters of a statement, in which the schema of the table that it changes is named."""


@dataclass(slots=True)
class LoggedChanges:
    """The changes of a stretch, in order."""

    definitions: list[DdlChange] = field(default_factory=list)
    unseen: list[UnseenChange] = field(default_factory=list)


Ends = Mapping[tuple[str, int], tuple[FeedOffset, int]]
"""This maps (file, start of a transaction) to (its end, its sequence)."""


def logged_changes(
    statements: Iterable[Mapping[str, Any]],
    ends: Ends,
    version_of: Callable[[FeedOffset], str],
    known: Iterable[TableName],
    may_be_temporary: Callable[[FeedOffset], bool],
    may_be_one: Callable[[], bool] = lambda: True,
) -> LoggedChanges:
    """Return the changes that the statements make. `known` are tables that may exist, for DROP DATABASE and statements that are not
    understood. `may_be_temporary` returns, for an event's place, whether its flags say that the statement used a temporary table.
    `may_be_one` returns whether names that differ only in case may mean one table."""
    found = LoggedChanges()
    tables = set(known)
    for one in statements:
        text = one["statement"]
        if text is None:
            continue
        start = FeedOffset.at(one["file"], one["transaction"] if one["transaction"] is not None else one["position"])
        end, sequence = ends.get((one["file"], start.position), (FeedOffset.at(one["file"], one["end"]), 0))
        version = version_of(start)
        kind = kind_of(text.encode(), version)
        word = kind.verb.lower()
        if word in _DEFINES:
            for made in _definitions(one, start, end, sequence, version, kind, tables, may_be_one):
                found.definitions += [*_in_other_case(made, tables, may_be_one), made]
                tables.add(made.key)
        elif word == "truncate":
            key = _truncated(one, version)
            if may_be_temporary(FeedOffset.at(one["file"], one["position"])):  # It hides the table
                names = frozenset(word.lower() for word in key or ())
                found.unseen.append(UnseenChange(start, names, "a TRUNCATE, perhaps of a temporary table"))
            elif key is not None:
                emptied = DdlChange(key, TRUNCATED, start, end, one["position"], sequence, text=text, time=one["time"])
                found.definitions += [*_in_other_case(emptied, tables, may_be_one), emptied]
            else:
                found.unseen.append(UnseenChange(start, None, "a TRUNCATE that is not understood"))
        elif kind.purpose is Purpose.CONTROL:
            if rolls_back_in_part(text):
                found.unseen.append(
                    UnseenChange(start, frozenset(), "part of a transaction was rolled back", rollback_in=sequence)
                )
        elif kind.purpose is Purpose.ROWS or (kind.purpose is not Purpose.ACCOUNTS and word not in _HARMLESS):
            if _changes_system_tables(one, text, version):
                continue
            found.unseen.append(
                UnseenChange(
                    start,
                    names_in(text, int(one["sql_mode"] or 0)),
                    f"a change in statement format ({word or 'unknown'})",
                    one["schema"] or "",
                    brings=word in ("insert", "load"),
                )
            )
    return found


def _changes_system_tables(one: Mapping[str, Any], text: str, version: str) -> bool:
    """Return whether a statement changes only tables of the schema mysql, which have no triggers (1465) and no foreign keys, and calls
    nothing that may change others: such is the heartbeat of RDS."""
    if "mysql" not in f"{one['schema']} {text[:_TABLES_NAMED]}".lower():
        return False
    query = StatementText(text.encode(), one["schema"] or "", int(one["sql_mode"] or 0), version)
    try:
        tables = written_tables(query)
        return (
            bool(tables) and all(schema.lower() == "mysql" for schema, _table in tables) and not called_routines(query)
        )
    except UnsupportedSyntax:
        return False


def rolls_back_in_part(text: str) -> bool:
    """Return whether a statement is ROLLBACK TO SAVEPOINT."""
    control = control_of(text.encode())
    return control is not None and control.control is Control.ROLLBACK_TO


def _in_other_case(made: DdlChange, tables: set[TableName], may_be_one: Callable[[], bool]) -> Iterable[DdlChange]:
    """Yield the possible effects of a statement on tables whose names differ only in case: with lower_case_table_names it means them.

    They are also possible if a table of the exact name exists: its CREATE TABLE may have had that name, and its rows the other.
    """
    if made.action in (CREATED, UNKNOWN_CHANGE):
        return
    name = in_lower_case(made.key)
    alike = [key for key in sorted(tables) if key != made.key and in_lower_case(key) == name]
    if alike and (made.key not in tables or may_be_one()):
        for key in alike:
            hides = _of_other_case(made.text)
            yield replace(made, key=key, action=UNKNOWN_CHANGE, source=None, target=None, hides=hides)


def _of_other_case(text: str) -> str:
    return f"a statement that has its name in another case ({_begin(text)})"


def _definitions(
    one: Mapping[str, Any],
    start: FeedOffset,
    end: FeedOffset,
    sequence: int,
    version: str,
    kind: StatementKind,
    tables: set[TableName],
    may_be_one: Callable[[], bool],
) -> Iterable[DdlChange]:
    text, schema, mode = one["statement"], one["schema"] or "", int(one["sql_mode"] or 0)
    strict = bool(mode & STRICT)
    plain = _QUOTED_OR_COMMENT.sub(lambda match: match[1] or " ", text)
    alters = (kind.verb, kind.thing) == ("ALTER", "TABLE")

    def made(key: TableName, action: str, **more: Any) -> DdlChange:
        return DdlChange(
            key,
            action,
            start,
            end,
            one["position"],
            sequence,
            strict,
            text=text,
            time=one["time"],
            version=version,
            keeps_zero=bool(mode & NO_AUTO_VALUE_ON_ZERO),
            pads=bool(mode & PAD_CHAR_TO_FULL_LENGTH),
            **more,
        )

    try:
        said = parse_ddl(text, schema, mode, version)
    except UnsupportedSyntax:
        names = defined_names(text.encode(), mode)
        reason = f"a statement that is not understood ({_begin(plain)})" if alters else ""
        for key in sorted(tables):
            same_schema = key[0].lower() == schema.lower() or (names is not None and key[0].lower() in names)
            if names is None or (key[1].lower() in names and same_schema):
                yield made(key, UNKNOWN_CHANGE, hides=reason)
        return
    if one["error_code"] and not (isinstance(said, DropTables) and one["error_code"] == ErrorCode.ER_BAD_TABLE_ERROR):
        # It was executed only in part
        for key in _keys(said, tables):
            yield made(key, UNKNOWN_CHANGE)
        return
    if isinstance(said, CreateTable) and not said.temporary:
        if said.or_replace:
            yield made(said.name, DROPPED, made_anew=True)
        yield made(said.name, CREATED, if_not_exists=said.if_not_exists)
    elif isinstance(said, AlterTable):
        clauses = tuple(said.clauses)
        reason = f"rows that a statement took or brought ({_begin(plain)})" if _hides_rows(said) else ""
        if said.rename is not None and said.rename != said.name:
            yield made(said.name, RENAMED, target=said.rename)
            yield made(said.rename, RENAMED, source=said.name, clauses=clauses, hides=reason)
        else:
            yield made(said.name, ALTERED, hides=reason, clauses=clauses)
            for action in said.written.row_actions:
                if action.other is not None:
                    yield made(action.other, ALTERED, hides=reason)
    elif isinstance(said, DropTables) and not said.temporary:
        for name in said.names:
            yield made(name, DROPPED)
    elif isinstance(said, RenameTables):
        sources = renamed_sources(said.pairs)
        targets = {source: key for key, source in sources.items() if source is not None}
        for key, source in sources.items():
            yield made(key, RENAMED, source=source, target=targets.get(key), if_exists=said.if_exists)
    elif isinstance(said, DropDatabase):
        for key in sorted(tables):
            if key[0] == said.name:
                yield made(key, DROPPED)
            elif key[0].lower() == said.name.lower() and may_be_one():
                yield made(key, UNKNOWN_CHANGE, hides=_of_other_case(text))


def _hides_rows(made: AlterTable) -> bool:
    """Return whether rows are removed or added, and no binlog says which."""
    to_nowhere = any(one.text.upper() == "BLACKHOLE" for one in made.written.engines)
    return made.ignores or bool(made.written.row_actions) or to_nowhere


def renamed_sources(pairs: Iterable[tuple[TableName, TableName]]) -> dict[TableName, TableName | None]:
    """Map each table that a RENAME TABLE concerns to the one whose rows it has afterwards; None if it has none. The pairs apply in
    order."""
    rows: dict[TableName, TableName | None] = {}
    for old, new in pairs:
        rows[new] = rows.get(old, old)
        rows[old] = None
    return {key: source for key, source in rows.items() if key != source}


def _keys(said: Any, tables: set[TableName]) -> list[TableName]:
    if isinstance(said, CreateTable | AlterTable):
        return [said.name]
    if isinstance(said, DropTables):
        return list(said.names)
    if isinstance(said, RenameTables):
        return [name for pair in said.pairs for name in pair]
    return [key for key in sorted(tables) if isinstance(said, DropDatabase) and key[0] == said.name]


def _truncated(one: Mapping[str, Any], version: str) -> TableName | None:
    """Return the table that a TRUNCATE empties; None if that is unknown."""
    try:
        text = StatementText(
            one["statement"].lstrip().encode(), one["schema"] or "", int(one["sql_mode"] or 0), version
        )
        return written_tables(text)[0]
    except UnsupportedSyntax:
        return None


def shown(text: str, most: int) -> str:
    """Return a statement's beginning for a message. If it may contain a password, such as CONNECTION of a federated table, no string is
    shown."""
    text = " ".join(text.split())
    if _SECRETS.search(text):
        text = _STRINGS.sub("'***'", text)
    return text if len(text) <= most else text[: most - 3] + "..."


def _begin(text: str) -> str:
    return shown(text, 80)
