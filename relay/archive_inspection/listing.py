"""An archive seen from outside of the process that writes it: the contents of its catalog, and rebuilding that."""

import contextlib
import os
from collections import Counter
from pathlib import Path

from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.generation_directories import FIRST, begun_generations
from relay.archive.gaps.accepted_gap import AcceptedGap, GapUnreadable, gap_before
from relay.archive.recovery.recovery import Recovered, Recovery
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.directory_lock import take_lock
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.archive.storage.rebuild_index import Progress
from relay.packed_reads.archive_layer import layer_of


def list_archive(directory: Path) -> list[ArchivedFile]:
    """Return the files as the catalog knows them (the open one up to its last checkpoint). The relay may be running.

    Raises: CatalogUnreadable.
    """
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        return catalog.files()
    finally:
        catalog.close()


def damaged_places(directory: Path) -> dict[tuple[int, str], int]:
    """Return, by generation and file, the first byte that is known to be wrong. The relay may be running. Blocking.

    Raises: CatalogUnreadable; sqlite3.Error; OSError.
    """
    places: dict[tuple[int, str], int] = {}
    for number, path in begun_generations(directory):
        catalog = Catalog.open_read_only(path / CATALOG_NAME)
        try:
            for place in catalog.damaged_places():
                places.setdefault((number, place.file), place.offset)
        finally:
            catalog.close()
    return places


def read_ledger(directory: Path) -> list[LedgerRow]:
    """Return all ledger rows, oldest first. The relay may be running. Raises: CatalogUnreadable."""
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        return catalog.ledger()
    finally:
        catalog.close()


def count_ledger(directory: Path) -> dict[str, int]:
    """Return the number of ledger rows by kind. The relay may be running. Blocking. Raises: CatalogUnreadable, sqlite3.Error."""
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        return catalog.count_ledger()
    finally:
        catalog.close()


def list_generations(directory: Path) -> list[tuple[int, list[ArchivedFile]]]:
    """Return the number and the files of each generation, oldest first. The relay may be running. Blocking.

    Raises: CatalogUnreadable; OSError.
    """
    return [(number, list_archive(path)) for number, path in begun_generations(directory)]


def gaps_before(directory: Path) -> list[tuple[int, AcceptedGap]]:
    """Return the accepted gaps, each with the number of the generation after it; unreadable ones are left out.

    The relay may be running. Blocking. Raises: OSError.
    """
    found = []
    for number, path in begun_generations(directory):
        with contextlib.suppress(GapUnreadable):
            gap = gap_before(path) if number != FIRST else None
            if gap is not None:
                found.append((number, gap))
    return found


def read_ledgers(directory: Path) -> list[tuple[int, LedgerRow]]:
    """Return the ledger rows of all generations, each with the number of its generation, oldest first. The relay may be running.

    Blocking. Raises: CatalogUnreadable; OSError.
    """
    rows = [(number, row) for number, path in begun_generations(directory) for row in read_ledger(path)]
    return sorted(rows, key=lambda numbered: numbered[1].time)


def count_ledgers(directory: Path) -> dict[str, int]:
    """Return the number of rows of all generations by kind. The relay may be running. Blocking. Raises: as `count_ledger`; OSError."""
    counts: Counter[str] = Counter()
    for _number, path in begun_generations(directory):
        counts.update(count_ledger(path))
    return dict(counts)


def newest_ledger_rows(directory: Path, count: int) -> list[tuple[int, LedgerRow]]:
    """Return the newest rows of all generations together, each with the number of its generation, newest first.

    The relay may be running. Blocking. Raises: as `count_ledgers`.
    """
    found: list[tuple[int, LedgerRow]] = []
    for number, path in begun_generations(directory):
        catalog = Catalog.open_read_only(path / CATALOG_NAME)
        try:
            found += [(number, row) for row in catalog.newest_ledger_rows(count)]
        finally:
            catalog.close()
    return sorted(found, key=lambda numbered: numbered[1].time, reverse=True)[:count]


def rebuild_archive(directory: Path, on_progress: Progress | None = None, layer: FileLayer | None = None) -> Recovered:
    """Rebuild catalog rows and indexes from the binlogs alone; the ledger and the identity stay. Blocking.

    Raises: ArchiveLocked while a relay runs; ArchiveError; OSError.
    """
    layer = layer or layer_of(directory)
    if not directory.is_dir():
        raise ArchiveError(f"there is no archive in {directory}")
    fd = take_lock(directory, layer)
    try:
        return Recovery(directory, layer, on_progress).run(force=True)
    finally:
        os.close(fd)
