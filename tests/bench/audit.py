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
# Times faster than mysqlbinlog -vv, by processor, while a session is young: the less of its first two queries.
YOUNG_AIM = 3.0
YOUNG_QUERIES = ("events, all columns", "transactions", "rows, all columns")
# What they read, as a part of what the others do: 102 MB in one file, 145 MB in many.
_ONE_SHARE = 0.095
_SMALL_SHARE = 0.135
_SMALL_FILES = 100
# A worker may have so much more with a split of the whole file than with one of 16 MiB.
WORKER_AIM_MB = 64.0


def run(
    source: BenchSource,
    directory: Path,
    *,
    size: int = 1 << 30,
    turns: int = 3,
    young_queries: Sequence[str] = YOUNG_QUERIES,
) -> Report:
    """The source's first binlog, often enough for `size` bytes, through both; processor seconds of all processes.

    Then those queries, each in a session that has run nothing before: of one file, and of many small ones.
    """
    files = directory / "audited"
    files.mkdir()
    copies = max(1, round(size / source.size))
    for number in range(1, copies + 1):
        shutil.copyfile(source.path, files / f"bin.{number:06}")
    total = source.size * copies
    wall, cpu = map(min, zip(*(_mysqlbinlog(files) for _ in range(turns)), strict=True))
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
    for name, (best_wall, best_cpu, _first, _of_two) in measured.items():
        report.add(f"{name}: times faster, by processor", cpu / best_cpu, "", aim=AIMS.get(name), at_least=True)
        report.add(f"{name}: times faster, by the clock", wall / best_wall, "")
    for level, seconds in alone.items():
        report.add(f"{level}, the reader without Spark: times faster", cpu / seconds, "")
    rows = source.transactions * copies
    per_second = rows / measured["rows, all columns"][1]
    report.add("rows, all columns", per_second, "rows/s", note="per processor second")
    python = _python_replication(source, turns)
    if python is None:
        report.conditions += " (no mysql-replication here: pip install mysql-replication)"
    else:
        report.add("python-mysql-replication", python, "rows/s", note="per processor second")
        report.add("rows: times python-mysql-replication", per_second / python, "", aim=PYTHON_AIM, at_least=True)
        report.add("the same, the reader without Spark", rows / alone["rows"] / python, "")
    report.add("a worker's memory, splits of 16 MiB", small[0], "MB", note="the most that was resident")
    report.add("the same, one split a file, more by", large[0] - small[0], "MB", aim=WORKER_AIM_MB)
    shutil.rmtree(files)
    for count, share in ((1, _ONE_SHARE), (_SMALL_FILES, _SMALL_SHARE)):
        transactions = max(1, round(size * share / source.size * source.transactions) // count)
        young = directory / f"young-{count}"
        young.mkdir()
        source.write_files(count, transactions, young)
        _young_sessions(report, young, turns, young_queries)
        shutil.rmtree(young)
    return report


def _young_sessions(report: Report, files: Path, turns: int, queries: Sequence[str]) -> None:
    """The first queries of sessions that have run nothing before, each asking for the same again."""
    count, total = len(list(files.iterdir())), sum(path.stat().st_size for path in files.iterdir())
    what = f"{total / MB:.0f} MB in {count} file{'s' if count > 1 else ''}"
    cpu = min(_mysqlbinlog(files)[1] for _ in range(turns))
    report.add(f"mysqlbinlog -vv, {what}", total / MB / cpu, "MB/s", note="per processor second")
    for name in queries:
        (_wall, best, first, of_two) = _spark(files, max(turns, 2), name)[name]
        report.add(f"{name}, {what}, a session's very first query", cpu / first)
        report.add(f"{name}, {what}, the less of its first two", cpu / of_two, aim=YOUNG_AIM, at_least=True)
        report.add(f"{name}, {what}, the least of {max(turns, 2)}", cpu / best)
    for level, seconds in _reader(files, turns).items():
        report.add(f"{level}, {what}, the reader without Spark", cpu / seconds)


def _python_replication(source: BenchSource, turns: int) -> float | None:
    """Rows a processor second of python-mysql-replication, the most of some runs; None where it is not installed."""
    if importlib.util.find_spec("pymysqlreplication") is None:
        return None
    login = source.login
    source.server.execute_many([f"GRANT SELECT ON *.* TO '{login.user}'@'%'"])
    wanted = json.dumps([login.port, login.user, login.password, source.file, min(_PYTHON_ROWS, source.transactions)])
    found = []
    for _ in range(turns):
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.python_replication"],
            cwd=ROOT,
            input=wanted,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        rows, cpu = json.loads(done.stdout.splitlines()[-1])
        found.append(rows / max(cpu, 0.001))
    return float(max(found))


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
    """Of each query, from a process of its own: the least seconds by the clock; those of processors: least, of the first run,
    and the less of the first two."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.audit_queries", str(files), str(turns), *queries],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    results: dict[str, list[float]] = json.loads(done.stdout.decode().splitlines()[-1])
    return results
