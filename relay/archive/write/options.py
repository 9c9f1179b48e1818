"""The options for opening an archive."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from relay.archive.storage.archive_errors import REPAIR, ArchiveWriteError
from relay.archive.storage.files import FileLayer
from relay.archive.storage.rebuild_index import Progress
from relay.process.duration_histogram import DISK_BOUNDS_S, DurationHistogram

QUEUE_LIMIT_BYTES: Final = 64 << 20


class SyncPolicy(Enum):
    """The times at which written bytes are forced to stable storage."""

    TRANSACTION = "transaction"
    """Immediately after the end of a transaction; one fdatasync covers all that were written before it."""
    INTERVAL = "interval"
    """Every `sync_interval_s`."""
    NONE = "none"
    """Only when a file is sealed, and when `Generation.sync_up_to` requests it."""


class PublishPolicy(Enum):
    """The part that readers may see."""

    WRITTEN = "written"
    """Whole transactions, as soon as they are written."""
    SYNCED = "synced"
    """Whole transactions, once they are on stable storage."""


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """The same for each generation of an archive."""

    sync: SyncPolicy = SyncPolicy.INTERVAL
    publish: PublishPolicy = PublishPolicy.WRITTEN
    """SYNCED needs a `sync` that is not NONE."""
    sync_interval_s: float = 1.0
    queue_limit_bytes: int = QUEUE_LIMIT_BYTES
    """The most that may wait for the disk. Upstream stops reading far earlier (`Generation.queued_bytes`)."""
    on_failure: Callable[[ArchiveWriteError], None] | None = None
    """Called on the loop when the state becomes FAILED."""
    damage_advice: str = REPAIR
    """The next step if an archived file is not what was archived, for people and replicas."""
    sync_times: DurationHistogram = field(default_factory=lambda: DurationHistogram(DISK_BOUNDS_S))
    """The durations of fdatasync in the thread that syncs."""
    on_progress: Progress | None = None
    """Called in another thread while files are read."""
    layer: FileLayer = field(default_factory=FileLayer)
    """The disk, and the access to binlogs that are not on it as they were received."""
