"""Changes that tables' `changes` lack, filled from the archive when the tables come back.

What sets a table aside, or stops the feed, concerns its current rows: the archive still has what happened meanwhile. What cannot be read there, or is
there no more, becomes one row of operation `gap`, which says from where to where and why.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from protocol.errors import RelayError
from protocol.sql.tables.source_table import TableName
from relay.binlog_tables.plan.places import PositionGone
from relay.binlog_tables.plan.read_finding import FileLost
from relay.feed.archive_reading import ArchiveReading
from relay.feed.feed_batch import BatchSpace, FeedBatch, TablePart, WantedTables, read_batch
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.sink_table import SinkTable

_MOST_GAPS: Final = 64
"""After so many gaps of a table the next one reaches to the end."""
_PURGED: Final = "the archive does not have these binlogs any more"


class HistoryFill:
    """The filling of some tables' changes up to `upto`. At most `most_bytes` of binlog are read at once, or one transaction.

    `tables` has with each table the place up to which its changes are known to be complete, which may be after their last commit.
    """

    def __init__(
        self,
        reading: ArchiveReading,
        tables: Mapping[SinkTable, FeedOffset],
        upto: FeedOffset,
        most_bytes: int,
        space: BatchSpace,
        *,
        names_fold: bool,
    ) -> None:
        self._reading = reading
        self._upto = upto
        self._most_bytes = most_bytes
        self._space = space
        self._names_fold = names_fold
        self._tables = {table.key: table for table in tables}
        self._gaps: Counter[TableName] = Counter()
        self._reached = {
            table.key: min(max(place, complete), upto)
            for table, complete in tables.items()
            if table.history is not None and (place := table.history.place) is not None and place < upto
        }

    def run(self) -> None:
        """Fill all of them. A fill that ends early continues where it was the next time."""
        while self._left():
            before = dict(self._reached)
            start = min(before.values())
            self._step(start)
            if self._reached == before:
                self._skip(self._reached, start, self._upto, "nothing more of the archive can be read there")
        for key in self._reached:
            history = self._tables[key].history
            if history is not None and history.place != self._upto:
                history.advance(self._upto)

    def _left(self) -> bool:
        return any(place < self._upto for place in self._reached.values())

    def _step(self, start: FeedOffset) -> None:
        """Read one stretch; each table that was at its start is after it then."""
        try:
            end = min(self._upto, self._reading.newest(start, self._most_bytes))
            batch = read_batch(self._reading, start, end, self._wanted())
        except (FeedStop, PositionGone, FileLost) as error:
            self._skip(self._reached, start, self._reading.next_file(start, self._upto), _reason(error))
            return
        try:
            self._apply(batch)
        finally:
            batch.close()
        stop = batch.stop
        if stop is not None:
            named = [key for key in self._reached if ".".join(key) == stop.table]
            self._skip(named or self._reached, batch.end, self._reading.past(batch.end, self._upto), _reason(stop))

    def _wanted(self) -> WantedTables:
        reached = dict(self._reached)
        return WantedTables(
            reached.__contains__,
            list(reached),
            sorted({schema for schema, _table in reached}),
            lambda key, place: reached[key] > place,
            names_fold=self._names_fold,
            space=self._space,
        )

    def _apply(self, batch: FeedBatch) -> None:
        for key, place in self._reached.items():
            if place < batch.end:
                self._tables[key].fill_history(batch, batch.parts.get(key) or TablePart(key))
                self._reached[key] = batch.end

    def _skip(self, keys: Collection[TableName], start: FeedOffset, end: FeedOffset, reason: str) -> None:
        """Leave a stretch out of the tables that have not passed its end, and note it in their changes."""
        for key in list(keys):
            if self._reached[key] < end:
                self._gaps[key] += 1
                until = self._upto if self._gaps[key] >= _MOST_GAPS else end
                self._tables[key].leave_out(start, until, reason)
                self._reached[key] = until


def _reason(error: RelayError) -> str:
    if isinstance(error, FeedStop):
        return _PURGED if error.name == "place_gone" else f"{error.name}: {error.what}"
    return _PURGED if isinstance(error, PositionGone) else error.text
