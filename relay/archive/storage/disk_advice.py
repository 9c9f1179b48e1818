"""The advice for a disk that refuses: the sentence for its error, with facts about the disk."""

import errno as errno_numbers
from pathlib import Path
from typing import Final

from relay.archive.storage.archive_errors import DISK_ADVICE
from relay.archive.storage.files import FileLayer

NO_INODES: Final = (
    "The file system has no inodes left (`df -i` shows them): it takes no new file, however much space is free. Purge "
    "archived files, each has three, or remove others there."
)
_BY_ITSELF: Final = "The relay goes on by itself then."
NOT_PERMITTED: Final = (
    "The relay's user may not write there: look at owner and mode (`ls -l`), give the archive to the relay's user "
    "(`chown -R`), and do not run the relay or `archive rebuild` as another user."
)


def disk_advice(layer: FileLayer, directory: Path, errno: int) -> str:
    """Return the next step for a system error `errno` under `directory`, "" if none is known. Blocking."""
    if errno == errno_numbers.ENOSPC and _out_of_inodes(layer, directory):
        return f"{NO_INODES} {_BY_ITSELF}"
    if errno in (errno_numbers.EACCES, errno_numbers.EPERM):
        return NOT_PERMITTED
    return DISK_ADVICE.get(errno, "")


def start_advice(layer: FileLayer, directory: Path, errno: int) -> str:
    """Return the next step if an archive in `directory` cannot be opened. Blocking."""
    advice = f"Check space, permissions and the disk under {directory}."
    if errno == errno_numbers.ENOSPC and _out_of_inodes(layer, directory):
        return f"{advice} {NO_INODES}"
    if errno in (errno_numbers.EACCES, errno_numbers.EPERM):
        return f"{advice} {NOT_PERMITTED}"
    return advice


def _out_of_inodes(layer: FileLayer, directory: Path) -> bool:
    try:
        return layer.free_inodes(directory) == 0
    except OSError:
        return False
