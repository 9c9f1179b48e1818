"""A binlog that is not what was archived is not copied, and keeps back nobody."""

import asyncio
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from relay.archive.archive import Archive
from relay.archive_inspection.listing import read_ledger
from relay.mirror.mirror import Mirror
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.packing import PackOptions
from relay.packing_process.compression_settings import CompressionSettings
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.mirrored_archive import bucket, copied, filled, mirror, picture
from tests.support.tier_archive import digests_made

FIRST, SECOND, NEWEST = (f"mysql-bin.{number:06d}" for number in (1, 2, 3))


def flip(path: Path) -> bytes:
    """One bit of it is another; what it was."""
    held = path.read_bytes()
    path.write_bytes(held[:60] + bytes([held[60] ^ 4]) + held[61:])
    return held


def keys(tmp_path: Path) -> set[str]:
    return set(os.listdir(tmp_path / "bucket"))


def whole_and_parts(tmp_path: Path) -> tuple[set[str], bool]:
    """Which binlogs are there as a whole; whether the newest is there in part."""
    there = keys(tmp_path)
    whole = {key.removesuffix(".place") for key in there if key.endswith(".place")}
    return whole, any(key.startswith(f"{NEWEST}.part-") for key in there)


async def pack_all(archive: Archive) -> None:
    mover = TierMover(archive, TierRules(hot_bytes=1), PackOptions())
    await mover.run_once()
    await mover.close()


@pytest.mark.parametrize("tier", ["hot", "cold"])
async def test_a_damaged_binlog_is_never_sent_and_those_behind_it_are(tmp_path: Path, tier: str) -> None:
    archive = await filled(tmp_path)
    await digests_made(archive)
    if tier == "cold":
        await pack_all(archive)
    path = archive.directory / (f"{FIRST}.zst" if tier == "cold" else FIRST)
    sound = flip(path)
    mirrored = mirror(tmp_path)
    await copied(archive, mirrored)
    assert whole_and_parts(tmp_path) == ({SECOND}, True)
    assert f"{FIRST}.zst" not in keys(tmp_path)
    [(key, left)] = mirrored.left_out.items()
    assert key == (1, FIRST)
    assert ("SHA-256 is another" if tier == "cold" else "was noted when it was sealed") in left.what
    # It is not sent again and again, and is copied when it is sound.
    requests = mirrored._store.counts.requests
    await asyncio.to_thread(mirrored.run, picture(archive))
    assert mirrored._store.counts.requests == requests
    path.write_bytes(sound)
    await asyncio.to_thread(mirrored.run, picture(archive))
    assert whole_and_parts(tmp_path) == ({FIRST, SECOND}, True)
    assert mirrored.left_out == {}
    await archive.close()


async def test_a_binlog_that_is_cut_or_gone_keeps_back_nobody(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    await digests_made(archive)
    with (archive.directory / FIRST).open("r+b") as file:
        file.truncate(100)
    (archive.directory / SECOND).unlink()
    mirrored = mirror(tmp_path)
    await copied(archive, mirrored)
    assert whole_and_parts(tmp_path) == (set(), True)
    assert {name: left.what.partition(",")[0] for (_one, name), left in mirrored.left_out.items()} == {
        FIRST: "it has 100 bytes",
        SECOND: "it is neither on the disk nor noted as packed",
    }
    await archive.close()


async def test_one_that_is_only_in_the_bucket_and_was_lost_there_keeps_back_nobody(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    await digests_made(archive)
    mirrored = mirror(tmp_path)
    mirrored._ownership.claim()  # of a place with binlogs and without an owner nobody takes anything
    mover = TierMover(archive, TierRules(hot_bytes=1, cold_bytes=1), PackOptions(), store=bucket(tmp_path))
    await mover.run_once()
    await mover.close()
    for suffix in (".zst", ".place"):
        (tmp_path / "bucket" / (FIRST + suffix)).unlink()
    await copied(archive, mirrored)
    assert whole_and_parts(tmp_path) == ({SECOND}, True)
    assert "only in the bucket" in mirrored.left_out[1, FIRST].what
    await archive.close()


async def test_a_bucket_that_gives_back_other_bytes_than_were_sent_is_not_believed(tmp_path: Path) -> None:
    class Wrong(ObjectStore):
        def get_range(self, key: str, start: int, stop: int) -> bytes:
            return super().get_range(key, start, stop)[::-1]

    archive = await filled(tmp_path)
    mirrored = mirror(tmp_path)
    mirrored._sealed._store = Wrong(StoreOptions(f"file://{tmp_path}/bucket"))
    with pytest.raises(Exception, match="read back as other bytes than were sent"):
        await copied(archive, mirrored)
    assert f"{FIRST}.place" not in keys(tmp_path)
    await archive.close()


async def test_the_temporary_file_is_for_the_relay_s_group_at_most(tmp_path: Path) -> None:
    modes = []

    class Seen(ObjectStore):
        def put_file(self, key: str, path: Path) -> None:
            modes.append(path.stat().st_mode & 0o777)
            super().put_file(key, path)

    archive = await filled(tmp_path)
    mirrored = mirror(tmp_path)
    mirrored._sealed._store = Seen(StoreOptions(f"file://{tmp_path}/bucket"))
    await copied(archive, mirrored)
    assert modes == [0o640, 0o640]
    await archive.close()


async def test_a_file_that_is_left_out_is_told_once_by_log_ledger_and_status(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    await digests_made(archive)
    sound = flip(archive.directory / FIRST)
    mirrored = Mirror(
        archive, StoreOptions(f"file://{tmp_path}/bucket"), CompressionSettings(), ("relay-a", "token"), 0.01
    )
    with capture_logs() as logs:
        mirrored.begin()
        while not (mirrored.status().left_out_files == 1 and mirrored.status().state == "following"):
            await asyncio.sleep(0.01)
        status = mirrored.status()
        assert (status.lag_bytes, status.files) == (0, 1)
        assert status.trouble.startswith(f"{FIRST} is not copied: its digest is")
        for _ in range(3):  # it is looked at again, and told no more
            mirrored._moved.set()
            await asyncio.sleep(0.05)
        (archive.directory / FIRST).write_bytes(sound)
        mirrored._moved.set()
        while logs[-1]["event"] != "mirror_left_out_no_more":
            await asyncio.sleep(0.01)
    await mirrored.close()
    await archive.close()
    told = [(one["event"], one["file"]) for one in logs if one["event"].startswith("mirror_left_out")]
    assert told == [("mirror_left_out", FIRST), ("mirror_left_out_no_more", FIRST)]
    [row] = [row for row in read_ledger(archive.directory) if row.kind == "mirror_left_out"]
    assert row.file == FIRST and "archive repair" in row.text
