"""What it costs to note GTIDs while binlogs are received: the kernel's walk over the stream with and without the collector.

In the relay the collector has the writer's thread to itself; here both run in one, by turns in one process, so that the
ratio holds whatever else the machine does.
"""

import time
from pathlib import Path

from protocol.gtid.file_gtids import FileGtidCollector
from protocol.kernel.ingest import Ingest
from tests.bench.figures import GB, MB, Report, median
from tests.bench.receive import relay_once
from tests.bench.source_data import BenchSource

_RUN_BYTES = 512 << 10


def run(source: BenchSource, directory: Path, *, turns: int = 11) -> Report:
    """Both ways over the source's first binlog, a run at a time as a busy source sends them, and whole receives for scale."""
    events = source.path.read_bytes()[4:]
    kernel: list[float] = []
    collector: list[float] = []
    for turn in range(turns + 1):
        without, gathered = _walk(events)
        if turn:
            kernel.append(without)
            collector.append(gathered)
    size = source.size
    report = Report("collecting", f"{size / MB:.0f} MB of {source.transactions:,} small transactions, {turns} turns")
    report.add("kernel: checks, boundaries, stamps", median(kernel) / size * GB, "s/GB")
    report.add("GTID collector", median(collector) / size * GB, "s/GB")
    report.add("the same, least disturbed turn", min(collector) / size * GB, "s/GB")
    of_kernel = median([mine / its for its, mine in zip(kernel, collector, strict=True)])
    report.add("collector / kernel", of_kernel * 100, "%")
    whole = median([relay_once(source, directory / f"collecting-{turn}")[1] for turn in range(min(turns, 5))])
    report.add("collector, of all CPU that receiving takes", median(collector) / whole * 100, "%", aim=2)
    report.add("the same, least disturbed turn", min(collector) / whole * 100, "%")
    return report


def _walk(events: bytes) -> tuple[float, float]:
    """Processor seconds of the kernel and of the collector."""
    ingest = Ingest(packets=False, stamp=True)
    ingest.begin_file(4)
    collector = FileGtidCollector("mariadb", checksum=True)
    buffer = bytearray(2 * _RUN_BYTES)
    view = memoryview(buffer)
    source = memoryview(events)
    kernel = collecting = 0.0
    have = at = 0
    while at < len(source):
        piece = source[at : at + _RUN_BYTES]
        at += len(piece)
        view[have : have + len(piece)] = piece
        have += len(piece)
        start = time.process_time()
        used = 0
        while ingest.feed(buffer, used, have) != 0:
            used = ingest.consumed
        used = ingest.consumed
        ingest.take_entries()
        middle = time.process_time()
        collector.take(view[:used])
        collector.take_blocks()
        collector.open_block()
        collecting += time.process_time() - middle
        kernel += middle - start
        have -= used
        view[:have] = bytes(view[used : used + have])
    return kernel, collecting
