"""Lookups in the archive for a request by GTID, in a thread: sets of 16 MB and thousands of files take a while."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar
from uuid import UUID

import structlog

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.gtid.dump_decision import MariadbHoldings, MysqlHoldings
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from protocol.gtid.mysql_gtid import parse_uuid
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.read.file_snapshot import FileSnapshot, FileSnapshots
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.gtid_facts import GtidValue
from relay.downstream.gtid_filter.group_filter import GroupFilter
from relay.downstream.gtid_filter.seek import WORTH_A_SEEK_BYTES, Seek
from relay.downstream.request.source_state import SourceState
from relay.fairness.fair_pool import FairPool

_THREADS: Final = 2
_PACKED_THREADS: Final = 8
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArchivedGtids:
    """All files of a generation at one moment, oldest first, and their GTIDs; both fields are None without a file.

    executed: all that was published by then, in this generation and those before it. source_count: the number of MySQL sources that
    the generation had transactions of.
    """

    generation: Generation
    files: FileSnapshots
    mysql: MysqlHoldings | None
    mariadb: MariadbHoldings | None
    executed: GtidValue | None
    source_count: int


class GtidLookup:
    """Questions about the GTIDs of an archive. On the event loop only."""

    def __init__(
        self,
        archive: Archive,
        source: SourceState | None = None,
        assigned_uuid: str | None = None,
        *,
        gives_all: bool = False,
    ) -> None:
        """assigned_uuid: of the GTIDs in an archive whose source has none of its own. gives_all: the GTIDs are of other uuids, and
        there are no others.
        """
        self.source = source or SourceState()
        self._assigned_uuid = assigned_uuid
        self._gives_all = gives_all
        self._archive = archive
        self._executor = FairPool(_THREADS, "gtid-lookup", kept=1)
        self._packed_executor = FairPool(_PACKED_THREADS, "packed-lookup")
        """The threads for generations with files that may be in a bucket, which can take long."""
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("relay.downstream")

    @property
    def source_uuids(self) -> Sequence[UUID]:
        """The uuids of the source that is followed, or those of the GTIDs assigned to its transactions. Raises: Malformed."""
        executed = self._archive.executed
        if self._gives_all:
            return [tsid.uuid for tsid in executed.tsids()] if isinstance(executed, GtidSet) else []
        identity = self._archive.current.identity
        own = self._assigned_uuid or (identity.server_uuid if identity is not None else None)
        return [parse_uuid(own)] if own else []

    @property
    def executed(self) -> GtidValue | None:
        """All that was published."""
        return self._archive.executed

    def shutdown(self) -> None:
        """End the threads once their work is done."""
        for executor in (self._executor, self._packed_executor):
            executor.shutdown(wait=False, cancel_futures=True)

    def _threads(self, generations: Iterable[Generation]) -> FairPool:
        # The oldest files are moved first.
        packed = any(one.files and one.files[0].place is not None for one in generations)
        return self._packed_executor if packed else self._executor

    async def ask(self, question: Callable[[Sequence[ArchivedGtids]], T]) -> T:
        """Ask `question` about the generations, oldest first, as they are published now; it is answered in a thread.

        Raises: OSError, Malformed; what `question` raises.
        """
        series = [self._looked_at(generation) for generation in self._archive.all]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads(self._archive.all), question, series)

    async def ask_of(self, generation: Generation, question: Callable[[ArchivedGtids], T]) -> T:
        """Ask the same about one generation."""
        looked_at = self._looked_at(generation)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads([generation]), question, looked_at)

    def _looked_at(self, generation: Generation) -> ArchivedGtids:
        return _looked_at(generation, generation.executed)

    def find_seek(
        self, generation: Generation, groups: GroupFilter, name: str, done: Callable[[Seek | None], None]
    ) -> None:
        """Look up, in a thread, what of the file that begins now need not be read, then call `done(seek)` on the loop.

        If `groups` waits for transactions that had not arrived, also count how many of them come from here on.
        """
        looked_at = _looked_at(generation, None) if groups.counts_again else None
        facts = generation.gtids.file(name)
        snapshot = _snapshot(generation, name)
        if facts is not None:
            snapshot = replace(
                snapshot, inside=facts.inside, before=facts.before, after=facts.after, anonymous=facts.anonymous
            )

        def finish(future: asyncio.Future[Seek | None]) -> None:
            if future.cancelled():
                return
            error = future.exception()
            if error is None:
                done(future.result())
                return
            # It is read through, and if it cannot be, the replica is refused for that.
            fault = None if isinstance(error, OSError | Malformed | ArchiveError) else error
            self._log.warning("file_read_through", file=name, why=str(error), exc_info=fault)
            done(None)

        def find() -> Seek | None:
            if looked_at is not None and looked_at.mysql is not None:
                groups.count_again(looked_at.mysql, looked_at.files.names.index(name))
            return groups.find_seek(snapshot) if snapshot.end >= WORTH_A_SEEK_BYTES else None

        loop = asyncio.get_running_loop()
        loop.run_in_executor(self._threads([generation]), find).add_done_callback(finish)


def _snapshot(generation: Generation, name: str) -> FileSnapshot:
    file = generation.file(name)
    # One that is being removed is not known any more: opening it fails, and the replica asks again.
    end, checksum = (file.end, bool(file.checksum)) if file is not None else (FIRST_EVENT, False)
    return FileSnapshot(name, generation.path(name), end, checksum, layer=generation.layer)


def _looked_at(generation: Generation, executed: GtidValue | None) -> ArchivedGtids:
    view = generation.gtids.view()
    newest = _snapshot(generation, view.names[-1]) if view.names else None
    files = FileSnapshots(view.names, partial(_snapshot, generation), newest)
    mysql: MysqlHoldings | None = None
    mariadb: MariadbHoldings | None = None
    if isinstance(view.executed, GtidList):
        mariadb = MariadbHoldings(view.befores, view.executed, view.breaks, view.unreadable_files) if files else None
    elif files:
        purged = view.purged if isinstance(view.purged, GtidSet) else GtidSet()
        mysql = MysqlHoldings(view.search, view.executed, purged, view.anonymous_files, view.unreadable_files)
    return ArchivedGtids(generation, files, mysql, mariadb, executed, len(generation.gtids.sources))
