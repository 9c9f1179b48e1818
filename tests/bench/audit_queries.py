"""`python -m tests.bench.audit_queries DIRECTORY TURNS [QUERY …]`: the audit benchmark's queries; prints seconds and MB as JSON."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def descendants_cpu_s() -> float:
    """Processor seconds of the JVM and of Spark's Python workers, ended ones included."""
    children: dict[int, list[tuple[int, float]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            used = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            children.setdefault(int(fields[1]), []).append((int(entry.name), used))

    def below(pid: int) -> float:
        return sum(used + below(child) for child, used in children.get(pid, []))

    return below(os.getpid())


def workers_peak_mb() -> float:
    """The most memory that one of Spark's Python workers has had resident, in MB."""
    peaks = [0.0]
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if b"pyspark" in (entry / "cmdline").read_bytes() and b"java" not in (entry / "cmdline").read_bytes():
                    status = (entry / "status").read_text()
                    peaks.append(int(status.partition("VmHWM:")[2].split()[0]) / 1000)
            except (OSError, IndexError):
                continue
    return max(peaks)


def main() -> None:
    """Runs each query `turns` times; prints the least seconds by the clock, and those of processors: least, of the first run,
    and the less of the first two."""
    from relay.spark.spark_session import local_session

    path, turns, kept = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    spark = local_session(1)

    def read(level: str, **options: str) -> Any:
        return spark.read.format("binlog").option("level", level).options(**options).load(path)

    def away(frame: Any) -> None:
        frame.write.format("noop").mode("overwrite").save()

    queries: dict[str, Callable[[], Any]] = {
        "events, all columns": lambda: away(read("events")),
        "events, type and boundary": lambda: (
            read("events", columns="type,boundary").groupBy("type", "boundary").count().collect()
        ),
        "events of one table": lambda: read("events", pushdown="true").where("table = 'none of these'").count(),
        "transactions": lambda: away(read("transactions")),
        "rows, all columns": lambda: away(read("rows")),
        "rows, images and statement": lambda: away(read("rows", columns="operation,table,before,after,statement")),
        "rows of one table": lambda: read("rows", pushdown="true").where("table = 'none of these'").count(),
        "findings": lambda: read("findings").count(),
    }
    results: dict[str, list[float]] = {}
    for name, size in (("splits of 16 MiB", 16 << 20), ("one split a file", 1 << 40)) if not kept else ():
        away(read("rows", splitBytes=str(size)))
        results[f"worker memory, {name}"] = [workers_peak_mb()]
    for name, query in queries.items() if not kept else [(name, queries[name]) for name in kept]:
        walls, used = [], []
        for _ in range(turns):
            before, start = descendants_cpu_s(), time.monotonic()
            query()
            walls.append(time.monotonic() - start)
            used.append(descendants_cpu_s() - before)
        results[name] = [min(walls), *(max(least, 0.01) for least in (min(used), used[0], min(used[:2])))]
    print(json.dumps(results))


if __name__ == "__main__":
    main()
