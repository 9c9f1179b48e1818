"""What an archive knows of its source's tables: lines of JSON in `source-schema.jsonl`, and which of them are true where.

One line is one object; `kind` says what:

    {"kind": "watched", "file": F, "offset": N, "statements": true}
                                                            from here on statements that define tables are noted; all that can be
                                                            read with their texts, if "statements" is there
    {"kind": "definition", "file": F, "offset": N, "names": [...], "sql": {...}}
                                                            such a statement, and every word in it that may name a table (null: any
                                                            table); "sql": {"text", "schema" (the default one), "thread", "mode"
                                                            (sql_mode), "charset" and "collation" (the server's, of new databases),
                                                            "collations" (of character sets, {CHARSET: COLLATION}), "version",
                                                            "error"}
    {"kind": "table", "file": F, "offset": N, "schema": S, "table": T, "engine": E, "columns": [...], "keys": {...},
     "foreign_keys": {...}}                                 the table as the source had it at this position ("charset", "collation": of
                                                            new columns; "type": SEQUENCE or SYSTEM VERSIONED;
                                                            "by": "ddl": nobody asked, statements say so)
    {"kind": "database", "file": F, "offset": N, "schema": S, "charset": C, "collation": C}
                                                            the character set and collation of new tables of a schema at this position
    {"kind": "dropped", "file": F, "offset": N, "schema": S, "table": T}
                                                            at this position the source had no such table, or showed none
    {"kind": "triggers", "file": F, "offset": N, "tables": [[S, T], ...]}
                                                            at this position the account was shown all tables, and these had triggers
    {"kind": "trigger", "file": F, "offset": N}             a statement that may make, change or drop a trigger
    {"kind": "covered", "file": F, "offset": N}             up to here every such statement was noted

    column: {"name", "type" (as in SHOW CREATE TABLE), "charset", "collation", "nullable", "extra", "default"}; empty ones are left out
    keys:   {NAME: {"unique": true, "columns": [...], "prefixes": [...]}}; the primary key is called PRIMARY; a column called "" is an
            expression; prefixes: how much of each column is in the key, null: all; without "prefixes": not known
    foreign_keys: {NAME: {"columns": [...], "schema", "table", "referenced": [...], "on_delete", "on_update"}}; without: not known
            whether there are any. They hold no longer than to a statement that gives a table which they name another name

A table is what a line says of it from the statement before that names it to the next one that does, as far as somebody
watched: what was asked once holds for older binlogs too, and never longer than it is true.
"""

import bisect
import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.position import binlog_number
from protocol.sql.tables.source_table import CharsetDefault, Table, TableName
from relay.disk.kept_json import kept_json
from relay.schema_history.logged_definition import LoggedDefinition, definition_of
from relay.schema_history.schema_facts import AskedCharset, AskedTable, DefinedSpan, Place
from relay.schema_history.table_agreement import completed
from relay.source_tables.table_facts import table_of_facts

if TYPE_CHECKING:
    from relay.schema_history.schema_history import SchemaHistory

WORKED_OUT: Final = "ddl"
"""Who tells a table's line: not the source, the statements before it."""
_NOWHERE: Final = (-1, 0)
_FAR: Final = (1 << 63, 0)


def table_line(facts: str, file: str, offset: int, by: str = "") -> str:
    """The line for a table with these `table_facts` as it was at a position, with its line end. `by`: WORKED_OUT, or the source."""
    told = f'"by": {json.dumps(by)}, ' if by else ""
    return f'{{"kind": "table", "file": {json.dumps(file)}, "offset": {offset}, {told}{facts[1:]}\n'


def line(kind: str, file: str, offset: int, **facts: Any) -> str:
    """A line of the file, with its line end."""
    return json.dumps({"kind": kind, "file": file, "offset": offset, **facts}, ensure_ascii=False) + "\n"


def database_line(schema: str, default: CharsetDefault, file: str, offset: int) -> str:
    """The line for a schema whose new tables have these character set and collation from a position on."""
    charset, collation = default
    told = {"collation": collation} if collation else {}
    return line("database", file, offset, schema=schema, charset=charset, **told)


@dataclass(frozen=True, slots=True)
class Line:
    """A line that was read. `text` has its line end; `place` orders it."""

    kind: str
    place: Place
    facts: dict[str, Any]
    text: str


def parse_lines(data: bytes) -> Iterator[Line]:
    """The whole lines of the file. A last one without its end, and what is no line of ours, is left out."""
    for raw in data.split(b"\n")[:-1]:
        try:
            facts = kept_json(raw)
            yield Line(
                str(facts["kind"]), (binlog_number(facts["file"]), int(facts["offset"])), facts, raw.decode() + "\n"
            )
        except (ValueError, KeyError, TypeError, Malformed):
            continue


def table_of_line(one: Line) -> Table:
    """What a "table" line says. Raises: KeyError, TypeError, AttributeError for what is no such line."""
    return table_of_facts(one.facts)


@dataclass(slots=True)
class _Version:
    """A table from `first` on, up to and not including `behind`; None: it was dropped. Its foreign keys may be known for less."""

    first: Place
    behind: Place
    table: Table | None
    foreign_keys: tuple[Place, Place] = (_NOWHERE, _FAR)

    def at(self, place: Place) -> Table | None:
        """The table as far as it is known at a place of those."""
        first, behind = self.foreign_keys
        if self.table is None or self.table.foreign_keys is None or first <= place < behind:
            return self.table
        return replace(self.table, foreign_keys=None)


@dataclass(slots=True)
class _Watch:
    """A span of the binlogs in which every definition was noted. `named`: a table's name in lower case to where statements name it;
    `renamed`: to those of them that may call it or its columns otherwise.
    """

    first: Place
    last: Place
    named: dict[str, list[Place]] = field(default_factory=dict)
    renamed: dict[str, list[Place]] = field(default_factory=dict)
    unnamed: list[Place] = field(default_factory=list)

    def note(self, place: Place, names: Iterable[str] | None, renames: bool) -> None:
        """A definition. Those of one table must come in their order."""
        if names is None:
            self.unnamed.append(place)
            return
        for name in names:
            self.named.setdefault(name, []).append(place)
            if renames:
                self.renamed.setdefault(name, []).append(place)

    def around(self, table: str, place: Place) -> tuple[Place, Place]:
        """From the definition of `table` before `place`, to the next one; as far as it was watched."""
        return self._between((self.named.get(table.lower(), ()), self.unnamed), place)

    def around_names(self, tables: Iterable[str], place: Place) -> tuple[Place, Place]:
        """As `around`, of statements only that may rename one of some tables, or columns of one."""
        return self._between([self.renamed.get(table.lower(), ()) for table in tables], place)

    def _between(self, noted: Iterable[Sequence[Place]], place: Place) -> tuple[Place, Place]:
        first, behind = self.first, _FAR
        for places in noted:
            at = bisect.bisect_left(places, place)
            if at:
                first = max(first, places[at - 1])
            if at < len(places):
                behind = min(behind, places[at])
        return first, behind


class RecordedSchema:
    """The source's tables at every position of an archive, as far as they are known.

    `scanned`: stretches of the binlogs that were looked through for statements; with them what was recorded ends, too, where
    a statement changes it.
    """

    def __init__(self, lines: Iterable[Line] = (), scanned: Sequence[DefinedSpan] = ()) -> None:
        self._versions: dict[tuple[str, str], list[_Version]] = {}
        watches: list[_Watch] = []
        tables: list[tuple[_Watch, Line]] = []
        asked: list[AskedTable | AskedCharset] = []
        noted: list[list[tuple[Place, LoggedDefinition]]] = []
        texts: list[bool] = []
        for one in lines:
            if one.kind == "watched" or not watches:
                watches.append(_Watch(one.place, one.place))
                noted.append([])
                texts.append(bool(one.facts.get("statements")))
            watch = watches[-1]
            watch.last = max(watch.last, one.place)
            if one.kind == "definition":
                definition = LoggedDefinition(None)
                with contextlib.suppress(KeyError, TypeError, ValueError):
                    definition = definition_of(one.facts)
                    noted[-1].append((one.place, definition))
                watch.note(one.place, one.facts.get("names"), definition.may_rename)
            elif one.kind in ("table", "dropped"):
                tables.append((watch, one))
            elif one.kind == "database":
                with contextlib.suppress(KeyError):
                    asked.append(_charset(one))
        self.texts_known = [
            (watch.first, watch.last) for watch, has_texts in zip(watches, texts, strict=True) if has_texts
        ]
        """[first, last): where the lines have every statement with its text."""
        for span in scanned:
            _note_scanned(watches, span)
        # One after the other is let go: all at once would hold up the other threads.
        tables.reverse()
        while tables:
            watch, one = tables.pop()
            try:
                table = table_of_facts(one.facts) if one.kind == "table" else None
                key = (str(one.facts["schema"]), str(one.facts["table"]))
            except (KeyError, TypeError, AttributeError):
                continue
            first, behind = watch.around(key[1], one.place)
            if behind == _FAR and watch is not watches[-1]:
                behind = watch.last
            if one.facts.get("by") != WORKED_OUT:
                version = _Version(first, behind, table)
                if table is not None and table.parents:
                    version.foreign_keys = watch.around_names((name for _schema, name in table.parents), one.place)
                self._versions.setdefault(key, []).append(version)
            asked.append(AskedTable(one.place, key, table))
        spans = [
            DefinedSpan(_beginning(watch.first), watch.last, tuple(definitions))
            for watch, definitions, has_texts in zip(watches, noted, texts, strict=True)
            if has_texts
        ]
        self._spans = (*spans, *scanned)
        self._asked = asked
        self._open_end = not scanned

    @classmethod
    def parse(cls, data: bytes) -> "RecordedSchema":
        """The schema that a file's bytes tell. Lines that cannot be read are left out."""
        return cls(parse_lines(data))

    def __bool__(self) -> bool:
        return bool(self._versions) or (bool(self._spans) and bool(self._history))

    @cached_property
    def _history(self) -> "SchemaHistory":
        from relay.schema_history.schema_history import SchemaHistory

        return SchemaHistory(self._spans, self._asked, open_end=self._open_end)

    def table(self, schema: str, name: str, file: str, offset: int) -> Table | None:
        """The table as it was for an event at this position; None: not known, or there was none. Raises: Malformed."""
        return self.recorded(schema, name, file, offset) or self.worked_out(schema, name, file, offset)

    def recorded(self, schema: str, name: str, file: str, offset: int) -> Table | None:
        """As `table`, of what the source was asked only."""
        return self._recorded((schema, name), (binlog_number(file), offset))

    def recorded_at(self, key: TableName, place: Place) -> Table | None:
        """As `recorded`, by place."""
        return self._recorded(key, place)

    def _recorded(self, key: TableName, place: Place) -> Table | None:
        """What was asked last, with the foreign keys of an earlier answer where its own are not those of the place."""
        found: Table | None = None
        for version in reversed(self._versions.get(key, ())):
            if version.first <= place < version.behind:
                table = version.at(place)
                if table is None:
                    break
                found = found or table
                if table.foreign_keys is not None:
                    return replace(found, foreign_keys=table.foreign_keys)
        return found

    def table_with_keys(self, schema: str, name: str, file: str, offset: int) -> Table | None:
        """As `table`; what the source did not tell of its keys, foreign keys and collations is there if statements say it."""
        return self.at((schema, name), (binlog_number(file), offset))

    def at(self, key: TableName, place: Place) -> Table | None:
        """As `table_with_keys`, by place."""
        recorded, worked_out = self._recorded(key, place), self._history.table(key, place)
        return (
            completed(recorded, worked_out)
            if recorded is not None and worked_out is not None
            else recorded or worked_out
        )

    def names(self) -> list[TableName]:
        """All tables of which something is known somewhere."""
        return sorted({*self._versions, *(key for _place, key in self._history.changes())})

    def changes(self) -> list[tuple[Place, TableName]]:
        """From where on `at` may say something else of a table than before, in order."""
        found = set(self._history.changes())
        for key, versions in self._versions.items():
            for one in versions:
                found |= {(place, key) for place in (one.first, one.behind, *one.foreign_keys)}
        return sorted(one for one in found if _NOWHERE < one[0] < _FAR)

    def worked_out(self, schema: str, name: str, file: str, offset: int) -> Table | None:
        """As `table`, of what the statements in the binlogs say."""
        return self._history.table((schema, name), (binlog_number(file), offset))

    def standing(self, place: Place) -> list[Table]:
        """Every table that the source was asked for and that is known at a place."""
        found = (self._recorded(key, place) for key in sorted(self._versions))
        return [table for table in found if table is not None]

    def standing_worked_out(self, place: Place) -> list[Table]:
        """The other tables that are known at a place: by statements only."""
        asked = {key for key, versions in self._versions.items() for one in versions if one.first <= place < one.behind}
        return [
            table
            for first, behind, table in self._history.tables()
            if first <= place and (behind is None or place < behind) and (table.schema, table.name) not in asked
        ]

    def charsets(self) -> dict[str, CharsetDefault]:
        """The character set and collation of new tables of each schema, as far as they are known at the end."""
        return self._history.charsets

    def temporary(self) -> frozenset[tuple[int, TableName]]:
        """The temporary tables that are there at the end, each with its connection."""
        return self._history.temporary

    def latest(self) -> list[Table]:
        """The tables that the source had when it was asked last, by schema and name; what nobody asked for, as the last statement
        says."""
        newest: dict[tuple[str, str], tuple[Place, Table | None]] = {}
        for first, _behind, table in self._history.tables():
            key = (table.schema, table.name)
            if key not in newest or first >= newest[key][0]:
                newest[key] = (first, table)
        for key, versions in self._versions.items():
            last = max(versions, key=lambda version: version.first)
            if key not in newest or last.first >= newest[key][0]:
                newest[key] = (last.first, last.table)
        return sorted((one for _place, one in newest.values() if one), key=lambda table: (table.schema, table.name))

    def spans(self) -> Iterator[tuple[Place, Place, Table]]:
        """Every version of every table: from where, up to where it is not so any more; of a table in the order they were asked."""
        for first, behind, table in self._history.tables():
            yield first, behind or _FAR, table
        for versions in self._versions.values():
            for version in versions:
                if version.table is not None:
                    table = version.table
                    if version.foreign_keys != (_NOWHERE, _FAR):
                        table = replace(table, foreign_keys=None)
                    yield version.first, version.behind, table


def _beginning(place: Place) -> Place:
    """The place, where it is a file's first event that file's beginning."""
    return (place[0], 0) if place[1] <= FIRST_EVENT else place


def _charset(one: Line) -> AskedCharset:
    facts = one.facts
    return AskedCharset(one.place, str(facts["schema"]), str(facts["charset"]), str(facts.get("collation", "")))


def _note_scanned(watches: list[_Watch], span: DefinedSpan) -> None:
    """What was recorded last holds up to the statements that were found behind its lines."""
    if not watches:
        return
    last = watches[-1].last
    for place, definition in span.definitions:
        if place >= last:
            watches[-1].note(place, definition.names, definition.may_rename)
