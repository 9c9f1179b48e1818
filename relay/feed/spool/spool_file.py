"""A file of consecutive Arrow tables, each of which can be read alone."""

from collections.abc import Callable
from os import SEEK_END
from pathlib import Path
from typing import Final

import pyarrow as pa

from relay.disk.file_calls import SECRET_MODE, open_or_make, remove_file
from relay.feed.spool.spool_directory import SpoolDirectory

_FORMAT: Final = pa.ipc.IpcWriteOptions(compression="lz4")


class SpoolFile:
    """A file that is created at the first write and removed when it is closed."""

    def __init__(self, directory: SpoolDirectory) -> None:
        self._directory = directory
        self._path: Path | None = None

    def write(self, table: pa.Table) -> Callable[[], pa.Table]:
        """Write a table and return a function that reads it again. Raises: SpoolFull."""
        if self._path is None:
            self._path = self._directory.new_file()
        path = self._path
        with self._directory.told_when_full(), open(open_or_make(path, SECRET_MODE), "r+b") as file:
            start = file.seek(0, SEEK_END)
            with pa.ipc.new_stream(file, table.schema, options=_FORMAT) as writer:
                writer.write_table(table)
        return lambda: _read(path, start)

    def close(self) -> None:
        """Remove the file."""
        if self._path is not None:
            remove_file(self._path)
            self._path = None


def _read(path: Path, start: int) -> pa.Table:
    with pa.OSFile(str(path)) as file:
        file.seek(start)
        return pa.ipc.open_stream(file).read_all()
