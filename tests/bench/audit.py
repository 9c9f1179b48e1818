"""Audits against stock mysqlbinlog: how fast each level of the Spark data source reads what `mysqlbinlog -vv` reads."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from deploy.servers.mariadb import MariaDB
from tests.bench.figures import MB, Report
from tests.bench.source_data import BenchSource

ROOT = Path(__file__).resolve().parents[2]
# What a level must be faster than mysqlbinlog -vv, with one task at a time.
AIMS = {
    "events, type and boundary": 5.0,
    "events, all columns": 5.0,
    "transactions": 10.0,
    "rows, images and statement": 3.0,
    "rows, all columns": 3.0,
}
# Times as many rows per processor second as python-mysql-replication. It reads so slowly that it is given some rows only.
PYTHON_AIM = 50.0
_PYTHON_ROWS = 20_000
# Times faster than mysqlbinlog -vv with many small files, by processor, with nothing warm and again.
SMALL_AIM = 3.0
SMALL_QUERIES = ("events, all columns", "transactions", "rows, all columns")
_SMALL_FILES = 100
_SMALL_SHARE = 10
# A worker may have so much more with a split of the whole file than with one of 16 MiB.
WORKER_AIM_MB = 64.0


def run(
    source: BenchSource,
    directory: Path,
    *,
    size: int = 1 << 30,
    turns: int = 3,
    small_queries: Sequence[str] = SMALL_QUERIES,
) -> Report:
    """The source's first binlog, often enough for `size` bytes, through both; processor seconds of all processes.

    Then a tenth as much in many files, through the reader alone and those queries.
    """
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
    measured = _spark(files, turns)
    alone = _reader(files, turns)
    small, large = (
        measured.pop(name) for name in ("worker memory, splits of 16 MiB", "worker memory, one split a file")
    )
    for name, (best_wall, best_cpu, _first) in measured.items():
        report.add(f"{name}: times faster, by processor", cpu / best_cpu, "", aim=AIMS.get(name), at_least=True)
        report.add(f"{name}: times faster, by the clock", wall / best_wall, "")
    for level, seconds in alone.items():
        report.add(f"{level}, the reader without Spark: times faster", cpu / seconds, "")
    rows = source.transactions * copies
    per_second = rows / measured["rows, all columns"][1]
    report.add("rows, all columns", per_second, "rows/s", note="per processor second")
    python = _python_replication(source)
    if python is None:
        report.conditions += " (no mysql-replication here: pip install mysql-replication)"
    else:
        report.add("python-mysql-replication", python, "rows/s", note="per processor second")
        report.add("rows: times python-mysql-replication", per_second / python, "", aim=PYTHON_AIM, at_least=True)
        report.add("the same, the reader without Spark", rows / alone["rows"] / python, "")
    report.add("a worker's memory, splits of 16 MiB", small[0], "MB", note="the most that was resident")
    report.add("the same, one split a file, more by", large[0] - small[0], "MB", aim=WORKER_AIM_MB)
    shutil.rmtree(files)
    transactions = max(1, round(size / _SMALL_SHARE / source.size * source.transactions) // _SMALL_FILES)
    _small_files(report, source, directory / "small", (transactions, turns), small_queries)
    return report


def _small_files(
    report: Report, source: BenchSource, files: Path, amounts: tuple[int, int], queries: Sequence[str]
) -> None:
    """Many files of so many transactions each: so often in a session that has run nothing before."""
    transactions, turns = amounts
    files.mkdir()
    source.write_files(_SMALL_FILES, transactions, files)
    total = sum(path.stat().st_size for path in files.iterdir())
    _wall, cpu = _mysqlbinlog(files)
    report.add("small files", total / MB, "MB", note=f"{_SMALL_FILES} of them")
    for name in queries:
        (_best_wall, best, first) = _spark(files, turns, name)[name]
        report.add(f"{name}, small files, first query of a session", cpu / first, "", aim=SMALL_AIM, at_least=True)
        report.add(f"{name}, small files, later ones", cpu / best, "", aim=SMALL_AIM, at_least=True)
    for level, seconds in _reader(files, turns).items():
        report.add(f"{level}, small files, the reader without Spark", cpu / seconds, "")
    shutil.rmtree(files)


def _python_replication(source: BenchSource) -> float | None:
    """Rows a processor second of python-mysql-replication; None where it is not installed."""
    if importlib.util.find_spec("pymysqlreplication") is None:
        return None
    login = source.login
    source.server.execute_many([f"GRANT SELECT ON *.* TO '{login.user}'@'%'"])
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.python_replication"],
        cwd=ROOT,
        input=json.dumps([login.port, login.user, login.password, source.file, min(_PYTHON_ROWS, source.transactions)]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rows, cpu = json.loads(done.stdout.splitlines()[-1])
    return float(rows / max(cpu, 0.001))


def _mysqlbinlog(files: Path) -> tuple[float, float]:
    before, start = os.times(), time.monotonic()
    for path in sorted(files.iterdir()):
        subprocess.run(
            [*MariaDB.mysqlbinlog(), "--no-defaults", "-vv", str(path)], stdout=subprocess.DEVNULL, check=True
        )
    wall, after = time.monotonic() - start, os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return wall, max(used, 0.01)


def _reader(files: Path, turns: int) -> dict[str, float]:
    """Least processor seconds of each level, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.audit_reader", str(files), str(turns)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    results: dict[str, float] = json.loads(done.stdout)
    return results


def _spark(files: Path, turns: int, *queries: str) -> dict[str, list[float]]:
    """Of each query the least seconds by the clock and of processors, and those of the first run, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.audit_queries", str(files), str(turns), *queries],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    results: dict[str, list[float]] = json.loads(done.stdout.decode().splitlines()[-1])
    return results
