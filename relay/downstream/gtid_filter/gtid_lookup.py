"""What a request by GTID asks of the archive, looked up in a thread: sets of 16 MB and thousands of files take a while."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

import structlog

from protocol.errors import Malformed
from protocol.gtid.dump_decision import MariadbHoldings, MysqlHoldings, SourceHoldings
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from relay.archive.archive import Generation, Generations
from relay.archive.generation import Archive
from relay.archive.read.file_snapshot import Extents, FileExtent
from relay.archive.storage.archived_file import FIRST_EVENT
from relay.archive.storage.gtid_facts import GtidValue
from relay.downstream.gtid_filter.gtid_walk import WORTH_A_JUMP_BYTES, GtidWalk, Jump
from relay.downstream.gtid_filter.mysql_walk import MysqlWalk

_THREADS: Final = 2
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArchivedGtids:
    """All files of a generation at one moment, oldest first, and what they hold; both None without a file.

    executed: all that was published by then, in this generation and those before it. source_count: how many sources of
    MySQL's the generation had transactions of.
    """

    archive: Archive
    files: Extents
    mysql: MysqlHoldings | None
    mariadb: MariadbHoldings | None
    executed: GtidValue | None
    source_count: int


async def nobody_to_ask() -> SourceHoldings | None:
    """Where no source is followed."""
    return None


class GtidLookup:
    """Questions about the GTIDs of an archive. On the event loop only."""

    def __init__(self, generations: Generations) -> None:
        self._generations = generations
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="gtid-lookup")
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("relay.downstream")
        self.ask_source: Callable[[], Awaitable[SourceHoldings | None]] = nobody_to_ask
        """What the source itself has, asked after the call; None: it cannot be told now. Whoever makes the server sets it."""
        self.source_mode: Callable[[], str | None] = lambda: None
        """The source's GTID_MODE as far as it is known; None: it has none, or there is nobody to ask."""

    @property
    def source_uuid(self) -> str | None:
        """Of the source that is followed."""
        identity = self._generations.archive.identity
        return identity.server_uuid if identity is not None else None

    @property
    def executed(self) -> GtidValue | None:
        """All that was published."""
        return self._generations.executed

    def shutdown(self) -> None:
        """Ends the threads once their work is done."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def ask(self, question: Callable[[Sequence[ArchivedGtids]], T]) -> T:
        """`question` about the generations, oldest first, as they are published now; answered in a thread.

        Raises: OSError, Malformed; what `question` raises.
        """
        series = [self._looked_at(generation) for generation in self._generations.all]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, question, series)

    async def ask_of(self, generation: Generation, question: Callable[[ArchivedGtids], T]) -> T:
        """The same about one generation."""
        looked_at = self._looked_at(generation)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, question, looked_at)

    def _looked_at(self, generation: Generation) -> ArchivedGtids:
        return _looked_at(generation.archive, generation.executed)

    def find_jump(self, archive: Archive, walk: GtidWalk, name: str, done: Callable[[Jump | None], None]) -> None:
        """What `walk` need not read of the file that it begins, looked up in a thread, then `done(jump)` on the loop.

        Also, where `walk` waited for transactions that were still to come, how many of them come from here on.
        """
        looked_at = _looked_at(archive, None) if walk.counts_again else None
        facts = archive.gtids.file(name)
        extent = _extent(archive, name)
        if facts is not None:
            extent = replace(
                extent, inside=facts.inside, before=facts.before, behind=facts.behind, anonymous=facts.anonymous
            )

        def finish(future: asyncio.Future[Jump | None]) -> None:
            if future.cancelled():
                return
            error = future.exception()
            if error is None:
                done(future.result())
                return
            # It is read through, and if it cannot be, that is what the replica is told.
            fault = None if isinstance(error, OSError | Malformed) else error
            self._log.warning("file_read_through", file=name, why=str(error), exc_info=fault)
            done(None)

        def find() -> Jump | None:
            if looked_at is not None and looked_at.mysql is not None and isinstance(walk, MysqlWalk):
                walk.count_again(looked_at.mysql, looked_at.files.names.index(name))
            return walk.find_jump(extent) if extent.end >= WORTH_A_JUMP_BYTES else None

        loop = asyncio.get_running_loop()
        loop.run_in_executor(self._executor, find).add_done_callback(finish)


def _extent(archive: Archive, name: str) -> FileExtent:
    file = archive.file(name)
    # One that is being removed is not known any more: to open it fails, and the replica asks again.
    end, checksum = (file.end, bool(file.checksum)) if file is not None else (FIRST_EVENT, False)
    return FileExtent(name, archive.path(name), end, checksum)


def _looked_at(archive: Archive, executed: GtidValue | None) -> ArchivedGtids:
    view = archive.gtids.view()
    newest = _extent(archive, view.names[-1]) if view.names else None
    files = Extents(view.names, partial(_extent, archive), newest)
    mysql: MysqlHoldings | None = None
    mariadb: MariadbHoldings | None = None
    if isinstance(view.executed, GtidList):
        mariadb = MariadbHoldings(view.befores, view.executed, view.breaks) if files else None
    elif files:
        purged = view.purged if isinstance(view.purged, GtidSet) else GtidSet()
        mysql = MysqlHoldings(view.search, view.executed, purged, view.anonymous_files)
    return ArchivedGtids(archive, files, mysql, mariadb, executed, len(archive.gtids.sources))
