"""`python -m tests.bench [NAME...] [--quick]`: runs benchmarks and prints what they measured beside what was aimed at."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.bench import (
    audit,
    collecting,
    dependencies,
    generations,
    gtid_requests,
    gtid_serve,
    latency,
    live,
    many_files,
    mariadb_views,
    memory,
    packing,
    packing_loss,
    position,
    receive,
    serve,
    stamping,
    start_up,
    tiers,
    view_check,
    views,
)
from tests.bench.figures import Report
from tests.bench.source_data import TRANSACTIONS, BenchSource, bench_source, working_directory

QUICK_TRANSACTIONS = 3_000
# It leaves a gigabyte in its source's binlogs, so it gets a source of its own.
MEMORY = "memory"
_MEMORY_TRANSACTIONS = 50_000

# name: (benchmark with the source's data, the same with little data)
WITH_SOURCE: dict[str, Callable[[BenchSource, Path, bool], Report]] = {
    "receive": lambda source, directory, quick: receive.run(source, directory, turns=1 if quick else 7),
    "serve": lambda source, directory, quick: serve.run(source, directory, turns=1 if quick else 9),
    "serve16": lambda source, directory, quick: serve.run(
        source, directory, clients=3 if quick else 16, turns=1 if quick else 5
    ),
    "live100": lambda source, directory, quick: live.run(
        source, directory, clients=4 if quick else 100, duration_s=1.0 if quick else 10.0
    ),
    "latency": lambda source, directory, quick: latency.run(
        source, directory, commits=60 if quick else 2000, turns=1 if quick else 5
    ),
    "stamping": lambda source, directory, quick: stamping.run(source, directory, turns=1 if quick else 31),
    "collecting": lambda source, directory, quick: collecting.run(source, directory, turns=1 if quick else 11),
    "audit": lambda source, directory, quick: audit.run(
        source,
        directory,
        size=1 if quick else 1 << 30,
        turns=1 if quick else 3,
        young_queries=() if quick else audit.YOUNG_QUERIES,
    ),
    "tiers": lambda source, directory, quick: tiers.run(
        source, directory, turns=1 if quick else 5, files=30 if quick else 10_000
    ),
    "packing-loss": lambda source, directory, quick: packing_loss.run(
        source, directory, turns=1 if quick else 15, drains=1 if quick else 8
    ),
    MEMORY: lambda source, directory, quick: memory.run(source, directory, transaction_mib=4 if quick else 1024),
}
ALONE: dict[str, Callable[[Path, bool], Report]] = {
    "position": lambda directory, quick: position.run(directory, sizes_mib=(1, 2) if quick else (64, 256, 1024)),
    "start": lambda directory, quick: start_up.run(directory, files=30 if quick else 10_000, turns=1 if quick else 5),
    "many-files": lambda directory, quick: many_files.run(
        directory, files=30 if quick else 30_000, archived=40 if quick else 100_000, turns=1 if quick else 3
    ),
    "generations": lambda directory, quick: generations.run(
        directory, generations=3 if quick else 50, turns=1 if quick else 5
    ),
    "gtid": lambda directory, quick: gtid_requests.run(
        directory, files=30 if quick else 10_000, turns=1 if quick else 15, uuids=20 if quick else 1000
    ),
    "packing": packing.run,
    "views": views.run,
    "views-mariadb": mariadb_views.run,
    "view-check": view_check.run,
    "dependencies": dependencies.run,
    "gtid-serve": lambda directory, quick: gtid_serve.run(
        directory, size=(1 if quick else 256) << 20, turns=1 if quick else 31
    ),
}


def _plain(benchmark: Callable[[BenchSource, Path, bool], Report], directory: Path, quick: bool) -> Report:
    """A benchmark with a source that writes no checksums."""
    with bench_source(QUICK_TRANSACTIONS if quick else TRANSACTIONS, None, checksum="NONE") as source:
        report = benchmark(source, directory, quick)
    return replace(report, benchmark=f"{report.benchmark}-plain")


for _name in ("receive", "serve"):
    ALONE[f"{_name}-plain"] = partial(_plain, WITH_SOURCE[_name])
NAMES = (*WITH_SOURCE, *ALONE)


def run(names: Sequence[str], *, quick: bool, kept: Path | None, transactions: int) -> list[Report]:
    """Runs these benchmarks, printing each report as it comes."""
    reports = []
    with working_directory() as directory:
        for name in (name for name in ALONE if name in names):
            reports.append(_show(ALONE[name](directory, quick)))
        shared = [name for name in WITH_SOURCE if name in names and name != MEMORY]
        if shared:
            with bench_source(transactions, kept) as source:
                for name in shared:
                    reports.append(_show(WITH_SOURCE[name](source, directory, quick)))
        if MEMORY in names:
            with bench_source(min(transactions, _MEMORY_TRANSACTIONS), None) as source:
                reports.append(_show(WITH_SOURCE[MEMORY](source, directory, quick)))
    return reports


def _show(report: Report) -> Report:
    print(report.table(), report.json(), sep="\n", flush=True)
    return report


def main() -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of: {', '.join(NAMES)}, all")
    parser.add_argument("--quick", action="store_true", help="little data: shows that it runs, measures nothing")
    parser.add_argument("--kept", type=Path, metavar="DIR", help="keep the source's data there for the next run")
    arguments = parser.parse_args()
    names = list(NAMES) if not arguments.names or "all" in arguments.names else arguments.names
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    transactions = QUICK_TRANSACTIONS if arguments.quick else TRANSACTIONS
    run(names, quick=arguments.quick, kept=arguments.kept, transactions=transactions)
    sys.exit(0)


if __name__ == "__main__":
    main()
