"""The views of a running relay: opened once it is known whose binlogs they are made of, and then served.

One that cannot be opened is tried again, where that may help: a full disk, a missing permission, another process pass.
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
"""As the source is tried again while the archive's disk is full."""
_SEE_LOG: Final = "it could not be opened, the log of the relay says why (task_failed)."
_WAITS: Final = "the source was not heard from yet, or the view is being opened: try again"
_NOT_KNOWN: Final = UUID(int=0)


class OpenView(ShownView, Protocol):
    """A view that is open, and its archive."""

    @property
    def archive(self) -> Archive:
        """The view's own."""

    async def skip(self, file: str, offset: int, by: str) -> None:
        """Leaves out what it has stopped at. Raises: StatementRefused."""

    def begin(self) -> None:
        """From now on it follows the mirror."""

    async def close(self) -> None:
        """Ends that, and closes its archive. Raises: ArchiveError."""


OpenOne = Callable[[Archive, ViewSettings, ArchiveOptions], Awaitable[OpenView]]
"""Of the mirror, the view with these settings, and how it is written. Raises: ViewNotOpened."""


class ViewHost(Protocol):
    """Who shows views to people and replicas."""

    def serve(self, view: OpenView) -> ServedArchive:
        """How an open one is served."""

    def answer_for(self, view: UnopenedView) -> StatementAnswers | None:
        """Who answers statements of accounts with a view that is not open; None: nobody, they cannot log in."""


class ViewService:
    """Opens what relay.toml names, and hands it to the listener. `begin`, then `close`; on the event loop only.

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
        """Opens them as soon as the source is known; accounts with a view are told why they have to wait."""
        for section in self._sections:
            view = UnopenedView(settings_as_written(section, _NOT_KNOWN), _WAITS)
            self.served.add_awaited(section.name, view, self._host.answer_for(view))
            fault = _refusing(view, _SEE_LOG)
            self._opening.append(begin_task(self._serve(section, view), f"opening the view {section.name}", fault))

    async def until_opened(self, longest_s: float) -> None:
        """Where the source is known: until each is opened, or could not be, or that takes too long. So no replica has to come
        again after a restart."""
        if self._sections and first_source(self._mirror) is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_tried.wait(), longest_s)

    async def close(self) -> None:
        """Ends making them. Who is served one is to be gone by then."""
        for task in self._opening:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):  # it was told
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
        """An attempt to open it has ended, whatever came of it."""
        if not view.was_tried:
            view.was_tried = True
            self._untried -= 1
            if not self._untried:
                self._all_tried.set()

    async def _opened(self, section: ViewSection, source: SourceIdentity, view: UnopenedView) -> OpenView | None:
        """None: it cannot be without a restart. Said once for each trouble, not at each attempt."""
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
    """Up to where of the source's archive the files of a view that is not open are made; None: nothing, or it is not known."""
    try:
        view = named_view(archive, settings)
        place = view.places.end() if view.is_made else None
    except (ArchiveError, PlaceUnknown, OSError, sqlite3.Error, ValueError):
        return None
    return (place.source, place.source_generation) if place is not None else None


def first_source(archive: Archive) -> SourceIdentity | None:
    """Whose binlogs the archive begins with; None: nothing is known of any yet. Of a directory its first file says so."""
    oldest = archive.all[0]
    if oldest.identity is not None or not oldest.files:
        return oldest.identity
    file = oldest.files[0]
    return SourceIdentity(file.flavour, file.server_version, file.server_id, None)
