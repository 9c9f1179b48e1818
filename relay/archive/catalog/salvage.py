"""The rows of a damaged catalog that can still be believed, because their checksums are right.

Without them the whole archive would have to be read, and the digests that were recorded when files were sealed would be recomputed
from bytes that may have changed since.
"""

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_layout import SUMMED
from relay.archive.catalog.catalog_rows import row_sum
from relay.disk.database_file import SIDES, open_database
from relay.disk.file_calls import make_new_file, open_to_read

Rows = dict[object, tuple[Any, ...]]


def salvage(kept: Path, catalog: Catalog, gone: Collection[str]) -> int:
    """Copy the sound rows of the catalog that was `kept` aside into the new `catalog`; return how many files that knows then.

    gone: names of files that the ledger calls purged or missing; their rows may still exist. Blocking. Raises: CatalogUnreadable;
    sqlite3.Error, of the new one.
    """
    tables: dict[str, Rows] = {}
    # A copy: SQLite would put its log into the database, and remove the log.
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory() as place:
        copy = Path(place) / kept.name
        _copy(kept, copy)
        for suffix in SIDES[:1]:
            with contextlib.suppress(FileNotFoundError):
                _copy(kept.with_name(kept.name + suffix), copy.with_name(copy.name + suffix))
        tables = _sound_rows(copy)
    files = {number: row for number, row in tables.get("files", {}).items() if row[0] not in gone}
    numbers = set(files)
    # NULL stands for the state after the file before it, which may be recorded nowhere else.
    gtids = {
        number: row
        for number, row in tables.get("gtids", {}).items()
        if number in numbers and (row[1] is not None or _before(number) in numbers)
    }
    damage = [row for row in tables.get("damage", {}).values() if row[0] not in gone]
    catalog.take_over_files(list(files.values()), list(gtids.values()), damage)
    return len(files)


def _copy(kept: Path, copy: Path) -> None:
    with open(open_to_read(kept), "rb") as source, open(make_new_file(copy), "wb") as target:
        shutil.copyfileobj(source, target)


def _before(number: object) -> int:
    return number - 1 if isinstance(number, int) else -1


def _sound_rows(path: Path) -> dict[str, Rows]:
    keys: dict[str, Callable[[tuple[Any, ...]], object]] = {
        "files": lambda row: row[1],
        "gtids": lambda row: row[0],
        "damage": lambda row: row[:2],
    }
    found: dict[str, Rows] = {table: {} for table in keys}
    with contextlib.suppress(sqlite3.Error), contextlib.closing(open_database(path)) as db:
        for table, key in keys.items():
            # From both ends up to the page that cannot be read.
            for order in ("ASC", "DESC"):
                statement = f"SELECT {SUMMED[table]}, sum FROM {table} ORDER BY rowid {order}"  # noqa: S608
                with contextlib.suppress(sqlite3.Error, UnicodeError, OverflowError):
                    for *values, total in db.execute(statement):
                        row = (*values,)
                        if row_sum(row) == total:
                            found[table].setdefault(key(row), row)
    return found
