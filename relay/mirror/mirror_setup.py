"""The mirror of a relay, as relay.toml wants it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from relay.archive.archive import Archive
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.files import UUID_NAME
from relay.config import Config
from relay.config.sections import ArchiveSection
from relay.disk.file_calls import read_file
from relay.mirror.bucket_check import BucketCheck, folder_of
from relay.mirror.bucket_origin import BucketOrigin
from relay.mirror.mirror import Mirror
from relay.object_store.object_errors import ObjectStoreError
from relay.packed.packed_errors import KeyUnreadable
from relay.packed.packing import PackOptions
from relay.packed.packing_room import PackingRoom
from relay.packing_process.compression_settings import CompressionSettings
from relay.packing_process.packer import ProcessPacker
from relay.tiers.tier_setup import bucket_store, key_ring


def copies_of(section: ArchiveSection, root: Path, number: int) -> list[BucketOrigin]:
    """Return the sources of damaged files of the generation with that number, besides its source. `root` is the archive's directory. It
    reads keys and credentials.

    Raises: KeyUnreadable, StoreRefused.
    """
    store = None if section.mirror is None else bucket_store(section)
    if store is None:
        return []
    return [BucketOrigin(store, folder_of(number), key_ring(section), root)]


def bucket_findings(config: Config, *, purged: bool, deep: bool, cure: bool) -> Iterator[tuple[int, ArchiveFinding]]:
    """Yield what is wrong in the bucket, by generation, for an archive that is not open, as `BucketCheck` finds it. Raises:
    ArchiveError; OSError."""
    section, root = config.archive, config.archive_directory
    try:
        store, keys = bucket_store(section), key_ring(section)
        uuid = read_file(root / UUID_NAME).decode("ascii").strip()
    except FileNotFoundError:
        return  # it never ran: nothing is in the bucket
    except (KeyUnreadable, ObjectStoreError) as error:
        raise ArchiveError(str(error).rstrip(".")) from error
    if store is None:
        return
    is_mirror = section.mirror is not None
    check = BucketCheck(root, store, uuid, is_mirror=is_mirror, purged=purged, deep=deep, cure=cure)
    packing = PackOptions() if section.tiers is None else PackOptions(level=section.tiers.level)
    yield from check.run(begun_generations(root), keys, packing)


def archive_mirror(
    section: ArchiveSection, archive: Archive, uuid: str, token: str, room: PackingRoom | None = None
) -> Mirror | None:
    """Return the mirror, which is not started yet; None if relay.toml has none. `uuid` is the relay's, `token` this process's. `room`
    is that of the archive's disk.

    Raises: KeyUnreadable, StoreRefused.
    """
    if section.mirror is None or section.bucket is None:
        return None
    # The mirror itself retries, and reports its lag meanwhile.
    options = replace(section.bucket.options(), tries=3, give_up_s=15.0)
    packing = PackOptions(room=room) if section.tiers is None else PackOptions(level=section.tiers.level, room=room)
    means = CompressionSettings(ProcessPacker(), packing, key_ring(section))
    return Mirror(archive, options, means, (uuid, token), section.mirror.interval_s)
