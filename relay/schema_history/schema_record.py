"""What an archive knows of its source's tables: lines of JSON in `source-schema.jsonl`, and which of them are true where.

One line is one object; `kind` says what:

    {"kind": "watched", "file": F, "offset": N}             from here on statements that define tables are noted
    {"kind": "definition", "file": F, "offset": N, "names": [...]}
                                                            such a statement, and every word in it that may name a table;
                                                            null: any table
    {"kind": "table", "file": F, "offset": N, "schema": S, "table": T, "engine": E, "columns": [...], "keys": {...}}
                                                            the table as the source had it at this position
    {"kind": "dropped", "file": F, "offset": N, "schema": S, "table": T}
                                                            at this position the source had no such table, or showed none
    {"kind": "covered", "file": F, "offset": N}             up to here every such statement was noted

    column: {"name", "type" (as in SHOW CREATE TABLE), "charset", "collation", "nullable", "extra"}; what is empty is left out
    keys:   {NAME: {"unique": true, "columns": [...]}}; the primary key is called PRIMARY

A table is what a line says of it from the statement before that names it to the next one that does, as far as somebody
watched: what was asked once holds for older binlogs too, and never longer than it is true.
"""

import bisect
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from protocol.errors import Malformed
from protocol.position import binlog_number

Place = tuple[int, int]
"""(number of the file, offset in it): the order of positions in one archive."""
_FAR: Final = (1 << 63, 0)


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `type` as in SHOW CREATE TABLE: `int(10) unsigned`, `enum('a','b')`. Texts are empty where there is none."""

    name: str
    type: str
    charset: str = ""
    collation: str = ""
    nullable: bool = True
    extra: str = ""

    @property
    def generated(self) -> bool:
        """Whether its value is computed from other columns."""
        extra = self.extra.upper()
        return "GENERATED" in extra.replace("DEFAULT_GENERATED", "") or "VIRTUAL" in extra or "PERSISTENT" in extra


@dataclass(frozen=True, slots=True)
class Key:
    """An index of a table."""

    columns: tuple[str, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the source. `keys`: by name; PRIMARY is the primary key."""

    schema: str
    name: str
    engine: str = ""
    columns: tuple[Column, ...] = ()
    keys: tuple[tuple[str, Key], ...] = ()

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The primary key's columns; nothing where there is none."""
        return next((key.columns for name, key in self.keys if name == "PRIMARY"), ())

    @property
    def has_unique_key(self) -> bool:
        """Whether some key makes every row findable: a primary key, or a unique one whose columns are never NULL."""
        never_null = {column.name for column in self.columns if not column.nullable}
        return any(name == "PRIMARY" or (key.unique and never_null.issuperset(key.columns)) for name, key in self.keys)


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
        columns.append(described)
    keys = {name: {"unique": key.unique, "columns": list(key.columns)} for name, key in table.keys}
    facts = {"schema": table.schema, "table": table.name, "engine": table.engine, "columns": columns, "keys": keys}
    return json.dumps(facts, ensure_ascii=False)


def table_line(facts: str, file: str, offset: int) -> str:
    """The line for a table with these `table_facts` as it was at a position, with its line end."""
    return f'{{"kind": "table", "file": {json.dumps(file)}, "offset": {offset}, {facts[1:]}\n'


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
        )
        for one in facts["columns"]
    )
    keys = tuple(
        (str(name), Key(tuple(map(str, key["columns"])), bool(key["unique"]))) for name, key in facts["keys"].items()
    )
    return Table(str(facts["schema"]), str(facts["table"]), str(facts["engine"]), columns, keys)


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
    """The source's tables at every position of an archive, as far as they are known."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self._versions: dict[tuple[str, str], list[_Version]] = {}
        watches: list[_Watch] = []
        tables: list[tuple[_Watch, Line]] = []
        for one in lines:
            if one.kind == "watched" or not watches:
                watches.append(_Watch(one.place, one.place))
            watch = watches[-1]
            watch.last = max(watch.last, one.place)
            if one.kind == "definition":
                watch.note(one.place, one.facts.get("names"))
            elif one.kind in ("table", "dropped"):
                tables.append((watch, one))
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
            self._versions.setdefault(key, []).append(_Version(first, behind, table))

    @classmethod
    def parse(cls, data: bytes) -> "RecordedSchema":
        """The schema that a file's bytes tell. Lines that cannot be read are left out."""
        return cls(parse_lines(data))

    def __bool__(self) -> bool:
        return bool(self._versions)

    def table(self, schema: str, name: str, file: str, offset: int) -> Table | None:
        """The table as it was for an event at this position; None: not known, or there was none. Raises: Malformed."""
        place = (binlog_number(file), offset)
        for version in reversed(self._versions.get((schema, name), ())):
            if version.first <= place < version.behind:
                return version.table
        return None

    def standing(self, place: Place) -> list[Table]:
        """Every table that is known at a place."""
        found = {}
        for key, versions in self._versions.items():
            for version in versions:
                if version.first <= place < version.behind:
                    found[key] = version.table
        return [table for _key, table in sorted(found.items(), key=lambda item: item[0]) if table is not None]

    def latest(self) -> list[Table]:
        """The tables that the source had when it was asked last, by schema and name."""
        newest = [max(versions, key=lambda version: version.first) for versions in self._versions.values()]
        return sorted((one.table for one in newest if one.table), key=lambda table: (table.schema, table.name))

    def spans(self) -> Iterator[tuple[Place, Place, Table]]:
        """Every version of every table: from where, up to where it is not so any more; of a table in the order they were asked."""
        for versions in self._versions.values():
            for version in versions:
                if version.table is not None:
                    yield version.first, version.behind, version.table
