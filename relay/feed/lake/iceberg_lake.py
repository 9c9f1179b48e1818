"""Tables of Iceberg, by pyiceberg: with a catalog in SQLite (or whatever SQLAlchemy supports), without a JVM.

The place is a property of the table that is set in the same commit as the data, and a property of the snapshot.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, GreaterThanOrEqual, LessThan, LessThanOrEqual
from pyiceberg.io.pyarrow import ArrowScan, pyarrow_to_schema
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.table import Table, Transaction
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.transforms import DayTransform

from relay.disk.file_calls import make_named_directory
from relay.feed.lake.iceberg_files import written_files
from relay.feed.lake.lake_names import folder_name, namespace
from relay.feed.lake.lake_rows import evolved_batch, is_in, matching_rows, plain_schema, together_as
from relay.feed.lake.lake_table import STRAY_HOURS, CannotEvolve, ColumnsChange, NewTable
from relay.feed.lake.unused_files import files_named, remove_below, remove_files, stray_files
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.lake_columns import DELETED, SEQUENCE
from relay.feed.spool.changes_spilled import SpooledNet

_PLACE: Final = "binlog-relay.place"
_BESIDE: Final = "_rebuild"
_ROWS_BYTES: Final = 64 << 20
"""So many bytes of rows in memory become a file."""
_OPTIONS: Final = {
    "AWS_ENDPOINT_URL": "s3.endpoint",
    "AWS_REGION": "s3.region",
    "AWS_ACCESS_KEY_ID": "s3.access-key-id",
    "AWS_SECRET_ACCESS_KEY": "s3.secret-access-key",
}


@dataclass(frozen=True, slots=True)
class _Gone:
    """The rows of a file that are removed: `of` returns them, as booleans, for rows with these columns."""

    columns: Sequence[str]
    of: Callable[[pa.Table], Any]


class IcebergLakeTable:
    """One table of Iceberg."""

    def __init__(self, table: Table, connection: duckdb.DuckDBPyConnection) -> None:
        self._table = table
        self._connection = connection

    @property
    def place(self) -> FeedOffset | None:
        """The place up to which it was fed."""
        text = self._table.properties.get(_PLACE)
        return None if text is None else FeedOffset.of_version(int(text))

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return schema_of(self._table.schema())

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties."""
        return {name: value for name, value in self._table.properties.items() if value}

    @property
    def version(self) -> int:
        """The number of its newest snapshot; 0 if it has none."""
        snapshot = self._table.current_snapshot()
        return 0 if snapshot is None else snapshot.snapshot_id

    def merge(self, changes: pa.Table, key: Sequence[str], place: FeedOffset) -> None:
        """Merge net changes in one commit: files that have one of the keys are rewritten without it, and the live rows are added."""
        keys = changes.select(list(key))
        live = changes.filter(pc.invert(changes.column(DELETED)))
        schema = self.schema
        rows = pa.Table.from_arrays(
            [
                live.column(one.name) if one.name in live.column_names else pa.nulls(live.num_rows, one.type)
                for one in schema
            ],
            schema=schema,
        )
        with self._table.transaction() as transaction:
            gone = _Gone(key, lambda some: is_in(self._connection, some.select(list(key)), keys))
            spans = {}
            for name in key:
                if _has_span(schema.field(name).type):
                    span = pc.min_max(keys.column(name))
                    spans[name] = span["min"].as_py(), span["max"].as_py()
            self._replace(transaction, self._touched(spans), gone, [rows], place)
        self._refresh()

    def merge_spooled(self, changes: SpooledNet, key: Sequence[str], place: FeedOffset) -> None:
        """Implement `LakeTable.merge_spooled`."""
        schema = self.schema

        def are_gone(rows: pa.Table) -> Any:
            return changes.are_gone(rows.select([*key, SEQUENCE]))

        spans = {name: changes.ends(name) for name in key if _has_span(schema.field(name).type)}
        with self._table.transaction() as transaction:
            rows = together_as(changes.live(schema), _ROWS_BYTES)
            self._replace(transaction, self._touched(spans), _Gone([*key, SEQUENCE], are_gone), rows, place)
        self._refresh()

    def _touched(self, spans: Mapping[str, tuple[Any, Any]]) -> Iterator[Any]:
        """Yield the files that may have a key between the minimum and the maximum."""
        found: BooleanExpression = AlwaysTrue()
        for name, (low, high) in spans.items():
            if low is not None:  # Otherwise each key is one that no lake has, such as 0000-00-00.
                found = And(found, _between(name, low, high))
        return iter(self._table.scan(row_filter=found).plan_files())

    def _replace(
        self,
        transaction: Transaction,
        files: Iterable[Any],
        leaving: "_Gone | None",
        rows: Iterable[pa.Table],
        place: FeedOffset,
    ) -> None:
        """Rewrite the files without the rows that are removed (None: all of them are), and add `rows`."""
        metadata, io = transaction.table_metadata, self._table.io
        gone: list[Any] = []
        made: list[Any] = []
        for task in files:
            if leaving is None:
                gone.append(task.file)
            elif any(pc.any(leaving.of(some)).as_py() for some in self._read(metadata, task, leaving.columns)):
                gone.append(task.file)
                kept = (some.filter(pc.invert(leaving.of(some))) for some in self._read(metadata, task, None))
                for one in together_as(kept, _ROWS_BYTES):
                    made += written_files(metadata, io, one)
        for one in rows:
            made += written_files(metadata, io, one)
        properties = {_PLACE: str(place.version)}
        update = transaction.update_snapshot(snapshot_properties=properties)
        with update.overwrite() if gone else update.fast_append() as snapshot:
            for file in gone:
                snapshot.delete_data_file(file)
            for file in made:
                snapshot.append_data_file(file)
        transaction.set_properties(properties)

    def _read(self, metadata: Any, task: Any, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        """Yield the rows of one file, some at a time."""
        schema = metadata.schema()
        if columns is not None:
            schema = schema.select(*columns)
        scan = ArrowScan(table_metadata=metadata, io=self._table.io, projected_schema=schema, row_filter=AlwaysTrue())
        wanted = schema_of(schema)
        for batch in scan.to_record_batches([task]):
            if batch.num_rows:
                yield pa.Table.from_batches(_cast([batch], wanted))

    def append(self, rows: pa.Table | pa.RecordBatchReader, place: FeedOffset) -> None:
        """Append rows."""
        tables = [rows] if isinstance(rows, pa.Table) else together_as(map(_table_of, rows), _ROWS_BYTES)
        with self._table.transaction() as transaction:
            self._replace(transaction, (), None, tables, place)
        self._refresh()

    def replace(self, rows: pa.Table, place: FeedOffset) -> None:
        """Replace all rows by these."""
        with self._table.transaction() as transaction:
            self._replace(transaction, self._table.scan().plan_files(), None, [rows], place)
        self._refresh()

    def clear(self, place: FeedOffset) -> None:
        """Remove all rows."""
        with self._table.transaction() as transaction:
            self._replace(transaction, self._table.scan().plan_files(), None, [], place)
        self._refresh()

    def advance(self, place: FeedOffset) -> None:
        """Commit a place without data. It is a snapshot, which is refused if another feed made one meanwhile; properties are not."""
        with self._table.transaction() as transaction:
            self._replace(transaction, (), None, (), place)
        self._refresh()

    def evolve(self, change: ColumnsChange, place: FeedOffset) -> None:
        """Change the columns by Iceberg's own evolution; files of filled columns are rewritten. It is one commit: where names are
        swapped, a half-done change could not be distinguished from a complete one."""
        if change.emptied:
            self._clear_and_change(change.schema, place)
            return
        files = list(self._table.scan().plan_files()) if change.filled else []
        with self._table.transaction() as transaction:
            self._rename_columns(transaction, change.renamed)
            self._add_and_widen(transaction, change.schema)
            if change.filled:
                schema = schema_of(transaction.table_metadata.schema())
                filled = ColumnsChange(schema, change.renamed, change.filled)
                with self.scan() as reader:
                    rows = (pa.Table.from_batches([evolved_batch(batch, filled)], schema=schema) for batch in reader)
                    self._replace(transaction, files, None, together_as(rows, _ROWS_BYTES), place)
            else:
                self._replace(transaction, (), None, (), place)
        self._refresh()

    @staticmethod
    def _rename_columns(transaction: Transaction, renamed: Mapping[str, str]) -> None:
        """Rename columns {new: old} through temporary names, as two may swap theirs."""
        known = schema_of(transaction.table_metadata.schema())
        renamed = {new: old for new, old in renamed.items() if known.get_field_index(old) >= 0}
        taken = [one for one in renamed if known.get_field_index(one) >= 0 and one not in renamed.values()]
        if taken:
            with transaction.update_schema(allow_incompatible_changes=True) as update:
                for one in taken:
                    update.delete_column((one,))
        if renamed:
            temporary = {new: f"_renamed_{number}" for number, new in enumerate(renamed)}
            with transaction.update_schema() as update:
                for new, old in renamed.items():
                    update.rename_column((old,), temporary[new])
            with transaction.update_schema() as update:
                for new in renamed:
                    update.rename_column((temporary[new],), new)

    @staticmethod
    def _add_and_widen(transaction: Transaction, schema: pa.Schema) -> None:
        known = schema_of(transaction.table_metadata.schema())
        try:
            with transaction.update_schema() as update:
                for field in schema:
                    at = known.get_field_index(field.name)
                    if at < 0:
                        update.add_column((field.name,), _iceberg_type(field))
                    elif known.field(at).type != field.type:
                        update.update_column((field.name,), _iceberg_type(field))
        except Exception as error:
            if "promot" in str(error).lower() or "change" in str(error).lower():
                raise CannotEvolve(" ".join(str(error).split())) from None
            raise

    def rebuild(self, schema: pa.Schema, rows: Iterable[pa.RecordBatch], place: FeedOffset) -> None:
        """Replace the columns and all rows."""
        files = list(self._table.scan().plan_files())
        with self._table.transaction() as transaction:
            self._take_columns(transaction, schema)
            kept = schema_of(transaction.table_metadata.schema())
            self._replace(transaction, files, None, _in_tables(rows, kept), place)
        self._refresh()

    def _take_columns(self, transaction: Transaction, schema: pa.Schema) -> None:
        """Set exactly these columns; those of another type become other columns."""
        known = self.schema
        other = [
            one.name for one in known if schema.get_field_index(one.name) < 0 or schema.field(one.name).type != one.type
        ]
        if other:
            with transaction.update_schema(allow_incompatible_changes=True) as update:
                for name in other:
                    update.delete_column((name,))
        added = [one for one in schema if known.get_field_index(one.name) < 0 or one.name in other]
        if added:
            with transaction.update_schema() as update:
                for field in added:
                    update.add_column((field.name,), _iceberg_type(field))

    def _clear_and_change(self, schema: pa.Schema, place: FeedOffset) -> None:
        """Remove all rows and set these columns; those of another type become other columns."""
        files = list(self._table.scan().plan_files())
        with self._table.transaction() as transaction:
            self._take_columns(transaction, schema)
            self._replace(transaction, files, None, (), place)
        self._refresh()

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set properties; '' removes one."""
        with self._table.transaction() as transaction:
            transaction.set_properties({name: value for name, value in properties.items() if value})
            gone = [name for name, value in properties.items() if not value and name in self._table.properties]
            if gone:
                transaction.remove_properties(*gone)
        self._refresh()

    def scan(self, columns: Sequence[str] | None = None, version: int | None = None) -> pa.RecordBatchReader:
        """Return its rows."""
        schema = self.schema
        if version is not None and version:
            snapshot = self._table.snapshot_by_id(version)
            if snapshot is not None and snapshot.schema_id is not None:
                schema = schema_of(self._table.schemas()[snapshot.schema_id])
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        scan = self._table.scan(selected_fields=tuple(schema.names), snapshot_id=version or None)
        if version == 0 or self._table.current_snapshot() is None:
            return pa.RecordBatchReader.from_batches(schema, [])
        return pa.RecordBatchReader.from_batches(schema, _cast(scan.to_arrow_batch_reader(), schema))

    def scan_since(self, columns: Sequence[str], column: str, since: datetime) -> pa.RecordBatchReader:
        """Return its rows whose time is `since` or later."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        if self._table.current_snapshot() is None:
            return pa.RecordBatchReader.from_batches(schema, [])
        least: Any = GreaterThanOrEqual
        wanted = least(column, since.astimezone(UTC).isoformat())
        scan = self._table.scan(row_filter=wanted, selected_fields=tuple(columns))
        return pa.RecordBatchReader.from_batches(schema, _cast(scan.to_arrow_batch_reader(), schema))

    def facts(self) -> Mapping[str, int]:
        """Return the rows, files and bytes of its newest version, and the number of commits."""
        snapshot = self._table.current_snapshot()
        summary = snapshot.summary if snapshot is not None else None
        names = {"rows": "total-records", "bytes": "total-files-size", "files": "total-data-files"}
        told = {name: int((summary.get(key) if summary is not None else None) or 0) for name, key in names.items()}
        metadata: Any = self._table.metadata
        return {**told, "commits": metadata.last_sequence_number}

    def size_at(self, moment: datetime) -> tuple[datetime, int] | None:
        """Return the size by the snapshots that still exist."""
        made = [
            (datetime.fromtimestamp(one.timestamp_ms / 1000, UTC), one.sequence_number or 0, int(one.summary.get("total-files-size") or 0))
            for one in self._table.snapshots()
            if one.summary is not None
        ]  # fmt: skip
        if not made:
            return None
        time, _number, size = max((one for one in made if one[0] <= moment), default=min(made))
        return time, size

    def rows_of(self, keys: pa.Table) -> pa.Table:
        """Return the rows that have one of these keys."""
        return matching_rows(self._connection, self.scan(), keys, self.schema)

    def compact(self, target_bytes: int) -> Mapping[str, Any]:
        """Merge files of less than half of the wanted size into larger ones, some at a time."""
        done = {"files_removed": 0, "files_added": 0}
        for group in list(self._small_groups(target_bytes)):
            metadata, io = self._table.metadata, self._table.io
            scan = ArrowScan(
                table_metadata=metadata, io=io, projected_schema=metadata.schema(), row_filter=AlwaysTrue()
            )
            with self._table.transaction() as transaction:
                made = list(written_files(metadata, io, scan.to_table(tasks=group)))
                place = self.place
                properties = {} if place is None else {_PLACE: str(place.version)}
                with transaction.update_snapshot(snapshot_properties=properties).overwrite() as snapshot:
                    for task in group:
                        snapshot.delete_data_file(task.file)
                    for file in made:
                        snapshot.append_data_file(file)
            self._refresh()
            done["files_removed"] += len(group)
            done["files_added"] += len(made)
        return done

    def _small_groups(self, target_bytes: int) -> Iterator[list[Any]]:
        """Yield groups of small files of one day each, as many as make a large one."""
        days: dict[str, list[Any]] = {}
        for one in self._table.scan().plan_files():
            if one.file.file_size_in_bytes < target_bytes // 2:
                days.setdefault(repr(one.file.partition), []).append(one)
        for small in days.values():
            while len(small) > 1:
                group: list[Any] = []
                size = 0
                while small and (size < target_bytes or len(group) < 2):
                    group.append(small.pop())
                    size += group[-1].file.file_size_in_bytes
                yield group

    def expire(self, keep_hours: int) -> Mapping[str, Any]:
        """Remove older snapshots from the table, and their files, which pyiceberg leaves. A crash in between leaves stray files."""
        now = datetime.now(UTC)
        snapshots = self._table.snapshots()
        named = files_named(self._table, snapshots)
        before = now - timedelta(hours=keep_hours)
        self._table.maintenance.expire_snapshots().older_than(before.replace(tzinfo=None)).commit()
        self._refresh()
        there = self._table.snapshots()
        gone = named - files_named(self._table, there)
        count = remove_files(self._table, gone)
        count += remove_files(
            self._table, stray_files(self._table, now - timedelta(hours=max(keep_hours, STRAY_HOURS)))
        )
        return {"snapshots_removed": len(snapshots) - len(there), "files_removed": count}

    def forget(self, column: str, before: datetime) -> None:
        """Remove rows whose time is before `before`."""
        earlier: Any = LessThan
        self._table.delete(earlier(column, before.astimezone(UTC).isoformat()))
        self._refresh()

    def places(self) -> Iterable[tuple[int, FeedOffset]]:
        """Yield (snapshot, place) of the snapshots that still exist."""
        for snapshot in sorted(self._table.snapshots(), key=lambda one: one.sequence_number or 0):
            text = snapshot.summary.get(_PLACE) if snapshot.summary is not None else None
            if text is not None:
                yield snapshot.snapshot_id, FeedOffset.of_version(int(text))

    def _refresh(self) -> None:
        self._table.refresh()


def schema_of(schema: Any) -> pa.Schema:
    """Return Iceberg's columns as Arrow's."""
    return plain_schema(schema.as_arrow())


def _in_tables(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield batches as tables of a file's size, with the columns in the schema's order."""
    return together_as((_table_of(batch).select(schema.names) for batch in batches), _ROWS_BYTES)


def _numbers(schema: pa.Schema) -> NameMapping:
    """Return columns numbered by their order, which Iceberg needs before a schema has numbers."""
    field: Any = MappedField
    return NameMapping([field(field_id=number + 1, names=[one.name]) for number, one in enumerate(schema)])


def _iceberg_type(field: pa.Field) -> Any:
    from pyiceberg.io.pyarrow import _ConvertToIcebergWithoutIDs, visit_pyarrow

    converted: Any = visit_pyarrow(pa.schema([field]), _ConvertToIcebergWithoutIDs())
    return converted.fields[0].field_type


def _between(name: str, low: Any, high: Any) -> BooleanExpression:
    least: Any = GreaterThanOrEqual
    most: Any = LessThanOrEqual
    return And(least(name, low), most(name, high))


def _has_span(kind: pa.DataType) -> bool:
    """Return whether the minimum and maximum of such a column distinguish files."""
    return not (pa.types.is_binary(kind) or pa.types.is_timestamp(kind))


def _table_of(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _cast(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        arrays = [batch.column(batch.schema.get_field_index(one.name)).cast(one.type) for one in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _beside_space(folder: str) -> str:
    return f"binlog_relay.{folder}"


class IcebergLake:
    """Tables of Iceberg. The namespaces are SCHEMA for current tables, SCHEMA__changes for changes and binlog_relay for `_feed`."""

    def __init__(
        self,
        root: str,
        catalog: str | None,
        options: Mapping[str, str],
        connection: duckdb.DuckDBPyConnection,
        within: str = "",
    ) -> None:
        self._root = root.rstrip("/")
        self._options = dict(options)
        self._within = within
        self._connection = connection
        if "://" not in self._root:
            make_named_directory(Path(self._root))
            self._root = str(Path(self._root).resolve())
        if catalog is None:
            if "://" in self._root:
                raise ValueError(
                    'Iceberg in a bucket needs `catalog`: a file for SQLite, or "postgresql+psycopg2://..."'
                )
            catalog = f"{self._root}/catalog.sqlite"
        if "AWS_ENDPOINT_URL" in options:
            # AWS's library has added checksums to uploads since 2025, which not every other S3 server accepts.
            os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
        self._named_catalog = catalog
        uri = catalog if "://" in catalog else f"sqlite:///{catalog}"
        more = {_OPTIONS[name]: value for name, value in options.items() if name in _OPTIONS}
        self._catalog = SqlCatalog("binlog_relay", uri=uri, warehouse=self._root, **more)

    def beside(self, name: str) -> "IcebergLake":
        """Implement `Lake.beside`: the tables are in a namespace that no source's schema can have, below `_rebuild/NAME`."""
        return IcebergLake(self._root, self._named_catalog, self._options, self._connection, folder_name(name))

    def remove_beside(self, name: str, first: str) -> None:
        """Implement `Lake.remove_beside`."""
        space = _beside_space(folder_name(name))
        with suppress(NoSuchNamespaceError, NoSuchTableError):
            self._catalog.drop_table((space, first))
        remove_below(self._catalog.properties, f"{self._root}/{_BESIDE}/{folder_name(name)}")
        with suppress(NoSuchNamespaceError):
            for table in self._catalog.list_tables(space):
                self._catalog.drop_table(table)
            self._catalog.drop_namespace(space)

    def _identifier(self, kind: str, schema: str, table: str) -> tuple[str, str]:
        if self._within:
            return _beside_space(self._within), folder_name("\0".join((kind, schema, table))) if schema else kind
        if not schema:
            return "binlog_relay", kind
        return namespace(kind, schema), table

    def address(self, kind: str, schema: str, table: str) -> str:
        """Return its name in the catalog."""
        return ".".join(self._identifier(kind, schema, table))

    def missing(self, names: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        """Implement `Lake.missing`, by one question for each namespace."""
        wanted = {one: self._identifier(*one) for one in names}
        known: set[tuple[str, ...]] = set()
        for name in {space for space, _table in wanted.values()}:
            with suppress(NoSuchNamespaceError):
                known.update(self._catalog.list_tables(name))
        return [one for one in names if wanted[one] not in known]

    def open(self, kind: str, schema: str, table: str) -> IcebergLakeTable | None:
        """Open a table that exists."""
        try:
            return IcebergLakeTable(self._catalog.load_table(self._identifier(kind, schema, table)), self._connection)
        except NoSuchTableError:
            return None

    def create(self, new: NewTable) -> IcebergLakeTable:
        """Create an empty table."""
        identifier = self._identifier(new.kind, *new.name)
        with suppress(Exception):
            self._catalog.create_namespace_if_not_exists(identifier[0])
        beside = (_BESIDE, self._within) if self._within else ()
        folders = "/".join((*beside, new.kind, *(folder_name(one) for one in new.name if one)))
        columns: Any = new.schema
        spec = UNPARTITIONED_PARTITION_SPEC
        if new.day_of:
            columns = assign_fresh_schema_ids(pyarrow_to_schema(new.schema, name_mapping=_numbers(new.schema)))
            source = columns.find_field(new.day_of).field_id
            spec = PartitionSpec(PartitionField(source, 1000, DayTransform(), f"{new.day_of}_day"))
        made = self._catalog.create_table(
            identifier,
            columns,
            partition_spec=spec,
            location=f"{self._root}/{folders}",
            properties={
                _PLACE: str(new.place.version),
                "write.metadata.delete-after-commit.enabled": "true",
                # A retried commit would add its rows to those of another feed that was first.
                "commit.retry.num-retries": "0",
                **new.properties,
            },
        )
        return IcebergLakeTable(made, self._connection)
