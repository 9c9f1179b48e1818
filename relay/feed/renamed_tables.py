"""RENAME TABLE in the lake: a table's rows appear under its new name, once, even if the process dies in between.

A lake has no commit over several tables. So each table takes its rows over in a commit of its own, whose place is after the statement:
a table that has passed that place is done. The table that takes a table's rows comes before that table's own turn. Where names are
swapped, one comes too late for that: before anything is done, each table notes which of its versions is the last before the statement,
and that version is read then.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from protocol.sql.tables.source_table import Table, TableName
from relay.feed.archive_reading import ArchiveReading
from relay.feed.feed_batch import BatchSpace, FeedBatch, TablePart, WantedTables, read_batch, renames_of
from relay.feed.lake.lake_rows import changed_rows, plain_schema
from relay.feed.lake.lake_table import SNAPSHOT, STALE_FROM, STALE_REASON, ColumnsChange
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop, table_stop
from relay.feed.rows.lake_columns import lake_columns, lake_key
from relay.feed.sink_table import SinkTable
from relay.feed.statements.definition_effect import alteration, recreated
from relay.feed.statements.logged_changes import CREATED, RENAMED, DdlChange, logged_changes, shown

RENAMING: Final = "binlog-relay.rename"
"""This property is set while names change: the statement's end, the table's version before it, and how stale it was and will be."""
_STALE: Final = (STALE_FROM, STALE_REASON)


@dataclass(slots=True)
class _Turn:
    """The task of one table: take the rows of `source` (None: have none). `had` and `gets` are since when it is stale, and why, before
    and after."""

    key: TableName
    table: SinkTable
    definition: DdlChange
    source: SinkTable | None
    had: list[str | None]
    gets: list[str | None]


class TableRenames:
    """The executor of a batch of one RENAME. `table` returns a table by its name, fed or not; `is_fed` returns whether the settings
    name it, `is_aside` whether it is set aside; `note_cascades` adds to a batch what foreign keys may have changed in some tables."""

    def __init__(
        self,
        reading: ArchiveReading,
        table: Callable[[TableName], SinkTable],
        is_fed: Callable[[TableName], bool],
        is_aside: Callable[[TableName], bool],
        note_cascades: Callable[[FeedBatch, Iterable[TableName]], None],
        most_bytes: int,
        space: BatchSpace,
    ) -> None:
        self._reading = reading
        self._table = table
        self._is_fed = is_fed
        self._is_aside = is_aside
        self._note_cascades = note_cascades
        self._most_bytes = most_bytes
        self._space = space

    def apply(self, batch: FeedBatch) -> None:
        """Bring all tables past the statement. Raises: FeedStop, with nothing done."""
        said = {one.key: one for one in renames_of(batch)}
        # The lake contains of a table that is not fed only what was fed for this.
        for one in list(said.values()):
            if one.source is not None and one.source not in said and not self._is_aside(one.source):
                said[one.source] = replace(one, key=one.source, source=None, target=one.key, clauses=())
        turns = [turn for one in said.values() if (turn := self._turn(one, batch)) is not None]
        todo = [one for one in turns if not self._is_done(one)]
        for turn in todo:
            self._note(turn)
        for turn in in_order(todo):
            self._take(turn, batch)
        for turn in turns:
            self._finish(turn)

    @staticmethod
    def _is_done(turn: _Turn) -> bool:
        place = turn.table.current.place if turn.table.current is not None else None
        return place is not None and place >= turn.definition.end

    def _turn(self, one: DdlChange, batch: FeedBatch) -> _Turn | None:
        """Return None if nothing is kept of the table and it takes no rows. Raises: FeedStop if its rows are unknown."""
        table = self._table(one.key)
        source = self._table(one.source) if one.source is not None else None
        told = self._reading.told(one.start)
        turn = _Turn(one.key, table, one, source, self._stale(table, one), [None, None])
        if self._is_done(turn):
            return turn
        if source is None:
            return turn if table.current is not None else None
        if self._is_aside(source.key):
            raise self._unknown(one, told, f"{source.name} is set aside")
        if not self._is_fed(source.key):
            self._catch_up(source, one, batch)
        if source.current is None:
            if table.current is None:
                return None
            raise self._unknown(one, told, f"the lake has no rows of {source.name}")
        if one.if_exists and source.definition_at(_before(one), batch.end) is None:
            raise self._unknown(one, told, f"it is not known whether {source.name} existed")
        fed = source.current.place
        if source.current.properties.get(SNAPSHOT) and not _noted(source, one):
            raise self._unknown(one, told, f"the snapshot of {source.name} was not done")
        if fed is not None and fed > one.start and _noted(source, one) is None:
            raise self._unknown(one, told, f"the lake has the rows of {source.name} from {self._reading.told(fed)} on")
        turn.gets = self._stale(source, one)
        if one.hides and not turn.gets[0]:
            turn.gets = [told, one.hides]
        return turn

    def _unknown(self, one: DdlChange, place: str, why: str) -> FeedStop:
        text = shown(one.text, 120)
        return table_stop("table_renamed", place, ".".join(one.key), f"Its rows are not known behind {text}: {why}.")

    @staticmethod
    def _stale(table: SinkTable, one: DdlChange) -> list[str | None]:
        """Return since when and why the table was stale before the statement."""
        noted = _noted(table, one)
        if noted is not None:
            return list(noted["had"])
        properties = table.current.properties if table.current is not None else {}
        return [properties.get(name) for name in _STALE]

    def _note(self, turn: _Turn) -> None:
        current = turn.table.current
        if current is None:
            return
        noted = _noted(turn.table, turn.definition)
        version = noted["version"] if noted is not None else current.version
        what = {"at": turn.definition.end.version, "version": version, "had": turn.had, "gets": turn.gets}
        properties = {RENAMING: json.dumps(what)}
        if turn.gets[0]:  # The marks are set before its rows exist rather than after
            properties |= {name: value or "" for name, value in zip(_STALE, turn.gets, strict=True)}
        current.set_properties(properties)

    def _take(self, turn: _Turn, batch: FeedBatch) -> None:
        one, source = turn.definition, turn.source
        if source is None or source.current is None:
            if turn.table.current is not None:
                turn.table.current.clear(one.end)
            return
        place = source.current.place
        noted = _noted(source, one)
        version = noted["version"] if noted is not None and place is not None and place > one.start else None
        with source.current.scan(version=version) as reader:
            change = self._change(turn, source, plain_schema(reader.schema), batch)
            if turn.table.current is None:
                turn.table.create(change.schema, one.start)
                self._note(turn)
            if turn.table.current is not None:
                turn.table.current.rebuild(change.schema, changed_rows(reader, change), one.end)

    def _change(self, turn: _Turn, source: SinkTable, schema: pa.Schema, batch: FeedBatch) -> ColumnsChange:
        """Return the change to the columns after the statement: ALTER TABLE may rename the table and change it at once."""
        one = turn.definition
        at = FeedOffset(one.start.generation, one.start.number, one.position)
        before: Table | None = source.definition_at(_before(one), batch.end)
        after: Table | None = turn.table.definition_at(at, batch.end)
        if before is None or after is None:
            if one.changes_columns:
                raise self._unknown(one, self._reading.told(one.start), "its columns are not known")
            return ColumnsChange(schema)
        told = self._reading.told(at)
        if not schema.names:  # a table without a version yet
            return recreated(lake_columns(after, told), has_key=bool(lake_key(after)))
        return alteration(one, before, after, schema, told, empty=False)

    def _finish(self, turn: _Turn) -> None:
        current = turn.table.current
        if current is None or not self._is_done(turn):
            return
        noted = _noted(turn.table, turn.definition)
        if noted is None:
            return
        stale = {name: value or "" for name, value in zip(_STALE, noted["gets"], strict=True)}
        current.set_properties({RENAMING: "", SNAPSHOT: "", **stale})

    # ---- rows of a table that is not fed ----

    def _catch_up(self, table: SinkTable, one: DdlChange, batch: FeedBatch) -> None:
        """Feed a table that the settings do not name, from its CREATE TABLE up to the statement."""
        place = self._made_at(table.key, one.start)
        if place is None:
            raise self._unknown(
                one,
                self._reading.told(one.start),
                f"{table.name} is not fed here, and the archive has no CREATE TABLE of it",
            )
        fed = table.current.place if table.current is not None else None
        place = max(place, fed) if fed is not None else place
        wanted = WantedTables(lambda key: key == table.key, [table.key], [table.key[0]], space=self._space)
        while place < one.start:
            upto = min(self._reading.newest(place, self._most_bytes), one.start)
            some = read_batch(self._reading, place, upto, wanted)
            try:
                self._note_cascades(some, [table.key])
                part = some.parts.get(table.key) or TablePart(table.key)
                if any(said.action == RENAMED for said in part.definitions):
                    raise self._unknown(one, self._reading.told(one.start), f"{table.name} had another name before")
                try:
                    table.apply(some, part)
                    if some.stop is not None:
                        raise some.stop
                except FeedStop as stop:  # the table is not fed: whoever left it out must see this stop
                    why = f"{table.name} is not fed here, and cannot be followed up to there ({stop.name} at {stop.place})"
                    raise self._unknown(one, self._reading.told(one.start), why) from None
            finally:
                some.close()
            place = some.end

    def _made_at(self, key: TableName, upto: FeedOffset) -> FeedOffset | None:
        """Return the place of the newest CREATE TABLE of a table, unless a later statement gave it its name."""
        for start, end in self._reading.stretches_before(upto):
            statements = self._reading.statements(start, end)
            text = statements.column("statement")
            named = statements.filter(pa.compute.match_substring(text, key[1], ignore_case=True))
            told = self._reading
            found = logged_changes(named.to_pylist(), {}, told.server_version, [key], told.used_temporary)
            for one in reversed(found.definitions):
                if one.key == key and one.action == RENAMED and one.source is not None:
                    return None
                if one.key == key and one.action == CREATED:
                    return one.start
        return None


def _before(one: DdlChange) -> FeedOffset:
    """Return a place at which the statement has not changed anything."""
    return FeedOffset(one.start.generation, one.start.number, one.position - 1)


def _noted(table: SinkTable, one: DdlChange) -> dict[str, Any] | None:
    """Return what the table noted about this statement, or None."""
    text = table.current.properties.get(RENAMING) if table.current is not None else None
    noted: dict[str, Any] | None = json.loads(text) if text else None
    return noted if noted is not None and noted["at"] == one.end.version else None


def in_order(turns: list[_Turn]) -> Iterator[_Turn]:
    """Yield the table that takes another's rows before that other one, except where names are swapped."""
    by_key = {one.key: one for one in turns}
    seen: set[TableName] = set()
    for turn in turns:
        chain = []
        at: _Turn | None = turn
        while at is not None and at.key not in seen:
            seen.add(at.key)
            chain.append(at)
            at = by_key.get(at.definition.target) if at.definition.target is not None else None
        yield from reversed(chain)
