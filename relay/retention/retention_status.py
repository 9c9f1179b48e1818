"""The results of the retention and the obstacles to its limits, for metrics and people."""

from collections import Counter
from dataclasses import dataclass, field, replace

from relay.retention.decision import HeldBack


@dataclass(slots=True)
class RetentionStatus:
    """Plain facts, read at any time on the event loop. Times are Unix seconds, 0: never.

    is_on: whether [retention] has any limit. limits: as they are written in relay.toml, by key; None: there is none. last_pass: the
    time of the last decision, passes: their number. took_s: how long that took. removed_files, removed_bytes: since the start of the
    process, by archive ("" is the mirror) and name of the limit. held_back: what is kept although a limit would remove it now.
    missing_bytes: for min_free, how much room is missing although all that may go is removed; 0: none. failure: why the last attempt
    could not remove files, empty: it could. failures: their number. known_replicas, away_replicas, forgotten_replicas: all, those not
    connected, those of them that keep nothing any more. left_behind: replicas that will be refused because what they need was
    removed, since the start of the process. clock_ahead_s: by how much the system's clock jumped and is not believed yet; 0: it is
    believed.
    """

    is_on: bool = False
    limits: dict[str, str | None] = field(default_factory=dict)
    last_pass: float = 0.0
    passes: int = 0
    took_s: float = 0.0
    removed_files: Counter[tuple[str, str]] = field(default_factory=Counter)
    removed_bytes: Counter[tuple[str, str]] = field(default_factory=Counter)
    held_back: tuple[HeldBack, ...] = ()
    missing_bytes: int = 0
    failure: str = ""
    failures: int = 0
    known_replicas: int = 0
    away_replicas: int = 0
    forgotten_replicas: int = 0
    left_behind: int = 0
    clock_ahead_s: float = 0.0

    def picture(self) -> "RetentionStatus":
        """Return a copy of the present state, for a later reader or another thread."""
        return replace(
            self,
            limits=dict(self.limits),
            removed_files=self.removed_files.copy(),
            removed_bytes=self.removed_bytes.copy(),
        )
