"""The command `feed rebuild`: tables and their changes made from the archive beside those that are there, while all others are fed.

The new table is made in a lake of its own, by a feed as any other, up to where the old one is or was. Then each of the two tables of the lake, `changes` and
`current`, gets the new rows in one commit, which is a new version of the same table. What is done again after a kill has the same outcome: the lake beside
stays until all is done.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from protocol.sql.tables.source_table import TableName
from relay.feed.engine import FeedEngine
from relay.feed.lake.lake_rows import changed_rows
from relay.feed.lake.lake_table import SNAPSHOT, STALE_FROM, STALE_REASON, ColumnsChange, LakeTable
from relay.feed.rebuild.feed_beside import FeedBeside, place_of
from relay.feed.rebuild.kept_changes import is_before, kept_changes
from relay.feed.rebuild.rebuild_plan import RebuildPlan, rebuild_plan
from relay.feed.renamed_tables import RENAMING
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop, table_stop
from relay.feed.rows.invalid_dates import INVALID_DATES
from relay.feed.settings.feed_settings import CURRENT, HISTORY
from relay.feed.sink_table import SinkTable
from relay.feed.snapshot.named_tables import named_tables
from relay.feed.snapshot.table_snapshot import stopped_at
from relay.feed.statements.history_rows import CHANGE_COLUMNS

_SAY_S: Final = 10.0
_FEED_S: Final = 30.0
"""So often all other tables are fed meanwhile."""
_UNDER_WAY: Final = "its rebuild is not complete: run `binlog-relay feed rebuild` again"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RebuiltTable:
    """The outcome for one table: from where to where it was made, and how many rows and changes (None: not kept)."""

    table: str
    start: str
    place: str
    rows: int | None
    changes: int | None
    seconds: float


def run_rebuilds(engine: FeedEngine, names: Sequence[str], asked: str | None, say: Say) -> Iterator[RebuiltTable]:
    """Rebuild tables one after the other, from FILE:POSITION, `first`, or (None) from where each was created. Raises: FeedStop."""
    keys = named_tables(engine, names, engine.reading.newest())
    for key in keys:
        yield _TableRebuild(engine, key, asked, say).run()
    engine.close()


class _TableRebuild:
    """The rebuild of one table."""

    def __init__(self, engine: FeedEngine, key: TableName, asked: str | None, say: Say) -> None:
        self._engine = engine
        self._key = key
        self._name = ".".join(key)
        self._asked = asked
        self._say = say
        self._beside = FeedBeside(engine, key, asked)
        self._is_alone = False
        """True if the feed itself stands still because of this table."""

    def run(self) -> RebuiltTable:
        """Run it to its end. Raises: FeedStop, with the old table as it was and nothing left beside it."""
        began = time.monotonic()
        self._feed_others()
        plan = self._beside.recorded()
        try:
            plan = self._begun() if plan is None else plan
            new = self._beside.open()
            try:
                self._follow(new, plan)
                rows, changes = self._exchange(new, plan)
            finally:
                new.end_reading()
        except FeedStop:
            self._beside.remove()
            self._say(f"{self._name}: not rebuilt, and what was made of it beside is removed")
            raise
        self._beside.remove()
        seconds = round(time.monotonic() - began, 1)
        told = self._engine.reading.told
        return RebuiltTable(
            self._name, told(plan.start), told(place_of(self._engine, self._key)), rows, changes, seconds
        )

    def _begun(self) -> RebuildPlan:
        engine, current = self._engine, self._engine.table(self._key).current
        needs_rows = CURRENT in engine.settings.modes
        plan = rebuild_plan(engine.reading, self._key, current, self._asked, needs_rows=needs_rows)
        self._beside.begin(plan, current)
        return plan

    def _feed_others(self) -> None:
        """Feed all tables up to the archive's end. Raises: FeedStop if the feed stands still, and not because of this table."""
        engine = self._engine
        stopped = stopped_at(engine)
        for text in engine.aside.new_texts():
            self._say(text)
        self._is_alone = stopped is not None
        if stopped is not None and stopped.table != self._name:
            raise stopped.without_trace()

    def _upto(self) -> FeedOffset:
        reached = place_of(self._engine, self._key)
        return max(reached, self._engine.reading.newest()) if self._is_alone else reached

    def _follow(self, new: FeedEngine, plan: RebuildPlan) -> None:
        """Feed the new table up to where the old one must be. Raises: FeedStop."""
        told = self._engine.reading.told
        upto = self._upto()
        self._say(f"{self._name}: rebuilt from {told(max(plan.start, new.place))} to {told(upto)}")
        said = fed = time.monotonic()
        while new.place < upto:
            if not new.step(upto):
                raise FeedStop(
                    "place_gone",
                    told(new.place),
                    f"The archive cannot be read from there to {told(upto)}.",
                    "Put the files back, and run it again.",
                )
            if time.monotonic() - said > _SAY_S:
                said = time.monotonic()
                self._say(f"{self._name}: {new.counts.rows} changes, at {told(new.place)} of {told(upto)}")
            if time.monotonic() - fed > _FEED_S:
                self._feed_others()
                fed = time.monotonic()
                upto = self._upto()
        new.close()

    # ---- the exchange ----

    def _exchange(self, new: FeedEngine, plan: RebuildPlan) -> tuple[int | None, int | None]:
        """Let the new rows replace the old ones, and feed the table on from there; return how many rows and changes were made."""
        engine, place = self._engine, new.place
        made, table = new.table(self._key), engine.table(self._key)
        self._check(made, new)
        if HISTORY in engine.settings.modes:
            self._exchange_changes(table, made, plan.start, place)
        if made.current is not None:
            self._exchange_current(table, made.current, place)
        engine.aside.release(self._key, place)
        if not self._is_alone:
            engine.stand()
            engine.progress.forget_stop()
        engine.note_progress(engine.place)
        engine.progress.write()
        return _count(made.current), _count(made.history)

    def _check(self, made: SinkTable, new: FeedEngine) -> None:
        """Raise FeedStop if the new table is not as the source's, as far as the archive says."""
        told = new.reading.told(new.place)
        if CURRENT not in self._engine.settings.modes:
            return
        if made.current is None:
            text = "The table was made from its definitions, and has no rows that are known."
            raise table_stop("rows_unknown", told, self._name, text)
        stale = made.current.properties.get(STALE_FROM)
        if stale:
            text = (
                f"A table made from there would be stale from {stale} on: {made.current.properties.get(STALE_REASON)}."
            )
            raise table_stop("rebuild_stale", told, self._name, text)

    def _exchange_changes(self, table: SinkTable, made: SinkTable, start: FeedOffset, place: FeedOffset) -> None:
        if table.history is None and made.history is None:
            return
        if table.history is None:
            table.create_history(start)
        elif table.history.place is not None and self._complete(table) < start:
            self._engine.fill_changes([self._key], start)
        history = table.history
        if history is None:
            return
        stale = history.properties.get(STALE_FROM)
        kept = kept_changes(self._engine.reading, history, start)
        if made.history is None:
            history.rebuild(CHANGE_COLUMNS, kept, place)
        else:
            with made.history.scan() as reader:
                rows = chain(kept, changed_rows(reader, ColumnsChange(CHANGE_COLUMNS)))
                history.rebuild(CHANGE_COLUMNS, rows, place)
        if not (stale and is_before(stale, start)):
            history.set_properties(_marks(made.history))

    def _complete(self, table: SinkTable) -> FeedOffset:
        """Return the place up to which the table's changes are complete."""
        aside = self._engine.aside.get(self._key)
        known = table.history.place if table.history is not None else None
        complete = aside.place if aside is not None else self._engine.place
        return max(known, complete) if known is not None else complete

    def _exchange_current(self, table: SinkTable, made: LakeTable, place: FeedOffset) -> None:
        schema = made.schema
        if table.current is None:
            # Nobody may take it for complete before it has its rows.
            stale = {STALE_FROM: self._engine.reading.told(place), STALE_REASON: _UNDER_WAY}
            table.create(schema, place, stale)
        current = table.current
        if current is None:
            return
        with made.scan() as reader:
            current.rebuild(schema, changed_rows(reader, ColumnsChange(schema)), place)
        # What would make it stale from here on would make the new one stale, too, which has been fed as far.
        dates = {INVALID_DATES: made.properties.get(INVALID_DATES) or ""}
        current.set_properties({**_marks(made), **dates, SNAPSHOT: "", RENAMING: ""})


def _count(made: LakeTable | None) -> int | None:
    return None if made is None else made.facts()["rows"]


def _marks(made: LakeTable | None) -> dict[str, str]:
    """Return since when, and why, a new table is stale."""
    properties = made.properties if made is not None else {}
    return {name: properties.get(name) or "" for name in (STALE_FROM, STALE_REASON)}
