"""A driver outside of the workers: a session on a cluster whose executors get this package with the job."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from deploy.spark.package import package
from relay.audit.datasource import register
from tests.support.spark_cluster import SparkCluster

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def cluster_session(
    cluster: SparkCluster, work: Path, *, executors: int = 2, packed: bool = True, **settings: str
) -> Iterator[SparkSession]:
    """A session with so many executors of one core. packed: executors get the package. settings: Spark's, with _ for dots.

    It leaves its event log in `work`.
    """
    events = work / "events"
    events.mkdir(parents=True, exist_ok=True)
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "PYSPARK_PYTHON")}
    # The planner of a read is a process of its own beside the driver, of the same Python as executors.
    os.environ |= {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(cluster.python)}
    own = {
        "spark.master": cluster.master,
        "spark.app.name": "cluster proof",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.cores.max": str(executors),
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
    }
    if packed:
        zipped = package(work / "binlog-relay.zip")
        own |= {"spark.archives": f"{zipped}#binlog-relay", "spark.executorEnv.PYTHONPATH": "binlog-relay"}
    builder = SparkSession.builder
    for name, value in {**own, **{name.replace("_", "."): value for name, value in settings.items()}}.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    register(session)
    try:
        yield session
    finally:
        session.stop()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
