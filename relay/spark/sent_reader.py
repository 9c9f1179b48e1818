"""A reader that is sent to an executor: if it cannot be created there, the error says which machine lacks what."""

import pickle
import sys
from typing import Any

from pyspark import cloudpickle


class SentReader:
    """A reader that Spark pickles in the driver's planner and rebuilds in each executor's Python.

    Spark would only report that there is no module `relay`. So the code that rebuilds the reader is sent with it, and needs nothing of
    that module.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return made_again, (pickle.dumps((type(self), self.__dict__)),)


def made_again(packed: bytes) -> Any:
    """Return the reader. Raises: RuntimeError. It imports all that it needs itself: it may run where this module does not exist."""
    import pickle
    import platform
    import sys

    here = f"The executor on {platform.node()} (Python {platform.python_version()}, {sys.executable})"
    advice = "docs/SPARK.md, 'On a cluster', says what executors need and how deploy/spark/submit gives it to them."
    try:
        kind, state = pickle.loads(packed)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("relay", "protocol"):
            raise RuntimeError(f"{here} has no package {error.name}, which binlogs are read with. {advice}") from error
        if missing in sys.modules:
            raise RuntimeError(
                f"{here} has another version of binlog-relay: it has no {error.name}. {advice}"
            ) from error
        raise RuntimeError(f"{here} has no package binlog-relay: {error}. {advice}") from error
    except (AttributeError, ImportError, TypeError) as error:
        raise RuntimeError(f"{here} has another version of binlog-relay than the driver: {error}. {advice}") from error
    reader = kind.__new__(kind)
    reader.__dict__.update(state)
    return reader


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
