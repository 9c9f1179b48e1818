"""What the boundary markers cost on the way in: the kernel over the same packets with and without stamping."""

import time
from pathlib import Path

from protocol.kernel.frame import Framer, required_size
from protocol.kernel.ingest import Ingest
from tests.bench.figures import GB, MB, Report, median
from tests.bench.receive import relay_once
from tests.bench.source_data import BenchSource

_STEP = 256 << 10


def run(source: BenchSource, directory: Path, *, turns: int = 11) -> Report:
    """Both ways over the stream of the source's first binlog, by turns; a copy of the bytes, as a receive is, in both."""
    packets = _packets(source.path.read_bytes())
    with_stamps: list[float] = []
    without: list[float] = []
    for turn in range(turns):
        for stamp, into in (
            ((True, with_stamps), (False, without)) if turn % 2 else ((False, without), (True, with_stamps))
        ):
            into.append(_walk(packets, stamp))
    size = source.size
    report = Report("stamping", f"the kernel alone over {size / MB:.0f} MB of packets, {turns} turns each")
    report.add("checks, boundaries, stamps", median(with_stamps) / size * GB, "s/GB")
    report.add("the same without stamps", median(without) / size * GB, "s/GB")
    cost = median([stamped / plain - 1 for stamped, plain in zip(with_stamps, without, strict=True)])
    report.add("stamps cost", cost * 100, "%", note="of the kernel alone, median of the turns")
    whole = median([relay_once(source, directory / f"stamping-{turn}")[1] for turn in range(min(turns, 5))])
    share = (median(with_stamps) - median(without)) / whole
    report.add("stamps cost, of all CPU that receiving takes", share * 100, "%", aim=3)
    report.add(
        "stamps cost, of the kernel alone, least disturbed turn of each",
        (min(with_stamps) / min(without) - 1) * 100,
        "%",
    )
    return report


def _packets(file: bytes) -> bytes:
    framer = Framer(0, b"\0")
    framer.begin_file(1)
    output = bytearray(required_size(len(file)))
    made = framer.frame(file, 4, len(file), output)
    return bytes(memoryview(output)[:made])


def _walk(packets: bytes, stamp: bool) -> float:
    """Processor seconds for all of it: other processes do not count."""
    ingest = Ingest(packets=True, stamp=stamp)
    ingest.begin_file(4)
    buffer = bytearray(2 * _STEP)
    view = memoryview(buffer)
    source = memoryview(packets)
    have = at = 0
    start = time.process_time()
    while at < len(packets):
        piece = source[at : at + _STEP]
        view[have : have + len(piece)] = piece
        at += len(piece)
        have += len(piece)
        used = 0
        while ingest.feed(buffer, used, have) != 0:
            used = ingest.consumed
        used = ingest.consumed
        ingest.take_entries()
        view[: have - used] = bytes(view[used:have])
        have -= used
    return time.process_time() - start
