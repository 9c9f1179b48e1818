"""One source's files in the archive: what upstream appends to, and the only thing that downstream reads."""

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Final

import structlog

from protocol.binlog.layout import FIRST_EVENT
from protocol.gtid.gtid_set import GtidSet
from protocol.position import Position, binlog_number
from relay.archive.catalog.catalog_faults import SQLITE_NEEDS_BYTES, system_number
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.catalog_thread import CatalogThread
from relay.archive.catalog.generation_directories import FIRST
from relay.archive.file_integrity import FileIntegrity
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.read.held_files import HeldFiles
from relay.archive.read.open_file import OpenFile, open_archived
from relay.archive.read.position_check import PositionCheck
from relay.archive.read.position_checker import PositionChecker
from relay.archive.read.reader import FileReader
from relay.archive.recovery.recovery import Recovered, Recovery
from relay.archive.recovery.reopening import recover_again
from relay.archive.storage.archive_errors import (
    ArchiveMisuse,
    ArchiveWriteError,
)
from relay.archive.storage.archived_file import ArchivedFile, SourceIdentity
from relay.archive.storage.directory_lock import take_lock
from relay.archive.storage.disk_advice import start_advice
from relay.archive.storage.files import CATALOG_NAME, MARKS_NAME, FileLayer
from relay.archive.storage.gtid_facts import GtidValue
from relay.archive.storage.origin import covers, joined, without_domains
from relay.archive.storage.replica_marks import ReplicaMarks
from relay.archive.storage.storage_location import StorageLocation
from relay.archive.storage.watchers import Watchers
from relay.archive.write.file_sequence import check_file_sequence
from relay.archive.write.options import ArchiveOptions, PublishPolicy, SyncPolicy
from relay.archive.write.publication import Publication
from relay.archive.write.purge import Purging
from relay.archive.write.run import Run
from relay.archive.write.writer import Writer
from relay.disk.file_calls import keep_within
from relay.process.background import run_to_end

log = structlog.get_logger(__name__)

_DEFAULTS: Final = ArchiveOptions()
_PROVEN_S: Final = 30.0


class GenerationState(Enum):
    """The states of a generation, by what may be done with it."""

    OPEN = "open"
    FAILED = "failed"
    """A write failed; reading continues, `reopen_writer` may restore it."""
    ENDED = "ended"
    """The next generation continues where this one ends: reading and purging continue, nothing is appended any more."""
    CLOSED = "closed"


class Generation:
    """One source's files in a directory of their own, open for writing by this process. All methods are for the event loop.

    Open one by `await Generation.open(...)`.
    """

    def __init__(
        self,
        directory: Path,
        layer: FileLayer,
        lock_fd: int,
        recovered: Recovered,
        marks: ReplicaMarks,
        options: ArchiveOptions,
    ) -> None:
        self.number = FIRST
        """Its place among the generations of its archive, from 1."""
        self.before: GtidValue | None = None
        """Everything that was executed by the end of the generation before this one; None: nothing, or unknown."""
        self.gap: AcceptedGap | None = None
        """The accepted gap before this generation; None: it continues where the one before ended."""
        self.fork: Position | None = None
        """The end of the part after which the next generation continues, if a gap follows; None: none does. What is archived after it
        the source has lost: no replica is sent that."""
        self._has_before = False
        """True if all of that has come here too, so that nothing must be combined any more."""
        self._executed_at_end: GtidValue | None = None
        self._held_at_end: tuple[int, GtidSet] | None = None
        """Once it has ended: the number of files that it had then, and the GTIDs in them."""
        self.directory = directory
        self.replicas = marks
        self.gtids = recovered.gtids
        """The published GTIDs. Others only read it."""
        self.state = GenerationState.OPEN
        self.failure: ArchiveWriteError | None = None
        self._tried_again: tuple[ArchiveWriteError, Position | None, float] | None = None
        self._failure_watchers: Watchers[[ArchiveWriteError]] = Watchers()
        self.purged_bytes = 0
        """The bytes of files that were removed since the archive was opened."""
        self.queue_limit_bytes = options.queue_limit_bytes
        self._layer = layer
        self._lock_fd = lock_fd
        self._on_failure = options.on_failure
        self._identity = recovered.identity
        self.origin = recovered.origin
        """The way in which it continues the generation before; None for the first one, or if its catalog was lost."""
        self.found_directories = recovered.directories
        """The names of the directories that were found with the files at open: with 100,000 files, looking again is expensive."""
        self.held = HeldFiles(directory, layer, recovered.files)
        """The files as readers have them; only the generation changes them."""
        self._loop = asyncio.get_running_loop()
        self._catalog = CatalogThread(directory / CATALOG_NAME, layer, self._catalog_failed, self._catalog_remade)
        self.damage_advice = options.damage_advice
        """The advice for files that are not what was archived."""
        self.integrity = FileIntegrity(
            directory, layer, self.held, recovered, self._catalog, self.append_ledger, self.damage_advice
        )
        self.damaged_files = self.integrity.damaged_files
        self.summed = self.integrity.summed
        self._position_checker = PositionChecker(directory, layer, self.held, self.damaged_files, self.append_ledger)
        self.publication = Publication(self.held, self.gtids, options.publish, self._file_sealed, self._become_failed)
        self._writer = Writer(
            directory, layer, self._catalog, self._loop, self.publication, options, self.summed.newest
        )
        self._purging = Purging(directory, layer, self._catalog, self._writer.file_list.remove)
        self._purge_lock = asyncio.Lock()
        newest = self.held.newest
        self._append_name: str | None = newest.name if newest and not newest.sealed else None
        self._append_at = newest.end if newest else FIRST_EVENT

    # --- opening and closing -----------------------------------------------------------------------------------------

    @classmethod
    async def open(
        cls,
        directory: Path,
        options: ArchiveOptions = _DEFAULTS,
        *,
        layer: FileLayer | None = None,
    ) -> "Generation":
        """Open one source's files in `directory`, which is created when missing, and recover them.

        Afterwards `end` is the place to resume from. Raises: ArchiveLocked, ArchiveCorrupt, ArchiveConflict, ArchiveWriteError,
        ArchiveMisuse.
        """
        if options.publish is PublishPolicy.SYNCED and options.sync is SyncPolicy.NONE:
            raise ArchiveMisuse('publish = "synced" needs sync = "transaction" or "interval"')
        layer = layer or options.layer
        lock_fd = -1
        marks: ReplicaMarks | None = None

        def prepare() -> Recovered:
            nonlocal lock_fd, marks
            keep_within(directory)
            layer.make_directory(directory)
            lock_fd = take_lock(directory, layer)
            recovered = Recovery(directory, layer, options.on_progress).run()
            marks = ReplicaMarks.open(directory / MARKS_NAME)
            return recovered

        try:
            recovered = await asyncio.to_thread(prepare)
            assert marks is not None
            self = cls(directory, layer, lock_fd, recovered, marks, options)
            flavour = self.held.newest.flavour if self.held.newest is not None else ""
            await asyncio.to_thread(self._writer.start, self.held.open_file, recovered.chain, flavour)
        except (OSError, sqlite3.Error) as error:
            _release(lock_fd, marks)
            path = directory / CATALOG_NAME
            number = system_number(error, path, _free_bytes(layer, directory))
            what = str(error)
            if isinstance(error, sqlite3.Error):
                # A full disk is an I/O error to SQLite: a reader of that text would look for another disk.
                what = (
                    f"{CATALOG_NAME}: {os.strerror(number)} (SQLite says: {error})"
                    if number
                    else f"{CATALOG_NAME}: {error}"
                )
            raise ArchiveWriteError(
                f"the archive could not be opened: {what}",
                file=None,
                offset=None,
                errno=number,
                advice=start_advice(layer, directory, number),
            ) from error
        except BaseException:
            _release(lock_fd, marks)
            raise
        self._catalog.start()
        self.integrity.start()
        for row in recovered.findings:
            log.warning("archive_recovery_finding", kind=row.kind, file=row.file, offset=row.offset, text=row.text)
        return self

    async def close(self) -> None:
        """Take back an incomplete transaction, sync, note that nothing needs a rescan, and release the directory.

        Raises: ArchiveWriteError if that could not be written; the archive is closed even then.
        """
        if self.state is GenerationState.CLOSED:
            return
        ended = self.state is GenerationState.ENDED
        self.state = GenerationState.CLOSED
        async with self._purge_lock:  # a running purge needs the threads
            closing = None if ended else self._writer.close()
        try:
            if closing is not None:
                await closing
        finally:
            undone = await asyncio.to_thread(self._stop_threads)
            _release(self._lock_fd, self.replicas)
            self.held.moved()
        if undone:
            raise ArchiveWriteError(
                f"{len(undone)} catalog changes could not be written",
                file=CATALOG_NAME,
                offset=None,
                errno=0,
                advice="The binlogs are complete; rows are made again at the next start, ledger rows are in the log.",
            )

    def _stop_threads(self) -> list[str]:
        self._writer.join()
        self.integrity.stop()
        undone = self._catalog.stop()
        self._position_checker.stop()
        return undone

    async def end_for_good(self, kind: str, text: str) -> None:
        """Seal the newest file: nothing is appended any more. `kind`, `text`: the row for the ledger, once ever.

        Bytes after the last whole transaction are taken back. A generation that has ended already is left alone. Raises:
        ArchiveWriteError, ArchiveMisuse (closed).
        """
        if self.state is GenerationState.ENDED:
            return
        self._writable()
        await self._writer.seal()
        self.state = GenerationState.ENDED
        self._append_name = None
        end = self.end
        row = LedgerRow(
            time.time(), kind, end.file if end is not None else "", end.offset if end is not None else -1, text
        )
        self._catalog.submit(lambda catalog: catalog.add_ledger_once(row))
        await asyncio.to_thread(self._writer.join)
        self.held.moved()

    async def reopen_writer(self) -> Position | None:
        """Recover the newest file after a failure and continue. Return `end`, where upstream must resume.

        Raises: ArchiveWriteError while the disk still refuses; ArchiveCorrupt when published bytes are damaged.
        """
        if self.state in (GenerationState.CLOSED, GenerationState.ENDED):
            raise ArchiveMisuse(f"the archive is {self.state.value}")
        with contextlib.suppress(ArchiveWriteError):
            # Does nothing if the writer failed (it has cut the file back then, and reports that again).
            await self._writer.trim()
        again = self.held.open_file
        received = self.publication.received
        synced_offset = self.publication.synced_offset_in(again) if again is not None else FIRST_EVENT
        recovered: ArchivedFile | None = None

        def recover() -> ArchivedFile | None:
            nonlocal recovered
            if again is None or received is None:
                return None
            recovered = recover_again(
                self.directory, self._layer, again, received.offset, synced_offset, self._catalog.write_ledger
            )
            return recovered

        try:
            await self._writer.reopen(recover)
        except OSError as error:
            raise ArchiveWriteError(
                f"the archive could not be reopened: {error}",
                file=again.name if again else None,
                offset=None,
                errno=error.errno or 0,
                advice="Free space or correct the disk, then try again.",
            ) from error
        if again is not None and recovered is not None:
            again.end, again.events, again.groups = recovered.end, recovered.events, recovered.groups
            self._append_name = again.name
        else:
            self._append_name = None
        newest = self.held.newest
        self._append_at = newest.end if newest else 0
        self.publication.begin_again()
        if self.failure is not None:
            self._tried_again = self.failure, self.end, time.monotonic()
        self.failure = None
        self.state = GenerationState.OPEN
        self._catalog.retry()
        self.held.moved()
        return self.end

    # --- facts -------------------------------------------------------------------------------------------------------

    @property
    def write_trouble(self) -> ArchiveWriteError | None:
        """The reason why nothing is written. A failure remains the reason until a later attempt has published something or lasts for
        30 s.

        A full disk refuses each attempt only at its first write: a reader in between must not see a healthy archive.
        """
        if self.failure is not None or self._tried_again is None:
            return self.failure
        failure, end, tried_at = self._tried_again
        if self.state is not GenerationState.OPEN or self.end != end or time.monotonic() - tried_at > _PROVEN_S:
            self._tried_again = None
            return None
        return failure

    @property
    def ended(self) -> bool:
        """True if a later one has begun and nothing is added to this one any more: `end` is final."""
        return self.state is GenerationState.ENDED

    @property
    def executed(self) -> GtidValue | None:
        """Everything that was published in this generation and the ones before it. None: nothing, in an archive without a file."""
        if self._executed_at_end is not None:
            return self._executed_at_end
        own = self.gtids.executed if self.gtids.flavour else None
        before = without_domains(self.before, self.gtids.forgotten)
        if not self._has_before and before is not None and own is not None:
            self._has_before = covers(own, before)
        executed = own if self._has_before else joined(before, own)
        if self.ended:
            self._executed_at_end = executed
        return executed

    def served_end(self, file: ArchivedFile) -> int:
        """Return the offset up to which replicas are sent `file`: its end, or as far as the source has it too."""
        fork = self.fork
        if fork is None or file.number < binlog_number(fork.file):
            return file.end
        return min(file.end, fork.offset) if file.name == fork.file else FIRST_EVENT

    @property
    def held_gtids(self) -> GtidSet:
        """The GTIDs of MySQL's transactions in the existing files."""
        count = len(self.files)
        if self._held_at_end is not None and self._held_at_end[0] == count:
            return self._held_at_end[1]
        own, gone = self.gtids.executed, self.gtids.purged
        held = own - gone if isinstance(own, GtidSet) and isinstance(gone, GtidSet) else GtidSet()
        if self.ended:
            self._held_at_end = count, held
        return held

    @property
    def identity(self) -> SourceIdentity | None:
        """The source whose bytes are here; None in a new archive. Comparing it is upstream's task."""
        return self._identity

    def set_identity(self, identity: SourceIdentity) -> None:
        """Store the source, also across restarts."""
        self._identity = identity
        self._catalog.submit(lambda catalog: catalog.set_identity(identity))

    @property
    def received(self) -> Position | None:
        """The end of what is written; it may be inside a transaction or event."""
        return self.publication.received

    @property
    def synced(self) -> Position | None:
        """The end of the last transaction that is on stable storage."""
        return self.publication.synced

    @property
    def queued_bytes(self) -> int:
        """The bytes that were appended and are not written yet: upstream's backpressure."""
        return self.publication.queued_bytes

    def watch_sync(self, callback: Callable[[], None]) -> None:
        """Call `callback()` on the loop when `synced` moved; many moves may be one call."""
        self.publication.watch_sync(callback)

    def unwatch_sync(self, callback: Callable[[], None]) -> None:
        """End `watch_sync`; an unknown callback is ignored."""
        self.publication.unwatch_sync(callback)

    # --- writing -----------------------------------------------------------------------------------------------------

    def start_file(self, name: str, *, previous_cut: bool = False) -> asyncio.Future[None]:
        """Queue the end of the current file and the start of `name`; runs appended from now on belong to it.

        A last group without its end in the current file is published as the source left it and written to the ledger; `previous_cut`
        says that the caller knows it for the source's crash. The new file appears when its first run (which starts with the format
        description) is written. The future is done when the current file is sealed; its failure also arrives through `on_failure`.
        Raises: ArchiveMisuse, ArchiveConflict (a number that does not increase), ArchiveWriteError (failed before).
        """
        self._writable()
        newest = self._append_name or (self.held.newest.name if self.held.newest else None)
        for kind, offset, text in check_file_sequence(newest, name):
            self.append_ledger(kind, name, offset, text)
        sealed = self._writer.begin_file(name, previous_cut)
        # The caller need not wait for it: the same failure is delivered through `on_failure`.
        sealed.add_done_callback(_look_at_result)
        self._append_name = name
        self._append_at = FIRST_EVENT
        return sealed

    async def begin_file(self, name: str, *, previous_cut: bool = False) -> None:
        """Call `start_file`, and wait until the previous file is sealed."""
        await asyncio.shield(self.start_file(name, previous_cut=previous_cut))

    def append(self, run: Run) -> None:
        """Queue `run` for the current file; it must follow what was queued before.

        Raises: ArchiveMisuse, also where the queue is full; ArchiveWriteError (the writer has failed; `reopen_writer` first).
        """
        self._writable()
        size = len(run.data)
        start = run.position - size
        if self._append_name is None or start != self._append_at or run.boundary > run.position:
            raise ArchiveMisuse(
                f"a run [{start}, {run.position}) with boundary {run.boundary} cannot follow offset {self._append_at}",
                file=self._append_name,
                offset=self._append_at,
            )
        if self.queued_bytes + size > self.queue_limit_bytes and self.queued_bytes:
            raise ArchiveMisuse(f"{self.queued_bytes} bytes wait for the disk", file=self._append_name)
        self._append_at = run.position
        self.publication.queued_bytes += size
        self._writer.put(run)

    def sync_up_to(self, file: str, offset: int) -> None:
        """Request whole transactions up to there on stable storage as soon as they are written, whatever the policy.

        One sync answers all requests before it; `watch_sync` reports when `synced` has moved.
        """
        self._writer.sync_up_to(binlog_number(file), offset)

    async def may_have_room(self) -> bool:
        """Return whether another attempt may get further than the one that failed, according to the disk's free bytes."""
        failure = self.failure
        if failure is None or not failure.needed_bytes:
            return True
        try:
            return await asyncio.to_thread(self._layer.free_bytes, self.directory) >= failure.needed_bytes
        except OSError:
            return True

    def watch_failure(self, callback: Callable[[ArchiveWriteError], None]) -> None:
        """Call `callback(error)` on the loop when the state becomes FAILED; now, if it is so already."""
        self._failure_watchers.add(callback)
        if self.state is GenerationState.FAILED and self.failure is not None:
            callback(self.failure)

    def unwatch_failure(self, callback: Callable[[ArchiveWriteError], None]) -> None:
        """End `watch_failure`; an unknown callback is ignored."""
        self._failure_watchers.remove(callback)

    async def trim(self) -> Position | None:
        """Take back what comes after the last whole transaction, after a lost connection, and sync the rest.

        Return `end`, where upstream must resume. A file whose header never came is forgotten: begin it again. Raises:
        ArchiveWriteError.
        """
        self._writable()
        await self._writer.trim()
        newest = self.open_file
        self._append_name = newest.name if newest is not None else None
        self._append_at = newest.end if newest is not None else FIRST_EVENT
        return self.end

    def append_ledger(self, kind: str, file: str, offset: int, text: str, details: str = "") -> None:
        """Add a row that nothing ever deletes. Its time is now; `offset` -1 if there is none; `details`: a JSON object."""
        log.warning("archive_ledger", kind=kind, file=file, offset=offset, text=text)
        self._catalog.add_ledger(kind, file, offset, text, details)

    def write_ledger(self, row: LedgerRow) -> None:
        """Add a row, which is on the disk on return; nothing is logged. Blocking: for a thread. Raises: OSError."""
        self._catalog.write_ledger([row])

    def note_once(self, kind: str, file: str, offset: int, text: str, details: str = "") -> None:
        """Add a row to the ledger, unless there is one of this kind, file and offset."""
        row = LedgerRow(time.time(), kind, file, offset, text, details)
        self._catalog.submit(lambda catalog: catalog.add_ledger_once(row))

    def file_moved(self, file: ArchivedFile, place: StorageLocation | None) -> None:
        """Note that the whole file is at a new place; None: on the disk as it was received. The one at its old place is removed after
        this."""
        file.place = place
        number = file.number
        self._catalog.submit(lambda catalog: catalog.put_place(number, place))
        self.held.moved()

    async def purge(self, names: Sequence[str], reason: str) -> None:
        """Remove the archive's oldest files. `names`: those, oldest first; `reason`: for the ledger, who requested it.

        All files of one that has ended may be removed; of others the newest stays.

        They are not found here any more at once; readers that have them open keep what they have. Whether a reader still needs one of
        them is for the caller to decide, in the same turn of the loop. It works in an archive that has failed too: a full disk is a
        reason to purge. Cancelling the caller does not stop it. Raises: ArchiveMisuse (not the oldest ones, or the newest among them,
        or closed, or a purge is running); ArchiveWriteError.
        """
        if self.state is GenerationState.CLOSED:
            raise ArchiveMisuse("the archive is closed")
        if self._purge_lock.locked():
            raise ArchiveMisuse("another purge is at work")
        count = len(names)
        most = len(self.files) - (self.state is not GenerationState.ENDED)
        if count > most or [file.name for file in self.files[:count]] != list(names):
            raise ArchiveMisuse(f"{count} files to purge are not the oldest ones, or are all there are")
        if not count:
            return
        await self._purge_lock.acquire()  # it is free: this does not wait
        files = self.held.take_oldest(count)
        # At once too, and not taken back if a purge fails: the operator does not want them to be served.
        self.gtids.forget_oldest(frozenset(names))
        await run_to_end(self._purge(files, reason), "purging the archive", expected=(ArchiveWriteError,))

    async def _purge(self, files: list[ArchivedFile], reason: str) -> None:
        bytes_before = sum(file.end for file in files)
        try:
            await self._purging.run(files, reason, lambda: self.state is GenerationState.CLOSED)
        finally:
            self.purged_bytes += bytes_before - sum(file.end for file in files)
            self.held.put_back(files)
            self._purge_lock.release()
            self.held.moved()

    def _writable(self) -> None:
        if self.state is GenerationState.OPEN:
            return
        if self.failure is not None:
            raise self.failure
        raise ArchiveMisuse(f"the archive is {self.state.value}")

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def files(self) -> Sequence[ArchivedFile]:
        """All files, oldest first; the last one may be open. Do not keep or change the sequence."""
        return self.held.all

    def file(self, name: str) -> ArchivedFile | None:
        """Return the file of that name, or None."""
        return self.held.get(name)

    def next_file(self, name: str) -> ArchivedFile | None:
        """Return the file after `name`, or None if `name` is the newest. Raises: as `HeldFiles.after`."""
        return self.held.after(name)

    def path(self, name: str) -> Path:
        """Return the path of the file. Raises: ArchiveUnknownFile (so a name from the network never becomes a path)."""
        return self.held.path(name)

    @property
    def open_file(self) -> ArchivedFile | None:
        """The file that grows, or None: no file yet, or the newest is sealed and its successor has no header yet."""
        return self.held.open_file

    @property
    def end(self) -> Position | None:
        """The published watermark: the end of the last transaction that readers may see."""
        return self.held.end

    def open_reader(self, name: str) -> FileReader:
        """Open a file for reading. Raises: ArchiveUnknownFile, ArchiveCorrupt (cannot be opened)."""
        return self.held.open_reader(name)

    @property
    def layer(self) -> FileLayer:
        """The disk that its files are read from."""
        return self._layer

    def open_shared(self, file: ArchivedFile) -> OpenFile:
        """Open a file, at any place, for reads that are compared with its sums. Raises: OSError; ArchiveError."""
        return open_archived(self._layer, self.directory / file.name, self.summed.of(file))

    def watch(self, callback: Callable[[], None]) -> None:
        """Call `callback()` on the loop when `end` moved, a file was created or sealed; many moves may be one call."""
        self.held.watch(callback)

    def unwatch(self, callback: Callable[[], None]) -> None:
        """End `watch`; an unknown callback is ignored."""
        self.held.unwatch(callback)

    async def check_position(self, file: str, offset: int) -> PositionCheck:
        """Check a place to start from, as `PositionCheck` describes. Raises: ArchiveCorrupt if the file itself cannot be read."""
        return await self._position_checker.check(file, offset)

    # --- reports from other threads and from the writer --------------------------------------------------------------

    def _file_sealed(self, file: ArchivedFile) -> None:
        if file.cut:
            self.append_ledger(
                "cut_group",
                file.name,
                file.end,
                "The source's crash left the last group without its end; served as it is.",
            )
        self.integrity.file_sealed(file)

    def _become_failed(self, error: ArchiveWriteError) -> None:
        if self.state is not GenerationState.OPEN:
            return
        self.state = GenerationState.FAILED
        self.failure = error
        if self._on_failure is not None:
            self._on_failure(error)
        else:
            log.error("archive_failed", **error.fields(), errno=error.errno)
        self._failure_watchers.notify(error)

    def _catalog_failed(self, error: ArchiveWriteError) -> None:
        self._loop.call_soon_threadsafe(self._become_failed, error)

    def _catalog_remade(self, rows: list[LedgerRow]) -> None:
        self._loop.call_soon_threadsafe(self._fill_catalog, rows)

    def _fill_catalog(self, rows: list[LedgerRow]) -> None:
        for row in rows:
            log.warning("archive_ledger", kind=row.kind, file=row.file, offset=row.offset, text=row.text)
        # Made into rows in the thread: there may be a hundred thousand.
        files, places, checks = list(self.held.all), self.damaged_files.all, dict(self.integrity.checks)
        self._catalog.submit(lambda catalog: catalog.add_missing_files(files, places, checks))


def _look_at_result(future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()


def _free_bytes(layer: FileLayer, directory: Path) -> int:
    try:
        return layer.free_bytes(directory)
    except OSError:
        return SQLITE_NEEDS_BYTES


def _release(lock_fd: int, marks: ReplicaMarks | None) -> None:
    if marks is not None:
        marks.close()
    if lock_fd >= 0:
        os.close(lock_fd)
