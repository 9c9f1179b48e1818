"""The position check: how long a dump request waits for it, nothing cached, in files of different sizes."""

import asyncio
import os
import random
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from relay.archive.generation import Generation
from relay.archive.read.position_check import Verdict
from relay.archive.storage.boundary_index import index_path
from relay.archive_inspection.listing import rebuild_archive
from tests.bench.figures import Report, median
from tests.bench.large_binlog import write_one_transaction, write_small_transactions

NAME = "mysql-bin.000001"


def run(directory: Path, *, sizes_mib: Iterable[int] = (64, 256, 1024)) -> Report:
    """Files of these sizes with small transactions, and the largest with one transaction."""
    sizes = tuple(sizes_mib)
    report = Report("position", "check of an offset, page cache of file and index dropped before each; 15 offsets each")
    for size in sizes:
        place = directory / f"position-{size}"
        place.mkdir()
        starts, inside = write_small_transactions(place / NAME, size << 20)
        cold, warm = _measure(place, [(start, Verdict.BOUNDARY) for start in starts])
        within, _ = _measure(place, [(offset, Verdict.INSIDE_TRANSACTION) for offset in inside])
        aim = 5 if size == sizes[-1] else None
        report.add(f"{size} MiB of small transactions, cold, median", median(cold), "ms", aim=aim)
        report.add(f"{size} MiB of small transactions, cold, longest", max(cold), "ms")
        report.add(f"{size} MiB, inside a small transaction, cold, median", median(within), "ms", aim=aim)
        report.add(f"{size} MiB of small transactions, cached, median", median(warm), "ms")
        shutil.rmtree(place)
    place = directory / "position-one"
    place.mkdir()
    start, end, inside = write_one_transaction(place / NAME, sizes[-1] << 20)
    cold, warm = _measure(place, [(offset, Verdict.INSIDE_TRANSACTION) for offset in inside], group=(start, end))
    report.add(f"inside one transaction of {sizes[-1]} MiB, cold, median", median(cold), "ms", aim=5)
    report.add(f"inside one transaction of {sizes[-1]} MiB, cold, longest", max(cold), "ms")
    report.add(f"inside one transaction of {sizes[-1]} MiB, cached, median", median(warm), "ms")
    shutil.rmtree(place)
    return report


def _measure(
    directory: Path, expected: list[tuple[int, Verdict]], group: tuple[int, int] | None = None
) -> tuple[list[float], list[float]]:
    """Milliseconds of each check, cold and right again."""
    if not index_path(directory / NAME).exists():
        rebuild_archive(directory)
    return asyncio.run(_check_all(directory, expected, group))


async def _check_all(
    directory: Path, expected: list[tuple[int, Verdict]], group: tuple[int, int] | None
) -> tuple[list[float], list[float]]:
    generation = await Generation.open(directory)
    cold: list[float] = []
    warm: list[float] = []
    try:
        shuffled = expected[:]
        random.Random(5).shuffle(shuffled)
        await generation.check_position(NAME, 4)
        for offset, verdict in shuffled:
            for path in (directory / NAME, index_path(directory / NAME)):
                drop_pages(path)
            for into in (cold, warm):
                start = time.perf_counter()
                check = await generation.check_position(NAME, offset)
                into.append((time.perf_counter() - start) * 1000)
            if check.verdict is not verdict or (group is not None and check.group != group):
                raise AssertionError(f"{offset}: {check}, expected {verdict} in {group}")
    finally:
        await generation.close()
    return cold, warm


def drop_pages(path: Path) -> None:
    """The next read of the file goes to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
