"""All views of a running relay."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import structlog

from relay.archive.archive import Archive
from relay.archive.inspect.listing import read_ledger
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.files import FileLayer
from relay.archive.write.options import ArchiveOptions
from relay.process.background import begin_task
from relay.view.kept_settings import check_kept
from relay.view.settings import ViewSettings
from relay.view.view import View, skips_of, view_directory

log = structlog.get_logger()


class WantedView(NamedTuple):
    """settings: of the view, once it is known whose binlogs the archive began with. Raises: ValueError where they cannot be."""

    name: str
    settings: Callable[[SourceIdentity], ViewSettings]


class ViewsObserver(NamedTuple):
    """ready: this view is there. refused: this one is not, and why. fault: what nobody foresaw ended one."""

    ready: Callable[[View], object]
    refused: Callable[[str, str], object]
    fault: Callable[[Exception], object]


class Views:
    """`open`, `begin`, then `close`; on the event loop.

    What a view is depends on its source: in an archive that never had one, views are opened when it is known.
    """

    def __init__(
        self, mirror: Archive, wanted: Sequence[WantedView], options: ArchiveOptions, observer: ViewsObserver
    ) -> None:
        self._mirror = mirror
        self._wanted = wanted
        self._options = options
        self._observer = observer
        self._views: dict[str, View] = {}
        self._waiting: asyncio.Task[None] | None = None

    @property
    def all(self) -> Mapping[str, View]:
        """By name; those that are open."""
        return self._views

    async def open(self) -> None:
        """Opens what can be opened now. Raises: as `Archive.open`; ArchiveConflict for other settings; ValueError."""
        identity = self._mirror.all[0].identity
        if identity is None:
            for wanted in self._wanted:
                self._observer.refused(
                    wanted.name, "the source was not reached yet, and the view is made of its binlogs"
                )
            return
        for wanted in self._wanted:
            await self._open(wanted.settings(identity))

    async def _open(self, settings: ViewSettings) -> View:
        directory = view_directory(self._mirror.directory, settings.name)
        await asyncio.to_thread(check_kept, directory, settings, FileLayer())
        ledger = await asyncio.to_thread(read_ledger, self._mirror.directory)
        archive = await Archive.open(directory, self._options)
        skips = skips_of(ledger, settings.name)
        view = View(self._mirror, archive, settings, skips, self._observer.fault)
        self._views[settings.name] = view
        return view

    def begin(self) -> None:
        """Makes them from now on."""
        for view in self._views.values():
            self._begin(view)
        if self._wanted and not self._views:
            self._waiting = begin_task(self._open_later(), "waiting for the source to make views", self._observer.fault)

    def _begin(self, view: View) -> None:
        view.begin()
        self._observer.ready(view)

    async def _open_later(self) -> None:
        moved = asyncio.Event()
        self._mirror.watch(moved.set)
        try:
            while (identity := self._mirror.all[0].identity) is None:
                moved.clear()
                await moved.wait()
        finally:
            self._mirror.unwatch(moved.set)
        for wanted in self._wanted:
            try:
                self._begin(await self._open(wanted.settings(identity)))
            except (ArchiveError, ValueError, OSError) as error:
                log.error("view_not_opened", view=wanted.name, what=str(error))
                self._observer.refused(wanted.name, str(error))

    async def close(self) -> None:
        """Closes them. Raises: ArchiveError, the first; all are closed all the same."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.cancel()
            await asyncio.wait({waiting})
        failure: Exception | None = None
        for view in self._views.values():
            try:
                await view.close()
            except Exception as error:
                failure = failure or error
        self._views.clear()
        if failure is not None:
            raise failure
