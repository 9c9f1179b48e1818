"""One table's rows of a batch, in order: in memory, or in pieces on disk of which one is read at a time."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.row_places import AT, rows_within

PIECE_BYTES: Final = 32 << 20
"""The size of rows in memory that are processed at once."""


@dataclass(frozen=True, slots=True)
class RowsPiece:
    """Some rows. `first` and `last` are the places of their transactions, as versions; `load` reads the rows."""

    first: int
    last: int
    count: int
    size: int
    columns: frozenset[str]
    load: Callable[[], pa.Table]

    @classmethod
    def of(cls, table: pa.Table, load: Callable[[], pa.Table] | None = None) -> "RowsPiece":
        """Return a piece with these rows; without `load` they stay in memory."""
        span = pc.min_max(table.column(AT)).as_py()
        return cls(
            span["min"] or 0,
            span["max"] or 0,
            table.num_rows,
            table.nbytes,
            frozenset(table.column_names),
            load or (lambda: table),
        )


class PartRows:
    """Rows of transactions that begin in [low, high), as versions, except those of `without`. At most `piece_bytes` are in memory at
    once."""

    def __init__(
        self,
        pieces: Sequence[RowsPiece],
        piece_bytes: int = PIECE_BYTES,
        low: int | None = None,
        high: int | None = None,
        without: frozenset[int] = frozenset(),
    ) -> None:
        self._pieces = [
            one
            for one in pieces
            if one.count and (low is None or one.last >= low) and (high is None or one.first < high)
        ]
        self.piece_bytes = piece_bytes
        self._low, self._high, self._without = low, high, without
        self._count: int | None = None

    @classmethod
    def of(cls, table: pa.Table) -> "PartRows":
        """Return rows in memory, with the column `at`."""
        return cls([RowsPiece.of(table)], max(table.nbytes, 1))

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        if self._count is None:
            self._count = sum(one.count if self._is_whole(one) else self._load(one).num_rows for one in self._pieces)
        return self._count

    @property
    def is_small(self) -> bool:
        """True if all of them may be in memory at once."""
        return sum(one.size for one in self._pieces) <= self.piece_bytes

    def has(self, column: str) -> bool:
        """Return whether all rows have a column."""
        return bool(self._pieces) and all(column in one.columns for one in self._pieces)

    def places(self) -> set[int]:
        """Return the starts of their transactions, as versions."""
        found: set[int] = set()
        for one in self._pieces:
            if one.first == one.last and self._is_whole(one):
                found.add(one.first)
            else:
                found.update(pc.unique(self._load(one).column(AT)).to_pylist())
        return found

    def ends(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return file and position of the first and of the last of them; there is at least one."""
        rows = [one for one in (self._load(self._pieces[at]) for at in (0, -1)) if one.num_rows]
        if not rows:
            rows = [one for one in (self._load(piece) for piece in self._pieces) if one.num_rows]
        columns = ["file", "position"]
        first = rows[0].select(columns).slice(0, 1).to_pylist()[0]
        last = rows[-1].select(columns).slice(rows[-1].num_rows - 1, 1).to_pylist()[0]
        return first, last

    def after(self, place: FeedOffset | None) -> "PartRows":
        """Return the rows of transactions that begin at `place` or later."""
        if place is None:
            return self
        low = place.version if self._low is None else max(place.version, self._low)
        return PartRows(self._pieces, self.piece_bytes, low, self._high, self._without)

    def between(self, start: FeedOffset, end: FeedOffset | None) -> "PartRows":
        """Return the rows of transactions that begin in [start, end)."""
        kept = self.after(start)
        if end is None:
            return kept
        high = end.version if self._high is None else min(end.version, self._high)
        return PartRows(kept._pieces, self.piece_bytes, kept._low, high, self._without)

    def but(self, places: Collection[int]) -> "PartRows":
        """Return the rows of other transactions."""
        return PartRows(self._pieces, self.piece_bytes, self._low, self._high, self._without | frozenset(places))

    def table(self) -> pa.Table:
        """Return all of them, in memory; there is at least one."""
        return _joined([self._load(one) for one in self._pieces])

    def pieces(self) -> Iterator[pa.Table]:
        """Yield all of them, some at a time."""
        held: list[pa.Table] = []
        size = 0
        for one in self._pieces:
            if held and size + one.size > self.piece_bytes:
                yield _joined(held)
                held, size = [], 0
            rows = self._load(one)
            if rows.num_rows:
                held.append(rows)
                size += one.size
        if held:
            yield _joined(held)

    def _is_whole(self, one: RowsPiece) -> bool:
        return (
            (self._low is None or one.first >= self._low)
            and (self._high is None or one.last < self._high)
            and not any(one.first <= place <= one.last for place in self._without)
        )

    def _load(self, one: RowsPiece) -> pa.Table:
        rows = one.load()
        return rows if self._is_whole(one) else rows_within(rows, self._low, self._high, self._without)


def _joined(tables: list[pa.Table]) -> pa.Table:
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")
