"""The results of the mover and what it waits for, for monitors."""

from collections import Counter
from dataclasses import dataclass, field, replace

from relay.object_store.trying import StoreCounts


@dataclass(slots=True)
class TierStatus:
    """The state of the mover. Files and bytes are by tier; those that were moved by the tier they went to."""

    files: dict[str, int] = field(default_factory=dict)
    stored_bytes: dict[str, int] = field(default_factory=dict)
    plain_bytes: dict[str, int] = field(default_factory=dict)
    """Like `files` and `stored_bytes`, as of the last pass."""
    moved_files: Counter[str] = field(default_factory=Counter)
    moved_bytes: Counter[str] = field(default_factory=Counter)
    failures: int = 0
    """Like `moved_files` and `moved_bytes`, since the start."""
    failure: str = ""
    waiting_files: int = 0
    """The moves that are due."""
    gone_files: int = 0
    """The purged files that are still in the bucket."""
    bucket_failing_since: float = 0.0
    """Unix seconds; 0: it answers, as far as it was contacted."""
    last_pass: float = 0.0
    state: str = "resting"
    bucket: StoreCounts | None = None
    """The counts of the bucket's operations; None: there is no bucket."""

    def picture(self) -> "TierStatus":
        """Return a copy of the present state, for a later reader or another thread."""
        return replace(self, moved_files=self.moved_files.copy(), moved_bytes=self.moved_bytes.copy())
