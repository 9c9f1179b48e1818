"""The archive of one source: what upstream appends to, and the only thing downstream reads."""

import asyncio
import contextlib
import fcntl
import os
import sqlite3
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from typing import Final

import structlog

from protocol.errors import Malformed
from protocol.position import Position, binlog_number
from relay.archive.archived_file import FIRST_EVENT, ArchivedFile, SourceIdentity
from relay.archive.catalog import Catalog, CatalogThread, LedgerRow
from relay.archive.digest import DigestThread
from relay.archive.errors import (
    ArchiveConflict,
    ArchiveCorrupt,
    ArchiveError,
    ArchiveGap,
    ArchiveLocked,
    ArchiveMisuse,
    ArchiveQueueFull,
    ArchiveUnknownFile,
    ArchiveWriteError,
)
from relay.archive.files import CATALOG_NAME, LOCK_NAME, MARKS_NAME, Buffer, FileLayer, write_again
from relay.archive.gtid_facts import GtidFacts, GtidNews
from relay.archive.position_check import IndexUnusable, PositionCheck, Verdict, check_offset
from relay.archive.purge import Purging
from relay.archive.reader import FileReader
from relay.archive.recovery import Progress, Recovered, Recovery, rebuild_index, recover_file
from relay.archive.replica_marks import ReplicaMarks
from relay.archive.writer import PublishPolicy, Run, SyncPolicy, Writer

__all__ = [
    "Archive",
    "ArchiveState",
    "ArchivedFile",
    "PositionCheck",
    "PublishPolicy",
    "SourceIdentity",
    "SyncPolicy",
    "Verdict",
    "count_ledger",
    "list_archive",
    "read_ledger",
    "rebuild_archive",
]

log = structlog.get_logger(__name__)

QUEUE_LIMIT_BYTES: Final = 64 << 20
"""Default of the most that may wait for the disk. Upstream stops reading far earlier (`queued_bytes`)."""

_CHECK_THREADS: Final = 2


class ArchiveState(Enum):
    """What may be done with an archive."""

    OPEN = "open"
    FAILED = "failed"
    """A write failed; reading goes on, `reopen_writer` may bring it back."""
    CLOSED = "closed"


class Archive:
    """One source's archive directory, open for writing by this process. All methods are for the event loop's thread.

    Get one by `await Archive.open(...)`.
    """

    def __init__(
        self,
        directory: Path,
        layer: FileLayer,
        lock_fd: int,
        recovered: Recovered,
        marks: ReplicaMarks,
        *,
        sync: SyncPolicy,
        publish: PublishPolicy,
        sync_interval_s: float,
        queue_limit_bytes: int,
        on_failure: Callable[[ArchiveWriteError], None] | None,
    ) -> None:
        self.directory = directory
        self.replicas = marks
        self.gtids = recovered.gtids
        """What is published, by GTID. Others only read it."""
        self.state = ArchiveState.OPEN
        self.failure: ArchiveWriteError | None = None
        self.queued_bytes = 0
        """Bytes that were appended and are not written yet: upstream's backpressure."""
        self.purged_bytes = 0
        """Of files that were removed since the archive was opened."""
        self.queue_limit_bytes = queue_limit_bytes
        self._layer = layer
        self._lock_fd = lock_fd
        self._publish = publish
        self._on_failure = on_failure
        self._identity = recovered.identity
        self._files = recovered.files
        self._by_name = {file.name: file for file in self._files}
        self._watchers: list[Callable[[], None]] = []
        self._sync_watchers: list[Callable[[], None]] = []
        self._loop = asyncio.get_running_loop()
        self._checks = ThreadPoolExecutor(_CHECK_THREADS, thread_name_prefix="archive-check")
        self._catalog = CatalogThread(directory / CATALOG_NAME, layer, self._catalog_failed)
        self._digests = DigestThread(layer, self._digest_made, self._digest_failed)
        self._writer = Writer(directory, layer, self._catalog, self._loop, self, sync, sync_interval_s)
        self._purging = Purging(directory, layer, self._catalog, self._writer.unlist)
        self._purge_lock = asyncio.Lock()
        newest = self._files[-1] if self._files else None
        self._received_file = newest
        self._received_offset = newest.end if newest else 0
        self._synced_file = newest
        self._synced_offset = newest.end if newest else 0
        self._append_name: str | None = newest.name if newest and not newest.sealed else None
        self._append_at = newest.end if newest else FIRST_EVENT
        self._index_locks: dict[str, asyncio.Lock] = {}

    # --- opening and closing -----------------------------------------------------------------------------------------

    @classmethod
    async def open(
        cls,
        directory: Path,
        *,
        sync: SyncPolicy = SyncPolicy.INTERVAL,
        publish: PublishPolicy = PublishPolicy.WRITTEN,
        sync_interval_s: float = 1.0,
        queue_limit_bytes: int = QUEUE_LIMIT_BYTES,
        on_failure: Callable[[ArchiveWriteError], None] | None = None,
        on_progress: Progress | None = None,
        layer: FileLayer | None = None,
    ) -> "Archive":
        """Opens the archive of one source in `directory` (<archive_dir>/<source name>), made when missing; recovers it.

        Afterwards `end` is the place to resume from. `on_failure` is called on the loop when the state becomes FAILED.
        `on_progress(file, bytes)` is called in another thread while files are read.
        Raises: ArchiveLocked, ArchiveCorrupt, ArchiveConflict, ArchiveWriteError, ArchiveMisuse.
        """
        if publish is PublishPolicy.SYNCED and sync is SyncPolicy.NONE:
            raise ArchiveMisuse('publish = "synced" needs sync = "transaction" or "interval"')
        layer = layer or FileLayer()
        lock_fd = -1
        marks: ReplicaMarks | None = None

        def prepare() -> Recovered:
            nonlocal lock_fd, marks
            layer.make_directory(directory)
            lock_fd = take_lock(directory, layer)
            recovered = Recovery(directory, layer, on_progress).run()
            marks = ReplicaMarks.open(directory / MARKS_NAME)
            return recovered

        try:
            recovered = await asyncio.to_thread(prepare)
            assert marks is not None
            archive = cls(
                directory,
                layer,
                lock_fd,
                recovered,
                marks,
                sync=sync,
                publish=publish,
                sync_interval_s=sync_interval_s,
                queue_limit_bytes=queue_limit_bytes,
                on_failure=on_failure,
            )
            newest = archive._files[-1] if archive._files else None
            again = newest if newest and not newest.sealed else None
            await asyncio.to_thread(archive._writer.start, again, recovered.chain)
        except (OSError, sqlite3.Error) as error:
            _release(lock_fd, marks)
            raise ArchiveWriteError(
                f"the archive could not be opened: {error}",
                file=None,
                offset=None,
                errno=getattr(error, "errno", 0) or 0,
                advice=f"Check space, permissions and the disk under {directory}.",
            ) from error
        except BaseException:
            _release(lock_fd, marks)
            raise
        archive._catalog.start()
        archive._digests.start()
        for file in archive._files:
            if file.sealed and file.digest is None and not file.damaged:
                archive._digests.add(directory / file.name, file.end)
        for row in recovered.findings:
            log.warning("archive_recovery_finding", kind=row.kind, file=row.file, offset=row.offset, text=row.text)
        return archive

    async def close(self) -> None:
        """Takes back an incomplete transaction, syncs, notes that nothing needs a rescan, and lets go of the directory.

        Raises: ArchiveWriteError if that could not be written; the archive is closed all the same.
        """
        if self.state is ArchiveState.CLOSED:
            return
        self.state = ArchiveState.CLOSED
        async with self._purge_lock:  # a purge that is at work needs the threads
            closing = self._writer.close()
        try:
            await closing
        finally:
            undone = await asyncio.to_thread(self._stop_threads)
            _release(self._lock_fd, self.replicas)
            self._wake_watchers()
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
        self._digests.stop()
        undone = self._catalog.stop()
        self._checks.shutdown(wait=True, cancel_futures=True)
        return undone

    async def reopen_writer(self) -> Position | None:
        """After a failure: recovers the newest file again and goes on. Returns `end`, where upstream must resume.

        Raises: ArchiveWriteError when the disk still refuses; ArchiveCorrupt when published bytes are damaged.
        """
        if self.state is ArchiveState.CLOSED:
            raise ArchiveMisuse("the archive is closed")
        with contextlib.suppress(ArchiveWriteError):
            # Does nothing if it was the writer that failed (it has cut the file back then, and says so again).
            await self._writer.trim()
        newest = self._files[-1] if self._files else None
        again = newest if newest is not None and not newest.sealed else None
        scratch = _copy_from(again, self._received_offset) if again is not None else None
        synced_offset = self._synced_offset if self._synced_file is again else FIRST_EVENT
        findings: list[LedgerRow] = []

        def find(kind: str, file: str, offset: int, text: str) -> None:
            findings.append(LedgerRow(time.time(), kind, file, offset, text))

        def recover() -> ArchivedFile | None:
            if scratch is not None and again is not None:
                recover_file(self.directory, self._layer, scratch, newest=True, find=find)
                if scratch.end < again.end:
                    raise ArchiveCorrupt(
                        f"{again.end} bytes were published, {scratch.end} can be read",
                        file=again.name,
                        offset=scratch.end,
                        advice="Check the disk; replicas may hold what is lost here.",
                    )
                write_again(self._layer, self.directory / again.name, synced_offset, scratch.end)
            return scratch

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
        for row in findings:
            self._catalog.submit(lambda catalog, row=row: catalog.add_ledger(row))  # type: ignore[misc]
        if again is not None and scratch is not None:
            again.end = scratch.end
            again.events, again.groups = scratch.events, scratch.groups
            self._append_name = again.name
        else:
            self._append_name = None
        self._received_file = newest
        self._received_offset = self._append_at = newest.end if newest else 0
        self.failure = None
        self.state = ArchiveState.OPEN
        self._catalog.retry()
        self._wake_watchers()
        return self.end

    # --- facts -------------------------------------------------------------------------------------------------------

    @property
    def identity(self) -> SourceIdentity | None:
        """The source whose bytes are here; None in a new archive. To compare it is upstream's business."""
        return self._identity

    def set_identity(self, identity: SourceIdentity) -> None:
        """Remembers the source, also across restarts."""
        self._identity = identity
        self._catalog.submit(lambda catalog: catalog.set_identity(identity))

    @property
    def files(self) -> Sequence[ArchivedFile]:
        """All files, oldest first; the last one may be open. Do not keep or change the sequence."""
        return self._files

    def file(self, name: str) -> ArchivedFile | None:
        """The file of that name, or None."""
        return self._by_name.get(name)

    def next_file(self, name: str) -> ArchivedFile | None:
        """The file after `name`, or None if `name` is the newest.

        Raises: ArchiveUnknownFile; ArchiveGap if files between are not held; ArchiveCorrupt if `name` itself is damaged.
        """
        file = self._by_name.get(name)
        if file is None:
            raise ArchiveUnknownFile("the archive does not hold this file", file=name)
        if file.damaged:
            raise ArchiveCorrupt(
                "the rest of this file is damaged and nothing is served past it",
                file=name,
                offset=file.end,
                advice="Run `archive verify --deep`, then restore the file from the source or another relay.",
            )
        place = bisect_right(self._files, file.number, key=lambda other: other.number)
        if place == len(self._files):
            return None
        following = self._files[place]
        if following.number != file.number + 1:
            raise ArchiveGap(
                f"{following.number - file.number - 1} file(s) between {name} and {following.name} are not held",
                file=name,
                offset=file.end,
                advice="Restore them from the source, or start the replica in a later file from a new copy of the data.",
            )
        return following

    def path(self, name: str) -> Path:
        """Where the file is. Raises: ArchiveUnknownFile (so a name from the network never becomes a path)."""
        if name not in self._by_name:
            raise ArchiveUnknownFile("the archive does not hold this file", file=name)
        return self.directory / name

    @property
    def open_file(self) -> ArchivedFile | None:
        """The file that grows, or None: no file yet, or the newest is sealed and its successor has no header yet."""
        return self._files[-1] if self._files and not self._files[-1].sealed else None

    @property
    def end(self) -> Position | None:
        """The published watermark: end of the last transaction that readers may see."""
        if not self._files:
            return None
        newest = self._files[-1]
        return Position(newest.name, newest.end)

    @property
    def received(self) -> Position | None:
        """End of what is written; may be inside a transaction or event."""
        file = self._received_file
        return None if file is None else Position(file.name, self._received_offset)

    @property
    def synced(self) -> Position | None:
        """End of the last transaction that is on stable storage."""
        file = self._synced_file
        return None if file is None else Position(file.name, self._synced_offset)

    # --- writing -----------------------------------------------------------------------------------------------------

    def start_file(self, name: str, *, previous_cut: bool = False) -> asyncio.Future[None]:
        """Queues the end of the current file and the start of `name`; runs appended from now on belong to it.

        A last group without its end in the current file is published as the source left it and written to the ledger;
        `previous_cut` says that the caller knows it for the source's crash. The new file appears when its first run
        (which starts with the format description) is written. The future is done when the current file is sealed; its
        failure also arrives through `on_failure`.
        Raises: ArchiveMisuse, ArchiveConflict (a number that does not go up), ArchiveWriteError (failed before).
        """
        self._writable()
        try:
            number = binlog_number(name)
        except Malformed as error:
            raise ArchiveConflict(str(error), file=name, advice="The source must not send such a name.") from error
        newest = self._append_name or (self._files[-1].name if self._files else None)
        if newest is not None:
            newest_number = binlog_number(newest)
            if number <= newest_number:
                raise ArchiveConflict(
                    f"the source starts {name}, the archive already holds {newest}",
                    file=name,
                    advice="The source was reset or is another one: give it an archive directory of its own.",
                )
            base, newest_base = name.rpartition(".")[0], newest.rpartition(".")[0]
            if base != newest_base:
                self.append_ledger("renamed", name, 0, f"The source's binlogs were {newest_base}.*, now {base}.*.")
            if number != newest_number + 1:
                self.append_ledger(
                    "gap",
                    name,
                    FIRST_EVENT,
                    f"{number - newest_number - 1} file(s) between {newest} and {name} are not held; "
                    "nothing is served from before to after them.",
                )
        sealed = self._writer.begin_file(name, previous_cut)
        # Nobody has to wait for it: the same failure is delivered through `on_failure`.
        sealed.add_done_callback(_look_at_result)
        self._append_name = name
        self._append_at = FIRST_EVENT
        return sealed

    async def begin_file(self, name: str, *, previous_cut: bool = False) -> None:
        """`start_file`, and waits until the previous file is sealed."""
        await asyncio.shield(self.start_file(name, previous_cut=previous_cut))

    def append(
        self,
        run: Buffer,
        *,
        boundary: int,
        position: int,
        entries: bytes,
        events: int,
        groups: int,
        timestamp: int,
        on_written: Callable[[], None] | None = None,
    ) -> None:
        """Queues `run` for the current file; it ends at offset `position` there and must follow what was queued before.

        boundary: offset of the newest transaction boundary, <= position. entries: `Ingest.take_entries()`. events, groups:
        how many this run adds (not sums). timestamp: the newest event's, seconds. The buffer is the writer's until
        `on_written` is called on the loop (also when the writer has failed and dropped it).
        Raises: ArchiveMisuse, ArchiveQueueFull, ArchiveWriteError (the archive has failed; `reopen_writer` first).
        """
        self._writable()
        size = len(run)
        if self._append_name is None or position - size != self._append_at or boundary > position:
            raise ArchiveMisuse(
                f"a run [{position - size}, {position}) with boundary {boundary} cannot follow offset {self._append_at}",
                file=self._append_name,
                offset=self._append_at,
            )
        if self.queued_bytes + size > self.queue_limit_bytes and self.queued_bytes:
            raise ArchiveQueueFull(f"{self.queued_bytes} bytes wait for the disk", file=self._append_name)
        self._append_at = position
        self.queued_bytes += size
        self._writer.put(Run(run, boundary, position, entries, events, groups, timestamp, on_written))

    async def trim(self) -> Position | None:
        """After a lost connection: takes back what is behind the last whole transaction and syncs the rest.

        Returns `end`, where upstream must resume. A file whose header never came is forgotten: begin it again.
        Raises: ArchiveWriteError.
        """
        self._writable()
        await self._writer.trim()
        newest = self.open_file
        self._append_name = newest.name if newest is not None else None
        self._append_at = newest.end if newest is not None else FIRST_EVENT
        return self.end

    def append_ledger(self, kind: str, file: str, offset: int, text: str) -> None:
        """Adds a row that nothing ever deletes. Time is now; `offset` -1 where there is none."""
        log.warning("archive_ledger", kind=kind, file=file, offset=offset, text=text)
        self._catalog.add_ledger(kind, file, offset, text)

    async def purge(self, names: Sequence[str], reason: str) -> None:
        """Removes the archive's oldest files. `names`: those, oldest first; `reason`: for the ledger, who wanted it.

        At once nobody finds them here any more; readers that have them open keep what they have. Whether a reader still
        needs one of them is for the caller to say, in the same turn of the loop. Works in an archive that has failed too:
        a full disk is why one purges. Cancelling the caller does not stop it.
        Raises: ArchiveMisuse (not the oldest ones, or the newest among them, or closed, or a purge is at work);
        ArchiveWriteError.
        """
        if self.state is ArchiveState.CLOSED:
            raise ArchiveMisuse("the archive is closed")
        if self._purge_lock.locked():
            raise ArchiveMisuse("another purge is at work")
        count = len(names)
        if count >= len(self._files) or [file.name for file in self._files[:count]] != list(names):
            raise ArchiveMisuse(f"{count} files to purge are not the oldest ones, or are all there are")
        if not count:
            return
        await self._purge_lock.acquire()  # it is free: this does not wait
        files = self._files[:count]
        del self._files[:count]
        for file in files:
            del self._by_name[file.name]
        # At once too, and not taken back where a purge fails: the operator does not want them to be served.
        self.gtids.forget_oldest(frozenset(names))
        await asyncio.shield(self._loop.create_task(self._purge(files, reason)))

    async def _purge(self, files: list[ArchivedFile], reason: str) -> None:
        bytes_before = sum(file.end for file in files)
        try:
            await self._purging.run(files, reason, lambda: self.state is ArchiveState.CLOSED)
        finally:
            self.purged_bytes += bytes_before - sum(file.end for file in files)
            self._files[:0] = files
            self._by_name.update((file.name, file) for file in files)
            self._purge_lock.release()

    def _writable(self) -> None:
        if self.state is ArchiveState.OPEN:
            return
        if self.failure is not None:
            raise self.failure
        raise ArchiveMisuse("the archive is closed")

    # --- reading -----------------------------------------------------------------------------------------------------

    def open_reader(self, name: str) -> FileReader:
        """Opens a file for reading. Raises: ArchiveUnknownFile, ArchiveCorrupt (cannot be opened)."""
        file = self._by_name.get(name)
        if file is None:
            raise ArchiveUnknownFile("the archive does not hold this file", file=name)
        try:
            return FileReader(self._layer, file, self._layer.open_read(self.directory / name))
        except OSError as error:
            raise ArchiveCorrupt(
                f"the file cannot be opened: {error.strerror}", file=name, advice="Run `archive verify`."
            ) from error

    def watch(self, callback: Callable[[], None]) -> None:
        """`callback()` is called on the loop when `end` moved, a file was made or sealed; many moves may be one call."""
        self._watchers.append(callback)

    def unwatch(self, callback: Callable[[], None]) -> None:
        """Ends `watch`; fine when it was not watching."""
        if callback in self._watchers:
            self._watchers.remove(callback)

    def sync_up_to(self, file: str, offset: int) -> None:
        """Wants whole transactions up to there on stable storage as soon as they are written, whatever the policy.

        One sync answers all that were wanted before it; `watch_sync` tells when `synced` has moved.
        """
        self._writer.sync_up_to(binlog_number(file), offset)

    def watch_sync(self, callback: Callable[[], None]) -> None:
        """`callback()` is called on the loop when `synced` moved; many moves may be one call."""
        self._sync_watchers.append(callback)

    def unwatch_sync(self, callback: Callable[[], None]) -> None:
        """Ends `watch_sync`; fine when it was not watching."""
        if callback in self._sync_watchers:
            self._sync_watchers.remove(callback)

    def _wake_sync_watchers(self) -> None:
        for callback in tuple(self._sync_watchers):
            callback()

    def _wake_watchers(self) -> None:
        for callback in tuple(self._watchers):
            callback()

    async def check_position(self, file: str, offset: int) -> PositionCheck:
        """Judges a place to start from; see `PositionCheck`. The disk work is done in a thread.

        An index that is missing or does not fit is made again (a scan of the file).
        Raises: ArchiveCorrupt if the file itself cannot be read.
        """
        held = self._by_name.get(file)
        if held is None:
            return PositionCheck(self._judge_unknown(file), None, None, None)
        newest = held is self._files[-1]
        end = held.end
        if offset > end and newest and not held.sealed:
            return PositionCheck(Verdict.FUTURE, end, None, None)
        path = self.directory / file
        check = (self._layer, path, end, held.cut, offset)
        try:
            try:
                return await self._loop.run_in_executor(self._checks, check_offset, *check)
            except IndexUnusable as error:
                await self._remake_index(held, str(error))
                return await self._loop.run_in_executor(self._checks, check_offset, *check)
        except (IndexUnusable, OSError) as error:
            raise ArchiveCorrupt(
                f"the position cannot be checked: {error}",
                file=file,
                offset=offset,
                advice="Run `archive verify --deep`.",
            ) from error

    def _judge_unknown(self, file: str) -> Verdict:
        if not self._files:
            return Verdict.FUTURE
        newest = self._files[-1]
        try:
            follows = binlog_number(file) == newest.number + 1
        except Malformed:
            return Verdict.UNKNOWN_FILE
        same_base = file.rpartition(".")[0] == newest.name.rpartition(".")[0]
        return Verdict.FUTURE if follows and same_base else Verdict.UNKNOWN_FILE

    async def _remake_index(self, file: ArchivedFile, why: str) -> None:
        lock = self._index_locks.setdefault(file.name, asyncio.Lock())
        async with lock:
            if not file.sealed:
                # The writer appends to this one; only a recovery may replace it.
                raise ArchiveCorrupt(
                    why, file=file.name, advice="Restart the relay: the open file's index is made anew then."
                )
            self.append_ledger("index_remade", file.name, -1, why)
            await self._loop.run_in_executor(self._checks, rebuild_index, self.directory, self._layer, file)
        self._index_locks.pop(file.name, None)

    # --- reports from the writer (on the loop) -----------------------------------------------------------------------

    def file_created(self, file: ArchivedFile) -> None:
        """WriterEvents."""
        self._files.append(file)
        self._by_name[file.name] = file
        self.gtids.begin_file(file.name, file.flavour)
        self._received_file, self._received_offset = file, FIRST_EVENT

    def advanced(self, name: str, received: int, boundary: int, runs: list[Run], gtids: GtidNews | None) -> None:
        """WriterEvents."""
        file = self._files[-1]
        self._received_file = file
        self._received_offset = received
        for run in runs:
            file.events += run.events
            file.groups += run.groups
            self.queued_bytes -= len(run.data)
        if runs[-1].timestamp > file.last_timestamp:
            file.last_timestamp = runs[-1].timestamp
        if gtids is not None:
            self.gtids.tell(boundary, gtids)
        if self._publish is PublishPolicy.WRITTEN and boundary > file.end:
            file.end = boundary
            self.gtids.publish(boundary)
            self._wake_watchers()
        for run in runs:
            if run.on_written is not None:
                run.on_written()

    def dropped(self, runs: list[Run]) -> None:
        """WriterEvents."""
        for run in runs:
            self.queued_bytes -= len(run.data)
            if run.on_written is not None:
                run.on_written()

    def synced_to(self, name: str, boundary: int) -> None:
        """WriterEvents."""
        file = self._by_name.get(name)
        if file is None:
            return  # purged since
        self._synced_file, self._synced_offset = file, boundary
        if boundary > file.end and not file.sealed:
            file.end = boundary
            self.gtids.publish(boundary)
            self._wake_watchers()
        self._wake_sync_watchers()

    def gtids_resumed(self, gtids: GtidFacts) -> None:
        """WriterEvents."""
        self.gtids.resume(gtids)

    def file_sealed(self, file: ArchivedFile, gtids: GtidFacts) -> None:
        """WriterEvents."""
        mine = self._by_name[file.name]
        for field in ("events", "groups", "last_timestamp", "cut", "end", "sealed"):
            setattr(mine, field, getattr(file, field))
        self.gtids.seal(gtids)
        self._synced_file, self._synced_offset = mine, file.end
        self._received_offset = file.end
        if file.cut:
            self.append_ledger(
                "cut_group",
                file.name,
                file.end,
                "The source's crash left the last group without its end; served as it is.",
            )
        self._digests.add(self.directory / file.name, file.end)
        self._wake_watchers()
        self._wake_sync_watchers()

    def trimmed(self, name: str, boundary: int, events: int) -> None:
        """WriterEvents."""
        file = self._by_name[name]
        file.events = events
        self._received_file, self._received_offset = file, boundary

    def failed(self, error: ArchiveWriteError, runs: list[Run]) -> None:
        """WriterEvents."""
        self.dropped(runs)
        self._become_failed(error)

    def _become_failed(self, error: ArchiveWriteError) -> None:
        if self.state is not ArchiveState.OPEN:
            return
        self.state = ArchiveState.FAILED
        self.failure = error
        if self._on_failure is not None:
            self._on_failure(error)
        else:
            log.error("archive_failed", error=str(error), file=error.file, offset=error.offset, errno=error.errno)

    # --- reports from other threads ----------------------------------------------------------------------------------

    def _catalog_failed(self, error: ArchiveWriteError) -> None:
        self._loop.call_soon_threadsafe(self._become_failed, error)

    def _digest_made(self, name: str, digest: str) -> None:
        self._catalog.submit(lambda catalog: catalog.set_digest(name, digest))
        self._loop.call_soon_threadsafe(self._note_digest, name, digest)

    def _note_digest(self, name: str, digest: str) -> None:
        file = self._by_name.get(name)
        if file is not None:
            file.digest = digest

    def _digest_failed(self, name: str, error: Exception) -> None:
        self._loop.call_soon_threadsafe(self._note_failed_digest, name, str(error))

    def _note_failed_digest(self, name: str, error: str) -> None:
        if name in self._by_name:  # else it was purged before its turn came
            log.error("archive_digest_failed", file=name, error=error)
            self._catalog.add_ledger("digest_failed", name, -1, error)


def _look_at_result(future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()


def _copy_from(file: ArchivedFile, end: int) -> ArchivedFile:
    values = {name: getattr(file, name) for name in ArchivedFile.__slots__}
    values.update(end=end)
    return ArchivedFile(**values)


def take_lock(directory: Path, layer: FileLayer) -> int:
    """Locks the archive directory for this process; closing the descriptor unlocks. Raises: ArchiveLocked."""
    path = directory / LOCK_NAME
    fd = layer.open_write(path) if layer.exists(path) else layer.create(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise ArchiveLocked(
            f"another process has {directory} open", advice="Only one relay may write an archive: stop the other one."
        ) from error
    return fd


def _release(lock_fd: int, marks: ReplicaMarks | None) -> None:
    if marks is not None:
        marks.close()
    if lock_fd >= 0:
        os.close(lock_fd)


def list_archive(directory: Path) -> list[ArchivedFile]:
    """The files as the catalog knows them (the open one up to its last checkpoint). Works beside a running relay.

    Raises: CatalogUnreadable.
    """
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        return catalog.files()
    finally:
        catalog.close()


def read_ledger(directory: Path) -> list[LedgerRow]:
    """All ledger rows, oldest first. Works beside a running relay. Raises: CatalogUnreadable."""
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        return catalog.ledger()
    finally:
        catalog.close()


def count_ledger(directory: Path) -> dict[str, int]:
    """Ledger rows by kind. Works beside a running relay. Blocking. Raises: CatalogUnreadable, sqlite3.Error."""
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        return catalog.count_ledger()
    finally:
        catalog.close()


def rebuild_archive(directory: Path, on_progress: Progress | None = None, layer: FileLayer | None = None) -> Recovered:
    """Makes catalog rows and indexes anew from the binlogs alone; the ledger and the identity stay. Blocking.

    Raises: ArchiveLocked while a relay runs; ArchiveError; OSError.
    """
    layer = layer or FileLayer()
    if not directory.is_dir():
        raise ArchiveError(f"there is no archive in {directory}")
    fd = take_lock(directory, layer)
    try:
        return Recovery(directory, layer, on_progress).run(force=True)
    finally:
        os.close(fd)
