"""Changes of a table without a key: the rows that are added, and those of the lake that are removed.

A source without a key finds a row by all its columns, and its binlog has all columns in each before-image. So the table is a multiset: of equal rows
any may be removed. Rows are equal if the stored values are, not if a collation considers them equal: images contain what was stored. Each row of the
lake has its own name, `_sequence` and `_row`, by which it is found once it was chosen.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import duckdb
import pyarrow as pa

from protocol.errors import RelayError
from relay.feed.rows.feed_stop import table_stop
from relay.feed.rows.lake_columns import DELETED, DOCUMENT, ROW, SEQUENCE, LakeColumn
from relay.feed.rows.minimal_row_images import left_out_value, without_zones
from relay.feed.rows.net_changes import TableRows, cast_column, check_texts, identifier, literal, pointers, typed

OWN_NAME: Final = (SEQUENCE, ROW)
"""These columns identify a row of a table without a key in the lake."""


class RowsUnnamed(RelayError):
    """The error that some row of the lake has no name, because it was added while the table had a key."""


_TABLES: Final = ("texts", "equal_images", "equal_rows", "equal_net", "equal_wanted")
_ROWS_AT_ONCE: Final = 1 << 14


def equal_row_changes(
    connection: duckdb.DuckDBPyConnection,
    changes: pa.Table,
    rows: TableRows,
    lake: Callable[[], pa.RecordBatchReader],
    *,
    lenient: bool = False,
) -> pa.Table:
    """Return the rows that are added, and the names of those that are removed. `changes` are CHANGES, in order. With `lenient`, rows that are missing
    from the lake are no error.

    Raises: FeedStop; RowsUnnamed if a row to remove could not be found by its name.
    """
    found = list(equal_rows_in_pieces(connection, [changes], rows, lake, lenient=lenient))
    return pa.concat_tables(found) if found else _schema(rows).empty_table()


def equal_rows_in_pieces(
    connection: duckdb.DuckDBPyConnection,
    pieces: Iterable[pa.Table],
    rows: TableRows,
    lake: Callable[[], pa.RecordBatchReader],
    *,
    lenient: bool = False,
) -> Iterator[pa.Table]:
    """Yield what `equal_row_changes` returns, some at a time. The connection is in use until all of them were taken."""
    try:
        for piece in pieces:
            _add_images(connection, _whole_images(connection, piece, rows), rows)
        _net(connection, rows)
        if connection.execute("SELECT count(*) FROM equal_net WHERE net < 0").fetchall()[0][0]:
            for names in _found(connection, rows, lake, lenient=lenient):
                yield _named(names, _schema(rows))
        yield from _alive(connection, rows)
    finally:
        for name in _TABLES:
            connection.execute(f"DROP TABLE IF EXISTS {name}")


def _schema(rows: TableRows) -> pa.Schema:
    return pa.schema(
        [
            *(pa.field(one.name, one.arrow) for one in rows.columns),
            (ROW, pa.int64()),
            (SEQUENCE, pa.int64()),
            (DELETED, pa.bool_()),
        ]
    )


def _whole_images(connection: duckdb.DuckDBPyConnection, changes: pa.Table, rows: TableRows) -> pa.Table:
    """Return one row for each image, with all columns: 1 for after-images, -1 for before-images."""
    columns = [one.name for one in rows.columns]
    stored = "[" + ", ".join(literal(one) for one in columns) + "]"
    connection.register("changes", changes)
    try:
        lacking = connection.execute(
            f"SELECT count(*) FROM changes WHERE (before IS NOT NULL AND NOT list_has_all(json_keys(before), {stored})) "
            f"OR (after IS NOT NULL AND NOT list_has_all(json_keys(after), {stored}))"
        ).fetchall()[0][0]
    finally:
        connection.unregister("changes")
    plain = changes.select(["sequence", "row", "before", "after"])
    if lacking:
        plain = _completed(plain, rows)
    parts = []
    for name, sign in (("before", -1), ("after", 1)):
        part = plain.filter(pa.compute.is_valid(plain.column(name)))
        signs = pa.array([sign] * part.num_rows, pa.int32())
        parts.append(
            pa.table(
                [part.column("sequence"), part.column("row"), part.column(name).cast(pa.string()), signs],
                names=["sequence", "row", "image", "sign"],
            )
        )
    return pa.concat_tables(parts)


def _completed(changes: pa.Table, rows: TableRows) -> pa.Table:
    """Return the same with whole images: a column that is missing from an after-image is unchanged, or is the default in a new row."""
    names = [one.name for one in rows.columns]
    befores, afters = [], []
    for one in changes.to_pylist():
        before = json.loads(one["before"]) if one["before"] is not None else None
        after = json.loads(one["after"]) if one["after"] is not None else None
        if before is not None and not before.keys() >= set(names):
            missing = next(name for name in names if name not in before)
            raise table_stop(
                "key_missing",
                rows.place,
                rows.name,
                f"It has no key, and an image has no {missing}: rows of it are found by all columns.",
            )
        if after is not None:
            known = before or {}
            after = {
                column.name: after[column.name]
                if column.name in after
                else known[column.name]
                if before is not None
                else left_out_value(column, rows)
                for column in rows.columns
            }
        befores.append(None if before is None else json.dumps(before, ensure_ascii=False))
        afters.append(None if after is None else json.dumps(after, ensure_ascii=False))
    return pa.table(
        [
            changes.column("sequence"),
            changes.column("row"),
            pa.array(befores, pa.string()),
            pa.array(afters, pa.string()),
        ],
        names=["sequence", "row", "before", "after"],
    )


def _add_images(connection: duckdb.DuckDBPyConnection, images: pa.Table, rows: TableRows) -> None:
    """Add each image with its values, typed, to the table `equal_images`."""
    plain = [one for one in rows.columns if one.kind != DOCUMENT]
    documents = [one for one in rows.columns if one.kind == DOCUMENT]
    j = f"json_extract(image, {pointers(documents)})" if documents else "NULL"
    connection.register("some_images", images)
    try:
        connection.execute(
            f"CREATE TEMP TABLE texts AS SELECT sequence, row, sign, image, json_extract_string(image, {pointers(plain)}) AS v, {j} AS j "
            "FROM some_images"
        )
    finally:
        connection.unregister("some_images")
    check_texts(connection, rows, " AND sign = 1")
    at = {one.name: (f"t.v[{n + 1}]", "") for n, one in enumerate(plain)}
    at |= {one.name: ("", f"nullif(t.j[{n + 1}], 'null'::JSON)") for n, one in enumerate(documents)}
    values = ", ".join(f"{typed(one, *at[one.name])} AS c{n}" for n, one in enumerate(rows.columns))
    typed_images = f"SELECT t.sequence, t.row, t.sign, {values} FROM texts t"
    connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS equal_images AS {typed_images} LIMIT 0")
    connection.execute(f"INSERT INTO equal_images {typed_images}")
    connection.execute("DROP TABLE texts")


def _net(connection: duckdb.DuckDBPyConnection, rows: TableRows) -> None:
    """Create the tables `equal_rows` (each image, typed, with the number of its value) and `equal_net` (value, and how many more or fewer there are)."""
    same = ", ".join(_compared(one, f"c{n}") for n, one in enumerate(rows.columns))
    connection.execute(
        f"CREATE TEMP TABLE equal_rows AS SELECT *, dense_rank() OVER (ORDER BY {same}) AS value FROM equal_images"
    )
    connection.execute("DROP TABLE equal_images")
    connection.execute(
        "CREATE TEMP TABLE equal_net AS SELECT value, sum(sign) AS net FROM equal_rows GROUP BY value HAVING sum(sign) <> 0"
    )


def _compared(one: LakeColumn, value: str) -> str:
    """Return the SQL that decides whether values are the same: 0 and -0 are two, though they are equal."""
    return f"CAST({value} AS VARCHAR)" if pa.types.is_floating(one.arrow) else value


def _found(
    connection: duckdb.DuckDBPyConnection,
    rows: TableRows,
    lake: Callable[[], pa.RecordBatchReader],
    *,
    lenient: bool,
) -> Iterator[pa.Table]:
    """Yield the names of rows of the lake to remove: of each value as many as it has too many."""
    columns = ", ".join(f"c{n}" for n in range(len(rows.columns)))
    connection.execute(
        f"CREATE TEMP TABLE equal_wanted AS SELECT DISTINCT ON (value) value, CAST(-net AS BIGINT) AS missing, {columns} "
        "FROM equal_rows JOIN equal_net USING (value) WHERE net < 0"
    )
    same = " AND ".join(
        f"{_compared(one, f'l.{identifier(one.name)}')} IS NOT DISTINCT FROM {_compared(one, f'w.c{n}')}"
        for n, one in enumerate(rows.columns)
    )
    with lake() as reader:
        for batch in _batches(reader):
            connection.register("lake", without_zones(batch))
            try:
                some = connection.sql(
                    f"SELECT {SEQUENCE}, {ROW}, value FROM (SELECT l.{SEQUENCE}, l.{ROW}, w.value, w.missing, "
                    f"row_number() OVER (PARTITION BY w.value ORDER BY l.{SEQUENCE}, l.{ROW}) AS n FROM lake l JOIN equal_wanted w ON {same}) "
                    "WHERE n <= missing"
                ).to_arrow_table()
            finally:
                connection.unregister("lake")
            if not some.num_rows:
                continue
            if some.column(ROW).null_count:
                raise RowsUnnamed
            yield some.select([SEQUENCE, ROW])
            connection.register("taken", some)
            connection.execute(
                "UPDATE equal_wanted SET missing = missing - t.n FROM (SELECT value, count(*) AS n FROM taken GROUP BY value) t "
                "WHERE equal_wanted.value = t.value"
            )
            connection.unregister("taken")
            if not connection.execute("SELECT count(*) FROM equal_wanted WHERE missing > 0").fetchall()[0][0]:
                return
    missing = connection.execute("SELECT coalesce(sum(missing), 0) FROM equal_wanted").fetchall()[0][0]
    if missing and not lenient:
        raise table_stop(
            "row_missing",
            rows.place,
            rows.name,
            f"{missing} rows were changed or deleted, and the lake has no rows that are equal to them in all columns.",
        )


def _batches(reader: Iterable[pa.RecordBatch]) -> Iterable[pa.Table]:
    for batch in reader:
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def _alive(connection: duckdb.DuckDBPyConnection, rows: TableRows) -> Iterator[pa.Table]:
    """Yield the rows that are added."""
    values = ", ".join(f"c{n} AS {identifier(one.name)}" for n, one in enumerate(rows.columns))
    alive = connection.sql(
        f"SELECT {values}, row AS {ROW}, sequence AS {SEQUENCE}, false AS {DELETED} FROM (SELECT r.*, n.net, "
        "row_number() OVER (PARTITION BY r.value ORDER BY r.sequence DESC, r.row DESC) AS place "
        "FROM equal_rows r JOIN equal_net n USING (value) WHERE n.net > 0 AND r.sign = 1) WHERE place <= net ORDER BY sequence, row"
    )
    schema = _schema(rows)
    for batch in alive.to_arrow_reader(_ROWS_AT_ONCE):
        if batch.num_rows:
            arrays = [cast_column(batch.column(batch.schema.get_field_index(one.name)), one.type) for one in schema]
            yield pa.Table.from_arrays(arrays, schema=schema)


def _named(names: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows to remove, of which only the name is set."""
    return pa.Table.from_arrays(
        [
            pa.array([True] * names.num_rows)
            if one.name == DELETED
            else names.column(one.name).cast(one.type)
            if one.name in OWN_NAME
            else pa.nulls(names.num_rows, one.type)
            for one in schema
        ],
        schema=schema,
    )


def numbered(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterable[pa.RecordBatch]:
    """Yield rows of a table that has lost its key, with their own names: `_row` counts down from -1; those of changes are 0 and more."""
    count = 0
    for batch in batches:
        numbers = pa.array(range(-count - 1, -count - 1 - batch.num_rows, -1), pa.int64())
        count += batch.num_rows
        arrays: list[Any] = [
            numbers if one.name == ROW else batch.column(batch.schema.get_field_index(one.name)).cast(one.type)
            for one in schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
