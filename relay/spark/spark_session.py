"""A local Spark session that is set up for binlogs."""

import os
import sys
from pathlib import Path
from typing import Final

import pyspark
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from relay.spark.datasource import register

# Rows leave Arrow one value at a time: without the checks that Arrow makes of each, and with a collector that does not run
# beside the one task that a core has, a row costs the JVM a third less.
# What is called a few thousand times is a query's plan, what millions of times its rows: the second compiler waits for that,
# at five times the usual counts, and a session's first two queries cost a tenth less.
JAVA_OPTIONS: Final = (
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false -XX:+UseParallelGC "
    "-XX:Tier4InvocationThreshold=25000 -XX:Tier4MinInvocationThreshold=3000 -XX:Tier4CompileThreshold=75000 "
    "-XX:Tier4BackEdgeThreshold=200000"
)


def _python_of_workers() -> str:
    """This one, by way of spark_python.sh where Spark is the installed pyspark: then its zips hold nothing else."""
    starter = Path(__file__).with_name("spark_python.sh")
    is_installed = Path(_find_spark_home()).resolve() == Path(pyspark.__file__).resolve().parent
    if not is_installed or not os.access(starter, os.X_OK):
        return sys.executable
    os.environ["BINLOG_RELAY_PYTHON"] = sys.executable
    return str(starter)


def submitted_session() -> SparkSession:
    """The session that spark-submit set up, or one as Spark's own configuration has it; it knows `binlog`."""
    session: SparkSession = SparkSession.builder.appName("binlog-relay").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    register(session)
    return session


def local_session(cores: int | str = "*", *, memory: str = "2g", **settings: str) -> SparkSession:
    """A session on this machine that knows `binlog`. `settings`: Spark's own, with _ for the dots of their names."""
    # Spark's workers would be the python3 of the path, which may know nothing of pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", _python_of_workers())
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
