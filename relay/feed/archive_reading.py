"""A reader of the archive between two places: transactions, statements and changed rows as Arrow tables, and the tables that existed
there."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import decode_first_event
from protocol.binlog.layout import FIRST_EVENT, FLAGS, HEADER_SIZE, OF_ONE_CONNECTION
from protocol.errors import Malformed
from protocol.sql.tables.source_table import Table, TableName
from relay.archive.storage.files import GAP_NAME
from relay.binlog_file.file_bytes import read_bytes
from relay.binlog_file.head import read_start
from relay.binlog_tables import arrow
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.places import PositionGone
from relay.binlog_tables.plan.read_finding import FileLost
from relay.binlog_tables.plan.recorded import reported_schema
from relay.binlog_tables.plan.series_files import SeriesFile, find_files
from relay.binlog_tables.plan.series_head import read_head
from relay.config.table_patterns import readings
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop
from relay.packed.packed_facts import PACKED_SUFFIXES
from relay.schema_history.schema_record import RecordedSchema

TRANSACTION_COLUMNS: Final = (
    "sequence", "file", "start", "end", "kind", "rolled_back", "closed_by", "last_time", "finding", "finding_position",
    "finding_text", "row_flags",
)  # fmt: skip
STATEMENT_COLUMNS: Final = (
    "file", "position", "end", "type", "transaction", "time", "error_code", "sql_mode", "schema", "statement", "finding",
)  # fmt: skip
ROW_COLUMNS: Final = (
    "sequence", "row", "file", "transaction", "position", "time", "gtid", "operation", "schema", "table", "before", "after",
    "named", "finding", "finding_text",
)  # fmt: skip


_IMAGES: Final = ("before", "after")


@dataclass(frozen=True, slots=True)
class RowParts:
    """The parts of rows that are read: images as JSON, and each value in its own column (`arrow.read_values`) where possible."""

    images: bool = True
    values: bool = False


IMAGES: Final = RowParts()


@dataclass(frozen=True, slots=True)
class StoredBinlog:
    """The bytes that a binlog takes where it is stored, packed or not, and the time of its first event (None: not read, or not
    recorded)."""

    bytes: int
    begun: datetime | None


class ArchiveReading:
    """A reader of one archive. Its methods block."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._store = store_of(path)
        self._files: dict[tuple[int, int], tuple[str, str]] = {}
        """This maps (generation, number) to (name as levels have it, path)."""
        self._versions: dict[str, str] = {}
        self._schema: tuple[str, int | None, RecordedSchema] | None = None

    def oldest(self) -> FeedOffset:
        """Return the first place that the archive contains."""
        return FeedOffset.of_text(arrow.oldest(self.path))

    def newest(self, start: FeedOffset | None = None, max_bytes: int | None = None) -> FeedOffset:
        """Return the end of the last whole transaction, or of the last one within `max_bytes` after `start`."""
        if start is None:
            return FeedOffset.of_text(arrow.newest(self.path))
        return FeedOffset.of_text(arrow.newest(self.path, self.text(start), max_bytes=max_bytes))

    def text(self, place: FeedOffset) -> str:
        """Return FILE:POSITION. Raises: FeedStop if the file is missing."""
        return f"{self._file(place)[0]}:{place.position}"

    def told(self, place: FeedOffset) -> str:
        """Return FILE:POSITION for a message, also if the file is missing."""
        try:
            return self.text(place)
        except FeedStop:
            return f"file {place.number} of source {place.generation}:{place.position}"

    def _file(self, place: FeedOffset) -> tuple[str, str]:
        key = (place.generation, place.number)
        if key not in self._files:
            self._files = {}
            for file in find_files(self._store, self.path):
                try:
                    at = FeedOffset.at(file.name, FIRST_EVENT)
                except Malformed:
                    continue
                self._files[at.generation, at.number] = (file.name, file.path)
        found = self._files.get(key)
        if found is None:
            first = next(iter(self._files.values()), ("nothing", ""))[0]
            raise FeedStop(
                "place_gone",
                f"file {place.number} of source {place.generation}:{place.position}",
                f"The binlog in which the feed is to go on is not in {self.path} any more; the oldest there is {first}.",
                "Keep binlogs longer (retention), put the files back, or load all tables again: "
                "`binlog-relay feed snapshot --all`.",
            )
        return found

    def bytes_between(self, start: FeedOffset, end: FeedOffset) -> int:
        """Return how many bytes of binlog are between two places, as far as their files exist."""
        self.text(end)
        total = 0
        for (generation, number), (_name, path) in self._files.items():
            first = FeedOffset(generation, number, FIRST_EVENT)
            if FeedOffset(start.generation, start.number, FIRST_EVENT) <= first <= end:
                low = start.position if (generation, number) == (start.generation, start.number) else FIRST_EVENT
                high = end.position if (generation, number) == (end.generation, end.number) else self._size(path)
                total += max(0, high - low)
        return total

    def stored(self, since: datetime) -> list[StoredBinlog]:
        """Return the binlogs, oldest first. Their first events are read from the newest back to the first binlog that began before
        `since`."""
        self.text(self.newest())
        found: list[StoredBinlog] = []
        asked = True
        for _key, (_name, path) in sorted(self._files.items(), reverse=True):
            begun = self._begun(path) if asked else None
            asked = asked and (begun is None or begun > since)
            found.append(StoredBinlog(self._stored_bytes(path), begun))
        return found[::-1]

    def begun(self, place: FeedOffset) -> datetime | None:
        """Return the time of the first event of a place's binlog; None if it is not recorded or the file is missing."""
        try:
            return self._begun(self._file(place)[1])
        except FeedStop:
            return None

    def written(self, place: FeedOffset) -> datetime | None:
        """Return when the file of a place was written to; None if this machine does not have the file."""
        path = self._file(place)[1]
        there = [
            path + suffix for suffix in ("", *PACKED_SUFFIXES) if "://" not in path and os.path.exists(path + suffix)
        ]
        return datetime.fromtimestamp(max(map(os.path.getmtime, there)), UTC) if there else None

    def server_id(self, place: FeedOffset) -> int | None:
        """Return the id of the server that wrote the binlog of a place; None if it is not recorded."""
        path = self._file(place)[1]
        return read_head(self._store, SeriesFile(path, path)).server_id

    def _begun(self, path: str) -> datetime | None:
        return read_head(self._store, SeriesFile(path, path)).begun

    def _stored_bytes(self, path: str) -> int:
        """Return the bytes that a local file takes on this machine (0 if only a bucket has it), or the size of a file at a URL."""
        if "://" in path:
            return self._size(path)
        there = [path + suffix for suffix in ("", *PACKED_SUFFIXES) if os.path.exists(path + suffix)]
        return sum(os.path.getsize(one) for one in there)

    def stretches_before(self, upto: FeedOffset) -> Iterator[tuple[FeedOffset, FeedOffset]]:
        """Yield the files up to a place, the newest first: the start of each, and the start of the next one, or the place."""
        self.text(upto)
        end = upto
        for key in sorted(self._files, reverse=True):
            start = FeedOffset(*key, FIRST_EVENT)
            if start < upto:
                yield start, end
                end = start

    def next_file(self, place: FeedOffset, upto: FeedOffset) -> FeedOffset:
        """Return the start of the first file after that of a place, or `upto` if that comes first."""
        self.told(place)
        later = (FeedOffset(*key, FIRST_EVENT) for key in self._files if key > (place.generation, place.number))
        return min([upto, *later])

    def past(self, place: FeedOffset, upto: FeedOffset) -> FeedOffset:
        """Return the end of the transaction at a place, which may be damaged; the next file's start if it is unknown."""
        try:
            some = self._read("transactions", ("file", "start", "end"), place, self.newest(place, 1))
        except (FeedStop, PositionGone, FileLost):
            return self.next_file(place, upto)
        known = [one for one in some.slice(0, 1).to_pylist() if one["end"] is not None]
        end = FeedOffset.at(known[0]["file"], known[0]["end"]) if known else place
        return min(end, upto) if end > place else self.next_file(place, upto)

    def time_at(self, place: FeedOffset) -> datetime | None:
        """Return the time of the transaction at a place, or of its binlog's first event; None if neither is known."""
        try:
            times = self._read("transactions", ("last_time",), place, self.newest(place, 1)).column("last_time")
        except (FeedStop, PositionGone, FileLost):
            return None
        return pc.min(times).as_py() or self.begun(place)

    def gaps(self, start: FeedOffset, end: FeedOffset) -> list[tuple[FeedOffset, str]]:
        """Return the gaps in (start, end] where binlogs are missing: the place after each gap, and what is known of it."""
        self.text(end)
        found = []
        for (before, (name, _path)), (after, (file, path)) in pairwise(self._files.items()):
            place = FeedOffset(*after, FIRST_EVENT)
            if not start < place <= end:
                continue
            if before[0] == after[0] and after[1] != before[1] + 1:
                found.append((place, f"binlogs between {name} and {file} are missing"))
            elif before[0] != after[0] and self._has_gap(path):
                found.append((place, f"a gap before {file}, the first file of another source, was accepted"))
        return found

    def _has_gap(self, path: str) -> bool:
        """Return whether a generation whose first file this is begins after a gap that the operator accepted."""
        record = self._store.join(path.rpartition("/")[0] or ".", GAP_NAME)
        if not self._store.is_file(record):
            return False
        reader = self._store.open(record)
        try:
            facts = json.loads(read_bytes(reader, 0, reader.size))
            return not (isinstance(facts, dict) and facts.get("is_whole") is True)
        except ValueError:
            return True
        finally:
            reader.close()

    def _size(self, path: str) -> int:
        reader = self._store.open(path)
        try:
            return int(reader.size)
        finally:
            reader.close()

    def transactions(self, start: FeedOffset, end: FeedOffset) -> pa.Table:
        """Return the transactions in [start, end)."""
        return self._read("transactions", TRANSACTION_COLUMNS, start, end)

    def changed_tables(self, start: FeedOffset, end: FeedOffset) -> frozenset[TableName]:
        """Return the tables with changed rows in [start, end). A name with a dot gives each of its readings, some of which are no
        tables."""
        names = pc.unique(pc.list_flatten(self._read("transactions", ("tables",), start, end).column("tables")))
        return frozenset(key for one in names.to_pylist() for key in readings(one))

    def in_one_phase(self, start: FeedOffset, end: FeedOffset) -> frozenset[int]:
        """Return the places, as versions, of the transactions in [start, end) that XA COMMIT … ONE PHASE ended, as their XA_PREPARE
        says."""
        columns = ("file", "position", "transaction", "type_code")
        found = []
        with arrow.read(self.path, "events", columns=columns, start=self.text(start), end=self.text(end)) as reader:
            for batch in reader:
                prepares = batch.filter(pc.fill_null(pc.equal(batch.column("type_code"), EventType.XA_PREPARE), False))
                for one in prepares.to_pylist():
                    event = self._bytes(FeedOffset.at(one["file"], one["position"]), HEADER_SIZE + 1)
                    if event[HEADER_SIZE:] == b"\x01" and one["transaction"] is not None:
                        found.append(FeedOffset.at(one["file"], one["transaction"]).version)
        return frozenset(found)

    def prepared_tables(self, start: FeedOffset, end: FeedOffset) -> dict[FeedOffset, frozenset[TableName]]:
        """Return the starts of the XA transactions that were prepared in [start, end), each with the tables that it changes."""
        found = {}
        with self._reader("transactions", ("file", "start", "tables", "closed_by"), start, end, {}) as reader:
            for batch in reader:
                prepared = batch.filter(pc.fill_null(pc.equal(batch.column("closed_by"), "xa_prepare"), False))
                for one in prepared.to_pylist():
                    if one["start"] is not None:
                        names = (key for name in one["tables"] or () for key in readings(name))
                        found[FeedOffset.at(one["file"], one["start"])] = frozenset(names)
        return found

    def xa_statements(self, start: FeedOffset, end: FeedOffset) -> list[tuple[FeedOffset, str]]:
        """Return the statements in [start, end) that begin, end and commit XA transactions, in order, each with the start of its
        transaction."""
        found = []
        with self._reader("statements", ("file", "transaction", "statement"), start, end, {}) as reader:
            for batch in reader:
                of_xa = batch.filter(pc.fill_null(pc.starts_with(batch.column("statement"), "XA "), False))
                for one in of_xa.to_pylist():
                    if one["transaction"] is not None:
                        found.append((FeedOffset.at(one["file"], one["transaction"]), one["statement"]))
        return found

    def used_temporary(self, place: FeedOffset) -> bool:
        """Return whether the statement there used a temporary table or something else that only its connection sees."""
        return bool(int.from_bytes(self._bytes(place, HEADER_SIZE)[FLAGS], "little") & OF_ONE_CONNECTION)

    def _bytes(self, place: FeedOffset, count: int) -> bytes:
        opened = self._store.open(self._file(place)[1])
        try:
            return bytes(read_bytes(opened, place.position, count))
        finally:
            opened.close()

    def statements(self, start: FeedOffset, end: FeedOffset) -> pa.Table:
        """Return the statements in [start, end)."""
        return self._read("statements", STATEMENT_COLUMNS, start, end)

    def rows(
        self, start: FeedOffset, end: FeedOffset, schemas: Sequence[str] | None, wanted: RowParts = IMAGES
    ) -> Iterator[pa.Table]:
        """Yield the changed rows in [start, end), some at a time; with `schemas`, only those of these schemas."""
        if not wanted.values:
            yield from self._batches(ROW_COLUMNS, start, end, {"schema": list(schemas)} if schemas else {})
            return
        columns = tuple(one for one in ROW_COLUMNS if wanted.images or one not in _IMAGES)
        for batch in arrow.read_values(self.path, columns, start=self.text(start), end=self.text(end), schemas=schemas):
            yield pa.Table.from_batches([batch])

    def rows_of(self, start: FeedOffset, end: FeedOffset, key: TableName) -> Iterator[pa.Table]:
        """Yield the changed rows of one table in [start, end), some at a time."""
        yield from self._batches(ROW_COLUMNS, start, end, {"schema": [key[0]], "table": [key[1]]})

    def row_statements(self, start: FeedOffset, end: FeedOffset, table: str, characters: int) -> Iterator[pa.Table]:
        """Yield the operations of the changed rows in [start, end) of all tables of a name and the first characters of their
        statements."""
        columns = ("sequence", "row", "file", "transaction", "operation", "schema", "statement")
        with self._reader("rows", columns, start, end, {"table": [table]}, characters) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])

    def changed_rows(self, start: FeedOffset, end: FeedOffset) -> Iterator[pa.Table]:
        """Yield the operations of all changed rows in [start, end) without their values, some at a time."""
        yield from self._batches(("file", "transaction", "operation"), start, end, {})

    def _batches(
        self, columns: tuple[str, ...], start: FeedOffset, end: FeedOffset, where: Mapping[str, Sequence[str]]
    ) -> Iterator[pa.Table]:
        with self._reader("rows", columns, start, end, where) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])

    def _read(self, level: str, columns: tuple[str, ...], start: FeedOffset, end: FeedOffset) -> pa.Table:
        with self._reader(level, columns, start, end, {}) as reader:
            return reader.read_all()

    def _reader(
        self,
        level: str,
        columns: tuple[str, ...],
        start: FeedOffset,
        end: FeedOffset,
        where: Mapping[str, Sequence[str]],
        statement_characters: int | None = None,
    ) -> pa.RecordBatchReader:
        return arrow.read(
            self.path,
            level,
            columns=columns,
            start=self.text(start),
            end=self.text(end),
            where=where,
            overlap="executed",
            keeps=True,
            statement_characters=statement_characters,
        )

    def schema(self, file: str, stop: int | None) -> RecordedSchema:
        """Return the tables that existed in the source that wrote `file`, up to `stop` in it."""
        kept = self._schema
        if kept is not None and kept[:2] == (file, stop) and stop is not None:
            return kept[2]
        path = self._file(FeedOffset.at(file, FIRST_EVENT))[1]
        directory, _, base = path.rpartition("/")
        found = reported_schema(self._store, directory or ".", base, stop)
        self._schema = (file, stop, found)
        return found

    def table(self, key: TableName, at: FeedOffset, upto: FeedOffset) -> Table | None:
        """Return a table's definition for an event at a place; statements up to `upto` are considered."""
        if at.generation != upto.generation:
            newest = max(number for generation, number in self._files if generation == at.generation)
            return self.schema(self._files[at.generation, newest][0], None).at(key, (at.number, at.position))
        return self.schema(self._file(upto)[0], upto.position).at(key, (at.number, at.position))

    def names_at(self, place: FeedOffset) -> list[TableName]:
        """Return the tables of the source that wrote the file of a place, as far as the archive knows them."""
        return list(self.schema(self._file(place)[0], place.position).names())

    def definition_files(self, key: TableName, upto: FeedOffset) -> frozenset[tuple[int, int]]:
        """Return the (generation, number) of the binlogs up to a place in which a table's definition may change."""
        self.text(upto)
        newest = dict(sorted(self._files))
        return frozenset(
            (generation, place[0])
            for generation, number in newest.items()
            if generation <= upto.generation
            for place, changed in self.schema(self._files[generation, number][0], None).changes()
            if changed == key
        )

    def names(self, upto: FeedOffset) -> list[TableName]:
        """Return all tables that the archive knows up to a place."""
        self.text(upto)
        found: set[TableName] = set()
        newest = dict(sorted(self._files))
        for generation, number in newest.items():
            if generation <= upto.generation:
                found |= set(self.schema(self._files[generation, number][0], None).names())
        return sorted(found)

    def server_version(self, place: FeedOffset) -> str:
        """Return the version of the server that wrote the file of a place."""
        _name, path = self._file(place)
        if path not in self._versions:
            reader = self._store.open(path)
            try:
                self._versions[path] = decode_first_event(read_start(reader).event)[1].server_version
            finally:
                reader.close()
        return self._versions[path]
