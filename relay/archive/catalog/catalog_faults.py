"""The meaning of an SQLite error for the catalog: damage, which a new catalog cures, or a disk or a permission that refuses."""

import errno
import os
import sqlite3
from pathlib import Path
from typing import Final

SQLITE_NEEDS_BYTES: Final = 65536
"""Less room than this on a disk explains an I/O error: its shared memory grows by 32 KiB."""

_DAMAGE: Final = frozenset(
    {
        sqlite3.SQLITE_ERROR,  # missing tables or columns
        sqlite3.SQLITE_INTERNAL,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_RANGE,
        sqlite3.SQLITE_NOTADB,
    }
)
_UNREADABLE_BYTES: Final = frozenset(
    {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS}
)
_REFUSED: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN})


def is_damage(error: BaseException, path: Path) -> bool:
    """Return whether the error says that the bytes of the catalog at `path` are not what SQLite wrote; False for, say, a full disk."""
    if isinstance(error, UnicodeError | OverflowError):
        return True  # a name in a message, a number that no column can have
    if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, sqlite3.ProgrammingError):
        return False
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return True  # the Python module's own: a text that is not UTF-8
    if code in _UNREADABLE_BYTES:
        return True
    if code & 0xFF == sqlite3.SQLITE_READONLY:
        # One byte of the header says that only newer versions of SQLite may write it.
        return os.access(path, os.W_OK) and not _read_only(path)
    return code & 0xFF in _DAMAGE  # the low byte is SQLite's primary code


def system_number(error: Exception, path: Path, room_bytes: int) -> int:
    """Return the errno, also for SQLite's own codes about a disk that refuses; 0 if there is none."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        # If even its memory index finds no room, SQLite reports an I/O error (SQLITE_IOERR_SHMSIZE) and no more.
        if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and room_bytes < SQLITE_NEEDS_BYTES):
            return errno.ENOSPC
        if code == sqlite3.SQLITE_IOERR:
            return errno.EIO
        if code in _REFUSED:
            return errno.EROFS if _read_only(path) else _refusal(path)
    return getattr(error, "errno", 0) or 0


def _refusal(path: Path) -> int:
    if path.is_dir():
        return errno.EISDIR
    for place, wanted in ((path.parent, os.R_OK | os.W_OK | os.X_OK), (path, os.R_OK | os.W_OK)):
        if place.exists() and not os.access(place, wanted):
            return errno.EACCES
    return 0


def _read_only(path: Path) -> bool:
    try:
        return bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False
