"""The one writer of an archive: a thread that writes runs in order; a second one syncs them (`SyncThread`).

    loop: append() --queue--> writer thread: pwritev, (boundary is published), index records --Written--> sync thread
    loop: <------------- one call_soon_threadsafe per batch of runs / per sync ------------------------------+

Python's work is per batch of runs, not per event.
"""

import asyncio
import errno as errno_numbers
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Protocol

from protocol.binlog.layout import FIRST_EVENT, MAGIC
from protocol.errors import Malformed
from relay.archive.catalog.catalog_rows import file_row
from relay.archive.catalog.catalog_thread import CatalogThread
from relay.archive.gtids.gtid_recorder import GtidRecorder, gtx_path
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.archived_file import ArchivedFile, describe_new_file
from relay.archive.storage.boundary_index import RECORD, RECORD_SIZE, BoundaryIndex, index_path, records_before
from relay.archive.storage.disk_advice import disk_advice
from relay.archive.storage.files import TEMPORARY_SUFFIX, FileLayer, write_all
from relay.archive.storage.gtid_facts import HEAD_DIFFERS, UNREADABLE, GtidChain, GtidFacts, GtidNews, family_change
from relay.archive.sums.block_sum import sum_paths
from relay.archive.sums.newest_block import NewestBlock
from relay.archive.sums.sum_recorder import SumRecorder
from relay.archive.write.failure_episode import FailureEpisode
from relay.archive.write.file_list import FileList
from relay.archive.write.options import ArchiveOptions
from relay.archive.write.room_needed import RoomNeeded
from relay.archive.write.run import Run
from relay.archive.write.sync_thread import Checkpoint, SyncThread, Written
from relay.process.background import tell_fault

_BATCH_BYTES: Final = 8 << 20
_BATCH_RUNS: Final = 256


class WriterEvents(Protocol):
    """The writer's reports, always on the event loop."""

    def file_created(self, file: ArchivedFile) -> None:
        """Report that a new file is in place under its name, with its header."""

    def advanced(self, received: int, boundary: int, runs: list[Run], gtids: GtidNews | None) -> None:
        """Report that `runs` are in the file: written up to `received`, whole groups up to `boundary`. `gtids`: what they added."""

    def dropped(self, runs: list[Run]) -> None:
        """Report that `runs` were not written (the writer has failed before)."""

    def synced_to(self, name: str, boundary: int) -> None:
        """Report that the file's whole groups up to `boundary` are on stable storage."""

    def file_sealed(self, file: ArchivedFile, gtids: GtidFacts) -> None:
        """Report that the file is complete and synced; `file` and `gtids` have its final facts."""

    def gtids_resumed(self, gtids: GtidFacts) -> None:
        """Report that the newest file was recovered, with its GTIDs up to its end."""

    def trimmed(self, name: str, boundary: int, events: int) -> None:
        """Report that bytes after `boundary` were taken back."""

    def failed(self, error: ArchiveWriteError, runs: list[Run]) -> None:
        """Report that a write or sync failed; the writer drops everything until it is reopened. `runs` were not written."""


class _OpenFile:
    """The writer thread's view of the file that grows."""

    __slots__ = (
        "boundary",
        "facts",
        "fd",
        "gtids",
        "idx_fd",
        "idx_size",
        "last_record",
        "mark_end",
        "mark_events",
        "position",
        "resumed",
        "sums",
    )

    def __init__(
        self,
        facts: ArchivedFile,
        fd: int,
        idx_fd: int,
        idx_size: int,
        last_record: int,
        gtids: GtidRecorder,
        sums: SumRecorder | None,
    ) -> None:
        self.facts = facts
        """The writer's own copy: events, groups, last_timestamp as of `position`."""
        self.fd = fd
        self.idx_fd = idx_fd
        self.idx_size = idx_size
        self.last_record = last_record
        """The offset of the newest index record, -1 if there is none."""
        self.gtids = gtids
        self.sums = sums
        """The sums; None: the events have checksums of their own."""
        self.position = facts.end
        self.boundary = facts.end
        self.mark_end = facts.end
        """The end of the run that contains `boundary`; `mark_events`, events up to there, gives the events at `boundary`."""
        self.mark_events = facts.events
        self.resumed = facts.end > FIRST_EVENT
        """True if the next run is the first after a recovery or trim: it must start with an index record of its own."""

    @property
    def name(self) -> str:
        """The binlog's name."""
        return self.facts.name

    def written(self) -> Written:
        """Return what may be synced as of now."""
        facts = self.facts
        return Written(self, self.boundary, self.mark_end, self.mark_events, facts.groups, facts.last_timestamp)

    def sync_indexes(self, layer: FileLayer) -> None:
        """Put NAME.idx, NAME.gtx and the files of sums on stable storage before returning. Raises: OSError."""
        layer.sync_data(self.idx_fd)
        self.gtids.sync()
        if self.sums is not None:
            self.sums.sync()

    def close_indexes(self, layer: FileLayer) -> None:
        """Close them. Raises: OSError."""
        layer.close(self.idx_fd)
        self.gtids.close()
        if self.sums is not None:
            self.sums.close()


class Writer:
    """Writes runs, creates and seals files, syncs. All methods are for the event loop's thread."""

    def __init__(
        self,
        directory: Path,
        layer: FileLayer,
        catalog: CatalogThread,
        loop: asyncio.AbstractEventLoop,
        events: WriterEvents,
        options: ArchiveOptions,
        newest_block: NewestBlock,
    ) -> None:
        self._directory = directory
        self._layer = layer
        self._catalog = catalog
        self._loop = loop
        self._events = events
        self._newest_block = newest_block
        self._queue: SimpleQueue[Run | Callable[[], None] | None] = SimpleQueue()
        self._file: _OpenFile | None = None
        self._pending_name: str | None = None
        self._failure: ArchiveWriteError | None = None
        self._episode = FailureEpisode()
        self._archived_bytes = 0
        """The bytes of whole groups since the start."""
        self._room = RoomNeeded()
        self.file_list = FileList(directory, layer)
        self._chain = GtidChain()
        """The GTID state after the last file that was sealed."""
        self._flavour = ""
        """The flavour of the newest file; "": there is none."""
        self._thread = threading.Thread(target=self._main, name="archive-writer", daemon=True)
        self._sync = SyncThread(
            layer,
            options.sync,
            options.sync_interval_s,
            times=options.sync_times,
            on_synced=self._synced,
            on_checkpoint=self._checkpoint,
            on_failure=self._sync_failed,
        )

    # --- event loop side ---------------------------------------------------------------------------------------------

    def start(self, newest: ArchivedFile | None, chain: GtidChain, flavour: str) -> None:
        """Start the threads; `newest` is the open file to continue, if there is one, `chain` the state after the last sealed one,
        `flavour` the newest file's. Blocking: opens files."""
        self._chain = chain
        self._flavour = flavour
        if newest is not None:
            self._file = self._reopen(newest)
            self._sync.begin_at(self._file.written())
        self._thread.start()
        self._sync.start()

    def put(self, run: Run) -> None:
        """Queue a run."""
        self._queue.put(run)

    def sync_up_to(self, number: int, offset: int) -> None:
        """Request a sync as soon as whole groups up to there are written; one sync answers all requests by then."""
        self._sync.want(number, offset)

    def begin_file(self, name: str, cut: bool) -> asyncio.Future[None]:
        """Queue: seal the current file, create `name` when the next run comes. Done when sealed."""
        return self._command(lambda: self._begin_file(name, cut))

    def seal(self) -> asyncio.Future[None]:
        """Queue: take back what comes after the last whole group and seal the file; no other follows."""
        return self._command(self._seal_last)

    def trim(self) -> asyncio.Future[None]:
        """Queue: take back what comes after the last whole group, and sync what is left."""
        return self._command(self._trim)

    def reopen(self, recover: Callable[[], ArchivedFile | None]) -> asyncio.Future[None]:
        """Queue: forget the failure and continue with the file that `recover` (run in the writer thread) returns."""
        return self._command(lambda: self._recover(recover))

    def close(self) -> asyncio.Future[None]:
        """Queue: trim, sync, checkpoint, close the file. `join` afterwards."""
        return self._command(self._close)

    def join(self) -> None:
        """End both threads. Blocking, at most one system call long."""
        self._queue.put(None)
        self._thread.join()
        self._sync.stop()

    def _command(self, action: Callable[[], None]) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self._loop.create_future()

        def settle(error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        def run() -> None:
            error: BaseException | None = None
            try:
                action()
            except Exception as problem:
                error = problem
            self._loop.call_soon_threadsafe(settle, error)

        self._queue.put(run)
        return future

    # --- writer thread -----------------------------------------------------------------------------------------------

    def _main(self) -> None:
        get = self._queue.get
        empty = self._queue.empty
        item: Run | Callable[[], None] | None
        while (item := get()) is not None:
            while isinstance(item, Run):
                batch = [item]
                size = len(item.data)
                item = None
                # A new file is created from one run, so that it appears soon and needs little room.
                while self._file is not None and size < _BATCH_BYTES and len(batch) < _BATCH_RUNS and not empty():
                    following = get()
                    if not isinstance(following, Run):
                        item = following
                        if item is None:
                            self._queue.put(None)
                        break
                    batch.append(following)
                    size += len(following.data)
                self._write(batch, size)
            if item is not None:
                item()

    def _write(self, batch: list[Run], size: int) -> None:
        if self._failure is not None:
            self._loop.call_soon_threadsafe(self._events.dropped, batch)
            return
        file = self._file
        try:
            if file is None:
                file = self._create(batch, size)
            else:
                self._check_size(file)
                write_all(self._layer, file.fd, [run.data for run in batch], file.position, size)
            if file.sums is not None:
                file.sums.take(batch)
            # Before they are published: a look-up between the two would take the next group for part of the last one.
            records = b"".join([run.records for run in batch])
            if records or file.resumed:
                self._write_records(file, records)
            gtids = self._record_gtids(file, batch)
        except (OSError, Malformed) as error:
            self._fail("the archive could not be written", error, batch)
            return
        except Exception as fault:
            # The thread continues: otherwise nothing would be written any more, and a stop would wait for it for ever.
            tell_fault("archive_writer_failed", fault, file=self._pending_name if file is None else file.facts.name)
            self._fail("the archive could not be written, by a fault of binlog-relay", fault, batch)
            return
        facts = file.facts
        moved = False
        before = (facts.number, file.boundary)
        for run in batch:
            facts.events += run.events
            facts.groups += run.groups
            if run.boundary > file.boundary:
                moved = True
                file.boundary = run.boundary
                file.mark_end = run.position
                file.mark_events = facts.events
        if file.sums is not None:
            file.sums.written()
        self._archived_bytes += file.boundary - before[1]
        last = batch[-1]
        file.position = last.position
        if last.timestamp > facts.last_timestamp:
            facts.last_timestamp = last.timestamp
        self._loop.call_soon_threadsafe(self._events.advanced, last.position, file.boundary, batch, gtids)
        if moved:
            self._sync.grow(file.written(), before)

    def _check_size(self, file: _OpenFile) -> None:
        """Check the size. Raises: OSError for a file that was shortened from outside: it would get a hole of zeroes."""
        size = self._layer.size(file.fd)
        if size < file.position:
            raise OSError(f"the file was shortened from outside: it has {size} bytes, {file.position} were written")

    def _record_gtids(self, file: _OpenFile, batch: list[Run]) -> GtidNews | None:
        recorder = file.gtids
        readable = recorder.problem is None
        news = recorder.take([run.data for run in batch])
        name = file.facts.name
        if recorder.problem is not None:
            if readable:
                self._catalog.add_ledger(
                    UNREADABLE, name, file.position, f"{recorder.problem}; no replica that asks by GTID gets this file."
                )
        elif news is not None and news.head is not None:
            difference = self._chain.difference(file.facts.number, news.head)
            if difference is not None:
                self._catalog.add_ledger(HEAD_DIFFERS, name, FIRST_EVENT, difference)
        return news

    def _write_records(self, file: _OpenFile, records: bytes) -> None:
        """Append index records, none twice; after a resume the first record is for the resume's own offset."""
        while records and RECORD.unpack_from(records)[0] <= file.last_record:
            records = records[RECORD_SIZE:]
        if file.resumed:
            file.resumed = False
            start = file.position
            if start > file.last_record and (not records or RECORD.unpack_from(records)[0] != start):
                records = RECORD.pack(start, start, file.facts.last_timestamp & 0xFFFFFFFF, 1) + records
        if not records:
            return
        write_all(self._layer, file.idx_fd, [records], file.idx_size, len(records))
        file.idx_size += len(records)
        file.last_record = RECORD.unpack_from(records, len(records) - RECORD_SIZE)[0]

    def _create(self, batch: list[Run], size: int) -> _OpenFile:
        """Create the file under a temporary name with its header, sync, rename, sync the directory, list it."""
        name = self._pending_name
        if name is None:
            raise Malformed("bytes came before the name of their file")
        path = self._directory / name
        if self._layer.exists(path):
            raise OSError(errno_numbers.EEXIST, "a file of this name is there already", str(path))
        facts = describe_new_file(name, bytes(memoryview(batch[0].data)[: 1 << 16]))
        temporary = path.with_name(name + TEMPORARY_SUFFIX)
        fd = idx_fd = -1
        gtids: GtidRecorder | None = None
        sums: SumRecorder | None = None
        try:
            fd = self._layer.create(temporary)
            write_all(self._layer, fd, [MAGIC, *(run.data for run in batch)], 0, len(MAGIC) + size)
            self._layer.sync_data(fd)
            idx_fd = self._layer.create(index_path(path))
            gtids = GtidRecorder.create(self._layer, path, facts)
            if not facts.checksum:
                sums = SumRecorder.create(self._layer, path, self._newest_block)
            self._layer.rename(temporary, path)
            self._layer.sync_directory(self._directory)
            self.file_list.add(name)
        except OSError:
            for opened in (fd, idx_fd):
                if opened >= 0:
                    self._layer.close(opened)
            for recorder in (gtids, sums):
                if recorder is not None:
                    recorder.close()
            for leftover in (temporary, path, index_path(path), gtx_path(path), *sum_paths(path)):
                self._discard(leftover)
            raise
        file = _OpenFile(facts, fd, idx_fd, 0, -1, gtids, sums)
        row = file_row(facts)
        self._catalog.submit(lambda catalog: catalog.put_file(row))
        changed_family = family_change(name, facts.flavour, self._flavour)
        if changed_family is not None:
            self._catalog.add_ledger(UNREADABLE, name, FIRST_EVENT, changed_family)
        self._flavour = facts.flavour
        self._file = file
        self._pending_name = None
        self._loop.call_soon_threadsafe(self._events.file_created, _copy(facts))
        return file

    def _discard(self, path: Path) -> None:
        try:
            self._layer.unlink(path)
        except OSError as error:
            # The disk is failing already and that is being reported; recovery removes leftovers at the next open.
            self._catalog.add_ledger("leftover", path.name, -1, f"could not be removed: {error}")

    def _begin_file(self, name: str, cut: bool) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            self._seal(cut)
        except OSError as error:
            raise self._fail("the finished file could not be synced", error, []) from error
        self._pending_name = name

    def _seal_last(self) -> None:
        self._trim()
        try:
            self._seal(cut=False)
        except OSError as error:
            raise self._fail("the last file could not be synced", error, []) from error

    def _seal(self, cut: bool) -> None:
        file = self._file
        if file is None:
            return
        open_group = file.position > file.boundary
        if open_group:
            file.boundary = file.mark_end = file.position
            file.mark_events = file.facts.events
            if not cut:
                self._catalog.add_ledger(
                    "unannounced_cut", file.facts.name, file.position, "The file changed inside a transaction."
                )
        self._sync.withdraw()
        file.gtids.finish()
        if file.sums is not None:
            file.sums.finish()
        with self._sync.paused():
            self._sync.sync_here(file.fd)
            file.sync_indexes(self._layer)
            self._layer.close(file.fd)
            file.close_indexes(self._layer)
            self._file = None
        facts = file.facts
        facts.end = file.position
        facts.sealed = True
        facts.cut = open_group
        row = file_row(facts)
        gtids = file.gtids.facts
        entry = self._chain.entry(facts.number, gtids)
        self._chain.add(facts.number, gtids)
        self._catalog.submit(lambda catalog: catalog.put_sealed(row, entry))
        self._loop.call_soon_threadsafe(self._events.file_sealed, _copy(facts), gtids)

    def _trim(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            self._trim_file()
        except OSError as error:
            raise self._fail("the incomplete transaction could not be taken back", error, []) from error

    def _trim_file(self) -> None:
        self._pending_name = None
        file = self._file
        if file is None:
            return
        # What was submitted for syncing refers to the end of a run that may be cut off here.
        self._sync.withdraw()
        with self._sync.paused():
            if file.position > file.boundary:
                self._cut_back(file)
            self._sync.sync_here(file.fd)
            if file.sums is not None:
                file.sums.sync()  # the bytes that replace the ones that were cut off may differ
        file.resumed = True
        if file.gtids.problem is not None:
            self._read_gtids_again(file)
        self._sync.begin_at(file.written())
        name, boundary = file.facts.name, file.boundary
        self._loop.call_soon_threadsafe(self._events.trimmed, name, boundary, file.facts.events)
        self._loop.call_soon_threadsafe(self._events.synced_to, name, boundary)

    def _read_gtids_again(self, file: _OpenFile) -> None:
        """Read the file's GTIDs again, as the part that could not be read may have been cut off. Raises: OSError."""
        facts = _copy(file.facts)
        facts.end = file.boundary
        recorder = GtidRecorder.resume(self._layer, self._directory / facts.name, facts)
        file.gtids.close()
        file.gtids = recorder
        if recorder.problem is None:
            self._loop.call_soon_threadsafe(self._events.gtids_resumed, recorder.facts)

    def _cut_back(self, file: _OpenFile) -> None:
        if self._layer.size(file.fd) < file.boundary:
            return  # cut to the boundary it would grow, by zeroes
        file.gtids.cut_back(file.boundary)
        events = file.written().events(self._layer)
        self._layer.truncate(file.fd, file.boundary)
        file.position = file.mark_end = file.boundary
        file.facts.events = file.mark_events = events
        file.idx_size = records_before(self._layer, file.idx_fd, file.boundary + 1)
        self._layer.truncate(file.idx_fd, file.idx_size)
        index = BoundaryIndex(self._layer, file.idx_fd)
        file.last_record = index.record(index.count - 1).offset if index.count else -1
        if file.sums is not None:
            file.sums.cut_back()

    def _recover(self, recover: Callable[[], ArchivedFile | None]) -> None:
        self._sync.withdraw()
        with self._sync.paused():
            if self._file is not None:
                for close in (
                    partial(self._layer.close, self._file.fd),
                    partial(self._file.close_indexes, self._layer),
                ):
                    try:
                        close()
                    except OSError as error:
                        self._catalog.add_ledger("close_failed", self._file.facts.name, -1, str(error))
                self._file = None
        newest = recover()
        if newest is not None:
            file = self._reopen(newest)
            self._layer.sync_data(file.fd)
            self._file = file
            self._sync.begin_at(file.written())
            self._loop.call_soon_threadsafe(self._events.gtids_resumed, file.gtids.facts)
            self._loop.call_soon_threadsafe(self._events.synced_to, newest.name, file.boundary)
        self._pending_name = None
        self._failure = None
        self._sync.begin_again()

    def _reopen(self, facts: ArchivedFile) -> _OpenFile:
        path = self._directory / facts.name
        gtids = GtidRecorder.resume(self._layer, path, facts)
        fd = idx_fd = -1
        sums: SumRecorder | None = None
        try:
            fd = self._layer.open_alone(path)
            idx_fd = self._layer.open_alone(index_path(path))
            index = BoundaryIndex(self._layer, idx_fd)
            last = index.record(index.count - 1).offset if index.count else -1
            if not facts.checksum:
                sums = SumRecorder.resume(self._layer, path, facts, self._newest_block)
        except OSError:
            gtids.close()
            for opened in (fd, idx_fd):
                if opened >= 0:
                    self._layer.close(opened)
            raise
        return _OpenFile(_copy(facts), fd, idx_fd, index.count * RECORD_SIZE, last, gtids, sums)

    def _close(self) -> None:
        self._pending_name = None
        file = self._file
        self._sync.withdraw()
        if file is None:
            return
        try:
            if self._failure is None:
                with self._sync.paused():
                    if file.position > file.boundary:
                        self._cut_back(file)
                    file.gtids.finish()
                    self._sync.sync_here(file.fd)
                    file.sync_indexes(self._layer)
                facts = file.facts
                end, events, groups, stamp = file.boundary, facts.events, facts.groups, facts.last_timestamp
                self._catalog.submit(lambda catalog: catalog.checkpoint(facts.name, end, events, groups, stamp))
        except OSError as error:
            raise self._fail("the archive could not be synced at its close", error, []) from error
        finally:
            with self._sync.paused():
                self._layer.close(file.fd)
                file.close_indexes(self._layer)
                self._file = None

    def _fail(self, what: str, error: Exception, runs: list[Run]) -> ArchiveWriteError:
        """Cut the file back to its last whole group (best effort) and report; everything later is dropped."""
        file = self._file
        self._sync.withdraw()
        number = getattr(error, "errno", None) or 0
        reason = os.strerror(number) if number else str(error)
        name = file.facts.name if file is not None else self._pending_name
        offset = file.position if file is not None else 0
        if self._failure is not None:
            return self._failure
        needed_bytes = 0
        advice = (
            disk_advice(self._layer, self._directory, number)
            or "Nothing incomplete was published; correct the cause, the relay goes on by itself then."
        )
        if file is not None:
            try:
                got_bytes = file.position - file.boundary
                with self._sync.paused():
                    self._cut_back(file)
                needed_bytes = self._room.after(number, file.name, file.boundary, got_bytes)
                if needed_bytes:
                    advice = self._room_advice(file, got_bytes, needed_bytes)
            except OSError as second:
                self._catalog.add_ledger(
                    "trim_failed", file.facts.name, file.boundary, f"not cut back after a failed write: {second}"
                )
            self._loop.call_soon_threadsafe(self._events.trimmed, file.facts.name, file.boundary, file.facts.events)
        problem = ArchiveWriteError(
            f"{what}: {reason}", file=name, offset=offset, errno=number, advice=advice, needed_bytes=needed_bytes
        )
        self._failure = problem
        if self._episode.is_news(number, self._archived_bytes, time.monotonic()):
            self._catalog.add_ledger("write_failed", name or "", offset, str(problem))
        self._loop.call_soon_threadsafe(self._events.failed, problem, runs)
        return problem

    def _room_advice(self, file: _OpenFile, got_bytes: int, needed_bytes: int) -> str:
        """Return the advice for a disk that is full. Raises: OSError."""
        free_bytes = self._layer.free_bytes(self._directory)
        return (
            f"The transaction at {file.name}:{file.boundary} is larger than the disk has room for: {got_bytes} bytes of it were "
            f"written and taken back, {free_bytes} are free now. Make room, or purge archived files; it is asked for again when "
            f"{needed_bytes} bytes are free, or at START REPLICA."
        )

    # --- reports of the sync thread, made in it ----------------------------------------------------------------------

    def _synced(self, name: str, boundary: int) -> None:
        self._loop.call_soon_threadsafe(self._events.synced_to, name, boundary)

    def _checkpoint(self, reached: Checkpoint) -> None:
        self._catalog.submit(lambda catalog: catalog.checkpoint(*reached))

    def _sync_failed(self, error: Exception) -> None:
        # The failure belongs to the writer thread: only it may cut the file and refuse what is queued.
        def fail() -> None:
            self._fail("the archive could not be synced", error, [])

        self._queue.put(fail)


def _copy(facts: ArchivedFile) -> ArchivedFile:
    return ArchivedFile(**{name: getattr(facts, name) for name in ArchivedFile.__slots__})
