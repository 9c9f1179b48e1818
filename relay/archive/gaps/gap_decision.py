"""The accepted gap after which no generation begins yet: it is kept with the archive until one does."""

import asyncio
from pathlib import Path

import structlog

from relay.archive.gaps.accepted_gap import AcceptedGap, GapUnreadable, keep_gap, kept_gap
from relay.archive.storage.files import ACCEPTED_NAME, FileLayer

log = structlog.get_logger()


class GapDecision:
    """One decision at a time. `gap` None: none was accepted, or it was carried out."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.gap: AcceptedGap | None = None

    def load(self, after: AcceptedGap | None) -> None:
        """Load what an earlier run, or `archive accept-gap`, left. behind: the gap after which the newest generation begins; this one
        was carried out. Blocking."""
        try:
            gap = kept_gap(self._directory, ACCEPTED_NAME)
            if gap is not None and gap == after:
                self._remove()
                return
        except (GapUnreadable, OSError) as error:
            log.warning("gap_decision_unreadable", file=ACCEPTED_NAME, why=str(error), advice="Accept the gap again.")
            return
        self.gap = gap

    def write(self, gap: AcceptedGap) -> None:
        """Write the decision. Blocking: it is on the disk on return. Raises: OSError."""
        keep_gap(self._directory, gap, ACCEPTED_NAME)
        self.gap = gap

    async def keep(self, gap: AcceptedGap) -> None:
        """Do as `write`, in a thread."""
        await asyncio.to_thread(self.write, gap)

    async def drop(self) -> None:
        """Drop the decision: it was carried out, or is not valid any more."""
        self.gap = None
        try:
            await asyncio.to_thread(self._remove)
        except OSError as error:
            # It is checked again at the next start, and is valid only for the very gap that it was made for.
            log.warning("gap_decision_not_removed", file=ACCEPTED_NAME, why=str(error))

    def _remove(self) -> None:
        layer = FileLayer()
        layer.unlink(self._directory / ACCEPTED_NAME)
        layer.sync_directory(self._directory)
