"""How far a view is made, and what the log says of it."""

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
    """source, view: up to where it was made; None: nothing is. behind_bytes: of the source's files, published and not made.
    source_generation: of the source's archive, that `source` is of. needed: from where on it is made again after a crash. waits: None:
    they are not looked at. left_out: of a MariaDB source; None: of another, or nothing was made since the start."""

    source: Position | None
    view: Position | None
    behind_bytes: int
    stop: ViewStop | None
    source_generation: int | None = None
    needed: Position | None = None
    waits: WaitCounts | None = None
    left_out: LeftOut | None = None


class MakingProgress:
    """Of one view. On the event loop."""

    def __init__(self, mirror: Archive, archive: Archive, view: str) -> None:
        """mirror, archive: what it is made of, and its own. view: its name."""
        self.source: Position | None = None
        """Of the source, what was handed over to the view's archive; None: nothing."""
        self.followed = mirror.all[0]
        """The generation of the source's archive that is being made the view's."""
        self.stop: ViewStop | None = None
        """None: it goes on."""
        self.waits: WaitCounts | None = None
        """Of the view since it was made first, about: what was counted last before a crash may be missing."""
        self.left_out: LeftOut | None = None
        """Of the view since it began; None: of another source than a MariaDB, or nothing was made yet."""
        self._mirror = mirror
        self._archive = archive
        self._view = view
        self._told_at = 0.0
        self._was_behind = False

    @property
    def status(self) -> ViewStatus:
        """As it is now."""
        of = self.followed.number if self.source is not None else None
        end = self._archive.current.end
        return ViewStatus(self.source, end, self._behind(), self.stop, of, self._needed(), self.waits, self.left_out)

    def _needed(self) -> Position | None:
        """What was handed over may be in line still, and what is written be lost with the machine."""
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
        """The file of `place` is gone on with: up to there it is made, at least."""
        if self.source is None or self.source.file != place.file:
            self.source = place

    def goes_on(self) -> None:
        """What had stopped it is out of its way."""
        if self.stop is not None:
            log.info("view_goes_on", view=self._view, made_to=str(self.source or ""))
            self.stop = None

    def catches_up(self) -> None:
        """Much is made at once: said every few seconds."""
        now = time.monotonic()
        if now - self._told_at < _PROGRESS_S:
            return
        behind = self._behind()
        if self._told_at or behind:
            log.info("view_catches_up", view=self._view, made_to=str(self.source or ""), behind_bytes=behind)
        self._told_at = now
        self._was_behind = True

    def caught_up(self) -> None:
        """It has all that the archive has."""
        if self._was_behind:
            self._was_behind = False
            log.info("view_caught_up", view=self._view, made_to=str(self.source or ""))
