"""The files that an export may read, oldest first over all generations, and up to where each contains whole transactions."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from protocol.binlog.layout import FIRST_EVENT
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.boundary_index import BoundaryIndex, index_path
from relay.archive.storage.files import CATALOG_NAME, FileLayer, StoredFile
from relay.archive.storage.scan import scan
from relay.binlog_file.broken import Broken


@dataclass(frozen=True, slots=True)
class ReadableFile:
    """An archived file. `stop` is the end of its last whole transaction; `size` is the number of its bytes, after which nothing is
    read.

    The two differ if the source's crash cut the last transaction, and in the file that grows.
    """

    generation: int
    path: Path
    file: ArchivedFile
    stop: int
    size: int

    @property
    def name(self) -> str:
        """The name that the source gave it."""
        return self.file.name


def readable_files(directory: Path, layer: FileLayer) -> list[ReadableFile]:
    """Return all files of the archive in `directory`, or of a view. It works beside a running relay. Blocking.

    Raises: CatalogUnreadable; OSError.
    """
    found = []
    for number, path in begun_generations(directory):
        for file in _files(path):
            place = path / file.name
            size, stop = file.end, file.end
            if not file.sealed:
                # Its end is written to the catalog once a second.
                with contextlib.suppress(FileNotFoundError):
                    size = max(file.end, layer.size_of(place))
            if not file.sealed or file.cut:
                stop = whole_end(layer, place, size)
            found.append(ReadableFile(number, place, file, stop, size))
    return found


def _files(directory: Path) -> Sequence[ArchivedFile]:
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        return catalog.files()
    finally:
        catalog.close()


def whole_end(layer: FileLayer, path: Path, size: int) -> int:
    """Return the end of the last whole transaction before `size`. Blocking. Raises: OSError."""
    start = FIRST_EVENT
    with contextlib.suppress(OSError, IndexError):
        fd = layer.open_read(index_path(path))
        try:
            index = BoundaryIndex(layer, fd)
            number = index.last_at_or_before(size)
            record = index.record(number) if number >= 0 else None
            if record is not None and record.plausible:
                start = record.group_start
        finally:
            layer.close(fd)
    with StoredFile.open(layer, path) as stored:
        if size <= FIRST_EVENT:
            return FIRST_EVENT
        try:
            return scan(stored, start, size).boundary
        except Broken:
            return FIRST_EVENT
