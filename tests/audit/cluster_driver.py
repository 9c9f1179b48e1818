"""A driver outside of the workers: a session on a cluster whose executors get this package with the job."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from deploy.spark.package import package
from relay.spark.datasource import register
from tests.audit.spark_environment import session_in
from tests.support.spark_cluster import SparkCluster


@contextmanager
def cluster_session(
    cluster: SparkCluster, work: Path, *, executors: int = 2, packed: bool = True, **settings: str
) -> Iterator[SparkSession]:
    """A session with so many executors of one core. packed: executors get the package. settings: Spark's, with _ for dots.

    It leaves its event log in `work`.
    """
    events = work / "events"
    events.mkdir(parents=True, exist_ok=True)
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
    own |= {name.replace("_", "."): value for name, value in settings.items()}

    def make() -> SparkSession:
        builder = SparkSession.builder
        for name, value in own.items():
            builder = builder.config(name, value)
        session: SparkSession = builder.getOrCreate()
        register(session)
        return session

    with session_in({}, cluster.python, make) as session:
        yield session
