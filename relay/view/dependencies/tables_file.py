"""`NAME.tables.jsonl` beside a view's directory: the known tables of the source, for a view that says which transactions wait for
which.

It belongs to the archive and not to the view: a view that is removed is rebuilt with it, byte by byte. Its lines are those of
`source-schema.jsonl`; relay/view/dependencies/planned_tables.py says what they mean to a view. Lines are appended and synced. Lines
that concern only binlogs that the archive has purged are left out now and then: the file is rewritten, and replaced as a whole.
"""

from pathlib import Path

from protocol.position import binlog_number
from relay.archive.storage.files import SCHEMA_NAME, FileLayer, replace_file, write_all
from relay.disk.file_calls import read_file
from relay.schema_history.schema_facts import Place
from relay.schema_history.schema_file import recorded_lines
from relay.schema_history.schema_record import parse_lines
from relay.view.dependencies.planned_tables import PlannedTables, shortened, taken_lines


def tables_path(made: Path, view: str) -> Path:
    """Return the path for the generation of the view in the directory `made`."""
    if made.name == view:
        return made.with_name(f"{view}.tables.jsonl")
    return made.parent.with_name(f"{view}.{made.name}.tables.jsonl")


def read_tables(made: Path, view: str) -> PlannedTables:
    """Return the stored tables; without a file nothing is known. Blocking. Raises: OSError."""
    try:
        data = read_file(tables_path(made, view))
    except FileNotFoundError:
        data = b""
    return PlannedTables(parse_lines(data))


def tables_now(source: Path, file: str, place: Place) -> PlannedTables:
    """Return the tables that a view beginning here now knows. `source`: the archive generation's directory. Blocking. Raises:
    OSError.
    """
    return PlannedTables(parse_lines("".join(taken_lines(recorded_lines(source), file, place)).encode()))


class TablesFile:
    """The file of a view that is being built. Blocking. Raises: OSError."""

    def __init__(self, made: Path, view: str, source: Path, layer: FileLayer) -> None:
        """Use `made`, the directory of the view's generation, and `source`, that of the archive's."""
        self.path = tables_path(made, view)
        self._source = source
        self._layer = layer

    def open(self, file: str, place: Place) -> PlannedTables:
        """Return the stored tables; the first time, where the view begins at this place of `file`, those that are recorded now."""
        if not self.path.exists():
            lines = taken_lines(recorded_lines(self._source), file, place)
            replace_file(self._layer, self.path, "".join(lines).encode())
        return PlannedTables(parse_lines(read_file(self.path)))

    def recorded_now(self) -> tuple[int, int]:
        """Return a value that changes when the records change."""
        try:
            told = (self._source / SCHEMA_NAME).stat()
        except FileNotFoundError:
            return 0, 0
        return told.st_size, told.st_mtime_ns

    def adopt(self, tables: PlannedTables, file: str, place: Place) -> None:
        """Take the current records of unknown tables, at a place after which nothing is built. They are on the disk on return."""
        tables.adopt(file, place, recorded_lines(self._source))
        self.save(tables)

    def without_purged(self, tables: PlannedTables, oldest: str) -> PlannedTables:
        """Return `tables`, or a shorter equivalent from the beginning of the file `oldest` on: nothing is built any more from before
        it. It is on the disk on return."""
        place = (binlog_number(oldest), 0)
        if not tables.is_long_before(place):
            return tables
        self.save(tables)
        lines = shortened(list(parse_lines(read_file(self.path))), oldest, place)
        replace_file(self._layer, self.path, "".join(lines).encode())
        made = PlannedTables(parse_lines(read_file(self.path)))
        made.lacks_some = tables.lacks_some
        return made

    def save(self, tables: PlannedTables) -> None:
        """Store the unsaved lines. On return they are on the disk."""
        data = "".join(tables.unsaved).encode()
        if not data:
            return
        fd = self._layer.open_alone(self.path)
        try:
            kept = read_file(self.path)
            size = kept.rfind(b"\n") + 1  # the rest of a failed write may follow
            write_all(self._layer, fd, [data], size, len(data))
            self._layer.truncate(fd, size + len(data))
            self._layer.sync_data(fd)
        finally:
            self._layer.close(fd)
        tables.unsaved.clear()
