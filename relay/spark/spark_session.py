"""A local Spark session that is set up for binlogs."""

import os
import sys
from pathlib import Path
from typing import Final

import pyspark
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from relay.spark.datasource import register

# Rows leave Arrow one value at a time: without Arrow's checks of each, and with a collector that does not run beside the one task of a
# core, a row costs the JVM a third less. Code that is called a few thousand times belongs to a query's plan, code that is called
# millions of times to its rows: the second compiler waits for the latter, at five times the usual counts, and a session's first two
# queries cost a tenth less.
JAVA_OPTIONS: Final = (
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false -XX:+UseParallelGC "
    "-XX:Tier4InvocationThreshold=25000 -XX:Tier4MinInvocationThreshold=3000 -XX:Tier4CompileThreshold=75000 "
    "-XX:Tier4BackEdgeThreshold=200000"
)


def _python_of_workers() -> str:
    """Return this Python, through spark_python.sh if Spark is the installed pyspark: then its zips contain nothing else."""
    starter = Path(__file__).with_name("spark_python.sh")
    is_installed = Path(_find_spark_home()).resolve() == Path(pyspark.__file__).resolve().parent
    if not is_installed or not os.access(starter, os.X_OK):
        return sys.executable
    os.environ["BINLOG_RELAY_PYTHON"] = sys.executable
    return str(starter)


def submitted_session() -> SparkSession:
    """Return the session that spark-submit set up, or one of Spark's own configuration; it knows `binlog`."""
    session: SparkSession = SparkSession.builder.appName("binlog-relay").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    register(session)
    return session


def local_session(cores: int | str = "*", *, memory: str = "2g", **settings: str) -> SparkSession:
    """Return a session on this machine that knows `binlog`. `settings` are Spark's own, with _ for the dots of their names."""
    # Spark's workers would otherwise be the python3 of the path, which may lack pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", _python_of_workers())
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("binlog-relay")
        .config("spark.driver.memory", memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", JAVA_OPTIONS)
        # It is cheaper than loopback TCP by a tenth of all processor time, and no other user can connect. It needs Spark 4.1.
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
