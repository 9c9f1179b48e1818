"""A comparison of a table of the lake with the source, at one place after the other: counts and checksums by range of keys, and
differences."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from protocol.sql.tables.source_table import TableName
from relay.feed.engine import FeedEngine
from relay.feed.lake.lake_rows import is_in
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import table_stop
from relay.feed.rows.lake_columns import SEQUENCE, lake_key
from relay.feed.rows.net_changes import TableRows, touched_keys
from relay.feed.snapshot.keyless_snapshot import WholeTable
from relay.feed.snapshot.source_rows import SourceRows, normalised
from relay.feed.snapshot.table_snapshot import archive_reached, catch_up

_MOST_SHOWN: Final = 20
Say = Callable[[str], None]


@dataclass(slots=True)
class KeyRange:
    """The rows up to the key `last` (None: the rest): how many, and their checksum, without those that changed meanwhile."""

    last: list[Any] | None
    rows: int
    source: str
    lake: str
    place: str


@dataclass(slots=True)
class Comparison:
    """The result. `different` rows have other values, `missing` rows are only at the source, `extra` rows are only in the lake."""

    table: str
    ranges: list[KeyRange] = field(default_factory=list)
    rows: int = 0
    different: int = 0
    missing: int = 0
    extra: int = 0
    skipped: int = 0
    """The number of rows that changed while they were compared."""
    shown: list[str] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """True if nothing differs."""
        return not (self.different or self.missing or self.extra)


class TableComparison:
    """A comparison of one table. The feed continues meanwhile, by this engine."""

    def __init__(self, engine: FeedEngine, source: SourceRows, key: TableName, chunk_rows: int) -> None:
        self._engine = engine
        self._source = source
        self._key = key
        self._chunk_rows = chunk_rows
        self._seen: list[pa.Table] = []
        self._touched: list[pa.Table] = []
        self._reached: FeedOffset | None = None
        self.outcome = Comparison(".".join(key))

    def run(self) -> Comparison:
        """Compare all ranges; a table without a key is compared as a whole. Raises: FeedStop."""
        catch_up(self._engine)
        place = self._engine.place
        definition = self._engine.table(self._key).definition_at(place, place)
        if definition is None and not self._source.has_table(self._key):
            self._compare_with_none()
            return self.outcome
        if definition is not None and not lake_key(definition):
            self._compare_whole()
            return self.outcome
        last: list[Any] | None = None
        while True:
            last = self._range(last)
            if last is None:
                break
        self._find_extra()
        return self.outcome

    def _range(self, after: list[Any] | None) -> list[Any] | None:
        engine = self._engine
        catch_up(engine)
        engine.aside.check(self._key)
        table = engine.table(self._key)
        low = engine.place
        told = engine.reading.told(low)
        definition = table.definition_at(low, low)
        if definition is None or table.current is None or not lake_key(definition):
            raise table_stop("not_kept", told, table.name, "The lake has no current rows of it.")
        rows = table.table_rows(definition, told)
        chunk, last = self._source.chunk(self._key, rows, after, self._chunk_rows)
        high = archive_reached(engine, self._source)
        chunk = normalised(engine.connection, chunk, rows.columns)
        keys = chunk.select(list(rows.key))
        self._seen.append(keys)
        if self._reached is not None:
            self._note(self._reached, low, rows)  # Changes between two ranges are noted
        for touched in self._note(low, high, rows):
            changed = is_in(engine.connection, chunk, touched)
            self.outcome.skipped += sum(changed.to_pylist())
            chunk = chunk.filter(pa.compute.invert(changed))
        self._reached = high
        lake = table.current.rows_of(chunk.select(list(rows.key)))
        self._compare(chunk, lake.drop_columns([SEQUENCE]), rows, last, told)
        return last

    def _compare_with_none(self) -> None:
        """Report all rows of the lake as extra, as the source has no such table."""
        archive_reached(self._engine, self._source)
        catch_up(self._engine)
        current = self._engine.table(self._key).current
        if current is None:
            return
        with current.scan() as reader:
            for batch in reader:
                self.outcome.extra += batch.num_rows
        if self.outcome.extra:
            self._show("the source has no such table")

    def _compare_whole(self) -> None:
        count, missing, extra, place = WholeTable(self._engine, self._source, self._key, self._chunk_rows).compare()
        self.outcome.rows, self.outcome.missing, self.outcome.extra = count, len(missing), len(extra)
        self.outcome.ranges.append(KeyRange(None, count, "", "", place))
        for where, rows in (("source", missing), ("lake", extra)):
            for row in rows[:_MOST_SHOWN]:
                self._show(f"only the {where} has {row}")

    def _note(self, start: FeedOffset, end: FeedOffset, rows: TableRows) -> list[pa.Table]:
        """Return the keys that changed in [start, end), and note them. Raises: FeedStop if that cannot be read."""
        found = []
        while start < end:
            batch = self._engine.read(start, end, images=True)
            part = batch.parts.get(self._key)
            for some in part.rows.pieces() if part is not None else ():
                found.append(touched_keys(self._engine.connection, some.select(["before", "after"]), rows))
            batch.close()
            if batch.stop is not None:
                raise batch.stop
            start = batch.end
        self._touched += found
        return found

    def _compare(self, source: pa.Table, lake: pa.Table, rows: TableRows, last: list[Any] | None, place: str) -> None:
        names = [one.name for one in rows.columns]
        ours: dict[Any, dict[str, Any]] = {}
        for row in lake.select(names).to_pylist():
            key = self._key_of(row, rows)
            if key in ours:
                self.outcome.extra += 1
                self._show(f"the lake has {key} more than once")
            ours[key] = row
        theirs = {self._key_of(row, rows): row for row in source.select(names).to_pylist()}
        outcome = self.outcome
        outcome.rows += len(theirs)
        outcome.ranges.append(KeyRange(last, len(theirs), _checksum(theirs), _checksum(ours), place))
        for key, row in theirs.items():
            found = ours.get(key)
            if found is None:
                outcome.missing += 1
                self._show(f"only the source has {key}")
            elif found != row:
                outcome.different += 1
                columns = [name for name in names if found[name] != row[name]]
                self._show(f"{key} differs in {', '.join(columns)}")

    def _find_extra(self) -> None:
        """Report rows of the lake whose keys no range of the source had, and that did not change meanwhile."""
        current = self._engine.table(self._key).current
        if current is None or not self._seen:
            return
        names = self._seen[0].column_names
        known = pa.concat_tables([*self._seen, *(one.select(names) for one in self._touched)])
        with current.scan(names) as reader:
            for batch in reader:
                table = pa.Table.from_batches([batch])
                table = pa.Table.from_arrays(
                    [table.column(one.name).cast(one.type) for one in known.schema], schema=known.schema
                )
                if known.num_rows:
                    table = table.filter(pa.compute.invert(is_in(self._engine.connection, table, known)))
                self.outcome.extra += table.num_rows
                for row in table.slice(0, _MOST_SHOWN).to_pylist():
                    self._show(f"only the lake has {tuple(row.values())}")

    def _show(self, text: str) -> None:
        if len(self.outcome.shown) < _MOST_SHOWN:
            self.outcome.shown.append(text)

    @staticmethod
    def _key_of(row: dict[str, Any], rows: TableRows) -> tuple[Any, ...]:
        return tuple(row[name] for name in rows.key)


def _checksum(rows: dict[tuple[Any, ...], dict[str, Any]]) -> str:
    """Return a checksum of the rows that does not depend on their order."""
    return f"{sum(zlib.crc32(repr(list(row.values())).encode()) for row in rows.values()) & 0xFFFFFFFFFFFF:012x}"
