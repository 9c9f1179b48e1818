"""One table of the source in the lake: its current rows and its changes, and how a batch is applied to them."""

import json
from collections.abc import Mapping
from datetime import datetime
from functools import partial

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from protocol.errors import Malformed
from protocol.sql.engines import engine_of, has_transactions
from protocol.sql.tables.source_table import Table, TableName
from relay.binlog_tables import arrow
from relay.feed.archive_reading import ArchiveReading
from relay.feed.compacted_changes import NetOfPart
from relay.feed.feed_batch import FeedBatch, TablePart
from relay.feed.lake.lake_content import has_zero, is_empty
from relay.feed.lake.lake_rows import changed_rows
from relay.feed.lake.lake_table import (
    SNAPSHOT,
    STALE_FROM,
    STALE_REASON,
    CannotEvolve,
    ColumnsChange,
    Lake,
    LakeTable,
    NewTable,
)
from relay.feed.replaced_in_part import UNSURE, ReplacedRows
from relay.feed.rows.equal_rows import OWN_NAME, RowsUnnamed
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import SNAPSHOT_ADVICE, FeedStop, table_stop
from relay.feed.rows.invalid_dates import NULL, NullDates, with_null_dates
from relay.feed.rows.lake_columns import ROW, LakeColumn, lake_columns, lake_key, lake_schema
from relay.feed.rows.net_changes import TableRows
from relay.feed.rows.row_places import AT, with_places
from relay.feed.settings.feed_settings import CURRENT, HISTORY, FeedSettings
from relay.feed.spool.part_rows import PartRows
from relay.feed.spool.row_memory import done_in_memory
from relay.feed.statements.definition_effect import alteration, recreated
from relay.feed.statements.history_rows import CHANGE_COLUMNS, HistoryGap, with_definitions
from relay.feed.statements.logged_changes import (
    ALTERED,
    CREATED,
    DROPPED,
    RENAMED,
    TRUNCATED,
    DdlChange,
    UnseenChange,
    shown,
    unseen_at,
)


class SinkTable:
    """One fed table. `current` and `history` are None if they do not exist (yet)."""

    def __init__(
        self,
        key: TableName,
        lake: Lake,
        reading: ArchiveReading,
        connection: duckdb.DuckDBPyConnection,
        settings: FeedSettings,
    ) -> None:
        self.key = key
        self._lake = lake
        self._reading = reading
        self._connection = connection
        self._settings = settings
        self.current: LakeTable | None = lake.open(CURRENT, *key) if CURRENT in settings.modes else None
        self.history: LakeTable | None = lake.open(HISTORY, *key) if HISTORY in settings.modes else None
        self.rows = 0
        """The number of changes that were applied."""
        self.missed: tuple[str, str] | None = None
        """A place, and an event there that may have changed any table but has no rows."""

    @property
    def name(self) -> str:
        """The name as SCHEMA.TABLE."""
        return ".".join(self.key)

    @property
    def place(self) -> FeedOffset | None:
        """The place up to which all of it is fed; None if nothing exists."""
        places = [one.place for one in (self.current, self.history) if one is not None]
        found = [one for one in places if one is not None]
        return min(found) if found else None

    @property
    def kinds(self) -> frozenset[str]:
        """Which of its two tables the lake has."""
        return frozenset(kind for kind, part in ((CURRENT, self.current), (HISTORY, self.history)) if part is not None)

    @property
    def is_exact(self) -> bool:
        """True if it is not stale yet."""
        return any(one is not None and not one.properties.get(STALE_FROM) for one in (self.current, self.history))

    def definition_at(self, place: FeedOffset, upto: FeedOffset) -> Table | None:
        """Return the table's definition for an event at a place."""
        return self._reading.table(self.key, place, upto)

    @property
    def may_have_current(self) -> bool:
        """True if its rows are kept, once they are known."""
        return CURRENT in self._settings.modes

    # ---- a batch ----

    def apply(self, batch: FeedBatch, part: TablePart) -> None:
        """Bring the table to the batch's end. Raises: FeedStop; what was committed before consists of whole transactions."""
        self.begin_history(batch, part)
        self._note_undecided(batch, part)
        if CURRENT in self._settings.modes:
            self._apply_current(batch, part)
        if HISTORY in self._settings.modes:
            self._apply_history(batch, part)

    def begin_history(self, batch: FeedBatch, part: TablePart) -> None:
        """Create the table of changes when a batch has the first: before current rows pass the batch's start, or a feed that is killed
        in between would continue from these."""
        is_first = self.history is None and HISTORY in self._settings.modes
        if is_first and (part.rows.num_rows or part.definitions):
            self.create_history(batch.start)

    def create_history(self, place: FeedOffset) -> None:
        """Create its table of changes, empty."""
        self.history = self._lake.create(NewTable(HISTORY, self.key, CHANGE_COLUMNS, place, day_of="time"))

    def _apply_history(self, batch: FeedBatch, part: TablePart) -> None:
        if self.history is None:
            return
        place = self.history.place
        if place is not None and place >= batch.end:
            return
        for one in (*batch.unseen, *part.unseen):
            if self._is_touched(one, batch, part):
                self.mark_stale(self.history, one)
        rows = self._kept(part.rows.after(place), batch, self._engine(part, batch))
        told = [one for one in part.definitions if place is None or one.start >= place]
        tables = with_definitions(rows.pieces(), told)
        if rows.is_small:
            few = list(tables)
            if few:
                self.history.append(pa.concat_tables(few), batch.end)
            return
        batches = (one for table in tables for one in table.to_batches())
        self.history.append(pa.RecordBatchReader.from_batches(CHANGE_COLUMNS, batches), batch.end)

    def _engine(self, part: TablePart, batch: FeedBatch) -> str:
        """Return the engine of all its rows; empty if it is unknown or was changed in between."""
        if not (batch.rolled_back or batch.prepared) or not part.rows.num_rows:
            return ""
        places = [FeedOffset.at(one["file"], one["position"]) for one in part.rows.ends()]
        places += [one.end for one in part.definitions]
        found = [self.definition_at(place, batch.end) for place in places]
        engines = {one.engine.lower() if one is not None else "" for one in found}
        return engines.pop() if len(engines) == 1 else ""

    def _kept(self, rows: PartRows, batch: FeedBatch, engine: str) -> PartRows:
        """Return the rows without those that the source rolled back or has not decided."""
        away = set(batch.prepared)
        if has_transactions(engine) is not False:
            away |= batch.rolled_back
        return rows.but(away) if away else rows

    def _apply_current(self, batch: FeedBatch, part: TablePart) -> None:
        rows = self._kept(part.rows, batch, self._engine(part, batch))
        applied = batch.start
        marks = [one for one in (*batch.unseen, *part.unseen) if self._is_touched(one, batch, part)]
        # A definition applies at the start of its own transaction: the rows of that transaction come after it. What the same statement
        # hides is marked before: after it, the table is complete up to its end.
        events: list[DdlChange | UnseenChange] = [*marks, *part.definitions]
        events.sort(key=lambda one: (one.start, one.position))
        for one in events:
            if isinstance(one, UnseenChange):
                self.mark_stale(self.current, one)
                continue
            if one.action != RENAMED:
                self._apply_rows(rows.between(applied, one.start), one.start, batch)
                own = one.made_anew or rows.between(one.start, one.end).num_rows
                self._apply_definition(one, one.start if own else one.end, batch)
            applied = one.start
        self._apply_rows(rows.between(applied, None), batch.end, batch)

    def _apply_rows(self, rows: PartRows, place: FeedOffset, batch: FeedBatch) -> None:
        if self.current is None and self._settings.assume_empty and rows.num_rows:
            self._create_assumed(rows, batch)
        if self.current is None or not rows.num_rows:
            return
        fed = self.current.place
        if fed is not None and fed >= place:
            return
        rows = rows.after(fed)
        if not rows.num_rows:
            return
        known, told = self._table_rows(rows, batch)
        if (at_source := engine_of(known.engine)) is not None and at_source.rows_elsewhere:
            first = FeedOffset.at(rows.ends()[0]["file"], rows.ends()[0]["position"])
            self.mark_stale(self.current, unseen_at(first.version, f"a table of engine {known.engine} has other rows"))
        key = lake_key(known) if told.key else OWN_NAME
        merge = partial(self._merge, self.current, rows, told, key, place, batch)
        try:
            is_done = done_in_memory(self._connection, rows, merge)
        except RowsUnnamed:
            self._name_rows(self.current)
            is_done = done_in_memory(self._connection, rows, merge)
        if not is_done:
            raise self._too_large(told)
        self.rows += rows.num_rows

    def _merge(
        self,
        current: LakeTable,
        rows: PartRows,
        told: TableRows,
        key: tuple[str, ...],
        place: FeedOffset,
        batch: FeedBatch,
    ) -> None:
        """Merge rows of one definition. Raises: FeedStop; RowsUnnamed, with nothing done."""
        if told.null_dates is not None:
            told.null_dates.count = 0
        # A stale table, or one that a snapshot must load, may have missing rows.
        snapshot = bool(current.properties.get(SNAPSHOT))
        stale = bool(current.properties.get(STALE_FROM))
        unknown: list[tuple[str, ...]] | None = [] if snapshot else None
        replaced = ReplacedRows(
            self._reading, self._connection, batch, self.key, trusted=self._settings.trusts_images(self.key)
        )
        net = NetOfPart(
            self._connection,
            current,
            told,
            lambda part: self._with_images(part, batch),
            lambda changes: replaced.told_apart(changes, told),
            unknown,
            batch.space.directory,
            lenient=snapshot or stale,
        )
        with net.of(rows) as changes:
            if unknown:
                self._leave_to_snapshot(unknown)
            if replaced.unsure_at is not None:
                self.mark_stale(current, unseen_at(replaced.unsure_at, UNSURE))
            if not changes.num_rows:
                return  # all of it was undone
            note_null_dates(current, told, place)
            if isinstance(changes, pa.Table):
                current.merge(changes, key, place)
            else:
                current.merge_spooled(changes, key, place)

    def _too_large(self, rows: TableRows) -> FeedStop:
        """Return the stop of a table whose rows need more memory, which names the setting."""
        text = "Its rows do not fit into the memory that `memory_mb` allows: a row takes several times its size."
        advice = f"Set a larger `memory_mb`, or leave it out with `exclude`. {SNAPSHOT_ADVICE.format(table=self.name)}"
        return FeedStop("memory_too_small", rows.place, text, advice, self.name)

    @staticmethod
    def _name_rows(current: LakeTable) -> None:
        """Give all rows their own names, which rows of a table that had a key do not have."""
        schema, place = current.schema, current.place
        if place is not None:
            with current.scan() as reader:
                current.rebuild(schema, changed_rows(reader, ColumnsChange(schema, numbered=True)), place)

    def _with_images(self, rows: PartRows, batch: FeedBatch) -> PartRows:
        """Return the rows with their images, which are read again if the batch has only values."""
        if rows.has("after"):
            return rows
        wanted = pa.array(sorted(rows.places()), pa.int64())
        spool = batch.spool()
        for some in self._reading.rows_of(batch.start, batch.end, self.key):
            spool.add(some.filter(pc.is_in(with_places(some).column(AT), wanted)))
        return spool.part(self.key)

    def _leave_to_snapshot(self, keys: list[tuple[str, ...]]) -> None:
        """Leave these keys to the running snapshot."""
        if self.current is not None:
            state = json.loads(self.current.properties.get(SNAPSHOT) or "{}")
            state["pending"] = [*state.get("pending", []), *([json.loads(one) for one in key] for key in keys)]
            self.current.set_properties({SNAPSHOT: json.dumps(state)})

    def _table_rows(self, rows: PartRows, batch: FeedBatch) -> tuple[Table, TableRows]:
        """Return the definition that rows have, and how they are kept. Raises: FeedStop if the lake's table has other columns."""
        places = [FeedOffset.at(one["file"], one["position"]) for one in rows.ends()]
        told = self._reading.told(places[0])
        first, last = (self.definition_at(place, batch.end) for place in places)
        if first is None or last is None:
            raise table_stop("definition_unknown", told, self.name, "Nobody knows the table's columns there.")
        if first.columns != last.columns:
            raise table_stop(
                "definition_gap",
                told,
                self.name,
                "The table was changed behind it by a statement that the archive has not.",
            )
        columns = lake_columns(first, told)
        key = lake_key(first)
        lake = self.current.schema if self.current is not None else lake_schema(columns, has_key=bool(key))
        for one in columns:
            at = lake.get_field_index(one.name)
            if at < 0 or lake.field(at).type != one.arrow:
                raise table_stop(
                    "definition_gap",
                    told,
                    self.name,
                    f"Column {one.name} is {one.source.type}, and the lake's table has "
                    + ("no such column" if at < 0 else f"{lake.field(at).type} for it")
                    + ": the archive has no statement that changed it.",
                )
        if not key and lake.get_field_index(ROW) < 0:
            raise table_stop(
                "definition_gap",
                told,
                self.name,
                "The table has no key any more: the archive has no statement that took it away.",
            )
        return first, self._rows_as(columns, key, told)

    def table_rows(self, definition: Table, told: str) -> TableRows:
        """Return how rows of a definition are kept. Raises: FeedStop if one of its columns cannot be."""
        return self._rows_as(lake_columns(definition, told), lake_key(definition), told)

    def _rows_as(self, columns: list[LakeColumn], key: tuple[str, ...], told: str) -> TableRows:
        counts = NullDates() if self._settings.invalid_dates == NULL else None
        return TableRows(self.name, columns, key, told, counts)

    def _create_assumed(self, rows: PartRows, batch: FeedBatch) -> None:
        one, _last = rows.ends()
        found = self.definition_at(FeedOffset.at(one["file"], one["position"]), batch.end)
        if found is not None:
            stale = dict(zip((STALE_FROM, STALE_REASON), self.missed, strict=True)) if self.missed is not None else {}
            self._create(found, batch.start, stale)

    def _create(self, table: Table, place: FeedOffset, properties: Mapping[str, str] | None = None) -> None:
        columns = lake_columns(table, self._reading.told(place))
        self.create(lake_schema(columns, has_key=bool(lake_key(table))), place, properties)

    def create(self, schema: pa.Schema, place: FeedOffset, properties: Mapping[str, str] | None = None) -> None:
        """Create its table of current rows, empty."""
        self.current = self._lake.create(NewTable(CURRENT, self.key, schema, place, properties or {}))

    # ---- definitions ----

    def _apply_definition(self, definition: DdlChange, place: FeedOffset, batch: FeedBatch) -> None:
        """Apply a definition. Raises: FeedStop if it cannot be followed."""
        fed = self.current.place if self.current is not None else None
        if fed is not None and fed >= definition.end:
            return
        at = FeedOffset(definition.start.generation, definition.start.number, definition.position)
        told = self._reading.told(at)
        after = self.definition_at(at, batch.end)
        before = self.definition_at(FeedOffset(at.generation, at.number, at.position - 1), batch.end)
        if definition.action == CREATED:
            if self.current is not None or before is None or not definition.if_not_exists:
                self._created(definition, after, place, told)
            return  # Otherwise it existed, and its content is not known.
        if self.current is None:
            return
        if definition.action in (DROPPED, TRUNCATED):
            self.current.clear(place)
            self._freshen()
            return
        if before is None or after is None:
            raise table_stop(
                "definition_unknown",
                told,
                self.name,
                f"It is not understood what this does to the table: {shown(definition.text, 120)}.",
            )
        if definition.action != ALTERED:
            if before.columns == after.columns and before.keys == after.keys:
                return
            raise table_stop(
                "definition_unknown", told, self.name, f"It is not understood: {shown(definition.text, 120)}."
            )
        lake = self.current.schema
        current = self.current
        change = alteration(
            definition,
            before,
            after,
            lake,
            told,
            empty=is_empty(current),
            has_zero=lambda name: has_zero(current, name),
        )
        if change.schema == lake and not (change.filled or change.renamed or change.numbered):
            return
        if change.numbered:
            with self.current.scan() as reader:
                self.current.rebuild(change.schema, changed_rows(reader, change), place)
            return
        try:
            self.current.evolve(change, place)
        except CannotEvolve as error:
            raise table_stop("column_changed", told, self.name, f"The lake's format cannot follow: {error}.") from None

    def _created(self, definition: DdlChange, after: Table | None, place: FeedOffset, told: str) -> None:
        if after is None:
            if self.current is None:
                return
            raise table_stop(
                "definition_unknown", told, self.name, f"It is not understood: {shown(definition.text, 120)}."
            )
        if self.current is None:
            self._create(after, place)
            return
        # Without IF NOT EXISTS there was no such table: a DROP may have named it in another case.
        if is_empty(self.current) or not definition.if_not_exists:
            self.current.evolve(recreated(lake_columns(after, told), has_key=bool(lake_key(after))), place)
        if not definition.if_not_exists:
            self._freshen()

    def pass_over(self, place: FeedOffset) -> None:
        """Move to a place at which the table is emptied, without the changes before it. Until it is emptied there, it is stale."""
        if self.current is not None and (self.current.place or place) < place:
            if not self.current.properties.get(STALE_FROM):
                told = self._reading.told(self.current.place or place)
                reason = f"it was set aside, and is emptied at {self._reading.told(place)}"
                self.current.set_properties({STALE_FROM: told, STALE_REASON: reason})
            self.current.advance(place)

    # ---- changes without current rows ----

    def fill_history(self, batch: FeedBatch, part: TablePart) -> None:
        """Add a batch's changes to the table of changes only."""
        self._note_undecided(batch, part)
        self._apply_history(batch, part)

    def leave_out(self, start: FeedOffset, end: FeedOffset, reason: str) -> None:
        """Continue the table of changes at `end`, and note in it that the changes from `start` on are missing."""
        if self.history is not None:
            self.history.append(self._gap(start, end, reason, self._reading.time_at(start)).rows(), end)

    def note_gap(self, start: str, end: FeedOffset, reason: str) -> None:
        """Note in the table of changes, which is complete up to `end`, that it may lack changes from FILE:POSITION on."""
        fed = self.history.place if self.history is not None else None
        if self.history is not None and fed is not None and fed >= end:
            try:
                place = FeedOffset.of_text(start)
            except (ValueError, Malformed, FeedStop):
                place = end
            self.history.append(self._gap(place, end, reason, self._reading.time_at(place)).rows(), fed)

    def _gap(self, start: FeedOffset, end: FeedOffset, reason: str, time: datetime | None) -> HistoryGap:
        told = self._reading.told(end)
        sequence = arrow.sequence_of(self._reading.path, told) or 0
        return HistoryGap(self._reading.told(start), told, sequence, reason, time or self._reading.begun(end))

    def _freshen(self) -> None:
        """Clear the marks of staleness: after statements that empty it all is known, and nothing is left for a snapshot to load."""
        if self.current is None:
            return
        known = self.current.properties
        if known.get(STALE_FROM) or known.get(SNAPSHOT):
            self.current.set_properties({STALE_FROM: "", STALE_REASON: "", SNAPSHOT: ""})

    # ---- what the binlog does not record ----

    def _note_undecided(self, batch: FeedBatch, part: TablePart) -> None:
        if not (batch.prepared or batch.rolled_back) or not part.rows.num_rows:
            return
        places = part.rows.places()
        for version in sorted(batch.prepared & places):
            part.unseen.append(unseen_at(version, "an XA transaction that was prepared"))
        engine = self._engine(part, batch)
        if has_transactions(engine) is None:
            for version in sorted(batch.rolled_back & places):
                part.unseen.append(unseen_at(version, "a transaction that was rolled back; its engine is not known"))

    def _is_touched(self, one: UnseenChange, batch: FeedBatch, part: TablePart) -> bool:
        if one.rollback_in is not None:
            return bool(part.rows.num_rows) and one.start.version in part.rows.places()
        if one in part.unseen or one.words is None or (self._settings.every_statement and not one.of_rows):
            return True
        return one.names(self.key)

    def mark_stale(self, table: LakeTable | None, one: UnseenChange) -> None:
        """Mark that the table may differ from the source's from there on, unless it is fed further or is stale already."""
        if table is None or table.properties.get(STALE_FROM):
            return
        fed = table.place
        if fed is None or fed <= one.start:
            table.set_properties({STALE_FROM: self._reading.told(one.start), STALE_REASON: one.reason})


def note_null_dates(table: LakeTable, rows: TableRows, place: FeedOffset) -> None:
    """Count the invalid dates of rows that are about to be committed at a place."""
    if rows.null_dates is not None and rows.null_dates.count:
        table.set_properties(with_null_dates(table.properties, table.place, rows.null_dates.count, place))
