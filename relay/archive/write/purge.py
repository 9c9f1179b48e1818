"""Removing the oldest files of an archive so that any crash leaves them all there, or the removal to be finished.

    the intent (a file that names all that was ordered, synced)
    -> batch by batch: NAME.index -> catalog rows and ledger rows, one transaction
                       -> the files themselves, NAME.idx and NAME.gtx with each -> the directory is synced
    -> the intent is removed

An intent that is found at an open is finished before anything else looks at the directory: all of the order, whichever batch was
being removed. So the order of what follows the intent matters only to readers of the directory meanwhile.
"""

import asyncio
import contextlib
import errno
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog

from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.catalog_thread import CatalogThread
from relay.archive.catalog.purge_intent import forget_intent, remove_files, write_intent
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer
from relay.archive.storage.ledger_kinds import PURGED

log = structlog.get_logger(__name__)

_BATCH: Final = 200
_BATCH_BYTES: Final = 20 << 30
"""The files, and bytes, that are removed before a relay that was stopped may stop: a GiB takes up to a tenth of a second."""
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
        """The rows of removed files that the catalog has not confirmed yet."""

    async def run(self, files: list[ArchivedFile], reason: str, stopping: Callable[[], bool]) -> None:
        """Remove `files` from the disk, oldest first, and from the list; end early when `stopping()`.

        `reason`: for the ledger, who requested it. What is left in the list when it was stopping is removed at the next open. Raises:
        ArchiveWriteError. Then nothing was done to what is left in the list, nor will be. A batch that was begun is not in the list
        any more; it is removed at the next open at the latest.
        """
        order = await asyncio.to_thread(_rows, list(files), reason)
        announced = False
        done = 0
        while files and not (announced and stopping()):
            batch = order[done : done + _batch_size(files)]
            try:
                if not announced:
                    announced = await asyncio.to_thread(self._announce, order[done:], len(batch))
                del files[: len(batch)]
                done += len(batch)
                await self._remove(batch, last=done == len(order))
            except OSError as error:
                begun = done > 0 and order[done - 1] is batch[-1]
                if not begun and not self._layer.exists(self._directory / batch[0].file):
                    del files[:1]
                await asyncio.to_thread(self._take_back, batch if begun else [])
                raise ArchiveWriteError(
                    f"{batch[0].file} to {batch[-1].file} could not be purged: {error.strerror}",
                    file=batch[0].file,
                    offset=None,
                    errno=error.errno or 0,
                    advice="It is finished when the relay starts the next time." if begun else "Nothing was removed.",
                ) from error

    async def _remove(self, rows: list[LedgerRow], *, last: bool) -> None:
        self._unrecorded.extend(rows)
        recorded = self._record(rows)
        names = [row.file for row in rows]
        await asyncio.to_thread(_log_rows, rows)
        await asyncio.to_thread(self._unlist, names)
        await asyncio.wait({recorded}, timeout=_CATALOG_WAIT_S)
        await asyncio.to_thread(remove_files, self._layer, self._directory, names)
        if last and not self._unrecorded:
            await asyncio.to_thread(forget_intent, self._layer, self._directory)

    def _announce(self, order: list[LedgerRow], batch: int) -> bool:
        """Write the intent; return whether it names all of the order, not only the first `batch` files. Raises: OSError."""
        rows = [*self._unrecorded, *order]
        try:
            write_intent(self._layer, self._directory, rows)
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            # A purge is the remedy for a full disk: removing the oldest file makes room for the intent. A crash before it
            # is written leaves a row `file_missing` instead of `purged`.
            remove_files(self._layer, self._directory, [order[0].file])
            rows = [*self._unrecorded, *order[:batch]]
            write_intent(self._layer, self._directory, rows)
            return batch == len(order)
        return True

    def _take_back(self, begun: list[LedgerRow]) -> None:
        """Leave only what was begun to be removed at the next start; if the disk refuses that too, all of it stays ordered."""
        names = {row.file for row in begun}
        rows = [*(row for row in self._unrecorded if row.file not in names), *begun]
        with contextlib.suppress(OSError):
            if rows:
                write_intent(self._layer, self._directory, rows)
            else:
                forget_intent(self._layer, self._directory)

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


def _rows(files: Sequence[ArchivedFile], reason: str) -> list[LedgerRow]:
    now = time.time()
    return [LedgerRow(now, PURGED, file.name, file.end, f"{reason}; {_contents(file)}") for file in files]


def _batch_size(files: Sequence[ArchivedFile]) -> int:
    """Return how many of the first files are one batch: at least one."""
    size_bytes = 0
    for count, file in enumerate(files[:_BATCH]):
        size_bytes += file.end
        if count and size_bytes > _BATCH_BYTES:
            return count
    return min(len(files), _BATCH)


def _log_rows(rows: Sequence[LedgerRow]) -> None:
    for row in rows:
        log.warning("archive_ledger", kind=row.kind, file=row.file, offset=row.offset, text=row.text)


def _contents(file: ArchivedFile) -> str:
    return (
        f"{file.end} bytes, {file.groups} transactions, events of Unix times {file.first_timestamp} to "
        f"{file.last_timestamp}, digest {file.digest or 'none'}"
    )
