"""All places of a source's binlogs at which a view would stop, found without making it: by the rules that make it, group by group.

At each the same is done as where somebody decides for `view skip`: the group is left out, what it defines at the source is known.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.binlog_file.broken import Broken
from relay.binlog_file.file_bytes import FileBytes, read_bytes
from relay.view.generations.source_breaks import gave_numbers
from relay.view.inspect.stamped_file import as_archived
from relay.view.rules.group import StopReason
from relay.view.rules.settings import FIRST_GNO, ViewSettings
from relay.view.translation import BUFFER_BYTES, FileTranslation, ViewStopped
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of

MOST_STOPS: Final = 1000
"""So many are listed; the others are counted."""
_NO_MARKS: Final = 1 << 62
_TIME_BYTES: Final = 4


class OpenedFile(FileBytes, Protocol):
    """An open file."""

    def close(self) -> None:
        """Closes it."""


@dataclass(frozen=True, slots=True)
class LookedAtFile:
    """A binlog of the source, up to `end`, a place between two transactions. name: as it is shown.

    skips: offsets of groups that somebody decided to leave out, each with where the group ends. behind: why no view goes on to
    this file from the one before; None: it does. sources: how many the view was made from before the one of this file.
    """

    name: str
    end: int
    open: Callable[[], OpenedFile]
    skips: Mapping[int, int] = field(default_factory=dict)
    behind: StopReason | None = None
    sources: int = 0


class StopAhead(NamedTuple):
    """Where a view would stop. group_stop: where what cannot be kept ends; `offset`: it is no group, and `view skip` does not help.
    time: of the source, Unix seconds; 0: none."""

    file: str
    offset: int
    group_stop: int
    time: int
    reason: StopReason


class UnreadPart(NamedTuple):
    """From `offset` of a file on nothing was looked at. text: why, a sentence."""

    file: str
    offset: int
    text: str


@dataclass(slots=True)
class StopsFound:
    """stops: in order, the first ones and the first of each reason. counts: of all, by the reason's name. unread: what was not looked
    at; of what is defined there nothing is known behind it."""

    stops: list[StopAhead] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    unread: list[UnreadPart] = field(default_factory=list)

    def add(self, stop: StopAhead, most: int = MOST_STOPS) -> None:
        """Counts one more, and lists it if `most` are not listed yet, or none of its reason."""
        if len(self.stops) < most or stop.reason.name not in self.counts:
            self.stops.append(stop)
        self.counts[stop.reason.name] += 1

    @property
    def total(self) -> int:
        """How many there are."""
        return self.counts.total()

    @property
    def not_listed(self) -> int:
        """Of how many only the number is known."""
        return self.total - len(self.stops)


def find_stops(
    files: Iterable[LookedAtFile],
    settings: ViewSettings,
    *,
    begin: ViewCheckpoint | None = None,
    most: int = MOST_STOPS,
    is_wanted: Callable[[StopAhead], bool] = lambda stop: True,
    on_looked: Callable[[int], object] | None = None,
) -> StopsFound:
    """Of these files, oldest first. begin: where in the first one; None: its beginning, and nothing is known of tables. on_looked: is
    told of bytes as they are done. Blocking: every byte is read once, and compared with its checksum. Memory: some megabytes.
    """
    found = StopsFound()

    def note(stop: StopAhead) -> None:
        if is_wanted(stop):
            found.add(stop, most)

    search = _StopSearch(settings, begin, note, found.unread, on_looked)
    for file in files:
        search.look_at(file)
    return found


class _StopSearch:
    """Goes over files; what is known of tables goes on from one to the next."""

    def __init__(
        self,
        settings: ViewSettings,
        begin: ViewCheckpoint | None,
        note: Callable[[StopAhead], None],
        unread: list[UnreadPart],
        on_looked: Callable[[int], object] | None,
    ) -> None:
        self._settings = settings
        self._next = begin if begin is not None else ViewCheckpoint.of_file(FIRST_GNO, b"")
        self._note = note
        self._unread = unread
        self._on_looked = on_looked
        self._buffer = bytearray(BUFFER_BYTES)
        self._before: LookedAtFile | None = None
        self._is_numbered = self._next.next_gno != FIRST_GNO
        """Whether the view gave transactions GTIDs."""

    def look_at(self, file: LookedAtFile) -> None:
        """All of a file, from where the one before ended."""
        before, self._before = self._before, file
        behind = file.behind
        if before is not None and before.sources != file.sources:
            behind = behind or (gave_numbers(before.name) if self._is_numbered else None)
            self._next = ViewCheckpoint.of_file(FIRST_GNO, b"")
        if behind is not None:
            name, end = (before.name, before.end) if before is not None else (file.name, 0)
            self._note(StopAhead(name, end, end, 0, behind))
            self._next = ViewCheckpoint.of_file(FIRST_GNO, b"")
        try:
            opened = file.open()
        except OSError as error:
            self._leave(file, self._next.source, f"The file cannot be opened: {error}.")
            return
        try:
            with as_archived(opened, file.end) as source:
                self._look(file, source)
        except Broken as error:
            self._leave(file, error.offset, f"{error}.")
        except ArchiveDamaged as error:
            self._leave(file, error.offset or 0, f"{error.what}.")
        except (OSError, EOFError) as error:
            self._leave(file, self._next.source, f"The file cannot be read: {error}.")
        finally:
            opened.close()
            self._is_numbered = self._is_numbered or self._next.next_gno != FIRST_GNO
            self._next = ViewCheckpoint.of_file(FIRST_GNO, self._next.rules)

    def _leave(self, file: LookedAtFile, offset: int, text: str) -> None:
        self._unread.append(UnreadPart(file.name, offset, text))

    def _tell(self, stop: ViewStopped, source: FileBytes) -> None:
        time = int.from_bytes(read_bytes(source, stop.offset, _TIME_BYTES), "little")
        self._note(StopAhead(stop.file, stop.offset, stop.group_stop, time, stop.reason))

    def _look(self, file: LookedAtFile, source: FileBytes) -> None:
        """Raises: ArchiveDamaged; OSError; EOFError."""
        skips = dict(file.skips)
        while True:
            translation = FileTranslation(
                file.name,
                source.read_into,
                self._settings,
                rules_of(self._settings),
                self._next,
                skips,
                own_gtids=file.sources > 0,
                mark_gap=_NO_MARKS,
            )
            translation.on_stop = lambda stop: self._tell(stop, source)
            try:
                before = translation.offset
                while translation.fill(self._buffer, 0, file.end, sealed=False, ends_cut=True):
                    translation.marks.clear()
                    if self._on_looked is not None:
                        self._on_looked(translation.offset - before)
                        before = translation.offset
                return
            except ViewStopped as stop:
                self._tell(stop, source)
                if stop.group_stop <= stop.offset or stop.offset in skips:
                    self._leave(file, stop.offset, "Nobody can say where what stands there ends.")
                    return
                skips[stop.offset] = stop.group_stop
            finally:
                self._next = translation.checkpoint()
