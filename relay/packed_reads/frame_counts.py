"""The counts of requests for frames in memory, and of fetches for them, for monitors."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from relay.archive.storage.archive_errors import ArchiveDamaged, ArchiveUnavailable

FROM_BUCKET: Final = "bucket"
FROM_DISK: Final = "disk"
AWAY: Final = "bucket_away"
UNAVAILABLE: Final = "unavailable"
DAMAGED: Final = "damaged"
OTHER: Final = "other"
ERROR_KINDS: Final = (AWAY, UNAVAILABLE, DAMAGED, OTHER)
"""The bucket was known to be away and was not asked; it could not be read now; it is not what was packed; the disk failed."""


def error_kind(error: BaseException) -> str:
    """Return the kind of error of a frame that could not be read."""
    if isinstance(error, ArchiveUnavailable):
        return AWAY if error.is_told else UNAVAILABLE
    return DAMAGED if isinstance(error, ArchiveDamaged) else OTHER


@dataclass(slots=True)
class FrameCounts:
    """The counts since the start. A reader that comes to a frame finds it here (`hits`), on its way for another reader (`shared`), or
    neither (`misses`). `fetches`, `fetched_bytes`: by origin, bytes as they are stored. `errors`: by kind, of fetches and of ends of
    files. `evictions`: frames that were removed to make room."""

    hits: int = 0
    shared: int = 0
    misses: int = 0
    evictions: int = 0
    fetches: Counter[str] = field(default_factory=Counter)
    fetched_bytes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """The facts at one moment. used_bytes: kept, and on its way. in_progress: frames that are being fetched; waiting: requested, and
    no room yet. bucket_away_since: Unix time, 0: it answers. told_at_once: requests that were not made while it was away. times_away:
    how often."""

    limit_bytes: int
    used_bytes: int
    in_progress: int
    waiting: int
    hits: int
    shared: int
    misses: int
    evictions: int
    fetches: Mapping[str, int]
    fetched_bytes: Mapping[str, int]
    errors: Mapping[str, int]
    has_bucket: bool = False
    bucket_away_since: float = 0.0
    times_away: int = 0
    told_at_once: int = 0
