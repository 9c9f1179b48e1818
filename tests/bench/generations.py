"""Opening an archive that was over many sources: what each generation that is kept costs the relay's start and its process."""

import asyncio
import os
import shutil
import threading
import time
from pathlib import Path

from relay.archive.archive import Archive
from tests.bench.figures import Report, median
from tests.support.generation_filling import A, B, append_files, change_source, identity, mysql_series


def run(directory: Path, *, generations: int = 50, turns: int = 5) -> Report:
    """Small files: what grows with the number of files is measured by `start`."""
    place = directory / "generations"
    asyncio.run(_fill(place, generations))
    opened = [asyncio.run(_open_once(place)) for _ in range(turns)]
    shutil.rmtree(place)
    seconds, cpu, descriptors, threads, purged = (list(values) for values in zip(*opened, strict=True))
    report = Report("generations", f"an archive of {generations} generations, {turns} times opened")
    report.add("opening", median(seconds), "s", aim=1)
    report.add("CPU for each generation", median(cpu) / generations * 1000, "ms")
    report.add("descriptors for each generation", max(descriptors) / generations)
    report.add("threads for each generation", max(threads) / generations)
    report.add("gtid_purged, asked for with each answer", median(purged) * 1000, "ms")
    return report


async def _fill(place: Path, count: int) -> None:
    archive = await Archive.open(place)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-3", f"{A}:4-6"))
    for number in range(1, count):
        last = 3 + number * 3
        files = mysql_series(1, f"{A}:{last - 1}-{last + 3}", start=f"{A}:1-{last - 2}")
        await change_source(archive, identity(B if number % 2 else A, 1 + number % 2), files)
    await archive.close()


async def _open_once(place: Path) -> tuple[float, float, int, int, float]:
    """Seconds, seconds of processor time, descriptors, threads; seconds for the purged set."""
    before = _descriptors(), threading.active_count()
    clock, cpu = time.monotonic(), time.process_time()
    archive = await Archive.open(place)
    took, used = time.monotonic() - clock, time.process_time() - cpu
    after = _descriptors(), threading.active_count()
    asked = []
    for _ in range(51):
        clock = time.perf_counter()
        _ = archive.purged
        asked.append(time.perf_counter() - clock)
    await archive.close()
    return took, used, after[0] - before[0], after[1] - before[1], median(asked)


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
