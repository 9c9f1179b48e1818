"""Files move to the disk's packed tier and to a real S3 server, and nothing that goes wrong on the way loses one."""

import asyncio
import errno
import json
import os
import shutil
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from relay.archive.archive import Archive
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.storage.files import CATALOG_NAME, Buffer, FileLayer
from relay.archive.storage.storage_location import LocationNote, Tier, read_note
from relay.archive_inspection.listing import rebuild_archive
from relay.object_store.archive_object import ARCHIVE_KEY, Ownership
from relay.object_store.object_store import ObjectStore
from relay.packed.packing import PackOptions
from relay.packing_process.packed_copy import PackedCopy
from relay.packing_process.packer import ProcessPacker, ThreadPacker
from relay.tiers.tier_mover import OwnBucket, TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.generation_filling import two_generations
from tests.support.s3_server import S3Server, need_rclone
from tests.support.storage_faults import Fault
from tests.support.tier_archive import RING, check_bucket, check_whole, digests_made, fill_archive

COLD = TierRules(hot_bytes=1)
ALL = TierRules(hot_bytes=1, cold_bytes=1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    need_rclone()
    with S3Server(tmp_path_factory.mktemp("storage") / "s3") as server:
        yield server


@pytest.fixture
def s3(server: S3Server) -> Iterator[S3Server]:
    yield server
    server.faults.forgive()


@pytest.fixture
def store(s3: S3Server, request: pytest.FixtureRequest) -> ObjectStore:
    return ObjectStore(s3.options(request.node.name.replace("[", "-").strip("]"), tries=3, give_up_s=2.0))


class Filled:
    """An archive on its disk and the bytes that it must have."""

    def __init__(self, directory: Path, wanted: dict[str, bytes]) -> None:
        self.directory = directory
        self.wanted = wanted


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    directory = tmp_path_factory.mktemp("filled") / "archive"
    return Filled(directory, asyncio.run(fill_archive(directory)))


@pytest.fixture
def filled(template: Filled, tmp_path: Path) -> Filled:
    shutil.copytree(template.directory, tmp_path / "archive")
    return Filled(tmp_path / "archive", dict(template.wanted))


@pytest.fixture
async def archive(filled: Filled) -> AsyncIterator[Archive]:
    archive = await Archive.open(filled.directory)
    yield archive
    await archive.close()


async def move(
    archive: Archive, rules: TierRules, store: ObjectStore | None = None, *, encrypted: bool = False
) -> TierMover:
    mover = TierMover(
        archive, rules, PackOptions(level=1, frame_bytes=8192), keys=RING if encrypted else None, store=store
    )
    await mover.run_once()
    await mover.close()
    return mover


def tiers(archive: Archive) -> list[str]:
    return [str(file.tier) for file in archive.current.files]


class FillingDisk(FileLayer):
    """Becomes short of room while the first file is packed."""

    asked = 0

    def free_bytes(self, directory: Path) -> int:
        self.asked += 1
        return self.whole_bytes(directory) // (2 if self.asked < 4 else 20)


class NotingPacker(ThreadPacker):
    """Notes which files it was given, and whether they were urgent."""

    def __init__(self, layer: FileLayer) -> None:
        super().__init__(layer)
        self.given: list[tuple[str, bool]] = []

    def make(self, plain: Path, *args: Any, urgent: bool = False, **more: Any) -> PackedCopy:
        self.given.append((plain.name[-1], urgent))
        return super().make(plain, *args, urgent=urgent, **more)


async def test_a_file_that_becomes_urgent_while_it_is_packed_is_begun_anew_without_giving_way(
    archive: Archive, filled: Filled
) -> None:
    packer = NotingPacker(FillingDisk())
    mover = TierMover(archive, COLD, PackOptions(level=1, frame_bytes=8192), packer=packer)
    await mover.run_once()
    await mover.close()
    assert packer.given == [("1", False), *((name, True) for name in "2341")]
    check_whole(archive, filled.wanted, None)


async def test_the_process_that_a_relay_packs_with_is_there_while_something_is_packed_and_then_gone(
    archive: Archive, filled: Filled
) -> None:
    packer = ProcessPacker()
    mover = TierMover(archive, COLD, PackOptions(level=1, frame_bytes=8192), keys=RING, packer=packer)
    await mover.run_once()
    assert tiers(archive) == ["cold"] * 4 + ["hot"]
    check_whole(archive, filled.wanted, None)
    assert not packer.is_running
    await mover.close()


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
async def test_all_but_the_newest_are_packed_and_are_still_all_there(
    archive: Archive, filled: Filled, encrypted: bool
) -> None:
    mover = await move(archive, COLD, encrypted=encrypted)
    assert tiers(archive) == ["cold"] * 4 + ["hot"]
    check_whole(archive, filled.wanted, None)
    assert mover.status.moved_files == {"cold": 4}
    suffix = ".zst.enc" if encrypted else ".zst"
    assert [file.place.stored_name for file in archive.current.files if file.place] == [
        f"mysql-bin.00000{number}{suffix}" for number in range(1, 5)
    ]


async def test_files_in_the_bucket_leave_the_disk_and_their_indexes_stay(
    archive: Archive, filled: Filled, store: ObjectStore
) -> None:
    await move(archive, ALL, store)
    assert tiers(archive) == ["object"] * 4 + ["hot"]
    check_whole(archive, filled.wanted, store)
    check_bucket(archive, store)
    beside = {key.key for key in store.list() if key.key.startswith("mysql-bin.000002")}
    assert beside == {f"mysql-bin.000002{suffix}" for suffix in (".zst", ".idx", ".gtx", ".place")}
    assert {"mysql-bin.000002.idx", "mysql-bin.000002.gtx"} <= set(os.listdir(filled.directory))


async def test_a_restart_knows_where_files_are_without_asking_the_bucket(
    filled: Filled, store: ObjectStore, s3: S3Server
) -> None:
    archive = await Archive.open(filled.directory)
    await move(archive, ALL, store, encrypted=True)
    executed = archive.executed
    await archive.close()
    asked = len(s3.faults.requests)
    again = await Archive.open(filled.directory)
    assert len(s3.faults.requests) == asked
    assert tiers(again) == ["object"] * 4 + ["hot"]
    assert again.executed == executed
    assert not [row for row in again.current.files if row.damaged]
    check_whole(again, filled.wanted, store)
    await again.close()


@pytest.mark.parametrize("how", ["catalog lost", "rebuild"])
async def test_the_disk_alone_tells_it_when_the_catalog_is_lost(filled: Filled, store: ObjectStore, how: str) -> None:
    archive = await Archive.open(filled.directory)
    await move(archive, COLD)
    await move(archive, TierRules(cold_bytes=len(filled.wanted["mysql-bin.000001"]) // 4), store)
    before = tiers(archive)
    executed, events = archive.executed, [file.events for file in archive.current.files]
    assert {"cold", "object", "hot"} == set(before)
    await archive.close()
    if how == "rebuild":
        rebuild_archive(filled.directory)
    else:
        for name in os.listdir(filled.directory):
            if name.startswith(CATALOG_NAME):
                (filled.directory / name).unlink()
    again = await Archive.open(filled.directory)
    assert (tiers(again), again.executed, [file.events for file in again.current.files]) == (before, executed, events)
    check_whole(again, filled.wanted, store)
    await again.close()


async def test_a_purge_removes_what_is_packed_and_what_is_in_the_bucket(
    archive: Archive, filled: Filled, store: ObjectStore
) -> None:
    await move(archive, COLD)
    await move(archive, TierRules(cold_bytes=len(filled.wanted["mysql-bin.000001"]) // 4), store)
    assert set(tiers(archive)) == {"cold", "object", "hot"}
    for name in [file.name for file in archive.current.files[:-1]]:
        filled.wanted.pop(name)
    await archive.current.purge([file.name for file in archive.current.files[:-1]], "by a test")
    mover = await move(archive, COLD, store)
    assert mover.status.gone_files == 0
    check_whole(archive, filled.wanted, store)
    assert list(store.list()) == []


async def test_a_purge_while_the_bucket_is_away_is_finished_when_it_is_back(
    archive: Archive, filled: Filled, store: ObjectStore, s3: S3Server
) -> None:
    await move(archive, ALL, store)
    await archive.current.purge(["mysql-bin.000001"], "by a test")
    s3.faults.refuse()
    try:
        mover = TierMover(archive, ALL, PackOptions(level=1), store=store)
        await mover.run_once()
        assert (mover.status.gone_files, bool(mover.status.bucket_failing_since)) == (1, True)
    finally:
        s3.faults.listen()
    mover._bucket_again_s = 0.0
    await mover.run_once()
    await mover.close()
    assert (mover.status.gone_files, mover.status.bucket_failing_since) == (0, 0.0)
    check_bucket(archive, store)


async def test_a_bucket_that_is_gone_for_days_costs_little_and_is_told_once(
    archive: Archive, filled: Filled, store: ObjectStore, s3: S3Server
) -> None:
    s3.faults.refuse()
    mover = TierMover(archive, ALL, PackOptions(level=1), store=store)
    try:
        for _ in range(5):
            await mover.run_once()
            mover._bucket_again_s = 0.0  # the pause is over
    finally:
        s3.faults.listen()
    assert tiers(archive) == ["cold"] * 4 + ["hot"]
    assert mover.status.failures == 5 and mover.status.waiting_files == 4
    check_whole(archive, filled.wanted, store)
    mover._bucket_again_s = 0.0
    await mover.run_once()
    await mover.close()
    assert tiers(archive) == ["object"] * 4 + ["hot"]
    await archive.close()
    catalog = Catalog.open_read_only(filled.directory / CATALOG_NAME)
    told = [row.kind for row in catalog.ledger() if row.kind.startswith("bucket")]
    catalog.close()
    assert told == ["bucket_fails", "bucket_back"]


@pytest.mark.parametrize(
    "fault", [Fault.THROTTLED, Fault.RESET, Fault.CUT, Fault.WRONG, Fault.HALF], ids=lambda fault: fault.value
)
@pytest.mark.parametrize("method", ["PUT", "GET", "HEAD"])
async def test_whatever_the_storage_does_during_a_move_nothing_is_lost(
    archive: Archive, filled: Filled, store: ObjectStore, s3: S3Server, fault: Fault, method: str
) -> None:
    await move(archive, COLD)
    s3.faults.order(fault, 4, method=method, part="000002")
    mover = TierMover(archive, ALL, PackOptions(level=1), store=store)
    await mover.run_once()
    check_whole(archive, filled.wanted, store)
    s3.faults.forgive()
    mover._bucket_again_s = 0.0
    mover._file_again_s.clear()
    await mover.run_once()
    await mover.close()
    assert tiers(archive) == ["object"] * 4 + ["hot"]
    check_whole(archive, filled.wanted, store)
    check_bucket(archive, store)


async def test_a_file_that_is_not_what_was_sealed_is_not_packed(archive: Archive, filled: Filled) -> None:
    path = filled.directory / "mysql-bin.000002"
    changed = bytearray(path.read_bytes())
    changed[-100] ^= 1
    path.write_bytes(changed)
    mover = await move(archive, COLD)
    assert tiers(archive) == ["cold", "hot", "cold", "cold", "hot"]
    assert "mysql-bin.000002: its digest is crc32:" in mover.status.failure
    assert not list(filled.directory.glob("mysql-bin.000002.*zst*"))


class FullDisk(FileLayer):
    """Has room for so many bytes."""

    room = 5000

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        self.room -= sum(map(len, buffers))
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().pwritev(fd, buffers, offset)


async def test_a_disk_that_is_full_while_packing_keeps_the_file_and_no_half_one(
    archive: Archive, filled: Filled
) -> None:
    disk = FullDisk()
    mover = TierMover(archive, COLD, PackOptions(level=1, frame_bytes=8192), packer=ThreadPacker(disk))
    await mover.run_once()
    assert (tiers(archive), mover.status.failures) == (["hot"] * 5, 1)
    assert mover.status.failure == "mysql-bin.000001: No space left on device"
    check_whole(archive, filled.wanted, None)
    disk.room = 1 << 30
    mover._disk_again_s = 0.0
    await mover.run_once()
    await mover.close()
    assert tiers(archive) == ["cold"] * 4 + ["hot"]
    check_whole(archive, filled.wanted, None)


async def test_a_packed_file_that_was_repaired_is_a_plain_one_and_moves_again(
    archive: Archive, filled: Filled, store: ObjectStore
) -> None:
    await move(archive, ALL, store)
    name = "mysql-bin.000002"
    file = archive.current.file(name)
    assert file is not None
    (filled.directory / name).write_bytes(filled.wanted[name])
    archive.current.integrity.file_was_repaired(file, LedgerRow(1.0, "repaired", name, -1, "by a test"))
    assert tiers(archive) == ["object", "hot", "object", "object", "hot"]
    await move(archive, COLD, store)
    check_whole(archive, filled.wanted, store)
    await move(archive, ALL, store)
    check_whole(archive, filled.wanted, store)
    check_bucket(archive, store)


@pytest.mark.parametrize("tier", ["cold", "object"])
async def test_a_binlog_that_somebody_puts_in_its_place_again_is_what_counts_at_the_next_start(
    filled: Filled, store: ObjectStore, tier: str
) -> None:
    archive = await Archive.open(filled.directory)
    await move(archive, ALL if tier == "object" else COLD, store)
    await archive.close()
    (filled.directory / "mysql-bin.000003").write_bytes(filled.wanted["mysql-bin.000003"])
    again = await Archive.open(filled.directory)
    assert tiers(again) == [tier, tier, "hot", tier, "hot"]
    check_whole(again, filled.wanted, store)
    await again.close()


async def test_what_is_noted_beside_a_file_makes_its_catalog_row_again(archive: Archive, filled: Filled) -> None:
    await move(archive, COLD)
    note = read_note(filled.directory / "mysql-bin.000003")
    assert note is not None and note.place == archive.current.files[2].place
    assert note.file_row[:2] == ("mysql-bin.000003", 3) and note.gtids is not None
    assert note.place.tier is Tier.COLD and note.place.plain_bytes == len(filled.wanted["mysql-bin.000003"])


async def test_a_generation_that_is_purged_as_a_whole_leaves_nothing_in_the_bucket(
    tmp_path: Path, store: ObjectStore
) -> None:
    archive = await two_generations(tmp_path / "archive")
    await digests_made(archive)
    await move(archive, ALL, store)
    first = archive.all[0]
    assert [str(file.tier) for file in first.files] == ["object", "hot"], "the newest of each generation stays"
    await first.purge([file.name for file in first.files], "by a test")
    await archive.forget_emptied()
    assert first not in archive.all
    await move(archive, ALL, store)
    left = {facts.key for facts in store.list()}
    await archive.close()
    assert left == {f"g0002/mysql-bin.000002{suffix}" for suffix in (".zst", ".idx", ".gtx", ".place")}


# --- whose place in the bucket it is ------------------------------------------------------------------------------------


def owned(archive: Archive, store: ObjectStore, uuid: str, directory: Path | None = None) -> TierMover:
    own = OwnBucket(threading.Event(), Ownership(store, uuid, directory or archive.directory, 0.0, is_whole=False))
    return TierMover(archive, ALL, PackOptions(level=1), store=store, own=own)


async def test_two_relays_with_one_url_do_not_overwrite_each_other_s_binlogs(
    archive: Archive, filled: Filled, store: ObjectStore, tmp_path: Path
) -> None:
    first = owned(archive, store, "relay-a")
    await first.run_once()
    check_whole(archive, filled.wanted, store)
    before = {facts.key: facts.etag for facts in store.list() if facts.key != ARCHIVE_KEY}
    other_wanted = await fill_archive(tmp_path / "other", 3, 50)
    other = await Archive.open(tmp_path / "other")
    second = owned(other, store, "relay-b")
    await second.run_once()
    assert tiers(other) == ["cold"] * 3 + ["hot"]
    assert "is the copy of another archive" in second.status.failure and second.status.bucket_failing_since
    # Nor does it remove what it has purged: the names are the other one's.
    await other.current.purge(["mysql-bin.000001"], "by a test")
    other_wanted.pop("mysql-bin.000001")
    second._bucket_again_s = 0.0
    await second.run_once()
    assert second.status.gone_files == 1
    assert {facts.key: facts.etag for facts in store.list() if facts.key != ARCHIVE_KEY} == before
    check_whole(other, other_wanted, store, gone_too=True)
    for mover in (first, second):
        await mover.close()
    await other.close()


async def test_a_copy_of_a_relay_waits_in_silence_for_one_that_may_be_dead_and_is_told_of_one_that_lives(
    archive: Archive, filled: Filled, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives = Ownership(store, "relay-a", tmp_path / "elsewhere" / "archive", 0.0)
    await asyncio.to_thread(lives.hold)
    mover = owned(archive, store, "relay-a")
    await mover.run_once()
    assert tiers(archive) == ["cold"] * 4 + ["hot"]
    assert not mover.status.bucket_failing_since
    monkeypatch.setattr("relay.tiers.file_move.STALE_S", 0.0)
    await mover.run_once()
    assert "is written by another process of this archive" in mover.status.failure
    monkeypatch.setattr("relay.object_store.archive_object.STALE_S", 0.0)
    mover._bucket_again_s = 0.0
    await mover.run_once()
    await mover.close()
    assert tiers(archive) == ["object"] * 4 + ["hot"]
    check_whole(archive, filled.wanted, store)


@pytest.mark.parametrize(
    "changed",
    [{"stored_name": "../x"}, {"stored_name": "a/b"}, {"stored_bytes": "9"}, {"plain_bytes": True}, {"key_id": 7}],
)
def test_a_note_that_nobody_here_has_written_is_none(changed: dict[str, object]) -> None:
    good: dict[str, object] = {"tier": "object", "stored_name": "mysql-bin.000001.zst", "stored_bytes": 9}
    good |= {"key_id": None, "digest": "sha256:00", "plain_bytes": 99}
    assert LocationNote.decode(json.dumps({"place": good}).encode()).place.plain_bytes == 99
    with pytest.raises(ValueError, match=r"is no name|are none|is none"):
        LocationNote.decode(json.dumps({"place": {**good, **changed}}).encode())
