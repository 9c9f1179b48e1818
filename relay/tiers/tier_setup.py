"""The mover of a relay, as relay.toml wants it."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveUnavailable
from relay.config.sections import ArchiveSection
from relay.config.text.amounts import size_bytes
from relay.config.tiers_section import TiersSection
from relay.object_store.archive_object import Ownership
from relay.object_store.object_errors import ObjectStoreError
from relay.object_store.object_store import ObjectStore
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import KeyUnreadable
from relay.packed.packing import PackOptions
from relay.packed.packing_room import PackingRoom
from relay.packed_reads.archive_layer import archive_layer, note_tiers
from relay.packed_reads.shared_frames import SharedFrames
from relay.packed_reads.tiered_layer import TieredLayer
from relay.packing_process.packer import ProcessPacker
from relay.retention.decision import Place
from relay.tiers.tier_mover import OwnBucket, TierMover
from relay.tiers.tier_rules import TierRules

_CORRECT: Final = "Correct [archive] in relay.toml: docs/TIERS.md."


def key_ring(section: ArchiveSection) -> KeyRing | None:
    """Return the keys of packed files; None: there are none. It reads files. Raises: KeyUnreadable."""
    encryption = section.encryption
    if encryption is None:
        return None
    return KeyRing.load([key.source() for key in encryption.keys], encryption.active)


def bucket_store(section: ArchiveSection, *, many_ask: bool = False) -> ObjectStore | None:
    """Return the bucket; None: there is none. It reads credentials, and contacts nothing. many_ask: as in `ObjectStore`. Raises:
    StoreRefused."""
    return None if section.bucket is None else ObjectStore(section.bucket.options(), many_ask=many_ask)


def tier_mover(
    section: ArchiveSection,
    archive: Archive,
    stays_from: Callable[[], Place | None],
    uuid: str,
    token: str,
    room: PackingRoom | None = None,
) -> TierMover | None:
    """Return the mover; None: nothing must be moved, nor removed from a bucket. uuid, token: of the relay and of this process, as
    writers to the bucket. room: of the archive's disk. Raises: KeyUnreadable, StoreRefused."""
    if section.tiers is None and section.bucket is None:
        return None
    rules = TierRules() if section.tiers is None else TierRules.of(section.tiers)
    options = PackOptions(room=room) if section.tiers is None else PackOptions(level=section.tiers.level, room=room)
    store = bucket_store(section)
    own = None
    if store is not None:
        is_whole = section.mirror is not None
        ownership = Ownership(store, uuid, archive.directory, token=token, is_whole=is_whole)
        own = OwnBucket(store.stopping, ownership, keeps_purged=is_whole)
    return TierMover(
        archive,
        rules,
        options,
        keys=key_ring(section),
        store=store,
        packer=ProcessPacker(),
        own=own,
        stays_from=stays_from,
    )


def reading_layer(section: ArchiveSection, root: Path) -> TieredLayer:
    """Return the access to the binlogs of the archive in `root`, packed ones too. Blocking. Raises: ArchiveUnavailable."""
    tiers = section.tiers or TiersSection()
    try:
        ring, store = key_ring(section), bucket_store(section, many_ask=True)
    except KeyUnreadable as error:
        raise ArchiveUnavailable(f"a key of [archive.encryption] cannot be read: {error}", advice=_CORRECT) from error
    except ObjectStoreError as error:
        what = f"the bucket of [archive.bucket] cannot be opened: {error.text}"
        raise ArchiveUnavailable(what, advice=error.advice or _CORRECT) from error
    return archive_layer(root, SharedFrames(size_bytes(tiers.read_cache)), store, ring)


def note_reading(section: ArchiveSection, root: Path) -> None:
    """Store in the archive how it is read, for commands and jobs. Blocking. Raises: OSError."""
    bucket = None if section.bucket is None else section.bucket.options()
    encryption = section.encryption
    note_tiers(root, bucket, [] if encryption is None else [key.source() for key in encryption.keys])
