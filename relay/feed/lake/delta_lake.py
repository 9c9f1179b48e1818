"""Tables of Delta, by delta-rs, without a JVM. The place is the version in the `txn` action of each commit."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import ColumnProperties, CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSelector, FileType, PyFileSystem

from relay.feed.lake.changes_in_memory import HeldNet
from relay.feed.lake.days import DAY, by_days, with_days
from relay.feed.lake.delta_files import EXACT_DIGITS, DeltaFiles, has_span, inexact_columns, is_whole_decimal
from relay.feed.lake.lake_names import folder_name, remove_local
from relay.feed.lake.lake_rows import evolved_batch, last_of_equal_keys, matching_rows, plain_schema
from relay.feed.lake.lake_table import APP_ID, STRAY_HOURS, ColumnsChange, NewTable
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.lake_columns import DELETED, SEQUENCE
from relay.feed.spool.changes_spilled import SpooledNet

_BATCH_ROWS: Final = 1 << 16
_FILE_BYTES: Final = 8 << 20
"""The maximum size of a file: a MERGE rewrites each file that has one of its keys."""
_FILE_ROWS: Final = 1 << 14
_MERGE_BYTES: Final = 8 << 20
"""The maximum size of the files that a MERGE may have to read: delta-rs (1.6) holds the rows of those without a changed key in
memory."""
_PLACE: Final = "binlog-relay.place"
_DAY_OF: Final = "binlog-relay.day-of"
_SPANS: Final = "delta.dataSkippingStatsColumns"
_MOST_SPANS: Final = 32
_BESIDE: Final = "_rebuild"


def _writer(schema: pa.Schema, told: Collection[str]) -> WriterProperties:
    """Return writer properties without statistics for DECIMALs that are not in `told`: delta-rs (1.6) writes their minimum and maximum
    as doubles, which may differ, so that files that have a key would be skipped."""
    untold = {
        one.name: ColumnProperties(statistics_enabled="NONE")
        for one in schema
        if pa.types.is_decimal(one.type) and one.name not in told
    }
    return WriterProperties(compression="SNAPPY", column_properties=untold or None)


def _commit(place: FeedOffset | None) -> CommitProperties:
    """Return the properties of a commit that fails unless it follows the version that was seen: a retried commit would miss what
    another one did meanwhile."""
    if place is None:
        return CommitProperties(max_commit_retries=0)
    return CommitProperties(
        custom_metadata={_PLACE: str(place.version)},
        app_transactions=[Transaction(APP_ID, place.version)],
        max_commit_retries=0,
    )


def _spans(names: Iterable[str]) -> str:
    """Return the value of _SPANS: the columns whose minimum and maximum readers take into account."""
    return ",".join(_in_backticks(one) for one in list(names)[:_MOST_SPANS])


def _in_backticks(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class DeltaLakeTable:
    """One table of Delta."""

    def __init__(self, table: DeltaTable, connection: duckdb.DuckDBPyConnection) -> None:
        self._table = table
        self._connection = connection

    @property
    def place(self) -> FeedOffset | None:
        """The place up to which it was fed."""
        version = self._table.transaction_version(APP_ID)
        return None if version is None else FeedOffset.of_version(version)

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return arrow_schema_of(self._table)

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties."""
        return {name: value for name, value in self._table.metadata().configuration.items() if value}

    @property
    def version(self) -> int:
        """Its newest version."""
        return self._table.version()

    def merge(self, changes: pa.Table, key: Sequence[str], place: FeedOffset) -> None:
        """Merge net changes: in one MERGE, or file by file if too many files may have a key."""
        known = self.schema
        told = self._tell_spans(known, inexact_columns(changes))
        for one in known:
            if one.name not in changes.column_names:  # dropped at the source: NULL from there
                changes = changes.append_column(one, pa.nulls(changes.num_rows, one.type))
        if any(pa.types.is_floating(known.field(one).type) for one in key):
            changes = last_of_equal_keys(self._connection, changes, key)
        held = HeldNet(self._connection, changes, key)
        few = self._few_of_many(held, key, told)
        if few is not None:
            self._rewrite(few, held, key, place)
            return
        merger = self._table.merge(
            changes,
            predicate=" AND ".join(f"t.{_name(column)} = s.{_name(column)}" for column in key),
            source_alias="s",
            target_alias="t",
            streamed_exec=False,
            writer_properties=_writer(known, told),
            commit_properties=_commit(place),
        )
        columns = {_name(one.name): f"s.{_name(one.name)}" for one in known}
        newer, same = (f"s.{_name(SEQUENCE)} {sign} t.{_name(SEQUENCE)}" for sign in (">", "="))
        # A snapshot's rows have the sequence of what follows it; a row that is the same already is not rewritten.
        differs = " OR ".join(f"(s.{name} IS DISTINCT FROM t.{name})" for name in columns)
        merger.when_matched_delete(f"s.{_name(DELETED)} AND ({newer} OR {same})").when_matched_update(
            updates=columns, predicate=f"NOT s.{_name(DELETED)} AND ({newer} OR ({same} AND ({differs})))"
        ).when_not_matched_insert(updates=columns, predicate=f"NOT s.{_name(DELETED)}").execute()

    def merge_spooled(self, changes: SpooledNet, key: Sequence[str], place: FeedOffset) -> None:
        """Implement `LakeTable.merge_spooled`."""
        told = self._tell_spans(self.schema)
        touched = self._touched(changes, key, told)
        self._rewrite((one for one in touched if self._has_some(one, changes, key)), changes, key, place)

    def _few_of_many(self, changes: HeldNet, key: Sequence[str], told: Collection[str]) -> list[Any] | None:
        """Return the files that have a changed key if a MERGE would have to read many others, too, whose rows it holds in memory.

        None means that it would not. A MERGE rewrites the files that have a changed key while it reads them.
        """
        sizes = dict(self._table._table.get_add_file_sizes())
        if sum(sizes.values()) <= _MERGE_BYTES or not _is_compared(self.schema.field(key[0]).type):
            return None
        touched = list(self._touched(changes, key, told))
        read = sum(sizes[one.path] for one in touched)
        if read <= _MERGE_BYTES:
            return None
        found = [one for one in touched if self._has_some(one, changes, key)]
        return found if 2 * sum(sizes[one.path] for one in found) <= read else None

    def _touched(self, changes: SpooledNet | HeldNet, key: Sequence[str], told: Collection[str]) -> Iterable[Any]:
        """Return the files that may have a changed key, by their statistics."""
        kind = self.schema.field(key[0]).type
        exact = pa.types.is_integer(kind) or (is_whole_decimal(kind) and key[0] in told)
        wanted = _between(changes, key[0], kind) if exact else None
        found: Iterable[Any] = self._table.to_pyarrow_dataset().get_fragments(filter=wanted)
        return found

    def _has_some(self, file: Any, changes: SpooledNet | HeldNet, key: Sequence[str]) -> bool:
        """Return whether a file has a row that is removed."""
        wanted = _between(changes, key[0], self.schema.field(key[0]).type)
        reading = self._reading(columns=_names(key), filter=wanted, batch_size=_BATCH_ROWS)
        batches = (pa.Table.from_batches([some]) for some in file.scanner(**reading).to_batches() if some.num_rows)
        return any(pc.any(changes.are_gone(some)).as_py() for some in batches)

    def _reading(self, **more: Any) -> dict[str, Any]:
        schema = pa.schema(self._table.schema().to_arrow(as_large_types=False))
        return {"schema": schema, "batch_readahead": 1, "fragment_readahead": 1, **more}

    def _rewrite(
        self, found: Iterable[Any], changes: SpooledNet | HeldNet, key: Sequence[str], place: FeedOffset
    ) -> None:
        """Rewrite files that have changed keys without these, and write the new rows into their own files."""
        schema = self.schema
        files = DeltaFiles(self._table, schema, _FILE_BYTES)
        sizes = dict(self._table._table.get_add_file_sizes())
        for one in found:
            files.remove(one.path, sizes[one.path])
            batches = one.scanner(**self._reading(batch_size=_FILE_ROWS)).to_batches()
            rows = (_plain(pa.Table.from_batches([batch]), schema) for batch in batches)
            files.write(some.filter(pc.invert(changes.are_gone(some.select(_names(key))))) for some in rows)
        files.write(changes.live(schema))
        files.finish()
        told = self._tell_spans(schema, files.inexact)
        self._table.create_write_transaction(
            files.actions(told), "append", self._table.schema(), commit_properties=_commit(place)
        )
        self._table.update_incremental()

    def _tell_spans(self, schema: pa.Schema, inexact: Collection[str] = ()) -> frozenset[str]:
        """Update the listed columns before a commit of rows with these columns, so that no column is listed that some file has no
        statistics of. This is a separate commit, if needed.

        `inexact` are columns with values whose doubles differ. Returns the columns that are listed.
        """
        if self._by_day:
            return frozenset()
        known = self.schema
        told = self._table.metadata().configuration.get(_SPANS)
        names = [one.name for one in schema if has_span(one.type) and one.name not in inexact]
        if told is None:
            names = [one for one in names if not is_whole_decimal(schema.field(one).type)]
        else:
            # Existing files have statistics of the listed columns. A column with a new name is only in files that are still to be
            # written.
            listed = set(told.split(","))
            names = [one for one in names if known.get_field_index(one) < 0 or _in_backticks(one) in listed]
        if _spans(names) != told:
            self.set_properties({_SPANS: _spans(names)})
        return frozenset(names[:_MOST_SPANS])

    def _unsure(self, schema: pa.Schema, made: Collection[str]) -> list[str]:
        """Return the DECIMALs of rows with these columns that may have values whose doubles differ. `made` are columns with new values;
        the others are this table's, which lists them as long as they have no such value."""
        known = self.schema
        return [
            one.name
            for one in schema
            if is_whole_decimal(one.type)
            and one.type.precision > EXACT_DIGITS
            and (one.name in made or known.get_field_index(one.name) < 0 or known.field(one.name).type != one.type)
        ]

    def append(self, rows: pa.Table | pa.RecordBatchReader, place: FeedOffset) -> None:
        """Append rows."""
        if self._by_day:
            rows = with_days(rows, self._table.metadata().configuration.get(_DAY_OF) or "time")
        inexact = inexact_columns(rows) if isinstance(rows, pa.Table) else self._unsure(rows.schema, rows.schema.names)
        writer = _writer(rows.schema, self._tell_spans(self.schema, inexact))
        write_deltalake(self._table, rows, mode="append", commit_properties=_commit(place), writer_properties=writer)
        self._table.update_incremental()

    def replace(self, rows: pa.Table, place: FeedOffset) -> None:
        """Replace all rows by these."""
        self._overwrite(rows.schema, rows.to_batches(), place, inexact_columns(rows))

    def clear(self, place: FeedOffset) -> None:
        """Remove all rows."""
        self._overwrite(self.schema, self.schema.empty_table().to_reader(), place)

    def advance(self, place: FeedOffset) -> None:
        """Commit a place without data."""
        self._table.alter.set_table_properties(
            {_PLACE: str(place.version)}, raise_if_not_exists=False, commit_properties=_commit(place)
        )

    def evolve(self, change: ColumnsChange, place: FeedOffset) -> None:
        """Change the columns. New columns are added; for anything else the table is rewritten in one commit."""
        known = self.schema
        added = [one for one in change.schema if known.get_field_index(one.name) < 0]
        same = [one for one in change.schema if known.get_field_index(one.name) >= 0]
        rewrite = (
            change.emptied
            or change.renamed
            or change.filled
            or any(known.field(one.name).type != one.type for one in same)
        )
        if not rewrite:
            if added:
                from deltalake import Schema

                fields = Schema.from_arrow(pa.schema(added)).fields
                self._table.alter.add_columns(fields, commit_properties=_commit(place))
            else:
                self.advance(place)
            return
        if change.emptied:
            self._overwrite(change.schema, change.schema.empty_table().to_reader(), place)
            return
        reader = self.scan()
        inexact = self._unsure(change.schema, {*change.filled, *change.renamed})
        self._overwrite(change.schema, (evolved_batch(batch, change) for batch in reader), place, inexact)

    def rebuild(self, schema: pa.Schema, rows: Iterable[pa.RecordBatch], place: FeedOffset) -> None:
        """Replace the columns and all rows; the columns of a table that is split by day stay as they are."""
        if self._by_day:
            self._overwrite_days(rows, place)
        else:
            self._overwrite(schema, iter(rows), place, self._unsure(schema, schema.names))

    def _overwrite_days(self, rows: Iterable[pa.RecordBatch], place: FeedOffset) -> None:
        """Replace all rows, written file by file: delta-rs (1.6) would hold rows of each day in memory."""
        schema = self.schema
        schema = schema.remove(schema.get_field_index(DAY))
        files = DeltaFiles(self._table, schema, _FILE_BYTES)
        day_of = self._table.metadata().configuration.get(_DAY_OF) or "time"
        for day, some in by_days(rows, schema, day_of):
            files.into(day)
            files.write([some])
        files.finish()
        told = frozenset(one.name for one in schema if has_span(one.type))
        self._table.create_write_transaction(
            files.actions(told),
            "overwrite",
            self._table.schema(),
            partition_by=[DAY],
            commit_properties=_commit(place),
        )
        self._table.update_incremental()

    def _overwrite(self, schema: pa.Schema, rows: Any, place: FeedOffset, inexact: Collection[str] = ()) -> None:
        told = self._tell_spans(schema, inexact)
        write_deltalake(
            self._table,
            pa.RecordBatchReader.from_batches(schema, rows),
            mode="overwrite",
            schema_mode="overwrite",
            commit_properties=_commit(place),
            writer_properties=_writer(schema, told),
        )
        self._table.update_incremental()

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set properties; '' removes one."""
        self._table.alter.set_table_properties(
            dict(properties), raise_if_not_exists=False, commit_properties=_commit(None)
        )

    def scan(self, columns: Sequence[str] | None = None, version: int | None = None) -> pa.RecordBatchReader:
        """Return its rows."""
        table = self._table
        if version is not None:
            table = DeltaTable(table.table_uri, version=version, storage_options=table._storage_options)
        dataset = table.to_pyarrow_dataset()
        return dataset.scanner(columns=list(columns) if columns else None, batch_size=_BATCH_ROWS).to_reader()

    def scan_since(self, columns: Sequence[str], column: str, since: datetime) -> pa.RecordBatchReader:
        """Return its rows whose time is `since` or later."""
        wanted = pc.field(column) >= pa.scalar(since, pa.timestamp("us", "UTC"))
        if self._by_day:
            wanted = wanted & (pc.field(DAY) >= pa.scalar(since.astimezone(UTC).date()))
        dataset = self._table.to_pyarrow_dataset()
        return dataset.scanner(columns=list(columns), filter=wanted, batch_size=_BATCH_ROWS).to_reader()

    def facts(self) -> Mapping[str, int]:
        """Return the rows, files and bytes of its newest version, and the number of commits."""
        files = pa.table(self._table.get_add_actions(flatten=True))
        return {
            "rows": int(pc.sum(files.column("num_records")).as_py() or 0),
            "bytes": int(pc.sum(files.column("size_bytes")).as_py() or 0),
            "files": files.num_rows,
            "commits": self._table.version() + 1,
        }

    def size_at(self, moment: datetime) -> tuple[datetime, int] | None:
        """Return the size by the log; None if its older part has been cleaned up."""
        made = [
            (datetime.fromtimestamp(one["timestamp"] / 1000, UTC), int(one["version"])) for one in self._table.history()
        ]
        if not made:
            return None
        time, version = max((one for one in made if one[0] <= moment), default=min(made))
        try:
            table = DeltaTable(self._table.table_uri, version=version, storage_options=self._table._storage_options)
        except DeltaError:
            return None
        files = pa.table(table.get_add_actions(flatten=True))
        return time, int(pc.sum(files.column("size_bytes")).as_py() or 0)

    def rows_of(self, keys: pa.Table) -> pa.Table:
        """Return the rows that have one of these keys."""
        return matching_rows(self._connection, self.scan(), keys, self.schema)

    def compact(self, target_bytes: int) -> Mapping[str, Any]:
        """Merge small files into larger ones."""
        schema = self.schema
        found: Mapping[str, Any] = self._table.optimize.compact(
            target_size=target_bytes, writer_properties=_writer(schema, self._tell_spans(schema))
        )
        return found

    def expire(self, keep_hours: int) -> Mapping[str, Any]:
        """Remove files that only older versions contain."""
        gone = self._table.vacuum(retention_hours=keep_hours, dry_run=False, enforce_retention_duration=False)
        gone += self._table.vacuum(
            retention_hours=max(keep_hours, STRAY_HOURS), dry_run=False, enforce_retention_duration=False, full=True
        )
        self._table.create_checkpoint()
        self._table.cleanup_metadata()
        return {"files_removed": len(gone)}

    def forget(self, column: str, before: datetime) -> None:
        """Remove rows whose time is before `before`; in a table that is split by day, all files of the days before it."""
        before = before.astimezone(UTC)
        if self._by_day:
            self._table.delete(f"{DAY} < CAST('{before.date().isoformat()}' AS DATE)")
        else:
            kind = 'Timestamp(Microsecond, Some("UTC"))'
            self._table.delete(f"{_name(column)} < arrow_cast('{before.isoformat()}', '{kind}')")
        self._table.update_incremental()

    @property
    def _by_day(self) -> bool:
        return DAY in self._table.metadata().partition_columns

    def places(self) -> Iterable[tuple[int, FeedOffset]]:
        """Yield (version, place) of the versions that still exist."""
        found = []
        for entry in self._table.history():
            if _PLACE in entry:
                found.append((int(entry["version"]), FeedOffset.of_version(int(entry[_PLACE]))))
        return reversed(found)


def arrow_schema_of(table: DeltaTable) -> pa.Schema:
    """Return the table's columns as Arrow's, texts and bytes with 32-bit offsets."""
    return plain_schema(pa.schema(table.schema().to_arrow()))


def _is_compared(kind: pa.DataType) -> bool:
    """Return whether pyarrow compares such values in all files; it does not compare texts and bytes as delta-rs (1.6) writes them."""
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _between(changes: SpooledNet | HeldNet, name: str, kind: pa.DataType) -> Any:
    """Return the condition that rows with a changed key fulfil; None if it is unknown."""
    if not _is_compared(kind):
        return None
    low, high = (pa.scalar(one, kind) for one in changes.ends(name))
    return (pc.field(name) >= low) & (pc.field(name) <= high)


def _names(key: Sequence[str]) -> list[str]:
    return [*dict.fromkeys((*key, SEQUENCE))]


def _plain(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([rows.column(one.name).cast(one.type) for one in schema], schema=schema)


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


class DeltaLake:
    """Tables of Delta under a directory or URL: KIND/SCHEMA/TABLE."""

    def __init__(self, root: str, storage_options: Mapping[str, str], connection: duckdb.DuckDBPyConnection) -> None:
        self._root = root.rstrip("/")
        self._options = dict(storage_options)
        self._connection = connection

    def address(self, kind: str, schema: str, table: str) -> str:
        """Return its path or URL."""
        return "/".join((self._root, kind, *(folder_name(part) for part in (schema, table) if part)))

    def missing(self, names: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        """Implement `Lake.missing`: a bucket would be asked for each table, so nothing is said of its tables."""
        if "://" in self._root:
            return []
        return [one for one in names if not os.path.isdir(f"{self.address(*one)}/_delta_log")]

    def beside(self, name: str) -> "DeltaLake":
        """Implement `Lake.beside`: the tables are below `_rebuild/NAME`."""
        return DeltaLake(f"{self._root}/{_BESIDE}/{folder_name(name)}", self._options, self._connection)

    def remove_beside(self, name: str, first: str) -> None:
        """Implement `Lake.remove_beside`."""
        root = f"{self._root}/{_BESIDE}/{folder_name(name)}"
        for place in (f"{root}/{first}", root):
            if "://" not in place:
                remove_local(Path(place))
                continue
            files = PyFileSystem(DeltaStorageHandler(place, self._options))
            for one in files.get_file_info(FileSelector("", allow_not_found=True, recursive=True)):
                if one.type == FileType.File:
                    files.delete_file(one.path)

    def open(self, kind: str, schema: str, table: str) -> DeltaLakeTable | None:
        """Open a table that exists."""
        address = self.address(kind, schema, table)
        try:
            if not DeltaTable.is_deltatable(address, storage_options=self._options):
                return None
            return DeltaLakeTable(DeltaTable(address, storage_options=self._options), self._connection)
        except DeltaError as error:
            error.add_note(address)  # The error does not name the place.
            raise

    def create(self, new: NewTable) -> DeltaLakeTable:
        """Create an empty table. A table with `day_of` has the day in the column `day`."""
        schema, properties = new.schema, new.properties
        if new.day_of:
            schema = schema.append(pa.field(DAY, pa.date32()))
            properties = {**properties, _DAY_OF: new.day_of}
        else:
            properties = {**properties, _SPANS: _spans(one.name for one in schema if has_span(one.type))}
        made = DeltaTable.create(
            self.address(new.kind, *new.name),
            schema=schema,
            partition_by=[DAY] if new.day_of else None,
            mode="error",
            storage_options=self._options,
            configuration={"delta.checkpointInterval": "20", "delta.targetFileSize": str(_FILE_BYTES), **properties},
            commit_properties=_commit(new.place),
            raise_if_key_not_exists=False,
        )
        return DeltaLakeTable(made, self._connection)
