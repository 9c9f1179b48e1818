"""SQLite's files are opened at their place, never through a link to somewhere else.

SQLite follows a link in the database's own name, so that is checked before and after. The files that it creates next to it, -wal,
-shm and -journal, it opens without following links, with the mode of the database and, as root, its owner. The files are only
examined by name: closing a descriptor of them would end the locks of this process's other connections.
"""

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Final

from relay.disk.file_calls import make_new_file, part_from_other_names, regular_file

SIDES: Final = ("-wal", "-shm")
"""The suffixes of the files that SQLite keeps next to a database."""
_LOOKED_AT: Final = (*SIDES, "-journal")
"""It looks for a -journal too, which it would roll back; opening a FIFO there would never end."""
_WAIT_S: Final = 10.0


def open_database(path: Path) -> sqlite3.Connection:
    """Open a database for reading and writing; an empty one is created if it is missing. A file with a second name is copied first.

    Raises: OSError, also for a link; sqlite3.Error.
    """
    for side in ("", *_LOOKED_AT):
        part_from_other_names(path.with_name(path.name + side))
    for side in _LOOKED_AT:
        with contextlib.suppress(FileNotFoundError):
            regular_file(path.with_name(path.name + side))
    with contextlib.suppress(FileExistsError):
        os.close(make_new_file(path))
    found = regular_file(path)
    return _checked(sqlite3.connect(path, isolation_level=None, timeout=_WAIT_S), path, found)


def open_database_to_read(path: Path) -> sqlite3.Connection:
    """Open a database to read it while another process may write it. Raises: FileNotFoundError; OSError, also for a link;
    sqlite3.Error."""
    found = regular_file(path)
    for side in _LOOKED_AT:
        with contextlib.suppress(FileNotFoundError):
            beside = path.with_name(path.name + side)
            # SQLite writes there even for a reader. Of another user than root the system asks for the rights to all names of a file.
            if regular_file(beside).st_nlink > 1 and os.geteuid() == 0:
                raise OSError(
                    1, "It has a second name, and root is not led to write there: remove one of them", str(beside)
                )
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return _checked(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_WAIT_S), path, found)


def _checked(db: sqlite3.Connection, path: Path, found: os.stat_result) -> sqlite3.Connection:
    """Check the opened database, of which nothing was read or written yet."""
    try:
        now = regular_file(path)
        if (now.st_dev, now.st_ino) != (found.st_dev, found.st_ino):
            raise OSError(1, "Another file was put in its place while it was opened", str(path))
    except BaseException:
        db.close()
        raise
    return db
