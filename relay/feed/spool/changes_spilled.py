"""Net changes of more rows than fit into memory: the rows are in a file, and DuckDB knows which of them counts for a key.

DuckDB holds only the keys: of wide rows it would hold two thousand at once, however large they are.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from relay.feed.rows.lake_columns import DELETED, NUMBER_COLUMN, SEQUENCE
from relay.feed.rows.minimal_row_images import CurrentRows, without_zones
from relay.feed.rows.net_changes import cast_column, identifier
from relay.feed.rows.row_numbers import row_numbers
from relay.feed.spool.spool_directory import SpoolDirectory
from relay.feed.spool.spool_file import SpoolFile

_numbers: Final = count(1)
_PIECE: Final = "piece "
_ROW: Final = "row "
"""No column of a table ends with a blank."""


class SpooledNet:
    """The net changes. Of the rows of a key the one that was added last counts; a piece has no key twice. They are kept in the order in which they
    were added.

    `replaces` is False if no key is added twice.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        directory: SpoolDirectory,
        key: Sequence[str],
        *,
        replaces: bool = True,
    ) -> None:
        # It has its own cursor: rows are read from it while others use the connection.
        self._connection = connection.cursor()
        self._name = f"net_{next(_numbers)}"
        self._file = SpoolFile(directory)
        self._pieces: list[Callable[[], pa.Table]] = []
        self._key = tuple(key)
        self._replaces = replaces
        self._schema: pa.Schema | None = None
        self._rows = 0
        self._bytes = 0
        self._added = 0

    @property
    def num_rows(self) -> int:
        """The number of keys that changed."""
        return self._rows

    @property
    def nbytes(self) -> int:
        """The approximate size of all of it in memory."""
        return self._bytes * self._rows // max(self._added, 1)

    def add(self, piece: pa.Table) -> None:
        """Add net changes of some more rows."""
        if not piece.num_rows:
            return
        keys = without_zones(piece.select([*self._key, *(one for one in (SEQUENCE, DELETED) if one not in self._key)]))
        keys = keys.append_column(_PIECE, pa.repeat(pa.scalar(len(self._pieces), pa.int32()), piece.num_rows))
        keys = keys.append_column(_ROW, row_numbers(piece.num_rows))
        self._pieces.append(self._file.write(piece))
        self._connection.register("piece", keys)
        try:
            if self._schema is None:
                self._connection.execute(f"CREATE TABLE {self._name} AS SELECT * FROM piece")
                self._schema = piece.schema
            else:
                if self._replaces:
                    self._delete("piece")
                self._connection.execute(f"INSERT INTO {self._name} SELECT * FROM piece")
        finally:
            self._connection.unregister("piece")
        self._rows += piece.num_rows
        self._added += piece.num_rows
        self._bytes += piece.nbytes

    def _delete(self, keys: str) -> None:
        gone = self._connection.execute(f"DELETE FROM {self._name} n USING {keys} p WHERE {self._same('p')}").fetchall()
        self._rows -= gone[0][0] if gone else 0

    def _same(self, other: str) -> str:
        return " AND ".join(f"n.{identifier(name)} = {other}.{identifier(name)}" for name in self._key)

    def table(self) -> pa.Table:
        """Return all of it in memory, in the lake's types; there is at least one row."""
        return pa.concat_tables(self._rows_of("true"))

    def _rows_of(self, condition: str) -> Iterator[pa.Table]:
        """Yield the rows that count, of those for which a condition holds, in order."""
        for number, load in enumerate(self._pieces):
            found = self._connection.sql(
                f"SELECT {identifier(_ROW)} FROM {self._name} n WHERE {identifier(_PIECE)} = {number} AND ({condition}) "
                f"ORDER BY {identifier(_ROW)}"
            ).to_arrow_table()
            if found.num_rows:
                piece = load()
                yield piece if found.num_rows == piece.num_rows else piece.take(found.column(_ROW))

    def _types(self) -> pa.Schema:
        if self._schema is None:
            raise ValueError("there are no net changes")
        return self._schema

    @staticmethod
    def _typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
        return pa.Table.from_arrays(
            [
                cast_column(rows.column(one.name), one.type)
                if one.name in rows.column_names
                else pa.nulls(rows.num_rows, one.type)
                for one in schema
            ],
            schema=schema,
        )

    def live(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows that exist after the changes, with the lake's columns, a piece at a time."""
        for rows in self._rows_of(f"NOT {DELETED}"):
            yield self._typed(rows, schema)

    def ends(self, column: str) -> tuple[Any, Any]:
        """Return the minimum and the maximum of a key column."""
        name = identifier(column)
        low, high = self._connection.execute(f"SELECT min({name}), max({name}) FROM {self._name}").fetchall()[0]
        return low, high

    def are_gone(self, rows: pa.Table) -> Any:
        """Return, for each row of the lake (key and _sequence), whether it is removed: its key has changed, and not before the row."""
        numbers = row_numbers(rows.num_rows)
        numbered = without_zones(rows).append_column(NUMBER_COLUMN, numbers)
        self._connection.register("lake_keys", numbered)
        try:
            found = self._connection.sql(
                f"SELECT l.{NUMBER_COLUMN} AS i, l.{SEQUENCE} > n.{SEQUENCE} AS newer FROM lake_keys l "
                f"JOIN {self._name} n ON {self._same('l')}"
            ).to_arrow_table()
            newer = found.filter(found.column("newer"))
            if newer.num_rows:
                self._forget(numbered.take(newer.column("i")))
                found = found.filter(pc.invert(found.column("newer")))
        finally:
            self._connection.unregister("lake_keys")
        return pc.is_in(numbers, found.column("i").combine_chunks())

    def _forget(self, keys: pa.Table) -> None:
        self._connection.register("newer_keys", keys)
        try:
            self._delete("newer_keys")
        finally:
            self._connection.unregister("newer_keys")

    def above(self, current: CurrentRows) -> CurrentRows:
        """Return a function for the rows of keys as they are after these changes; `current` returns them as they were before."""

        def found(keys: pa.Table) -> pa.Table:
            if self._schema is None or not keys.num_rows:
                return current(keys)
            self._connection.register("asked", without_zones(keys))
            try:
                mine = list(self._rows_of(f"NOT {DELETED} AND EXISTS (SELECT 1 FROM asked a WHERE {self._same('a')})"))
                names = ", ".join(f"a.{identifier(one)}" for one in keys.column_names)
                others = self._connection.sql(
                    f"SELECT {names} FROM asked a ANTI JOIN {self._name} n ON {self._same('a')}"
                ).to_arrow_table()
            finally:
                self._connection.unregister("asked")
            lake = current(self._typed(others, keys.schema))
            return pa.concat_tables([lake, *(self._typed(some, lake.schema) for some in mine)])

        return found

    def clear(self) -> None:
        """Remove all changes."""
        self._connection.execute(f"DROP TABLE IF EXISTS {self._name}")
        self._file.close()
        self._pieces = []
        self._schema, self._rows, self._added, self._bytes = None, 0, 0, 0

    def close(self) -> None:
        """Free its space on the disk."""
        self.clear()
        self._connection.close()
