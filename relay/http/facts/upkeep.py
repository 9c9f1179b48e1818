"""What the archive's housekeeping did: which binlogs were removed, and which were moved."""

from typing import NamedTuple

from relay.retention.retention_status import RetentionStatus
from relay.tiers.tier_status import TierStatus


class Upkeep(NamedTuple):
    """tiers: None: nothing moves."""

    retention: RetentionStatus
    tiers: TierStatus | None
