"""A table without a key, loaded and compared as a whole: there is no range by which it could be read in parts.

All its rows are read by one SELECT with shared locks, which waits for the transactions that have changed them: it sees what is in the
binlog up to the place before it. If the binlog has no change of the table from there up to a place after the SELECT, the rows are those
of that place; otherwise they are read again.
"""

from collections import Counter
from contextlib import closing
from typing import Any, Final

import pyarrow as pa

from protocol.sql.tables.source_table import TableName
from relay.binlog_tables import arrow
from relay.feed.engine import FeedEngine
from relay.feed.lake.lake_table import loaded_properties
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.rows.net_changes import TableRows
from relay.feed.sink_table import note_null_dates
from relay.feed.snapshot.source_rows import SourceRows, normalised, with_numbers, with_sequence
from relay.feed.snapshot.table_snapshot import Say, archive_reached, begin_snapshot, catch_up, kept_definition

_TRIES: Final = 20
_MOST_BYTES: Final = 128 << 20


class WholeTable:
    """One table without a key, at the source and in the lake. At most `most_rows` are locked at once."""

    def __init__(self, engine: FeedEngine, source: SourceRows, key: TableName, most_rows: int) -> None:
        self._engine = engine
        self._source = source
        self._key = key
        self._most_rows = most_rows

    def load(self, say: Say) -> None:
        """Load the table into the lake. Raises: FeedStop."""
        engine = self._engine
        found, place, rows = self._read(begins=True)
        table = engine.table(self._key)
        if table.current is None:
            raise FeedStop("snapshot_gone", "the lake", f"{table.name} is not in the lake any more.", "Begin it again.")
        if found.num_rows:
            sequence = arrow.sequence_of(engine.reading.path, engine.reading.text(place)) or 0
            note_null_dates(table.current, rows, place)
            table.current.append(with_numbers(with_sequence(found, sequence), 0), place)
        table.current.set_properties(loaded_properties(table.current, engine.reading.begun))
        say(f"{table.name}: snapshot done, {found.num_rows} rows, at {engine.reading.told(place)}")

    def compare(self) -> tuple[int, list[Any], list[Any], str]:
        """Return (number of compared rows, rows that only the source has, rows that only the lake has, the place). Raises: FeedStop."""
        found, place, _rows = self._read(begins=False)
        current = self._engine.table(self._key).current
        names = found.column_names
        theirs = Counter(map(repr, found.to_pylist()))
        ours: Counter[str] = Counter()
        if current is not None:
            with current.scan(names) as reader:
                for batch in reader:
                    table = pa.Table.from_batches([batch])
                    cast = [table.column(one.name).cast(one.type) for one in found.schema]
                    ours.update(map(repr, pa.Table.from_arrays(cast, schema=found.schema).to_pylist()))
        more, less = theirs - ours, ours - theirs
        return found.num_rows, list(more.elements()), list(less.elements()), self._engine.reading.told(place)

    def _read(self, *, begins: bool) -> tuple[pa.Table, FeedOffset, TableRows]:
        """Return all rows, their place, and how they are kept. With `begins`, the lake's table is emptied at that place."""
        engine = self._engine
        for _ in range(_TRIES):
            catch_up(engine)
            engine.aside.check(self._key)
            low = engine.place
            if begins:
                begin_snapshot(engine, self._key, low)
            definition = kept_definition(engine.table(self._key), low, engine)
            told = engine.reading.told(low)
            rows = engine.table(self._key).table_rows(definition, told)
            chunks = self._chunks(rows)
            if not self._changed(low, archive_reached(engine, self._source)):
                whole = pa.concat_tables(chunks) if chunks else _empty(rows)
                return normalised(engine.connection, whole, rows.columns), low, rows
        raise FeedStop(
            "no_key",
            engine.reading.told(engine.place),
            f"It has no key, and was changed while it was read, {_TRIES} times.",
            "Load it from a dump (`--server`, `--position`), or when less is written to it.",
            ".".join(self._key),
        )

    def _chunks(self, rows: TableRows) -> list[pa.Table]:
        """Return all rows, in portions. Raises: FeedStop if there are too many."""
        found: list[pa.Table] = []
        with closing(self._source.all_rows(self._key, rows, self._most_rows + 1, locked=True)) as chunks:
            for chunk in chunks:
                found.append(chunk)
                many = sum(one.num_rows for one in found) > self._most_rows
                if many or sum(one.nbytes for one in found) > _MOST_BYTES:
                    more = f"{self._most_rows}" if many else f"{_MOST_BYTES >> 20} MB"
                    larger = ", or set a larger `chunk_rows`" if many else ""
                    raise FeedStop(
                        "no_key",
                        rows.place,
                        f"It has no key, so all its rows are read and locked at once, and it has more than {more}.",
                        f"Load it from a dump (`--server`, `--position`), or give it a key{larger}.",
                        rows.name,
                    )
        return found

    def _changed(self, start: FeedOffset, end: FeedOffset) -> bool:
        """Return whether the table has changes in [start, end)."""
        while start < end:
            batch = self._engine.read(start, end)
            part = batch.parts.get(self._key)
            batch.close()
            if batch.stop is not None or (part is not None and (part.rows.num_rows or part.definitions or part.unseen)):
                return True
            start = batch.end
        return False


def _empty(rows: TableRows) -> pa.Table:
    return pa.schema([pa.field(one.name, one.arrow) for one in rows.columns]).empty_table()
