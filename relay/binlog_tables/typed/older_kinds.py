"""The kinds of a table's columns when a row was written: some values differ in a column of another kind."""

from collections.abc import Collection, Sequence
from typing import Final

from protocol.errors import Malformed
from protocol.sql.tables.source_table import Column
from relay.binlog_tables.plan.recorded import reported_schema
from relay.binlog_tables.plan.splits import Split
from relay.binlog_tables.plan.store import Store
from relay.binlog_tables.typed.column_kinds import JSON, TypedColumn, kind_of
from relay.schema_history.schema_record import RecordedSchema

_MOMENT: Final = "timestamp"
"""Images have it in UTC; every other kind of time is in a zone that no binlog records."""
_DOCUMENTS: Final = (JSON, "variant")
_WIDE: Final = frozenset(("ucs2", "utf16", "utf16le", "utf32"))
"""Character sets in which ASCII's letters are other bytes than ASCII's."""


class OlderKinds:
    """The older kinds of one table, for the rows of one split."""

    def __init__(self, store: Store, split: Split, table: tuple[str, str], columns: Collection[TypedColumn]) -> None:
        self._store = store
        self._split = split
        self._table = table
        self._kinds = {column.name: column.kind for column in columns}
        self._schema: RecordedSchema | None = None
        self._known: tuple[Column, ...] | None = None
        self._others: frozenset[str] = frozenset()

    def others(self, positions: Sequence[int]) -> list[frozenset[str]]:
        """Return, for rows at these positions, in order, the columns whose values are not of the columns' kinds, whatever they look
        like."""
        if not positions:
            return []
        first = self._columns(positions[0])
        # Each stretch with one definition has an object of its own.
        if len(positions) == 1 or (first is not None and first is self._columns(positions[-1])):
            return [self._others_of(first)] * len(positions)
        half = len(positions) // 2
        return self.others(positions[:half]) + self.others(positions[half:])

    def _others_of(self, found: tuple[Column, ...] | None) -> frozenset[str]:
        if found is not self._known:
            self._known = found
            self._others = frozenset(self._not_the_same(found) if found is not None else ())
        return self._others

    def _columns(self, position: int) -> tuple[Column, ...] | None:
        directory, _, base = self._split.path.rpartition("/")
        if self._schema is None:
            root = "/" if self._split.path.startswith("/") else "."
            self._schema = reported_schema(self._store, directory or root, base, self._split.stop)
        try:
            table = self._schema.recorded(*self._table, base, position) or self._schema.worked_out(
                *self._table, base, position
            )
        except Malformed:
            return None
        return table.columns if table is not None else None

    def _not_the_same(self, columns: tuple[Column, ...]) -> list[str]:
        found = []
        for column in columns:
            kind = self._kinds.get(column.name)
            before = kind_of(column.type)
            if kind is not None and (
                (kind == _MOMENT) != (before == _MOMENT)
                or (kind in _DOCUMENTS) != (before == JSON)
                or (kind == "binary" and column.charset in _WIDE)
            ):
                found.append(column.name)
        return found
