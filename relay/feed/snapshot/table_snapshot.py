"""A snapshot of a table as the source has it now, chunk by chunk, while the feed continues.

A chunk is read between two places of the archive. Up to `low` everything is in the lake. The chunk's rows are read with shared locks: a
transaction is in the binlog a moment before its rows can be seen, and holds its locks until then; so the chunk contains all that is in
the binlog at `low`, and some of what follows. The source's end after it is `high`. The chunk is written to the lake, then the changes
in [low, high) on top of it, which have absolute values: rows that the chunk already had in that state do not change.
"""

import json
import time
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from protocol.sql.tables.source_table import Table, TableName
from relay.binlog_tables import arrow
from relay.binlog_tables.plan.read_finding import FileLost
from relay.feed.engine import FeedEngine
from relay.feed.lake.lake_table import SNAPSHOT, STALE_FROM, STALE_REASON, LakeTable, NewTable, loaded_properties
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.rows.invalid_dates import INVALID_DATES
from relay.feed.rows.lake_columns import DELETED, lake_columns, lake_key
from relay.feed.rows.net_changes import TableRows
from relay.feed.settings.feed_settings import CURRENT
from relay.feed.sink_table import SinkTable, note_null_dates
from relay.feed.snapshot.dumped_floats import DumpedFloats
from relay.feed.snapshot.source_rows import SourceRows, normalised, with_numbers, with_sequence
from relay.feed.statements.definition_effect import recreated

_MOST_ROWS: Final = 100_000
_MOST_BYTES: Final = 64 << 20
"""The size of chunks that are committed at once."""
_PATIENCE_S: Final = 120.0
Say = Callable[[str], None]


def begin_snapshot(engine_of: FeedEngine, key: TableName, place: FeedOffset) -> None:
    """Empty the table of the lake, at `place`, and note that a snapshot of it has begun; also if the feed had stopped.

    If it was stale, its changes get a row that says from where on.
    """
    table = engine_of.table(key)
    definition = kept_definition(table, place, engine_of)
    told = engine_of.reading.told(place)
    change = recreated(lake_columns(definition, told), has_key=bool(lake_key(definition)))
    begun = {SNAPSHOT: json.dumps({"after": None, "from": told})}
    if table.current is None:
        table.current = engine_of.lake.create(NewTable(CURRENT, key, change.schema, place, begun))
    else:
        stale = table.current.properties.get(STALE_FROM)
        if stale:
            engine_of.fill_changes([key], place)
            table.note_gap(stale, place, table.current.properties.get(STALE_REASON) or "")
        # Two commits are made: one that dies between them leaves rows that no chunk removes.
        table.current.set_properties({SNAPSHOT: json.dumps({"from": told, "emptied": False})})
        table.current.evolve(change, place)
        # What makes it stale from here on is kept at the snapshot's end: a chunk may have been read before.
        table.current.set_properties({**begun, STALE_FROM: "", STALE_REASON: "", INVALID_DATES: ""})
    engine_of.aside.release(key, place)


def kept_definition(table: SinkTable, place: FeedOffset, engine: FeedEngine) -> Table:
    """Return the table's definition at a place. Raises: FeedStop if it is unknown."""
    found = table.definition_at(place, place)
    told = engine.reading.told(place)
    if found is None:
        raise FeedStop(
            "definition_unknown",
            told,
            f"Nobody knows the columns of {table.name} there: the relay did not record them, and its CREATE TABLE is not in the archive.",
            "Let the relay record them (source.record_schema), or run at the source a statement that tells them, such as "
            f"ALTER TABLE {table.name} COMMENT = ''.",
            table.name,
        )
    return found


def snapshots_begun(engine: FeedEngine) -> list[TableName]:
    """Return tables whose snapshot has begun and is not done."""
    return [
        key
        for key, table in sorted(engine.tables.items())
        if table.current is not None
        and json.loads(table.current.properties.get(SNAPSHOT) or '{"emptied": false}').get("emptied", True)
    ]


class TableSnapshot:
    """One table's snapshot, from its current state. At most `chunk_rows` rows are locked at once."""

    def __init__(self, engine: FeedEngine, source: SourceRows, key: TableName, chunk_rows: int, say: Say) -> None:
        self._engine = engine
        self._source = source
        self._key = key
        self._chunk_rows = chunk_rows
        self._say = say
        self.rows = 0

    def run(self) -> None:
        """Run to the snapshot's end. Raises: FeedStop; what is done stays done."""
        while self._window():
            pass
        table = self._current()
        table.set_properties(loaded_properties(table, self._engine.reading.begun))
        self._say(
            f"{'.'.join(self._key)}: snapshot done, {self.rows} rows, at {self._engine.reading.told(self._engine.place)}"
        )

    def _current(self) -> LakeTable:
        found = self._engine.table(self._key).current
        if found is None:
            raise FeedStop(
                "snapshot_gone", "the lake", "The table of the snapshot is not in the lake any more.", "Begin it again."
            )
        return found

    def _window(self) -> bool:
        """Load some chunks, and apply what happened meanwhile; return False if there are no more rows."""
        engine = self._engine
        catch_up(engine)
        engine.aside.check(self._key)
        low = engine.place
        table = self._current()
        begun = table.properties.get(SNAPSHOT)
        if not begun:
            return False  # It was dropped or emptied meanwhile: all rows since then are in the binlog
        state = json.loads(begun)
        definition = kept_definition(engine.table(self._key), low, engine)
        told = engine.reading.told(low)
        rows = engine.table(self._key).table_rows(definition, told)
        if not rows.key:
            raise FeedStop(
                "no_key",
                told,
                "It lost its key while it was loaded.",
                "Begin it again: it is read as a whole then.",
                rows.name,
            )
        order = key_order(rows)
        if state.get("order") != order:  # rows are in another order now: those after `after` are others
            state = {**state, "order": order, "after": None, "read": False}
        last, taken, pending = state.get("after"), [], state.get("pending", [])
        if pending:
            taken.append(self._source.rows_by_key(self._key, rows, pending))
        while not state.get("read", False):
            chunk, last = self._source.chunk(self._key, rows, last, self._chunk_rows)
            taken.append(chunk)
            state["read"] = last is None
            if sum(one.num_rows for one in taken) >= _MOST_ROWS or sum(one.nbytes for one in taken) >= _MOST_BYTES:
                break
        reached = archive_reached(engine, self._source)
        batch = engine.read(low, reached)
        part = batch.parts.get(self._key)
        if batch.end < reached or (part is not None and part.definitions):
            engine.apply(batch)  # the chunk may belong to another table, or lack some changes: it is read again
            return True
        sequence = arrow.sequence_of(engine.reading.path, engine.reading.text(low)) or 0
        for chunk in taken:
            if chunk.num_rows:
                kept = with_sequence(normalised(engine.connection, chunk, rows.columns), sequence)
                table.merge(kept.append_column(DELETED, _no(kept.num_rows)), rows.key, low)
                self.rows += chunk.num_rows
        note_null_dates(table, rows, low)
        table.set_properties({SNAPSHOT: json.dumps({**state, "after": last, "pending": []})})
        if batch.end > low:
            engine.apply(batch)
            engine.aside.check(self._key)
        state = json.loads(table.properties.get(SNAPSHOT) or "{}")
        self._say(f"{'.'.join(self._key)}: {self.rows} rows" + (f", behind {last}" if last is not None else ""))
        return not state.get("read", False) or bool(state.get("pending"))


def key_order(rows: TableRows) -> list[list[str | None]]:
    """Return what the order of a table's rows by its key depends on."""
    return [[one.name, one.source.type, one.source.charset, one.source.collation] for one in rows.key_columns]


def catch_up(engine: FeedEngine) -> None:
    """Feed up to the current end of the archive. Raises: FeedStop."""
    upto = engine.reading.newest()
    while engine.step(upto):
        pass


def stopped_at(engine: FeedEngine) -> FeedStop | None:
    """Feed up to the current end of the archive, and return what the feed cannot pass; None if it reaches the end."""
    try:
        catch_up(engine)
    except FeedStop as stop:
        return stop
    except FileLost as lost:
        found = lost.finding
        return FeedStop(found.name, f"{found.file}:{found.position}", found.text, "Put the file back.")
    return None


def check_source(engine: FeedEngine, source: SourceRows) -> None:
    """Raise FeedStop if the rows would come from another server than the one whose binlogs the archive has."""
    newest = engine.reading.newest()
    ours, theirs = engine.reading.server_id(newest), source.server_id()
    if ours is not None and ours != theirs:
        raise FeedStop(
            "source_is_another",
            engine.reading.told(newest),
            f"The archive's newest binlog was written by a server with server_id {ours}, and [feed.source] has server_id {theirs}.",
            "Name the server that the relay follows, not a replica of it. If it is that server, and its server_id was changed: FLUSH BINARY LOGS "
            "there, and try again.",
        )


def archive_reached(engine: FeedEngine, source: SourceRows) -> FeedOffset:
    """Return the archive's end, once it contains all that the source has now. Raises: FeedStop."""
    file, position = source.end()
    ends = time.monotonic() + _PATIENCE_S
    wanted = FeedOffset.at(file, position)
    while True:
        newest = engine.reading.newest()
        if newest >= FeedOffset(newest.generation, wanted.number, wanted.position):
            return newest
        if time.monotonic() > ends:
            raise FeedStop(
                "archive_behind",
                engine.reading.told(newest),
                f"The archive has not reached {file}:{position}, where the source is, in {_PATIENCE_S:.0f} s.",
                "Is [feed.source] the server that the relay follows, and does the relay run? A snapshot goes on where it was.",
            )
        time.sleep(0.1)


def load_static(
    engine: FeedEngine, source: SourceRows, key: TableName, place: FeedOffset, chunk_rows: int, say: Say
) -> None:
    """Load a table of a server that has the source's data of `place` and does not change, such as a loaded dump."""
    engine.progress.fall_back(place, engine.reading.text(place))
    begin_snapshot(engine, key, place)
    table = engine.table(key)
    definition = kept_definition(table, place, engine)
    rows = table.table_rows(definition, engine.reading.told(place))
    sequence = arrow.sequence_of(engine.reading.path, engine.reading.text(place)) or 0
    last: list[Any] | None = None
    count = 0
    current = table.current
    if current is None:
        return

    floats = DumpedFloats(rows)

    def append(chunk: pa.Table) -> None:
        nonlocal count
        floats.look_at(chunk)
        if chunk.num_rows:
            kept = with_sequence(normalised(engine.connection, chunk, rows.columns), sequence)
            current.append(kept if rows.key else with_numbers(kept, count), place)
            count += chunk.num_rows

    if rows.key:
        while True:
            chunk, last = source.chunk(key, rows, last, max(chunk_rows, 50_000), locked=False)
            append(chunk)
            if last is None:
                break
    else:
        for chunk in source.all_rows(key, rows):
            append(chunk)
    note_null_dates(current, rows, place)
    told = engine.reading.told(place)
    stale = {STALE_FROM: told if floats.doubt else "", STALE_REASON: floats.doubt}
    current.set_properties(
        {**({SNAPSHOT: ""} if floats.doubt else loaded_properties(current, engine.reading.begun)), **stale}
    )
    if floats.doubt:
        say(f"{table.name}: stale from {told}: {floats.doubt}")
    say(f"{table.name}: {count} rows as of {engine.reading.told(place)}")


def _no(count: int) -> Any:
    return pa.array([False] * count, pa.bool_())
