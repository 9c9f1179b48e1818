"""One view of a running relay: its archive, its maker, and its skips."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from protocol.errors import ErrorCode, StatementRefused
from relay.archive.archive import Archive
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.view.rules.settings import ViewSettings
from relay.view.running.maker import ViewMaker
from relay.view.running.making_progress import ViewStatus
from relay.view.view_rules import rules_of
from relay.view.view_skips import Skips, add_skip, skip_row

log = structlog.get_logger()

_ATTEMPT_S: Final = 5.0
"""The wait of a decision for the end of an attempt in progress, in seconds."""


class View:
    """A view of a running relay. Call `begin`, then `close`; on the event loop."""

    def __init__(
        self,
        mirror: Archive,
        archive: Archive,
        settings: ViewSettings,
        skips: Skips,
    ) -> None:
        self.settings = settings
        self.archive = archive
        self._mirror = mirror
        self._skips = skips
        self._maker = ViewMaker(mirror, archive, settings, partial(rules_of, settings), skips)

    @property
    def directory(self) -> Path:
        """The directory of its files."""
        return self.archive.directory

    @property
    def status(self) -> ViewStatus:
        """Its progress, and its stop."""
        return self._maker.status

    def begin(self) -> None:
        """Build it from now on."""
        self._maker.begin()

    async def close(self) -> None:
        """End building and close its archive. Raises: ArchiveError."""
        await self._maker.close()
        await self.archive.close()

    async def skip(self, file: str, offset: int, by: str) -> None:
        """Leave out the group at which the view is stopped: an empty transaction gets its GTID. This is written to the ledger of the
        source's archive, for each time that the view is rebuilt, and is on the disk there before anything is built without the group.

        Raises: StatementRefused where the view is not stopped there, or the ledger cannot be written.
        """
        stands = self._maker.status.stop is not None and await self._maker.stands_within(_ATTEMPT_S)
        stop = self._maker.status.stop
        if stop is None or (stop.file, stop.offset) != (file, offset):
            where = f"it stands at {stop.file}:{stop.offset}" if stop is not None else "it does not stand still"
            raise StatementRefused(
                ErrorCode.ER_UNKNOWN_ERROR,
                f"View {self.settings.name} is not stopped at {file}:{offset}: {where}. Only the group that stops a view is skipped",
            )
        if stop.group_stop <= offset:
            raise StatementRefused(
                ErrorCode.ER_UNKNOWN_ERROR, f"What stops view {self.settings.name} is no group: {stop.reason.text}"
            )
        if not stands:
            text = (
                f"View {self.settings.name} tries {file}:{offset} once more just now. If it stands there then, skip it"
            )
            raise StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, text)
        with self._maker.deciding():
            await self._write(skip_row(self.settings.name, stop, by))
            add_skip(self._skips, stop.generation, file, offset, stop.group_stop)

    async def _write(self, row: LedgerRow) -> None:
        """Write the row to the ledger. Raises: StatementRefused."""
        log.warning("archive_ledger", kind=row.kind, file=row.file, offset=row.offset, text=row.text)
        try:
            await asyncio.to_thread(self._mirror.current.write_ledger, row)
        except OSError as error:
            text = (
                f"The decision could not be written into the ledger of the archive: {error.strerror}. View {self.settings.name} "
                "stands where it was. It stays in line, and where it is written later it holds from the relay's next start on. Look at "
                "the archive's disk, and issue this again"
            )
            raise StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, text) from error
