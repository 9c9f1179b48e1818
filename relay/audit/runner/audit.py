"""The input of a job: the archive as Spark's frames, narrowed by the options, and what could not be read of it."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

from pyspark.sql import Column, DataFrame, DataFrameReader, Row, SparkSession
from pyspark.sql import functions as F

from protocol.binlog.layout import FIRST_EVENT
from relay.audit.runner.audit_result import AuditFinding, AuditOptions, Place, Severity, found_at
from relay.binlog_tables.plan.overlap import Overlap
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.read_finding import TEXTS
from relay.binlog_tables.plan.series_files import SeriesFile, find_files
from relay.binlog_tables.plan.series_head import SeriesHead, read_head
from relay.binlog_tables.plan.splits import end_of, plan, written_between
from relay.binlog_tables.plan.whole_read import SPLIT_BYTES

_MOST_SERIES: Final = 100
_T = TypeVar("_T")

READING_TITLES: Final = {
    "checksum_mismatch": "Events whose checksum does not fit",
    "boundary_violation": "Events that cannot stand where they stand",
    "position_chain_broken": "Events whose end_log_pos is not their end",
    "unknown_event_type": "Events of an unknown type",
    "event_malformed": "Events whose lengths lie",
    "rows_unreadable": "Rows that cannot be told apart",
    "payload_unreadable": "Compressed transactions that cannot be unpacked",
    "transaction_unfinished": "Transactions without an end",
    "event_truncated": "Files that end inside an event",
    "event_length_wrong": "Files that cannot be read on",
    "file_encrypted": "Encrypted files",
    "file_damaged": "Files that the archive marked as damaged",
    "not_a_binlog": "Files that are no binlog",
    "file_gone": "Files that are gone",
    "file_incomplete": "Files that are not all there",
    "file_shrunk": "Files that became shorter",
    "file_unreadable": "Files that cannot be read",
    "source_changed": "Files of another source",
    "transaction_cut": "Transactions that the source's crash cut",
    "format_description_missing": "Files that do not begin with a Format_description",
    "format_description_unsupported": "Files of a layout that no server writes",
}
# All that is there is read, and servers write such files when they crash, or get another id.
_WARNINGS: Final = frozenset({"source_changed", "transaction_cut"})


class Audit:
    """One run of a job over one archive. `on_step` gets the current step, in a few words."""

    def __init__(
        self, spark: SparkSession, options: AuditOptions, on_step: Callable[[str], None] = lambda step: None
    ) -> None:
        self.spark = spark
        self.options = options
        self.step = on_step
        self._kept: list[DataFrame] = []
        self._shared: dict[tuple[str, tuple[str, ...]], Any] = {}

    def for_job(self, options: AuditOptions) -> "Audit":
        """Return the same archive for another job, of the same time: what was read and is shared is not read again."""
        made = Audit(self.spark, options, self.step)
        made._kept, made._shared = self._kept, self._shared
        return made

    def keep(self, frame: DataFrame) -> DataFrame:
        """Return the frame, computed once however often it is used, until the jobs' output is written. For aggregates."""
        self._kept.append(frame.persist())
        return frame

    def shared(self, name: str, make: Callable[[], _T], *, by_tables: bool = False) -> _T:
        """Return the result of `make`, which is made once for all jobs of this archive. `by_tables` says that it depends on
        --tables."""
        key = (name, self.options.tables if by_tables else ())
        if key not in self._shared:
            self._shared[key] = make()
        made: _T = self._shared[key]
        return made

    def release(self) -> None:
        """Release what was kept."""
        while self._kept:
            self._kept.pop().unpersist()

    @property
    def _found(self) -> list[SeriesFile]:
        """All files that existed when the audit began."""
        archive = self.options.archive
        return self.shared("files", lambda: find_files(store_of(archive), archive))

    @cached_property
    def _ending(self) -> str | None:
        """The end of the archive when the audit began, as the data source takes it: an audit reads it several times, and its results
        must be consistent while a relay writes. None if it is unknown."""
        newest, end = self._found[-1], self._newest_end
        if end is None:
            return None
        return f"{newest.name}:{end}" if end > FIRST_EVENT or newest.growing else None

    @property
    def _newest_end(self) -> int | None:
        """The end of the newest file when the audit began; None if it is unknown."""

        def end() -> int | None:
            try:
                return end_of(store_of(self.options.archive), self._found[-1])
            except OSError:
                return None

        return self.shared("newest_end", end)

    @cached_property
    def files_from_the_first(self) -> list[tuple[SeriesFile, int]]:
        """All files up to the last of `files`, also those before --since, each with up to where it can be read. Raises: as `files`."""
        if not self.files:
            return []
        store = store_of(self.options.archive)
        found: list[tuple[SeriesFile, int]] = []
        for file in self._found[: self._found.index(self.files[-1]) + 1]:
            try:
                end = self._newest_end if file == self._found[-1] else end_of(store, file)
            except OSError:
                end = None
            found.append((file, FIRST_EVENT if end is None else end))
        return found

    @cached_property
    def files(self) -> list[SeriesFile]:
        """The files of the archive, of the requested time, oldest first. Raises: NothingToRead, ArchiveError, OSError."""
        since, until = self.options.since, self.options.until
        if since is None and until is None:
            return self._found
        return written_between(
            store_of(self.options.archive),
            self._found,
            -1e18 if since is None else since.timestamp(),
            1e18 if until is None else until.timestamp(),
        )

    @property
    def heads(self) -> list[SeriesHead]:
        """The content of each file's head, in the files' order."""
        store = store_of(self.options.archive)
        return self.shared("heads", lambda: [read_head(store, file) for file in self.files])

    @cached_property
    def file_order(self) -> list[Column]:
        """The columns that put rows with a `file` into the order of the files: mysql-bin.999999 before mysql-bin.1000000, and files of
        another name, or of a later source, where the archive has them."""
        order = [F.length("file").alias("length"), F.col("file")]
        series = list(dict.fromkeys(file.series for file in self.files))
        if len(series) < 2:
            return order
        if len(series) > _MOST_SERIES:  # These are files without numbers, which are ordered by their names
            return order[1:]
        own = F.regexp_extract("file", r"^(.+)\.\d{6,}$", 1)
        rank = F.lit(len(series))
        for number, name in enumerate(series):
            rank = F.when((own == name) | (F.col("file") == name), number).otherwise(rank)
        return [rank.alias("series"), *order]

    def first_of(self, *columns: str) -> Column:
        """Return the `columns`, as a struct of them and `file`, of the row that comes first in the archive."""
        return F.min(F.struct(*self.file_order, *columns))

    def read_whole(self, level: str, *columns: str) -> DataFrame:
        """Return a level of the files that were written between --since and --until, with all their content. For one query."""
        if not self.options.timed:
            return self._reader(level, columns).load(self.options.archive)
        frame = self._reader(level, columns).option("pushdown", "true").load(self.options.archive)
        return frame.where(F.col("file").isin([file.name for file in self.files]))

    def read(self, level: str, *columns: str) -> DataFrame:
        """Return a level of the archive, with --since and --until. It includes rows that only carry a finding of reading."""
        return self._timed(level, columns).load(self.options.archive)

    def _timed(self, level: str, columns: Sequence[str]) -> DataFrameReader:
        reader = self._reader(level, columns)
        if self.options.since is not None:
            reader = reader.option("since", self.options.since.isoformat())
        if self.options.until is not None:
            reader = reader.option("until", self.options.until.isoformat())
        return reader

    def read_table(self, level: str, schema: str, table: str, *columns: str) -> DataFrame:
        """Return a level's rows of one table, with --since and --until. For one query."""
        frame = self._timed(level, (*columns, "schema", "table")).option("pushdown", "true").load(self.options.archive)
        return frame.where((F.col("schema") == schema) & (F.col("table") == table)).drop("schema", "table")

    def read_places(self, level: str, places: Sequence[tuple[str, int]], *columns: str) -> DataFrame:
        """Return the rows at a few places (file, position) of a level. For one query."""
        frame = self._reader(level, columns).option("pushdown", "true").load(self.options.archive)
        files, positions = ({place[number] for place in places} for number in (0, 1))
        return frame.where(F.col("file").isin(sorted(files)) & F.col("position").isin(sorted(positions)))

    def once(self, events: DataFrame) -> DataFrame:
        """Return events (file, position) without those that a later source's files repeat: level events has them, others do not."""
        if not self._repeated:
            return events
        spans = F.broadcast(self.frame_of("of string, first bigint, behind bigint", self._repeated))
        return events.join(spans, F.expr("file = of AND position >= first AND position < behind"), "left_anti")

    @property
    def repeats(self) -> bool:
        """True if a later source's files repeat something of the previous sources."""
        return bool(self._repeated)

    @property
    def _repeated(self) -> list[tuple[str, int, int]]:
        """The ranges (file, from, to) that a later source's files repeat of the previous sources."""
        return self.shared("repeated", self._find_repeated)

    def _find_repeated(self) -> list[tuple[str, int, int]]:
        later = {file.name for file in self.files if file.generation}
        if not later:
            return []
        store = store_of(self.options.archive)
        overlap = Overlap(store, self._found, held=True)
        splits = plan(store, self._found, SPLIT_BYTES, later.__contains__, whole_files=True, overlap=overlap)
        return [(split.name, *span) for split in splits for span in split.skips]

    def _reader(self, level: str, columns: Sequence[str]) -> DataFrameReader:
        reader = self.spark.read.format("binlog").option("level", level)
        if self._ending is not None:
            reader = reader.option("endingPosition", self._ending)
        return reader.option("columns", ",".join(columns)) if columns else reader

    def wants_table(self, table: Column) -> Column:
        """Return whether `table`, a text schema.table, is among --tables."""
        patterns = self.options.tables
        if not patterns:
            return F.lit(True)
        return table.rlike(f"(?s)^(?:{'|'.join(_regular(pattern) for pattern in patterns)})$")

    def wants_any_table(self, tables: Column) -> Column:
        """Return whether one of an array of tables is among --tables."""
        return F.exists(tables, self.wants_table) if self.options.tables else F.lit(True)

    @property
    def unreadable(self) -> list[AuditFinding]:
        """The problems of the files themselves: every level leaves out, or may misread, what is at these places.

        This takes one pass over all bytes: checksums, boundaries, positions, lengths, rows.
        """
        return self.shared("unreadable", self._find_unreadable)

    def _find_unreadable(self) -> list[AuditFinding]:
        self.step("Checking every event")
        frame = self.keep(self.read("findings", "file", "position", "time", "finding", "finding_text"))
        counted = {row["finding"]: row["count"] for row in frame.groupBy("finding").count().collect()}
        found = []
        for name in sorted(counted):
            first = frame.where(F.col("finding") == name).orderBy(*self.file_order, "position")
            places = [place_of(row, row["finding_text"] or "") for row in first.limit(self.options.limit).collect()]
            title = READING_TITLES.get(name, name.replace("_", " ").capitalize())
            severity: Severity = "warning" if name in _WARNINGS else "error"
            found.append(AuditFinding(name, severity, title, TEXTS.get(name, ""), counted[name], places))
        return found

    def gone(self) -> list[AuditFinding]:
        """Return findings about files that existed when the audit began, and do not any more."""
        store = store_of(self.options.archive)
        there: dict[str, set[str]] = {}
        lost = []
        for file in self.files:
            directory, _, name = file.path.rpartition("/")
            if directory not in there:
                try:
                    there[directory] = set(store.names(directory or ("/" if file.path.startswith("/") else ".")))
                except OSError:
                    there[directory] = set()
            if name not in there[directory]:
                lost.append(Place(file.name, None, "It was purged while the audit ran."))
        text = "They were there when the audit began. What is told of them may be only a part, or nothing."
        return list(
            found_at(
                "file_purged", "error", "Files that were purged while the audit ran", text, lost, self.options.limit
            )
        )

    def first_places(self, frame: DataFrame, text: Callable[[Row], str], position: str = "position") -> list[Place]:
        """Return the first rows of a frame with `file` and `position`, --limit at most, in the order of the archive."""
        rows = frame.orderBy(*self.file_order, position).limit(self.options.limit).collect()
        return [place_of(row, text(row)) for row in rows]

    def frame_of(self, schema: str, rows: Sequence[Sequence[object]]) -> DataFrame:
        """Return a small frame of results that were computed here. `schema` is in SQL's form."""
        return self.spark.createDataFrame([tuple(row) for row in rows], schema)


def place_of(row: Row, text: str) -> Place:
    """Return the place of a row of some level: its file, its `position` or `start`, its time."""
    told = row.asDict()
    position = told.get("position", told.get("start"))
    return Place(told["file"], position, text, told.get("time", told.get("first_time")))


def _regular(pattern: str) -> str:
    """Return a pattern with * and ? as Java's regular expression; without a dot it is a table of any schema."""
    made = "".join({"*": ".*", "?": "."}.get(mark) or re.escape(mark) for mark in pattern)
    return made if "." in pattern else rf".*\.{made}"
