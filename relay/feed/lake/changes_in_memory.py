"""Net changes in memory, for tables whose files are rewritten one after the other."""

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from relay.feed.rows.lake_columns import DELETED, NUMBER_COLUMN, SEQUENCE
from relay.feed.rows.minimal_row_images import without_zones
from relay.feed.rows.net_changes import cast_column, identifier
from relay.feed.rows.row_numbers import row_numbers


class HeldNet:
    """The counterpart of SpooledNet for changes that fit into memory: no key twice, with _sequence and _deleted."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, changes: pa.Table, key: Sequence[str]) -> None:
        self._connection = connection
        self._changes = changes
        self._key = tuple(key)
        self._keys = self._numbered_keys()

    def ends(self, column: str) -> tuple[Any, Any]:
        """Return the minimum and the maximum of a key column."""
        span = pc.min_max(self._changes.column(column))
        return span["min"].as_py(), span["max"].as_py()

    def are_gone(self, rows: pa.Table) -> Any:
        """Return, for each row of the lake (key and _sequence), whether it is removed: its key has changed, and not before the row.

        A change that is older than the lake's row no longer counts after that.
        """
        same = " AND ".join(f"n.{identifier(name)} = l.{identifier(name)}" for name in self._key)
        self._connection.register("changes_in_memory", self._keys)
        self._connection.register("lake_keys", _numbered(rows))
        try:
            found = self._connection.sql(
                f"SELECT l.{NUMBER_COLUMN} AS i, n.{NUMBER_COLUMN} AS n, l.{SEQUENCE} > n.{SEQUENCE} AS newer "
                f"FROM lake_keys l JOIN changes_in_memory n ON {same}"
            ).to_arrow_table()
        finally:
            self._connection.unregister("changes_in_memory")
            self._connection.unregister("lake_keys")
        newer = found.filter(found.column("newer"))
        if newer.num_rows:
            older = pc.is_in(row_numbers(self._changes.num_rows), newer.column("n").combine_chunks())
            self._changes = self._changes.filter(pc.invert(older))
            self._keys = self._numbered_keys()
            found = found.filter(pc.invert(found.column("newer")))
        return pc.is_in(row_numbers(rows.num_rows), found.column("i").combine_chunks())

    def _numbered_keys(self) -> pa.Table:
        return _numbered(self._changes.select([*dict.fromkeys((*self._key, SEQUENCE))]))

    def live(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows that exist after the changes, with the lake's columns."""
        rows = self._changes.filter(pc.invert(self._changes.column(DELETED)))
        yield pa.Table.from_arrays([cast_column(rows.column(one.name), one.type) for one in schema], schema=schema)


def _numbered(rows: pa.Table) -> pa.Table:
    return without_zones(rows).append_column(NUMBER_COLUMN, row_numbers(rows.num_rows))
