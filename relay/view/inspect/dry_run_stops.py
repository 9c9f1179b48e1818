"""All places of a source's binlogs at which a view would stop, found by the rules that build it, group by group, without
building it.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from relay.binlog_file.file_bytes import FileBytes, read_bytes
from relay.view.inspect.file_pass import FilePass, LookedAtFile, UnreadPart
from relay.view.previous_source import checkpoint_after_source, first_checkpoint, why_not_after_source
from relay.view.rules.mariadb.left_out import LeftOut
from relay.view.rules.settings import FIRST_GNO, ViewSettings
from relay.view.stops import source_stops
from relay.view.stops.view_stop import ViewStop
from relay.view.translate.wait_counts import WaitCounts
from relay.view.view_checkpoint import ViewCheckpoint

MOST_STOPS: Final = 1000
"""The number of stops that are listed; the others are counted."""
_TIME_BYTES: Final = 4


@dataclass(slots=True)
class StopsFound:
    """The result of a dry run. `stops` are in order, the first ones and the first of each reason; `counts` counts all by the reason's
    name. `unread` was not looked at; its definitions are unknown later. `waits` counts transactions that would wait for others, if
    requested. `left_out` is what the view leaves out of a MariaDB source from its beginning to the end of the search."""

    stops: list[ViewStop] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    unread: list[UnreadPart] = field(default_factory=list)
    waits: WaitCounts = field(default_factory=WaitCounts)
    left_out: LeftOut | None = None

    def add(self, stop: ViewStop, most: int = MOST_STOPS) -> None:
        """Count one more, and list it if fewer than `most` are listed, or none of its reason."""
        if len(self.stops) < most or stop.reason.name not in self.counts:
            self.stops.append(stop)
        self.counts[stop.reason.name] += 1

    @property
    def total(self) -> int:
        """The number of stops."""
        return self.counts.total()

    @property
    def not_listed(self) -> int:
        """The number of stops that are only counted."""
        return self.total - len(self.stops)


def find_stops(
    files: Iterable[LookedAtFile],
    settings: ViewSettings,
    *,
    begin: ViewCheckpoint | None = None,
    most: int = MOST_STOPS,
    is_wanted: Callable[[ViewStop], bool] = lambda stop: True,
    on_looked: Callable[[int], object] | None = None,
) -> StopsFound:
    """Find the stops in these files, oldest first, from `begin` in the first; None: its beginning, without tables. `on_looked` gets the
    number of bytes as they are done. Blocking: every byte is read once, and its checksum compared. Memory: some megabytes.
    """
    found = StopsFound()

    def note(stop: ViewStop) -> None:
        if is_wanted(stop):
            found.add(stop, most)

    search = _StopSearch(settings, begin, note, found, on_looked)
    looked_at: LookedAtFile | None = None
    for file in files:
        if looked_at is not None:
            search.look_at(looked_at, sealed=True)
        looked_at = file
    if looked_at is not None:
        search.look_at(looked_at, sealed=False)
    return found


class _StopSearch:
    """Goes over files; what is known of tables is carried from one to the next."""

    def __init__(
        self,
        settings: ViewSettings,
        begin: ViewCheckpoint | None,
        note: Callable[[ViewStop], None],
        found: StopsFound,
        on_looked: Callable[[int], object] | None,
    ) -> None:
        self._settings = settings
        self._pass = FilePass(settings, begin, self._tell, on_looked)
        self._pass.waits = found.waits
        self._note = note
        self._found = found
        self._unread = found.unread
        self._before: LookedAtFile | None = None
        self._is_numbered = self._pass.begin.next_gno != FIRST_GNO
        """True if the view assigned GTIDs."""
        self._first_source = 0
        """The number of the source that the view began with: in a later one each transaction must have a GTID of its own."""

    def look_at(self, file: LookedAtFile, *, sealed: bool) -> None:
        """Look at all of a file, from where the one before ended. `sealed`: it does not grow any more, so an open transaction has no
        end.
        """
        before, self._before = self._before, file
        after = file.after
        if before is not None and before.sources != file.sources:
            after = after or (source_stops.numbers_assigned(before.name) if self._is_numbered else None)
            known = self._pass.begin.rules
            after = after or why_not_after_source(self._settings, known)
            self._pass.begin = (
                first_checkpoint(b"") if after is not None else checkpoint_after_source(self._settings, known)
            )
        if after is not None:
            name, end = (before.name, before.end) if before is not None else (file.name, 0)
            self._note(ViewStop(name, end, end, after))
            self._pass.begin = ViewCheckpoint.of_file(FIRST_GNO, b"")
            self._first_source, self._is_numbered = file.sources, False
        unread = self._pass.go_over(file, sealed=sealed, own_gtids=file.sources > self._first_source)
        self._found.left_out = self._pass.left_out
        if unread is not None:
            self._unread.append(unread)
        self._is_numbered = self._is_numbered or self._pass.begin.next_gno != FIRST_GNO
        self._pass.begin = self._pass.begin.next_file()

    def _tell(self, stop: ViewStop, source: FileBytes) -> None:
        time = int.from_bytes(read_bytes(source, stop.offset, _TIME_BYTES), "little")
        self._note(stop._replace(time=time))
