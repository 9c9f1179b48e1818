"""Rows of a lake by keys, and with other columns."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from relay.feed.lake.lake_table import ColumnsChange
from relay.feed.rows.equal_rows import numbered
from relay.feed.rows.lake_columns import DELETED, SEQUENCE
from relay.feed.rows.row_numbers import row_numbers

_PLAIN: Final = {
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
}


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the same columns, texts and bytes with 32-bit offsets."""
    return pa.schema([pa.field(one.name, _PLAIN.get(one.type, one.type)) for one in schema])


def matching_rows(
    connection: duckdb.DuckDBPyConnection, rows: pa.RecordBatchReader, keys: pa.Table, schema: pa.Schema
) -> pa.Table:
    """Return those rows that have one of the keys, in the schema's types."""
    if keys.num_rows == 0:
        return schema.empty_table()
    found = []
    wanted = keys.column_names
    numbers = pa.table({**{name: keys.column(name) for name in wanted}}).group_by(wanted).aggregate([])
    for batch in rows:
        if batch.num_rows:
            table = pa.Table.from_batches([batch])
            table = pa.Table.from_arrays([table.column(f.name).cast(f.type) for f in schema], schema=schema)
            kept = table.filter(is_in(connection, table, numbers))
            if kept.num_rows:
                found.append(kept)
    return pa.concat_tables(found) if found else schema.empty_table()


def is_in(connection: duckdb.DuckDBPyConnection, table: pa.Table, keys: pa.Table) -> Any:
    """Return, for each row of a table, whether it has one of the keys, as booleans."""
    names = keys.column_names
    left = pa.table({f"k{n}": _naive(table.column(name)) for n, name in enumerate(names)})
    left = left.append_column("i", row_numbers(table.num_rows))
    right = pa.table({f"k{n}": _naive(keys.column(name)) for n, name in enumerate(names)})
    connection.register("semi_left", left)
    connection.register("semi_right", right)
    try:
        using = ", ".join(f"k{n}" for n in range(len(names)))
        found = connection.sql(f"SELECT i FROM semi_left SEMI JOIN semi_right USING ({using})").to_arrow_table()
    finally:
        connection.unregister("semi_left")
        connection.unregister("semi_right")
    return pc.is_in(left.column("i"), found.column("i").combine_chunks())


def last_of_equal_keys(connection: duckdb.DuckDBPyConnection, changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return net changes with one row for keys that are equal: 0 and -0 are two keys when texts are compared, and one for a MERGE."""
    keys = pa.table({f"k{n}": _naive(changes.column(name)) for n, name in enumerate(key)})
    for name in (SEQUENCE, DELETED):
        keys = keys.append_column(name, changes.column(name))
    connection.register("net_keys", keys.append_column("i", row_numbers(keys.num_rows)))
    try:
        names = ", ".join(f"k{n}" for n in range(len(key)))
        found = connection.sql(
            f"SELECT DISTINCT ON ({names}) i FROM net_keys ORDER BY {names}, {SEQUENCE} DESC, {DELETED}"
        ).to_arrow_table()
    finally:
        connection.unregister("net_keys")
    return changes.take(found.column("i")) if found.num_rows < changes.num_rows else changes


def together_as(tables: Iterable[pa.Table], most_bytes: int) -> Iterator[pa.Table]:
    """Join tables into fewer ones of about that size, none of them empty."""
    held: list[pa.Table] = []
    size = 0
    for one in tables:
        if one.num_rows:
            held.append(one)
            size += one.nbytes
        if size >= most_bytes:
            yield pa.concat_tables(held)
            held, size = [], 0
    if held:
        yield pa.concat_tables(held)


def _naive(column: Any) -> Any:
    return column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) and column.type.tz else column


def changed_rows(batches: Iterable[pa.RecordBatch], change: ColumnsChange) -> Iterator[pa.RecordBatch]:
    """Yield all rows with the columns after the change."""
    rows = (evolved_batch(batch, change) for batch in batches)
    yield from numbered(rows, change.schema) if change.numbered else rows


def evolved_batch(batch: pa.RecordBatch, change: ColumnsChange) -> pa.RecordBatch:
    """Return one batch with the columns after the change."""
    names = batch.schema.names
    arrays = []
    for one in change.schema:
        old = change.renamed.get(one.name, one.name)
        if one.name in change.filled:
            value = change.filled[one.name]
            arrays.append(
                pa.nulls(batch.num_rows, one.type)
                if value is None
                else pa.repeat(pa.scalar(value, one.type), batch.num_rows)
            )
        elif old in names:
            arrays.append(batch.column(names.index(old)).cast(one.type))
        else:
            arrays.append(pa.nulls(batch.num_rows, one.type))
    return pa.RecordBatch.from_arrays(arrays, schema=change.schema)
