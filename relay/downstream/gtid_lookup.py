"""What a request by GTID asks of the archive, looked up in a thread: sets of 16 MB and thousands of files take a while."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import structlog

from protocol.errors import Malformed
from protocol.gtid.dump_decision import MariadbHoldings, MysqlHoldings, SourceHoldings
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from relay.archive.archived_file import FIRST_EVENT
from relay.archive.gtid_state import GtidState, GtidView
from relay.downstream.file_extent import Extents, FileExtent
from relay.downstream.gtid_walk import GtidWalk, Jump
from relay.downstream.presentation import IdentifiedArchive

_THREADS: Final = 2
T = TypeVar("T")


class GtidArchive(IdentifiedArchive, Protocol):
    """An archive that knows what it has by GTID."""

    @property
    def gtids(self) -> GtidState:
        """What is published."""


@dataclass(frozen=True, slots=True)
class ArchivedGtids:
    """All files at one moment, oldest first, and what they hold; both None without a file."""

    files: Extents
    mysql: MysqlHoldings | None
    mariadb: MariadbHoldings | None


async def nobody_to_ask() -> SourceHoldings | None:
    """Where no source is followed."""
    return None


class GtidLookup:
    """Questions about the GTIDs of an archive. On the event loop only."""

    def __init__(self, archive: GtidArchive) -> None:
        self._archive = archive
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="gtid-lookup")
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("relay.downstream")
        self.ask_source: Callable[[], Awaitable[SourceHoldings | None]] = nobody_to_ask
        """What the source itself has, asked after the call; None: it cannot be told now. Whoever makes the server sets it."""
        self.source_mode: Callable[[], str | None] = lambda: None
        """The source's GTID_MODE as far as it is known; None: it has none, or there is nobody to ask."""

    @property
    def source_uuid(self) -> str | None:
        """Of the source that the archive is of."""
        return self._archive.identity.server_uuid if self._archive.identity is not None else None

    @property
    def state(self) -> GtidState:
        """What is published, for questions that take no time."""
        return self._archive.gtids

    def shutdown(self) -> None:
        """Ends the threads once their work is done."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def ask(self, question: Callable[[ArchivedGtids], T]) -> T:
        """`question` about the archive as it is published now, answered in a thread.

        Raises: OSError, Malformed; what `question` raises.
        """
        view = self._archive.gtids.view()
        newest = self._extent(view.names[-1]) if view.names else None
        files = Extents(view.names, self._extent, newest)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: question(_archived(files, view)))

    def find_jump(self, walk: GtidWalk, name: str, done: Callable[[Jump | None], None]) -> None:
        """What `walk` need not read of the file that it begins, looked up in a thread, then `done(jump)` on the loop."""
        facts = self._archive.gtids.file(name)
        if facts is None:
            extent = self._extent(name)
        else:
            extent = self._extent(name, facts.inside, facts.before, facts.behind, anonymous=facts.anonymous)

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

        loop = asyncio.get_running_loop()
        loop.run_in_executor(self._executor, walk.find_jump, extent).add_done_callback(finish)

    def _extent(
        self,
        name: str,
        inside: bytes | None = None,
        before: GtidList | None = None,
        behind: GtidList | None = None,
        *,
        anonymous: bool = False,
    ) -> FileExtent:
        file = self._archive.file(name)
        # One that is being removed is not known any more: to open it fails, and the replica asks again.
        end, checksum = (file.end, bool(file.checksum)) if file is not None else (FIRST_EVENT, False)
        return FileExtent(name, self._archive.path(name), end, checksum, inside, before, behind, anonymous)


def _archived(files: Extents, view: GtidView) -> ArchivedGtids:
    if not files:
        return ArchivedGtids(files, None, None)
    if isinstance(view.executed, GtidList):
        return ArchivedGtids(files, None, MariadbHoldings(view.befores, view.executed))
    purged = view.purged if isinstance(view.purged, GtidSet) else GtidSet()
    return ArchivedGtids(files, MysqlHoldings(view.search, view.executed, purged, view.anonymous_files), None)
