"""A directory that exists with all of its files, or not at all."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from protocol.errors import RelayError
from relay.archive.storage.files import FileLayer
from relay.disk.file_calls import open_directory, remove_file, remove_tree


class DirectoryBusy(RelayError):
    """Another process is creating the same directory."""


@contextlib.contextmanager
def whole_directory(making: Path, target: Path) -> Iterator[None]:
    """Rename `making`, which exists, to `target` after the block, durably; after an error it is removed.

    Both are in one directory, and `target` is missing or empty. The contents of `making` are left from an earlier run that was
    killed, and are removed first. Raises: DirectoryBusy; OSError.
    """
    layer = FileLayer()
    fd = open_directory(making)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DirectoryBusy from None
        _empty(making)
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                _empty(making)
                layer.remove_directory(making)
            raise
        os.fsync(fd)
        # An empty directory is replaced.
        layer.rename(making, target)
        layer.sync_directory(target.parent)
    finally:
        os.close(fd)


def _empty(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            remove_file(path)
