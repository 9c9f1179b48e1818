"""A hundred replicas at the live edge of a source that writes 1 MB/s of small transactions: what they cost."""

import threading
import time
from pathlib import Path

from tests.bench.figures import MB, Report
from tests.bench.process_facts import cpu_s
from tests.bench.relays import filled_relay, login
from tests.bench.source_data import DATABASE, BenchSource
from tests.bench.streams import Server, Stream, reading

BYTES_PER_S = 1_000_000
_SETTLE_S = 0.5


def run(source: BenchSource, directory: Path, *, clients: int = 100, duration_s: float = 10.0) -> Report:
    """The relay serves all clients for `duration_s`, then the source serves them without the relay."""
    report = Report(
        "live100", f"{clients} clients at the live edge of {BYTES_PER_S / MB:g} MB/s, {duration_s:g} s each"
    )
    with filled_relay(directory / "live", source) as relay:
        idle_from, idle_source = cpu_s(relay.pid), cpu_s(source.pid)
        wrote = _write(source, duration_s)
        receiving = (cpu_s(relay.pid) - idle_from) / wrote.seconds
        writing = (cpu_s(source.pid) - idle_source) / wrote.seconds
        served, relay_load, rate, least = _follow(source, login(relay), relay.pid, clients, duration_s)
    direct, source_load, _, _ = _follow(source, source.login, source.pid, clients, duration_s)
    report.add("source writes", rate / MB, "MB/s")
    report.add("the slowest client got", least * 100, "%", note="of the bytes written meanwhile")
    report.add("relay to its clients", served / MB, "MB/s")
    report.add("relay, with clients", relay_load, "cores", aim=1)
    report.add("relay, receiving only", receiving, "cores")
    report.add("source to the same clients, without a relay", direct / MB, "MB/s")
    report.add("source's CPU for these clients", max(0.0, source_load - writing), "cores")
    return report


class _Wrote:
    def __init__(self, seconds: float, size: int) -> None:
        self.seconds = seconds
        self.size = size


def _write(source: BenchSource, duration_s: float) -> _Wrote:
    per_second = BYTES_PER_S // 430
    _, before = source.newest()
    start = time.monotonic()
    source.server.sql(f"CALL write_paced({int(per_second * duration_s)}, {per_second})", DATABASE)
    return _Wrote(time.monotonic() - start, source.newest()[1] - before)


def _follow(
    source: BenchSource, server: Server, pid: int, clients: int, duration_s: float
) -> tuple[float, float, float, float]:
    """Bytes/s to all clients, cores used by `pid`, bytes/s written, share of these that the slowest client got."""
    file, offset = source.newest()
    streams = [Stream.by_position(server, file, offset, server_id=2000 + number) for number in range(clients)]
    with reading("drain", "0", streams=streams) as run:
        time.sleep(_SETTLE_S)
        before = cpu_s(pid)
        wrote: list[_Wrote] = []
        writer = threading.Thread(target=lambda: wrote.append(_write(source, duration_s)))
        writer.start()
        writer.join()
        cores = (cpu_s(pid) - before) / wrote[0].seconds
        time.sleep(_SETTLE_S)
        result = run.result()
    return (
        result["bytes"] / wrote[0].seconds,
        cores,
        wrote[0].size / wrote[0].seconds,
        min(1.0, result["least"] / wrote[0].size),
    )
