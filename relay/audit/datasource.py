"""The data source `binlog`: `spark.read.format("binlog").option("level", "transactions").load(path)`."""

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from protocol.binlog.layout import FIRST_EVENT
from relay.audit.decode.levels import ReadOptions, read_split
from relay.audit.micro_batches import EARLIEST, BinlogStreamReader, limits_reads, starting_position
from relay.audit.plan.overlap import Overlap
from relay.audit.plan.packed_store import store_of
from relay.audit.plan.pushdown import keep_times, push
from relay.audit.plan.schemas import LEVELS, known_columns
from relay.audit.plan.series_files import files_up_to, find_files
from relay.audit.plan.splits import Split, plan, written_between
from relay.audit.plan.wanted import Wanted
from relay.process.interpreter import keep_what_is_here

_BATCH_OPTIONS: Final = (
    "level",
    "columns",
    "mode",
    "splitBytes",
    "since",
    "until",
    "pushdown",
    "overlap",
    "endingPosition",
)
_STREAM_OPTIONS: Final = ("startingPosition", "maxBytesPerTrigger")
_KNOWN: Final = {name.lower() for name in ("path", *_BATCH_OPTIONS, *_STREAM_OPTIONS)}
_MODES: Final = ("permissive", "failfast")
_ONCE: Final = "once"
_OVERLAPS: Final = (_ONCE, "every")
# Levels that show the files as they are.
_OF_FILES: Final = ("events", "findings")
SPLIT_BYTES: Final = 128 << 20
# Columns that are offsets: a split has only rows in which they are in its range.
_PLACES: Final = {
    "events": ("position", "end", "transaction"),
    "transactions": ("start", "end"),
    "rows": ("position", "end", "transaction"),
    "statements": ("position", "end", "transaction"),
    "table_maps": ("position", "end", "transaction"),
}
LEAST_SPLIT_BYTES: Final = 64 << 10
PUSHDOWN_SETTING: Final = "spark.sql.python.filterPushdown.enabled"


class BadOption(ValueError):
    """An option, a column or a path of a read that cannot be. `str()` says what there is instead."""


def register(spark: SparkSession) -> None:
    """Makes `binlog` known to the session, and lets filters reach it."""
    spark.conf.set(PUSHDOWN_SETTING, "true")
    spark.dataSource.register(BinlogDataSource)


class BinlogDataSource(DataSource):
    """Binlogs of an archive, a directory, a pattern, or one file.

    pushdown = true: filters reach files, splits and the kernel; the frame is good for one query (see PushingReader).

    since and until: only what happened in [since, until), by the times in events; files that the source began later, or
    ended earlier, are not read at all.

    endingPosition = FILE:POSITION, the end of a transaction: what was written behind it is not read. For several frames that
    are to see the same of an archive that grows.

    In a stream, startingPosition = earliest | latest | FILE:POSITION, and maxBytesPerTrigger.

    overlap = once | every: transactions that a later source's files repeat of the sources before it (see overlap) are read
    once, or as often as they stand in files. Levels events and findings show the files as they are.

    Options: level = events | transactions | rows | statements | table_maps | findings; columns: names, with commas;
    mode = permissive (a finding is a row) | failfast (it is an error); splitBytes: aimed size of a task's share of a file.
    """

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return "binlog"

    def schema(self) -> str:
        """The level's columns, or those of the option `columns`."""
        level = self._level()
        known = known_columns(level)
        text = self.options.get("columns")
        names = list(LEVELS[level]) if text is None else [name.strip() for name in text.split(",")]
        for name in names:
            if name not in known:
                raise BadOption(f"level {level} has no column {name!r}; it has {', '.join(known)}")
        return ", ".join(f"`{name}` {known[name]}" for name in names)

    def reader(self, schema: StructType) -> "BinlogReader":
        """A reader of the columns in `schema`."""
        options = self._read_options(schema)
        kind = PushingReader if self._pushdown() else BinlogReader
        since, until = self._time("since"), self._time("until")
        if since is not None and until is not None and since >= until:
            raise BadOption(
                f"since, {since.isoformat()}, is not before until, {until.isoformat()}: nothing lies between"
            )
        return kind(
            self._path(), self._split_bytes(), options, since, until, once=self._once(), ending=self._ending_position()
        )

    def streamReader(self, schema: StructType) -> BinlogStreamReader:
        """A reader of micro-batches of the columns in `schema`."""
        options = self._read_options(schema)
        for name in ("since", "until"):
            if self.options.get(name) is not None:
                raise BadOption(f"a stream has no {name}: it has a startingPosition, and filters")
        if self._ending_position() is not None:
            raise BadOption("a stream has no endingPosition: it goes on until it is stopped")
        if "transaction_ordinal" in options.columns:
            raise BadOption("transaction_ordinal counts from a file's start, which a stream does not read again")
        try:
            start = starting_position(self.options.get("startingPosition", EARLIEST))
        except ValueError as error:
            raise BadOption(str(error)) from None
        text = self.options.get("maxBytesPerTrigger")
        if text is not None and (not text.isdecimal() or int(text) < LEAST_SPLIT_BYTES):
            raise BadOption(f"maxBytesPerTrigger is {text!r}; it takes a number of bytes, {LEAST_SPLIT_BYTES} at least")
        if text is not None and not limits_reads():
            raise BadOption("maxBytesPerTrigger needs Spark 4.2 or later")
        most = None if text is None else int(text)
        return BinlogStreamReader(self._path(), self._split_bytes(), options, start, most, once=self._once())

    def _ending_position(self) -> tuple[str, int] | None:
        text = self.options.get("endingPosition")
        if text is None:
            return None
        name, _, position = text.rpartition(":")
        if not name or not position.isdecimal() or int(position) < FIRST_EVENT:
            raise BadOption(f"endingPosition is {text!r}; it takes FILE:POSITION")
        return name, int(position)

    def _read_options(self, schema: StructType) -> ReadOptions:
        level = self._level()
        known = known_columns(level)
        for field in schema:
            if field.name not in known:
                raise BadOption(f"level {level} has no column {field.name!r}; it has {', '.join(known)}")
            if field.dataType.simpleString() != known[field.name]:
                raise BadOption(
                    f"column {field.name} of level {level} is {known[field.name]}, not {field.dataType.simpleString()}"
                )
        return ReadOptions(level, tuple(schema.fieldNames()), self._mode() == "failfast")

    def _level(self) -> str:
        for name in self.options:
            if name.lower() not in _KNOWN:
                raise BadOption(
                    f"there is no option {name}; there are {', '.join((*_BATCH_OPTIONS, *_STREAM_OPTIONS))}"
                )
        level = self.options.get("level", "events")
        if level not in LEVELS:
            raise BadOption(f"there is no level {level!r}; there are {', '.join(LEVELS)}")
        return level

    def _mode(self) -> str:
        mode = self.options.get("mode", "permissive").lower()
        if mode not in _MODES:
            raise BadOption(f"there is no mode {mode!r}; there are {' and '.join(_MODES)}")
        return mode

    def _pushdown(self) -> bool:
        text = self.options.get("pushdown", "false").lower()
        if text not in ("true", "false"):
            raise BadOption(f"pushdown is {text!r}; it takes true, for a frame that is used for one query, or false")
        return text == "true"

    def _once(self) -> bool:
        level, text = self._level(), self.options.get("overlap")
        if text is not None and level in _OF_FILES:
            raise BadOption(f"level {level} shows files as they are; the option overlap is for the other levels")
        if text is not None and text.lower() not in _OVERLAPS:
            raise BadOption(f"overlap is {text!r}; it takes {' or '.join(_OVERLAPS)}")
        return level not in _OF_FILES and (text or _ONCE).lower() == _ONCE

    def _path(self) -> str:
        path = self.options.get("path")
        if not path:
            raise BadOption("nothing to read is named: load(path) takes an archive, a directory, a pattern or a binlog")
        return path

    def _time(self, name: str) -> datetime | None:
        text = self.options.get(name)
        if text is None:
            return None
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise BadOption(
                f"{name} is {text!r}; it takes a time like 2026-01-31T23:59:59, of UTC or with a zone"
            ) from None
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)

    def _split_bytes(self) -> int:
        text = self.options.get("splitBytes", str(SPLIT_BYTES))
        if not text.isdecimal() or int(text) < LEAST_SPLIT_BYTES:
            raise BadOption(f"splitBytes is {text!r}; it takes a number of bytes, {LEAST_SPLIT_BYTES} at least")
        return int(text)


@functools.cache
def _keep_modules() -> None:
    """Once in a worker, which looks for garbage after each task."""
    keep_what_is_here()


class BinlogReader(DataSourceReader):
    """Plans splits on the driver, reads them on executors."""

    def __init__(
        self,
        path: str,
        split_bytes: int,
        options: ReadOptions,
        since: datetime | None = None,
        until: datetime | None = None,
        *,
        once: bool = False,
        ending: tuple[str, int] | None = None,
    ) -> None:
        self._path = path
        self._ending = ending
        self._once = once
        self._split_bytes = split_bytes
        self._options = options
        self._since = since
        self._until = until
        self._wanted = Wanted()
        keep_times(options.level, since, until, self._wanted)

    def partitions(self) -> Sequence[InputPartition]:
        """One split a task."""
        store = store_of(self._path)
        files = find_files(store, self._path)
        if self._ending is not None:
            files = files_up_to(store, self._path, files, *self._ending)
        overlap = Overlap(store, files, held=True) if self._once else None
        if self._since is not None or self._until is not None:
            since_s = -math.inf if self._since is None else self._since.timestamp()
            until_s = math.inf if self._until is None else self._until.timestamp()
            files = written_between(store, files, since_s, until_s)
        splits = plan(
            store,
            files,
            self._split_bytes,
            self._wanted.wants_file,
            whole_files="transaction_ordinal" in self._options.columns,
            overlap=overlap,
        )
        for column in _PLACES.get(self._options.level, ()):
            span = self._wanted.ranges.get(column)
            if span is not None:
                splits = [split for split in splits if split.findings or span.meets(split.start, split.stop)]
        return list(splits)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one split."""
        # Spark hands out one partition of its own where `partitions` gave none.
        if not isinstance(partition, Split):
            return iter(())
        _keep_modules()
        return read_split(store_of(self._path), partition, self._options, self._wanted)


class PushingReader(BinlogReader):
    """A reader that Spark hands its filters to.

    Spark (seen in 4.3) keeps what was planned with filters at the frame that `load` gave, and takes it again for
    the frame's next query that has none, and for both branches of a union: rows are missing then without a word. So this is
    for frames of one query; `pushdown` says so.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Uses what it can of the filters; Spark checks all of them again."""
        push(filters, self._options.level, self._wanted)
        return filters
