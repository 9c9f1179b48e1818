"""Two relays of one source with the same [archive.bucket] url: the second one leaves alone what the first one has there."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.archive.storage.storage_location import GONE_SUFFIX
from relay.archive_inspection.listing import read_ledger
from relay.commands.outcome import CommandFailed
from relay.config import load_config
from relay.mirror.mirror_setup import bucket_findings
from relay.object_store.archive_object import ARCHIVE_KEY, STALE_S, Ownership, read_archive_object
from relay.object_store.object_errors import MirrorRefused, ObjectMissing, PrefixBusy
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.packing import PackOptions
from relay.tiers.claim_command import claim
from relay.tiers.tier_mover import OwnBucket, TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.mirrored_archive import bucket
from tests.support.tier_archive import check_whole, fill_archive
from tests.unit.mirror.test_bucket_check import config_of

ALL = TierRules(hot_bytes=1, cold_bytes=1)


def mover_of(archive: Archive, store: ObjectStore, uuid: str) -> TierMover:
    own = OwnBucket(threading.Event(), Ownership(store, uuid, archive.directory, 0.0))
    return TierMover(archive, ALL, PackOptions(level=1), store=store, own=own)


def objects(store: ObjectStore) -> dict[str, bytes]:
    return {facts.key: store.get(facts.key) for facts in store.list() if facts.key != ARCHIVE_KEY}


@pytest.mark.parametrize("purges", [False, True], ids=["moves", "purges"])
async def test_the_second_relay_moves_and_removes_nothing_and_says_whose_place_it_is(
    tmp_path: Path, purges: bool
) -> None:
    store = bucket(tmp_path)
    wanted = await fill_archive(tmp_path / "a" / "source", 3, 40)
    await fill_archive(tmp_path / "b" / "source", 3, 40)
    first, second = [await Archive.open(tmp_path / place / "source") for place in "ab"]
    mover = mover_of(first, store, "relay-a")
    await mover.run_once()
    await mover.close()
    before = objects(store)
    if purges:
        await second.current.purge(["mysql-bin.000001"], "by a test")
        (second.directory / f"mysql-bin.000001{GONE_SUFFIX}").touch()
    mover = mover_of(second, store, "relay-b")
    await mover.run_once()
    await mover.close()
    assert objects(store) == before
    check_whole(first, wanted, store)
    assert {str(file.tier) for file in second.current.files} == {"cold", "hot"}
    for archive in (first, second):
        await archive.close()  # rows of the ledger come into the catalog within moments, and at the end at the latest
    [told] = [row.text for row in read_ledger(second.directory) if row.kind == "bucket_fails"]
    assert "is the copy of another archive: 'source' of the relay relay-a" in told
    assert "Nothing is moved there and nothing is removed there" in told


@pytest.fixture
async def place(tmp_path: Path) -> Path:
    """An archive whose relay is stopped, with old binlogs in the bucket; the relay's uuid is another one since."""
    directory = tmp_path / "archive" / "source"
    await fill_archive(directory, 3, 40)
    archive = await Archive.open(directory)
    mover = mover_of(archive, bucket(tmp_path), "relay-before")
    await mover.run_once()
    await mover.close()
    await archive.close()
    (directory / "server_uuid").write_text("relay-now\n")
    about = read_archive_object(bucket(tmp_path))
    assert about is not None
    bucket(tmp_path).put_bytes(ARCHIVE_KEY, replace(about, time=0.0).encode())
    return tmp_path


def findings(place: Path, *, cure: bool = False) -> list[str]:
    config = load_config(config_of(place, is_mirror=False))
    return [finding.text for _number, finding in bucket_findings(config, purged=False, deep=False, cure=cure)]


def claimed(place: Path, owner: str | None, capsys: pytest.CaptureFixture[str]) -> str:
    claim(load_config(config_of(place, is_mirror=False)), owner, as_json=False)
    return capsys.readouterr().out


@pytest.mark.parametrize("cure", [False, True], ids=["looked at", "cured"])
def test_binlogs_of_nobody_known_are_neither_removed_nor_called_removable(place: Path, cure: bool) -> None:
    bucket(place).delete([ARCHIVE_KEY])
    before = objects(bucket(place))
    for path in (place / "archive" / "source").glob("mysql-bin.000001*"):
        path.unlink()
    [text] = findings(place, cure=cure)
    assert "no binlog-relay.json that says whose they are" in text and "--cure" not in text
    assert objects(bucket(place)) == before


def test_a_relay_takes_no_place_with_binlogs_of_nobody_known(place: Path) -> None:
    bucket(place).delete([ARCHIVE_KEY])
    with pytest.raises(MirrorRefused, match="run `binlog-relay archive claim`"):
        Ownership(bucket(place), "relay-now", place / "archive" / "source", 0.0).claim()
    with pytest.raises(ObjectMissing):
        bucket(place).get(ARCHIVE_KEY)


@pytest.mark.parametrize("owner", ["relay-before", "nobody"])
def test_a_relay_with_another_uuid_takes_its_place_over_by_the_command_that_names_whose_it_was(
    place: Path, owner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = bucket(place)
    if owner == "nobody":
        store.delete([ARCHIVE_KEY])
    else:
        assert "another archive" in findings(place)[0]
    before = objects(store)
    told = claimed(place, None, capsys)
    assert f"archive claim --of {owner}\n" in told and "It has 3 whole binlogs" in told
    with pytest.raises(CommandFailed, match=f"is of {owner}, not of somebody. Nothing was changed"):
        claimed(place, "somebody", capsys)
    assert "It is this archive's now" in claimed(place, owner, capsys)
    assert objects(store) == before and findings(place) == []
    Ownership(store, "relay-now", place / "archive" / "source", 0.0).claim()


def test_a_place_that_is_written_to_now_cannot_be_claimed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = bucket(place)
    Ownership(store, "relay-before", Path("elsewhere") / "source", 0.0).claim()
    with pytest.raises(CommandFailed, match="Stop that relay, wait 60 s, and claim it again"):
        claimed(place, "relay-before", capsys)


async def test_a_claim_says_which_binlogs_the_archive_does_not_hold(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = await Archive.open(place / "archive" / "source")
    await archive.current.purge(["mysql-bin.000001"], "by a test")
    await archive.close()
    told = await asyncio.to_thread(claimed, place, None, capsys)
    assert "1 of them are not in this archive, the first is mysql-bin.000001" in told and "archive restore" in told


class SlowBucket(ObjectStore):
    """While a binlog goes up, `meanwhile` happens."""

    meanwhile: Callable[[], None]

    def put_file(self, key: str, path: Path) -> None:
        if key.endswith(".zst"):
            self.meanwhile()
        super().put_file(key, path)


def written_by(store: ObjectStore, **changed: object) -> None:
    """What the bucket says of its writer is another thing."""
    about = read_archive_object(store)
    assert about is not None
    store.put_bytes(ARCHIVE_KEY, replace(about, **changed).encode())  # type: ignore[arg-type]


@pytest.fixture
async def packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Archive, SlowBucket, TierMover]]:
    """One packed binlog that goes to a slow bucket; its relay says again who writes there each 50 ms."""
    monkeypatch.setattr("relay.object_store.archive_object.RENEWED_S", 0.05)
    await fill_archive(tmp_path / "archive" / "source", 1, 40)
    archive = await Archive.open(tmp_path / "archive" / "source")
    store = SlowBucket(StoreOptions(f"file://{tmp_path}/bucket"))
    mover = mover_of(archive, store, "relay-a")
    yield archive, store, mover
    await mover.close()
    await archive.close()


async def test_a_place_stays_the_mover_s_while_a_long_upload_is_at_work(
    packed: tuple[Archive, SlowBucket, TierMover], tmp_path: Path
) -> None:
    archive, store, mover = packed
    refused: list[str] = []

    def a_minute_passes() -> None:
        written_by(store, time=time.time() - STALE_S - 1)
        deadline = time.monotonic() + 10
        while (about := read_archive_object(store)) is None or time.time() - about.time > STALE_S:
            assert time.monotonic() < deadline, "it was not said again who writes there"
            time.sleep(0.01)
        with pytest.raises(PrefixBusy) as caught:
            Ownership(bucket(tmp_path), "relay-a", tmp_path / "copy" / "source", 0.0).claim()
        refused.append(str(caught.value))

    store.meanwhile = a_minute_passes
    await mover.run_once()
    assert len(refused) == 1
    assert [str(file.tier) for file in archive.current.files] == ["object", "hot"]


async def test_who_lost_the_place_during_an_upload_notes_nothing_there_and_keeps_its_binlog(
    packed: tuple[Archive, SlowBucket, TierMover],
) -> None:
    archive, store, mover = packed

    def another_one_comes() -> None:
        for _ in range(10):  # a renewal that was on its way may write once more
            written_by(store, token="another", machine="another", time=time.time())
            time.sleep(0.03)

    store.meanwhile = another_one_comes
    await mover.run_once()
    assert [str(file.tier) for file in archive.current.files] == ["cold", "hot"]
    assert not [facts.key for facts in store.list() if facts.key.endswith(".place")]
    assert (archive.directory / "mysql-bin.000001.zst").exists()
