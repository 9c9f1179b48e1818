"""The results of the retention and the obstacles to its limits, for metrics and people."""

from collections import Counter
from dataclasses import dataclass, field, replace

from relay.retention.decision import HeldBack


@dataclass(slots=True)
class RetentionStatus:
    """Plain facts, read at any time on the event loop. Times are Unix seconds, 0: never."""

    is_on: bool = False
    """True if [retention] has any limit."""
    limits: dict[str, str | None] = field(default_factory=dict)
    """The limits as they are written in relay.toml, by key; None: there is none."""
    last_pass: float = 0.0
    """The time of the last decision."""
    passes: int = 0
    """The number of decisions."""
    took_s: float = 0.0
    """The duration of the last pass."""
    removed_files: Counter[tuple[str, str]] = field(default_factory=Counter)
    removed_bytes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Like `removed_files`, since the start of the process, by archive ("" is the mirror) and name of the limit."""
    held_back: tuple[HeldBack, ...] = ()
    """The files that are kept although a limit would remove them now."""
    missing_bytes: int = 0
    """The room that `min_free` misses although all that may go is removed; 0: none."""
    failure: str = ""
    """The reason why the last attempt could not remove files, empty: it could."""
    failures: int = 0
    """The number of failures."""
    known_replicas: int = 0
    away_replicas: int = 0
    """Those of `known_replicas` that are not connected."""
    forgotten_replicas: int = 0
    """Those of `away_replicas` that keep nothing any more."""
    left_behind: int = 0
    """The replicas that will be refused because what they need was removed, since the start of the process."""
    clock_ahead_s: float = 0.0
    """The jump of the system's clock that is not believed yet; 0: the clock is believed."""

    def picture(self) -> "RetentionStatus":
        """Return a copy of the present state, for a later reader or another thread."""
        return replace(
            self,
            limits=dict(self.limits),
            removed_files=self.removed_files.copy(),
            removed_bytes=self.removed_bytes.copy(),
        )
