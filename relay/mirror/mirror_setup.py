"""The mirror of a relay, as relay.toml wants it."""

from dataclasses import replace

from relay.archive.archive import Archive
from relay.config.sections import ArchiveSection
from relay.mirror.mirror import Mirror
from relay.packed.packing import PackOptions
from relay.tiers.tier_setup import key_ring


def archive_mirror(section: ArchiveSection, archive: Archive, uuid: str) -> Mirror | None:
    """What keeps the bucket as a second copy, not yet at work; None: nothing does. Raises: KeyUnreadable, StoreRefused."""
    if section.mirror is None or section.bucket is None:
        return None
    # The mirror itself tries again, and says meanwhile that it is behind.
    options = replace(section.bucket.options(), tries=3, give_up_s=15.0)
    packing = PackOptions() if section.tiers is None else PackOptions(level=section.tiers.level)
    return Mirror(archive, options, key_ring(section), packing, uuid, section.mirror.interval_s)
