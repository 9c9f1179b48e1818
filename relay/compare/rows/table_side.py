"""One side of a table that is compared: its SELECTs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from relay.compare.rows.column_forms import PairedColumn, hash_number, row_hash
from relay.compare.rows.key_ranges import Key, key_condition, range_condition
from relay.compare.rows.table_shape import ShapeKey, TableShape
from relay.compare.servers.compared_server import ComparedServer
from relay.upstream.schema.answer_text import quoted_name

_KEYS_AT_ONCE: Final = 50


@dataclass(frozen=True, slots=True)
class SideRow:
    """A row that one side has: its key as fetched there, and its checksum."""

    key: Key
    hash: str


@dataclass(frozen=True, slots=True)
class TableSide:
    """A table at one server. `columns` are those that both servers have, `key` some of them, `index` is their key's name here."""

    shape: TableShape
    columns: tuple[PairedColumn, ...]
    key: tuple[PairedColumn, ...]
    index: str

    def bound(self, server: ComparedServer, after: Key | None, rows: int, upto: Key | None = None) -> Key | None:
        """Return the key of the row that is `rows` after this one; None: there are not so many, up to `upto`."""
        order = ", ".join(one.ordered for one in self.key)
        found = server.rows(
            f"SELECT {self._fetched_key} FROM {self._from} WHERE {range_condition(self.key, after, upto)}"
            f" ORDER BY {order} LIMIT 1 OFFSET {rows - 1}"
        )
        return found[0] if found else None

    def checksum(self, server: ComparedServer, after: Key | None, upto: Key | None) -> tuple[int, str]:
        """Return count and checksum of the rows in the range."""
        return self._sum(server, range_condition(self.key, after, upto))

    def whole_checksum(self, server: ComparedServer) -> tuple[int, str]:
        """Return count and checksum of all rows."""
        return self._sum(server, "1")

    def _sum(self, server: ComparedServer, condition: str) -> tuple[int, str]:
        number = hash_number(row_hash(self.columns))
        count, total = server.unwarned(f"SELECT COUNT(*), SUM({number}) FROM {self._from} WHERE {condition}")
        return int(count), str(total or 0)

    def hashes(self, server: ComparedServer, after: Key | None, upto: Key | None) -> dict[Key, str]:
        """Return the checksum of each row in the range."""
        rows = server.each_row(
            f"SELECT {self._fetched_key}, {row_hash(self.columns)} FROM {self._from}"
            f" WHERE {range_condition(self.key, after, upto)}"
        )
        return {tuple(row[:-1]): row[-1] for row in rows}

    def rows_by_key(self, server: ComparedServer, keys: Sequence[Key]) -> list[SideRow | None]:
        """Return the row of each key, by the collations of this server; None: it has none."""
        return [
            None if row is None else SideRow(tuple(row[:-1]), row[-1])
            for row in self._each(server, keys, f"{self._fetched_key}, {row_hash(self.columns)}")
        ]

    def values_by_key(self, server: ComparedServer, keys: Sequence[Key]) -> list[tuple[Any, ...] | None]:
        """Return the values of each key's row, as fetched."""
        return self._each(server, keys, ", ".join(one.fetched() for one in self.columns))

    def _each(self, server: ComparedServer, keys: Sequence[Key], columns: str) -> list[tuple[Any, ...] | None]:
        found: list[tuple[Any, ...] | None] = [None] * len(keys)
        for first in range(0, len(keys), _KEYS_AT_ONCE):
            statement = " UNION ALL ".join(
                f"(SELECT {number}, {columns} FROM {self._from} WHERE {key_condition(self.key, keys[number])})"
                for number in range(first, min(first + _KEYS_AT_ONCE, len(keys)))
            )
            for row in server.rows(statement):
                found[int(row[0])] = tuple(row[1:])
        return found

    # --- tables without a key ----------------------------------------------------------------------------------------

    def grouped(self, server: ComparedServer) -> Iterator[tuple[str, int]]:
        """Yield each checksum that rows have, in ascending order, and how many have it."""
        statement = f"SELECT {row_hash(self.columns)} AS h, COUNT(*) FROM {self._from} GROUP BY h ORDER BY h"
        for hashed, count in server.each_row(statement):
            yield hashed, int(count)

    def values_by_hash(self, server: ComparedServer, hashed: str) -> tuple[Any, ...] | None:
        """Return the values of a row with this checksum, as fetched."""
        columns = ", ".join(one.fetched() for one in self.columns)
        found = server.rows(f"SELECT {columns} FROM {self._from} WHERE {row_hash(self.columns)} = '{hashed}' LIMIT 1")
        return found[0] if found else None

    # --- for people --------------------------------------------------------------------------------------------------

    def told_key(self, key: Key) -> dict[str, Any]:
        """Return a key as people read it."""
        return {one.here.name: one.told(value) for one, value in zip(self.key, key, strict=True)}

    def told(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return a row's values as people read them, and so that equal ones are equal."""
        return {one.here.name: one.told(value) for one, value in zip(self.columns, values, strict=True)}

    @property
    def _from(self) -> str:
        return f"{self.shape.quoted} FORCE INDEX ({quoted_name(self.index)})" if self.index else self.shape.quoted

    @property
    def _fetched_key(self) -> str:
        return ", ".join(one.fetched() for one in self.key)


def table_sides(source: TableShape, target: TableShape) -> tuple[TableSide, TableSide]:
    """Return both sides of a table: the columns of either name that both have, and a key that both have."""
    theirs = {name.lower(): one for name, one in target.columns.items()}
    pairs = [(one, theirs[name.lower()]) for name, one in source.columns.items() if name.lower() in theirs]
    here = tuple(PairedColumn(one, other) for one, other in pairs)
    there = tuple(PairedColumn(other, one) for one, other in pairs)
    found = _common_key(source, target)
    if found is None:
        return TableSide(source, here, (), ""), TableSide(target, there, (), "")
    ours, other = found
    names = [name.lower() for name in ours.columns()]
    number = {pair[0].name.lower(): place for place, pair in enumerate(pairs)}
    places = [number[name] for name in names]
    return (
        TableSide(source, here, tuple(here[place] for place in places), ours.name),
        TableSide(target, there, tuple(there[place] for place in places), other.name),
    )


def _common_key(source: TableShape, target: TableShape) -> tuple[ShapeKey, ShapeKey] | None:
    theirs = {tuple(name.lower() for name in one.columns()): one for one in target.whole_keys()}
    for one in source.whole_keys():
        other = theirs.get(tuple(name.lower() for name in one.columns()))
        if other is not None:
            return one, other
    return None
