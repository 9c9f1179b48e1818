"""One view of a running relay: its archive, who makes it, and what stands in its way."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from protocol.errors import ErrorCode, StatementRefused
from relay.archive.archive import Archive
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.generation_directories import FIRST
from relay.view.maker import ViewMaker, ViewStatus, ViewStop
from relay.view.rules.settings import ViewSettings
from relay.view.view_rules import rules_of

SKIPPED: Final = "view_skip"
"""The ledger's kind, in the archive of the source, of a group that a view leaves out because somebody said so. There, because
the view's own directory may be deleted: the view is made again with the same decisions."""


Skips = dict[tuple[int, str], dict[int, int]]
"""By generation of the source's archive and file: the offsets of groups that a view leaves out, each with where the group ends."""


def skips_of(ledger: Sequence[LedgerRow], view: str) -> Skips:
    """What this view leaves out. ledger: of all generations of the source's archive."""
    found: Skips = {}
    for row in ledger:
        if row.kind != SKIPPED:
            continue
        try:
            details = json.loads(row.details)
            if details["view"] == view:
                add_skip(found, int(details.get("generation", FIRST)), row.file, row.offset, int(details["group_stop"]))
        except (ValueError, KeyError, TypeError):
            continue
    return found


class View:
    """`begin`, then `close`; on the event loop."""

    def __init__(
        self,
        mirror: Archive,
        archive: Archive,
        settings: ViewSettings,
        skips: Skips,
        on_fault: Callable[[Exception], object] | None = None,
    ) -> None:
        self.settings = settings
        self.archive = archive
        self._mirror = mirror
        self._skips = skips
        self._maker = ViewMaker(mirror, archive, settings, lambda: rules_of(settings), skips, on_fault)

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

    def skip(self, file: str, offset: int, by: str) -> None:
        """Leaves out the group at which the view stands stopped: an empty transaction takes its GTID. Kept in the ledger of the
        source's archive, for each time that the view is made.

        Raises: StatementRefused where the view does not stand there.
        """
        stop = self._maker.stop
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
        add_skip(self._skips, stop.generation, file, offset, stop.group_stop)
        row = skip_row(self.settings.name, stop, by)
        self._mirror.current.append_ledger(SKIPPED, row.file, row.offset, row.text, row.details)
        self._maker.decided()


def add_skip(skips: Skips, generation: int, file: str, offset: int, group_stop: int) -> None:
    """One more."""
    skips.setdefault((generation, file), {})[offset] = group_stop


def skip_row(view: str, stop: ViewStop, by: str) -> LedgerRow:
    """The decision to leave out what the view has stopped at, as a row of the ledger. by: who decided."""
    details = json.dumps({"view": view, "group_stop": stop.group_stop, "generation": stop.generation})
    of = "" if stop.generation == FIRST else f" of generation {stop.generation}"
    text = f"View {view} leaves out this transaction{of}: {stop.reason.text}; skipped by {by}"
    return LedgerRow(time.time(), SKIPPED, stop.file, stop.offset, text, details)
