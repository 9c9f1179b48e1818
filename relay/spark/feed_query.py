"""`feed_query(spark, "feed.toml", checkpoint)`: a query whose micro-batches the feed's engine commits, in the driver.

The lake determines where the feed is; Spark's checkpoint says only what a micro-batch reads. So a batch that Spark repeats changes
nothing, and one that the lake has not seen is complete, including everything before it.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from relay.feed.archive_reading import IMAGES, ROW_COLUMNS, ArchiveReading, RowParts
from relay.feed.engine import FeedEngine
from relay.feed.feed_config import FeedSection, load_feed_config
from relay.feed.feed_run import open_engine
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.row_places import AT, rows_within, with_places
from relay.spark.datasource import register
from relay.spark.micro_batches import limits_reads

_INTERVAL: Final = "{:g} seconds"
_NOT_CONNECTED: Final = "Python worker failed to connect back"
"""Spark waits 10 s for the Python that plans a stream, whatever its settings say; a busy machine may need longer."""
_MOST_STARTS: Final = 5


class GivenRows(ArchiveReading):
    """An archive for which Spark has read the rows of a stretch: rows that were given are not read again."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._given: tuple[FeedOffset, FeedOffset, pa.Table] | None = None

    def give(self, start: FeedOffset, end: FeedOffset, rows: pa.Table) -> None:
        """Give all changed rows of [start, end), in any order."""
        self._given = (start, end, rows.select(list(ROW_COLUMNS)))

    def take_back(self) -> None:
        """Drop the rows that were given."""
        self._given = None

    def rows(
        self, start: FeedOffset, end: FeedOffset, schemas: Sequence[str] | None, wanted: RowParts = IMAGES
    ) -> Iterator[pa.Table]:
        """Yield the changed rows in [start, end)."""
        if self._given is None or start < self._given[0] or end > self._given[1]:
            return super().rows(start, end, schemas, wanted)
        rows = self._given[2]
        if not rows.num_rows:
            return iter([rows])
        if rows.column("sequence").null_count:
            return super().rows(start, end, schemas, wanted)  # Findings have no order
        rows = with_places(rows.sort_by([("sequence", "ascending"), ("row", "ascending")]))
        return iter([rows_within(rows, start.version, end.version, ()).drop_columns([AT])])

    def changed_rows(self, start: FeedOffset, end: FeedOffset) -> Iterator[pa.Table]:
        """Implement `ArchiveReading.changed_rows`."""
        return self.rows(start, end, None)


class FeedBatches:
    """The callback of foreachBatch. `checkpoint` is the query's, where Spark writes the stretch of a batch before it runs it."""

    def __init__(self, section: FeedSection, checkpoint: str) -> None:
        self._section = section
        self._checkpoint = checkpoint.rstrip("/")
        self._reading = GivenRows(section.archive)
        self._engine: FeedEngine | None = None

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Commit one micro-batch. Raises: FeedStop, which ends the query."""
        engine = self._engine
        if engine is None:
            engine = self._engine = open_engine(self._section, self._reading)
            engine.begin()
        spark = frame.sparkSession
        end = self._offset(spark, number)
        start = self._offset(spark, number - 1) if number else None
        if end is None or end <= engine.place:
            return
        try:
            if start is not None and start <= engine.place:
                self._reading.give(engine.place, end, rows_of(frame))
            while engine.place < end:
                engine.apply(engine.read(engine.place, end))
            engine.progress.write()
            for text in engine.aside.new_texts():
                sys.stderr.write(f"{text}\n")
        except BaseException:
            self._engine = None  # What was committed is read from the lake
            engine.let_go()
            raise
        finally:
            self._reading.take_back()

    def _offset(self, spark: SparkSession, number: int) -> FeedOffset | None:
        """Return the end of a micro-batch, by Spark's checkpoint; None if it has none."""
        try:
            lines = [row["value"] for row in spark.read.text(f"{self._checkpoint}/offsets/{number}").collect()]
        except Exception as error:
            if "PATH_NOT_FOUND" in str(error):
                return None
            raise
        for line in lines:
            if line.startswith("{") and '"file"' in line:
                offset = json.loads(line)
                return FeedOffset.at(offset["file"], int(offset["position"]))
        return None


def rows_of(frame: DataFrame) -> pa.Table:
    """Return a micro-batch's rows in the driver."""
    found = frame.toArrow()
    return pa.Table.from_arrays([_plain(found.column(name)) for name in ROW_COLUMNS], names=list(ROW_COLUMNS))


def _plain(column: Any) -> Any:
    """Return texts as Arrow's with 32-bit offsets, times as UTC's."""
    if pa.types.is_large_string(column.type):
        return column.cast(pa.string())
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", "UTC"))
    return column


def feed_query(spark: SparkSession, config: str | Path, checkpoint: str, *, once: bool = False) -> StreamingQuery:
    """Return the query, started. With `once` it reads up to the current end (availableNow), then it ends. Raises: ConfigError."""
    section = load_feed_config(Path(config))
    register(spark)
    reader = spark.readStream.format("binlog").option("level", "rows").option("columns", ",".join(ROW_COLUMNS))
    if section.start != "earliest":
        reader = reader.option("startingPosition", section.start)
    if limits_reads():
        reader = reader.option("maxBytesPerTrigger", str(section.batch_mb << 20))
    writer = (
        reader.load(section.archive)
        .writeStream.foreachBatch(FeedBatches(section, checkpoint))
        .option("checkpointLocation", checkpoint)
    )
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=_INTERVAL.format(section.interval_s)).start()


def follow_query(start: Callable[[], StreamingQuery]) -> None:
    """Wait for the end of a query, and restart it if Spark gave up waiting for a Python, at most five times in a row.

    Raises: StreamingQueryException.
    """
    starts = 0
    while True:
        query = start()
        starts += 1
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if query.recentProgress:
                starts = 0
            if _NOT_CONNECTED not in str(error) or starts == _MOST_STARTS:
                raise
            sys.stderr.write(
                "The query stopped: a Python did not start within Spark's 10 s. This machine is busy. "
                "The query is started again from its checkpoint.\n"
            )
        else:
            return
