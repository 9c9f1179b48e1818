"""`spark.readStream.format("binlog")`: follows an archive or a directory, transaction by transaction.

An offset is {"file", "position"}, always between two transactions. The binlog between two offsets never changes, so a query that is
restarted from its checkpoint reads the same again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from protocol.position import Position
from relay.binlog_tables.decode.found_places import place_after, place_behind, place_of_time
from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.plan.places import Places, parsed_position
from relay.binlog_tables.plan.read_finding import ReadRefused
from relay.binlog_tables.plan.wanted import Wanted
from relay.binlog_tables.typed.table_changes import ChangeOptions, wanted_of_table
from relay.spark.sent_reader import SentReader
from relay.spark.spark_batches import read_for_spark
from relay.spark.spark_task import SplitTask, tasks_of

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Before Spark 4.2 it cannot be requested

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A substitute that is never used."""


EARLIEST: Final = "earliest"
LATEST: Final = "latest"
_NO_LIMIT: Final = 1 << 62

Offset = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StreamBounds:
    """The start and the end of a stream, and the size of a micro-batch.

    `start` is earliest, latest, FILE:POSITION, a time, or the executed GTIDs. Nothing from `end` or `end_time` on is read. `most_bytes`
    and `most_transactions` are the approximate limits of a micro-batch. With `fails` what can no longer be read stops the query.
    """

    start: str | datetime = EARLIEST
    executed: str | None = None
    end: Position | None = None
    end_time: datetime | None = None
    most_bytes: int | None = None
    most_transactions: int | None = None
    fails: bool = True


class BinlogStreamReader(SentReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches of several paths, which are parts of one source's archive."""

    def __init__(
        self,
        paths: Sequence[str],
        split_bytes: int,
        options: ReadOptions | ChangeOptions,
        bounds: StreamBounds | None = None,
        *,
        once: bool = False,
    ) -> None:
        self._bounds = bounds = bounds or StreamBounds()
        self._places = Places(paths, bounds.end, skips_lost=not bounds.fails)
        self._split_bytes = split_bytes
        self._options = options
        self._once = once
        self._wanted = wanted_of_table(options.table) if isinstance(options, ChangeOptions) else Wanted()
        self._time_is_ahead = bounds.end_time is not None
        self._reached: Position | None = None
        """The last reported end: the next one is not before it. Spark 4.1 does not say where a query is."""

    def initialOffset(self) -> Offset:
        """Return the start of a query without a checkpoint. Raises: PositionGone, ReadRefused for a position inside a transaction."""
        start = self._bounds.start
        if self._bounds.executed is not None:
            return _offset(place_behind(self._places, self._bounds.executed))
        if isinstance(start, datetime):
            return _offset(place_of_time(self._places, start) or self._places.newest())
        place = parsed_position(start)
        if place is not None:
            return _offset(self._places.checked(place, "startingPosition"))
        if start == LATEST:
            self._reached = self._places.newest()
            return _offset(self._reached)
        return _offset(self._places.oldest())

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:
        """Return the current end, or, from Spark 4.2 on, that of a micro-batch that begins at `start` within `limit`."""
        self._look_for_end()
        begin = _place(start) if start else self._reached
        most = getattr(limit, "max_bytes", None)
        if begin is not None:
            self._places.check_is_there(begin)
        if begin is None or most is None:
            self._reached = self._places.newest(begin)
            return _offset(self._reached)
        end = self._places.newest(begin) if most >= _NO_LIMIT else self._places.reached(begin, int(most))
        if self._bounds.most_transactions is not None:
            end = place_after(self._places, begin, self._bounds.most_transactions, end)
        return _offset(end)

    def reportLatestOffset(self) -> Offset:
        """Return the current end, whatever the limits of a micro-batch: Spark shows it beside the end of the batch."""
        return _offset(self._places.newest(self._reached))

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit this run to what exists now, in as many micro-batches as it takes."""
        self._look_for_end()
        self._places = self._places.ends_at(self._places.newest())
        self._time_is_ahead = False

    def getDefaultReadLimit(self) -> Any:
        """Return the limit of one micro-batch, by the options maxBytesPerTrigger and maxTransactionsPerTrigger."""
        bounds = self._bounds
        if bounds.most_bytes is None and bounds.most_transactions is None:
            return super().getDefaultReadLimit()
        from pyspark.sql.streaming.datasource import ReadMaxBytes

        return ReadMaxBytes(_NO_LIMIT if bounds.most_bytes is None else bounds.most_bytes)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the splits between two offsets. Raises: PositionGone."""
        self._reached = _place(end)
        held = False if self._once else None
        splits = self._places.between(_place(start), self._reached, self._split_bytes, held=held, tells_gaps=True)
        return tasks_of(splits, self._split_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of one task. Raises: FileLost, so that the query can be restarted and misses nothing."""
        if isinstance(partition, SplitTask):
            for split in partition.splits:
                yield from read_for_spark(split, self._options, self._wanted, keeps=self._bounds.fails)

    def _look_for_end(self) -> None:
        """End at the first transaction of the ending time, once there is one."""
        time = self._bounds.end_time
        if time is None or not self._time_is_ahead:
            return
        place = place_of_time(self._places, time, self._reached)
        if place is not None:
            self._places = self._places.ends_at(place)
            self._time_is_ahead = False


def _place(offset: Offset) -> Position:
    return Position(str(offset["file"]), int(offset["position"]))


def _offset(place: Position) -> Offset:
    return {"file": place.file, "position": place.offset}


def starting_position(text: str) -> str:
    """Return `text` if it is a startingPosition. Raises: ReadRefused."""
    if text in (EARLIEST, LATEST) or parsed_position(text) is not None:
        return text
    raise ReadRefused(f"startingPosition is {text!r}; it takes earliest, latest or FILE:POSITION")


def limits_reads() -> bool:
    """Return whether this Spark lets a source limit its micro-batches: since 4.2."""
    return hasattr(datasource.DataSourceStreamReader, "getDefaultReadLimit")
