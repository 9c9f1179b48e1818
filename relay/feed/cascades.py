"""Rows that InnoDB changes by foreign keys, which no binlog records: their tables are stale from there."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from protocol.sql.tables.source_table import ForeignKey, Table, TableName
from relay.feed.archive_reading import ArchiveReading
from relay.feed.feed_batch import FeedBatch, TablePart
from relay.feed.rows.net_changes import literal
from relay.feed.rows.row_places import AT, with_places
from relay.feed.spool.part_rows import PartRows
from relay.feed.statements.logged_changes import unseen_at
from relay.source_tables.names import in_lower_case

_ACTIONS: Final = frozenset(("CASCADE", "SET NULL", "SET DEFAULT"))
_UNKNOWN: Final = (
    "rows of other tables were changed, and whether it has foreign keys with CASCADE or SET NULL is not known: the relay's account needs "
    "PROCESS at the source, or name it in `no_cascades`"
)


class _CascadingKey(NamedTuple):
    """A foreign key by which `child` refers to `parent`, so that changes of the parent change the child."""

    child: TableName
    parent: TableName
    key: ForeignKey


def note_cascades(
    reading: ArchiveReading,
    connection: duckdb.DuckDBPyConnection,
    batch: FeedBatch,
    fed: Iterable[TableName],
    is_excepted: Callable[[TableName], bool] = lambda _key: False,
) -> None:
    """Add to the parts of a batch what foreign keys may have changed, across any number of tables, including those that are not fed.

    `is_excepted` tells for which tables the operator declared that they have no such keys. Servers from MySQL 9.6 on may log these changes, as their
    rows say, except for those of statements that are logged as such. Names are compared case-insensitively.
    """
    if not batch.unseen and batch.by_engine is not None and not batch.by_engine:
        return
    fed = {key for key in fed if not is_excepted(key)}
    references, unknown = _references(reading, batch, fed)
    changes = _Changes(reading, connection, batch)
    first = changes.first() if unknown else None
    if first is not None:
        for key in sorted(unknown):
            _add_unseen(batch, key, first, _UNKNOWN)
    hidden: dict[TableName, int] = {}
    pending = True
    while pending:
        pending = False
        for child, parent, foreign in references:
            if is_excepted(child):
                continue
            places = [hidden.get(in_lower_case(parent)), changes.first_cascade(parent, foreign)]
            place = min((one for one in places if one is not None), default=None)
            known = hidden.get(in_lower_case(child))
            if place is None or (known is not None and known <= place):
                continue
            hidden[in_lower_case(child)] = place
            pending = True
            reason = (
                f"a foreign key to {'.'.join(parent)} with CASCADE or SET NULL: what it changes is not in the binlog"
            )
            for one in [child] if child in fed else sorted(fed):
                if in_lower_case(one) == in_lower_case(child):
                    _add_unseen(batch, one, place, reason)


def _add_unseen(batch: FeedBatch, key: TableName, place: int, reason: str) -> None:
    batch.parts.setdefault(key, TablePart(key)).unseen.append(unseen_at(place, reason))


def _references(
    reading: ArchiveReading, batch: FeedBatch, fed: set[TableName]
) -> tuple[list[_CascadingKey], set[TableName]]:
    """Return which tables refer to which with an action, anywhere in the batch, and the fed tables of which this is not known."""
    found: dict[_CascadingKey, None] = {}
    unknown: set[TableName] = set()
    recorded = set(reading.names_at(batch.end))
    for key in sorted(fed | recorded):
        states = _states(reading, batch, key)
        part = batch.parts.get(key)
        # Nothing is known of a table that was dropped long ago.
        is_there = key not in recorded or (part is not None and part.rows.num_rows > 0)
        if key in fed and (any(table.foreign_keys is None for table in states) or (is_there and not states)):
            unknown.add(key)
        for table in states:
            for _name, foreign in table.foreign_keys or ():
                if _ACTIONS & {foreign.on_delete.upper(), foreign.on_update.upper()}:
                    found[_CascadingKey(key, (foreign.schema or key[0], foreign.table), foreign)] = None
    return list(found), unknown


def _states(reading: ArchiveReading, batch: FeedBatch, key: TableName) -> list[Table]:
    """Return a table's definitions in the batch: at its beginning, at its end, and after each of its definitions."""
    part = batch.parts.get(key)
    places = (batch.start, batch.end, *((one.end for one in part.definitions) if part is not None else ()))
    found = (reading.table(key, place, batch.end) for place in places)
    return [table for table in found if table is not None]


class _Changes:
    """The rows of a batch that were updated and deleted, including those of tables that are not fed. Answers are cached."""

    def __init__(self, reading: ArchiveReading, connection: duckdb.DuckDBPyConnection, batch: FeedBatch) -> None:
        self._reading = reading
        self._connection = connection
        self._batch = batch
        self._parts: dict[TableName, list[PartRows]] = {}
        self._cascades: dict[tuple[TableName, ForeignKey], int | None] = {}

    def first(self) -> int | None:
        """Return the place of the first transaction that changed or deleted a row of any table; None if there is none."""
        found = [one.start.version for one in self._batch.unseen if one.may_cascade]
        for rows in self._reading.changed_rows(self._batch.start, self._batch.end) if self._may_be else ():
            changed = rows.filter(pc.is_in(rows.column("operation"), pa.array(["delete", "update"])))
            changed = self._unlogged(with_places(changed))
            if changed.num_rows:
                found.append(int(pc.min(changed.column(AT)).as_py()))
                break  # they are in order
        return min(found, default=None)

    def first_cascade(self, parent: TableName, key: ForeignKey) -> int | None:
        """Return the place of the first transaction whose changes of the parent may have changed the rows that refer to it by `key`."""
        if (parent, key) not in self._cascades:
            # A statement is logged as such, without its effects on the tables that refer to its own.
            found = [one.start.version for one in self._batch.unseen if one.may_cascade and one.names(parent)]
            if self._may_be:
                table = self._reading.table(parent, self._batch.end, self._batch.end)
                for part in self._rows(parent):
                    for rows in part.pieces():
                        place = _first_cascade(self._connection, self._unlogged(rows), key, table)
                        if place is not None:
                            found.append(place)
                            break  # they are in order
            self._cascades[parent, key] = min(found, default=None)
        return self._cascades[parent, key]

    @property
    def _may_be(self) -> bool:
        """Return whether there are transactions whose foreign keys the engine enforces."""
        return self._batch.by_engine is None or bool(self._batch.by_engine)

    def _unlogged(self, rows: pa.Table) -> pa.Table:
        """Return the rows of those transactions."""
        if self._batch.by_engine is None:
            return rows
        return rows.filter(pc.is_in(rows.column(AT), pa.array(sorted(self._batch.by_engine), pa.int64())))

    def _rows(self, key: TableName) -> list[PartRows]:
        """Return the rows of all tables whose names differ only in case: with lower_case_table_names a server logs another name than its statements."""
        folded = in_lower_case(key)
        if folded not in self._parts:
            self._parts[folded] = [
                self._images(one) for one in sorted(self._changed_tables) if in_lower_case(one) == folded
            ]
        return self._parts[folded]

    @cached_property
    def _changed_tables(self) -> frozenset[TableName]:
        return self._reading.changed_tables(self._batch.start, self._batch.end)

    def _images(self, key: TableName) -> PartRows:
        part = self._batch.parts.get(key)
        if part is not None and part.rows.has("after"):
            return part.rows
        images = self._reading.rows_of(self._batch.start, self._batch.end, key)
        return self._batch.spool().add_all(images).part(key)


def _first_cascade(
    connection: duckdb.DuckDBPyConnection, rows: pa.Table, foreign: ForeignKey, parent: Table | None
) -> int | None:
    """Return the place of the first transaction whose changes of the parent may have changed other tables; None if there is none."""
    # Rows that cannot be read, or whose columns have no names, may be any change.
    unclear = rows.filter(
        pc.or_(pc.is_valid(rows.column("finding")), pc.equal(pc.fill_null(rows.column("named"), "none"), "none"))
    )
    found = [pc.min(unclear.column(AT)).as_py()] if unclear.num_rows else []
    if foreign.on_delete.upper() in _ACTIONS:
        deleted = rows.filter(pc.equal(rows.column("operation"), "delete"))
        found += [deleted.column(AT)[0].as_py()] if deleted.num_rows else []
    if foreign.on_update.upper() in _ACTIONS:
        columns = foreign.referenced or (parent.primary_key if parent is not None else ())
        updated = rows.filter(pc.equal(rows.column("operation"), "update")).select(["before", "after", AT])
        if updated.num_rows:
            # From MariaDB 11.8 on no after-image has computed columns.
            any_change = not columns or _are_computed(parent, columns)
            place = updated.column(AT)[0].as_py() if any_change else _first_changed(connection, updated, columns)
            found += [place] if place is not None else []
    return min(found, default=None)


def _are_computed(table: Table | None, columns: Iterable[str]) -> bool:
    """Return whether one of the columns is computed from others."""
    wanted = {one.lower() for one in columns}
    return table is not None and any(one.generated and one.name.lower() in wanted for one in table.columns)


def _first_changed(connection: duckdb.DuckDBPyConnection, updated: pa.Table, columns: Iterable[str]) -> int | None:
    """Return the place of the first transaction that changed a value of one of the columns, whose names are compared case-insensitively."""
    wanted = {one.lower() for one in columns}
    connection.register("updated", updated)
    try:
        # A column that is missing from an after-image has not changed.
        logged = connection.execute("SELECT DISTINCT unnest(json_keys(after)) FROM updated").fetchall()
        names = [one for (one,) in logged if one.lower() in wanted]
        if not names:
            return None
        paths = "[" + ", ".join(literal("/" + one.replace("~", "~0").replace("/", "~1")) for one in names) + "]"
        changed = connection.execute(
            f"SELECT min({AT}) FROM (SELECT {AT}, json_extract(before, {paths}) AS b, json_extract(after, {paths}) AS a "
            "FROM updated) WHERE len(list_filter(range(1, len(a) + 1), lambda n: a[n] IS NOT NULL AND a[n] IS DISTINCT FROM b[n])) > 0"
        ).fetchall()
    finally:
        connection.unregister("updated")
    place: int | None = changed[0][0]
    return place
