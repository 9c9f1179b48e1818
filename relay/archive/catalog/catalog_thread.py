"""The thread that writes the catalog: changes one after another, off the event loop."""

import contextlib
import errno
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.catalog.catalog_faults import SQLITE_NEEDS_BYTES, is_damage, system_number
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.remake import instead_of_damaged, instead_of_lost
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.disk_advice import disk_advice
from relay.archive.storage.files import FileLayer
from relay.process.background import tell_fault

_MOST_REMADE: Final = 3
_REMADE_WITHIN_S: Final = 3600.0
"""A disk that damages each new catalog would be filled with the ones that are kept aside: then it is a failure of the disk."""
_WRITE_WAIT_S: Final = 5.0


class CatalogThread:
    """Runs catalog changes one after another in a thread of their own.

    A change that fails stays first in line and `on_failure` is called (in this thread) with an ArchiveWriteError; no later one
    overtakes it. `retry` tries again. The line is bounded by its producers: one checkpoint a second, a few rows per file.

    A catalog that turns out to be damaged, or whose file is missing, is rebuilt, and the line continues: `on_remade` is called (in
    this thread) with the ledger rows that report it. Files are then missing in it, which the caller adds by `add_missing_files`.
    """

    def __init__(
        self,
        path: Path,
        layer: FileLayer,
        on_failure: Callable[[ArchiveWriteError], None],
        on_remade: Callable[[list[LedgerRow]], None] = lambda rows: None,
    ) -> None:
        self._path = path
        self._layer = layer
        self._on_failure = on_failure
        self._on_remade = on_remade
        self._catalog: Catalog | None = None
        self._inode: int | None = None
        self._size = 0
        self._remade_s: list[float] = []
        """The times when it was rebuilt, by the monotonic clock."""
        self._was_there = False
        self._episode: LedgerRow | None = None
        """The row about the first of the failures since the last successful change."""
        self._queue: SimpleQueue[Callable[[Catalog], object] | None] = SimpleQueue()
        self._waiting: deque[Callable[[Catalog], object]] = deque()
        self._thread = threading.Thread(target=self._main, name="archive-catalog", daemon=True)

    def start(self) -> None:
        """Start the thread; call once. A catalog that exists now must not be missing later."""
        self._was_there = self._path.exists()
        self._thread.start()

    def submit(self, change: Callable[[Catalog], object]) -> None:
        """Queue a change. Any thread."""
        self._queue.put(change)

    def retry(self) -> None:
        """Retry the changes that failed."""
        self._queue.put(lambda catalog: None)

    def add_ledger(self, kind: str, file: str, offset: int, text: str, details: str = "") -> None:
        """Queue a ledger row with the current time; `details`: as in `LedgerRow`. Any thread."""
        row = LedgerRow(time.time(), kind, file, offset, text, details)
        self.submit(lambda catalog: catalog.add_ledger(row))

    def write_ledger(self, rows: Iterable[LedgerRow]) -> None:
        """Add ledger rows, durable on return. Any thread but the loop's and this one: it waits for the disk.

        Raises: OSError if they could not be written within 5 s. They stay in line even then.
        """
        written = threading.Event()
        for row in rows:
            self.submit(partial(_add_ledger, row))
        self.submit(lambda catalog: written.set())
        if not written.wait(_WRITE_WAIT_S):
            raise OSError(errno.EIO, "the ledger cannot be written", self._path.name)

    def stop(self) -> list[str]:
        """Finish what is queued and close the database. Return, when done, the changes that could not be made."""
        self._queue.put(None)
        self._thread.join()
        return [repr(change) for change in self._waiting]

    def _main(self) -> None:
        while True:
            change = self._queue.get()
            if change is not None:
                self._waiting.append(change)
            try:
                try:
                    self._make_changes()
                except Exception as error:
                    if not self._is_damage(error):
                        raise
                    self._remake(error)
                    self._make_changes()
            except Exception as error:
                failure = self._failure(error)
                if not isinstance(error, sqlite3.Error | OSError | CatalogUnreadable):
                    tell_fault("catalog_failed", error)
                elif self._episode is None:
                    self._episode = LedgerRow(time.time(), "write_failed", self._path.name, -1, str(failure))
                self._on_failure(failure)
            if change is None:
                if self._catalog is not None:
                    self._catalog.close()
                return

    def _make_changes(self) -> None:
        catalog = self._open()
        while self._waiting:
            self._waiting[0](catalog)
            self._waiting.popleft()
        if self._episode is not None:
            catalog.add_ledger(self._episode)
            self._episode = None
        catalog.write_text()

    def _open(self) -> Catalog:
        """Open the catalog, in its place. Raises: CatalogUnreadable; OSError; sqlite3.Error."""
        catalog = self._catalog
        if catalog is None:
            if self._was_there and not self._path.exists():
                raise CatalogUnreadable(f"{self._path.name} was gone")
            catalog = Catalog.open(self._path, self._layer)
            if self._was_there and catalog.is_new:
                catalog.close()
                raise CatalogUnreadable(f"{self._path.name} was empty")
            self._take(catalog)
        elif self._inode_now() != self._inode:
            catalog, rows = instead_of_lost(catalog, self._path, self._layer)
            self._take(catalog)
            self._on_remade(rows)
        else:
            self._check_size()
        return catalog

    def _check_size(self) -> None:
        """Check the size: SQLite never shrinks the file, and may continue for long with what it has in memory. Raises:
        CatalogUnreadable."""
        with contextlib.suppress(FileNotFoundError):  # removed just now: the next change notices it
            size, self._size = self._size, self._layer.size_of(self._path)
            if self._size < size:
                raise CatalogUnreadable(f"the catalog has {self._size} bytes, it had {size}", file=self._path.name)

    def _take(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._was_there = True
        self._inode = self._inode_now()
        self._size = self._layer.size_of(self._path)

    def _inode_now(self) -> int | None:
        try:
            return self._layer.inode_of(self._path)
        except FileNotFoundError:
            return None

    def _is_damage(self, error: Exception) -> bool:
        return isinstance(error, CatalogUnreadable) or is_damage(error, self._path)

    def _remake(self, damage: Exception) -> None:
        """Rebuild the catalog. Raises: CatalogUnreadable; OSError; sqlite3.Error; `damage`, if it comes again and again."""
        now = time.monotonic()
        self._remade_s = [at for at in self._remade_s if now - at < _REMADE_WITHIN_S]
        if len(self._remade_s) >= _MOST_REMADE:
            raise damage
        self._remade_s.append(now)
        if self._catalog is not None:
            with contextlib.suppress(sqlite3.Error, OSError):
                self._catalog.close()
            self._catalog = None
        catalog, rows = instead_of_damaged(self._path, self._layer, str(damage))
        self._take(catalog)
        self._on_remade(rows)

    def _failure(self, error: Exception) -> ArchiveWriteError:
        try:
            room_bytes = self._layer.free_bytes(self._path.parent)
        except OSError:
            room_bytes = SQLITE_NEEDS_BYTES
        number = system_number(error, self._path, room_bytes)
        what = f"{error} (no space is left)" if number == errno.ENOSPC else str(error)
        return ArchiveWriteError(
            f"the catalog could not be written: {what}",
            file=self._path.name,
            offset=None,
            errno=number,
            advice=disk_advice(self._layer, self._path.parent, number)
            or "Look at the disk; if the catalog is damaged, stop the relay and run `archive rebuild`.",
        )


def _add_ledger(row: LedgerRow, catalog: Catalog) -> None:
    catalog.add_ledger(row)
