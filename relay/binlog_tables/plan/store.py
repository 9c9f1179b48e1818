"""The storage of binlogs: local directories, or any file system that fsspec knows, with the same few calls."""

import glob
import os
import stat
from collections.abc import Sequence
from typing import Any, Protocol

from relay.binlog_file.file_bytes import FileBytes


class Reader(FileBytes, Protocol):
    """An open file. `size` is as of opening."""

    def close(self) -> None:
        """Close the file."""


class Store(Protocol):
    """A file system. Paths are texts, because they are sent to other machines."""

    def is_directory(self, path: str) -> bool:
        """Return whether there is a directory at `path`."""

    def is_file(self, path: str) -> bool:
        """Return whether there is a file at `path`."""

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted."""

    def matching(self, pattern: str) -> list[str]:
        """Return the files that a pattern with * and ? names, sorted."""

    def join(self, directory: str, name: str) -> str:
        """Return the path of `name` in `directory`."""

    def open(self, path: str) -> Reader:
        """Open a file for reading. Raises: OSError."""


def plain_path(path: str) -> str:
    """Return a local path without its `file:` prefix; anything else unchanged."""
    for prefix in ("file://", "file:"):
        if path.startswith(prefix):
            return path.removeprefix(prefix)
    return path


def whole_path(path: str) -> str:
    """Return a local path as an absolute one, for processes that work in other directories; a URL unchanged."""
    return path if "://" in path or path.startswith("file:") else os.path.abspath(path)


def has_password(path: str) -> bool:
    """Return whether a path is a URL with a user's password, or a key's secret, before the host."""
    _scheme, mark, rest = path.partition("://")
    return bool(mark) and ":" in rest.partition("/")[0].rpartition("@")[0]


class LocalReader:
    """A local file, read by position."""

    def __init__(self, path: str) -> None:
        # O_NONBLOCK prevents waiting for a pipe without a writer
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(self._fd)
        self.size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            raise OSError(f"{path} is no regular file")

    def read_into(self, view: memoryview, offset: int) -> int:
        """Read at `offset`."""
        return os.preadv(self._fd, [view], offset)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class LocalStore:
    """The machine's own files."""

    def is_directory(self, path: str) -> bool:
        """Return whether there is a directory at `path`."""
        return os.path.isdir(plain_path(path))

    def is_file(self, path: str) -> bool:
        """Return whether there is something to read at `path`."""
        return os.path.exists(plain_path(path)) and not self.is_directory(path)

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted."""
        return sorted(os.listdir(plain_path(directory)))

    def matching(self, pattern: str) -> list[str]:
        """Return the files that a pattern names, sorted."""
        return sorted(path for path in glob.glob(plain_path(pattern)) if os.path.isfile(path))

    def join(self, directory: str, name: str) -> str:
        """Return the path of `name` in `directory`."""
        return os.path.join(plain_path(directory), name)

    def open(self, path: str) -> Reader:
        """Open a file for reading."""
        return LocalReader(plain_path(path))


class RemoteReader:
    """A file of an fsspec file system."""

    def __init__(self, file: Any, size: int) -> None:
        self._file = file
        self.size = size

    def read_into(self, view: memoryview, offset: int) -> int:
        """Read at `offset`."""
        self._file.seek(offset)
        return int(self._file.readinto(view))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class RemoteStore:
    """A file system that fsspec knows by a URL's scheme: s3, gs, abfs, hdfs, memory ..."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise ImportError(
                f"reading {url} needs fsspec and the package of its file system: pip install fsspec (s3fs, gcsfs ...). "
                "For s3, gs and az obstore will do."
            ) from None
        self._system, _ = url_to_fs(url)

    def is_directory(self, path: str) -> bool:
        """Return whether there is a directory at `path`."""
        return bool(self._system.isdir(path))

    def is_file(self, path: str) -> bool:
        """Return whether there is a file at `path`."""
        return bool(self._system.isfile(path))

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted."""
        return sorted(str(path).rstrip("/").rpartition("/")[2] for path in self._system.ls(directory, detail=False))

    def matching(self, pattern: str) -> list[str]:
        """Return the files that a pattern names, sorted."""
        found: Sequence[str] = self._system.glob(pattern)
        return sorted(self._system.unstrip_protocol(path) for path in found)

    def join(self, directory: str, name: str) -> str:
        """Return the path of `name` in `directory`."""
        return f"{directory.rstrip('/')}/{name}"

    def open(self, path: str) -> Reader:
        """Open a file for reading."""
        return RemoteReader(self._system.open(path, "rb"), int(self._system.size(path)))
