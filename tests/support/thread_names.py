"""The names of the threads of a Python program that a test starts, not only their number.

Pools of threads fill as work comes, so that their number says little. `hook` is put before the program's own modules.
"""

import os
import re
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Final

_ASKED_BY: Final = signal.SIGUSR2
_HOOK: Final = f"""\
import os, signal, threading

def _tell(*_):
    path = os.path.join(os.path.dirname(__file__), "threads")
    with open(path + ".new", "w") as file:
        file.write("".join(thread.name + "\\n" for thread in threading.enumerate()))
    os.rename(path + ".new", path)

signal.signal({int(_ASKED_BY)}, _tell)
"""
_WORKER: Final = re.compile(r"_(\d+)$")
_MOST_WORKERS: Final = max(8, (os.cpu_count() or 1) + 4)
"""No pool of the relay is larger, nor is the event loop's own, whose size depends on the number of processors."""
_GIVEN_UP_S: Final = 20.0


def hook(directory: Path) -> dict[str, str]:
    """Return the environment that the program needs; `directory` is new, and is where it answers."""
    directory.mkdir(parents=True)
    (directory / "sitecustomize.py").write_text(_HOOK, encoding="utf-8")
    paths = [str(directory), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def thread_names(pid: int, directory: Path) -> list[str]:
    """Return the names of all threads of Python of the process, sorted."""
    answer = directory / "threads"
    answer.unlink(missing_ok=True)
    os.kill(pid, _ASKED_BY)
    deadline = time.monotonic() + _GIVEN_UP_S
    while not answer.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"process {pid} does not name its threads in {answer}")
        time.sleep(0.01)
    return sorted(answer.read_text(encoding="utf-8").splitlines())


def left_over(before: list[str], after: list[str]) -> list[str]:
    """Return threads that should not exist: new ones outside of a pool, of a second pool of the same name, or of one without a
    bound."""
    new = Counter(name for name in after if not _WORKER.search(name))
    new.subtract(name for name in before if not _WORKER.search(name))
    of_pools = Counter(name for name in after if _WORKER.search(name))
    unbounded = [name for name in of_pools if int(_WORKER.search(name)[1]) >= _MOST_WORKERS]  # type: ignore[index]
    return sorted([*(+new).elements(), *(name for name, count in of_pools.items() if count > 1), *unbounded])
