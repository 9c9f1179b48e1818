"""Puts built binlogs into an archive as upstream would."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from relay.archive.generation import Archive
from tests.support.binlog_builder import runs_of


async def append_all(archive: Archive, data: bytes | bytearray, cuts: Iterable[int] = (), start: int = 4) -> None:
    """Appends `data` from `start` in runs cut at `cuts`, and waits until the writer is done with the buffers."""
    runs = list(runs_of(data, cuts, start=start))
    left = len(runs)
    done = asyncio.Event()

    def one_done() -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    for run in runs:
        archive.append(run.run, on_written=one_done, **run.arguments())  # type: ignore[arg-type]
    if runs:
        await done.wait()


async def fill(directory: Path, *files: tuple[str, bytes | bytearray]) -> None:
    """An archive in `directory` that received `files` and was closed."""
    archive = await Archive.open(directory)
    for name, data in files:
        await archive.begin_file(name)
        await append_all(archive, data)
    await archive.close()
