"""Checks the places that replicas want to start from, for all files of a directory: `check_offset` in threads, indexes rebuilt."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from relay.archive.read.damaged_files import DamagedFiles
from relay.archive.read.held_files import HeldFiles
from relay.archive.read.position_check import IndexUnusable, PositionCheck, Verdict, check_offset
from relay.archive.storage.archive_errors import ArchiveCorrupt, ArchiveDamaged
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer
from relay.archive.storage.rebuild_index import rebuild_index
from relay.fairness.fair_pool import FairPool

_THREADS: Final = 2
_PACKED_THREADS: Final = 8


class PositionChecker:
    """Checks positions in `held`, the files of `directory`. All on the event loop; `stop` may block.

    `note(kind, file, offset, text)` puts an index that had to be rebuilt into the ledger.
    """

    def __init__(
        self,
        directory: Path,
        layer: FileLayer,
        held: HeldFiles,
        damaged_files: DamagedFiles,
        note: Callable[[str, str, int, str], None],
    ) -> None:
        self._directory = directory
        self._layer = layer
        self._held = held
        self._damaged_files = damaged_files
        self._note = note
        self._threads = FairPool(_THREADS, "archive-check", kept=1)
        self._packed_threads = FairPool(_PACKED_THREADS, "packed-check")
        """The threads for checks that wait for a bucket, so that these do not delay checks of plain files."""
        self._locks: dict[str, asyncio.Lock] = {}

    async def check(self, file: str, offset: int) -> PositionCheck:
        """Check a place to start from, as `PositionCheck` describes. The disk work is done in a thread.

        An index that is missing or does not fit is rebuilt (a scan of the file), unless the file itself is damaged. Raises:
        ArchiveDamaged if the file is not what was archived; ArchiveCorrupt if it cannot be read.
        """
        held = self._held.get(file)
        if held is None:
            coming = self._held.follows_newest(file)
            return PositionCheck(Verdict.FUTURE if coming else Verdict.UNKNOWN_FILE, None, None, None)
        end = held.end
        if offset > end and held is self._held.open_file:
            return PositionCheck(Verdict.FUTURE, end, None, None)
        path = self._directory / file
        check = (self._layer, path, end, held.cut, offset)
        loop = asyncio.get_running_loop()
        threads = self._threads if held.place is None else self._packed_threads
        try:
            try:
                return await loop.run_in_executor(threads, check_offset, *check)
            except IndexUnusable as error:
                known = self._damaged_files.first(file)
                if known is not None:
                    raise ArchiveDamaged(known.text, file=file, offset=known.offset, boundary=known.boundary) from error
                size = await loop.run_in_executor(threads, self._layer.size_of, path)
                if size < end:
                    what = f"the file has {size} bytes, {end} were archived"
                    raise ArchiveDamaged(what, file=file, offset=size, boundary=0) from error
                await self._remake_index(held, str(error))
                return await loop.run_in_executor(threads, check_offset, *check)
        except ArchiveDamaged as error:
            self._damaged_files.report(error)
            raise
        except (FileNotFoundError, PermissionError) as error:
            damage = ArchiveDamaged(f"it cannot be opened: {error.strerror}", file=file, offset=0, boundary=0)
            self._damaged_files.report(damage)
            raise damage from error
        except IndexUnusable as error:
            # The index was built from this very file.
            damage = ArchiveDamaged(str(error), file=file, offset=offset, boundary=FIRST_EVENT)
            self._damaged_files.report(damage)
            raise damage from error
        except OSError as error:
            raise ArchiveCorrupt(
                f"the position cannot be checked: {error}",
                file=file,
                offset=offset,
                advice="Run `archive verify --deep`.",
            ) from error

    async def _remake_index(self, file: ArchivedFile, why: str) -> None:
        lock = self._locks.setdefault(file.name, asyncio.Lock())
        async with lock:
            if not file.sealed:
                # The writer appends to this one; only a recovery may replace it.
                raise ArchiveCorrupt(
                    why, file=file.name, advice="Restart the relay: the open file's index is made again then."
                )
            self._note("index_remade", file.name, -1, why)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._threads, rebuild_index, self._directory, self._layer, file)
        self._locks.pop(file.name, None)

    def stop(self) -> None:
        """Wait for the running checks; waiting ones are dropped. Blocking."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._packed_threads.shutdown(wait=False, cancel_futures=True)
