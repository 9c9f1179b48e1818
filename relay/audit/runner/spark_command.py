"""The Spark session of a command: started without its greetings, ended with it, its errors in a line."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from relay.commands.outcome import CommandFailed
from relay.spark.spark_session import local_session, submitted_session

_SHUFFLE_PARTITIONS: Final = "16"
_CAUSE: Final = re.compile(r"\b\w*(Exception|Error): ")


@contextmanager
def command_session(cores: int | None, *, submitted: bool) -> Iterator[SparkSession]:
    """Yield the session of spark-submit, or one of this machine that ends with the block. Raises: CommandFailed."""
    if submitted:
        with _spark_failures(None):
            yield submitted_session()
        return
    # Workers are separate processes, and import what this one imports.
    root = str(Path(__file__).resolve().parents[3])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryFile() as log, _spark_failures(log):
        with _errors_to(log):
            session = local_session(cores or "*", sql_shuffle_partitions=_SHUFFLE_PARTITIONS)
            session.sparkContext.setLogLevel("FATAL")
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def _errors_to(log: IO[bytes]) -> Iterator[None]:
    """Give `log` to the process that is started here as stderr: Java writes greetings there that cannot be switched off."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _spark_failures(log: IO[bytes] | None) -> Iterator[None]:
    """Shorten Spark's errors, which are pages long, to its first line, and the last that Java wrote."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if os.environ.get("BINLOG_RELAY_DEBUG") == "1":
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = next(
            (line for line in reversed(lines) if _CAUSE.search(line)), lines[0] if lines else type(error).__name__
        )
        tail = ""
        if log is not None:
            log.seek(0)
            written = log.read().decode("utf-8", "replace").splitlines()
            tail = f" Java's last line: {written[-1]}" if written else ""
        message = f"Spark did not finish, and nothing was written: {told}.{tail} (BINLOG_RELAY_DEBUG=1 shows all of it)"
        raise CommandFailed(message) from None
