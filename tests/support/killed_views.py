"""A program that builds a view over three sources, in a process that is meant to be killed.

    python -m tests.support.killed_views DIRECTORY

DIRECTORY is an archive of `over_three_sources`. It prints a line when it begins, and ends when all is built.
"""

import asyncio
import sys
from pathlib import Path

from relay.archive.archive import Archive
from tests.support.generation_filling import A, B, append_files, change_source, identity, mysql_series
from tests.support.view_making import files_of_view, made_view, settings, until


async def over_three_sources(directory: Path) -> None:
    """Make an archive in which a source is followed by another, and that by the first one again."""
    mirror = await Archive.open(directory)
    mirror.current.set_identity(identity(A, 1))
    await append_files(mirror, mysql_series(1, f"{A}:1-300", f"{A}:301-600"))
    files = mysql_series(2, f"{A}:501-900", f"{B}:1-200", start=f"{A}:1-500")
    await change_source(mirror, identity(B, 2), files)
    files = mysql_series(3, f"{B}:101-200,{A}:901-1000", start=f"{A}:1-900,{B}:1-100")
    await change_source(mirror, identity(A, 1), files)
    await mirror.close()


async def made(directory: Path) -> dict[str, dict[str, bytes]]:
    """Return the binlogs of its view, once all is built: by the directories of its generations and by name."""
    mirror = await Archive.open(directory)
    try:
        async with made_view(mirror, settings()) as view:
            sys.stdout.write("begun\n")
            sys.stdout.flush()
            await until(view, lambda _: view.archive.executed == mirror.executed)
        places = (view.directory, *sorted(view.directory.glob("g0*")))
        return {
            place.name: {name: data for name, data in files_of_view(place).items() if name[-6:].isdigit()}
            for place in places
        }
    finally:
        await mirror.close()


if __name__ == "__main__":
    asyncio.run(made(Path(sys.argv[1])))
