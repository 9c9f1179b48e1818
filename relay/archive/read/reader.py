"""Reading an archived file, up to what is published and no further."""

from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer


class FileReader:
    """An open archived file. Keeps its bytes readable even when the file is purged meanwhile. Close it, or use `with`.

    `fd` is for preads by the caller; nothing at or past `end()` may be looked at.
    """

    def __init__(self, layer: FileLayer, file: ArchivedFile, fd: int) -> None:
        self._layer = layer
        self.file = file
        self.fd = fd

    @property
    def name(self) -> str:
        """The file's name."""
        return self.file.name

    @property
    def size(self) -> int:
        """See `end`."""
        return self.file.end

    @property
    def sealed(self) -> bool:
        """Whether `end()` will not move any more."""
        return self.file.sealed

    def end(self) -> int:
        """Offset up to which the file may be read now. Never shrinks."""
        return self.file.end

    def read_into(self, view: memoryview, offset: int) -> int:
        """Fills `view` from `offset`, stopping at `end()`; returns the number of bytes (0: nothing there yet).

        Blocks for as long as the disk does; bytes that were just written come from memory.
        """
        count = min(len(view), self.file.end - offset)
        if count <= 0:
            return 0
        return self._layer.preadv(self.fd, [view[:count]], offset)

    def close(self) -> None:
        """Closes the descriptor; fine when closed already."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            self._layer.close(fd)

    def __enter__(self) -> "FileReader":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
