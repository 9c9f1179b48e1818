"""An archive whose files move between tiers, and its invariants wherever they are."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from relay.archive.archive import Archive
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import TEMPORARY_SUFFIX, FileLayer, StoredFile
from relay.archive.storage.storage_location import GONE_SUFFIX, Tier
from relay.object_store.object_store import ObjectStore
from relay.object_store.stored_object import StoredObject
from relay.packed.byte_source import ByteSource
from relay.packed.key_ring import KeyRing
from relay.packed.packed_facts import plain_name
from relay.packed.packed_reader import PackedReader
from tests.support.generation_filling import A, append_files, mysql_series

RING: Final = KeyRing({"one": bytes(range(32))}, "one")


async def fill_archive(directory: Path, files: int = 4, transactions: int = 300) -> dict[str, bytes]:
    """Return an archive with so many sealed files and one that grows; by name their bytes."""
    archive = await Archive.open(directory)
    insides = [f"{A}:{number * transactions + 1}-{(number + 1) * transactions}" for number in range(files)]
    series = mysql_series(1, *insides, f"{A}:{files * transactions + 1}")
    await append_files(archive, series)
    await digests_made(archive)
    await archive.close()
    return {name: bytes(data) for name, data in series}


async def digests_made(archive: Archive) -> None:
    """Wait until every sealed file has its digest."""
    import asyncio

    for generation in archive.all:
        while any(file.sealed and file.digest is None for file in generation.files):
            await asyncio.sleep(0.005)


def stored_source(directory: Path, file: ArchivedFile, store: ObjectStore | None) -> ByteSource:
    """Return the packed bytes of a file that is not hot. The archive's directory is its first generation's."""
    assert file.place is not None
    if file.place.tier is Tier.COLD:
        return StoredFile.open(FileLayer(), directory / file.place.stored_name)
    assert store is not None
    return StoredObject(store, file.place.stored_name)


def archived_bytes(directory: Path, file: ArchivedFile, store: ObjectStore | None) -> bytes:
    """Return the binlog, from where it is recorded to be."""
    if file.place is None:
        return (directory / file.name).read_bytes()
    return PackedReader.open(stored_source(directory, file, store), file.name, RING).read_all()


def check_whole(
    archive: Archive, wanted: Mapping[str, bytes], store: ObjectStore | None, *, gone_too: bool = False
) -> None:
    """Check that everything exists, each file in one place only, and nothing half made. With `gone_too` the bucket may still have
    purged ones."""
    directory = archive.directory
    held = {file.name: file for file in archive.current.files}
    assert held.keys() == wanted.keys()
    for name, file in held.items():
        assert archived_bytes(directory, file, store) == wanted[name], (name, file.place)
    left = set(os.listdir(directory))
    for name in left:
        assert not name.endswith(TEMPORARY_SUFFIX), name
        assert gone_too or not name.endswith(GONE_SUFFIX), name
        binlog = plain_name(name)
        if binlog is not None:
            place = held[binlog].place
            assert place is not None and place.tier is Tier.COLD and place.stored_name == name, (name, place)
    for name, file in held.items():
        assert (name in left) == (file.place is None)
        assert (f"{name}.place" in left) == (file.place is not None)


def check_bucket(archive: Archive, store: ObjectStore) -> None:
    """Check that the bucket contains the files that the archive's record has there, completely, and no others."""
    held = {file.name: file for file in archive.current.files}
    packed = {facts.key: facts for facts in store.list() if plain_name(facts.key) is not None}
    for name, file in held.items():
        if file.place is not None and file.place.tier is Tier.OBJECT:
            assert packed.pop(file.place.stored_name).size == file.place.stored_bytes, name
    assert not packed
