"""The feed applies batch after batch of the archive to the lake, exactly once, without Spark and without a JVM."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from typing import Any, Final

import duckdb

from protocol.errors import Malformed
from protocol.sql.tables.source_table import TableName
from relay.binlog_tables.plan.places import PositionGone
from relay.config.table_patterns import readings
from relay.feed.archive_reading import ArchiveReading, RowParts
from relay.feed.batches_ahead import BatchesAhead
from relay.feed.cascades import note_cascades
from relay.feed.feed_batch import BatchSpace, FeedBatch, TablePart, WantedTables, has_capitals, read_batch, renames_of
from relay.feed.history_fill import HistoryFill
from relay.feed.lake.lake_table import Lake
from relay.feed.progress_table import ProgressTable
from relay.feed.renamed_tables import TableRenames
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop, table_stop
from relay.feed.settings.fed_tables import FedTables
from relay.feed.settings.feed_settings import CURRENT, HISTORY, STOP_TABLE, FeedSettings
from relay.feed.sink_table import SinkTable
from relay.feed.statements.emptying import emptied_at
from relay.feed.tables_aside import TablesAside


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """The limits of a batch. `batch_bytes` of binlog are applied at once, unless a transaction is larger. `space` is for the batch's
    rows."""

    batch_bytes: int = 16 << 20
    space: BatchSpace = field(default_factory=BatchSpace)


NO_LIMITS: Final = FeedLimits()
TABLE_REMOVED: Final = "table_removed"
"""The name of the trouble of a table that somebody removed from the lake."""
_OTHER_ARCHIVE: Final = "Correct `archive`, or feed this one into a new `target`; or load all tables again: `binlog-relay feed snapshot --all`."


@dataclass(slots=True)
class FeedCounts:
    """The totals of what was done so far."""

    batches: int = 0
    rows: int = 0
    commits: int = 0


class FeedEngine:
    """A feed that follows one archive. A feed that has not begun yet starts at `start`: earliest, latest or FILE:POSITION.

    With `observes` it applies nothing, and tables that are set aside are not tried again.
    """

    def __init__(
        self,
        reading: ArchiveReading,
        lake: Lake,
        choice: FedTables,
        settings: FeedSettings,
        connection: duckdb.DuckDBPyConnection,
        start: str = "earliest",
        limits: FeedLimits = NO_LIMITS,
        *,
        observes: bool = False,
    ) -> None:
        self.reading = reading
        self.lake = lake
        self.choice = choice
        self.settings = settings
        self.counts = FeedCounts()
        self.tables: dict[TableName, SinkTable] = {}
        self.connection = connection
        self._start = start
        self.limits = limits
        # It has its own reader, as another thread reads ahead.
        self._batches = BatchesAhead(ArchiveReading(reading.path), self._wanted, limits.batch_bytes)
        named = json.dumps([choice.tables, choice.exclude])
        self.progress = ProgressTable(lake, named, settings.modes, reading.begun, reading.told)
        self.aside = TablesAside(self.progress, choice, None if observes else self._terms())
        self._choices = [FedTables(*map(tuple, one)) for one in self.progress.choices()]
        self._left_out: TableName | None = None
        """A table that is behind all others: the settings did not name it for a while."""
        self._is_same_archive = False
        self._observes = observes
        self._removed: dict[TableName, tuple[FeedOffset, FeedStop]] = {}
        self._has_capitals = self.progress.capitals is not None
        self.place: FeedOffset = self._open()
        self.last_time: Any = None

    def _terms(self) -> str:
        """Return what decides whether a table can be fed: the settings and the version."""
        known = json.dumps([version("binlog-relay"), asdict(self.settings), self.limits.space.most_bytes], default=str)
        return hashlib.sha256(known.encode()).hexdigest()[:16]

    def stand(self) -> None:
        """Set the place to where the tables are now: after a snapshot that was begun."""
        places = self.places()
        self.place = min(places.values()) if places else self.place

    def places(self) -> dict[TableName, FeedOffset]:
        """Return up to where each table is complete that is fed: by its own commits, or by `_feed`, which saves commits without changes."""
        found = {}
        for key, table in self.tables.items():
            if key in self.aside:
                continue
            parts = [
                max(place, self.progress.done(key, kind) or place)
                for kind, part in ((CURRENT, table.current), (HISTORY, table.history))
                if part is not None and (place := part.place) is not None
            ]
            # A table that was announced and does not exist has nothing in the lake after that place.
            announced = self.progress.done(key)
            if not parts and announced is not None:
                parts = [announced]
            if parts:
                found[key] = min(parts)
        return found

    def _open(self) -> FeedOffset:
        """Open the tables that are in the lake, and return the place that all of them have reached."""
        newest = self.reading.newest()
        fed = {key for key in self.progress.tables() if self.choice(key)}
        known = fed | {key for key in self.reading.names(newest) if self.choice(key)}
        for key in sorted(known):
            table = self.table(key)
            if table.place is None and key not in fed:
                del self.tables[key]
        self.aside.release_loaded(
            {key: place for key, table in self.tables.items() if (place := table.place) is not None}
        )
        self._removed = self._removed_tables(newest)
        if self._observes or self.settings.on_trouble == STOP_TABLE:
            self.aside.add(self._removed, newest)
        place = self._reached()
        if place is not None:
            return place
        aside = [one.place for key in self.aside if (one := self.aside.get(key)) is not None]
        if aside:
            return max(aside)
        begun = self.progress.begun_at
        if begun is not None:
            return begun
        if self._start == "earliest":
            return self.reading.oldest()
        if self._start == "latest":  # Or a feed that had other settings before it had a table was there.
            done = self.progress.place if not self.progress.tables() else None
            return newest if done is None else done
        try:
            return FeedOffset.of_text(self._start)
        except (ValueError, Malformed):
            raise FeedStop(
                "place_unknown", self._start, "`start` is no place.", "It takes earliest, latest or FILE:POSITION."
            ) from None

    def _removed_tables(self, newest: FeedOffset) -> dict[TableName, tuple[FeedOffset, FeedStop]]:
        """Return the fed tables that the lake had and has no more, with the place up to which they were complete."""
        found = {}
        for key, table in self.tables.items():
            missing = self.progress.kinds(key).intersection(self.settings.modes).difference(table.kinds)
            if missing and key not in self.aside:
                place = self.progress.done(key) or newest
                where = " and ".join(self.lake.address(kind, *key) for kind in sorted(missing))
                text = f"The lake had the table {where}, and has it no more: somebody removed it."
                found[key] = place, table_stop(TABLE_REMOVED, self.reading.told(place), table.name, text)
        return found

    def unmatched(self) -> list[str]:
        """Return the patterns of the settings that name no table that the archive or the lake knows."""
        known = {*self.tables, *self.progress.tables()}
        if self.choice.unmatched(known or [("", "")]):
            known |= set(self.reading.names(self.reading.newest()))
        return self.choice.unmatched(known)

    def _reached(self) -> FeedOffset | None:
        """Return the place that all tables have reached that are fed, and note which one is the last; None if there are none."""
        places = self.places()
        if not places:
            return None
        first = min(places, key=lambda key: (places[key], key))
        self._left_out = first if places[first] < max(places.values()) else None
        return places[first]

    def table(self, key: TableName) -> SinkTable:
        """Return one table, which is opened when it is first asked for."""
        if key not in self.tables:
            settings = self.settings
            # What a table held that was not named for a while is not known.
            if not all(choice(key) for choice in self._choices):
                settings = replace(settings, assume_empty=False)
            self.tables[key] = SinkTable(key, self.lake, self.reading, self.connection, settings)
            self.tables[key].missed = self.progress.missed if settings.assume_empty else None
        return self.tables[key]

    def begin(self) -> None:
        """Record `start` before the first batch of a feed that has no table yet, so that it stays the same if the feed ends before it
        has one."""
        if not self.tables and self.progress.begun_at is None:
            self.progress.note_begun(self.place)

    def step(self, upto: FeedOffset | None = None) -> bool:
        """Apply one batch; return False if there is nothing new. Raises: FeedStop, with everything before it in the lake."""
        if not self._is_same_archive:
            if self._removed and self.settings.on_trouble != STOP_TABLE:
                raise next(iter(self._removed.values()))[1]
            self.begin()
            self._check_binlogs()
        try:
            batch = self._batches.next(self.place, upto)
        except (FeedStop, PositionGone) as gone:
            if self._left_out is None or (isinstance(gone, FeedStop) and gone.name != "place_gone"):
                raise
            stop = table_stop(
                "place_gone",
                self.reading.told(self.place),
                ".".join(self._left_out),
                "The table was not fed for a while, and the binlog with what comes next for it is not in the archive any more.",
            )
            if not self._set_aside({self._left_out: (self.place, stop)}):
                raise stop from None
            self.place = self._reached() or self.place
            return True
        if batch is None:
            self._check_end()
            self.progress.forget_stop()
            return False
        self.apply(batch)
        return True

    def _check_binlogs(self) -> None:
        """Raise FeedStop if a binlog that was fed was replaced by another one of the same name."""
        for place, begun in self.progress.binlogs():
            now = self.reading.begun(place)
            if now is not None and now != begun:
                raise FeedStop(
                    "place_gone",
                    self.reading.told(place),
                    f"The lake has all changes up to there of a binlog that was begun at {begun}; the one that has its name now was begun "
                    f"at {now}. The source's binlogs were begun again (RESET MASTER), or it is another source.",
                    _OTHER_ARCHIVE,
                )
        self._is_same_archive = True

    def _check_end(self) -> None:
        """Raise FeedStop if the archive ends before what is in the lake: it is not the archive that was fed."""
        newest = self._batches.archive_end
        if newest is not None and newest < self.place:
            raise FeedStop(
                "place_gone",
                self.reading.told(self.place),
                f"The lake has all changes up to there, and the archive ends at {self.reading.told(newest)}: it was begun again, is "
                "another one, or was put back from an older copy.",
                _OTHER_ARCHIVE,
            )

    def read(self, start: FeedOffset, end: FeedOffset, *, images: bool = False) -> FeedBatch:
        """Return the changes of the fed tables in a stretch; it ends before a RENAME, or consists of it alone.

        With `images` the rows have images as JSON, also if the lake needs none.
        """
        return read_batch(self.reading, start, end, self._wanted(images=images))

    def _wanted(self, *, images: bool = False) -> WantedTables:
        """Return what to read of a stretch."""
        aside = frozenset(self.aside)
        modes = self.settings.modes
        parts = RowParts(images or HISTORY in modes, CURRENT in modes)
        # The state is copied: the lake's tables belong to this thread alone.
        fed = {key: place for key, table in self.tables.items() if (place := table.place) is not None}

        def is_passed(key: TableName, place: FeedOffset) -> bool:
            return key in fed and fed[key] > place

        return WantedTables(
            lambda key: self.choice(key) and key not in aside,
            list(self.tables),
            self.choice.schemas,
            is_passed,
            parts,
            not self._has_capitals,
            self.limits.space,
            aside,
        )

    def apply(self, batch: FeedBatch) -> None:
        """Bring all tables that are fed to the batch's end, and close it; those that have trouble are set aside.

        Raises: FeedStop; SpoolFull, with nothing of the table in the lake.
        """
        directory = self.limits.space.directory
        try:
            with directory.told_when_full() if directory is not None else nullcontext():
                self._apply(batch)
        finally:
            batch.close()

    def _apply(self, batch: FeedBatch) -> None:
        self.progress.note_choice()
        for key in self.aside:  # The batch may have been read before a table was set aside
            self._leave_out(key, batch)
        self._announce(batch)
        capitals = [key for key, part in batch.parts.items() if part.rows.num_rows and has_capitals([key])]
        if capitals and not self._has_capitals:
            self.progress.note_capitals(".".join(capitals[0]))
            self._has_capitals = True
        fed = {key for key, table in self.tables.items() if table.is_exact or table.place is None}
        fed.difference_update(self.aside)
        note_cascades(self.reading, self.connection, batch, fed, self.settings.has_no_cascades)
        if self.settings.assume_empty:
            self._note_missed(batch)
        try:
            self._rename(batch)
        except FeedStop as stop:
            if not self._set_aside(dict.fromkeys(self._keys_of(stop), (batch.start, stop))):
                raise
            return  # The batch is read again, without the table
        stops = self._apply_tables(batch)
        self.counts.batches += 1
        if stops and not self._set_aside(stops):
            self.place = min([table.place for table in self.tables.values() if table.place is not None] + [batch.end])
            raise next(iter(stops.values()))[1]
        # Others may be further than a table that the settings did not name, or that was tried again where it was set aside.
        self.place = max(batch.end, self._reached() or batch.end) if stops else batch.end
        self._left_out = None
        self.last_time = batch.last_time or self.last_time
        self.note_progress(self.place)
        for key in stops:
            self._leave_out(key, batch)
        self._take_back(batch)
        if batch.stop is not None:
            self.progress.write()
            keys = self._keys_of(batch.stop)
            new = [key for key in keys if key not in self.aside]
            if (new or not keys) and not self._set_aside(dict.fromkeys(new, (batch.end, batch.stop))):
                raise batch.stop

    @staticmethod
    def _leave_out(key: TableName, batch: FeedBatch) -> None:
        part = batch.parts.pop(key, None)
        if part is not None:
            batch.aside[key] = part.definitions

    def _take_back(self, batch: FeedBatch) -> None:
        """Feed tables again that are set aside and that the batch empties: the next batch begins with the statement that does it."""
        for key, definitions in batch.aside.items():
            one = self.aside.get(key)
            place = emptied_at(definitions, one.place) if one is not None else None
            if place is None:
                continue
            self.table(key).pass_over(place)
            self.fill_changes([key], place)
            self.aside.release(key, place)
            self.place = min(self.place, place)

    def fill_changes(self, keys: Iterable[TableName], place: FeedOffset) -> None:
        """Bring the changes of tables to a place, from the archive; what it does not have becomes a row that says so.

        In another archive than the one that was fed there is nothing to fill them from.
        """
        tables = [self.table(key) for key in keys]
        try:
            self._check_binlogs()
            if self.place > self.reading.newest():
                self._check_end()
        except FeedStop as stop:
            for table in tables:
                if table.history is not None and (fed := table.history.place) is not None and fed != place:
                    table.leave_out(fed, place, f"{stop.name}: {stop.what}")
            return
        complete = {table: self._complete(table) for table in tables}
        HistoryFill(
            self.reading,
            complete,
            place,
            self.limits.batch_bytes,
            self.limits.space,
            names_fold=not self._has_capitals,
        ).run()

    def _complete(self, table: SinkTable) -> FeedOffset:
        """Return the place up to which a table's changes are complete. If somebody removed them, they begin with the archive again."""
        one = self.aside.get(table.key)
        if (
            one is not None
            and one.stop.name == TABLE_REMOVED
            and table.history is None
            and HISTORY in self.settings.modes
        ):
            oldest = self.reading.oldest()
            table.create_history(oldest)
            return oldest
        return self.place if one is None else one.place

    def _apply_tables(self, batch: FeedBatch) -> dict[TableName, tuple[FeedOffset, FeedStop]]:
        """Bring each table to the batch's end; return those that cannot be, with the place up to which they are complete."""
        stops = {}
        keys = set(batch.parts) | (set(self.tables).difference(self.aside) if batch.unseen else set())
        for key in sorted(keys):
            part = batch.parts.get(key) or TablePart(key)
            table = self.table(key)
            try:
                table.apply(batch, part)
            except FeedStop as stop:
                stops[key] = (max(table.place or batch.start, batch.start), stop)
            self.counts.rows += part.rows.num_rows
        return stops

    def _set_aside(self, found: Mapping[TableName, tuple[FeedOffset, FeedStop]]) -> bool:
        """Set tables aside that cannot be fed further, if the settings say so; return whether the feed goes on."""
        if not found or self.settings.on_trouble != STOP_TABLE:
            return False
        self.aside.add(found, self.place)
        return True

    def set_aside(self, key: TableName, stop: FeedStop) -> bool:
        """Set one table aside at the feed's place, if the settings say so; return whether it was done."""
        return key in self.aside or self._set_aside({key: (self.place, stop)})

    def _keys_of(self, stop: FeedStop) -> list[TableName]:
        """Return the tables that a stop names: a name with several dots may be that of several, of which those in the lake are meant."""
        keys = [key for key in readings(stop.table) if self.choice(key)] if stop.table else []
        return [key for key in keys if key in self.tables] or keys

    def note_progress(self, place: FeedOffset) -> None:
        """Note that all tables that are fed are complete up to a place."""
        fed = [table for key, table in self.tables.items() if key not in self.aside]
        self.progress.note(place, fed, self.reading.told(place), self.last_time)

    def end_reading(self) -> None:
        """End reading ahead: the last call for a feed that has another one's connection."""
        self._batches.close()

    def let_go(self) -> None:
        """Close the feed; this is the last call. Reading ahead and DuckDB's threads end, and nothing is left on disk."""
        self.end_reading()
        self.connection.close()
        if self.limits.space.directory is not None:
            self.limits.space.directory.close()

    def _announce(self, batch: FeedBatch) -> None:
        """Record which tables are to come before any table is beyond the batch's start, as a table that does not exist yet has no
        place."""
        new = [key for key in batch.parts if self.table(key).place is None]
        if new and not set(new).issubset(self.progress.tables()):
            self.note_progress(batch.start)
            self.progress.write()

    def _note_missed(self, batch: FeedBatch) -> None:
        """Record changes without rows before the first rows of a table: such a table cannot be assumed to have been empty."""
        unseen = [*batch.unseen, *(one for part in batch.parts.values() for one in part.unseen)]
        found = [(one.start, one.reason) for one in unseen]
        found += [
            (FeedOffset.of_version(one), "a transaction that was not committed")
            for one in batch.prepared | batch.rolled_back
        ]
        if found and self.progress.missed is None:
            place, reason = min(found)
            self.progress.note_missed(batch.start, self.reading.told(place), reason)
            for table in self.tables.values():
                table.missed = self.progress.missed

    def _rename(self, batch: FeedBatch) -> None:
        """Apply a RENAME to the rows that are kept. Raises: FeedStop."""
        if CURRENT not in self.settings.modes or not renames_of(batch):
            return
        for key, part in batch.parts.items():
            self.table(key).begin_history(batch, part)
        others: dict[TableName, SinkTable] = {}

        def table(key: TableName) -> SinkTable:
            if self.choice(key):
                return self.table(key)
            if key not in others:
                settings = replace(self.settings, modes=(CURRENT,), assume_empty=False)
                others[key] = SinkTable(key, self.lake, self.reading, self.connection, settings)
            return others[key]

        def cascades(some: FeedBatch, keys: Iterable[TableName]) -> None:
            note_cascades(self.reading, self.connection, some, keys, self.settings.has_no_cascades)

        limits = self.limits
        is_aside = self.aside.__contains__
        TableRenames(self.reading, table, self.choice, is_aside, cascades, limits.batch_bytes, limits.space).apply(
            batch
        )

    def close(self) -> None:
        """Record how far all tables are."""
        self.progress.write()
