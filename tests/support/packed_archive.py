"""Files of an archive, packed by the test itself: beside their plain names on the disk, or in a bucket."""

import hashlib
import json
from pathlib import Path

from relay.archive.archive import Archive
from relay.archive.storage.boundary_index import AT_BOUNDARY, RECORD, index_path
from relay.archive.storage.files import FileLayer, StoredFile
from relay.archive.storage.storage_location import StorageLocation, Tier
from relay.object_store.object_store import ObjectStore
from relay.packed.frame_cuts import frame_cuts
from relay.packed.key_ring import KeyRing
from relay.packed.packed_facts import packed_name
from relay.packed.packing import PackOptions, pack


def packed_bytes(path: Path, keys: KeyRing | None = None, frame_bytes: int = 64 << 10) -> bytes:
    """Return the binlog at `path`, packed in frames that end where its index says that they can."""
    index = index_path(path)
    records = RECORD.iter_unpack(index.read_bytes()) if index.exists() else ()
    places = ((offset, bool(flags & AT_BOUNDARY)) for offset, _group, _time, flags in records)
    packed = bytearray()
    with StoredFile.open(FileLayer(), path) as plain:
        cuts = frame_cuts(places, plain.size, frame_bytes)
        assert pack(plain, packed.extend, path.name, cuts, PackOptions(frame_bytes=frame_bytes), keys=keys) is not None
    return bytes(packed)


def pack_away(
    path: Path,
    root: Path,
    store: ObjectStore | None = None,
    keys: KeyRing | None = None,
    frame_bytes: int = 64 << 10,
) -> StorageLocation:
    """Pack the binlog at `path` into the bucket, or beside it, and remove it. `root` is the archive's directory."""
    packed = packed_bytes(path, keys, frame_bytes)
    stored = path.with_name(packed_name(path.name, keys is not None))
    tier = Tier.COLD if store is None else Tier.OBJECT
    if store is None:
        stored.write_bytes(packed)
    else:
        store.put_bytes(stored.relative_to(root).as_posix(), packed)
    digest = f"sha256:{hashlib.sha256(packed).hexdigest()}"
    key_id = None if keys is None else keys.active
    place = StorageLocation(tier, stored.name, len(packed), key_id, digest, path.stat().st_size)
    told = {name: getattr(place, name) for name in StorageLocation.__slots__}
    path.with_name(f"{path.name}.place").write_text(json.dumps({"place": told}))
    path.unlink()
    return place


def pack_all_but_newest(
    archive: Archive, store: ObjectStore | None = None, keys: KeyRing | None = None, frame_bytes: int = 64 << 10
) -> None:
    """Pack the files of an open archive, whose readers are informed."""
    for generation in archive.all:
        for file in generation.files[:-1]:
            file.place = pack_away(generation.path(file.name), archive.directory, store, keys, frame_bytes)
        generation.held.moved()
