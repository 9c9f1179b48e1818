"""The data source `binlog`: `spark.read.format("binlog").option("level", "transactions").load(path)`.

Spark has separate processes create the source, plan it, and read it; each imports this module, and then only what it does: importing
everything would cost each a third of a second.
"""

import functools
import json
import os
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructField, StructType

from protocol.position import Position
from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.plan.read_finding import ReadRefused
from relay.binlog_tables.plan.schemas import CHANGES, LEVELS, known_columns
from relay.binlog_tables.plan.store import has_password, whole_path
from relay.binlog_tables.plan.wanted import Wanted, keep_times
from relay.binlog_tables.plan.whole_read import EVERY, OF_FILES, ONCE, OVERLAPS, SPLIT_BYTES, WholeRead, splits_of_read
from relay.binlog_tables.typed.column_kinds import TypedColumn
from relay.process.interpreter import keep_what_is_here
from relay.spark.pushdown import push
from relay.spark.sent_reader import SentReader
from relay.spark.spark_types import spark_type

if TYPE_CHECKING:
    from relay.binlog_tables.typed.table_changes import ChangeOptions
    from relay.spark.micro_batches import BinlogStreamReader, StreamBounds

_BATCH_OPTIONS: Final = (
    "level",
    "table",
    "columns",
    "mode",
    "splitBytes",
    "since",
    "until",
    "pushdown",
    "overlap",
    "endingPosition",
)
_MARK: Final = "option."
_OPTIONS: Final = "binlog-relay.options"
"""A column's metadata has this key."""
_OF_TABLES: Final = ("provider", "owner", "external", "is_managed_location", "comment", "serialization.format")
_STARTS: Final = ("startingPosition", "startingTimestamp", "startingGtid")
_ENDS: Final = ("endingPosition", "endingTimestamp")
_STREAM_OPTIONS: Final = (
    *_STARTS,
    "endingTimestamp",
    "maxBytesPerTrigger",
    "maxTransactionsPerTrigger",
    "failOnDataLoss",
)
_KNOWN: Final = {name.lower() for name in ("path", "paths", "location", *_BATCH_OPTIONS, *_STREAM_OPTIONS)}
_MODES: Final = ("permissive", "failfast")
LEAST_SPLIT_BYTES: Final = 64 << 10
PUSHDOWN_SETTING: Final = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Register `binlog` with the session, and let filters reach it."""
    spark.conf.set(PUSHDOWN_SETTING, "true")
    spark.dataSource.register(BinlogDataSource)


class BinlogDataSource(DataSource):
    """Binlogs of an archive, a directory, a pattern, or one file. These are the options:

    pushdown = true: filters reach files, splits and the kernel; the frame is valid for one query (see PushingReader).

    since and until: only events in [since, until), by their times, are read; files that the source began later, or ended earlier, are
    skipped.

    endingPosition = FILE:POSITION, the end of a transaction: what was written after it is not read. It is for several frames that must
    see the same of an archive that grows.

    In a stream: one of startingPosition = earliest | latest | FILE:POSITION, startingTimestamp, startingGtid; one of endingPosition,
    endingTimestamp; maxBytesPerTrigger, maxTransactionsPerTrigger; failOnDataLoss.

    overlap = once | every: transactions that a later source's files repeat of the sources before it (see overlap) are read once, or as
    often as files contain them. Levels events and findings show the files as they are.

    Options: level = events | transactions | rows | statements | table_maps | findings, or changes of the option table; columns: names,
    with commas; mode = permissive (a finding is a row) | failfast (it is an error); splitBytes: target size of a task's share.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._of_table = "provider" in options
        super().__init__(_as_load_gives(options))

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "binlog"

    def schema(self) -> StructType:
        """Return the level's columns, or those of the option `columns`.

        With CREATE TABLE the options are stored in the schema: Spark (seen in 4.3) does not pass them when the table is read.
        """
        _keep_modules_of_planner()
        text = self.options.get("columns")
        names = None if text is None else [name.strip() for name in text.split(",")]
        if self._level() == CHANGES:
            known, names = self._columns_of_table(names)
        else:
            known, names = self._columns_of_level(names)
        said = {_OPTIONS: json.dumps(dict(self.options))} if self._of_table else None
        return StructType([StructField(name, spark_type(known[name]), True, said) for name in names])

    def _columns_of_level(self, names: list[str] | None) -> tuple[dict[str, str], list[str]]:
        level = self._level()
        known = known_columns(level)
        for name in names or ():
            if name not in known:
                raise ReadRefused(f"level {level} has no column {name!r}; it has {', '.join(known)}")
        return known, names or list(LEVELS[level])

    def _columns_of_table(self, names: list[str] | None) -> tuple[dict[str, str], list[str]]:
        from relay.binlog_tables.typed.newest_definition import newest_columns
        from relay.binlog_tables.typed.table_changes import change_kinds, change_options

        table = self._table()
        columns = newest_columns(self._paths(), table, self._ending_position())
        return change_kinds(columns), list(change_options(columns, table, names, failfast=False).names)

    def reader(self, schema: StructType) -> "BinlogReader":
        """Return a reader of the columns in `schema`."""
        self._take_options_of(schema)
        self._paths()
        options = self._read_options(schema)
        kind = PushingReader if self._pushdown() else BinlogReader
        for name in _STREAM_OPTIONS:
            if self.options.get(name) is not None and name != "startingPosition":
                raise ReadRefused(
                    f"{name} is for streams; a query of what is there has startingPosition, since and until"
                )
        since, until = self._time("since"), self._time("until")
        if since is not None and until is not None and since >= until:
            raise ReadRefused(
                f"since, {since.isoformat()}, is not before until, {until.isoformat()}: nothing lies between"
            )
        read = WholeRead(
            self._paths(),
            self._of_files(),
            self._split_bytes(),
            whole_files="transaction_ordinal" in options.columns,
            overlap=self._overlap(),
            start=self._starting_position(),
            end=self._ending_position(),
            since=since,
            until=until,
        )
        if self._level() == CHANGES and self._pushdown():
            raise ReadRefused("level changes takes no filters from Spark: leave pushdown out")
        return kind(read, options)

    def streamReader(self, schema: StructType) -> "BinlogStreamReader":
        """Return a reader of micro-batches of the columns in `schema`."""
        from relay.spark.micro_batches import BinlogStreamReader

        self._take_options_of(schema)
        self._paths()
        options = self._read_options(schema)
        for name in ("since", "until"):
            if self.options.get(name) is not None:
                raise ReadRefused(f"a stream has no {name}: it has startingTimestamp and endingTimestamp, and filters")
        if "transaction_ordinal" in options.columns:
            raise ReadRefused("transaction_ordinal counts from a file's start, which a stream does not read again")
        once = self._of_files() not in OF_FILES and self._overlap() != EVERY
        return BinlogStreamReader(self._paths(), self._split_bytes(), options, self._bounds(), once=once)

    def _bounds(self) -> "StreamBounds":
        from relay.spark.micro_batches import EARLIEST, StreamBounds, starting_position

        starts = [name for name in _STARTS if self.options.get(name) is not None]
        if len(starts) > 1:
            raise ReadRefused(f"{' and '.join(starts)} are both there; a stream has one start")
        ends = [name for name in _ENDS if self.options.get(name) is not None]
        if len(ends) > 1:
            raise ReadRefused(f"{' and '.join(ends)} are both there; a stream has one end")
        start = starting_position(self.options.get("startingPosition", EARLIEST))
        return StreamBounds(
            self._time("startingTimestamp") or start,
            self.options.get("startingGtid"),
            self._ending_position(),
            self._time("endingTimestamp"),
            self._limit("maxBytesPerTrigger", LEAST_SPLIT_BYTES, "of bytes"),
            self._limit("maxTransactionsPerTrigger", 1, "of transactions"),
            self._truth("failOnDataLoss", "true"),
        )

    def _limit(self, name: str, least: int, of_what: str) -> int | None:
        from relay.spark.micro_batches import limits_reads

        text = self.options.get(name)
        if text is None:
            return None
        if not text.isdecimal() or int(text) < least:
            raise ReadRefused(f"{name} is {text!r}; it takes a number {of_what}, {least} at least")
        if not limits_reads():
            raise ReadRefused(f"{name} needs Spark 4.2 or later")
        return int(text)

    def _truth(self, name: str, default: str) -> bool:
        text = self.options.get(name, default).lower()
        if text not in ("true", "false"):
            raise ReadRefused(f"{name} is {text!r}; it takes true or false")
        return text == "true"

    def _starting_position(self) -> Position | None:
        text = self.options.get("startingPosition")
        if text is None:
            return None
        from relay.binlog_tables.plan.places import parsed_position
        from relay.spark.micro_batches import EARLIEST

        place = parsed_position(text)
        if place is None and text != EARLIEST:
            raise ReadRefused(
                f"startingPosition is {text!r}; it takes FILE:POSITION or earliest where the query is no stream"
            )
        return place

    def _ending_position(self) -> Position | None:
        text = self.options.get("endingPosition")
        if text is None:
            return None
        from relay.binlog_tables.plan.places import parsed_position

        place = parsed_position(text)
        if place is None:
            raise ReadRefused(f"endingPosition is {text!r}; it takes FILE:POSITION")
        return place

    def _take_options_of(self, schema: StructType) -> None:
        """Take the options of CREATE TABLE, except those that the query itself gives."""
        for said in (field.metadata.get(_OPTIONS) for field in schema):
            if said is not None:
                for name, value in json.loads(said).items():
                    self.options.setdefault(name, value)
                return

    def _of_files(self) -> str:
        """Return the level that is made of what files contain."""
        level = self._level()
        return "rows" if level == CHANGES else level

    def _table(self) -> str:
        return str(self.options.get("table") or "")

    def _change_options(self, schema: StructType) -> "ChangeOptions":
        from relay.binlog_tables.typed.table_changes import OWN, OWN_ON_REQUEST, change_options

        own = {*OWN, *OWN_ON_REQUEST}
        columns = [TypedColumn(field.name, field.dataType.simpleString()) for field in schema if field.name not in own]
        names = schema.fieldNames()
        return change_options(columns, self._table(), names, failfast=self._mode() == "failfast")

    def _read_options(self, schema: StructType) -> "ReadOptions | ChangeOptions":
        level = self._level()
        if level == CHANGES:
            return self._change_options(schema)
        known = known_columns(level)
        for field in schema:
            if field.name not in known:
                raise ReadRefused(f"level {level} has no column {field.name!r}; it has {', '.join(known)}")
            if field.dataType.simpleString() != known[field.name]:
                raise ReadRefused(
                    f"column {field.name} of level {level} is {known[field.name]}, not {field.dataType.simpleString()}"
                )
        return ReadOptions(level, tuple(schema.fieldNames()), self._mode() == "failfast")

    def _level(self) -> str:
        for name in self.options:
            if name.lower() not in _KNOWN:
                raise ReadRefused(
                    f"there is no option {name}; there are {', '.join((*_BATCH_OPTIONS, *_STREAM_OPTIONS))}"
                )
        level = self.options.get("level", CHANGES if self._table() else "events")
        if level not in LEVELS and level != CHANGES:
            raise ReadRefused(f"there is no level {level!r}; there are {', '.join((*LEVELS, CHANGES))}")
        if (level == CHANGES) != bool(self._table()):
            raise ReadRefused(
                "level changes and the option table, SCHEMA.TABLE, go together; filters are for other levels"
            )
        return level

    def _mode(self) -> str:
        mode = self.options.get("mode", "permissive").lower()
        if mode not in _MODES:
            raise ReadRefused(f"there is no mode {mode!r}; there are {' and '.join(_MODES)}")
        return mode

    def _pushdown(self) -> bool:
        text = self.options.get("pushdown", "false").lower()
        if text not in ("true", "false"):
            raise ReadRefused(f"pushdown is {text!r}; it takes true, for a frame that is used for one query, or false")
        return text == "true"

    def _overlap(self) -> str:
        level, text = self._of_files(), self.options.get("overlap")
        if text is not None and level in OF_FILES:
            raise ReadRefused(f"level {level} shows files as they are; the option overlap is for the other levels")
        if text is not None and text.lower() not in OVERLAPS:
            raise ReadRefused(f"overlap is {text!r}; it takes {', '.join(OVERLAPS[:-1])} or {OVERLAPS[-1]}")
        return (text or ONCE).lower()

    def _paths(self) -> tuple[str, ...]:
        """Return the arguments of `load`, or the location of `CREATE TABLE … USING binlog LOCATION …`."""
        several = self.options.get("paths")
        paths = tuple(json.loads(several)) if several else ()
        one = self.options.get("path") or self.options.get("location")
        if one and one not in paths:
            paths = (one, *paths)
        if not paths:
            raise ReadRefused(
                "nothing to read is named: load(path) takes an archive, a directory, a pattern or a binlog. A table has its path "
                "and options from CREATE TABLE without columns of its own, or from the query: SELECT … FROM t WITH (path = '…')"
            )
        if any(has_password(path) for path in paths):
            raise ReadRefused(
                "a URL with a password in it is shown in plans and on Spark's pages: give it to the driver and to each executor in "
                "the environment, as docs/SPARK.md says"
            )
        return tuple(map(whole_path, paths))

    def _time(self, name: str) -> datetime | None:
        text = self.options.get(name)
        if text is None:
            return None
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise ReadRefused(
                f"{name} is {text!r}; it takes a time like 2026-01-31T23:59:59, of UTC or with a zone"
            ) from None
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)

    def _split_bytes(self) -> int:
        text = self.options.get("splitBytes", str(SPLIT_BYTES))
        if not text.isdecimal() or int(text) < LEAST_SPLIT_BYTES:
            raise ReadRefused(f"splitBytes is {text!r}; it takes a number of bytes, {LEAST_SPLIT_BYTES} at least")
        return int(text)


def _as_load_gives(options: MutableMapping[str, str]) -> MutableMapping[str, str]:
    """Return the options as `load` gives them; CREATE TABLE marks them, and adds Spark's facts about the table."""
    for name in list(options):
        if name.startswith(_MARK):
            options[name.removeprefix(_MARK)] = options.pop(name)
        elif name.lower() in _OF_TABLES:
            del options[name]
    return options


@functools.cache
def _keep_modules() -> None:
    """Freeze the imported modules, once in a process of Spark's, which collects garbage after each of its steps."""
    keep_what_is_here()


def _keep_modules_of_planner() -> None:
    """Freeze the modules in Spark's own processes, which it marks (seen in 4.3); other callers may use `schema` and `partitions`
    too."""
    if "SPARK_PYTHON_RUNTIME" in os.environ:
        _keep_modules()


class BinlogReader(SentReader, DataSourceReader):
    """A reader that plans splits on the driver and reads them on executors."""

    def __init__(self, read: WholeRead, options: "ReadOptions | ChangeOptions") -> None:
        self._read = read
        self._options = options
        if isinstance(options, ReadOptions):
            self._wanted = Wanted()
            keep_times(options.level, read.since, read.until, self._wanted)
        else:
            from relay.binlog_tables.typed.table_changes import wanted_of_table

            self._wanted = wanted_of_table(options.table, read.since, read.until)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the input of each task."""
        from relay.spark.spark_task import tasks_of

        tasks = tasks_of(splits_of_read(self._read, self._wanted), self._read.split_bytes)
        _keep_modules_of_planner()
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of one task."""
        from relay.spark.spark_batches import read_for_spark
        from relay.spark.spark_task import SplitTask

        # Spark passes a partition of its own if `partitions` returned none.
        if isinstance(partition, SplitTask):
            _keep_modules()
            for split in partition.splits:
                yield from read_for_spark(split, self._options, self._wanted)


class PushingReader(BinlogReader):
    """A reader to which Spark passes its filters.

    Spark (seen in 4.3) keeps what was planned with filters at the frame that `load` returned, and uses it again for the frame's next
    query that has none, and for both branches of a union: rows are silently missing then. So this is for frames of one query;
    `pushdown` says so.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Use the supported filters; Spark checks all of them again."""
        push(filters, self._read.level, self._wanted)
        return filters
