"""The command `feed snapshot`: which tables, from which server, one after the other while all others are fed."""

from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from protocol.errors import Malformed
from protocol.sql.tables.source_table import TableName
from relay.feed.engine import FeedEngine
from relay.feed.feed_config import FeedSource
from relay.feed.lake.lake_table import STALE_FROM, STALE_REASON
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.rows.lake_columns import lake_key
from relay.feed.snapshot.keyless_snapshot import WholeTable
from relay.feed.snapshot.named_tables import named_tables
from relay.feed.snapshot.source_rows import SourceRows
from relay.feed.snapshot.table_snapshot import (
    TableSnapshot,
    begin_snapshot,
    check_source,
    load_static,
    snapshots_begun,
    stopped_at,
)
from relay.feed.tables_aside import TablesSetAside

_PORT: Final = 3306


class WantedSnapshots(Protocol):
    """The requested snapshots."""

    @property
    def tables(self) -> Sequence[str]:
        """The tables, each as SCHEMA.TABLE."""

    @property
    def all_tables(self) -> bool:
        """True for all tables that are fed."""

    @property
    def server(self) -> str | None:
        """HOST:PORT of a server that has the data of `position`."""

    @property
    def position(self) -> str | None:
        """FILE:POSITION of the archive."""


def run_snapshots(engine: FeedEngine, source: FeedSource, wanted: WantedSnapshots, say: Callable[[str], None]) -> None:
    """Load the wanted tables, and continue snapshots that were begun. Raises: FeedStop."""
    place = engine.reading.newest()
    keys = _keys(engine, wanted, place)
    if wanted.server is not None and wanted.position is not None:
        host, _, port = wanted.server.partition(":")
        there = source.model_copy(update={"host": host, "port": int(port or _PORT)})
        with SourceRows(there) as rows:
            for key in keys:
                load_static(engine, rows, key, _place(engine, wanted.position), source.chunk_rows, say)
        _announce(engine, keys)
        return
    with SourceRows(source) as rows:
        check_source(engine, rows)
        stopped = stopped_at(engine)
        for text in engine.aside.new_texts():
            say(text)
        # A snapshot that was begun cannot continue after what stops the feed, or in other binlogs.
        begun = {
            key
            for key in snapshots_begun(engine)
            if key not in engine.aside and (stopped is None or not _is_behind(stopped, key, wanted))
        }
        place = engine.reading.newest()
        if place < engine.place and wanted.all_tables:  # the archive is another than the one that was fed
            engine.progress.fall_back(place, engine.reading.text(place))
        new = [key for key in keys if key not in begun]
        # Where the feed cannot pass a table, its changes are read from the archive without its current rows.
        filled = [
            key
            for key in new
            if wanted.all_tables or key in engine.aside or (stopped is not None and _is_behind(stopped, key, wanted))
        ]
        if wanted.all_tables:
            filled += [key for key, table in engine.tables.items() if table.current is None and key not in filled]
        engine.fill_changes(filled, place)
        for key in new:
            begin_snapshot(engine, key, place)
        if wanted.all_tables:
            if stopped is not None and stopped.name == "place_gone":
                _give_up(engine, {*keys, *begun}, place)
            # After all that: until each table is marked for reloading, the feed must not continue in other binlogs.
            engine.progress.forget_binlogs()
        _announce(engine, keys)
        failed = _load(engine, rows, keys, source.chunk_rows, say)
    engine.close()
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise TablesSetAside(failed)


def _load(
    engine: FeedEngine, source: SourceRows, keys: Sequence[TableName], chunk_rows: int, say: Callable[[str], None]
) -> list[FeedStop]:
    """Load tables one after the other, and return what stopped one: it is set aside, and the next one is loaded. Raises: FeedStop."""
    failed = []
    place = engine.place
    for key in keys:
        try:
            if _has_key(engine, key, place):
                TableSnapshot(engine, source, key, chunk_rows, say).run()
            else:
                WholeTable(engine, source, key, chunk_rows).load(say)
        except FeedStop as stop:
            if stop.table != ".".join(key):
                raise
            if stop.name == "no_key" and len(keys) > 1:
                say(str(stop))
            elif engine.set_aside(key, stop):
                failed.append(stop.without_trace())
            else:
                raise
        for text in engine.aside.new_texts():
            say(text)
    return failed


def _announce(engine: FeedEngine, keys: Sequence[TableName]) -> None:
    """Set the engine's place to where the tables are, and record that these exist: the archive may no longer name them when it is
    opened again."""
    engine.stand()
    if not set(engine.progress.tables()).issuperset(keys):
        engine.note_progress(engine.place)
        engine.progress.write()


def _is_behind(stopped: FeedStop, key: TableName, wanted: WantedSnapshots) -> bool:
    """Return whether a wanted table must begin after a stop."""
    return wanted.all_tables or stopped.table == ".".join(key)


def _has_key(engine: FeedEngine, key: TableName, place: FeedOffset) -> bool:
    table = engine.reading.table(key, place, place)
    return table is None or bool(lake_key(table))


def _give_up(engine: FeedEngine, loaded: Collection[TableName], place: FeedOffset) -> None:
    """Mark other tables as stale: what changed in them while the binlogs were lost is not known, nor, in this archive, their
    definitions."""
    for key, table in sorted(engine.tables.items()):
        if table.current is None or key in loaded:
            continue
        reason = "binlogs that the feed had not read are missing, and no snapshot of the table was made: its columns are not known"
        told = {STALE_FROM: engine.reading.told(place), STALE_REASON: reason}
        table.current.set_properties(
            {name: text for name, text in told.items() if not table.current.properties.get(name)}
        )
        table.current.advance(place)
        engine.fill_changes([key], place)


def _place(engine: FeedEngine, text: str) -> FeedOffset:
    try:
        place = FeedOffset.of_text(text)
        engine.reading.text(place)
    except (ValueError, Malformed):
        raise FeedStop("place_unknown", text, "This is no place.", "Give FILE:POSITION, as the dump has it.") from None
    return place


def _keys(engine: FeedEngine, wanted: WantedSnapshots, place: FeedOffset) -> list[TableName]:
    if wanted.all_tables:
        found = []
        for key in engine.reading.names(place):
            if engine.choice(key) and engine.reading.table(key, place, place) is not None:
                found.append(key)
        return found
    return named_tables(engine, wanted.tables, place)
