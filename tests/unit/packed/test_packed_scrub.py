"""The scrub of binlogs that are packed on the disk: their stored bytes are read, damage is named by place, and no more is."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer, StoredFile
from relay.archive.storage.storage_location import StorageLocation
from relay.archive.write.options import ArchiveOptions
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.scrub import Scrub
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.key_ring import KeyRing
from relay.packed.packed_file import PackedFile
from relay.packed.packing import PackOptions
from relay.packed_reads.packed_check import check_stored
from relay.packed_reads.packed_files import PackedFiles
from relay.packed_reads.shared_frames import SharedFrames
from relay.packed_reads.tiered_layer import TieredLayer
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.tier_archive import RING, fill_archive
from tests.unit.archive.test_scrub import settled

SECOND = "mysql-bin.000002"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files packed and encrypted, one as it was received."""
    place = tmp_path_factory.mktemp("packed") / "archive"

    async def make() -> None:
        await fill_archive(place)
        archive = await Archive.open(place)
        mover = TierMover(archive, TierRules(hot_bytes=1), PackOptions(level=1, frame_bytes=8192), keys=RING)
        await mover.run_once()
        await mover.close()
        await archive.close()

    asyncio.run(make())
    return place


class Scrubbed:
    """An archive that is open, with its scrub."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.layer = TieredLayer(PackedFiles(directory, SharedFrames(1 << 20), RING, None))
        self.stored = directory / f"{SECOND}.zst.enc"
        self.archive: Archive

    def change(self, at: int) -> None:
        data = bytearray(self.stored.read_bytes())
        data[at] ^= 1
        self.stored.write_bytes(data)

    async def scrub(self) -> str:
        """All is read once; what the ledger then has of file 2."""
        work = Scrub(self.archive, None, self.layer)
        work.begin()
        work.hurry()
        await settled(work)
        await work.close()
        return work.status.last


@pytest.fixture
async def scrubbed(template: Path, tmp_path: Path) -> AsyncIterator[Scrubbed]:
    shutil.copytree(template, tmp_path / "archive")
    made = Scrubbed(tmp_path / "archive")
    made.archive = await Archive.open(made.directory, ArchiveOptions(layer=made.layer))
    yield made
    await made.archive.close()
    made.layer.packed.close()


async def test_packed_files_that_are_sound_are_checked_and_that_is_remembered(scrubbed: Scrubbed) -> None:
    await scrubbed.scrub()
    generation = scrubbed.archive.current
    assert sorted(generation.integrity.checks) == [1, 2, 3, 4]
    assert generation.damaged_files.all == []


async def test_a_damaged_frame_is_named_by_its_place_and_nothing_before_it_is_lost(scrubbed: Scrubbed) -> None:
    frames = PackedFile.open(StoredFile.open(FileLayer(), scrubbed.stored), SECOND, RING).frames
    assert len(frames) > 3
    scrubbed.change(frames[2].stored_start + 20)
    await scrubbed.scrub()
    generation = scrubbed.archive.current
    [place] = generation.damaged_files.all
    assert (place.file, place.offset) == (SECOND, frames[2].plain_start)
    assert 0 < place.boundary <= place.offset
    assert "frame 2 is not what was encrypted there" in place.text
    assert sorted(generation.integrity.checks) == [1, 3, 4]
    # The sound file is put back: that is found too.
    scrubbed.change(frames[2].stored_start + 20)
    await scrubbed.scrub()
    assert generation.damaged_files.all == []
    await scrubbed.archive.close()
    rows = [row for row in read_ledger(scrubbed.directory) if row.file == SECOND]
    assert [row.kind for row in rows] == ["damaged", "sound_again"]
    assert "archive repair" in rows[0].text


@pytest.mark.parametrize("damage", ["end", "cut", "gone"])
async def test_a_packed_file_without_its_end_or_at_all_is_damaged_as_a_whole(scrubbed: Scrubbed, damage: str) -> None:
    size = scrubbed.stored.stat().st_size
    if damage == "end":
        scrubbed.change(size - 10)
    elif damage == "cut":
        scrubbed.stored.write_bytes(scrubbed.stored.read_bytes()[:-1])
    else:
        scrubbed.stored.unlink()
    await scrubbed.scrub()
    [place] = scrubbed.archive.current.damaged_files.all
    assert (place.file, place.boundary) == (SECOND, 0)


def checked(scrubbed: Scrubbed, file: ArchivedFile, place: StorageLocation, keys: KeyRing | None) -> list[str]:
    with StoredFile.open(FileLayer(), scrubbed.stored) as source:
        return [finding.text for finding in check_stored(source, file, place, keys, lambda offset: offset)]


async def test_without_its_key_the_stored_bytes_are_compared_and_a_wrong_one_is_named(scrubbed: Scrubbed) -> None:
    file = scrubbed.archive.current.files[1]
    assert file.place is not None
    assert checked(scrubbed, file, file.place, None) == []
    [wrong] = checked(scrubbed, file, file.place, KeyRing({"one": b"x" * 32}, None))
    assert "'one'" in wrong and "damaged" not in wrong
    scrubbed.change(500)
    [found] = checked(scrubbed, file, file.place, None)
    assert "is not what was stored: its SHA-256 is another" in found


async def test_a_scrub_that_is_told_to_stop_ends_within_a_frame(scrubbed: Scrubbed) -> None:
    work = Scrub(scrubbed.archive, 1e12, scrubbed.layer)
    work._all_since = 1e12  # all is due, and there is time
    work.begin()
    await asyncio.sleep(0.05)
    async with asyncio.timeout(10):
        await work.close()


async def test_a_file_that_its_bucket_seemed_to_have_lost_is_sound_when_it_is_there_again(
    template: Path, tmp_path: Path
) -> None:
    shutil.copytree(template, tmp_path / "archive")
    store = ObjectStore(StoreOptions(f"file://{tmp_path}/bucket"))
    layer = TieredLayer(PackedFiles(tmp_path / "archive", SharedFrames(1 << 20), RING, store))
    archive = await Archive.open(tmp_path / "archive", ArchiveOptions(layer=layer))
    mover = TierMover(archive, TierRules(hot_bytes=1, cold_bytes=1), PackOptions(level=1), keys=RING, store=store)
    await mover.run_once()
    await mover.close()
    stored = tmp_path / "bucket" / f"{SECOND}.zst.enc"
    stored.rename(tmp_path / "away")
    archive.current.damaged_files.report(ArchiveDamaged("there is no such object", file=SECOND, offset=0, boundary=0))

    async def scrub() -> list[str]:
        work = Scrub(archive, None, layer)
        work.begin()
        work.hurry()
        await settled(work)
        await work.close()
        return [place.file for place in archive.current.damaged_files.all]

    assert await scrub() == [SECOND]
    (tmp_path / "away").rename(stored)
    assert await scrub() == []
    await archive.close()
    layer.packed.close()
