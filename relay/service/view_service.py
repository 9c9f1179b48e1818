"""The views of a running relay: they are opened once the source of their binlogs is known, and then served.

One that cannot be opened is retried, if that may help: a full disk, a missing permission, another process are temporary.
"""

import asyncio
import contextlib
import random
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, Protocol
from uuid import UUID

import structlog

from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.write.options import ArchiveOptions
from relay.config import ViewSection, settings_as_written, settings_of_view
from relay.config.text.problems import Wrong
from relay.downstream.connection.replica_session import StatementAnswers
from relay.downstream.served_archive import ServedArchive
from relay.downstream.served_views import ServedViews
from relay.process.background import begin_task
from relay.process.growing_pause import growing_pause
from relay.view.inspect.named_view import named_view
from relay.view.rules.settings import ViewSettings
from relay.view.running.view_opening import ViewNotOpened
from relay.view.shown_view import ShownView
from relay.view.unopened_view import UnopenedView
from relay.view.view_place import PlaceUnknown

log = structlog.get_logger()

_FIRST_PAUSE_S: Final = 2.0
_LONGEST_PAUSE_S: Final = 30.0
"""The pause is the one with which the source is retried while the archive's disk is full."""
_SEE_LOG: Final = "it could not be opened, the log of the relay says why (task_failed)."
_WAITS: Final = "the source was not heard from yet, or the view is being opened: try again"
_NOT_KNOWN: Final = UUID(int=0)


class OpenView(ShownView, Protocol):
    """A view that is open, and its archive."""

    @property
    def archive(self) -> Archive:
        """The view's own."""

    async def skip(self, file: str, offset: int, by: str) -> None:
        """Leave out the transaction at which it has stopped. Raises: StatementRefused."""

    def begin(self) -> None:
        """Follow the mirror from now on."""

    async def close(self) -> None:
        """Stop following, and close its archive. Raises: ArchiveError."""


OpenOne = Callable[[Archive, ViewSettings, ArchiveOptions], Awaitable[OpenView]]
"""Opens the view of the mirror with these settings and write options. Raises: ViewNotOpened."""


class ViewHost(Protocol):
    """Shows views to people and replicas."""

    def serve(self, view: OpenView) -> ServedArchive:
        """Return how an open view is served."""

    def answer_for(self, view: UnopenedView) -> StatementAnswers | None:
        """Return what answers statements of accounts with a view that is not open; None: they cannot log in."""


class ViewService:
    """Opens the views of relay.toml, and hands them to the listener. `begin`, then `close`; on the event loop only.

    open_one: opens one. The mirror does not wait for any of this, nor does it stop for it; nor do views for each other.
    """

    def __init__(
        self,
        mirror: Archive,
        sections: Sequence[ViewSection],
        options: ArchiveOptions,
        open_one: OpenOne,
        host: ViewHost,
        random_source: random.Random | None = None,
    ) -> None:
        self.served = ServedViews()
        self._mirror = mirror
        self._sections = sections
        self._options = options
        self._open_one = open_one
        self._host = host
        self._random = random_source or random.Random()
        self._open: list[OpenView] = []
        self._opening: list[asyncio.Task[None]] = []
        self._untried = len(sections)
        self._all_tried = asyncio.Event()

    def begin(self) -> None:
        """Open them as soon as the source is known; accounts with a view get the reason why they must wait."""
        for section in self._sections:
            view = UnopenedView(settings_as_written(section, _NOT_KNOWN), _WAITS)
            self.served.add_awaited(section.name, view, self._host.answer_for(view))
            fault = _refusing(view, _SEE_LOG)
            self._opening.append(begin_task(self._serve(section, view), f"opening the view {section.name}", fault))

    async def until_opened(self, longest_s: float) -> None:
        """Wait, if the source is known, until each is opened, or could not be, or that takes too long. So no replica must reconnect
        after a restart."""
        if self._sections and first_source(self._mirror) is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_tried.wait(), longest_s)

    async def close(self) -> None:
        """Stop building them. Their clients must be disconnected by then."""
        for task in self._opening:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):  # it was reported
                await task
        for view in self._open:
            try:
                await view.close()
            except ArchiveError as error:
                log.error("archive_not_closed_cleanly", view=view.settings.name, **error.fields())

    # --- one view -----------------------------------------------------------------------------------------------------

    async def _serve(self, section: ViewSection, view: UnopenedView) -> None:
        try:
            source = await self._source()
            opened = await self._opened(section, source, view)
            if opened is not None:
                self._open.append(opened)
                self.served.add(section.name, self._host.serve(opened))
                log.info("view_served", view=section.name, gtids=opened.settings.gtids, uuid=str(opened.settings.uuid))
                opened.begin()
        finally:
            self._tried(view)

    def _tried(self, view: UnopenedView) -> None:
        """Note that an attempt to open it has ended, with any result."""
        if not view.was_tried:
            view.was_tried = True
            self._untried -= 1
            if not self._untried:
                self._all_tried.set()

    async def _opened(self, section: ViewSection, source: SourceIdentity, view: UnopenedView) -> OpenView | None:
        """Open the view; None: it cannot be without a restart. That is logged once for each trouble, not at each attempt."""
        failures, said = 0, set[str]()
        while True:
            try:
                settings = await asyncio.to_thread(settings_of_view, section, source, self._mirror.directory)
                view.settings = settings
                return await self._open_one(self._mirror, settings, self._options)
            except Wrong as wrong:
                trouble = ViewNotOpened(f"{wrong.what}.", f"{wrong.advice}.", may_pass=False, kind="settings")
            except ViewNotOpened as error:
                trouble = error
            failures += 1
            pause_s = growing_pause(failures, _FIRST_PAUSE_S, _LONGEST_PAUSE_S, self._random)
            view.made = await asyncio.to_thread(_made_to, self._mirror.directory, view.settings)
            view.could_not(trouble.what, trouble.advice, time.time() + pause_s if trouble.may_pass else None)
            if trouble.kind not in said:
                said.add(trouble.kind)
                log.error(
                    "view_not_served",
                    view=section.name,
                    **trouble.fields(),
                    retry_in_s=round(pause_s, 3) if trouble.may_pass else None,
                )
            if not trouble.may_pass:
                return None
            self._tried(view)
            await asyncio.sleep(pause_s)

    async def _source(self) -> SourceIdentity:
        while (source := first_source(self._mirror)) is None:
            moved = asyncio.Event()
            self._mirror.watch(moved.set)
            try:
                await moved.wait()
            finally:
                self._mirror.unwatch(moved.set)
        return source


def _refusing(view: UnopenedView, why: str) -> Callable[[Exception], None]:
    def refuse(_fault: Exception) -> None:
        view.could_not(why, "", None)

    return refuse


def _made_to(archive: Path, settings: ViewSettings) -> tuple[Position, int] | None:
    """Return the position in the source's archive up to which the files of a view that is not open are built; None: nothing, or
    unknown."""
    try:
        view = named_view(archive, settings)
        place = view.places.end() if view.is_made else None
    except (ArchiveError, PlaceUnknown, OSError, sqlite3.Error, ValueError):
        return None
    return (place.source, place.source_generation) if place is not None else None


def first_source(archive: Archive) -> SourceIdentity | None:
    """Return the source with whose binlogs the archive begins; None: none is known yet. For a directory its first file names it."""
    oldest = archive.all[0]
    if oldest.identity is not None or not oldest.files:
        return oldest.identity
    file = oldest.files[0]
    return SourceIdentity(file.flavour, file.server_version, file.server_id, None)
