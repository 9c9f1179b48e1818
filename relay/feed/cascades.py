"""Rows that InnoDB changes by foreign keys, of which no binlog tells: their tables are stale from there."""

from collections.abc import Iterable
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from relay.feed.archive_reading import ArchiveReading
from relay.feed.fed_table import unseen_at
from relay.feed.feed_batch import AT, FeedBatch, TablePart, no_rows
from relay.feed.rows.net_changes import literal
from relay.schema_history.tables.source_table import ForeignKey, Table, TableName

_ACTIONS: Final = frozenset(("CASCADE", "SET NULL", "SET DEFAULT"))


def note_cascades(
    reading: ArchiveReading, connection: duckdb.DuckDBPyConnection, batch: FeedBatch, keys: Iterable[TableName]
) -> None:
    """Adds to the parts of a batch what foreign keys may have changed. Servers from MySQL 9.6 on log it."""
    parents = {
        key: part
        for key, part in batch.parts.items()
        if part.rows.num_rows
        and pc.any(pc.is_in(part.rows.column("operation"), pa.array(["delete", "update"]))).as_py()
    }
    if not parents or logs_cascades(reading.server_version(batch.start)):
        return
    for key in sorted(keys):
        table = reading.table(key, batch.end, batch.end)
        for _name, foreign in (table.foreign_keys or ()) if table is not None else ():
            parent = (foreign.schema or key[0], foreign.table)
            if parent not in parents:
                continue
            place = _first_cascade(connection, parents[parent], foreign, reading.table(parent, batch.end, batch.end))
            if place is not None:
                part = batch.parts.setdefault(key, TablePart(key, no_rows()))
                name = ".".join(parent)
                part.unseen.append(
                    unseen_at(
                        place, f"a foreign key to {name} with CASCADE or SET NULL: what it changes is not in the binlog"
                    )
                )


def _first_cascade(
    connection: duckdb.DuckDBPyConnection, part: TablePart, foreign: ForeignKey, parent: Table | None
) -> int | None:
    """The place of the first transaction whose changes of the parent may have changed others; None: there is none."""
    found = []
    rows = part.rows
    if foreign.on_delete.upper() in _ACTIONS:
        deleted = rows.filter(pc.equal(rows.column("operation"), "delete"))
        found += [deleted.column(AT)[0].as_py()] if deleted.num_rows else []
    if foreign.on_update.upper() in _ACTIONS:
        columns = foreign.referenced or (parent.primary_key if parent is not None else ())
        updated = rows.filter(pc.equal(rows.column("operation"), "update")).select(["before", "after", AT])
        names = "[" + ", ".join(literal("/" + one.replace("~", "~0").replace("/", "~1")) for one in columns) + "]"
        connection.register("updated", updated)
        try:
            # A column that an image after has not, has not changed.
            changed = connection.execute(
                f"SELECT min({AT}) FROM (SELECT {AT}, json_extract(before, {names}) AS b, json_extract(after, {names}) AS a "
                "FROM updated) WHERE len(list_filter(range(1, len(a) + 1), lambda n: a[n] IS NOT NULL AND a[n] IS DISTINCT FROM b[n])) > 0"
            ).fetchall()
        finally:
            connection.unregister("updated")
        found += [row[0] for row in changed if row[0] is not None] if columns else [updated.column(AT)[0].as_py()]
    return min(found, default=None)


def logs_cascades(version: str) -> bool:
    """Whether a server of this version logs what its foreign keys change: MySQL from 9.6 on, as it is set by default."""
    if "mariadb" in version.lower():
        return False
    numbers = [int(one) for one in version.split("-")[0].split(".")[:2] if one.isdigit()]
    return numbers >= [9, 6]
