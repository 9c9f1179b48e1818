"""`spark.readStream.format("binlog")`: follows an archive or a directory, transaction by transaction.

An offset is {"file", "position"}, always between two transactions. What stands between two offsets never changes, so a
query that is restarted from its checkpoint reads the same again.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from protocol.position import Position
from relay.audit.decode.levels import ReadOptions, read_split
from relay.audit.plan.places import Places, parsed_position
from relay.audit.plan.store import store_of
from relay.audit.plan.wanted import Wanted
from relay.audit.spark_task import SplitTask, tasks_of

EARLIEST: Final = "earliest"
LATEST: Final = "latest"

Offset = dict[str, Any]


class BinlogStreamReader(DataSourceStreamReader):
    """Micro-batches of one path. `start`: earliest, latest or FILE:POSITION; `most_bytes`: of a micro-batch, about."""

    def __init__(
        self,
        paths: Sequence[str],
        split_bytes: int,
        options: ReadOptions,
        start: str = EARLIEST,
        most_bytes: int | None = None,
        *,
        once: bool = False,
    ) -> None:
        self._places = Places(paths)
        self._split_bytes = split_bytes
        self._options = options
        self._start = start
        self._most_bytes = most_bytes
        self._once = once
        self._reached: Position | None = None
        """An end that was told: the next is not before it. Spark 4.1 does not say where a query stands."""

    def initialOffset(self) -> Offset:
        """Where a query without a checkpoint starts. Raises: PositionGone, ValueError for a position inside a transaction."""
        place = parsed_position(self._start)
        if place is not None:
            return _offset(self._places.checked(place, "startingPosition"))
        if self._start == LATEST:
            self._reached = self._places.newest()
            return _offset(self._reached)
        return _offset(self._places.oldest())

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:
        """The end of what is there, or, from Spark 4.2 on, of what `limit` lets a micro-batch that begins at `start` have."""
        begin = _place(start) if start else self._reached
        most = getattr(limit, "max_bytes", None)
        if begin is not None:
            self._places.index(self._places.files(), begin)
            if most is not None:
                return _offset(self._places.reached(begin, int(most)))
        self._reached = self._places.newest(begin)
        return _offset(self._reached)

    def getDefaultReadLimit(self) -> Any:
        """What one micro-batch may have, as the option maxBytesPerTrigger says."""
        if self._most_bytes is None:
            return super().getDefaultReadLimit()
        from pyspark.sql.streaming.datasource import ReadMaxBytes

        return ReadMaxBytes(self._most_bytes)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The splits between two offsets. Raises: PositionGone."""
        self._reached = _place(end)
        splits = self._places.between(
            _place(start), self._reached, self._split_bytes, held=False if self._once else None
        )
        return tasks_of(splits, self._split_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one task. Raises: FileLost, so that the query can be started again and misses nothing."""
        if isinstance(partition, SplitTask):
            for split in partition.splits:
                yield from read_split(store_of(split.path), split, self._options, Wanted(), keeps=True)


def _place(offset: Offset) -> Position:
    return Position(str(offset["file"]), int(offset["position"]))


def _offset(place: Position) -> Offset:
    return {"file": place.file, "position": place.offset}


def starting_position(text: str) -> str:
    """`text` if it is a startingPosition. Raises: ValueError."""
    if text in (EARLIEST, LATEST) or parsed_position(text) is not None:
        return text
    raise ValueError(f"startingPosition is {text!r}; it takes earliest, latest or FILE:POSITION")


def limits_reads() -> bool:
    """Whether this Spark lets a source limit its micro-batches: since 4.2."""
    return hasattr(datasource.DataSourceStreamReader, "getDefaultReadLimit")
