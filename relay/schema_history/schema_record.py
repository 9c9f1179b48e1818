"""What an archive knows of its source's tables: lines of JSON in `source-schema.jsonl`, and which of them are true where.

One line is one object; `kind` says what:

    {"kind": "watched", "file": F, "offset": N, "statements": true}
                                                            from here on statements that define tables are noted; all that can be
                                                            read with their texts, if "statements" is there
    {"kind": "definition", "file": F, "offset": N, "names": [...], "sql": {...}}
                                                            such a statement, and every word in it that may name a table (null: any
                                                            table); "sql": {"text", "schema" (the default one), "thread", "mode"
                                                            (sql_mode), "charset" (the server's), "version", "error"}
    {"kind": "table", "file": F, "offset": N, "schema": S, "table": T, "engine": E, "columns": [...], "keys": {...}}
                                                            the table as the source had it at this position
                                                            ("charset": of new columns; "by": "ddl": nobody asked, statements say so)
    {"kind": "database", "file": F, "offset": N, "schema": S, "charset": C}
                                                            the character set of new tables of a schema at this position
    {"kind": "dropped", "file": F, "offset": N, "schema": S, "table": T}
                                                            at this position the source had no such table, or showed none
    {"kind": "covered", "file": F, "offset": N}             up to here every such statement was noted

    column: {"name", "type" (as in SHOW CREATE TABLE), "charset", "collation", "nullable", "extra", "default"}; empty ones are left out
    keys:   {NAME: {"unique": true, "columns": [...]}}; the primary key is called PRIMARY

A table is what a line says of it from the statement before that names it to the next one that does, as far as somebody
watched: what was asked once holds for older binlogs too, and never longer than it is true.
"""

import bisect
import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.position import binlog_number
from relay.schema_history.logged_definition import LoggedDefinition, definition_of
from relay.schema_history.schema_facts import AskedCharset, AskedTable, DefinedSpan, Place
from relay.schema_history.tables.source_table import Column, Key, Table

if TYPE_CHECKING:
    from relay.schema_history.schema_history import SchemaHistory

WORKED_OUT: Final = "ddl"
"""Who tells a table's line: not the source, the statements before it."""
_FAR: Final = (1 << 63, 0)


def table_facts(table: Table) -> str:
    """What a line says of `table`, without when: the same text for the same table."""
    columns: list[dict[str, Any]] = []
    for column in table.columns:
        described: dict[str, Any] = {"name": column.name, "type": column.type}
        for name in ("charset", "collation", "extra"):
            if getattr(column, name):
                described[name] = getattr(column, name)
        if not column.nullable:
            described["nullable"] = False
        if column.default is not None:
            described["default"] = column.default
        columns.append(described)
    keys = {name: {"unique": key.unique, "columns": list(key.columns)} for name, key in table.keys}
    facts: dict[str, Any] = {
        "schema": table.schema,
        "table": table.name,
        "engine": table.engine,
        "columns": columns,
        "keys": keys,
    }
    if table.charset:
        facts["charset"] = table.charset
    return json.dumps(facts, ensure_ascii=False)


def table_line(facts: str, file: str, offset: int, by: str = "") -> str:
    """The line for a table with these `table_facts` as it was at a position, with its line end. `by`: WORKED_OUT, or the source."""
    told = f'"by": {json.dumps(by)}, ' if by else ""
    return f'{{"kind": "table", "file": {json.dumps(file)}, "offset": {offset}, {told}{facts[1:]}\n'


def line(kind: str, file: str, offset: int, **facts: Any) -> str:
    """A line of the file, with its line end."""
    return json.dumps({"kind": kind, "file": file, "offset": offset, **facts}, ensure_ascii=False) + "\n"


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
            facts = json.loads(raw)
            yield Line(
                str(facts["kind"]), (binlog_number(facts["file"]), int(facts["offset"])), facts, raw.decode() + "\n"
            )
        except (ValueError, KeyError, TypeError, Malformed):
            continue


def _table(facts: dict[str, Any]) -> Table:
    columns = tuple(
        Column(
            str(one["name"]),
            str(one["type"]),
            str(one.get("charset", "")),
            str(one.get("collation", "")),
            bool(one.get("nullable", True)),
            str(one.get("extra", "")),
            str(one["default"]) if one.get("default") is not None else None,
        )
        for one in facts["columns"]
    )
    keys = tuple(
        (str(name), Key(tuple(map(str, key["columns"])), bool(key["unique"]))) for name, key in facts["keys"].items()
    )
    return Table(
        str(facts["schema"]), str(facts["table"]), str(facts["engine"]), columns, keys, str(facts.get("charset", ""))
    )


@dataclass(slots=True)
class _Version:
    """A table from `first` on, up to and not including `behind`; None: it was dropped."""

    first: Place
    behind: Place
    table: Table | None


@dataclass(slots=True)
class _Watch:
    """A span of the binlogs in which every definition was noted. `named`: a table's name in lower case to where statements name it."""

    first: Place
    last: Place
    named: dict[str, list[Place]] = field(default_factory=dict)
    unnamed: list[Place] = field(default_factory=list)

    def note(self, place: Place, names: Iterable[str] | None) -> None:
        """A definition. Those of one table must come in their order."""
        if names is None:
            self.unnamed.append(place)
        else:
            for name in names:
                self.named.setdefault(name, []).append(place)

    def around(self, table: str, place: Place) -> tuple[Place, Place]:
        """From the definition of `table` before `place`, to the next one; as far as it was watched."""
        first, behind = self.first, _FAR
        for places in (self.named.get(table.lower(), ()), self.unnamed):
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
                watch.note(one.place, one.facts.get("names"))
                with contextlib.suppress(KeyError, TypeError, ValueError):
                    noted[-1].append((one.place, definition_of(one.facts)))
            elif one.kind in ("table", "dropped"):
                tables.append((watch, one))
            elif one.kind == "database":
                with contextlib.suppress(KeyError):
                    asked.append(AskedCharset(one.place, str(one.facts["schema"]), str(one.facts["charset"])))
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
                table = _table(one.facts) if one.kind == "table" else None
                key = (str(one.facts["schema"]), str(one.facts["table"]))
            except (KeyError, TypeError, AttributeError):
                continue
            first, behind = watch.around(key[1], one.place)
            if behind == _FAR and watch is not watches[-1]:
                behind = watch.last
            if one.facts.get("by") != WORKED_OUT:
                self._versions.setdefault(key, []).append(_Version(first, behind, table))
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
        place = (binlog_number(file), offset)
        for version in reversed(self._versions.get((schema, name), ())):
            if version.first <= place < version.behind:
                return version.table
        return None

    def worked_out(self, schema: str, name: str, file: str, offset: int) -> Table | None:
        """As `table`, of what the statements in the binlogs say."""
        return self._history.table((schema, name), (binlog_number(file), offset))

    def standing(self, place: Place) -> list[Table]:
        """Every table that the source was asked for and that is known at a place."""
        found: dict[tuple[str, str], Table | None] = {}
        for key, versions in self._versions.items():
            for version in versions:
                if version.first <= place < version.behind:
                    found[key] = version.table
        return [table for _key, table in sorted(found.items(), key=lambda item: item[0]) if table is not None]

    def standing_worked_out(self, place: Place) -> list[Table]:
        """The other tables that are known at a place: by statements only."""
        asked = {key for key, versions in self._versions.items() for one in versions if one.first <= place < one.behind}
        return [
            table
            for first, behind, table in self._history.tables()
            if first <= place and (behind is None or place < behind) and (table.schema, table.name) not in asked
        ]

    def charsets(self) -> dict[str, str]:
        """The character set of new tables of each schema, as far as it is known at the end."""
        return self._history.charsets

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
                    yield version.first, version.behind, version.table


def _beginning(place: Place) -> Place:
    """The place, where it is a file's first event that file's beginning."""
    return (place[0], 0) if place[1] <= FIRST_EVENT else place


def _note_scanned(watches: list[_Watch], span: DefinedSpan) -> None:
    """What was recorded last holds up to the statements that were found behind its lines."""
    if not watches:
        return
    last = watches[-1].last
    for place, definition in span.definitions:
        if place >= last:
            watches[-1].note(place, definition.names)
