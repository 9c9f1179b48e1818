"""The known tables of an archive's source: lines of JSON in `source-schema.jsonl`, and the places where each is true.

One line is one object of a `kind`:

    {"kind": "watched", "file": F, "offset": N, "statements": true}
                                                            from here on statements that define tables are noted; readable ones
                                                            with their texts, if "statements" is true
    {"kind": "definition", "file": F, "offset": N, "names": [...], "sql": {...}}
                                                            such a statement, and every word in it that may name a table (null: any
                                                            table); "sql": {"text", "schema" (the default one), "thread", "mode"
                                                            (sql_mode), "charset" and "collation" (the server's, of new databases),
                                                            "collations" (of character sets, {CHARSET: COLLATION}), "version",
                                                            "error"}
    {"kind": "table", "file": F, "offset": N, "schema": S, "table": T, "engine": E, "columns": [...], "keys": {...},
     "foreign_keys": {...}}                                 the table as the source had it at this position ("charset", "collation": of
                                                            new columns; "type": SEQUENCE or SYSTEM VERSIONED;
                                                            "by": "ddl": statements define it, not an answer)
    {"kind": "database", "file": F, "offset": N, "schema": S, "charset": C, "collation": C}
                                                            the default of new tables of a schema at this position
    {"kind": "dropped", "file": F, "offset": N, "schema": S, "table": T}
                                                            at this position the source had no such table, or showed none
    {"kind": "triggers", "file": F, "offset": N, "tables": [[S, T], ...]}
                                                            at this position the account was shown all tables, and these had triggers
    {"kind": "trigger", "file": F, "offset": N}             a statement that may create, change or drop a trigger
    {"kind": "covered", "file": F, "offset": N}             up to here every such statement was noted

    column: {"name", "type" (as in SHOW CREATE TABLE), "charset", "collation", "nullable", "extra", "default"}; empty ones are left out
    keys:   {NAME: {"unique": true, "columns": [...], "prefixes": [...]}}; the primary key is called PRIMARY; a column called "" is an
            expression; prefixes: how much of each column is in the key, null: all; without "prefixes": not known
    foreign_keys: {NAME: {"columns": [...], "schema", "table", "referenced": [...], "on_delete", "on_update"}}; without: not known
            whether there are any. They are valid up to a statement that renames a table which they name

A line about a table is valid from the statement before that names it to the next one that does, within the watched span: one answer is
valid for older binlogs too, and never longer than it is true.
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
"""The value of "by" in a table's line that the statements before it define, and not the source's answer."""
_NOWHERE: Final = (-1, 0)
_FAR: Final = (1 << 63, 0)


def table_line(facts: str, file: str, offset: int, by: str = "") -> str:
    """Return the line for a table with these `table_facts` at a position, with its line end. `by`: WORKED_OUT, or "": the source."""
    told = f'"by": {json.dumps(by)}, ' if by else ""
    return f'{{"kind": "table", "file": {json.dumps(file)}, "offset": {offset}, {told}{facts[1:]}\n'


def line(kind: str, file: str, offset: int, **facts: Any) -> str:
    """Return a line of the file, with its line end."""
    return json.dumps({"kind": kind, "file": file, "offset": offset, **facts}, ensure_ascii=False) + "\n"


def database_line(schema: str, default: CharsetDefault, file: str, offset: int) -> str:
    """Return the line for a schema whose new tables have this character set and collation from a position on."""
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
    """Yield the whole lines of the file. A last one without its end, and text that is no line of ours, is left out."""
    for raw in data.split(b"\n")[:-1]:
        try:
            facts = kept_json(raw)
            yield Line(
                str(facts["kind"]), (binlog_number(facts["file"]), int(facts["offset"])), facts, raw.decode() + "\n"
            )
        except (ValueError, KeyError, TypeError, Malformed):
            continue


def table_of_line(one: Line) -> Table:
    """Return the table of a "table" line. Raises: KeyError, TypeError, AttributeError if it is no such line."""
    return table_of_facts(one.facts)


@dataclass(slots=True)
class _Version:
    """A table from `first` on, before `stop`; None: it was dropped. Its foreign keys may be known for less."""

    first: Place
    stop: Place
    table: Table | None
    foreign_keys: tuple[Place, Place] = (_NOWHERE, _FAR)

    def at(self, place: Place) -> Table | None:
        """Return the table as far as it is known at one of these places."""
        first, stop = self.foreign_keys
        if self.table is None or self.table.foreign_keys is None or first <= place < stop:
            return self.table
        return replace(self.table, foreign_keys=None)


@dataclass(slots=True)
class _Watch:
    """A span of the binlogs in which every definition was noted. `named` maps a table's name in lower case to the statements that name
    it; `renamed` maps it to those of them that may rename it or its columns.
    """

    first: Place
    last: Place
    named: dict[str, list[Place]] = field(default_factory=dict)
    renamed: dict[str, list[Place]] = field(default_factory=dict)
    unnamed: list[Place] = field(default_factory=list)

    def note(self, place: Place, names: Iterable[str] | None, renames: bool) -> None:
        """Note a definition. Those of one table must come in their order."""
        if names is None:
            self.unnamed.append(place)
            return
        for name in names:
            self.named.setdefault(name, []).append(place)
            if renames:
                self.renamed.setdefault(name, []).append(place)

    def around(self, table: str, place: Place) -> tuple[Place, Place]:
        """Return the places of the definition of `table` before `place`, and of the next one; as far as it was watched."""
        return self._between((self.named.get(table.lower(), ()), self.unnamed), place)

    def around_names(self, tables: Iterable[str], place: Place) -> tuple[Place, Place]:
        """Return the places as `around` does, for statements only that may rename one of some tables, or columns of one."""
        return self._between([self.renamed.get(table.lower(), ()) for table in tables], place)

    def _between(self, noted: Iterable[Sequence[Place]], place: Place) -> tuple[Place, Place]:
        first, stop = self.first, _FAR
        for places in noted:
            at = bisect.bisect_left(places, place)
            if at:
                first = max(first, places[at - 1])
            if at < len(places):
                stop = min(stop, places[at])
        return first, stop


class RecordedSchema:
    """The source's tables at every position of an archive, as far as they are known.

    `scanned` are stretches of the binlogs that were searched for statements; with them a record ends, too, where a statement changes
    it.
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
        """[first, last): the stretches whose lines contain every statement with its text."""
        for span in scanned:
            _note_scanned(watches, span)
        # The lines are released one by one: all at once would delay the other threads.
        tables.reverse()
        while tables:
            watch, one = tables.pop()
            try:
                table = table_of_facts(one.facts) if one.kind == "table" else None
                key = (str(one.facts["schema"]), str(one.facts["table"]))
            except (KeyError, TypeError, AttributeError):
                continue
            first, stop = watch.around(key[1], one.place)
            if stop == _FAR and watch is not watches[-1]:
                stop = watch.last
            if one.facts.get("by") != WORKED_OUT:
                version = _Version(first, stop, table)
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
        """Return the schema in a file's bytes. Lines that cannot be read are left out."""
        return cls(parse_lines(data))

    def __bool__(self) -> bool:
        return bool(self._versions) or (bool(self._spans) and bool(self._history))

    @cached_property
    def _history(self) -> "SchemaHistory":
        from relay.schema_history.schema_history import SchemaHistory

        return SchemaHistory(self._spans, self._asked, open_end=self._open_end)

    def table(self, schema: str, name: str, file: str, offset: int) -> Table | None:
        """Return the table as it was for an event at this position; None: not known, or there was none. Raises: Malformed."""
        return self.recorded(schema, name, file, offset) or self.worked_out(schema, name, file, offset)

    def recorded(self, schema: str, name: str, file: str, offset: int) -> Table | None:
        """Return the `table` by the source's answers only."""
        return self._recorded((schema, name), (binlog_number(file), offset))

    def recorded_at(self, key: TableName, place: Place) -> Table | None:
        """Return the `recorded` table, by place."""
        return self._recorded(key, place)

    def _recorded(self, key: TableName, place: Place) -> Table | None:
        """Return the last answer, with the foreign keys of an earlier one where its own are not valid at the place."""
        found: Table | None = None
        for version in reversed(self._versions.get(key, ())):
            if version.first <= place < version.stop:
                table = version.at(place)
                if table is None:
                    break
                found = found or table
                if table.foreign_keys is not None:
                    return replace(found, foreign_keys=table.foreign_keys)
        return found

    def table_with_keys(self, schema: str, name: str, file: str, offset: int) -> Table | None:
        """Return the `table`; keys, foreign keys and collations missing in the source's answer come from statements if possible."""
        return self.at((schema, name), (binlog_number(file), offset))

    def at(self, key: TableName, place: Place) -> Table | None:
        """Return the `table_with_keys`, by place."""
        recorded, worked_out = self._recorded(key, place), self._history.table(key, place)
        return (
            completed(recorded, worked_out)
            if recorded is not None and worked_out is not None
            else recorded or worked_out
        )

    def names(self) -> list[TableName]:
        """Return all tables of which something is known somewhere."""
        return sorted({*self._versions, *(key for _place, key in self._history.changes())})

    def changes(self) -> list[tuple[Place, TableName]]:
        """Return the places from which `at` may return another table than before, in order."""
        found = set(self._history.changes())
        for key, versions in self._versions.items():
            for one in versions:
                found |= {(place, key) for place in (one.first, one.stop, *one.foreign_keys)}
        return sorted(one for one in found if _NOWHERE < one[0] < _FAR)

    def worked_out(self, schema: str, name: str, file: str, offset: int) -> Table | None:
        """Return the `table` by the statements in the binlogs."""
        return self._history.table((schema, name), (binlog_number(file), offset))

    def standing(self, place: Place) -> list[Table]:
        """Return every table that the source was asked for and that is known at a place."""
        found = (self._recorded(key, place) for key in sorted(self._versions))
        return [table for table in found if table is not None]

    def standing_worked_out(self, place: Place) -> list[Table]:
        """Return the other tables that are known at a place: by statements only."""
        asked = {key for key, versions in self._versions.items() for one in versions if one.first <= place < one.stop}
        return [
            table
            for first, stop, table in self._history.tables()
            if first <= place and (stop is None or place < stop) and (table.schema, table.name) not in asked
        ]

    def charsets(self) -> dict[str, CharsetDefault]:
        """Return the character set and collation of new tables of each schema, as far as they are known at the end."""
        return self._history.charsets

    def temporary(self) -> frozenset[tuple[int, TableName]]:
        """Return the temporary tables that exist at the end, each with its connection."""
        return self._history.temporary

    def latest(self) -> list[Table]:
        """Return the tables of the source's last answers, by schema and name; others are as the last statement defines them."""
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
        """Yield every version of every table: from where, up to where it is valid; those of a table in the order of the answers."""
        for first, stop, table in self._history.tables():
            yield first, stop or _FAR, table
        for versions in self._versions.values():
            for version in versions:
                if version.table is not None:
                    table = version.table
                    if version.foreign_keys != (_NOWHERE, _FAR):
                        table = replace(table, foreign_keys=None)
                    yield version.first, version.stop, table


def _beginning(place: Place) -> Place:
    """Return the place, but that of a file's first event as that file's beginning."""
    return (place[0], 0) if place[1] <= FIRST_EVENT else place


def _charset(one: Line) -> AskedCharset:
    facts = one.facts
    return AskedCharset(one.place, str(facts["schema"]), str(facts["charset"]), str(facts.get("collation", "")))


def _note_scanned(watches: list[_Watch], span: DefinedSpan) -> None:
    """Let the last records end at the statements that were found after their lines."""
    if not watches:
        return
    last = watches[-1].last
    for place, definition in span.definitions:
        if place >= last:
            watches[-1].note(place, definition.names, definition.may_rename)
