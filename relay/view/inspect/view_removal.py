"""A view's files are removed, so that they are rebuilt: a view is a function of the archive."""

import os
import stat
from pathlib import Path
from typing import Final

from protocol.errors import ExitCode, RelayError
from relay.archive.storage.directory_lock import take_lock
from relay.archive.storage.files import FileLayer
from relay.disk.file_calls import remove_tree
from relay.view.rules.kept_settings import VIEWS_DIRECTORY

_REMOVED_PREFIX: Final = ".removed-"


class NotRemoved(RelayError):
    """The directory is not one that a relay creates. `str()` says what is there."""

    exit_code = ExitCode.WRONG_USE


def remove_view(archive: Path, name: str, layer: FileLayer | None = None) -> bool:
    """Remove the files of a view, so that the next start rebuilds it; return False if there were none. Blocking.

    Nothing outside of its directory is touched: links are not followed. A crash meanwhile leaves no partial view.
    Raises: ArchiveLocked while a relay runs; NotRemoved; OSError.
    """
    layer = layer or FileLayer()
    fd = take_lock(archive, layer)
    try:
        return _remove(archive / VIEWS_DIRECTORY, name, layer)
    finally:
        os.close(fd)


def remove_leftover(archive: Path, name: str) -> None:
    """Remove the rest of a removal that a crash interrupted; nothing else would remove it. Blocking. Raises: NotRemoved; OSError."""
    removed = archive / VIEWS_DIRECTORY / f"{_REMOVED_PREFIX}{name}"
    if _is_directory(removed):
        remove_tree(removed)


def _remove(views: Path, name: str, layer: FileLayer) -> bool:
    if not _is_directory(views):
        return False
    removed = views / f"{_REMOVED_PREFIX}{name}"
    remove_leftover(views.parent, name)
    if not _is_directory(views / name):
        return False
    # A partial view would look like one whose files were lost.
    layer.rename(views / name, removed)
    layer.sync_directory(views)
    layer.remove_tree(removed)
    return True


def _is_directory(path: Path) -> bool:
    """Return whether it is a directory; False: it does not exist. Raises: NotRemoved for a link and everything else."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(mode):
        what = "a link, which is not followed" if stat.S_ISLNK(mode) else "no directory"
        raise NotRemoved(
            f"{path} is {what}. Nothing was removed. Look at it, and remove it yourself if it is not needed."
        )
    return True
