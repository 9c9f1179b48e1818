"""A MySQL 9.7 on a disk of known speed: every sync takes two milliseconds, whatever the machine has."""

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from deploy.servers import MySQL97

SYNC_US: Final = 2000
DURABLE: Final = ("--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1")
_TEXT: Final = Path(__file__).parent / "slow_sync.c"


def compiler() -> str | None:
    """The C compiler, if there is one."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@functools.cache
def slow_sync_library() -> Path:
    """What is preloaded, compiled when it is first asked for. Raises: FileNotFoundError without a C compiler."""
    program = compiler()
    if program is None:
        raise FileNotFoundError("there is no C compiler (cc), which slow syncs need")
    digest = hashlib.sha256(_TEXT.read_bytes()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"binlog-relay-slow-sync-{os.getuid()}-{digest}.so"
    if not library.exists():
        part = library.with_suffix(f".{os.getpid()}")
        subprocess.run([program, "-O2", "-shared", "-fPIC", "-o", str(part), str(_TEXT)], check=True)
        part.chmod(0o755)
        part.rename(library)
    return library


class SlowSyncMySQL97(MySQL97):
    """Start it with DURABLE, or nothing waits for the syncs."""

    @classmethod
    def environment(cls) -> dict[str, str]:
        return {**super().environment(), "LD_PRELOAD": str(slow_sync_library()), "SLOW_SYNC_US": str(SYNC_US)}
