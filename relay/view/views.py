"""All views of a running relay."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from relay.archive.archive import Archive
from relay.archive.inspect.listing import read_ledgers
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.files import FileLayer
from relay.archive.write.options import ArchiveOptions
from relay.view.kept_settings import check_kept, view_directory
from relay.view.rules.settings import ViewSettings
from relay.view.view import View, skips_of


class Views:
    """`open`, `begin`, then `close`; on the event loop. One that cannot be opened keeps none of the others from it."""

    def __init__(
        self,
        mirror: Archive,
        settings: Sequence[ViewSettings],
        options: ArchiveOptions,
        on_fault: Callable[[Exception], object] | None = None,
    ) -> None:
        self.refused: dict[str, Exception] = {}
        """By name: why it could not be opened. ArchiveError, OSError."""
        self._mirror = mirror
        self._settings = settings
        self._options = options
        self._on_fault = on_fault
        self._views: dict[str, View] = {}

    @property
    def all(self) -> Mapping[str, View]:
        """Those that could be opened, by name."""
        return self._views

    async def open(self) -> None:
        """Opens their archives, made where they are missing. See `refused`."""
        for settings in self._settings:
            try:
                await self._open(settings)
            except (ArchiveError, OSError) as error:
                self.refused[settings.name] = error

    async def _open(self, settings: ViewSettings) -> None:
        directory = view_directory(self._mirror.directory, settings.name)
        await asyncio.to_thread(check_kept, directory, settings, FileLayer())
        ledger = await asyncio.to_thread(read_ledgers, self._mirror.directory)
        archive = await Archive.open(directory, self._options)
        skips = skips_of([row for _number, row in ledger], settings.name)
        self._views[settings.name] = View(self._mirror, archive, settings, skips, self._on_fault)

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
