"""Removing the oldest files of an archive so that any crash leaves them all there, or the removal to be finished.

    the intent (a file that names them, synced) -> NAME.index -> catalog rows and ledger rows, one transaction
        -> the files themselves, NAME.idx and NAME.gtx with each -> the directory is synced -> the intent is removed

An intent that is found at an open is finished before anything else looks at the directory. So the order of what follows
the intent matters to nobody but those who look into the directory meanwhile.
"""

import asyncio
import errno
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog

from relay.archive.catalog.catalog import Catalog, LedgerRow
from relay.archive.catalog.catalog_thread import CatalogThread
from relay.archive.catalog.purge_intent import forget_intent, remove_files, write_intent
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer
from relay.archive.storage.ledger_kinds import PURGED

log = structlog.get_logger(__name__)

_BATCH: Final = 20
"""So many files are removed before a relay that is told to stop may stop: a GiB takes up to a tenth of a second."""
_CATALOG_WAIT_S: Final = 5.0
"""A catalog on a full disk cannot be written: the files are removed all the same, the intent stays until it was."""
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)


class Purging:
    """Removes files of one archive. `run` is for the event loop; one at a time.

    `unlist(names)` takes names out of NAME.index, durably; it is called in a thread.
    """

    def __init__(
        self, directory: Path, layer: FileLayer, catalog: CatalogThread, unlist: Callable[[Sequence[str]], None]
    ) -> None:
        self._directory = directory
        self._layer = layer
        self._catalog = catalog
        self._unlist = unlist
        self._unrecorded: list[LedgerRow] = []
        """Removed, and the catalog has not said yet that it knows."""

    async def run(self, files: list[ArchivedFile], reason: str, stopping: Callable[[], bool]) -> None:
        """Removes `files` from the disk, oldest first, and from the list; ends early when `stopping()`.

        `reason`: for the ledger, who wanted it. Of what is left in the list nothing was done.
        Raises: ArchiveWriteError. A batch whose intent was written is no more in the list; it is removed at the next open
        at the latest.
        """
        while files and not stopping():
            batch = files[:_BATCH]
            now = time.time()
            rows = [LedgerRow(now, PURGED, file.name, file.end, f"{reason}; {_contents(file)}") for file in batch]
            try:
                await asyncio.to_thread(self._announce, [*self._unrecorded, *rows], batch[0].name)
                del files[:_BATCH]
                await self._remove(rows)
            except OSError as error:
                begun = files[:1] != batch[:1]
                if not begun and not self._layer.exists(self._directory / batch[0].name):
                    del files[:1]
                raise ArchiveWriteError(
                    f"{batch[0].name} to {batch[-1].name} could not be purged: {error.strerror}",
                    file=batch[0].name,
                    offset=None,
                    errno=error.errno or 0,
                    advice="It is finished when the relay starts the next time." if begun else "Nothing was removed.",
                ) from error

    async def _remove(self, rows: list[LedgerRow]) -> None:
        self._unrecorded.extend(rows)
        for row in rows:
            log.warning("archive_ledger", kind=row.kind, file=row.file, offset=row.offset, text=row.text)
        recorded = self._record(rows)
        names = [row.file for row in rows]
        await asyncio.to_thread(self._unlist, names)
        await asyncio.wait({recorded}, timeout=_CATALOG_WAIT_S)
        await asyncio.to_thread(remove_files, self._layer, self._directory, names)
        if not self._unrecorded:
            await asyncio.to_thread(forget_intent, self._layer, self._directory)

    def _announce(self, rows: list[LedgerRow], oldest: str) -> None:
        try:
            write_intent(self._layer, self._directory, rows)
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            # Purging is what one does about a full disk: the oldest file makes room for saying so. A crash before it was
            # said leaves a row `file_missing` instead of `purged`.
            remove_files(self._layer, self._directory, [oldest])
            write_intent(self._layer, self._directory, rows)

    def _record(self, rows: list[LedgerRow]) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        recorded: asyncio.Future[None] = loop.create_future()

        def done() -> None:
            del self._unrecorded[: len(rows)]
            if not recorded.done():
                recorded.set_result(None)

        def change(catalog: Catalog) -> None:
            catalog.forget_files(rows)
            loop.call_soon_threadsafe(done)

        self._catalog.submit(change)
        return recorded


def _contents(file: ArchivedFile) -> str:
    return (
        f"{file.end} bytes, {file.groups} transactions, events of Unix times {file.first_timestamp} to "
        f"{file.last_timestamp}, digest {file.digest or 'none'}"
    )
