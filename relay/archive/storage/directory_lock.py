"""The lock with which only one process has an archive directory open for writing."""

import fcntl
import os
from pathlib import Path

from relay.archive.storage.archive_errors import ArchiveLocked
from relay.archive.storage.files import LOCK_NAME, FileLayer


def take_lock(directory: Path, layer: FileLayer) -> int:
    """Lock the archive directory for this process; closing the descriptor unlocks. Raises: ArchiveLocked."""
    path = directory / LOCK_NAME
    fd = layer.open_or_make(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise ArchiveLocked(
            f"another process has {directory} open", advice="Only one relay may write an archive: stop the other one."
        ) from error
    return fd
