"""What the archive's housekeeping did: which binlogs were removed, moved, copied, and how packed ones are read."""

from collections.abc import Callable
from typing import NamedTuple

from relay.mirror.mirror_status import MirrorStatus
from relay.packed_reads.frame_counts import FrameFacts
from relay.retention.retention_status import RetentionStatus
from relay.tiers.tier_status import TierStatus


class Upkeep(NamedTuple):
    """tiers: None: nothing moves. mirror: how far the copy is; None: there is none. frames: how packed binlogs are read; None:
    relay.toml has none."""

    retention: RetentionStatus
    tiers: TierStatus | None
    mirror: Callable[[], MirrorStatus] | None = None
    frames: Callable[[], FrameFacts] | None = None
