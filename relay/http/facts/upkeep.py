"""The results of the archive's housekeeping: the binlogs that were removed, moved, copied, and the reads of packed ones."""

from collections.abc import Callable
from typing import NamedTuple

from relay.mirror.mirror_status import MirrorStatus
from relay.packed_reads.frame_counts import FrameFacts
from relay.retention.retention_status import RetentionStatus
from relay.tiers.tier_status import TierStatus


class Upkeep(NamedTuple):
    """tiers: None: nothing moves. mirror: the state of the copy; None: there is none. frames: the reads of packed binlogs; None:
    relay.toml has none."""

    retention: RetentionStatus
    tiers: TierStatus | None
    mirror: Callable[[], MirrorStatus] | None = None
    frames: Callable[[], FrameFacts] | None = None
