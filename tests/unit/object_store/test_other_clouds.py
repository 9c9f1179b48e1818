"""Google's and Azure's storage, by their emulators: what tiers and the mirror do with a bucket, done with these."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.archive_inspection.verify import verify_archive
from relay.mirror.mirror_pass import MirrorPass
from relay.mirror.restoring import restore_archive
from relay.object_store.archive_object import Ownership
from relay.object_store.object_errors import ObjectDamaged, ObjectMissing, StoreRefused
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.packing import PackOptions
from relay.packing_process.compression_settings import CompressionSettings
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.cloud_emulators import azure_emulator, google_emulator
from tests.support.mirrored_archive import copied, filled
from tests.support.tier_archive import RING, check_bucket, check_whole, fill_archive

LARGE = bytes(range(256)) * 80_000


@pytest.fixture(scope="module", params=[google_emulator, azure_emulator], ids=["google", "azure"])
def options(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreOptions]:
    with request.param(tmp_path_factory.mktemp("cloud") / "emulator") as made:
        yield made


def place(options: StoreOptions, name: str) -> StoreOptions:
    """One of its own for each test."""
    return replace(options, url=f"{options.url}/{name}")


def test_objects_are_made_read_listed_and_removed(options: StoreOptions, tmp_path: Path) -> None:
    store = ObjectStore(place(options, "objects"))
    (tmp_path / "large").write_bytes(LARGE)
    store.put_file("large", tmp_path / "large")  # in four parts
    store.put_bytes("small", b"one")
    store.put_bytes("small", b"other")
    store.put_bytes("folder/in it", b"")
    assert store.get("large") == LARGE
    assert store.get("small") == b"other"
    assert store.get_range("large", 6 << 20, (6 << 20) + 300) == LARGE[6 << 20 : (6 << 20) + 300]
    assert store.get_tail("large", 2) == (b"\xfe\xff", len(LARGE))
    assert store.get_tail("small", 100) == (b"other", 5)
    with pytest.raises(ObjectDamaged, match="it has 5 bytes"):
        store.get_range("small", 3, 9)
    assert [(facts.key, facts.size) for facts in store.list()] == [
        ("folder/in it", 0),
        ("large", len(LARGE)),
        ("small", 5),
    ]
    assert [facts.key for facts in store.list("folder")] == ["folder/in it"]
    assert [facts.key for facts in store.list(after="large")] == ["small"]
    store.delete(["large", "never there", "small"])
    with pytest.raises(ObjectMissing):
        store.get("large")
    with pytest.raises(ObjectMissing):
        store.head("large")
    assert [facts.key for facts in store.list()] == ["folder/in it"]


def test_a_listing_goes_on_behind_a_page(options: StoreOptions) -> None:
    store = ObjectStore(place(options, "many"))
    names = [f"mysql-bin.{number:06d}.place" for number in range(1_050)]
    for name in names:
        store.put_bytes(name, b"x")
    assert [facts.key for facts in store.list()] == names


def test_a_bucket_that_is_not_there_is_named(options: StoreOptions) -> None:
    elsewhere = ObjectStore(replace(options, url=options.url.replace("binlogs", "elsewhere")))
    with pytest.raises((ObjectMissing, StoreRefused), match="elsewhere"):
        elsewhere.get("x")


async def test_binlogs_move_there_are_read_and_are_purged_there(options: StoreOptions, tmp_path: Path) -> None:
    store = ObjectStore(place(options, "tiers"))
    wanted = await fill_archive(tmp_path / "archive", 3, 60)
    archive = await Archive.open(tmp_path / "archive")
    rules, packing = TierRules(hot_bytes=1, cold_bytes=1), PackOptions(level=1, frame_bytes=8192)
    mover = TierMover(archive, rules, packing, keys=RING, store=store)
    await mover.run_once()
    assert [str(file.tier) for file in archive.current.files] == ["object", "object", "object", "hot"]
    check_whole(archive, wanted, store)
    check_bucket(archive, store)
    await archive.current.purge([file.name for file in archive.current.files[:-1]], "by a test")
    await mover.run_once()
    await mover.close()
    await archive.close()
    assert list(store.list()) == []


async def test_a_mirror_s_copy_there_gives_the_archive_back(options: StoreOptions, tmp_path: Path) -> None:
    store = ObjectStore(place(options, "mirror"))
    archive = await filled(tmp_path)
    ownership = Ownership(store, "relay-a", archive.directory, 0.0)
    await copied(archive, MirrorPass(store, ownership, CompressionSettings(keys=RING), store.stopping))
    end = archive.current.end
    await archive.close()
    told = restore_archive(store, tmp_path / "again" / "source", RING, download=True)
    assert (told.files, told.end) == (2, end)
    await (await Archive.open(tmp_path / "again" / "source")).close()
    assert list(verify_archive(tmp_path / "again" / "source", deep=True)) == []
