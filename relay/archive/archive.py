"""The archive of a relay over all its sources: a generation for each, one after the other.

    generation 1        the archive's directory itself
    generation 2, ...   g0002/, ... in it; each mirrors the files of one source under their own names

The newest is written; the ones before it have ended and are only read. A generation begins with the first file of its source: a crash
before that leaves the one before as it was, a crash after that has changed the source. After an accepted gap in a source's binlogs,
the next one is of the same source.
"""

import asyncio
import contextlib
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import structlog

from protocol.binlog.layout import FIRST_EVENT
from protocol.gtid.gtid_set import GtidSet
from protocol.position import Position
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.generation_directories import (
    BEGUN,
    ENDED,
    FIRST,
    generation_numbers,
    generation_path,
    is_prepared_only,
    remove_prepared,
)
from relay.archive.gaps.accepted_gap import AcceptedGap, GapUnreadable, gap_before, keep_gap
from relay.archive.generation import Generation
from relay.archive.storage.archive_errors import ArchiveError, ArchiveMisuse, ArchiveWriteError
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.archive.storage.gtid_facts import GtidValue
from relay.archive.storage.ledger_kinds import GAP_ACCEPTED
from relay.archive.storage.origin import Origin, joined
from relay.archive.storage.watchers import Watchers
from relay.archive.write.options import ArchiveOptions
from relay.disk.file_calls import keep_within
from relay.process.background import begin_task, run_to_end, tell_fault

log = structlog.get_logger(__name__)

_END_AGAIN_S: Final = 1.0
_NAMED: Final = re.compile(r"g([0-9]{4,9})\.(.+)")
_DEFAULTS: Final = ArchiveOptions()


class Archive:
    """All generations of one archive, open for writing by this process. All methods are for the event loop.

    Open one by `await Archive.open(...)`; `Archive.of(generation)` is an archive with no other generation.
    """

    def __init__(self, directory: Path, layer: FileLayer, options: ArchiveOptions) -> None:
        self.directory = directory
        self._layer = layer
        self._options = options
        self._first: Generation | None = None
        """The first generation, which has the lock of the archive's directory, even after all of it was purged."""
        self._all: list[Generation] = []
        self._newest_number = FIRST
        self._prepared: Generation | None = None
        self._watchers: Watchers[[]] = Watchers()
        self._held_of_ended: tuple[tuple[tuple[int, int], ...], GtidSet] = ((), GtidSet())
        """The number and file count of each generation that has ended, and the GTIDs of all of those files."""
        self._purged_bytes = 0
        """The bytes that were purged of generations that have been dropped."""
        self._ending: set[asyncio.Task[None]] = set()
        self._preparing = asyncio.Lock()
        """Held while a directory is created or removed."""

    # --- opening and closing -----------------------------------------------------------------------------------------

    @classmethod
    async def open(
        cls, directory: Path, options: ArchiveOptions = _DEFAULTS, *, layer: FileLayer | None = None
    ) -> "Archive":
        """Open and recover the archive in `directory` (<archive_dir>/<source name>), which is created when missing.

        What was prepared for a change of source that never came to its first file is removed. Raises: as `Generation.open`.
        """
        self = cls(directory, layer or options.layer, options)
        try:
            await self._open_all()
        except BaseException:
            await self._close_generations(suppress=True)
            raise
        return self

    @classmethod
    def of(cls, generation: Generation) -> "Archive":
        """Return an archive with an open generation as its only one, as far as this process goes."""
        self = cls(generation.directory, generation.layer, ArchiveOptions())
        self._first = generation
        self._watchers = generation.held.watchers
        self._add(generation)
        return self

    async def _open_all(self) -> None:
        directory = self.directory
        keep_within(directory)
        self._first = await self._open_generation(FIRST)
        try:
            numbers = await asyncio.to_thread(self._tidied_numbers, self._first.found_directories)
        except OSError as error:
            raise _not_opened(error, directory) from error
        before: GtidValue | None = None
        for number in numbers:
            generation = self._first if number == FIRST else await self._open_generation(number)
            generation.before = before
            origin = generation.origin
            if number != FIRST:
                generation.gap = await asyncio.to_thread(self._gap_before, generation)
            if generation.gap is not None:
                # What earlier generations have after the gap's beginning, the source has lost.
                generation.before = generation.gap.executed
            elif origin is not None and origin.state is not None:
                generation.before = joined(generation.before, origin.state)
            self._add(generation)
            before = generation.executed
        for generation, following in zip(self._all, self._all[1:], strict=False):
            await self._seal(generation, following)
        await self.forget_emptied()

    async def _open_generation(self, number: int) -> Generation:
        path = generation_path(self.directory, number)
        generation = await Generation.open(path, self._options, layer=self._layer)
        generation.number = number
        return generation

    def _gap_before(self, generation: Generation) -> AcceptedGap | None:
        """Return the gap after which the generation begins. Blocking."""
        try:
            return gap_before(generation.directory)
        except (GapUnreadable, OSError) as error:
            log.error("gap_unreadable", generation=generation.number, why=str(error))
        # A gap is known to exist: no replica must pass it silently.
        first = Position(generation.files[0].name if generation.files else "", FIRST_EVENT)
        before = self._all[-1].end if self._all else None
        return AcceptedGap(
            flavour=generation.gtids.flavour,
            stop="a trouble that is not known any more",
            time=0.0,
            by="somebody",
            source="the source",
            after=before or first,
            last_time=0,
            common=None,
            to=first,
            created=0,
            server_id=0,
            is_whole=False,
        )

    def _add(self, generation: Generation) -> None:
        if generation.gap is not None and self._all:
            self._all[-1].fork = generation.gap.fork
        self._all.append(generation)
        generation.held.watchers = self._watchers

    def _tidied_numbers(self, directories: Iterable[str]) -> list[int]:
        """Return the generations that have begun and were not purged as a whole, oldest first. Blocking."""
        numbers = generation_numbers(directories)
        while numbers[-1] != FIRST and is_prepared_only(generation_path(self.directory, numbers[-1]), self._layer):
            remove_prepared(self.directory, numbers.pop(), self._layer)
        self._newest_number = numbers[-1]
        return numbers

    async def close(self) -> None:
        """Close all generations. Raises: ArchiveError, the newest generation's first; all are closed even then."""
        try:
            await self.discard_prepared()
        finally:
            for task in list(self._ending):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, ArchiveError):
                    await task
            await self._close_generations(suppress=False)

    async def _close_generations(self, *, suppress: bool) -> None:
        failure: ArchiveError | None = None
        generations = list(reversed(self._all))
        if self._first is not None and self._first not in generations:
            generations.append(self._first)
        for generation in generations:
            try:
                await generation.close()
            except ArchiveError as error:
                failure = failure or error
        if failure is not None and not suppress:
            raise failure

    # --- the generations ---------------------------------------------------------------------------------------------

    @property
    def current(self) -> Generation:
        """The newest generation, which is written."""
        return self._all[-1]

    @property
    def receiving(self) -> Generation:
        """The generation that receives the source's bytes: the prepared one while there is one, else the current one."""
        return self._prepared or self.current

    @property
    def all(self) -> Sequence[Generation]:
        """All generations, oldest first, without those that were purged as a whole; the last is the current one. Do not keep or
        change it."""
        return self._all

    def after(self, generation: Generation) -> Generation | None:
        """Return the generation that continues where `generation` ended; None: it is the current one."""
        return next((other for other in self._all if other.number > generation.number), None)

    def named(self, name: str) -> tuple[Generation, str] | None:
        """Return the generation and name of a file that is named with its generation, as in g0002.mysql-bin.000001; None: it is not
        so named.

        If a source used a name again after a gap, nothing else tells which file is meant.
        """
        match = _NAMED.fullmatch(name)
        if match is None or any(one.file(name) is not None for one in self._all):
            return None
        return next(((one, match[2]) for one in self._all if one.number == int(match[1])), None)

    def holds(self, generation: Generation) -> bool:
        """Return whether `generation` is one of this archive's; False once it was purged as a whole."""
        return generation in self._all

    @property
    def executed(self) -> GtidValue | None:
        """Everything that was published, in all generations, and what was executed before them."""
        return self.current.executed

    @property
    def purged(self) -> GtidValue | None:
        """The GTIDs that were executed and are in no file of any generation; for MariaDB the state before the oldest file."""
        oldest = next((one for one in self._all if one.files), None)
        if oldest is None:
            return self.current.before
        executed = self.executed
        if not isinstance(executed, GtidSet) or (len(self._all) == 1 and self.current.before is None):
            return oldest.gtids.purged
        # This is evaluated for each answer, so the contents of the ended generations are combined once.
        ended = tuple((one.number, len(one.files)) for one in self._all if one.ended)
        if self._held_of_ended[0] != ended:
            held = GtidSet()
            for generation in self._all:
                if generation.ended:
                    held |= generation.held_gtids
            self._held_of_ended = ended, held
        executed -= self._held_of_ended[1]
        for generation in self._all:
            if not generation.ended:
                executed -= generation.held_gtids
        return executed

    @property
    def purged_bytes(self) -> int:
        """The bytes of files that were removed since the archive was opened."""
        return self._purged_bytes + sum(generation.purged_bytes for generation in self._all)

    def watch(self, callback: Callable[[], None]) -> None:
        """Call `callback()` on the loop when anything that readers see has changed in any generation, or one began or ended."""
        self._watchers.add(callback)

    def unwatch(self, callback: Callable[[], None]) -> None:
        """End `watch`; an unknown callback is ignored."""
        self._watchers.remove(callback)

    def _moved(self) -> None:
        self._watchers.notify()

    # --- a change of source ------------------------------------------------------------------------------------------

    async def prepare(
        self, source: SourceIdentity, where: str, file: str, gap: AcceptedGap | None = None
    ) -> Generation:
        """Prepare a generation for the binlogs of another source, at `where` (host:port), from its `file` on. gap: or of the same
        source, if its binlogs do not continue the current one.

        It becomes the current one when its first file is published; then the one before it ends. Until then the archive is as it was:
        `discard_prepared` takes it back, and so does a crash. The current one must be trimmed and stay so. Cancelling the caller does
        not stop it: `discard_prepared` waits for it and takes it back. Raises: ArchiveError; ArchiveMisuse while the current one has
        no file, or another is prepared.
        """
        preparing = self._prepare_alone(source, where, file, gap)
        return await run_to_end(preparing, "preparing a generation of the archive", expected=(ArchiveError,))

    async def _prepare_alone(
        self, source: SourceIdentity, where: str, file: str, gap: AcceptedGap | None
    ) -> Generation:
        async with self._preparing:
            return await self._prepare(source, where, file, gap)

    async def _prepare(self, source: SourceIdentity, where: str, file: str, gap: AcceptedGap | None) -> Generation:
        end = self.current.end
        if self._prepared is not None or end is None:
            raise ArchiveMisuse("another generation is being prepared, or the current one has no file")
        number = self._newest_number + 1
        executed = self.executed if gap is None else gap.executed
        origin = Origin(time.time(), file, end.file, end.offset, executed)
        known = self.current.identity
        before = f", {_named(known)}," if known is not None else ""
        text = (
            f"Generation {number} begins with {file} of {where}, {_named(source)}. "
            f"Generation {self.current.number}{before} ended at {end}."
        )
        path = generation_path(self.directory, number)
        try:
            await asyncio.to_thread(self._make_directory, number, origin, source, text, gap)
        except (OSError, sqlite3.Error) as error:
            raise _not_opened(error, path) from error
        generation = await self._open_generation(number)
        generation.before = origin.state
        generation.gap = gap
        self._prepared = generation

        def begin() -> None:
            if self._prepared is generation and generation.files:
                generation.unwatch(begin)
                self._begin(generation)

        generation.watch(begin)
        return generation

    async def settled(self) -> None:
        """Return when every generation but the current one has ended."""
        while self._ending:
            await asyncio.wait(self._ending)

    async def discard_prepared(self) -> None:
        """Remove the prepared generation, for which nothing came. If its first file exists it begins all the same.

        Raises: ArchiveError.
        """
        async with self._preparing:
            await self._discard()

    async def _discard(self) -> None:
        generation = self._prepared
        if generation is None:
            return
        if generation.files:
            # On the disk the change has happened, although nothing of the file was published yet.
            self._begin(generation)
            return
        self._prepared = None
        try:
            await generation.close()
        except ArchiveError as error:
            log.info("prepared_generation_not_closed", why=str(error), note="nothing of it is kept")
        # From now on nothing is written there any more. The first file may have come meanwhile.
        path = generation_path(self.directory, generation.number)
        try:
            if await asyncio.to_thread(self._removed, generation.number):
                return
        except (OSError, sqlite3.Error) as error:
            # It is removed at the next open, and nothing uses it before.
            log.warning("generation_not_removed", directory=str(path), why=str(error))
            self._newest_number = generation.number
            return
        begun = await self._open_generation(generation.number)
        begun.before, begun.gap = generation.before, generation.gap
        self._begin(begun)

    def _removed(self, number: int) -> bool:
        """Remove the directory, unless the generation has begun. Blocking."""
        if not is_prepared_only(generation_path(self.directory, number), self._layer):
            return False
        remove_prepared(self.directory, number, self._layer)
        return True

    def _make_directory(
        self, number: int, origin: Origin, source: SourceIdentity, text: str, gap: AcceptedGap | None
    ) -> None:
        path = generation_path(self.directory, number)
        if self._layer.exists(path):
            # Left from an attempt that failed half way, perhaps with another source.
            remove_prepared(self.directory, number, self._layer)
        self._layer.make_directory(path)
        catalog = Catalog.open(path / CATALOG_NAME, self._layer)
        try:
            catalog.set_identity(source)
            catalog.set_origin(origin)
            catalog.add_ledger_once(LedgerRow(origin.time, BEGUN, origin.file, -1, text))
            if gap is not None:
                row = LedgerRow(origin.time, GAP_ACCEPTED, gap.to.file, gap.to.offset, gap.text, gap.to_json())
                catalog.add_ledger_once(row)
        finally:
            catalog.close()
        if gap is not None:
            keep_gap(path, gap)
        self._layer.sync_directory(path)

    def _begin(self, generation: Generation) -> None:
        """Make the prepared generation, which has its first file, the current one."""
        before = self.current
        self._prepared = None
        self._newest_number = generation.number
        self._add(generation)
        log.warning(
            "generation_begun",
            generation=generation.number,
            file=generation.files[0].name,
            before=before.number,
            ended_at=str(before.end),
        )
        if generation.gap is not None:
            log.warning("gap_accepted", generation=generation.number, what=generation.gap.text)
        self._ending.add(task := begin_task(self._end(before, generation), "ending a generation of the archive"))
        task.add_done_callback(self._ending.discard)
        self._moved()

    async def _end(self, generation: Generation, following: Generation) -> None:
        """Seal the newest file of a generation that has ended; retry while the disk refuses.

        An internal fault is reported once: replicas wait for this end, so it is retried as well.
        """
        fault_reported = False
        while True:
            try:
                await self._seal(generation, following)
            except ArchiveWriteError as error:
                log.error("generation_not_ended", generation=generation.number, why=str(error), again_in_s=_END_AGAIN_S)
            except Exception as fault:
                if not fault_reported:
                    tell_fault("generation_not_ended", fault, generation=generation.number, again_in_s=_END_AGAIN_S)
                fault_reported = True
            else:
                break
            await asyncio.sleep(_END_AGAIN_S)
            with contextlib.suppress(ArchiveError):
                await generation.reopen_writer()
        self._moved()

    async def _seal(self, generation: Generation, following: Generation) -> None:
        text = f"Generation {generation.number} ends here; generation {following.number} goes on"
        if following.origin is not None:
            text += f" with {following.origin.file}"
        await generation.end_for_good(ENDED, f"{text}.")

    # --- purging -----------------------------------------------------------------------------------------------------

    async def forget_emptied(self) -> None:
        """Drop generations that have ended and whose files were all purged. Their catalogs stay, with their ledgers."""
        emptied = [one for one in self._all[:-1] if one.ended and not one.files]
        self._all = [one for one in self._all if one not in emptied]
        for generation in emptied:
            self._purged_bytes += generation.purged_bytes
            if generation is not self._first:
                await generation.close()


def _named(source: SourceIdentity) -> str:
    """Return the source's name in texts. MariaDB has no server_uuid."""
    return f"server_id {source.server_id}" + (f", server_uuid {source.server_uuid}" if source.server_uuid else "")


def _not_opened(error: OSError | sqlite3.Error, directory: Path) -> ArchiveWriteError:
    return ArchiveWriteError(
        f"the archive could not be opened: {getattr(error, 'strerror', None) or error}",
        file=None,
        offset=None,
        errno=getattr(error, "errno", None) or 0,
        advice=f"Check space, permissions and the disk under {directory}.",
    )
