"""The time for which callbacks hold the event loop, in processor time of its thread: in this process, or of a relay under attack.

Processor time is the same on a busy machine. It leaves out what the loop waits for: a lock, a disk, the interpreter.

`python -m tests.support.loop_holds REPORT run --config relay.toml` is `binlog-relay run ...` that writes its holds to a file; so is
`RelayProcess(..., watch_loop=True)`. Both run on asyncio's own loop: uvloop's callbacks cannot be watched.
"""

import asyncio
import contextlib
import json
import os
import runpy
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

LIMIT_S: Final = 0.020
"""No callback of a relay may hold the loop longer, whatever its peers send."""
REPORT_VARIABLE: Final = "BINLOG_RELAY_TEST_LOOP_REPORT"
_TOLD_FROM_S: Final = 0.002
_MOST_SHOWN: Final = 400


@dataclass(frozen=True, slots=True)
class Hold:
    """One callback. `cpu_s` is the processor time of its thread. `at` is when it ended, by time.monotonic(), the same in all
    processes."""

    cpu_s: float
    callback: str
    at: float

    def __str__(self) -> str:
        return f"{self.cpu_s * 1000:.1f} ms: {self.callback}"


NO_HOLD: Final = Hold(0.0, "none", 0.0)


@dataclass(slots=True)
class LoopHolds:
    """The holds of 2 ms and more since it began, in their order."""

    found: list[Hold] = field(default_factory=list)

    @property
    def longest(self) -> Hold:
        """Return the longest; one of 0 s if none took 2 ms."""
        return max(self.found, key=lambda hold: hold.cpu_s, default=NO_HOLD)

    def check(self, limit_s: float = LIMIT_S) -> None:
        """Raise AssertionError for holds over the limit, with the longest of them."""
        over = sorted((hold for hold in self.found if hold.cpu_s > limit_s), key=lambda hold: -hold.cpu_s)
        shown = "\n".join(map(str, over[:10]))
        assert not over, f"{len(over)} callbacks held the event loop over {limit_s * 1000:.0f} ms:\n{shown}"


@contextlib.contextmanager
def loop_watched() -> Iterator[LoopHolds]:
    """Watch the event loops of this process inside the block."""
    holds = LoopHolds()
    original = asyncio.events.Handle._run
    _watch(holds.found.append)
    try:
        yield holds
    finally:
        asyncio.events.Handle._run = original  # type: ignore[method-assign]


def watch_into(report: Path) -> None:
    """Write the holds of this process to a file, one line each, from now on. Its loop is asyncio's own."""
    sys.modules["uvloop"] = None  # type: ignore[assignment]
    file = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def tell(hold: Hold) -> None:
        os.write(file, json.dumps(asdict(hold)).encode() + b"\n")

    _watch(tell)


def read_report(report: Path, since: float = 0.0) -> LoopHolds:
    """Return the holds in a file that ended after `since`."""
    lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    holds = (Hold(**json.loads(line)) for line in lines)
    return LoopHolds([hold for hold in holds if hold.at >= since])


def _watch(tell: Callable[[Hold], object]) -> None:
    original = asyncio.events.Handle._run
    clock = time.thread_time

    def run(handle: asyncio.Handle) -> None:
        begin = clock()
        original(handle)
        cpu_s = clock() - begin
        if cpu_s >= _TOLD_FROM_S and threading.current_thread() is threading.main_thread():
            tell(Hold(cpu_s, _described(handle), time.monotonic()))

    asyncio.events.Handle._run = run  # type: ignore[assignment, method-assign]


def _described(handle: asyncio.Handle) -> str:
    """Return what it was: a task by its coroutine, which is at its next place by now, all others as asyncio shows them."""
    callback: Any = handle._callback  # type: ignore[attr-defined]
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return repr(task)[:_MOST_SHOWN]
    return f"{callback!r} {handle._args!r}"[:_MOST_SHOWN]


def main() -> None:
    """Run a relay that is watched."""
    watch_into(Path(sys.argv[1]))
    sys.argv = ["relay", *sys.argv[2:]]
    runpy.run_module("relay", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
