"""Audits against stock mysqlbinlog: how fast each level of the Spark data source reads what `mysqlbinlog -vv` reads."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from deploy.servers.mariadb import MariaDB
from tests.bench.figures import MB, Report
from tests.bench.source_data import BenchSource

ROOT = Path(__file__).resolve().parents[2]
# What a level must be faster than mysqlbinlog -vv, with one task at a time.
AIMS = {"events, type and boundary": 5.0, "events, all columns": 5.0, "transactions": 10.0}


def run(source: BenchSource, directory: Path, *, size: int = 1 << 30, turns: int = 3) -> Report:
    """The source's first binlog, often enough for `size` bytes, through both; processor seconds of all processes."""
    files = directory / "audited"
    files.mkdir()
    copies = max(1, round(size / source.size))
    for number in range(1, copies + 1):
        shutil.copyfile(source.path, files / f"bin.{number:06}")
    total = source.size * copies
    wall, cpu = _mysqlbinlog(files)
    report = Report("audit", f"{total / MB:.0f} MB of small transactions in {copies} files, one Spark task at a time")
    report.add("mysqlbinlog -vv", total / MB / cpu, "MB/s", note="per processor second")
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        report.conditions += " (no Spark here)"
        return report
    for name, (best_wall, best_cpu) in _spark(files, turns).items():
        report.add(f"{name}: times faster, by processor", cpu / best_cpu, "", aim=AIMS.get(name), at_least=True)
        report.add(f"{name}: times faster, by the clock", wall / best_wall, "")
    shutil.rmtree(files)
    return report


def _mysqlbinlog(files: Path) -> tuple[float, float]:
    before, start = os.times(), time.monotonic()
    for path in sorted(files.iterdir()):
        subprocess.run(
            [*MariaDB.mysqlbinlog(), "--no-defaults", "-vv", str(path)], stdout=subprocess.DEVNULL, check=True
        )
    wall, after = time.monotonic() - start, os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return wall, max(used, 0.01)


def _spark(files: Path, turns: int) -> dict[str, list[float]]:
    """Least seconds by the clock and of processors of each query, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.audit_queries", str(files), str(turns)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    results: dict[str, list[float]] = json.loads(done.stdout.decode().splitlines()[-1])
    return results
