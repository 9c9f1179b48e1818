"""The decision that a file must be packed now, even if that slows other work: it has waited long enough, or the disk has little
room."""

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from relay.archive.storage.files import FileLayer

LONGEST_WAIT_S: Final = 86400.0
LEAST_FREE_SHARE: Final = 0.1
"""The share of the file system below which free room makes packing urgent."""


class CompressionPriority:
    """For one thread."""

    def __init__(self, layer: FileLayer, directory: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._layer = layer
        self._directory = directory
        self._clock = clock
        self._since: dict[tuple[int, str], float] = {}

    def wait(self, due: Iterable[tuple[int, str]]) -> None:
        """Note that these files must be packed, by the numbers of their generations and their names, and no others."""
        now = self._clock()
        self._since = {file: self._since.get(file, now) for file in due}

    def is_urgent(self, generation: int, name: str) -> bool:
        """Return whether this one is packed without yielding to other work."""
        if self._clock() - self._since.get((generation, name), self._clock()) >= LONGEST_WAIT_S:
            return True
        with contextlib.suppress(OSError):
            free, whole = self._layer.free_bytes(self._directory), self._layer.whole_bytes(self._directory)
            return free < LEAST_FREE_SHARE * whole
        return False
