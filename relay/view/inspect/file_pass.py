"""A file of the archive through the rules that make a view, without making one: what would stop the view is left out.

At each such place the same is done as where somebody decides for `view skip`: the group is left out, what it defines at the source is
known.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeVar

from protocol.position import Position, binlog_number
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.binlog_file.broken import Broken
from relay.binlog_file.file_bytes import FileBytes
from relay.view.inspect.stamped_file import as_archived
from relay.view.rules.mariadb.left_out import LeftOut
from relay.view.rules.older_tables import TablesBefore
from relay.view.rules.settings import FIRST_GNO, ViewSettings
from relay.view.stops import source_stops
from relay.view.stops.stop_reason import StopReason
from relay.view.stops.view_stop import ViewStop, ViewStopped
from relay.view.translate.passed_tables import PassedTables
from relay.view.translate.wait_counts import WaitCounts
from relay.view.translation import BUFFER_BYTES, FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of

_NO_MARKS: Final = 1 << 62


class OpenedFile(FileBytes, Protocol):
    """An open file."""

    def close(self) -> None:
        """Closes it."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LookedAtFile:
    """A binlog of the source, up to `end`, a place between two transactions. name: as it is shown.

    skips: offsets of groups that somebody decided to leave out, each with where the group ends. behind: why no view goes on to
    this file from the one before; None: nothing is known that keeps one from it. sources: how many the view was made from before the
    one of this file: where that changes, a view that gave numbers goes on no more. Behind a place where it does not, another
    view's stops are looked for, which begins there. tables: what is known of the source's, where it is looked which transactions
    wait for which; the same for all files of a source. before: those from before the archive; None: nothing is known of them.
    """

    name: str
    end: int
    open: Callable[[], OpenedFile]
    skips: Mapping[int, int] = field(default_factory=dict)
    behind: StopReason | None = None
    sources: int = 0
    tables: PassedTables | None = None
    before: TablesBefore | None = None


class UnreadPart(NamedTuple):
    """From `offset` of a file on nothing was looked at. text: why, a sentence."""

    file: str
    offset: int
    text: str


def up_to_fork(ends: Sequence[tuple[T, str, int]], fork: Position) -> list[tuple[T, str, int]]:
    """Return the files before a gap from which a view is made, each with its name and the end of what is used; at least the first."""
    kept = [one for one in ends if binlog_number(one[1]) <= binlog_number(fork.file)] or list(ends[:1])
    return [(of, name, min(end, fork.offset) if name == fork.file else end) for of, name, end in kept]


def _tells_nobody(_stop: ViewStop, _source: FileBytes) -> None:
    pass


class FilePass:
    """Goes over files, each from `begin` on, which is the end of the one before. tell: is told of each stop, with the file's bytes;
    on_looked: of bytes as they are done. waits: of all groups that were gone over, with `settings` that want them."""

    def __init__(
        self,
        settings: ViewSettings,
        begin: ViewCheckpoint | None = None,
        tell: Callable[[ViewStop, FileBytes], object] = _tells_nobody,
        on_looked: Callable[[int], object] | None = None,
    ) -> None:
        """begin: None: a file's beginning, and nothing is known of tables."""
        self.begin = begin if begin is not None else ViewCheckpoint.of_file(FIRST_GNO, b"")
        self.waits = WaitCounts()
        self.left_out: LeftOut | None = None
        """Of a MariaDB source; None: of another, or no file was gone over."""
        self._settings = settings
        self._tell = tell
        self._on_looked = on_looked
        self._buffer = bytearray(BUFFER_BYTES)

    def go_over(self, file: LookedAtFile, *, sealed: bool, own_gtids: bool = False) -> UnreadPart | None:
        """All of a file from `begin` on; what was not looked at, and nothing behind it. sealed: it grows no more, so a transaction
        without an end has none. own_gtids: as of `FileTranslation`. Blocking: every byte is read once, and compared with its checksum.
        """
        try:
            opened = file.open()
        except OSError as error:
            return UnreadPart(file.name, self.begin.source, f"The file cannot be opened: {error}.")
        try:
            with as_archived(opened, file.end) as source:
                return self._look(file, source, sealed, own_gtids)
        except Broken as error:
            return UnreadPart(file.name, error.offset, f"{error}.")
        except ArchiveDamaged as error:
            return UnreadPart(file.name, error.offset or 0, f"{error.what}.")
        except (OSError, EOFError) as error:
            return UnreadPart(file.name, self.begin.source, f"The file cannot be read: {error}.")
        finally:
            opened.close()

    def _look(self, file: LookedAtFile, source: FileBytes, sealed: bool, own_gtids: bool) -> UnreadPart | None:
        """Raises: ArchiveDamaged; OSError; EOFError."""
        skips = dict(file.skips)
        while True:
            translation = FileTranslation(
                file.name,
                source.read_into,
                self._settings,
                rules_of(self._settings, file.before),
                self.begin,
                skips,
                own_gtids=own_gtids,
                mark_gap=_NO_MARKS,
            )
            translation.tables = file.tables
            translation.on_stop = lambda stop: self._tell(stop, source)
            try:
                before = translation.offset
                while translation.fill(self._buffer, 0, file.end, sealed=sealed, ends_cut=True):
                    translation.marks.clear()
                    if self._on_looked is not None:
                        self._on_looked(translation.offset - before)
                        before = translation.offset
                return None
            except ViewStopped as stopped:
                stop = stopped.stop
                self._tell(stop, source)
                if stop.reason.name == source_stops.EXECUTED_GTIDS_MISSING:
                    continue  # told once; what follows is as a view has it that begins there
                if stop.group_stop <= stop.offset or stop.offset in skips:
                    return UnreadPart(file.name, stop.offset, "Nobody can say where what stands there ends.")
                skips[stop.offset] = stop.group_stop
            finally:
                self.waits.add(translation.take_counts())
                self.begin = translation.checkpoint()
                self.left_out = translation.left_out
