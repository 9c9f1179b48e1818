"""A program that recovers copies of one archive, and ends the process by SIGKILL at another step each time.

    python -m tests.support.killed_recovery ARCHIVE COPIES every
    python -m tests.support.killed_recovery ARCHIVE COPIES SEED

`every` makes COPIES/0, COPIES/1, ...: the process that recovered the n-th was killed before its n-th call that changes a file or the
catalog; the last one finished. SEED makes one copy, COPIES/SEED, which is recovered repeatedly, killed at random steps, until one
process finishes. It prints how many processes there were.
"""

import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import structlog

from relay.archive.catalog.catalog import Catalog
from relay.archive.recovery.recovery import Recovery
from tests.support.killed_changes import KillingDisk

MOST: Final = 200
_CATALOG_CHANGES: Final = ("add_ledger", "put_files", "forget_files")


def _with_steps(disk: KillingDisk, call: Callable[..., Any]) -> Callable[..., Any]:
    def stepping(*args: Any, **named: Any) -> Any:
        disk.step()
        return call(*args, **named)

    return stepping


def recover(directory: Path, step: int) -> None:
    """Run one recovery, killed at this step."""
    disk = KillingDisk()
    for name in _CATALOG_CHANGES:
        setattr(Catalog, name, _with_steps(disk, getattr(Catalog, name)))
    Path.rename = _with_steps(disk, Path.rename)  # type: ignore[method-assign]
    disk.steps_left = step
    Recovery(directory, disk).run()


def was_killed(directory: Path, step: int) -> bool:
    """Recover in a separate process; return False if it finished. Raises: SystemExit if it failed."""
    child = os.fork()
    if not child:
        try:
            recover(directory, step)
        except BaseException as error:
            print(f"step {step}: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    _pid, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if status:
        raise SystemExit(f"the recovery failed at step {step}: status {status}")
    return False


def main(archive: Path, copies: Path, order: str) -> int:
    """Return how many processes there were."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    if order != "every":
        chance = random.Random(order)
        shutil.copytree(archive, copies / order)
        turns = 1
        while was_killed(copies / order, chance.randrange(MOST // 4)):
            turns += 1
        return turns
    for step in range(MOST):
        shutil.copytree(archive, copies / str(step))
        if not was_killed(copies / str(step), step):
            return step + 1
    raise SystemExit(f"it takes more than {MOST} steps")


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
