"""Small file systems that fill up quickly."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """Yield a tmpfs at `place`, which is created. `size` is in mount's notation, such as 24m. If none can be mounted, the test is
    skipped."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    place.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no tmpfs here: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        # Lazily: a test that failed may have files open there.
        subprocess.run(["umount", "--lazy", str(place)], check=True)
