"""Spark's progress on a terminal; nothing is shown if stderr is none."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError
from pyspark import SparkContext

_LOOK_S: Final = 0.2


@contextmanager
def spark_progress(context: SparkContext) -> Iterator[Callable[[str], None]]:
    """Yield a function that takes the current step. The bar counts the tasks of the running stages."""
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("tasks"),
        TimeElapsedColumn(),
    )
    ended = threading.Event()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Starting", total=None)

        def look() -> None:
            tracker = context.statusTracker()
            while not ended.wait(_LOOK_S):
                try:
                    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
                except (Py4JError, OSError):
                    return  # Spark has ended: the caller that waits for its answer learns it
                known = [stage for stage in stages if stage is not None]
                if known:
                    total = sum(stage.numTasks for stage in known)
                    bar.update(task, total=total, completed=sum(stage.numCompletedTasks for stage in known))

        watcher = threading.Thread(target=look, name="audit-progress", daemon=True)
        watcher.start()
        try:
            yield lambda step: bar.update(task, description=step, completed=0, total=None)
        finally:
            ended.set()
            watcher.join()
