"""The memory that a relay with this configuration needs, for `check-config` and for limits of the service manager."""

from dataclasses import dataclass
from typing import Final

from relay.config.sections import Config
from relay.config.text.amounts import size_bytes
from relay.config.tiers_section import TiersSection

_MIB: Final = 1 << 20
PROCESS_BYTES: Final = 192 << 20
"""The interpreter, buffers of the source's stream, indexes, the catalog; measured: 100 MiB for an archive of few files."""
STATEMENT_BYTES: Final = 256 << 20
"""SELECTs from tables, from their rows to their answers: one at a time, and one of an admin."""
VIEW_BYTES: Final = 192 << 20
"""A transaction that is unpacked for a view, and the translated one."""
_STEP_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """The memory in bytes. cache_bytes: of packed binlogs that are read."""

    budget_bytes: int
    views: int
    cache_bytes: int

    @classmethod
    def of(cls, config: Config) -> "MemoryNeed":
        """Return what this configuration needs at most."""
        archive = config.archive
        packs = archive.tiers is not None or archive.bucket is not None
        cache = size_bytes((archive.tiers or TiersSection()).read_cache) if packs else 0
        return cls(config.memory.budget_bytes, len(config.views), cache)

    @property
    def whole_bytes(self) -> int:
        """The sum of all parts."""
        return PROCESS_BYTES + STATEMENT_BYTES + self.budget_bytes + self.views * VIEW_BYTES + self.cache_bytes

    @property
    def high_bytes(self) -> int:
        """A fitting MemoryHigh: nothing is slowed down below it."""
        return -(-self.whole_bytes // _STEP_BYTES) * _STEP_BYTES

    @property
    def max_bytes(self) -> int:
        """A fitting MemoryMax: a quarter more."""
        return -(-self.high_bytes * 5 // 4 // _STEP_BYTES) * _STEP_BYTES

    def text(self) -> str:
        """Return one line for people."""
        parts = [
            f"{self.budget_bytes // _MIB} MiB for what clients make the relay hold (memory.budget)",
            f"{PROCESS_BYTES // _MIB} MiB for the process",
            f"{STATEMENT_BYTES // _MIB} MiB for SELECTs from tables",
        ]
        if self.views:
            parts.append(f"{self.views * VIEW_BYTES // _MIB} MiB for {self.views} view{'s' * (self.views > 1)}")
        if self.cache_bytes:
            parts.append(f"{self.cache_bytes // _MIB} MiB for archive.tiers.read_cache")
        return (
            f"Memory: at most about {self.whole_bytes // _MIB} MiB: {', '.join(parts)}. Limits of the service that fit: "
            f"MemoryHigh={self.high_bytes // _MIB}M, MemoryMax={self.max_bytes // _MIB}M or more; pages of the archive count "
            "there, too (docs/RUNNING.md, Memory)."
        )
