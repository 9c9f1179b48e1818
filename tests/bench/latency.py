"""What the relay adds at the live edge: one client on the source and one on the relay, when each sees the same commit."""

from collections.abc import Sequence
from pathlib import Path

from tests.bench.figures import Report, median, percentile
from tests.bench.relays import filled_relay, login
from tests.bench.source_data import DATABASE, BenchSource
from tests.bench.streams import Server, Stream, reading


def run(source: BenchSource, directory: Path, *, commits: int = 2000, per_second: int = 400, turns: int = 5) -> Report:
    """`turns` times `commits` transactions at `per_second`; both clients in one process, by one clock.

    By turns with a control in which both clients are on the source: what two equal clients differ by is the machine's.
    """
    added: list[list[float]] = []
    control: list[list[float]] = []
    with filled_relay(directory / "latency", source) as relay:
        for _ in range(turns):
            added.append(differences(source, _streams(source, login(relay)), commits, per_second))
            control.append([abs(ms) for ms in differences(source, _streams(source, source.login), commits, per_second)])
    report = Report(
        "latency",
        f"{turns} times {commits:,} commits at {per_second} a second: seen through the relay minus seen directly",
    )
    p50, p99, p999 = ([percentile(turn, share) for turn in added] for share in (0.5, 0.99, 0.999))
    report.add("added latency, median", median(p50), "ms", aim=0.5)
    report.add("added latency, 99 of 100", median(p99), "ms", aim=2, note="median of the turns")
    report.add("added latency, 99 of 100, least disturbed turn", min(p99), "ms")
    report.add("added latency, 999 of 1000", median(p999), "ms", note="median of the turns")
    noise = [percentile(turn, 0.99) for turn in control]
    report.add("two clients on the source differ by, 99 of 100", median(noise), "ms", note="the machine's own noise")
    return report


def _streams(source: BenchSource, second: Server) -> list[Stream]:
    """From the end of the source on: of itself, and of `second`."""
    file, offset = source.newest()
    return [
        Stream.by_position(source.login, file, offset, server_id=3001),
        Stream.by_position(second, file, offset, server_id=3002),
    ]


def differences(source: BenchSource, streams: Sequence[Stream], commits: int, per_second: int) -> list[float]:
    """Milliseconds by which the second of two streams that wait at the end has each commit later than the first."""
    with reading("commits", str(commits), streams=streams) as client:
        client.wait_ready()
        source.server.sql(f"CALL write_paced({commits}, {per_second})", DATABASE)
        result = client.result()
    return [(late - soon) * 1000 for soon, late in zip(result["first"], result["second"], strict=True)]
