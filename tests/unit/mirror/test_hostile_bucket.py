"""Some of `python -m tests.hostile_bucket`, and what it must find by name: swapped, older, removed, and a copy that goes on."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.bucket_copy.bucket_gaps import HolesWanted
from relay.bucket_copy.bucket_manifest import MANIFEST_KEY, read_manifest
from relay.bucket_copy.checked_copy import WantedCopy
from relay.bucket_copy.manifest_keeper import ManifestKeeper
from relay.bucket_copy.mirror_errors import RestoreRefused
from relay.bucket_copy.signed_object import Signer
from relay.mirror.bucket_origin import BucketOrigin
from relay.object_store.archive_object import ARCHIVE_KEY, read_archive_object
from relay.packed.key_ring import KeyRing
from relay.packed_reads.archive_layer import archive_layer
from relay.packed_reads.shared_frames import SharedFrames
from tests.hostile_bucket import Campaign, MadeArchive
from tests.support.generation_filling import A, append_files, mysql_series
from tests.support.mirrored_archive import KEYS, bucket, copied, filled, mirror, restored

FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"


@pytest.fixture(scope="module", params=[None, KEYS], ids=["plain", "encrypted"])
def campaign(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return Campaign(tmp_path_factory.mktemp("campaign"), request.param)


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return Campaign(tmp_path_factory.mktemp("encrypted"), KEYS)


@pytest.fixture
def made(encrypted: Campaign) -> Iterator[MadeArchive]:
    """With its bucket as the relay left it."""
    made = encrypted._made
    shutil.rmtree(made.place / "bucket")
    for key, data in made.states[-1].items():
        path = made.place / "bucket" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    yield made
    shutil.rmtree(made.place / "again", ignore_errors=True)


def test_whatever_is_done_to_a_bucket_nothing_else_comes_of_it_than_what_was_archived(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.packed_reads.packed_frames._PAUSE_S", 0.0)
    for seed in range(30):
        campaign.run(seed)
    assert min(campaign.counts.values()) > 0, campaign.counts


@pytest.mark.parametrize("download", [False, True], ids=["stays", "downloaded"])
@pytest.mark.parametrize("what", ["all of it", "the packed file", "another generation"])
def test_a_whole_binlog_of_another_archive_with_the_same_key_is_not_taken(
    made: MadeArchive, encrypted: Campaign, what: str, download: bool
) -> None:
    there = made.place / "bucket"
    if what == "another generation":
        for path in there.glob(f"g0002/{FIRST}.*"):
            shutil.copy(path, there / path.name)
    else:
        for key, data in encrypted._other.states[-1].items():
            if key.startswith(FIRST) and (what == "all of it" or key.endswith(".enc")):
                (there / key).write_bytes(data)
    with pytest.raises(
        RestoreRefused,
        match=rf"{FIRST}\.(place: it (is|was written as)|zst\.enc: it is of|zst\.enc is not what was|zst\.enc has)",
    ):
        restored(made.place, KEYS, download=download)
    layer = archive_layer(made.place / "archive" / "source", SharedFrames(1 << 24), bucket(made.place), KEYS)
    with layer.stored(made.place / "archive" / "source" / FIRST) as read, pytest.raises(ArchiveDamaged):
        read.read_all()
    layer.packed.close()


def test_an_older_state_of_all_of_it_is_told_by_the_number_that_somebody_noted(made: MadeArchive) -> None:
    shutil.rmtree(made.place / "bucket")
    for key, data in made.states[1].items():
        path = made.place / "bucket" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    least = made.numbers[-1]
    with pytest.raises(RestoreRefused, match=rf"has the number {made.numbers[1]}, and {least} or more is wanted"):
        restored(made.place, KEYS, wanted=WantedCopy(at_least=least))
    told = restored(made.place, KEYS)
    assert (told.manifest, told.is_signed, told.files) == (made.numbers[1], True, 2)


def test_newer_objects_beside_an_older_manifest_and_older_ones_beside_a_newer_are_named(made: MadeArchive) -> None:
    there = made.place / "bucket"
    there.joinpath(MANIFEST_KEY).write_bytes(made.states[0][MANIFEST_KEY])
    for key, data in made.states[0].items():
        if "manifest-" in key:
            (there / key).write_bytes(data)
    with pytest.raises(RestoreRefused, match="an older manifest was put back, or it was removed"):
        restored(made.place, KEYS)
    there.joinpath(MANIFEST_KEY).write_bytes(made.states[-1][MANIFEST_KEY])
    there.joinpath("g0002", "ledger.jsonl").write_bytes(made.states[-1]["ledger.jsonl"])
    with pytest.raises(RestoreRefused, match=r"it was written as 'ledger\.jsonl'"):
        restored(made.place, KEYS)
    there.joinpath("g0002", "ledger.jsonl").write_bytes(made.states[-1]["g0002/ledger.jsonl"])
    there.joinpath("ledger.jsonl").write_bytes(made.states[0]["ledger.jsonl"])
    with pytest.raises(RestoreRefused, match="is not the one that the manifest lists"):
        restored(made.place, KEYS)
    told = restored(made.place, KEYS, wanted=WantedCopy(accept_changed=True))
    assert len(told.doubts) == 1 and "ledger.jsonl" in told.doubts[0]


def test_the_newest_binlogs_that_were_removed_are_a_hole_and_the_oldest_are_named(made: MadeArchive) -> None:
    there = made.place / "bucket"
    for path in there.glob("g0002/mysql-bin.00000[23].*"):
        path.unlink()
    with pytest.raises(RestoreRefused, match=r"g0002/mysql-bin\.000002 .*is listed in the manifest, and was removed"):
        restored(made.place, KEYS)
    assert restored(made.place, KEYS, holes=HolesWanted.BEFORE).end.file == FIRST
    shutil.rmtree(made.place / "again")
    for path in there.glob(f"{FIRST}.*"):
        path.unlink()
    assert restored(made.place, KEYS, holes=HolesWanted.BEFORE).removed == (FIRST,)


async def test_the_copy_goes_on_with_another_key_under_another_uuid_and_behind_a_restore(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    await copied(archive, mirror(tmp_path, keys=KEYS))
    await archive.close()
    assert restored(tmp_path, KEYS).is_signed
    ring = KeyRing({"one": bytes(32), "two": b"2" * 32}, "two")
    about = read_archive_object(bucket(tmp_path))
    assert about is not None
    # As long ago as a relay that was stopped.
    (tmp_path / "bucket" / ARCHIVE_KEY).write_bytes(replace(about, time=0.0).encode())
    again = await Archive.open(tmp_path / "again" / "source")
    going_on = mirror(tmp_path, keys=ring, place=tmp_path / "again")
    await append_files(again, mysql_series(4, f"{A}:10-12", start=f"{A}:1-9"))
    await copied(again, going_on)
    assert going_on.troubles == [] and going_on.others == [] and going_on.files == 1, (
        "what is there is not copied again"
    )
    store = bucket(tmp_path)
    manifest = read_manifest(store, Signer(ring))
    assert manifest is not None and manifest.key_id == "two"
    ManifestKeeper(store, ring, again.directory, "relay-b").claim()
    claimed = read_manifest(store, Signer(ring))
    assert claimed is not None and claimed.archives == ("relay-b", "relay-a")
    await again.close()
    shutil.rmtree(tmp_path / "again")
    assert restored(tmp_path, ring).files == 3


@pytest.mark.parametrize("keys", [None, KEYS], ids=["plain", "encrypted"])
async def test_a_relay_tells_a_manifest_that_is_not_its_own_and_copies_again_what_it_has(
    tmp_path: Path, keys: KeyRing | None
) -> None:
    archive = await filled(tmp_path)
    await copied(archive, mirror(tmp_path, keys=keys))
    there, old = tmp_path / "bucket", tmp_path / "old"
    shutil.copytree(there, old)
    await append_files(archive, mysql_series(4, f"{A}:10-12", start=f"{A}:1-9"))
    await copied(archive, mirror(tmp_path, keys=keys))
    shutil.rmtree(there)
    shutil.copytree(old, there)
    starting = mirror(tmp_path, keys=keys)
    await copied(archive, starting)
    [trouble] = starting.troubles
    assert "an older one was put back, or somebody else wrote there" in trouble
    assert restored(tmp_path, keys, wanted=WantedCopy(at_least=starting.manifest.manifest.sequence)).files == 3
    shutil.rmtree(tmp_path / "again")
    (there / MANIFEST_KEY).unlink()
    with pytest.raises(
        RestoreRefused, match=r"written with|was put there with manifest \d+, and the manifest there has the number 0"
    ):
        restored(tmp_path, keys)
    origin = BucketOrigin(bucket(tmp_path), "", keys, archive.directory)
    with pytest.raises(Exception, match="was removed"):
        await origin.fetch(FIRST, tmp_path)
    await archive.close()
