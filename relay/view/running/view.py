"""One view of a running relay: its archive, who makes it, and what stands in its way."""

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
"""So long a decision waits for the end of an attempt that is being made."""


class View:
    """`begin`, then `close`; on the event loop."""

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
        """Where its files are."""
        return self.archive.directory

    @property
    def status(self) -> ViewStatus:
        """How far it is made, and what stops it."""
        return self._maker.status

    def begin(self) -> None:
        """Makes it from now on."""
        self._maker.begin()

    async def close(self) -> None:
        """Ends the making and closes its archive. Raises: ArchiveError."""
        await self._maker.close()
        await self.archive.close()

    async def skip(self, file: str, offset: int, by: str) -> None:
        """Leaves out the group at which the view stands stopped: an empty transaction takes its GTID. Kept in the ledger of the
        source's archive, for each time that the view is made, and on the disk there before anything is made without the group.

        Raises: StatementRefused where the view does not stand there, or the ledger cannot be written.
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
        """Raises: StatementRefused."""
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
