"""What the relay adds at the live edge: one client on the source and one on the relay, when each sees the same commit."""

from pathlib import Path

from tests.bench.figures import Report, percentile
from tests.bench.relays import filled_relay, login
from tests.bench.source_data import DATABASE, BenchSource
from tests.bench.streams import Stream, reading


def run(source: BenchSource, directory: Path, *, commits: int = 3000, per_second: int = 400) -> Report:
    """`commits` transactions at `per_second`; both clients in one process, by one clock."""
    with filled_relay(directory / "latency", source) as relay:
        file, offset = source.newest()
        streams = [
            Stream(source.login, file, offset, server_id=3001),
            Stream(login(relay), file, offset, server_id=3002),
        ]
        with reading("commits", str(commits), streams=streams) as client:
            client.wait_ready()
            source.server.sql(f"CALL write_paced({commits}, {per_second})", DATABASE)
            result = client.result()
    added = [(relayed - direct) * 1000 for direct, relayed in zip(result["first"], result["second"], strict=True)]
    report = Report(
        "latency", f"{commits:,} commits at {per_second} a second: seen through the relay minus seen directly"
    )
    report.add("added latency, median", percentile(added, 0.5), "ms", aim=0.5)
    report.add("added latency, 99 of 100", percentile(added, 0.99), "ms", aim=2)
    report.add("added latency, 999 of 1000", percentile(added, 0.999), "ms")
    report.add("added latency, longest", max(added), "ms")
    return report
