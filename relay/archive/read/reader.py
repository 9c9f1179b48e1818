"""Reading an archived file, up to what is published and no further."""

from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import StoredFile


class FileReader:
    """An open archived file. Its bytes stay readable even when the file is purged meanwhile. Close it, or use `with`."""

    def __init__(self, file: ArchivedFile, stored: StoredFile) -> None:
        self.file = file
        self._stored: StoredFile | None = stored

    @property
    def name(self) -> str:
        """The file's name."""
        return self.file.name

    @property
    def size(self) -> int:
        """The present `end`."""
        return self.file.end

    @property
    def sealed(self) -> bool:
        """True if `end()` will not move any more."""
        return self.file.sealed

    def end(self) -> int:
        """Return the offset up to which the file may be read now. It never shrinks."""
        return self.file.end

    def read_into(self, view: memoryview, offset: int) -> int:
        """Fill `view` from `offset`, stopping at `end()`; return the number of bytes (0: nothing there yet).

        It blocks for as long as the disk does; bytes that were just written come from memory.
        """
        count = min(len(view), self.file.end - offset)
        if count <= 0:
            return 0
        assert self._stored is not None, "it is closed"
        return self._stored.read_into(view[:count], offset)

    def close(self) -> None:
        """Close the descriptor; a closed one is ignored."""
        if self._stored is not None:
            stored, self._stored = self._stored, None
            stored.close()

    def __enter__(self) -> "FileReader":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
