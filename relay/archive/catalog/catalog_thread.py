"""The thread that writes the catalog: changes one after another, off the event loop."""

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

from relay.archive.catalog.catalog import Catalog, CatalogUnreadable, LedgerRow
from relay.archive.storage.archive_errors import DISK_ADVICE, ArchiveWriteError
from relay.archive.storage.files import FileLayer
from relay.process.background import tell_fault

_SQLITE_NEEDS_BYTES: Final = 65536
"""Less room than this on a disk explains an I/O error: its shared memory grows by 32 KiB."""
_WRITE_WAIT_S: Final = 5.0


class CatalogThread:
    """Runs catalog changes one after another in a thread of their own.

    A change that fails stays first in line and `on_failure` is called (in this thread) with an ArchiveWriteError; no later
    one overtakes it. `retry` tries again. The line is bounded by its producers: one checkpoint a second, a few rows per file.
    """

    def __init__(self, path: Path, layer: FileLayer, on_failure: Callable[[ArchiveWriteError], None]) -> None:
        self._path = path
        self._layer = layer
        self._on_failure = on_failure
        self._queue: SimpleQueue[Callable[[Catalog], object] | None] = SimpleQueue()
        self._waiting: deque[Callable[[Catalog], object]] = deque()
        self._thread = threading.Thread(target=self._main, name="archive-catalog", daemon=True)

    def start(self) -> None:
        """Starts the thread; call once."""
        self._thread.start()

    def submit(self, change: Callable[[Catalog], object]) -> None:
        """Queues a change. Any thread."""
        self._queue.put(change)

    def retry(self) -> None:
        """Tries the changes that failed once more."""
        self._queue.put(lambda catalog: None)

    def add_ledger(self, kind: str, file: str, offset: int, text: str, details: str = "") -> None:
        """Queues a ledger row with the time of now; `details`: as in `LedgerRow`. Any thread."""
        row = LedgerRow(time.time(), kind, file, offset, text, details)
        self.submit(lambda catalog: catalog.add_ledger(row))

    def write_ledger(self, rows: Iterable[LedgerRow]) -> None:
        """Adds ledger rows, durable on return. Any thread but the loop's and this one: it waits for the disk.

        Raises: OSError where they could not be written within 5 s. They stay in line all the same.
        """
        written = threading.Event()
        for row in rows:
            self.submit(partial(_add_ledger, row))
        self.submit(lambda catalog: written.set())
        if not written.wait(_WRITE_WAIT_S):
            raise OSError(errno.EIO, "the ledger cannot be written", self._path.name)

    def stop(self) -> list[str]:
        """Finishes what is queued, closes the database, returns when done. Gives the changes that could not be made."""
        self._queue.put(None)
        self._thread.join()
        return [repr(change) for change in self._waiting]

    def _main(self) -> None:
        catalog: Catalog | None = None
        while True:
            change = self._queue.get()
            if change is not None:
                self._waiting.append(change)
            try:
                if catalog is None:
                    catalog = Catalog.open(self._path, self._layer)
                while self._waiting:
                    self._waiting[0](catalog)
                    self._waiting.popleft()
            except Exception as error:
                if not isinstance(error, sqlite3.Error | OSError | CatalogUnreadable):
                    tell_fault("catalog_failed", error)
                self._on_failure(self._failure(error))
            if change is None:
                if catalog is not None:
                    catalog.close()
                return

    def _failure(self, error: Exception) -> ArchiveWriteError:
        try:
            room_bytes = self._layer.free_bytes(self._path.parent)
        except OSError:
            room_bytes = _SQLITE_NEEDS_BYTES
        number = _system_number(error, room_bytes)
        what = f"{error} (no space is left)" if number == errno.ENOSPC else str(error)
        return ArchiveWriteError(
            f"the catalog could not be written: {what}",
            file=self._path.name,
            offset=None,
            errno=number,
            advice=DISK_ADVICE.get(
                number, "Look at the disk; if the catalog is damaged, stop the relay and run `archive rebuild`."
            ),
        )


def _add_ledger(row: LedgerRow, catalog: Catalog) -> None:
    catalog.add_ledger(row)


def _system_number(error: Exception, room_bytes: int) -> int:
    """The errno, also of what SQLite says by codes of its own about a full disk; 0 where there is none."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is SQLite's primary code
        # Where even its memory index finds no room SQLite speaks of an I/O error (SQLITE_IOERR_SHMSIZE) and no more.
        if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and room_bytes < _SQLITE_NEEDS_BYTES):
            return errno.ENOSPC
    return getattr(error, "errno", 0) or 0
