"""A program that changes the source of one archive after the other, and ends the process by SIGKILL at another step each time.

    python -m tests.support.killed_changes DIRECTORY change|discard

It makes DIRECTORY/0, DIRECTORY/1, ...: the process that worked on the n-th was killed before its n-th call that changes the disk; the
last one finished. It prints how many there are.
"""

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Final

import structlog

from relay.archive.archive import Archive
from tests.support.generation_filling import A, B, append_files, change_source, identity, mysql_series
from tests.support.stepped_disk import SteppedDisk

MOST: Final = 80
FIRST_SOURCE: Final = mysql_series(1, f"{A}:1-3", f"{A}:4-6")
SECOND_SOURCE: Final = mysql_series(2, f"{A}:5-9", f"{B}:1-2", start=f"{A}:1-4")


class KillingDisk(SteppedDisk):
    """A disk that ends the process before its call number `steps_left` that would change the disk (-1: never)."""

    steps_left = -1

    def step(self) -> None:
        if self.steps_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.steps_left -= 1

    def make_directory(self, path: Path) -> None:
        self.step()
        super().make_directory(path)

    def truncate(self, fd: int, size: int) -> None:
        self.step()
        super().truncate(fd, size)

    def remove_directory(self, path: Path) -> None:
        self.step()
        super().remove_directory(path)


async def fill(directory: Path) -> None:
    """Archive what the first source sent."""
    archive = await Archive.open(directory)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, FIRST_SOURCE)
    await archive.close()


async def change(directory: Path, step: int, *, discard: bool) -> None:
    """Make the change, killed at this step."""
    disk = KillingDisk()
    archive = await Archive.open(directory, layer=disk)
    disk.steps_left = step
    if discard:
        await archive.prepare(identity(B, 2), "source-b:3306", "mysql-bin.000002")
        await archive.discard_prepared()
    else:
        await change_source(archive, identity(B, 2), SECOND_SOURCE)
    disk.steps_left = -1
    await archive.close()


def main(directory: Path, *, discard: bool) -> int:
    """Return how many processes there were."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    filled = directory / "filled"
    asyncio.run(fill(filled))
    for step in range(MOST):
        shutil.copytree(filled, directory / str(step))
        child = os.fork()
        if not child:
            try:
                asyncio.run(change(directory / str(step), step, discard=discard))
            except BaseException as error:
                print(f"step {step}: {error!r}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        _pid, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            if os.WEXITSTATUS(status):
                raise SystemExit(1)
            return step + 1
    raise SystemExit(f"it takes more than {MOST} steps")


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), discard=sys.argv[2] == "discard"))
