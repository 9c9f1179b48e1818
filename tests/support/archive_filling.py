"""A filler that puts built binlogs into an archive as upstream would."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from relay.archive.generation import Generation
from tests.support.binlog_builder import runs_of


async def append_all(generation: Generation, data: bytes | bytearray, cuts: Iterable[int] = (), start: int = 4) -> None:
    """Append `data` from `start` in runs cut at `cuts`, and wait until the writer is done with the buffers."""
    runs = list(runs_of(data, cuts, start=start))
    left = len(runs)
    done = asyncio.Event()

    def one_done() -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    for run in runs:
        generation.append(run._replace(on_written=one_done))
    if runs:
        await done.wait()


async def fill(directory: Path, *files: tuple[str, bytes | bytearray]) -> None:
    """Fill an archive in `directory` with `files` and close it."""
    generation = await Generation.open(directory)
    for name, data in files:
        await generation.begin_file(name)
        await append_all(generation, data)
    await generation.close()
