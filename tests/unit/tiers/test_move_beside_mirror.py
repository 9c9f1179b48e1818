"""A relay with a mirror and tiers has both in one bucket: a move makes nothing there worse, and a restore gives all of it back."""

import shutil
import tomllib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.archive.storage.storage_location import Tier, read_place
from relay.archive_inspection.listing import read_ledger
from relay.bucket_copy.mirror_errors import RestoreRefused
from relay.config.sections import ArchiveSection
from relay.object_store.archive_object import ARCHIVE_KEY, read_archive_object
from relay.object_store.object_store import ObjectStore
from relay.packed.packed_reader import PackedReader
from relay.packed.packing import PackOptions
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules
from relay.tiers.tier_setup import tier_mover
from tests.support.mirrored_archive import bucket, copied, filled, mirror, restored
from tests.support.tier_archive import archived_bytes, digests_made

COLD = TierRules(hot_bytes=1)
ALL = TierRules(hot_bytes=1, cold_bytes=1)
FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"


async def copied_archive(tmp_path: Path) -> Archive:
    """Two sealed files and one that grows, all of it copied by the mirror."""
    archive = await filled(tmp_path)
    await digests_made(archive)
    await copied(archive, mirror(tmp_path))
    return archive


@pytest.fixture
async def archive(tmp_path: Path) -> AsyncIterator[Archive]:
    archive = await copied_archive(tmp_path)
    yield archive
    await archive.close()


async def move(archive: Archive, rules: TierRules, store: ObjectStore | None = None, *, level: int = 3) -> TierMover:
    mover = TierMover(archive, rules, PackOptions(level=level), store=store)
    await mover.run_once()
    await mover.close()
    return mover


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 4
    path.write_bytes(data)


def read_copy(store: ObjectStore, name: str) -> bytes:
    from relay.object_store.stored_object import StoredObject

    return PackedReader.open(StoredObject(store, f"{name}.zst"), name).read_all()


async def test_a_whole_copy_of_the_mirror_is_what_a_moved_file_becomes(archive: Archive, tmp_path: Path) -> None:
    store = bucket(tmp_path)
    wanted = {name: (archive.directory / name).read_bytes() for name in (FIRST, SECOND)}
    before = store.get(f"{FIRST}.zst")
    await move(archive, ALL, store, level=19)
    assert store.get(f"{FIRST}.zst") == before, "it was written over"
    assert [str(file.tier) for file in archive.current.files] == ["object", "object", "hot"]
    for file in archive.current.files[:2]:
        assert archived_bytes(archive.directory, file, store) == wanted[file.name]


async def test_a_packed_file_that_the_disk_has_changed_does_not_go_over_the_good_copy(
    archive: Archive, tmp_path: Path
) -> None:
    store = bucket(tmp_path)
    wanted = (archive.directory / FIRST).read_bytes()
    await move(archive, COLD)
    flip(archive.directory / f"{FIRST}.zst", 60)
    await move(archive, ALL, store)
    assert read_copy(store, FIRST) == wanted
    assert archived_bytes(archive.directory, archive.current.files[0], store) == wanted


async def test_a_packed_file_that_the_disk_has_changed_is_not_uploaded_and_said_to_be_damaged(
    archive: Archive, tmp_path: Path
) -> None:
    await move(archive, COLD)
    flip(archive.directory / f"{FIRST}.zst", 60)
    shutil.rmtree(tmp_path / "bucket")
    store = bucket(tmp_path)
    mover = await move(archive, ALL, store)
    assert not [facts.key for facts in store.list() if facts.key.startswith(FIRST)]
    assert [str(file.tier) for file in archive.current.files] == ["cold", "object", "hot"]
    assert f"{FIRST}.zst on the disk is not what was packed: frame 0" in mover.status.failure
    assert archive.current.damaged_files.first(FIRST) is not None
    [told] = [row for row in read_ledger(archive.directory) if row.kind == "move_failed"]
    assert "Nothing was uploaded: the disk has changed the file" in told.text


@pytest.mark.parametrize("download", [False, True], ids=["stays", "downloaded"])
async def test_a_relay_that_dies_in_the_middle_of_an_upload_can_be_restored(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, download: bool
) -> None:
    """Between the object and its note, with another level than the mirror's."""

    def dies(store: ObjectStore, key: str, data: bytes) -> None:
        raise OSError("the host is gone")

    await move(archive, COLD, level=19)
    monkeypatch.setattr(ObjectStore, "put_bytes", dies)
    await move(archive, ALL, bucket(tmp_path), level=19)
    monkeypatch.undo()
    assert [str(file.tier) for file in archive.current.files] == ["cold", "cold", "hot"]
    assert restored(tmp_path, download=download).files == 2


@pytest.mark.parametrize("is_whole", [True, False])
async def test_an_object_that_was_not_noted_is_restored_where_it_has_the_binlog(
    archive: Archive, tmp_path: Path, is_whole: bool
) -> None:
    """As an earlier version left it that died in the middle of an upload, or as somebody has changed it."""
    wanted = (archive.directory / FIRST).read_bytes()
    (archive.directory / "server_uuid").write_text("relay-a\n")
    await move(archive, COLD, level=19)
    data = (archive.directory / f"{FIRST}.zst").read_bytes()
    (tmp_path / "bucket" / f"{FIRST}.zst").write_bytes(data if is_whole else data[:-1])
    if not is_whole:
        with pytest.raises(RestoreRefused, match=r"and not the binlog that was archived .* nothing was restored"):
            restored(tmp_path, download=False)
        return
    assert restored(tmp_path, download=False).files == 2
    again = await Archive.open(tmp_path / "again" / "source")
    assert archived_bytes(again.directory, again.current.files[0], bucket(tmp_path)) == wanted
    await again.close()


async def test_a_relay_that_dies_before_the_packed_file_is_removed_has_it_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bucket's copy is packed otherwise: what was noted of that is not said of the file on the disk."""
    archive = await copied_archive(tmp_path)
    wanted = (archive.directory / FIRST).read_bytes()
    await move(archive, COLD, level=19)
    monkeypatch.setattr("relay.tiers.file_move.FileMover.drop", lambda *_arguments: None)
    await move(archive, ALL, bucket(tmp_path))
    monkeypatch.undo()
    await archive.close()
    again = await Archive.open(archive.directory)
    file = again.current.files[0]
    place = read_place(again.directory / FIRST)
    assert place == file.place and place is not None and place.tier is Tier.COLD
    assert place.stored_bytes == (again.directory / f"{FIRST}.zst").stat().st_size
    await move(again, ALL, bucket(tmp_path))
    assert [str(one.tier) for one in again.current.files] == ["object", "object", "hot"]
    assert archived_bytes(again.directory, again.current.files[0], bucket(tmp_path)) == wanted
    await again.close()


@pytest.mark.parametrize("is_mirror", [True, False], ids=["mirror", "tiers alone"])
async def test_what_is_purged_stays_in_a_mirror_s_bucket_and_goes_from_another_one(
    tmp_path: Path, is_mirror: bool
) -> None:
    """After a restore all binlogs are in the bucket alone: they are what a purge must not remove there."""
    archive = await copied_archive(tmp_path)
    await archive.close()
    about = read_archive_object(bucket(tmp_path))
    assert about is not None
    bucket(tmp_path).put_bytes(ARCHIVE_KEY, replace(about, time=0.0).encode())  # the lost relay is long gone
    restored(tmp_path, download=False)
    again = await Archive.open(tmp_path / "again" / "source")
    text = f'dir = "{tmp_path}/again"\n[bucket]\nurl = "file://{tmp_path}/bucket"\n' + (
        "[mirror]\n" if is_mirror else ""
    )
    section = ArchiveSection.model_validate(tomllib.loads(text))
    await again.current.purge([FIRST], "keep_for")
    mover = tier_mover(section, again, lambda: None, "relay-a", "this process")
    assert mover is not None
    await mover.run_once()
    await mover.close()
    left = {facts.key for facts in bucket(tmp_path).list() if facts.key.startswith(FIRST)}
    assert left == ({f"{FIRST}{suffix}" for suffix in (".zst", ".idx", ".gtx", ".place")} if is_mirror else set())
    assert mover.status.gone_files == 0 and not list(again.directory.glob("*.gone"))
    await again.close()
