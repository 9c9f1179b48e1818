"""What a start finds beside packed binlogs: a copy that was broken off, a note that cannot be read. Neither costs a binlog."""

import os
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.archive.storage.files import CATALOG_NAME
from relay.archive_inspection.listing import read_ledger
from relay.config import load_config
from relay.mirror.mirror_setup import bucket_findings
from relay.object_store.archive_object import Ownership
from relay.object_store.object_store import ObjectStore
from relay.packed.packing import PackOptions
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.mirrored_archive import bucket
from tests.support.tier_archive import archived_bytes, fill_archive
from tests.unit.mirror.test_bucket_check import config_of

FIRST, SECOND, THIRD = (f"mysql-bin.00000{number}" for number in (1, 2, 3))


async def moved(directory: Path, store: ObjectStore | None) -> dict[str, bytes]:
    """Three sealed files, packed, or in the bucket, of which that is asked."""
    wanted = await fill_archive(directory, 3, 40)
    archive = await Archive.open(directory)
    rules = TierRules(hot_bytes=1, cold_bytes=None if store is None else 1)
    mover = TierMover(archive, rules, PackOptions(level=1), store=store)
    await mover.run_once()
    await mover.close()
    await archive.close()
    return wanted


def lose_catalog(directory: Path) -> None:
    for name in os.listdir(directory):
        if name.startswith(CATALOG_NAME):
            (directory / name).unlink()


@pytest.mark.parametrize("catalog", ["kept", "lost"])
@pytest.mark.parametrize("tier", ["cold", "object"])
@pytest.mark.parametrize("wrong", ["cut", "changed"])
async def test_a_plain_file_that_is_not_whole_does_not_take_the_place_of_the_packed_one(
    tmp_path: Path, tier: str, wrong: str, catalog: str
) -> None:
    directory, store = tmp_path / "archive", bucket(tmp_path) if tier == "object" else None
    wanted = await moved(directory, store)
    data = bytearray(wanted[SECOND])
    data[700] ^= 1
    (directory / SECOND).write_bytes(bytes(data) if wrong == "changed" else wanted[SECOND][:500])
    if catalog == "lost":
        lose_catalog(directory)
    for _ in range(2):
        archive = await Archive.open(directory)
        assert [(str(file.tier), file.damaged) for file in archive.current.files[:3]] == [(tier, False)] * 3
        assert archived_bytes(directory, archive.current.files[1], store) == wanted[SECOND]
        await archive.close()
    assert (directory / f"{SECOND}.lost-0").exists() and not (directory / SECOND).exists()
    [told] = [row.text for row in read_ledger(directory) if row.kind == "plain_set_aside"]
    assert ("it has 500 bytes" if wrong == "cut" else "its digest is") in told


@pytest.fixture
async def unread(tmp_path: Path) -> dict[str, bytes]:
    """The catalog is lost, and what was noted of the second file, which is in the bucket."""
    directory = tmp_path / "archive" / "source"
    wanted = await moved(directory, bucket(tmp_path))
    (directory / "server_uuid").write_text("relay-a\n")
    lose_catalog(directory)
    data = bytearray((directory / f"{SECOND}.place").read_bytes())
    data[30] ^= 1
    (directory / f"{SECOND}.place").write_bytes(data)
    return wanted


async def test_a_note_that_cannot_be_read_is_kept_and_told_of(tmp_path: Path, unread: dict[str, bytes]) -> None:
    directory = tmp_path / "archive" / "source"
    for _ in range(2):
        archive = await Archive.open(directory)
        assert [file.name for file in archive.current.files] == [FIRST, THIRD, "mysql-bin.000004"]
        await archive.close()
    assert {f"{SECOND}{suffix}" for suffix in (".place", ".idx", ".gtx")} <= set(os.listdir(directory))
    [told] = [row for row in read_ledger(directory) if row.kind == "place_unreadable"]
    assert told.file == SECOND and f"put the bucket's own {SECOND}.place in its place" in told.text


async def test_with_the_bucket_s_own_note_the_binlog_is_there_again(tmp_path: Path, unread: dict[str, bytes]) -> None:
    directory = tmp_path / "archive" / "source"
    await (await Archive.open(directory)).close()
    (directory / f"{SECOND}.place").write_bytes(bucket(tmp_path).get(f"{SECOND}.place"))
    archive = await Archive.open(directory)
    assert [(file.name, file.damaged) for file in archive.current.files[:3]] == [
        (name, False) for name in (FIRST, SECOND, THIRD)
    ]
    assert archived_bytes(directory, archive.current.files[1], bucket(tmp_path)) == unread[SECOND]
    await archive.close()


async def test_verify_does_not_remove_the_object_whose_note_cannot_be_read(
    tmp_path: Path, unread: dict[str, bytes]
) -> None:
    directory = tmp_path / "archive" / "source"
    await (await Archive.open(directory)).close()
    Ownership.take_over(bucket(tmp_path), "relay-a", directory, None, is_whole=False)
    config = load_config(config_of(tmp_path, is_mirror=False))
    assert list(bucket_findings(config, purged=False, deep=False, cure=True)) == []
    assert bucket(tmp_path).get(f"{SECOND}.zst")
