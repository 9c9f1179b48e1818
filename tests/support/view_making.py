"""A view of an archive that is filled by hand, built in this process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import UUID

from protocol.binlog.layout import FIRST_EVENT
from protocol.kernel import codes
from protocol.kernel.ingest import Ingest
from relay.archive.archive import Archive
from relay.archive.write.options import ArchiveOptions
from relay.view.rules.settings import ViewSettings
from relay.view.running.making_progress import ViewStatus
from relay.view.running.view import View
from relay.view.running.view_opening import open_view

UUID_OF_VIEW = UUID("5a3c1b9e-7d20-5c44-8f61-0d2e4b6a8c10")


def settings(**changed: object) -> ViewSettings:
    """Return settings of the view `v`."""
    given: dict[str, object] = {"name": "v", "gtids": "assign", "uuid": UUID_OF_VIEW, **changed}
    return ViewSettings(**given)  # type: ignore[arg-type]


def marked(data: bytes | bytearray) -> bytes:
    """Return a binlog with the markers that the archive puts into what it receives."""
    ingest = Ingest(stamp=True)
    ingest.begin_file(FIRST_EVENT)
    walked = bytearray(data)
    made, at = bytearray(data[:FIRST_EVENT]), FIRST_EVENT
    while True:
        status = ingest.feed(walked, at, len(walked))
        assert status < codes.BAD_CRC, ingest.error_text
        made += walked[at : ingest.produced]
        if ingest.consumed == at:
            return bytes(made)
        at = ingest.consumed
        ingest.take_entries()


@contextlib.asynccontextmanager
async def made_view(mirror: Archive, wanted: ViewSettings, *, is_fault_wanted: bool = False) -> AsyncIterator[View]:
    """Yield the view of an open archive, being built. An unexpected fault fails the test, unless it is wanted."""
    view = await open_view(mirror, wanted, ArchiveOptions())
    view.begin()
    try:
        yield view
    finally:
        stop = view.status.stop
        await view.close()
        assert is_fault_wanted or stop is None or stop.reason.name != "internal_error", stop


async def until(view: View, reached: Callable[[ViewStatus], bool], longest_s: float = 20.0) -> ViewStatus:
    """Wait until the view's status is such."""
    async with asyncio.timeout(longest_s):
        while not reached(view.status):
            await asyncio.sleep(0.005)
    return view.status


async def until_made(view: View) -> ViewStatus:
    """Wait until it has all that the archive has."""
    return await until(view, lambda status: status.behind_bytes == 0 and is_published(view))


def is_published(view: View) -> bool:
    """Return whether all that was built is published."""
    generation = view.archive.current
    return not generation.queued_bytes and generation.end is not None and generation.end == generation.received


def files_of_view(directory: Path) -> dict[str, bytes]:
    """Return its binlogs and maps, by name."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.is_file() and (path.suffix[1:].isdigit() or path.suffix in (".map", ".rules"))
    }
