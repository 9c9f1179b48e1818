"""Serving: clients that throw the bytes away, reading from the relay and from the source's own dump threads by turns."""

from pathlib import Path

from tests.bench.figures import GB, MB, Report, median
from tests.bench.process_facts import cpu_s
from tests.bench.relays import filled_relay, login
from tests.bench.source_data import BenchSource
from tests.bench.streams import Server, drain, stream_size


def run(source: BenchSource, directory: Path, *, clients: int = 1, turns: int = 9) -> Report:
    """Measures `turns` turns of each, after one that does not count."""
    with filled_relay(directory / f"serve-{clients}", source) as relay:
        sides: dict[str, tuple[Server, int]] = {
            "relay": (login(relay), relay.pid),
            "source": (source.login, source.pid),
        }
        wanted = {name: stream_size(server, source.file) for name, (server, _) in sides.items()}
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        cpu: dict[str, list[float]] = {name: [] for name in sides}
        client_cpu: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(turns + 1):
            for name, (server, pid) in sides.items():
                before = cpu_s(pid)
                result = drain(server, source.file, wanted[name], clients)
                if turn:
                    seconds[name].append(result["seconds"])
                    cpu[name].append(cpu_s(pid) - before)
                    client_cpu[name].append(result["cpu"])
    size = wanted["source"] * clients
    many = f"{clients} clients" if clients > 1 else "one client"
    report = Report(
        f"serve{clients if clients > 1 else ''}",
        f"{many} throwing away {wanted['source'] / MB:.0f} MB each, {turns} turns each",
    )
    for name in sides:
        report.add(f"{name}, throughput", wanted[name] * clients / median(seconds[name]) / MB, "MB/s")
    ratio = median(seconds["source"]) / median(seconds["relay"])
    report.add("throughput, relay / source", ratio, aim=2 if clients == 1 else 1.5, at_least=True)
    report.add("the same, least disturbed turn of each", min(seconds["source"]) / min(seconds["relay"]))
    for name in sides:
        report.add(f"{name}, CPU", median(cpu[name]) / size * GB, "s/GB")
    report.add("CPU, relay / source", median(cpu["relay"]) / median(cpu["source"]), aim=0.6 if clients == 1 else None)
    for name in sides:
        report.add(f"the client's own CPU, reading from the {name}", median(client_cpu[name]) / size * GB, "s/GB")
    return report
