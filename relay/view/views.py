"""All views of a running relay."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from relay.archive.archive import Archive
from relay.archive.inspect.listing import read_ledger
from relay.archive.storage.files import FileLayer
from relay.archive.write.options import ArchiveOptions
from relay.view.kept_settings import check_kept
from relay.view.settings import ViewSettings
from relay.view.view import View, skips_of, view_directory


class Views:
    """`open`, `begin`, then `close`; on the event loop. A view that cannot be opened stops the relay's start: by then nobody is
    served, and whoever configured it is there."""

    def __init__(
        self,
        mirror: Archive,
        settings: Sequence[ViewSettings],
        options: ArchiveOptions,
        on_fault: Callable[[Exception], object] | None = None,
    ) -> None:
        self._mirror = mirror
        self._settings = settings
        self._options = options
        self._on_fault = on_fault
        self._views: dict[str, View] = {}

    @property
    def all(self) -> Mapping[str, View]:
        """By name."""
        return self._views

    async def open(self) -> None:
        """Opens their archives, made where they are missing. Raises: as `Archive.open`; ArchiveConflict for other settings."""
        try:
            for settings in self._settings:
                self._views[settings.name] = await self._opened(settings)
        except BaseException:
            await self.close()
            raise

    async def _opened(self, settings: ViewSettings) -> View:
        directory = view_directory(self._mirror.directory, settings.name)
        await asyncio.to_thread(check_kept, directory, settings, FileLayer())
        ledger = await asyncio.to_thread(read_ledger, self._mirror.current.directory)
        archive = await Archive.open(directory, self._options)
        return View(self._mirror, archive, settings, skips_of(ledger, settings.name), self._on_fault)

    def begin(self) -> None:
        """Makes them from now on."""
        for view in self._views.values():
            view.begin()

    async def close(self) -> None:
        """Closes them. Raises: ArchiveError, the first; all are closed all the same."""
        failure: Exception | None = None
        for view in self._views.values():
            try:
                await view.close()
            except Exception as error:
                failure = failure or error
        self._views.clear()
        if failure is not None:
            raise failure
