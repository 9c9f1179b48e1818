"""A catalog that cannot be read is kept under another name: `catalog.sqlite.corrupt-SECONDS`, its -wal and -shm likewise.

The file of that name is itself the evidence, so a crash after the first rename hides nothing.
"""

import os
import re
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from relay.archive.storage.files import CATALOG_NAME
from relay.disk.database_file import SIDES
from relay.disk.file_calls import rename

_KEPT: Final = re.compile(re.escape(CATALOG_NAME) + r"\.corrupt-([0-9]+)")


def kept_catalogs(names: Iterable[str]) -> list[str]:
    """Return those of `names` that are catalogs kept aside, oldest first."""
    found = [match for name in names if (match := _KEPT.fullmatch(name)) is not None]
    return [match[0] for match in sorted(found, key=lambda match: int(match[1]))]


def set_catalog_aside(path: Path) -> str:
    """Rename the catalog, then its -wal and -shm, to a free name in the same directory; return that name. Raises: OSError."""
    serial = int(time.time())
    while os.path.lexists(target := path.with_name(f"{path.name}.corrupt-{serial}")):
        serial += 1
    rename(path, target)
    for suffix in SIDES:
        side = path.with_name(path.name + suffix)
        if os.path.lexists(side):
            rename(side, target.with_name(target.name + suffix))
    return target.name


def finish_setting_aside(directory: Path, names: Collection[str]) -> None:
    """Rename a -wal or -shm that a crash left without its catalog after that catalog. `names`: of `directory`. Raises: OSError.

    SQLite would remove them when it creates a new catalog.
    """
    if CATALOG_NAME in names:
        return
    kept = kept_catalogs(names)
    for suffix in SIDES:
        without = [name for name in kept if name + suffix not in names]
        if CATALOG_NAME + suffix in names and without:
            rename(directory / (CATALOG_NAME + suffix), directory / (without[-1] + suffix))
