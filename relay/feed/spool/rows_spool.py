"""Rows of a batch as they are read: by table, in memory up to a size, above it in one file."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa

from relay.feed.rows.row_places import with_places
from relay.feed.spool.part_rows import PIECE_BYTES, PartRows, RowsPiece
from relay.feed.spool.spool_directory import SpoolDirectory
from relay.schema_history.tables.source_table import TableName

_FORMAT: Final = pa.ipc.IpcWriteOptions(compression="lz4")


class RowsSpool:
    """What is added comes back as PartRows, a table each. Raises: SpoolFull. To be closed when nobody reads them any more."""

    def __init__(self, directory: SpoolDirectory | None, most_bytes: int) -> None:
        self._directory = directory
        self._most_bytes = most_bytes
        self._piece_bytes = min(max(most_bytes // 2, 1), PIECE_BYTES)
        self._held: dict[TableName, list[pa.Table]] = {}
        self._size = 0
        self._written: dict[TableName, list[RowsPiece]] = {}
        self._path: Path | None = None

    def add(self, rows: pa.Table) -> None:
        """More rows of any tables, behind those that were added."""
        for key, some in _by_table(rows):
            self._held.setdefault(key, []).append(some)
            self._size += some.nbytes
        if self._size > (self._most_bytes if self._path is None else self._piece_bytes):
            self._write()

    def add_all(self, rows: Iterable[pa.Table]) -> "RowsSpool":
        """As `add`."""
        for one in rows:
            self.add(one)
        return self

    def part(self, key: TableName) -> PartRows:
        """All rows of one table."""
        return self.parts().get(key) or PartRows([])

    def parts(self) -> dict[TableName, PartRows]:
        """All rows, by table, in the order in which tables came first."""
        if self._path is not None:
            self._write()
            return {key: PartRows(pieces, self._piece_bytes) for key, pieces in self._written.items()}
        return {
            key: PartRows.of(with_places(pa.concat_tables(tables, promote_options="default")))
            for key, tables in self._held.items()
        }

    def close(self) -> None:
        """The file is removed."""
        self._held, self._written, self._size = {}, {}, 0
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    def _write(self) -> None:
        if self._directory is None or not self._held:
            return
        if self._path is None:
            self._path = self._directory.new_file()
        try:
            with self._directory.told_when_full(), self._path.open("ab") as file:
                for key, tables in self._held.items():
                    pieces = self._written.setdefault(key, [])
                    for table in _grouped(tables, self._piece_bytes):
                        pieces.append(_written(with_places(table), file, self._path))
        except BaseException:
            self.close()
            raise
        self._held, self._size = {}, 0


def _written(table: pa.Table, file: object, path: Path) -> RowsPiece:
    start: int = file.tell()  # type: ignore[attr-defined]
    with pa.ipc.new_stream(file, table.schema, options=_FORMAT) as writer:
        writer.write_table(table)
    return RowsPiece.of(table, lambda: _read(path, start))


def _read(path: Path, start: int) -> pa.Table:
    with pa.OSFile(str(path)) as file:
        file.seek(start)
        return pa.ipc.open_stream(file).read_all()


def _grouped(tables: list[pa.Table], most_bytes: int) -> Iterable[pa.Table]:
    """The same rows in tables of that size, or of one row that is larger."""
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
    """The rows of each table, in order."""
    if not rows.num_rows:
        return []
    names = rows.select(["schema", "table"]).group_by(["schema", "table"]).aggregate([]).to_pylist()
    if len(names) == 1:
        return [((names[0]["schema"], names[0]["table"]), rows)]
    compute = pa.compute
    found = []
    for name in names:
        mask = compute.and_(
            compute.equal(rows.column("schema"), name["schema"]), compute.equal(rows.column("table"), name["table"])
        )
        found.append(((name["schema"], name["table"]), rows.filter(mask)))
    return found
