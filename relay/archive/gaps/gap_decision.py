"""The gap that somebody accepted and that no generation stands behind yet: kept beside the archive until one does."""

import asyncio
from pathlib import Path

import structlog

from relay.archive.gaps.accepted_gap import AcceptedGap, GapUnreadable, keep_gap, kept_gap
from relay.archive.storage.files import ACCEPTED_NAME, FileLayer

log = structlog.get_logger()


class GapDecision:
    """One at a time. `gap` None: nobody accepted one, or it was carried out."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.gap: AcceptedGap | None = None

    def load(self, behind: AcceptedGap | None) -> None:
        """What an earlier run, or `archive accept-gap`, left. behind: the gap that the newest generation stands behind; this one
        was carried out. Blocking."""
        try:
            gap = kept_gap(self._directory, ACCEPTED_NAME)
            if gap is not None and gap == behind:
                self._remove()
                return
        except (GapUnreadable, OSError) as error:
            log.warning("gap_decision_unreadable", file=ACCEPTED_NAME, why=str(error), advice="Accept the gap again.")
            return
        self.gap = gap

    def write(self, gap: AcceptedGap) -> None:
        """Blocking: it is on the disk when this returns. Raises: OSError."""
        keep_gap(self._directory, gap, ACCEPTED_NAME)
        self.gap = gap

    async def keep(self, gap: AcceptedGap) -> None:
        """As `write`, in a thread."""
        await asyncio.to_thread(self.write, gap)

    async def drop(self) -> None:
        """It was carried out, or does not hold any more."""
        self.gap = None
        try:
            await asyncio.to_thread(self._remove)
        except OSError as error:
            # It is looked at again at the next start, and holds only for the very gap that it was made for.
            log.warning("gap_decision_not_removed", file=ACCEPTED_NAME, why=str(error))

    def _remove(self) -> None:
        layer = FileLayer()
        layer.unlink(self._directory / ACCEPTED_NAME)
        layer.sync_directory(self._directory)
