"""A progress bar on stderr for long work; nothing if stderr is no terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bytes_progress(title: str, total_bytes: int) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that takes the bytes done since its last call, or None without a terminal."""
    if not sys.stderr.isatty() or total_bytes < 64 << 20:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total_bytes)
        yield lambda count: bar.update(task, advance=count)
