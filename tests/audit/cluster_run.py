"""Spark on a cluster whose worker dies: `python -m tests.audit.cluster_run [--megabytes N]`.

A standalone master and two workers on loopback, the driver outside of them, an archive on a path that all see, and the same in an
S3 server. A batch query, a stream with its checkpoint, an audit and the feed run undisturbed, and again while a worker is killed with
its executors; what they give must be the same, and the same as without Spark. Prints what it took with one and with two executors,
whose first query starts their Pythons, and how busy the machine was.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from relay.binlog_tables.arrow import read
from relay.feed.feed_config import load_feed_config
from relay.feed.feed_run import open_connection, open_lake
from tests.audit.cluster_archive import ClusterArchive, make_archive
from tests.audit.cluster_driver import cluster_session
from tests.audit.cluster_killing import Killing, failed_tasks, runs_on, tasks_done
from tests.audit.spark_environment import ROOT
from tests.support.free_port import free_port
from tests.support.s3_server import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server
from tests.support.spark_cluster import SparkCluster

_SPLIT_BYTES: Final = str(2 << 20)
_BATCH_BYTES: Final = str(8 << 20)
_FEED_BATCH_MB: Final = 4
_LONGEST_S: Final = 1200.0
"""Of one job. A busy machine takes ten times as long as a quiet one."""
_STARTS: Final = 5
_PLACES: Final = ("path", "s3")
_PARTS: Final = ("alone", "query", "stream", "audit", "feed")
_COLUMNS: Final = ("file", "sequence", "row", "table", "operation", "before", "after", "finding")
_TURNS: Final = {
    "one": ("1 executor", 1, False),
    "two": ("2 executors", 2, False),
    "killed": ("2 executors, a worker killed", 2, True),
}
"""How what is submitted runs: told as, executors, and whether one of them is lost."""

_CHANGED: Final = ("rows_inserted", "rows_updated", "rows_deleted")
Counts = dict[tuple[str, str], tuple[int, int, int]]
"""Table and operation -> rows, the sum of their CRC32, different places (sequence and row)."""


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


def transactions_without_spark(archive: Path) -> dict[str, int]:
    """Sums of level transactions, by the names that the audit of it has."""
    with read(archive, "transactions", columns=("bytes", *_CHANGED)) as reader:
        found = reader.read_all()
    sums = {name: pc.sum(found.column(name)).as_py() for name in found.column_names}
    return {"transactions": found.num_rows, **sums}


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


def executors_there(spark: SparkSession, count: int) -> None:
    """Returns when so many have registered, the driver not counted."""
    deadline = time.monotonic() + _LONGEST_S
    while int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) <= count:  # type: ignore[union-attr]
        if time.monotonic() > deadline:
            raise SystemExit(f"{count} executors did not come")
        time.sleep(0.1)


class ClusterRun:
    """All of it. `faults`: what was not as it must be."""

    def __init__(self, work: Path, archive: ClusterArchive, seed: int, turns: Collection[str]) -> None:
        self.work, self.archive, self.size, self.turns = work, archive, archive.size, turns
        self.events = work / "events"
        self.events.mkdir()
        self.random = random.Random(seed)
        self.faults: list[str] = []
        self.expected: Counts = {}
        self.transactions: dict[str, int] = {}
        self.fed: dict[str, Any] = {}
        self.figures: dict[str, dict[str, float]] = {}
        """What ran -> turn -> seconds."""

    def figure(self, name: str, turn: str, took: float) -> None:
        """Keeps it for the table."""
        self.figures.setdefault(name, {})[turn] = took

    def table(self) -> str:
        """Seconds of all that ran, as Markdown."""
        lines = [
            "| seconds | " + " | ".join(told for told, _, _ in _TURNS.values()) + " |",
            "|---" * (len(_TURNS) + 1) + "|",
        ]
        for name, by_turn in self.figures.items():
            cells = [f"{by_turn[turn]:.1f}" if turn in by_turn else "" for turn in _TURNS]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        return "\n".join(lines)

    def told(self, text: str) -> None:
        """A figure."""
        print(f"{text} (load {os.getloadavg()[0]:.0f})", flush=True)

    def check(self, name: str, found: object, expected: object) -> None:
        """Notes where they differ."""
        if found != expected:
            self.fault(f"{name}: {str(found)[:2000]} in place of {str(expected)[:2000]}")

    def fault(self, text: str) -> None:
        """Notes it."""
        self.faults.append(text)
        print(f"WRONG {text}", flush=True)

    def alone_here(self, parts: Collection[str]) -> None:
        """What there is to be, made without Spark."""
        begun = time.monotonic()
        self.expected = without_spark(self.archive.directory)
        self.transactions = transactions_without_spark(self.archive.directory)
        self.told(f"without Spark: counted in {time.monotonic() - begun:.1f} s")
        if "feed" in parts:
            config = self._feed_settings("alone", str(self.archive.directory))
            begun = time.monotonic()
            command = [sys.executable, "-m", "relay", "feed", "--config", str(config), "--once"]
            subprocess.run(command, check=True, capture_output=True, cwd=ROOT, timeout=_LONGEST_S)
            self.told(f"without Spark: fed in {time.monotonic() - begun:.1f} s")
            self.fed = fed_tables(config)
            current = {row["id"]: row["name"] for row in self.fed["current"]}
            self.check("the feed without Spark", current, self.archive.orders)

    # ---- a session of this process ----

    def reads(self, cluster: SparkCluster, name: str, archive: str, parts: Collection[str]) -> None:
        """A batch query and a stream with two executors, undisturbed, and with one of them killed."""
        failed = failed_tasks(self.events)
        with cluster_session(cluster, self.work, spark_speculation="true") as spark:
            executors_there(spark, 2)
            if "query" in parts:
                self._query(spark, f"{name}: query of all rows, 2 executors, their first", archive)
                took = self._query(spark, f"{name}: query of all rows, 2 executors", archive)
                self.figure(f"{name}: query of all rows", "two", took)
                least = self.random.randint(1, max(1, self.size // int(_SPLIT_BYTES) // 3))
                with Killing(cluster, lambda: tasks_done(spark) >= least) as killing:
                    took = self._query(spark, f"{name}: the same, a worker killed after {least} tasks", archive)
                self.figure(f"{name}: query of all rows", "killed", took)
                self.check(f"{name}: a worker was killed", killing.killed, True)
            if "stream" in parts:
                executors_there(spark, 2)
                self._stream(spark, cluster, name, archive)
        self.told(f"{name}: {failed_tasks(self.events) - failed} tasks were lost and done again")

    def alone(self, cluster: SparkCluster, name: str, archive: str) -> None:
        """The query with one executor."""
        with cluster_session(cluster, self.work, executors=1) as spark:
            executors_there(spark, 1)
            self._query(spark, f"{name}: query of all rows, 1 executor, its first", archive)
            took = self._query(spark, f"{name}: query of all rows, 1 executor", archive)
            self.figure(f"{name}: query of all rows", "one", took)

    def _query(self, spark: SparkSession, name: str, archive: str) -> float:
        begun = time.monotonic()
        self.check(name, counts(rows_of(spark, archive)), self.expected)
        took = time.monotonic() - begun
        rows = sum(counted[0] for counted in self.expected.values())
        self.told(f"{name}: {took:.1f} s, {self.size / took / 1e6:.1f} MB/s, {rows / took:,.0f} rows/s")
        return took

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
        self.figure(f"{name}: stream of all rows, stopped and started again", "killed", took)
        self.check(f"{name} stream: a worker was killed", killing.killed, True)
        self.check(f"{name} stream", counts(spark.read.parquet(str(out / "rows"))), self.expected)
        self.told(
            f"{name}: stream of all rows in {batches} batches, a worker killed, the query stopped, {starts} starts more: {took:.1f} s, "
            "each row once"
        )

    # ---- submitted ----

    def audit(self, cluster: SparkCluster, name: str, archive: str, audit: str) -> None:
        """An audit by deploy/spark/submit: it says the same each time, and counts what the reader without Spark counts."""
        first: dict[str, Any] = {}
        for turn in self.turns:
            out = self.work / f"audit-{name}-{turn}"
            job = [ROOT / "relay" / "spark_submit.py", audit, archive, "--out", out]
            if not self._submitted(cluster, f"{name}: audit {audit}", job, turn):
                return
            found = audit_content(out)
            first = first or found
            self.check(f"{name}: audit {audit}, {_TURNS[turn][0]}", found, first)
        if audit == "transactions":
            figures = {key: first["figures"][key] for key in self.transactions}
            self.check(f"{name}: audit {audit} and the reader without Spark", figures, self.transactions)

    def feed(self, cluster: SparkCluster, name: str, archive: str) -> None:
        """The feed by deploy/spark/submit: the same tables as without Spark."""
        for turn in self.turns:
            config = self._feed_settings(f"{name}-{turn}", archive)
            checkpoint = self.work / f"checkpoint-{name}-{turn}"
            job = [ROOT / "deploy" / "spark" / "feed_tables.py", config, checkpoint, "--once"]
            if not self._submitted(cluster, f"{name}: feed", job, turn):
                return
            found = fed_tables(config)
            for kind, rows in self.fed.items():
                if found[kind] != rows:
                    sizes = f"{len(found[kind])} rows, {len(rows)}"
                    self.fault(f"{name}: feed, {_TURNS[turn][0]}: {kind} is not that of without Spark ({sizes})")

    def _feed_settings(self, name: str, archive: str) -> Path:
        config = self.work / f"feed-{name}.toml"
        lines = [f'archive = "{archive}"', f'target = "{self.work / f"lake-{name}"}"', 'tables = ["shop.*"]']
        config.write_text("\n".join(["[feed]", *lines, f"batch_mb = {_FEED_BATCH_MB}", ""]))
        return config

    def _submitted(self, cluster: SparkCluster, name: str, job: list[Any], turn: str) -> bool:
        """Runs a job, perhaps with a worker killed while tasks run; whether it ended well, in time."""
        told, executors, killed = _TURNS[turn]
        what, name = name, f"{name}, {told}"
        page, log = free_port(), self.work / f"submitted-{time.monotonic_ns()}.log"
        settings = {
            "spark.cores.max": executors,
            "spark.executor.cores": 1,
            "spark.executor.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.ui.port": page,
            "spark.sql.shuffle.partitions": 4,
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self.events.as_uri(),
            "spark.eventLog.compress": "false",
        }
        environment = {
            **os.environ,
            "MASTER": cluster.master,
            "PYSPARK_PYTHON": str(cluster.python),
            "SPARK_OPTIONS": " ".join(f"--conf {key}={value}" for key, value in settings.items()),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        environment.pop("PYTHONPATH", None)
        least = self.random.randint(1, 4)
        lost = failed_tasks(self.events)

        begun = time.monotonic()
        command = [str(part) for part in (ROOT / "deploy" / "spark" / "submit", *job)]
        killing = Killing(cluster, lambda: runs_on(page, cluster.workers[-1]) >= least)
        with log.open("wb") as said:
            process = subprocess.Popen(
                command, env=environment, cwd=self.work, stdout=said, stderr=said, start_new_session=True
            )
            with killing if killed else ExitStack():
                try:
                    process.wait(_LONGEST_S)
                except subprocess.TimeoutExpired:
                    pass  # Spark waits without an end for executors that do not come
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        took = time.monotonic() - begun
        if process.returncode not in (0, 1) or (process.returncode == 1 and "audit" not in name):
            self.fault(
                f"{name}: ended with {process.returncode} after {took:.0f} s: {log.read_text(errors='replace')[-4000:]}"
            )
            return False
        after = ""
        if killed:
            self.check(f"{name}: a worker was killed", killing.killed, True)
            after = f", after {least} tasks; {failed_tasks(self.events) - lost} tasks were lost and done again"
        self.figure(what, turn, took)
        self.told(f"{name}: {took:.1f} s{after}")
        return True


def audit_content(out: Path) -> dict[str, Any]:
    """What an audit says, without the time that it took and where it lies."""
    told = json.loads((out / "audit.json").read_text())
    told["read"].pop("took_seconds", None)
    told.pop("report")
    tables = {path.name: sorted(map(str, pq.read_table(path).to_pylist())) for path in sorted(out.glob("*.parquet"))}
    return {**told, "tables": tables}


def fed_tables(config: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of shop.orders in a lake, as it is now and all that happened to it, in an order that does not depend on batches."""
    section = load_feed_config(config)
    lake = open_lake(section, open_connection(section))
    found = {}
    for kind, order in (("current", ("id",)), ("changes", ("sequence", "row"))):
        table = lake.open(kind, "shop", "orders")
        with table.scan() as reader:
            rows = reader.read_all()
        found[kind] = rows.sort_by([(column, "ascending") for column in order]).to_pylist()
    return found


LOGIN: Final = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


def run_in(work: Path, chosen: argparse.Namespace) -> list[str]:
    """What was not as it must be."""
    archive = make_archive(work / "archive", chosen.megabytes, chosen.seed)
    run = ClusterRun(work, archive, chosen.seed, chosen.turns)
    files = len(list(archive.directory.glob("bin.*[0-9]")))
    run.told(f"seed {chosen.seed}; {archive.size / 1e6:.0f} MB in {files} files")
    run.alone_here(chosen.parts)
    with ExitStack() as stack:
        cluster = SparkCluster(work / "cluster")
        if "s3" in chosen.where:
            storage = S3Server(work / "s3")
            # before it is started: what it has listed it remembers for minutes
            shutil.copytree(archive.directory, storage.bucket_directory / "archive")
            stack.enter_context(storage)
            # Each machine has its own: no job, and no page of Spark's, ever sees the secret.
            login = {**LOGIN, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{storage.port}"}
            cluster.environment |= login
            os.environ |= login
        stack.enter_context(cluster)
        for name, path in (("path", str(archive.directory)), ("s3", f"s3://{BUCKET}/archive")):
            if name not in chosen.where:
                continue
            if "alone" in chosen.parts:
                run.alone(cluster, name, path)
            if {"query", "stream"}.intersection(chosen.parts):
                run.reads(cluster, name, path, chosen.parts)
            if "audit" in chosen.parts:
                run.audit(cluster, name, path, chosen.audit)
            if "feed" in chosen.parts:
                run.feed(cluster, name, path)
    secrets = [path for path in run.events.rglob("*") if path.is_file() and SECRET_KEY in path.read_text()]
    run.check("event logs with the secret in them", secrets, [])
    print(run.table())
    return run.faults


def main() -> int:
    """The exit code: 1 where something was not as it must be."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=128)
    options.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options.add_argument("--audit", default="transactions")
    options.add_argument("--where", nargs="+", choices=_PLACES, default=_PLACES)
    options.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS)
    options.add_argument("--turns", nargs="+", choices=list(_TURNS), default=list(_TURNS), help="of what is submitted")
    options.add_argument("--keep", type=Path, help="an empty directory for all that is made, which stays")
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started ends, too
    if chosen.keep:
        faults = run_in(chosen.keep.absolute(), chosen)
    else:
        with tempfile.TemporaryDirectory(prefix="cluster-") as directory:
            faults = run_in(Path(directory), chosen)
    for fault in faults:
        print(f"FAULT {fault}")
    print("all equal" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
