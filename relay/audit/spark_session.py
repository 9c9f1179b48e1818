"""A local Spark session that is set up for binlogs."""

import os
import sys
from typing import Final

from pyspark.sql import SparkSession

from relay.audit.datasource import register

# Rows leave Arrow one value at a time: without the checks that Arrow makes of each, and with a collector that does not run
# beside the one task that a core has, a row costs the JVM a third less.
JAVA_OPTIONS: Final = (
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false -XX:+UseParallelGC"
)


def submitted_session() -> SparkSession:
    """The session that spark-submit set up, or one as Spark's own configuration has it; it knows `binlog`."""
    session: SparkSession = SparkSession.builder.appName("binlog-relay").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    register(session)
    return session


def local_session(cores: int | str = "*", *, memory: str = "2g", **settings: str) -> SparkSession:
    """A session on this machine that knows `binlog`. `settings`: Spark's own, with _ for the dots of their names."""
    # Spark's workers would be the python3 of the path, which may know nothing of pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("binlog-relay")
        .config("spark.driver.memory", memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", JAVA_OPTIONS)
        # Cheaper than loopback TCP by a tenth of all processor time, and nobody else can connect. Spark 4.1.
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
    )
    for name, value in settings.items():
        builder = builder.config(f"spark.{name.replace('_', '.')}", value)
    session: SparkSession = builder.getOrCreate()
    register(session)
    return session
