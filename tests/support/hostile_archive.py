"""A hostile series in an archive without a relay around it: the remains of a kill are recovered, rebuilt, verified and read."""

import asyncio
import contextlib
import shutil
from pathlib import Path

from protocol.errors import Malformed
from relay.archive.generation import Generation
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.files import LOCK_NAME
from relay.archive_inspection.listing import rebuild_archive
from relay.archive_inspection.verify import verify_archive
from relay.binlog_tables.arrow import read
from relay.binlog_tables.plan.series_files import NothingToRead
from relay.upstream.source.source_errors import UpstreamError
from relay.upstream.stream.intake import Intake
from relay.upstream.stream.receive_buffers import ReceiveBufferPool
from tests.support.hostile_binlogs import HostileSeries

_LEVELS = ("transactions", "rows")


async def archive_series(series: HostileSeries, directory: Path) -> None:
    """Archive what is accepted of it, and leave beside `directory` what a kill would: `killed`. Raises our own faults."""
    generation = await Generation.open(directory)
    intake = Intake(generation, None, packets=False, on_violation="warn")
    with contextlib.suppress(UpstreamError, ArchiveError):
        for name, data in series.files.items():
            intake.begin_file(name)
            buffer = ReceiveBufferPool().take()
            assert buffer is not None
            buffer.data[: len(data) - 4] = data[4:]
            at, end = 0, len(data) - 4
            while at < end:
                intake.take(buffer, at, end)
                if intake.ingest.consumed == at:
                    break
                at = intake.ingest.consumed
    with contextlib.suppress(ArchiveError):
        await generation.trim()
    shutil.copytree(directory, directory.with_name("killed"), ignore=shutil.ignore_patterns(LOCK_NAME))
    shown = shown_gtids(generation)
    await generation.close()
    for place in (directory, directory.with_name("killed")):
        again = await Generation.open(place)
        assert shown_gtids(again) == shown
        await again.close()


def shown_gtids(generation: Generation) -> tuple[object, ...]:
    """Return the state that decides on replicas by GTID."""
    view = generation.gtids.view()
    return view.flavour, view.names, str(view.executed), str(view.purged), view.unreadable_files, view.anonymous_files


def look_at_archive(directory: Path) -> None:
    """Run `archive rebuild` and `verify`, and read it as audits and the feed do. Raises our own faults."""
    rebuild_archive(directory)
    list(verify_archive(directory, deep=True))
    for level in _LEVELS:
        with contextlib.suppress(ValueError, Malformed, ArchiveError, NothingToRead):
            for batch in read(str(directory), level):
                assert batch.num_rows >= 0


def meet(series: HostileSeries, directory: Path) -> None:
    """Run all of it. Raises our own faults."""
    place = directory / "archive"
    asyncio.run(archive_series(series, place))
    look_at_archive(place)
    look_at_archive(directory / "killed")
