"""The directories of an archive's generations: the first in the archive's directory itself, each later one in `g0002`, ... in it.

Each is a complete archive directory, with a catalog and plain binlogs of one source. A generation begins with its first binlog: until
that is in place its directory is only prepared, and after a crash it is removed.
"""

import contextlib
import errno
import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from protocol.position import is_binlog_name
from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.ledger_records import read_record
from relay.archive.catalog.ledger_text import read_lines
from relay.archive.storage.archive_errors import ArchiveMisuse
from relay.archive.storage.files import CATALOG_NAME, LEDGER_TEXT_NAME, PURGE_NAME, FileLayer
from relay.archive.storage.ledger_kinds import FILE_MISSING, PURGED
from relay.archive.storage.storage_location import PLACE_SUFFIX

_NAME: Final = re.compile(r"g([0-9]{4,9})")
FIRST: Final = 1
BEGUN: Final = "generation_begun"
"""The ledger's kind of a generation's first row, which is written before its first file."""
ENDED: Final = "generation_ended"
"""The ledger's kind for the end of a generation."""
_HAD_FILES: Final = frozenset({ENDED, PURGED, FILE_MISSING})
"""Kinds that a ledger has only if there was a binlog. Any other row may be of an attempt that came to none: a full disk."""

_DAMAGED: Final = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""SQLite's errors for a file that is no catalog: missing tables, bytes that cannot be."""


def generation_path(directory: Path, number: int) -> Path:
    """Return the directory of generation `number` of the archive in `directory`."""
    return directory if number == FIRST else directory / _name_of(number)


def _name_of(number: int) -> str:
    return f"g{number:04d}"


def generation_numbers(directories: Iterable[str]) -> list[int]:
    """Return all existing generations, also emptied and prepared ones, oldest first. directories: the archive's directories."""
    found = [FIRST]
    for name in directories:
        match = _NAME.fullmatch(name)
        if match is not None and int(match[1]) > FIRST and _name_of(int(match[1])) == name:
            found.append(int(match[1]))
    return sorted(found)


def is_prepared_only(path: Path, layer: FileLayer) -> bool:
    """Return whether a generation never began in this directory: no binlog is or was in it. Blocking.

    Raises: OSError, also if that cannot be determined just now.
    """
    names = layer.names(path)
    # In an archive that was rebuilt from a bucket all binlogs may be there, and only NAME.place is here.
    if any(is_binlog_name(name.removesuffix(PLACE_SUFFIX)) or name == PURGE_NAME for name in names):
        return False
    if LEDGER_TEXT_NAME in names and _tells_of_files(path / LEDGER_TEXT_NAME, layer):
        return False
    if CATALOG_NAME not in names:
        return True
    try:
        catalog = Catalog.open_read_only(path / CATALOG_NAME)
        try:
            return not catalog.files() and not catalog.count_ledger().keys() & _HAD_FILES
        finally:
            catalog.close()
    except (CatalogUnreadable, sqlite3.DatabaseError) as error:
        # A crash during its creation leaves it without its tables. A damaged one of a generation without binlogs says
        # nothing either. But one that is busy, or that could not be opened, may have the ledger of files that were purged.
        reason = error.__cause__ or error
        if isinstance(reason, OSError) and not isinstance(reason, FileNotFoundError):
            raise reason from error
        code = getattr(reason, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the low byte is the primary code
        if code in _DAMAGED or not layer.exists(path / CATALOG_NAME):
            return True
        raise OSError(errno.EIO, f"the catalog cannot be read: {reason}", str(path / CATALOG_NAME)) from error


def _tells_of_files(text: Path, layer: FileLayer) -> bool:
    """Return whether the ledger's copy as text has a row that exists only if there was a binlog."""
    found = (read_record(line) for _offset, line in read_lines(layer, text).lines)
    return any(isinstance(row, LedgerRow) and row.kind in _HAD_FILES for row in found)


def begun_generations(directory: Path, layer: FileLayer | None = None) -> list[tuple[int, Path]]:
    """Return the number and directory of each generation that has begun, oldest first; a relay may be running. Blocking.

    Raises: OSError.
    """
    layer = layer or FileLayer()
    found = []
    for number in generation_numbers(layer.listed(directory).directories):
        path = generation_path(directory, number)
        with contextlib.suppress(FileNotFoundError):  # the relay takes back what it had prepared
            if number == FIRST or not is_prepared_only(path, layer):
                found.append((number, path))
    return found


def remove_prepared(directory: Path, number: int, layer: FileLayer) -> None:
    """Remove the directory of a generation that never began. Blocking. Raises: OSError; ArchiveMisuse if it has begun."""
    path = generation_path(directory, number)
    if number == FIRST or not is_prepared_only(path, layer):
        raise ArchiveMisuse(f"generation {number} has begun and is not removed")
    for name in layer.names(path):
        layer.unlink(path / name)
    layer.remove_directory(path)
    layer.sync_directory(directory)
