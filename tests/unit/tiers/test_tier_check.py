"""`archive verify` of what is packed: damage and loss are found, on the disk and in the bucket, and what was left is cured."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.packing import PackOptions
from relay.tiers.tier_check import TierCheck
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.tier_archive import RING, fill_archive


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files 1 and 2 in the bucket, 3 and 4 packed and encrypted, 5 as it was received."""
    place = tmp_path_factory.mktemp("tiers")

    async def make() -> None:
        await fill_archive(place / "archive")
        archive = await Archive.open(place / "archive")
        store = ObjectStore(StoreOptions(f"file://{place}/bucket"))
        for rules in (TierRules(hot_bytes=1), TierRules(cold_bytes=28_000)):
            mover = TierMover(archive, rules, PackOptions(level=1, frame_bytes=8192), keys=RING, store=store)
            await mover.run_once()
            await mover.close()
        assert [str(file.tier) for file in archive.current.files] == ["object", "object", "cold", "cold", "hot"]
        await archive.close()

    asyncio.run(make())
    return place


@pytest.fixture
def place(template: Path, tmp_path: Path) -> Iterator[Path]:
    for name in ("archive", "bucket"):
        shutil.copytree(template / name, tmp_path / name)
    yield tmp_path


def findings(place: Path, *, deep: bool = True, cure: bool = False, keys: bool = True) -> list[str]:
    store = ObjectStore(StoreOptions(f"file://{place}/bucket"))
    directory = place / "archive"
    check = TierCheck(
        *(directory, directory), store=store, keys=RING if keys else None, deep=deep, alone=True, cure=cure
    )
    return [f"{finding.file}: {finding.text}".replace(str(place), "") for finding in check.run()]


def change(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("keys", [True, False])
def test_an_archive_that_is_as_it_should_be_has_no_finding(place: Path, keys: bool) -> None:
    assert findings(place, keys=keys) == []


@pytest.mark.parametrize("name", ["bucket/mysql-bin.000002.zst.enc", "archive/mysql-bin.000003.zst.enc"])
def test_changed_cut_and_missing_bytes_are_found(place: Path, name: str) -> None:
    where = f"file:///{name}" if name.startswith("bucket") else name.removeprefix("archive/")
    whole = (place / name).read_bytes()
    change(place / name, 5000)
    assert findings(place, deep=False) == []
    [found] = findings(place, keys=False)
    assert f"{where} is not what was stored: its SHA-256 is another. Fetch it from" in found
    (place / name).write_bytes(whole[:-1])
    [found] = findings(place, deep=False)
    assert f"{where} has {len(whole) - 1} bytes, {len(whole)} were stored." in found
    (place / name).unlink()
    [found] = findings(place, deep=False)
    assert "is not there" in found or "there is no such object" in found


def test_what_a_move_or_a_purge_has_left_is_found_and_cured(place: Path) -> None:
    archive, bucket = place / "archive", place / "bucket"
    shutil.copy(bucket / "mysql-bin.000001.zst.enc", archive / "mysql-bin.000001.zst.enc")
    shutil.copy(archive / "mysql-bin.000001.place", archive / "mysql-bin.000000.gone")
    left = "`archive verify --cure` removes it"
    assert findings(place, deep=False) == [
        f"mysql-bin.000001.zst.enc: is left of a move that did not end. {left}",
        f"mysql-bin.000000: was purged, and the bucket may still have it. {left}",
    ]
    assert all(found.endswith("it was removed") for found in findings(place, deep=False, cure=True))
    assert findings(place) == []


def test_a_place_that_is_not_noted_beside_its_file_is_a_finding(place: Path) -> None:
    (place / "archive" / "mysql-bin.000001.place").unlink()
    (place / "archive" / "mysql-bin.000003.place").write_text("{}")
    assert [found.partition(". ")[0] for found in findings(place, deep=False)] == [
        "mysql-bin.000001.place: is missing",
        "mysql-bin.000003.place: cannot be read: it cannot be read: KeyError 'place'",
    ]
