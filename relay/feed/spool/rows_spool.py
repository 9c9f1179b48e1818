"""Rows of a batch as they are read: by table, in memory up to a size, above it in one file."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from protocol.sql.tables.source_table import TableName
from relay.feed.rows.row_places import with_places
from relay.feed.spool.part_rows import PIECE_BYTES, PartRows, RowsPiece
from relay.feed.spool.spool_directory import SpoolDirectory
from relay.feed.spool.spool_file import SpoolFile


class RowsSpool:
    """A collector of rows, which are returned as one PartRows for each table. It must be closed when they are no longer read. Raises: SpoolFull."""

    def __init__(self, directory: SpoolDirectory | None, most_bytes: int) -> None:
        self._file = SpoolFile(directory) if directory is not None else None
        self._most_bytes = most_bytes
        self._piece_bytes = min(max(most_bytes // 2, 1), PIECE_BYTES)
        self._held: dict[TableName, list[pa.Table]] = {}
        self._size = 0
        self._written: dict[TableName, list[RowsPiece]] = {}

    def add(self, rows: pa.Table) -> None:
        """Add rows of any tables, after those that were added."""
        for key, some in _by_table(rows):
            self._held.setdefault(key, []).append(some)
            self._size += some.nbytes
        if self._size > (self._piece_bytes if self._written else self._most_bytes):
            self._write()

    def add_all(self, rows: Iterable[pa.Table]) -> "RowsSpool":
        """Add the rows of several tables, as `add` does."""
        for one in rows:
            self.add(one)
        return self

    def part(self, key: TableName) -> PartRows:
        """Return all rows of one table."""
        return self.parts().get(key) or PartRows([])

    def parts(self) -> dict[TableName, PartRows]:
        """Return all rows, by table, in the order in which tables appeared first."""
        if self._written:
            self._write()
            return {key: PartRows(pieces, self._piece_bytes) for key, pieces in self._written.items()}
        return {
            key: PartRows.of(with_places(pa.concat_tables(tables, promote_options="default")))
            for key, tables in self._held.items()
        }

    def close(self) -> None:
        """Remove the file."""
        self._held, self._written, self._size = {}, {}, 0
        if self._file is not None:
            self._file.close()

    def _write(self) -> None:
        if self._file is None:
            return
        try:
            for key, tables in self._held.items():
                pieces = self._written.setdefault(key, [])
                for table in _grouped(tables, self._piece_bytes):
                    rows = with_places(table)
                    pieces.append(RowsPiece.of(rows, self._file.write(rows)))
        except BaseException:
            self.close()
            raise
        self._held, self._size = {}, 0


def _grouped(tables: list[pa.Table], most_bytes: int) -> Iterable[pa.Table]:
    """Yield the same rows in tables of at most that size, or of one row that is larger."""
    held: list[pa.Table] = []
    size = 0
    for one in tables:
        for some in _sliced(one, most_bytes):
            if held and size + some.nbytes > most_bytes:
                yield pa.concat_tables(held, promote_options="default")
                held, size = [], 0
            held.append(some)
            size += some.nbytes
    if held:
        yield pa.concat_tables(held, promote_options="default")


def _sliced(table: pa.Table, most_bytes: int) -> Iterable[pa.Table]:
    if table.nbytes <= most_bytes or table.num_rows <= 1:
        yield table
        return
    half = table.num_rows // 2
    yield from _sliced(table.slice(0, half), most_bytes)
    yield from _sliced(table.slice(half), most_bytes)


def _by_table(rows: pa.Table) -> list[tuple[TableName, pa.Table]]:
    """Return the rows of each table, in order."""
    if not rows.num_rows:
        return []
    names = rows.select(["schema", "table"]).group_by(["schema", "table"]).aggregate([]).to_pylist()
    if len(names) == 1:
        return [((names[0]["schema"], names[0]["table"]), rows)]
    found = []
    for name in names:
        mask = pc.and_(pc.equal(rows.column("schema"), name["schema"]), pc.equal(rows.column("table"), name["table"]))
        found.append(((name["schema"], name["table"]), rows.filter(mask)))
    return found
