"""Spark on a cluster whose worker dies: `python -m tests.audit.cluster_run [--megabytes N]`.

A standalone master and two workers on loopback, the driver outside of them, an archive on a path that all see, and the same in an
S3 server. A batch query, a stream with its checkpoint, and an audit run undisturbed, and again while a worker is killed with its
executors; what they give must be the same, and the same as without Spark. Prints what it took with one and with two executors,
whose first query starts their Pythons, and how busy the machine was.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zlib
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from relay.audit.arrow import read
from tests.audit.cluster_driver import ROOT, cluster_session
from tests.audit.test_rows import recorded, shop_binlog
from tests.support.archive_filling import fill
from tests.support.free_port import free_port
from tests.support.s3_server import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server
from tests.support.spark_cluster import SparkCluster

_TRANSACTIONS: Final = 20_000
_SPLIT_BYTES: Final = str(2 << 20)
_BATCH_BYTES: Final = str(8 << 20)
_LONGEST_S: Final = 600.0
_STARTS: Final = 5
_PLACES: Final = ("path", "s3")
_PARTS: Final = ("alone", "query", "stream", "audit")
_COLUMNS: Final = ("file", "sequence", "row", "table", "operation", "before", "after", "finding")

Counts = dict[tuple[str, str], tuple[int, int, int]]
"""Table and operation -> rows, the sum of their CRC32, different places (sequence and row)."""


def make_archive(directory: Path, megabytes: int) -> int:
    """An archive of so much, as a relay leaves it; its bytes."""
    data = shop_binlog(_TRANSACTIONS).data
    files = max(2, round((megabytes << 20) / len(data)))
    asyncio.run(fill(directory, *((f"bin.{number:06}", data) for number in range(1, files + 1))))
    recorded(directory, "id", "name")
    return files * len(data)


def without_spark(archive: Path) -> Counts:
    """What a query must give, by the reader that has no Spark in it."""
    counted: dict[tuple[str, str], list[Any]] = {}
    for batch in read(archive, "rows", columns=_COLUMNS):
        table = pa.Table.from_batches([batch])
        for row in table.to_pylist():
            if row["finding"] is not None:
                raise SystemExit(f"the archive was to be whole: {row}")
            found = counted.setdefault((row["table"], row["operation"]), [0, 0, set()])
            found[0] += 1
            found[1] += zlib.crc32(
                f"{row['sequence']}|{row['row']}|{row['before'] or ''}|{row['after'] or ''}".encode()
            )
            found[2].add((row["sequence"], row["row"]))
    return {key: (rows, total, len(seen)) for key, (rows, total, seen) in counted.items()}


def counts(frame: DataFrame) -> Counts:
    """The same of a frame."""
    text = F.concat_ws("|", "sequence", "row", F.coalesce("before", F.lit("")), F.coalesce("after", F.lit("")))
    grouped = frame.groupBy("table", "operation").agg(
        F.count("*").alias("rows"),
        F.sum(F.crc32(text)).alias("sum"),
        F.countDistinct("sequence", "row").alias("different"),
    )
    return {(row["table"], row["operation"]): (row["rows"], row["sum"], row["different"]) for row in grouped.collect()}


def rows_of(spark: SparkSession, archive: str) -> DataFrame:
    """The rows of an archive, in tasks that are small enough for one of them to be lost."""
    reader = spark.read.format("binlog").option("level", "rows").option("splitBytes", _SPLIT_BYTES)
    return reader.option("columns", ",".join(_COLUMNS)).load(archive)


class Killing(threading.Thread):
    """Kills a worker as soon as `is_time`; looks 20 times a second. `killed`: whether it did."""

    def __init__(self, cluster: SparkCluster, is_time: Callable[[], bool]) -> None:
        super().__init__(name="killing", daemon=True)
        self._cluster, self._is_time = cluster, is_time
        self._over = threading.Event()
        self.killed = False

    def run(self) -> None:
        """Until it has killed, or the block is over."""
        while not self._over.wait(0.05):
            if self._is_time():
                self._cluster.workers[-1].kill()
                self.killed = True
                return

    def __enter__(self) -> "Killing":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        if self.killed:
            self._cluster.start_workers()


def tasks_done(spark: SparkSession) -> int:
    """How many tasks of running stages have ended."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)


def executors_there(spark: SparkSession, count: int) -> None:
    """Returns when so many have registered, the driver not counted."""
    deadline = time.monotonic() + _LONGEST_S
    while int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) <= count:  # type: ignore[union-attr]
        if time.monotonic() > deadline:
            raise SystemExit(f"{count} executors did not come")
        time.sleep(0.1)


def failed_tasks(events: Path) -> int:
    """Tasks of all applications that did not end well, by the event logs: who kills a worker makes some."""
    failed = 0
    for path in sorted(events.rglob("*")):
        for line in path.read_text().splitlines() if path.is_file() else ():
            event = json.loads(line) if '"SparkListenerTaskEnd"' in line else {}
            failed += event.get("Task End Reason", {}).get("Reason", "Success") != "Success"
    return failed


class ClusterRun:
    """All of it. `figures`: lines for people. `faults`: what was not as it must be."""

    def __init__(self, work: Path, size: int, seed: int, expected: Counts) -> None:
        self.work, self.size, self.expected = work, size, expected
        self.random = random.Random(seed)
        self.figures: list[str] = []
        self.faults: list[str] = []

    def told(self, text: str) -> None:
        """A figure."""
        self.figures.append(text)
        print(f"{text} (load {os.getloadavg()[0]:.0f})", flush=True)

    def check(self, name: str, found: object, expected: object) -> None:
        """Notes where they differ."""
        if found != expected:
            self.faults.append(f"{name}: {found} in place of {expected}")
            print(f"WRONG {self.faults[-1]}", flush=True)

    def reads(self, cluster: SparkCluster, name: str, archive: str, parts: Collection[str]) -> None:
        """A batch query and a stream with two executors, undisturbed, and with one of them killed."""
        with cluster_session(cluster, self.work, spark_speculation="true") as spark:
            executors_there(spark, 2)
            failed = failed_tasks(self.work / "events")
            if "query" in parts:
                self._query(spark, f"{name}: query of all rows, 2 executors, their first", archive)
                self._query(spark, f"{name}: query of all rows, 2 executors", archive)
                least = self.random.randint(1, max(1, self.size // int(_SPLIT_BYTES) // 3))
                with Killing(cluster, lambda: tasks_done(spark) >= least) as killing:
                    self._query(spark, f"{name}: the same, a worker killed after {least} tasks", archive)
                self.check(f"{name}: a worker was killed", killing.killed, True)
            if "stream" in parts:
                executors_there(spark, 2)
                self._stream(spark, cluster, name, archive)
        self.told(f"{name}: {failed_tasks(self.work / 'events') - failed} tasks were lost and done again")

    def alone(self, cluster: SparkCluster, name: str, archive: str) -> None:
        """The query with one executor."""
        with cluster_session(cluster, self.work, executors=1) as spark:
            executors_there(spark, 1)
            self._query(spark, f"{name}: query of all rows, 1 executor, its first", archive)
            self._query(spark, f"{name}: query of all rows, 1 executor", archive)

    def _query(self, spark: SparkSession, name: str, archive: str) -> None:
        begun = time.monotonic()
        self.check(name, counts(rows_of(spark, archive)), self.expected)
        took = time.monotonic() - begun
        rows = sum(counted[0] for counted in self.expected.values())
        self.told(f"{name}: {took:.1f} s, {self.size / took / 1e6:.1f} MB/s, {rows / took:,.0f} rows/s")

    def _stream(self, spark: SparkSession, cluster: SparkCluster, name: str, archive: str) -> None:
        """A stream into Parquet whose worker is killed, whose query is stopped, and which goes on from its checkpoint."""
        out = self.work / f"stream-{name}"

        def start() -> Any:
            stream = spark.readStream.format("binlog").option("level", "rows").option("splitBytes", _SPLIT_BYTES)
            frame = (
                stream.option("maxBytesPerTrigger", _BATCH_BYTES).option("columns", ",".join(_COLUMNS)).load(archive)
            )
            writer = frame.writeStream.format("parquet").option("path", str(out / "rows"))
            return writer.option("checkpointLocation", str(out / "checkpoint")).trigger(availableNow=True).start()

        begun = time.monotonic()
        query = start()
        # one batch is over, and tasks of a later one run
        with Killing(cluster, lambda: bool(query.recentProgress) and tasks_done(spark) >= 1) as killing:
            while query.isActive and not (killing.killed and len(query.recentProgress) >= 3):
                time.sleep(0.05)
            batches = len(query.recentProgress)
            query.stop()
        for starts in range(1, _STARTS + 1):
            again = start()
            try:
                self.check(f"{name} stream: it came to its end", again.awaitTermination(_LONGEST_S), True)
            except StreamingQueryException as error:  # a busy machine: Spark waits 10 s for a Python that starts
                print(f"the stream stopped: {str(error).splitlines()[0]}", flush=True)
                if starts == _STARTS:
                    raise
            batches += len(again.recentProgress)
            if again.exception() is None:
                break
        took = time.monotonic() - begun
        self.check(f"{name} stream: a worker was killed", killing.killed, True)
        self.check(f"{name} stream", counts(spark.read.parquet(str(out / "rows"))), self.expected)
        self.told(
            f"{name}: stream of all rows in {batches} batches, a worker killed, the query stopped, {starts} starts more: {took:.1f} s, "
            "each row once"
        )

    def audit(self, cluster: SparkCluster, name: str, archive: str, audit: str) -> None:
        """An audit by deploy/spark/submit: undisturbed, and with a worker that is killed."""
        found = []
        for turn in ("whole", "killed"):
            out = self.work / f"audit-{name}-{turn}"
            page = free_port()
            environment = {
                **os.environ,
                "MASTER": cluster.master,
                "PYSPARK_PYTHON": str(cluster.python),
                "SPARK_OPTIONS": "--conf spark.cores.max=2 --conf spark.executor.cores=1 --conf spark.executor.memory=512m "
                f"--conf spark.driver.host=127.0.0.1 --conf spark.ui.port={page} --driver-memory 1g",
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            }
            environment.pop("PYTHONPATH", None)
            command = [
                ROOT / "deploy" / "spark" / "submit",
                ROOT / "relay" / "spark_submit.py",
                audit,
                archive,
                "--out",
                out,
            ]
            begun = time.monotonic()
            process = subprocess.Popen(
                [str(part) for part in command],
                env=environment,
                cwd=self.work,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            killing = Killing(cluster, lambda page=page: _page_tasks(page) >= 2)  # type: ignore[misc]
            with killing if turn == "killed" else ExitStack():
                _said, errors = process.communicate(timeout=_LONGEST_S)
            if process.returncode not in (0, 1):
                self.faults.append(
                    f"{audit} of {name}, {turn}: ended with {process.returncode}: {errors.decode()[-2000:]}"
                )
                return
            if turn == "killed":
                self.check(f"{audit} of {name}: a worker was killed", killing.killed, True)
            self.told(f"{name}: audit {audit} by spark-submit, {turn}: {time.monotonic() - begun:.1f} s")
            found.append(_audit_content(out))
        self.check(f"{audit} of {name}, a worker killed", found[1], found[0])


def _page_tasks(port: int) -> int:
    """Tasks that have ended, as an application's own page tells; -1: it is not there."""
    base = f"http://127.0.0.1:{port}/api/v1/applications"
    try:
        with urllib.request.urlopen(base, timeout=5) as answer:
            (application,) = json.loads(answer.read())
        with urllib.request.urlopen(f"{base}/{application['id']}/executors", timeout=5) as answer:
            return sum(int(executor["completedTasks"]) for executor in json.loads(answer.read()))
    except (OSError, ValueError):
        return -1


def _audit_content(out: Path) -> dict[str, Any]:
    """What an audit says, without the time that it took and where it lies."""
    told = json.loads((out / "audit.json").read_text())
    told["read"].pop("took", None)
    told.pop("report")
    tables = {path.name: sorted(map(str, pq.read_table(path).to_pylist())) for path in sorted(out.glob("*.parquet"))}
    return {**told, "tables": tables}


def main() -> int:
    """The exit code: 1 where something was not as it must be."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=128)
    options.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options.add_argument("--audit", default="transactions")
    options.add_argument("--where", nargs="+", choices=_PLACES, default=_PLACES)
    options.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="cluster-") as directory:
        work = Path(directory)
        archive = work / "archive"
        size = make_archive(archive, chosen.megabytes)
        begun = time.monotonic()
        run = ClusterRun(work, size, chosen.seed, without_spark(archive))
        run.told(f"seed {chosen.seed}; {size / 1e6:.0f} MB in {len(list(archive.glob('bin.*[0-9]')))} files")
        run.told(f"without Spark: {time.monotonic() - begun:.1f} s")
        with ExitStack() as stack:
            cluster = SparkCluster(work / "cluster")
            if "s3" in chosen.where:
                storage = stack.enter_context(S3Server(work / "s3"))
                shutil.copytree(archive, storage.bucket_directory / "archive")
                login = {
                    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
                    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
                    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{storage.port}",
                    "AWS_DEFAULT_REGION": "us-east-1",
                    "AWS_ALLOW_HTTP": "true",
                }
                # Each machine has its own: no job, and no page of Spark's, ever sees the secret.
                cluster.environment |= login
                os.environ |= login
            stack.enter_context(cluster)
            for name, path in (("path", str(archive)), ("s3", f"s3://{BUCKET}/archive")):
                if name not in chosen.where:
                    continue
                if "alone" in chosen.parts:
                    run.alone(cluster, name, path)
                if {"query", "stream"}.intersection(chosen.parts):
                    run.reads(cluster, name, path, chosen.parts)
                if "audit" in chosen.parts:
                    run.audit(cluster, name, path, chosen.audit)
        secrets = [path for path in (work / "events").rglob("*") if path.is_file() and SECRET_KEY in path.read_text()]
        run.check("event logs with the secret in them", secrets, [])
    for fault in run.faults:
        print(f"FAULT {fault}")
    print("all equal" if not run.faults else f"{len(run.faults)} faults")
    return 1 if run.faults else 0


if __name__ == "__main__":
    sys.exit(main())
