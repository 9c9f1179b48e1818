"""Rebuilding NAME.idx from the file that it belongs to."""

from collections.abc import Callable
from pathlib import Path

from protocol.binlog.layout import FIRST_EVENT
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.boundary_index import index_path
from relay.archive.storage.files import FileLayer, StoredFile, replace_file
from relay.archive.storage.scan import scan

Progress = Callable[[str, int], None]
"""Called with a file's name and the number of its bytes that were read since the last call. May run in another thread."""


def rebuild_index(directory: Path, layer: FileLayer, file: ArchivedFile, progress: Progress | None = None) -> None:
    """Rebuild a sealed file's NAME.idx from its bytes.

    Raises: ArchiveDamaged if the file itself cannot be read up to its end.
    """
    path = directory / file.name
    on_progress = None if progress is None else (lambda count: progress(file.name, count))
    with StoredFile.open(layer, path) as stored:
        result = scan(stored, FIRST_EVENT, file.end, on_progress=on_progress)
    if result.fault is not None:
        raise ArchiveDamaged(result.fault, file=file.name, offset=result.position, boundary=result.boundary)
    replace_file(layer, index_path(path), result.records)
