"""An object in the place of another one is never served, encrypted or not: the note on the relay's own disk says which one it was."""

import asyncio
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.byte_source import BytesInMemory
from relay.packed.key_ring import KeyRing
from relay.packed.packed_facts import OfArchive
from relay.packed.packed_file import PackedFile
from relay.packed.packing import PackOptions, pack
from relay.packed_reads.archive_layer import archive_layer
from relay.packed_reads.shared_frames import SharedFrames
from relay.tiers.tier_check import TierCheck
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.tier_archive import RING, fill_archive

FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"
WHOSE = OfArchive("relay-a", 1)
OPTIONS = PackOptions(level=1, frame_bytes=8192)


def bucket_of(place: Path) -> ObjectStore:
    return ObjectStore(StoreOptions(f"file://{place}/bucket"))


async def moved(place: Path, keys: KeyRing | None) -> dict[str, bytes]:
    """An archive whose sealed files are all in the bucket; by name their bytes."""
    wanted = await fill_archive(place / "archive", 2, 60)
    (place / "archive" / "server_uuid").write_text(f"{WHOSE.archive}\n")
    archive = await Archive.open(place / "archive")
    for rules in (TierRules(hot_bytes=1), TierRules(cold_bytes=1)):
        mover = TierMover(archive, rules, OPTIONS, keys=keys, store=bucket_of(place))
        await mover.run_once()
        await mover.close()
    assert [str(file.tier) for file in archive.current.files] == ["object", "object", "hot"]
    await archive.close()
    return wanted


def other_of(plain: bytes, keys: KeyRing | None, stored: bytes) -> bytes:
    """Another binlog, packed so that its frames have the sizes of the one that is stored."""
    frames = PackedFile.open(BytesInMemory(stored), FIRST, keys).frames
    for at in range(600, 8000):
        evil = bytearray(plain)
        evil[at] ^= 1
        made: list[bytes] = []
        cuts = [one.plain_stop for one in frames]
        pack(BytesInMemory(bytes(evil)), made.append, FIRST, cuts, OPTIONS, keys=keys, of=WHOSE)
        found = PackedFile.open(BytesInMemory(b"".join(made)), FIRST, keys).frames
        if [one.stored_size for one in found] == [one.stored_size for one in frames]:
            return b"".join(made)
    raise AssertionError


@pytest.mark.parametrize("keys", [None, RING], ids=["plain", "encrypted"])
def test_of_a_swapped_object_nothing_is_read_and_the_others_are(tmp_path: Path, keys: KeyRing | None) -> None:
    wanted = asyncio.run(moved(tmp_path, keys))
    suffix = ".zst" if keys is None else ".zst.enc"
    stored = tmp_path / "bucket" / (FIRST + suffix)
    whole = stored.read_bytes()
    other = other_of(wanted[FIRST], keys, whole)
    assert other != whole
    frames = PackedFile.open(BytesInMemory(whole), FIRST, keys).frames
    start, stop = frames[0].stored_start, frames[0].stored_stop
    # Whole, with the right size by chance or not, and one frame alone.
    for change in (other, other[: len(whole)].ljust(len(whole), b"\0"), other[start:stop] + whole[stop:]):
        stored.write_bytes(change)
        layer = archive_layer(tmp_path / "archive", SharedFrames(1 << 24), bucket_of(tmp_path), keys)
        with layer.stored(tmp_path / "archive" / FIRST) as read, pytest.raises(ArchiveDamaged) as told:
            read.read_all()
        assert told.value.file == FIRST and "is not what was packed" in str(told.value)
        with layer.stored(tmp_path / "archive" / SECOND) as read:
            assert read.read_all() == wanted[SECOND]
        layer.packed.close()


@pytest.mark.parametrize("keys", [None, RING], ids=["plain", "encrypted"])
def test_verify_tells_an_object_of_the_same_size_without_reading_all_of_it(
    tmp_path: Path, keys: KeyRing | None
) -> None:
    wanted = asyncio.run(moved(tmp_path, keys))
    stored = tmp_path / "bucket" / (FIRST + (".zst" if keys is None else ".zst.enc"))
    whole = stored.read_bytes()
    other = other_of(wanted[FIRST], keys, whole)
    other = other[: len(whole)].ljust(len(whole), b"\0")
    stored.write_bytes(other)
    directory = tmp_path / "archive"
    check = TierCheck(directory, directory, store=bucket_of(tmp_path), keys=keys, alone=True)
    found = [finding.file for finding in check.run()]
    assert found == [FIRST]
