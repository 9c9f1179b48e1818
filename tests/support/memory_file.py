"""Binlogs in memory, in place of files of an archive."""

from relay.view.inspect.file_pass import LookedAtFile


class MemoryFile:
    """An open file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read_into(self, view: memoryview, offset: int) -> int:
        """Return how many bytes were read."""
        piece = self._data[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    def read(self) -> bytes:
        """Return all of it."""
        return self._data

    def close(self) -> None:
        """Do nothing."""


def looked_at(name: str, data: bytes) -> LookedAtFile:
    """Return a file that is searched for what stops a view."""
    return LookedAtFile(name, len(data), lambda: MemoryFile(data))
