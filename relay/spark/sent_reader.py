"""A reader on its way to an executor: what cannot be made there says which machine lacks what."""

import pickle
import sys
from typing import Any

from pyspark import cloudpickle


class SentReader:
    """A reader that Spark pickles in the driver's planner and makes again in each executor's Python.

    Spark would only say that there is no module `relay`. So what makes it again goes with it, as code, and needs nothing of it.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return made_again, (pickle.dumps((type(self), self.__dict__)),)


def made_again(packed: bytes) -> Any:
    """The reader. Raises: RuntimeError. All that it needs it imports itself: it may run where this module is not."""
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
