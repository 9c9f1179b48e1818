"""The tables at every place of binlogs, derived from the statements in them, between the source's answers."""

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from protocol.sql.tables.source_table import Table, TableName
from relay.schema_history.schema_facts import AskedCharset, AskedTable, DefinedSpan, Place
from relay.schema_history.table_agreement import keys_agree, tables_agree, without_keys
from relay.source_tables.applied_definition import note_table
from relay.source_tables.table_book import SourceTables


@dataclass(slots=True)
class _Versions:
    """The versions of one table, in order: the place from which each is valid, the table (None: not known), and its lineage."""

    places: list[Place] = field(default_factory=list)
    tables: list[Table | None] = field(default_factory=list)
    lineages: list[int] = field(default_factory=list)


class SchemaHistory:
    """Replays the statements in `spans`. Answers are true at their place, and show which derived tables are wrong: these are then
    unknown. Between two spans with others between them nothing is known, and after the last only with `open_end`.
    """

    def __init__(
        self, spans: Iterable[DefinedSpan], asked: Iterable[AskedTable | AskedCharset] = (), *, open_end: bool = False
    ) -> None:
        self._versions: dict[TableName, _Versions] = {}
        self._wrong: set[int] = set()
        self._wrong_keys: set[int] = set()
        """Lineages whose columns are right, as far as known, and whose keys or collations are not."""
        self._state = SourceTables()
        self._asked = sorted(asked, key=lambda one: one.place)
        self._next = 0
        seen: Place = (-1, 0)
        for span in sorted(spans, key=lambda one: one.first):
            if span.first > seen:
                self._take_asked(seen)
                self._state.clear()
                self._note(seen)
                self._skip_asked(span.first)
            for place, definition in sorted(span.definitions, key=lambda one: one[0]):
                if place >= seen:
                    self._take_asked(place)
                    definition.apply_to(self._state)
                    self._note(place)
                    seen = (place[0], place[1] + 1)
            seen = max(seen, span.last)
        self._take_asked(seen)
        self.charsets = self._state.charsets
        """The default of each schema at the end."""
        self.temporary = self._state.temporary
        """The temporary tables at the end, each with its connection."""
        if not open_end:
            self._state.clear()
            self._note(seen)

    def __bool__(self) -> bool:
        return bool(self._versions)

    def table(self, key: TableName, place: Place) -> Table | None:
        """Return the table for an event at this place; None: not known."""
        versions = self._versions.get(key)
        if versions is None:
            return None
        at = bisect.bisect_right(versions.places, place) - 1
        if at < 0 or versions.lineages[at] in self._wrong:
            return None
        table = versions.tables[at]
        return without_keys(table) if table is not None and versions.lineages[at] in self._wrong_keys else table

    def changes(self) -> Iterator[tuple[Place, TableName]]:
        """Yield each place from which the known state of a table differs from that before."""
        for key, versions in self._versions.items():
            for place in versions.places:
                yield place, key

    def tables(self) -> Iterator[tuple[Place, Place | None, Table]]:
        """Yield every version of every table: from where, up to where (None: the end), in the order of a table's versions."""
        for versions in self._versions.values():
            ends = [*versions.places[1:], None]
            for place, end, table, lineage in zip(
                versions.places, ends, versions.tables, versions.lineages, strict=True
            ):
                if table is not None and lineage not in self._wrong:
                    yield place, end, without_keys(table) if lineage in self._wrong_keys else table

    def _take_asked(self, until: Place) -> None:
        """Apply the answers up to a statement at `until`."""
        while self._next < len(self._asked) and self._asked[self._next].place <= until:
            one = self._asked[self._next]
            self._next += 1
            if isinstance(one, AskedCharset):
                self._state.note_charset(one.schema, (one.charset, one.collation))
                continue
            known = self._state.exact(one.key)
            lineage = self._state.lineages.get(one.key, 0)
            if known is not None and (one.table is None or not tables_agree(known, one.table)):
                self._wrong.add(lineage)
                self._state.doubt(one.key)
            elif known is not None and one.table is not None and not keys_agree(known, one.table):
                self._wrong_keys.add(lineage)
                self._state.doubt(one.key)
            if one.table is None:
                self._state.note_missing(one.key)
            else:
                note_table(self._state, one.table)
            self._note(one.place)

    def _skip_asked(self, until: Place) -> None:
        while self._next < len(self._asked) and self._asked[self._next].place < until:
            self._next += 1

    def _note(self, place: Place) -> None:
        for key in self._state.take_touched():
            versions = self._versions.setdefault(key, _Versions())
            table = self._state.exact(key)
            if versions.places and versions.places[-1] == place:
                versions.tables[-1], versions.lineages[-1] = table, self._state.lineages.get(key, 0)
            else:
                versions.places.append(place)
                versions.tables.append(table)
                versions.lineages.append(self._state.lineages.get(key, 0))
