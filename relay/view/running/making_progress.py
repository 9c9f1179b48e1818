"""The progress of building a view, and its log events."""

import time
from typing import Final, NamedTuple

import structlog

from protocol.binlog.layout import FIRST_EVENT
from protocol.position import Position, binlog_number
from relay.archive.archive import Archive
from relay.view.rules.mariadb.left_out import LeftOut
from relay.view.stops.view_stop import ViewStop
from relay.view.translate.wait_counts import WaitCounts

log = structlog.get_logger()

_PROGRESS_S: Final = 10.0


class ViewStatus(NamedTuple):
    """`source` and `view` are the positions up to which it is built; None: nothing is. `behind_bytes` counts the source's published
    bytes beyond. `source_generation` is that of `source`. `needed` is the position from which it is rebuilt after a crash. `waits`
    None: not counted. `left_out` is for a MariaDB source; None: the source is another, or nothing was built yet."""

    source: Position | None
    view: Position | None
    behind_bytes: int
    stop: ViewStop | None
    source_generation: int | None = None
    needed: Position | None = None
    waits: WaitCounts | None = None
    left_out: LeftOut | None = None


class MakingProgress:
    """The progress of one view. On the event loop."""

    def __init__(self, mirror: Archive, archive: Archive, view: str) -> None:
        """Follow `mirror`, from which `archive`, that of the view named `view`, is built."""
        self.source: Position | None = None
        """The source's position up to which the view was handed over to its archive; None: nothing was."""
        self.followed = mirror.all[0]
        """The generation of the source's archive that is being translated."""
        self.stop: ViewStop | None = None
        """The reason why it is stopped; None: it continues."""
        self.waits: WaitCounts | None = None
        """The counts since the view was first built, approximately: the last ones before a crash may be missing."""
        self.left_out: LeftOut | None = None
        """The parts left out since the view began; None: the source is no MariaDB, or nothing was built yet."""
        self._mirror = mirror
        self._archive = archive
        self._view = view
        self._told_at = 0.0
        self._was_behind = False

    @property
    def status(self) -> ViewStatus:
        """The current status."""
        of = self.followed.number if self.source is not None else None
        end = self._archive.current.end
        return ViewStatus(self.source, end, self._behind(), self.stop, of, self._needed(), self.waits, self.left_out)

    def _needed(self) -> Position | None:
        """Return the position to rebuild from: bytes handed over may still be queued, and written ones lost with the machine."""
        made, generation = self.source, self._archive.current
        synced = generation.synced
        if made is None or synced is None:
            return None
        if binlog_number(synced.file) >= binlog_number(made.file):
            return made
        file = generation.file(synced.file)
        if file is None or not file.sealed or self.followed.file(file.name) is None:
            return Position(synced.file, FIRST_EVENT)
        following = self.followed.next_file(file.name)
        return made if following is None else Position(following.name, FIRST_EVENT)

    def _behind(self) -> int:
        made, behind = self.source, 0
        for generation in reversed(self._mirror.all):
            for file in reversed(generation.files):
                if made is not None and generation is self.followed and file.name == made.file:
                    return behind + max(0, file.end - made.offset)
                behind += file.end - FIRST_EVENT
        return behind

    def begins(self, place: Position) -> None:
        """Note that the file of `place` is continued: the view is built at least up to there."""
        if self.source is None or self.source.file != place.file:
            self.source = place

    def goes_on(self) -> None:
        """Note that the view is not stopped any more."""
        if self.stop is not None:
            log.info("view_goes_on", view=self._view, made_to=str(self.source or ""))
            self.stop = None

    def catches_up(self) -> None:
        """Note that much is built at once; the log says so every few seconds."""
        now = time.monotonic()
        if now - self._told_at < _PROGRESS_S:
            return
        behind = self._behind()
        if self._told_at or behind:
            log.info("view_catches_up", view=self._view, made_to=str(self.source or ""), behind_bytes=behind)
        self._told_at = now
        self._was_behind = True

    def caught_up(self) -> None:
        """Note that it has everything that the archive has."""
        if self._was_behind:
            self._was_behind = False
            log.info("view_caught_up", view=self._view, made_to=str(self.source or ""))
