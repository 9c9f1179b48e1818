"""Net changes of more rows than fit into memory: piece by piece into DuckDB, which takes them to its temporary directory."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from relay.feed.rows.lake_columns import DELETED, SEQUENCE
from relay.feed.rows.net_changes import cast_column, identifier
from relay.feed.rows.partial_images import CurrentRows, without_zones

_numbers: Final = count(1)
_MOST_ROWS: Final = 1 << 16


class SpooledNet:
    """Of the rows of a key the one that was added last counts; a piece has no key twice. In the order in which they were added.

    replaces: False, if no key is added twice.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, key: Sequence[str], *, replaces: bool = True) -> None:
        # Its own: rows are read out of it while others ask the connection.
        self._connection = connection.cursor()
        self._name = f"net_{next(_numbers)}"
        self._key = tuple(key)
        self._replaces = replaces
        self._schema: pa.Schema | None = None
        self._rows = 0
        self._bytes = 0
        self._added = 0

    @property
    def num_rows(self) -> int:
        """Keys that changed."""
        return self._rows

    @property
    def nbytes(self) -> int:
        """About how large all of it would be in memory."""
        return self._bytes * self._rows // max(self._added, 1)

    def add(self, piece: pa.Table) -> None:
        """Net changes of some more rows."""
        if not piece.num_rows:
            return
        self._connection.register("piece", without_zones(piece))
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
        """All of it in memory, in the lake's types; there is one row at least."""
        return self._typed(self._connection.sql(f"SELECT * FROM {self._name}").to_arrow_table(), self._types())

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

    def live(self, schema: pa.Schema, most_bytes: int) -> Iterator[pa.Table]:
        """The rows that there are behind the changes, with the lake's columns, about so many bytes at a time."""
        known = self._types()
        names = ", ".join(identifier(one.name) for one in schema if known.get_field_index(one.name) >= 0)
        reading = self._connection.cursor()
        try:
            found = reading.sql(f"SELECT {names} FROM {self._name} WHERE NOT {DELETED}")
            rows = max(1, min(_MOST_ROWS, most_bytes * self._added // max(self._bytes, 1)))
            for batch in found.to_arrow_reader(rows):
                if batch.num_rows:
                    yield self._typed(pa.Table.from_batches([batch]), schema)
        finally:
            reading.close()

    def ends(self, column: str) -> tuple[Any, Any]:
        """The least and the largest value of a column of the key."""
        name = identifier(column)
        low, high = self._connection.execute(f"SELECT min({name}), max({name}) FROM {self._name}").fetchall()[0]
        return low, high

    def are_gone(self, rows: pa.Table) -> Any:
        """For each row of the lake, of which the key and _sequence are given, whether it goes: its key changed, and not before it."""
        numbered = without_zones(rows).append_column("i", pa.array(range(rows.num_rows), pa.int64()))
        self._connection.register("lake_keys", numbered)
        try:
            found = self._connection.sql(
                f"SELECT l.i, l.{SEQUENCE} > n.{SEQUENCE} AS newer FROM lake_keys l JOIN {self._name} n ON {self._same('l')}"
            ).to_arrow_table()
            newer = found.filter(found.column("newer"))
            if newer.num_rows:
                self._forget(numbered.take(newer.column("i")))
                found = found.filter(pc.invert(found.column("newer")))
        finally:
            self._connection.unregister("lake_keys")
        return pc.is_in(numbered.column("i"), found.column("i").combine_chunks())

    def _forget(self, keys: pa.Table) -> None:
        self._connection.register("newer_keys", keys)
        try:
            self._delete("newer_keys")
        finally:
            self._connection.unregister("newer_keys")

    def above(self, current: CurrentRows) -> CurrentRows:
        """The rows of keys as they are behind these changes; `current`: as they were before."""

        def found(keys: pa.Table) -> pa.Table:
            if self._schema is None or not keys.num_rows:
                return current(keys)
            self._connection.register("asked", without_zones(keys))
            try:
                mine = self._connection.sql(
                    f"SELECT n.* FROM {self._name} n SEMI JOIN asked a ON {self._same('a')}"
                ).to_arrow_table()
                names = ", ".join(f"a.{identifier(one)}" for one in keys.column_names)
                others = self._connection.sql(
                    f"SELECT {names} FROM asked a ANTI JOIN {self._name} n ON {self._same('a')}"
                ).to_arrow_table()
            finally:
                self._connection.unregister("asked")
            lake = current(self._typed(others, keys.schema))
            live = mine.filter(pc.invert(mine.column(DELETED)))
            return pa.concat_tables([lake, self._typed(live, lake.schema)]) if live.num_rows else lake

        return found

    def clear(self) -> None:
        """Nothing was added."""
        self._connection.execute(f"DROP TABLE IF EXISTS {self._name}")
        self._schema, self._rows, self._added, self._bytes = None, 0, 0, 0

    def close(self) -> None:
        """Its place on the disk is free again."""
        self.clear()
        self._connection.close()
