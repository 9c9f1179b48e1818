"""What the archive's housekeeping did: which binlogs were removed, which were moved, which were copied."""

from collections.abc import Callable
from typing import NamedTuple

from relay.mirror.mirror_status import MirrorStatus
from relay.retention.retention_status import RetentionStatus
from relay.tiers.tier_status import TierStatus


class Upkeep(NamedTuple):
    """tiers: None: nothing moves. mirror: how far the copy is; None: there is none."""

    retention: RetentionStatus
    tiers: TierStatus | None
    mirror: Callable[[], MirrorStatus] | None = None
