"""A worker that dies in the middle of what an application does, and how far the application is by then."""

import json
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from tests.support.spark_cluster import SparkCluster, SparkWorker

_LOOK_S: Final = 0.05


class Killing(threading.Thread):
    """Kills a worker as soon as `is_time`; looks 20 times a second. `killed`: whether it did."""

    def __init__(self, cluster: SparkCluster, is_time: Callable[[], bool]) -> None:
        super().__init__(name="killing", daemon=True)
        self._cluster, self._is_time = cluster, is_time
        self._over = threading.Event()
        self.killed = False

    def run(self) -> None:
        """Until it has killed, or the block is over."""
        while not self._over.wait(_LOOK_S):
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


def runs_on(port: int, worker: SparkWorker) -> int:
    """How many tasks have ended if one runs on `worker`, as an application's own page tells; -1: none does, or there is no page."""
    base = f"http://127.0.0.1:{port}/api/v1/applications"
    try:
        with urllib.request.urlopen(base, timeout=5) as answer:
            (application,) = json.loads(answer.read())
        with urllib.request.urlopen(f"{base}/{application['id']}/executors", timeout=5) as answer:
            executors = json.loads(answer.read())
    except (OSError, ValueError):
        return -1
    here = {path.name for path in worker.directory.glob(f"{application['id']}/*")}
    if not any(one["activeTasks"] for one in executors if one["id"] in here):
        return -1
    return sum(int(one["completedTasks"]) for one in executors)


def failed_tasks(events: Path) -> int:
    """Tasks of all applications that did not end well, by the event logs: who kills a worker makes some."""
    failed = 0
    for path in sorted(events.rglob("*")):
        for line in path.read_text().splitlines() if path.is_file() else ():
            event = json.loads(line) if '"SparkListenerTaskEnd"' in line else {}
            failed += event.get("Task End Reason", {}).get("Reason", "Success") != "Success"
    return failed
