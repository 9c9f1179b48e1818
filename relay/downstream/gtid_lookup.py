"""What a request by GTID asks of the archive, looked up in a thread: sets of 16 MB and thousands of files take a while."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar, overload

from protocol.gtid.dump_decision import MariadbHoldings, MysqlHoldings
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from protocol.gtid.stretch_index import StretchIndex
from relay.archive.archived_file import FIRST_EVENT
from relay.archive.files import FileLayer
from relay.archive.gtid_recorder import read_index
from relay.archive.gtid_state import GtidState, GtidView
from relay.downstream.presentation import IdentifiedArchive

_THREADS: Final = 2
T = TypeVar("T")


class GtidArchive(IdentifiedArchive, Protocol):
    """An archive that knows what it has by GTID."""

    @property
    def gtids(self) -> GtidState:
        """What is published."""


@dataclass(frozen=True, slots=True)
class FileExtent:
    """What of a file is published, as it was on the event loop."""

    name: str
    path: Path
    end: int
    checksum: bool

    def stretches(self) -> StretchIndex | None:
        """Where its transactions are; None: that is not known. Blocking. Raises: OSError; Malformed."""
        return read_index(FileLayer(), self.path)

    def first_anonymous(self) -> int:
        """Offset of the first transaction without a GTID, or of a place before it. Blocking. Raises: OSError; Malformed."""
        for stretch in self.stretches() or ():
            if not stretch.anonymous:
                continue
            exact = FileGtidCollector("mysql", checksum=self.checksum, gap_bytes=0)
            exact.begin(stretch.start)
            with self.path.open("rb") as file:
                file.seek(stretch.start)
                exact.take(file.read(stretch.stop - stretch.start))
            exact.finish()
            return next((found.start for found in exact.take_stretches() if found.anonymous), stretch.start)
        return FIRST_EVENT


class Extents(Sequence[FileExtent]):
    """The extents of files, oldest first, each made when it is looked at: of 10,000 files a request looks at one or two.

    names: of the files. extent: makes one, also in a thread: a file that is complete changes no more. newest: the last one's,
    which grows.
    """

    def __init__(self, names: Sequence[str], extent: Callable[[str], FileExtent], newest: FileExtent | None) -> None:
        self.names = names
        self._extent = extent
        self._newest = newest

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, number: int) -> FileExtent: ...

    @overload
    def __getitem__(self, number: slice) -> list[FileExtent]: ...

    def __getitem__(self, number: int | slice) -> FileExtent | list[FileExtent]:
        if isinstance(number, slice):
            return [self[place] for place in range(*number.indices(len(self)))]
        name = self.names[number]
        return self._newest if self._newest is not None and name == self._newest.name else self._extent(name)


@dataclass(frozen=True, slots=True)
class ArchivedGtids:
    """All files at one moment, oldest first, and what they hold; both None without a file."""

    files: Extents
    mysql: MysqlHoldings | None
    mariadb: MariadbHoldings | None


class GtidLookup:
    """Questions about the GTIDs of an archive. `ask` on the event loop only."""

    def __init__(self, archive: GtidArchive) -> None:
        self._archive = archive
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="gtid-lookup")
        self.source_is_silent = False
        """Whether it is known that the source has nothing that is not here."""

    @property
    def source_uuid(self) -> str | None:
        """Of the source that the archive is of."""
        return self._archive.identity.server_uuid if self._archive.identity is not None else None

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

    def _extent(self, name: str) -> FileExtent:
        file = self._archive.file(name)
        # One that is being removed is not known any more: to open it fails, and the replica asks again.
        end, checksum = (file.end, bool(file.checksum)) if file is not None else (FIRST_EVENT, False)
        return FileExtent(name, self._archive.path(name), end, checksum)


def _archived(files: Extents, view: GtidView) -> ArchivedGtids:
    if not files:
        return ArchivedGtids(files, None, None)
    if isinstance(view.executed, GtidList):
        return ArchivedGtids(files, None, MariadbHoldings(view.befores, view.executed))
    purged = view.purged if isinstance(view.purged, GtidSet) else GtidSet()
    return ArchivedGtids(files, MysqlHoldings(view.search, view.executed, purged, view.anonymous_files), None)
