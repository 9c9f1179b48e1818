"""A file of the archive is read by the rules that build a view, without building one: groups that would stop the view are left out.

At each such place the result is the same as after `view skip`: the group is left out, and its definitions at the source are known.
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
        """Close it."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LookedAtFile:
    """A binlog of the source, up to `end`, a place between two transactions. `name` is its displayed name.

    `skips` contains offsets of groups that an operator decided to leave out, each with where the group ends. `after` is why no view
    continues from the file before to this one; None: nothing known prevents it. `sources` is how many sources the view was built from
    before that of this file: where it changes, a view that assigned numbers does not continue. After a place where it does not, the
    search is for the stops of another view, which begins there. `tables` are the source's, if waits between transactions are counted;
    all files of a source share them. `before` knows tables from before the archive; None: nothing is known of them.
    """

    name: str
    end: int
    open: Callable[[], OpenedFile]
    skips: Mapping[int, int] = field(default_factory=dict)
    after: StopReason | None = None
    sources: int = 0
    tables: PassedTables | None = None
    before: TablesBefore | None = None


class UnreadPart(NamedTuple):
    """The rest of a file, from `offset` on, that was not looked at. `text` says why, in a sentence."""

    file: str
    offset: int
    text: str


def up_to_fork(ends: Sequence[tuple[T, str, int]], fork: Position) -> list[tuple[T, str, int]]:
    """Return the files before a gap from which a view is built, each with its name and the end of what is used; at least the first."""
    kept = [one for one in ends if binlog_number(one[1]) <= binlog_number(fork.file)] or list(ends[:1])
    return [(of, name, min(end, fork.offset) if name == fork.file else end) for of, name, end in kept]


def _tells_nobody(_stop: ViewStop, _source: FileBytes) -> None:
    pass


class FilePass:
    """Goes over files, each from `begin` on, which is the end of the one before. `tell` is called with each stop and the file's bytes,
    `on_looked` with numbers of bytes as they are done. `waits` counts all groups, with `settings` that want it."""

    def __init__(
        self,
        settings: ViewSettings,
        begin: ViewCheckpoint | None = None,
        tell: Callable[[ViewStop, FileBytes], object] = _tells_nobody,
        on_looked: Callable[[int], object] | None = None,
    ) -> None:
        """Begin at `begin`; None: a file's beginning, with no known tables."""
        self.begin = begin if begin is not None else ViewCheckpoint.of_file(FIRST_GNO, b"")
        self.waits = WaitCounts()
        self.left_out: LeftOut | None = None
        """The parts of a MariaDB source that were left out; None: the source is another, or no file was read."""
        self._settings = settings
        self._tell = tell
        self._on_looked = on_looked
        self._buffer = bytearray(BUFFER_BYTES)

    def go_over(self, file: LookedAtFile, *, sealed: bool, own_gtids: bool = False) -> UnreadPart | None:
        """Read all of a file from `begin` on; return the rest that was not looked at. `sealed`: it does not grow any more, so an open
        transaction has no end. `own_gtids` is as for `FileTranslation`. Blocking: every byte is read once, and its checksum compared.
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
        """Translate the file up to its end or the first unread part. Raises: ArchiveDamaged; OSError; EOFError."""
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
                    continue  # it is reported once; the rest is as in a view that begins there
                if stop.group_stop <= stop.offset or stop.offset in skips:
                    return UnreadPart(file.name, stop.offset, "Nobody can say where what stands there ends.")
                skips[stop.offset] = stop.group_stop
            finally:
                self.waits.add(translation.take_counts())
                self.begin = translation.checkpoint()
                self.left_out = translation.left_out
