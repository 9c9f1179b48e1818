"""mysql-bin.index, the list of the archive's files that tools read."""

import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path

from relay.archive.storage.files import INDEX_NAME, FileLayer, replace_file, write_all
from relay.disk.file_calls import read_file


class FileList:
    """Adds a file, removes files. Any thread.

    Nothing of the archive depends on the list: a start rewrites it if it differs from the files. So a line that is added is not
    synced; one that a power failure tears, or a full disk, is repaired.
    """

    def __init__(self, directory: Path, layer: FileLayer) -> None:
        self._path = directory / INDEX_NAME
        self._layer = layer
        self._lock = threading.Lock()
        """Held while the list is changed: the writer adds to it, a purge removes from it."""

    def add(self, name: str) -> None:
        """Add a line at the end, unless that is the last one already: the cost is that of the line, however long the list is.

        Raises: OSError; then the list is as it was, as far as the disk allows.
        """
        line = _line(name)
        layer = self._layer
        with self._lock:
            if not layer.exists(self._path):
                replace_file(layer, self._path, line)
                return
            fd = layer.open_alone(self._path)
            try:
                size = layer.size(fd)
                if layer.pread(fd, len(line), max(0, size - len(line))) == line:
                    return
                try:
                    write_all(layer, fd, [line], size, len(line))
                except OSError:
                    with contextlib.suppress(OSError):
                        layer.truncate(fd, size)
                    raise
            finally:
                layer.close(fd)

    def remove(self, names: Sequence[str]) -> None:
        """Remove names, durably on return. Raises: OSError."""
        gone = set(map(_line, names))
        with self._lock:
            listed = read_file(self._path).splitlines(keepends=True) if self._layer.exists(self._path) else []
            kept = [line for line in listed if line not in gone]
            if len(kept) != len(listed):
                replace_file(self._layer, self._path, b"".join(kept))


def _line(name: str) -> bytes:
    return f"./{name}\n".encode()
