"""`archive verify` of the bucket: what nobody needs there and what lacks is found and cured, and another archive's is left alone."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import pytest

from relay.archive.archive import Archive
from relay.archive.catalog.catalog_rows import file_of, file_row
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.storage_location import LocationNote, Tier
from relay.bucket_copy.checked_copy import WantedCopy
from relay.bucket_copy.manifest_record import read_record
from relay.bucket_copy.signed_object import Signer
from relay.config import load_config
from relay.mirror.bucket_check import BucketCheck
from relay.mirror.mirror_setup import copies_of
from relay.mirror.restoring import restore_archive
from relay.object_store.archive_object import ARCHIVE_KEY, read_archive_object
from relay.packed.byte_source import BytesInMemory
from relay.packed.packed_reader import PackedReader
from relay.packed.packing import PackOptions
from relay.repair.file_origin import DirectoryOrigin
from relay.repair.repair import StoppedRepair
from relay.tiers.tier_checks import tier_checks
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.generation_filling import two_generations
from tests.support.mirrored_archive import bucket, copied, mirror, note_there
from tests.support.packed_archive import packed_bytes
from tests.support.tier_archive import digests_made, fill_archive

UUID = "11111111-2222-3333-4444-555555555555"
FIRST, SECOND, THIRD = (f"mysql-bin.00000{number}" for number in (1, 2, 3))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four sealed files and one that grows, all copied; file 2 is packed on the disk."""
    place = tmp_path_factory.mktemp("mirrored")

    async def make() -> None:
        await fill_archive(place / "archive" / "source", 4, 60)
        archive = await Archive.open(place / "archive" / "source")
        (archive.directory / "server_uuid").write_text(f"{UUID}\n")
        await copied(archive, mirror(place, UUID, place / "archive"))
        mover = TierMover(archive, TierRules(hot_bytes=1), PackOptions(level=1, frame_bytes=8192))
        await mover.run_once()
        await mover.close()
        await archive.close()

    asyncio.run(make())
    return place


@pytest.fixture
def place(template: Path, tmp_path: Path) -> Iterator[Path]:
    for name in ("archive", "bucket"):
        shutil.copytree(template / name, tmp_path / name)
    record = read_record(tmp_path / "archive" / "source", bucket(template).url())
    assert record is not None
    replace(record, url=bucket(tmp_path).url()).write(tmp_path / "archive" / "source")
    about = read_archive_object(bucket(tmp_path))
    assert about is not None
    # As long ago as a relay that was stopped.
    (tmp_path / "bucket" / ARCHIVE_KEY).write_bytes(replace(about, time=0.0).encode())
    yield tmp_path


def findings(
    place: Path, *, cure: bool = False, deep: bool = False, purged: bool = False, uuid: str = UUID
) -> list[str]:
    root = place / "archive" / "source"
    check = BucketCheck(root, bucket(place), uuid, is_mirror=True, purged=purged, deep=deep, cure=cure)
    found = check.run(begun_generations(root), None, PackOptions(level=1))
    return [f"{number} {one.file}: {one.text}".replace(f"file://{place}", "") for number, one in found]


def purge(place: Path, count: int) -> None:
    async def run() -> None:
        archive = await Archive.open(place / "archive" / "source")
        await archive.current.purge([file.name for file in archive.current.files[:count]], "by a test")
        await archive.close()

    asyncio.run(run())


def names(place: Path) -> set[str]:
    return {path.name for path in (place / "bucket").iterdir()}


def restored_files(place: Path) -> list[str]:
    target = place / "again" / "source"
    restore_archive(bucket(place), target, None, download=True)
    return sorted(name for name in os.listdir(target) if name.startswith("mysql-bin") and name.count(".") == 1)


def test_a_copy_that_is_whole_has_no_finding(place: Path) -> None:
    assert findings(place, deep=True) == []


def test_what_was_purged_from_the_archive_stays_in_the_bucket(place: Path) -> None:
    purge(place, 2)
    before = names(place)
    assert findings(place, cure=True, deep=True) == []
    assert names(place) == before
    assert restored_files(place) == [f"mysql-bin.00000{number}" for number in range(1, 6)]


def test_what_was_purged_from_the_archive_goes_from_the_bucket_when_that_is_wanted(place: Path) -> None:
    purge(place, 1)
    (place / "bucket" / f"{FIRST}.part-4-900.zst").write_bytes(b"of a purged binlog")
    (place / "bucket" / f"{THIRD}.part-4-900.zst").write_bytes(b"of one that is there as a whole")
    (place / "bucket" / "mysql-bin.000009.zst").write_bytes(b"newer than all: what a relay had that lost its disk")
    found = findings(place, purged=True)
    assert [line.partition(": ")[0] for line in found] == [
        *(f"1 {FIRST}{suffix}" for suffix in (".gtx", ".idx", ".place", ".zst")),
        *(f"1 {name}.part-4-900.zst" for name in (FIRST, THIRD)),
    ]
    assert all(line.endswith("`archive verify --purged --cure` removes it") for line in found)
    assert "is of a binlog that the archive does not hold" in found[0]
    assert "is a part of a binlog that is there as a whole" in found[-1]
    before = names(place)
    assert [line.rpartition("; ")[2] for line in findings(place, cure=True, purged=True)] == ["it was removed"] * 6
    assert before - names(place) == {line.split(": ")[0][2:] for line in found}
    assert findings(place, deep=True, purged=True) == []


def damaged_copies(place: Path) -> None:
    """Somebody removed, cut and changed objects."""
    stored = place / "bucket"
    (stored / f"{FIRST}.zst").unlink()
    data = (stored / f"{SECOND}.zst").read_bytes()
    (stored / f"{SECOND}.zst").write_bytes(data[:-1])
    (stored / f"{THIRD}.place").unlink()
    changed = bytearray((stored / "mysql-bin.000004.zst").read_bytes())
    changed[500] ^= 1
    (stored / "mysql-bin.000004.zst").write_bytes(changed)


def test_copies_that_lack_or_are_damaged_are_found_and_made_again(place: Path) -> None:
    damaged_copies(place)
    found = findings(place, deep=True)
    assert [line.partition(". ")[0] for line in found] == [
        f"1 {FIRST}: its copy lacks: /bucket/{FIRST}.zst is not there",
        f"1 {SECOND}: /bucket/{SECOND}.zst has "
        f"{(place / 'bucket' / f'{SECOND}.zst').stat().st_size} bytes, "
        f"{(place / 'bucket' / f'{SECOND}.zst').stat().st_size + 1} were stored",
        f"1 {THIRD}: its copy lacks: /bucket/{THIRD}.place is not there",
        "1 mysql-bin.000004: /bucket/mysql-bin.000004.zst is not what was stored: its SHA-256 is another",
    ]
    assert len(findings(place)) == 3, "the bytes are read with --deep alone"
    assert all("it is copied again now" in line for line in findings(place, deep=True, cure=True))
    assert findings(place, deep=True) == []
    assert restored_files(place) == [f"mysql-bin.00000{number}" for number in range(1, 6)]


async def test_a_relay_that_starts_copies_again_what_was_removed(place: Path) -> None:
    for name in (f"{FIRST}.zst", f"{THIRD}.place"):
        (place / "bucket" / name).unlink()
    archive = await Archive.open(place / "archive" / "source")
    await copied(archive, mirror(place, UUID, place / "archive"))
    await archive.close()
    assert await asyncio.to_thread(findings, place, deep=True) == []


def another_binlog(place: Path) -> None:
    """Under FIRST's name the bucket has a binlog that is sound, with its note, as long as the archive's, and is another one."""
    stored, noted = place / "bucket" / f"{FIRST}.zst", place / "bucket" / f"{FIRST}.place"
    plain = bytearray(PackedReader.open(BytesInMemory(stored.read_bytes()), FIRST).read_all())
    plain[100] ^= 1
    (place / "other").mkdir()
    (place / "other" / FIRST).write_bytes(plain)
    packed = packed_bytes(place / "other" / FIRST)
    note = note_there(place, FIRST)
    file = file_of(note.file_row)
    file.digest = f"crc32:{crc32(plain):08x}"
    there = replace(note.place, stored_bytes=len(packed), digest=f"sha256:{sha256(packed).hexdigest()}")
    stored.write_bytes(packed)
    forged = LocationNote(there, file_row(file), note.gtids).encode()
    noted.write_bytes(Signer(None).sign(noted.name, forged, UUID, 1))


def test_another_binlog_in_the_place_of_one_is_found_by_its_note_and_copied_again(place: Path) -> None:
    another_binlog(place)
    [found] = findings(place)
    assert f"/bucket/{FIRST}.place: it is not the one that the manifest lists" in found
    findings(place, cure=True)
    assert findings(place, deep=True) == []


async def test_a_relay_that_starts_compares_the_newest_binlogs_there_by_their_notes(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = place / "bucket" / f"{SECOND}.zst"
    stored.write_bytes(stored.read_bytes()[:-1])
    another_binlog(place)
    archive = await Archive.open(place / "archive" / "source")
    for compared, others in ((2, []), (3, [SECOND]), (20, [FIRST])):
        monkeypatch.setattr("relay.mirror.mirror_pass._COMPARED", compared)
        starting = mirror(place, UUID, place / "archive")
        await copied(archive, starting)
        assert [name for name, _what in starting.others] == others
    await archive.close()
    assert await asyncio.to_thread(findings, place, deep=True) == []


def test_nothing_is_cured_in_the_bucket_of_another_archive_or_of_a_relay_that_took_over(place: Path) -> None:
    purge(place, 1)
    damaged_copies(place)
    before = names(place)
    [found] = findings(place, cure=True, uuid="another")
    assert "the bucket is not this relay's now" in found and "the copy of another archive" in found
    about = read_archive_object(bucket(place))
    assert about is not None
    taken = replace(about, host="new-host", token="other", time=1e11)
    (place / "bucket" / ARCHIVE_KEY).write_bytes(taken.encode())
    [found] = findings(place, cure=True)
    assert "written by another process of this archive, on new-host" in found
    assert names(place) == before


def config_of(place: Path, *, is_mirror: bool = True) -> Path:
    path = place / "relay.toml"
    path.write_text(
        f"""
[source]
name = "source"
host = "127.0.0.1"
user = "x"
password = "x"
server_id = 9
[archive]
dir = "{place}/archive"
[archive.bucket]
url = "file://{place}/bucket"
"""
        + ("[archive.mirror]\n" if is_mirror else "")
    )
    return path


def test_the_command_cures_nothing_where_the_bucket_is_another_archive_s(place: Path) -> None:
    config = load_config(config_of(place))
    with tier_checks(config, deep=False, cure=True) as tiers:
        assert tiers.alone and list(tiers.run(None)) == []
    (place / "archive" / "source" / "server_uuid").write_text("another\n")
    with (
        pytest.raises(ArchiveError, match=r"nothing was cured: .* is the copy of another archive"),
        tier_checks(config, deep=False, cure=True),
    ):
        pass


# --- a good copy for a damaged file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("damaged", ["hot", "cold"])
async def test_a_damaged_file_that_the_source_does_not_have_is_repaired_from_the_bucket(
    place: Path, template: Path, damaged: str
) -> None:
    root = place / "archive" / "source"
    name = SECOND
    if damaged == "hot":
        restore_archive(bucket(place), place / "again" / "source", None, download=True)
        shutil.copy(place / "again" / "source" / name, root / name)
    archive = await Archive.open(root)
    assert archive.current.files[1].tier is (Tier.HOT if damaged == "hot" else Tier.COLD)
    archive.current.damaged_files  # noqa: B018 - what is known of it is in the catalog
    await archive.close()
    path = root / (name if damaged == "hot" else f"{name}.zst")
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)
    [copy] = await asyncio.to_thread(copies_of, load_config(config_of(place)).archive, place / "archive" / "source", 1)
    nothing_here = DirectoryOrigin(place / "nowhere")
    outcomes = [one async for one in StoppedRepair(root, nothing_here, [copy]).run([name])]
    assert [one.is_repaired for one in outcomes] == [True], outcomes
    assert f"was fetched again from file://{place}/bucket" in outcomes[0].text
    again = await Archive.open(root)
    assert (again.current.files[1].tier, again.current.damaged_files.first(name)) == (Tier.HOT, None)
    assert await asyncio.to_thread(findings, place) == []
    await again.close()


async def test_packed_files_are_none_that_a_repair_fetches_again(place: Path) -> None:
    root = place / "archive" / "source"
    assert [one async for one in StoppedRepair(root, DirectoryOrigin(place / "nowhere")).run()] == []


async def test_a_generation_whose_every_binlog_is_in_the_bucket_is_there_after_a_restore(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path / "archive" / "source")
    await digests_made(archive)
    await copied(archive, mirror(tmp_path))
    held = [(one.number, [file.name for file in one.files]) for one in archive.all]
    await archive.close()
    # It was lost in the moment between the sealing of a binlog and the first part of the next one.
    for part in (tmp_path / "bucket" / "g0002").glob("*.part-*"):
        part.unlink()
    target = tmp_path / "again" / "source"
    wanted = WantedCopy(accept_changed=True)
    await asyncio.to_thread(restore_archive, bucket(tmp_path), target, None, download=False, wanted=wanted)
    again = await Archive.open(target)
    found = [(one.number, [file.name for file in one.files]) for one in again.all]
    await again.close()
    assert found == [held[0], (2, held[1][1][:-1])]
