"""How much a comparison asks of the servers: the size of a chunk by the time that it takes, rows a second, and the replica's lag."""

import threading
import time
from dataclasses import dataclass
from typing import Final

from relay.compare.servers.common_place import check_applies
from relay.compare.servers.compared_server import ComparedServer

_FIRST_BYTES: Final = 4 << 20
_FIRST_ROWS: Final = 1_000
_MOST_ROWS: Final = 200_000
_MOST_GROWTH: Final = 2.0
_LOOKED_AT_EVERY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """The limits. `rows_a_second` 0: none."""

    chunk_s: float = 0.5
    rows_a_second: int = 0
    lag_s: float = 30.0
    wait_s: float = 300.0


class ChunkSize:
    """How many rows the next chunk has. Both servers' threads use it."""

    def __init__(self, limits: LoadLimits, rows: int, size_bytes: int) -> None:
        """Begin small where `rows`, of so many bytes together, are large."""
        self._limits = limits
        self._rows = max(1, min(_FIRST_ROWS, _FIRST_BYTES * max(rows, 1) // max(size_bytes, 1)))
        self._lock = threading.Lock()

    @property
    def rows(self) -> int:
        """The number of rows."""
        with self._lock:
            return self._rows

    def took(self, rows: int, seconds: float) -> None:
        """Learn from a chunk of so many rows: the slower server decides."""
        with self._lock:
            fitting = int(rows * self._limits.chunk_s / max(seconds, 0.0001))
            if fitting < self._rows:
                self._rows = max(1, fitting)
            elif rows >= self._rows:
                self._rows = max(1, min(_MOST_ROWS, fitting, int(self._rows * _MOST_GROWTH)))


class LoadBrake:
    """Pauses where the limits say so. It is used by the thread that asks the new server."""

    def __init__(self, limits: LoadLimits, replica: ComparedServer) -> None:
        self.limits = limits
        self._replica = replica
        self._began = time.monotonic()
        self._rows = 0
        self._looked = 0.0
        self.paused_s = 0.0

    def after(self, rows: int) -> None:
        """Pause after so many rows. Raises: CompareStop if the replica has stopped."""
        began = time.monotonic()
        self._rows += rows
        if self.limits.rows_a_second:
            ahead = self._rows / self.limits.rows_a_second - (began - self._began)
            if ahead > 0:
                time.sleep(ahead)
        if began - self._looked >= _LOOKED_AT_EVERY_S:
            while self._lag() > self.limits.lag_s:
                time.sleep(_LOOKED_AT_EVERY_S)
            self._looked = time.monotonic()
        self.paused_s += time.monotonic() - began

    def _lag(self) -> float:
        return float(check_applies(self._replica).get("Seconds_Behind_Master") or 0)
