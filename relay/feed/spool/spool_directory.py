"""The directory in which a feed keeps what does not fit into memory. It is removed when the feed ends, or when the next one begins."""

import errno
import fcntl
import os
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

import duckdb

from protocol.errors import RelayError
from relay.disk.file_calls import SECRET_MODE, make_new_file, open_to_read, remove_tree

_PREFIX: Final = "binlog-relay-feed."
_LOCK: Final = "in-use"
_UNLOCKED_S: Final = 3600
"""A younger directory without a lock is one that is being created."""
_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_FULL_TEXTS: Final = ("No space left", "Disk quota exceeded", "max_temp_directory_size", "File too large")


class SpoolFull(RelayError, OSError):
    """The disk of the spool directory `file` is full. Nothing of the batch is in the lake.

    It is an OSError too, like every other reason why a disk accepts no more data: it is retried.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(
            "The disk is full where the feed keeps what does not fit into memory; nothing of this batch is in the lake, and what was "
            "written there is removed",
            "Make room, or set `spool_directory` in feed.toml to a larger disk: it takes twice the size of the largest transaction, "
            "and more for packed ones",
            file=str(path),
        )
        self.errno = errno.ENOSPC


class SpoolDirectory:
    """A new directory below `parent`, locked while the process lives; those of feeds that died there are removed. Raises: OSError."""

    def __init__(self, parent: str | Path) -> None:
        self.parent = Path(parent)
        try:
            remove_left_over(self.parent)
            self.path, lock = _made(self.parent)
        except OSError as error:
            raise _told(error, self.parent) from None
        self._numbers = count(1)
        # This also applies if it is never closed, at the end of the process.
        self._remove = weakref.finalize(self, _removed, self.path, lock)

    def new_file(self) -> Path:
        """Return a path for a file that does not exist yet."""
        return self.path / f"rows-{next(self._numbers)}"

    @contextmanager
    def told_when_full(self) -> Iterator[None]:
        """Report a full disk with the directory's name. Raises: SpoolFull."""
        try:
            yield
        except OSError as error:
            told = _told(error, self.path)
            if told is error:
                raise
            raise told from None
        except duckdb.Error as error:
            if not any(one in str(error) for one in _FULL_TEXTS):
                raise
            raise SpoolFull(self.path) from None

    def close(self) -> None:
        """Remove the directory with its content."""
        self._remove()


def remove_left_over(parent: Path) -> list[Path]:
    """Remove the directories of feeds that were killed, whose lock is free, and return them."""
    gone = []
    for one in sorted(parent.glob(_PREFIX + "*")):
        with suppress(OSError):  # another feed removes it, or it is another user's
            if _is_left_over(one):
                remove_tree(one)
                gone.append(one)
    return gone


def _is_left_over(directory: Path) -> bool:
    try:
        with open(open_to_read(directory / _LOCK), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except FileNotFoundError:
        return time.time() - directory.stat().st_mtime > _UNLOCKED_S
    except BlockingIOError:
        return False


def _made(parent: Path) -> tuple[Path, int]:
    """Create a directory and its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        lock = make_new_file(path / _LOCK, SECRET_MODE)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.stat(path / _LOCK).st_ino == os.fstat(lock).st_ino:
                return path, lock
        os.close(lock)  # another feed took it for a leftover before it was locked


def _removed(path: Path, lock: int) -> None:
    with suppress(OSError):
        remove_tree(path)
    os.close(lock)


def _told(error: OSError, path: Path) -> OSError:
    text = str(error)
    full = error.errno in _FULL or any(one in text for one in _FULL_TEXTS)
    return SpoolFull(path) if full else error
