"""This checkout against another one of this repository, by turns in one run: receiving, and serving one and several clients.

    python -m tests.bench.two_builds OTHER [--turns N] [--clients N] [--kept DIR] [--transactions N]

OTHER has a `.venv` of its own, with the compiled kernel. A ratio above 1 says that this checkout is the faster one.
"""

import argparse
import contextlib
from pathlib import Path
from typing import Final

from tests.bench import receive
from tests.bench.figures import MB, Report, median
from tests.bench.process_facts import cpu_s
from tests.bench.relays import filled_relay, login
from tests.bench.source_data import TRANSACTIONS, BenchSource, bench_source, working_directory
from tests.bench.streams import drain, stream_size

_THIS: Final = "this"
_OTHER: Final = "other"


def received(source: BenchSource, directory: Path, other: Path, turns: int) -> Report:
    """Receiving, `turns` turns of each."""
    builds = {_THIS: None, _OTHER: other}
    seconds: dict[str, list[float]] = {name: [] for name in builds}
    cpu: dict[str, list[float]] = {name: [] for name in builds}
    for turn in range(turns):
        for name, checkout in builds.items():
            took, used = receive.relay_once(source, directory / f"{name}-{turn}", checkout=checkout)
            seconds[name].append(took)
            cpu[name].append(used)
    return _compared("receive", f"{source.size / MB:.0f} MB, {turns} turns each", source.size, seconds, cpu)


def served(source: BenchSource, directory: Path, other: Path, turns: int, clients: int) -> Report:
    """Serving `clients` clients that throw the bytes away, `turns` turns of each, after one that does not count."""
    seconds: dict[str, list[float]] = {_THIS: [], _OTHER: []}
    cpu: dict[str, list[float]] = {_THIS: [], _OTHER: []}
    with contextlib.ExitStack() as stack:
        relays = {
            name: stack.enter_context(filled_relay(directory / f"serve-{clients}-{name}", source, checkout))
            for name, checkout in ((_THIS, None), (_OTHER, other))
        }
        wanted = stream_size(login(relays[_THIS]), source.file)
        for turn in range(turns + 1):
            for name, relay in relays.items():
                before = cpu_s(relay.pid)
                result = drain(login(relay), source.file, wanted, clients)
                if turn:
                    seconds[name].append(result["seconds"])
                    cpu[name].append(cpu_s(relay.pid) - before)
    conditions = f"{clients} clients, {wanted / MB:.0f} MB each, {turns} turns each"
    return _compared(f"serve{clients}", conditions, wanted * clients, seconds, cpu)


def _compared(
    name: str, conditions: str, size: int, seconds: dict[str, list[float]], cpu: dict[str, list[float]]
) -> Report:
    report = Report(f"{name}, two builds", conditions)
    for build, times in seconds.items():
        report.add(f"{build}, throughput", size / median(times) / MB, "MB/s")
    report.add("throughput, this / other", median(seconds[_OTHER]) / median(seconds[_THIS]), aim=0.98, at_least=True)
    report.add("the same, least disturbed turn of each", min(seconds[_OTHER]) / min(seconds[_THIS]))
    report.add("CPU, other / this", median(cpu[_OTHER]) / median(cpu[_THIS]), aim=0.98, at_least=True)
    return report


def main() -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.two_builds", description=__doc__)
    parser.add_argument("other", type=Path, metavar="OTHER")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--clients", type=int, default=16, help="of the second run of serving")
    parser.add_argument("--kept", type=Path, metavar="DIR", help="keep the source's data there for the next run")
    parser.add_argument("--transactions", type=int, default=TRANSACTIONS)
    arguments = parser.parse_args()
    other = arguments.other.resolve()
    if not (other / ".venv/bin/python").exists():
        parser.error(f"{other} has no .venv/bin/python")
    with working_directory() as directory, bench_source(arguments.transactions, arguments.kept) as source:
        reports = (
            received(source, directory, other, arguments.turns),
            served(source, directory, other, arguments.turns, 1),
            served(source, directory, other, max(3, arguments.turns // 2), arguments.clients),
        )
        for report in reports:
            print(report.table(), report.json(), sep="\n", flush=True)


if __name__ == "__main__":
    main()
