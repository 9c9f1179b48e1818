"""A disk that becomes slow, or does not answer, while a relay runs."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

_TEXT: Final = Path(__file__).with_suffix(".c")


class TroubledDisk:
    """A disk whose `environment` is for the relay. Without a C compiler the test is skipped."""

    def __init__(self, directory: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            pytest.skip("a disk in trouble needs a C compiler")
        directory.mkdir()
        self._place = directory / "trouble"
        library = directory / "troubled_disk.so"
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, _TEXT, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "TROUBLED_DISK": str(self._place)}

    def slow(self, *, on: bool) -> None:
        """Set whether each sync takes 0.8 s."""
        self._switch("slow", on)

    def stuck(self, *, on: bool) -> None:
        """Set whether queries for free space wait."""
        self._switch("stuck", on)

    def _switch(self, kind: str, on: bool) -> None:
        path = self._place.with_suffix(f".{kind}")
        if on:
            path.touch()
        else:
            path.unlink()
