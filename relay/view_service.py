"""The views of a running relay: opened once it is known whose binlogs they are made of, and then served."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import structlog

from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.write.options import ArchiveOptions
from relay.config import ViewSection, settings_of_view
from relay.config.problems import Wrong
from relay.downstream.served_archive import ServedArchive
from relay.downstream.served_views import ServedViews
from relay.process.background import begin_task
from relay.view.rules.settings import ViewSettings
from relay.view.shown_view import ShownView

log = structlog.get_logger()

_SEE_LOG: Final = "it could not be opened, the log of the relay says why (view_not_served)"


class OpenView(ShownView, Protocol):
    """A view that is made, and its archive."""

    @property
    def archive(self) -> Archive:
        """The view's own."""

    def skip(self, file: str, offset: int, by: str) -> None:
        """Leaves out what it has stopped at. Raises: StatementRefused."""


class OpenViews(Protocol):
    """All views of a relay."""

    @property
    def all(self) -> Mapping[str, OpenView]:
        """Those that could be opened, by name."""

    @property
    def refused(self) -> Mapping[str, Exception]:
        """Why others could not be, by name."""

    async def open(self) -> None:
        """Opens their archives."""

    def begin(self) -> None:
        """From now on they follow the mirror."""

    async def close(self) -> None:
        """Ends that, and closes their archives."""


MakeViews = Callable[[Archive, Sequence[ViewSettings], ArchiveOptions], OpenViews]
"""Of the mirror, for each view its settings, and how they are written."""


class ViewService:
    """Opens what relay.toml names, and hands it to the listener. `begin`, then `close`; on the event loop only.

    make: makes them. serve: how one is served. The mirror does not wait for any of this, nor does it stop for it.
    """

    def __init__(
        self,
        mirror: Archive,
        sections: Sequence[ViewSection],
        options: ArchiveOptions,
        make: MakeViews,
        serve: Callable[[OpenView], ServedArchive],
    ) -> None:
        self.served = ServedViews()
        self._mirror = mirror
        self._sections = sections
        self._options = options
        self._make = make
        self._serve = serve
        self._views: OpenViews | None = None
        self._opening: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Opens them as soon as the source is known; accounts with a view are told why they have to wait."""
        if self._sections:
            self._all_wait("the source was not heard from yet, or the view is being opened: try again")
            self._opening = begin_task(self._open(), "opening the views", lambda _fault: self._all_wait(_SEE_LOG))

    async def until_opened(self, longest_s: float) -> None:
        """Where the source is known: until they are opened, or could not be, or that takes too long. So no replica has to
        come again after a restart."""
        if self._opening is not None and first_source(self._mirror) is not None:
            await asyncio.wait({self._opening}, timeout=longest_s)

    async def close(self) -> None:
        """Ends making them. Who is served one is to be gone by then."""
        if self._opening is not None:
            self._opening.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):  # it was told
                await self._opening
        if self._views is not None:
            try:
                await self._views.close()
            except ArchiveError as error:
                log.error("archive_not_closed_cleanly", what=f"of a view: {error}", advice=error.advice or None)

    def _all_wait(self, why: str) -> None:
        for section in self._sections:
            if self.served.find(section.name) is None:
                self.served.say_why_not(section.name, why)

    async def _open(self) -> None:
        source = await self._source()
        found = [await asyncio.to_thread(self._settings, section, source) for section in self._sections]
        wanted = [settings for settings in found if settings is not None]
        self._views = views = self._make(self._mirror, wanted, self._options)
        await views.open()
        for name, error in views.refused.items():
            advice = error.advice if isinstance(error, ArchiveError) else ""
            self._refuse(name, str(error).removesuffix(f" {advice}"), advice)
        for name, view in views.all.items():
            self.served.add(name, self._serve(view))
            log.info("view_served", view=name, gtids=view.settings.gtids, uuid=str(view.settings.uuid))
        views.begin()

    async def _source(self) -> SourceIdentity:
        while (source := first_source(self._mirror)) is None:
            moved = asyncio.Event()
            self._mirror.watch(moved.set)
            try:
                await moved.wait()
            finally:
                self._mirror.unwatch(moved.set)
        return source

    def _settings(self, section: ViewSection, source: SourceIdentity) -> ViewSettings | None:
        """Blocking."""
        try:
            return settings_of_view(section, source, self._mirror.directory)
        except Wrong as wrong:
            self._refuse(section.name, wrong.what, f"{wrong.instead}.")
            return None

    def _refuse(self, name: str, what: str, advice: str) -> None:
        log.error("view_not_served", view=name, what=what, advice=advice or None)
        self.served.say_why_not(name, what)


def first_source(archive: Archive) -> SourceIdentity | None:
    """Whose binlogs the archive begins with; None: nothing is known of any yet. Of a directory its first file says so."""
    oldest = archive.all[0]
    if oldest.identity is not None or not oldest.files:
        return oldest.identity
    file = oldest.files[0]
    return SourceIdentity(file.flavour, file.server_version, file.server_id, None)
