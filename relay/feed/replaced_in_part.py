"""Updates of a MariaDB whose after-images lack columns: which of these are unchanged, and which the source set.

A REPLACE that meets one row may be logged as an update of it. The source sets the columns that the statement does not name to their defaults; with
binlog_row_image = MINIMAL, and for BLOB and TEXT with NOBLOB, they are missing from the after-image, exactly as columns that an UPDATE left unchanged
are (10.11.19, 11.8.9; a MySQL logs them). The same holds for what a trigger sets in the row that INSERT … ON DUPLICATE KEY UPDATE meets, and, from
11.8 on, for stored computed columns in all updates. MariaDB's own replicas keep the old values.

The text beside the rows is that of the first statement that changed a row, also inside a trigger or a function, and all rows of the outer statement
have it: it decides only for tables for which the operator declared that no trigger and no function writes to them.
"""

from collections.abc import Iterator
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from protocol.binlog.layout import FIRST_EVENT
from protocol.sql.tables.source_table import TableName
from relay.feed.archive_reading import ArchiveReading
from relay.feed.feed_batch import FeedBatch
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.lake_columns import NUMBER, TEXT, LakeColumn
from relay.feed.rows.net_changes import CHANGES, TableRows, literal
from relay.feed.rows.row_numbers import row_numbers
from relay.feed.rows.row_places import AT, with_places
from relay.feed.statements.replacing_statement import HEAD_CHARACTERS, RowsEffect, rows_effect

UNSURE: Final = (
    "an update whose row lacks columns which the source may have changed: with binlog_row_image MINIMAL or NOBLOB, by a REPLACE, or what a "
    "trigger does (with columns that are computed, always); where no trigger and no function changes the table, name it in `trusted_images`"
)
_ELSE: Final = "with_another"
_EFFECT: Final[dict[RowsEffect, bool | None]] = {
    RowsEffect.REPLACED: True,
    RowsEffect.UPDATED: False,
    RowsEffect.UNSURE: None,
}
_FOUND: Final = pa.schema([("sequence", pa.int64()), ("row", pa.int64()), (AT, pa.int64()), ("replaced", pa.bool_())])


class ReplacedRows:
    """The updates of one table in one batch. `trusted` says that the operator declared that no trigger and no function changes its rows, so that the
    text decides."""

    def __init__(
        self,
        reading: ArchiveReading,
        connection: duckdb.DuckDBPyConnection,
        batch: FeedBatch,
        key: TableName,
        *,
        trusted: bool,
    ) -> None:
        self._reading = reading
        self._connection = connection
        self._batch = batch
        self._key = key
        self._trusted = trusted
        self._may_be = any(_is_mariadb(reading.server_version(place)) for place in (batch.start, batch.end))
        self._found: pa.Table | None = None
        self._last: tuple[str | None, tuple[bool | None, bool | None]] | None = None
        self.unsure_at: int | None = None
        """The place, as a version, of the first partial row of which it is uncertain whether it was replaced; None if there is none so far."""

    def told_apart(self, changes: pa.Table, rows: TableRows) -> pa.Table:
        """Return the same changes, in which a row that was replaced is one that was removed and one that was added. `changes` are CHANGES, in order."""
        if not self._may_be:
            return changes
        in_part = self._in_part(changes, rows)
        if not in_part.num_rows:
            return changes
        if self._found is None:
            self._found = self._look()
        if not self._found.num_rows:
            return changes
        self._connection.register("in_part", in_part)
        self._connection.register("found", self._found)
        numbers = row_numbers(changes.num_rows)
        self._connection.register("numbered", changes.append_column("i", numbers))
        try:
            self._note_unsure()
            return (
                self._connection.sql(
                    "WITH told AS (SELECT n.*, f.sequence IS NOT NULL AS replaced FROM numbered n LEFT JOIN (SELECT f.sequence, f.row "
                    "FROM found f JOIN in_part i USING (sequence, row) WHERE f.replaced AND NOT i.lacks_computed AND NOT i.is_update) f "
                    "USING (sequence, row)) "
                    "SELECT sequence, row, operation, before, after FROM ("
                    "SELECT i, 0 AS part, sequence, row, if(replaced, 'delete', operation) AS operation, before, if(replaced, NULL, after) AS after "
                    "FROM told UNION ALL SELECT i, 1, sequence, row, 'insert', NULL, after FROM told WHERE replaced) ORDER BY i, part"
                )
                .to_arrow_table()
                .cast(CHANGES)
            )
        finally:
            for name in ("in_part", "found", "numbered"):
                self._connection.unregister(name)

    def _note_unsure(self) -> None:
        sure = "(i.is_update OR f.replaced IS NOT NULL)" if self._trusted else "i.is_update"
        unsure = self._connection.execute(
            f"SELECT min(f.{AT}) FROM found f JOIN in_part i USING (sequence, row) WHERE NOT {sure} OR i.lacks_computed"
        ).fetchall()[0][0]
        known = [one for one in (self.unsure_at, unsure) if one is not None]
        self.unsure_at = min(known, default=None)

    def _in_part(self, changes: pa.Table, rows: TableRows) -> pa.Table:
        """Return (sequence, row) of the updates whose after-image lacks columns, with two flags: whether the key shows that it was no REPLACE (which
        names the key, unless the row has the key's default), and whether a computed column is missing, of which a MariaDB does not always log that it
        changed with others."""
        computed = [literal(one.name) for one in rows.columns if one.source.generated]
        # What the before-image has, and the after-image has not, is unchanged (FULL_NODUP).
        has = "list_concat(json_keys(before), json_keys(after))"
        lacks = f"NOT list_has_all({has}, [{', '.join(computed)}])" if computed else "false"
        stored = "[" + ", ".join(literal(one.name) for one in rows.columns) + "]"
        is_update = " OR ".join(
            f"(NOT list_contains(json_keys(after), {literal(one.name)}) "
            f"AND {_is_no_default(one, f'json_extract_string(before, {literal(one.pointer)})')})"
            for one in rows.key_columns
            if one.source.default is None
        )
        self._connection.register("changes", changes)
        try:
            return self._connection.sql(
                f"SELECT sequence, row, coalesce({is_update or 'false'}, false) AS is_update, {lacks} AS lacks_computed FROM changes "
                f"WHERE before IS NOT NULL AND after IS NOT NULL AND NOT list_has_all({has}, {stored})"
            ).to_arrow_table()
        finally:
            self._connection.unregister("changes")

    def _look(self) -> pa.Table:
        """Return updates of the table by a MariaDB. `replaced` says whether it was a REPLACE; it is NULL if that is uncertain."""
        tables: dict[int, str] = {}
        shared: set[int] = set()
        found = []
        for some in self._reading.row_statements(self._batch.start, self._batch.end, self._key[1], HEAD_CHARACTERS):
            for sequence, schema in _distinct(some, "sequence", "schema"):
                if tables.setdefault(sequence, schema) != schema:
                    shared.add(sequence)
            updates = some.filter(pc.equal(some.column("operation"), "update"))
            updates = updates.filter(pc.equal(updates.column("schema"), self._key[0]))
            found.append(self._told(updates.filter(pc.is_in(updates.column("file"), self._of_mariadb(updates)))))
        told = pa.concat_tables(found) if found else _FOUND.append(pa.field(_ELSE, pa.bool_())).empty_table()
        is_shared = pc.is_in(told.column("sequence"), pa.array(sorted(shared), pa.int64()))
        replaced = pc.if_else(is_shared, told.column(_ELSE), told.column("replaced"))
        told = told.drop_columns([_ELSE]).set_column(3, "replaced", replaced)
        return told.combine_chunks()

    def _told(self, updates: pa.Table) -> pa.Table:
        """Return for each update whether it was a REPLACE, as `replaced`, and as `_ELSE` if another table of that name was changed with it."""
        replaced: list[bool | None] = []
        shared: list[bool | None] = []
        for text in updates.column("statement").to_pylist():
            one, other = self._effects(text)
            replaced.append(one)
            shared.append(other)
        told = with_places(updates).select(["sequence", "row", AT])
        return told.append_column("replaced", pa.array(replaced, pa.bool_())).append_column(
            _ELSE, pa.array(shared, pa.bool_())
        )

    def _of_mariadb(self, updates: pa.Table) -> pa.Array:
        """Return those of their binlogs that a MariaDB wrote."""
        files = [
            file
            for (file,) in _distinct(updates, "file")
            if _is_mariadb(self._reading.server_version(FeedOffset.at(file, FIRST_EVENT)))
        ]
        return pa.array(files, pa.string())

    def _effects(self, text: str | None) -> tuple[bool | None, bool | None]:
        """Return the effects for a table that is alone, and for one that is not. Rows of one statement follow each other."""
        if self._last is None or self._last[0] != text:
            alone, shared = (_EFFECT[rows_effect(text, self._key, alone=alone)] for alone in (True, False))
            self._last = (text, (alone, shared))
        return self._last[1]


def _is_no_default(one: LakeColumn, value: str) -> str:
    """Return SQL that tests whether a key's value differs from what a server stores if a statement names neither the key nor its default."""
    if one.kind == NUMBER:
        return f"regexp_matches({value}, '^-?[1-9]')"
    return f"{value} <> ''" if one.kind == TEXT else "false"


def _distinct(rows: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    groups = rows.select(names).group_by(list(names), use_threads=False).aggregate([])
    return zip(*(groups.column(name).to_pylist() for name in names), strict=True)


def _is_mariadb(version: str) -> bool:
    return "mariadb" in version.lower()
