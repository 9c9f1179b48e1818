"""The mover of a relay, as relay.toml wants it."""

import threading
from collections.abc import Callable

from relay.archive.archive import Archive
from relay.config.sections import ArchiveSection
from relay.object_store.object_store import ObjectStore
from relay.packed.key_ring import KeyRing
from relay.packed.packing import PackOptions
from relay.retention.decision import Place
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules


def key_ring(section: ArchiveSection) -> KeyRing | None:
    """The keys of packed files; None: there are none. Reads files. Raises: KeyUnreadable."""
    encryption = section.encryption
    if encryption is None:
        return None
    return KeyRing.load([key.source() for key in encryption.keys], encryption.active)


def bucket_store(section: ArchiveSection, stop: threading.Event | None = None) -> ObjectStore | None:
    """The bucket; None: there is none. Reads credentials, and asks nobody. Raises: StoreRefused."""
    return None if section.bucket is None else ObjectStore(section.bucket.options(), stop)


def tier_mover(section: ArchiveSection, archive: Archive, stays_from: Callable[[], Place | None]) -> TierMover | None:
    """None: nothing is to be moved, and nothing has to go from a bucket. Raises: KeyUnreadable, StoreRefused."""
    if section.tiers is None and section.bucket is None:
        return None
    stop = threading.Event()
    rules = TierRules() if section.tiers is None else TierRules.of(section.tiers)
    options = PackOptions() if section.tiers is None else PackOptions(level=section.tiers.level)
    return TierMover(
        archive,
        rules,
        options,
        keys=key_ring(section),
        store=bucket_store(section, stop),
        stop=stop,
        stays_from=stays_from,
    )
