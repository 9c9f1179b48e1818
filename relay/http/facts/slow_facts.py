"""Facts that take longer to determine than the event loop may wait: a thread determines them now and then."""

import asyncio
import contextlib
import datetime
import os
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog
from cryptography import x509

from relay.archive.catalog.catalog import CatalogUnreadable
from relay.archive_inspection.listing import count_ledgers
from relay.process.background import begin_task

log = structlog.get_logger(__name__)

_EVERY_S: Final = 10.0
_MOST_KINDS: Final = 100
OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class SlowFacts:
    """asked_at: Unix time, 0: not yet. free_bytes, size_bytes: of the archive's file system, as far as this user may use it; None:
    unavailable. ledger: rows by kind; None: the catalog could not be read. certificates: by use, the Unix time of their expiry."""

    asked_at: float = 0.0
    free_bytes: int | None = None
    size_bytes: int | None = None
    ledger: Mapping[str, int] | None = None
    certificates: Mapping[str, float] = field(default_factory=dict)


class SlowFactsWatch:
    """Determines the facts every few seconds. certificate_files: PEM files by use. `begin`, then `close`."""

    def __init__(self, archive: Path, certificate_files: Mapping[str, Path]) -> None:
        self.newest = SlowFacts()
        self.certificate_files = dict(certificate_files)
        self._archive = archive
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start it."""
        self._task = begin_task(self._run(), "gathering facts for monitors")

    async def close(self) -> None:
        """End it."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            self.newest = await asyncio.to_thread(_asked, self._archive, dict(self.certificate_files))
            await asyncio.sleep(_EVERY_S)


def _asked(archive: Path, certificates: Mapping[str, Path]) -> SlowFacts:
    free = size = None
    with contextlib.suppress(OSError):
        found = os.statvfs(archive)
        free, size = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    ends = {use: end for use, path in certificates.items() if (end := _valid_until(path)) is not None}
    return SlowFacts(time.time(), free, size, _ledger(archive), ends)


def _ledger(archive: Path) -> Mapping[str, int] | None:
    """Return the number of rows by kind, of a bounded number of kinds."""
    try:
        counts = count_ledgers(archive)
    except (CatalogUnreadable, OSError, sqlite3.Error):
        return None
    named = sorted(counts)[:_MOST_KINDS]
    rest = sum(counts.values()) - sum(counts[kind] for kind in named)
    return {kind: counts[kind] for kind in named} | ({OTHER: rest} if rest else {})


def _valid_until(path: Path) -> float | None:
    """Return the earliest expiry of the file's certificates; None: it cannot be read."""
    try:
        found = x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError):
        return None
    ends: list[datetime.datetime] = [one.not_valid_after_utc for one in found]
    return min(ends).timestamp()
