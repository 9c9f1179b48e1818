"""A Spark session of tests, with what its processes find in their environment."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def session_in(
    environment: Mapping[str, str], python: Path | str, make: Callable[[], SparkSession]
) -> Iterator[SparkSession]:
    """The session that `make` makes, silent, and ended with the block.

    Spark's Pythons are processes of their own, of this `python`: they have the environment of the moment when the session was
    made, and import what is imported here.
    """
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    own = {**environment, "PYTHONPATH": path, "PYSPARK_PYTHON": str(python)}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        session = make()
        try:
            session.sparkContext.setLogLevel("OFF")
            yield session
        finally:
            session.stop()
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
