"""Two processes on copies of one archive, and one bucket: they do not write there by turns, and no hole comes of it."""

import asyncio
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.mirror.mirror_pass import MirrorPass
from relay.object_store.archive_object import ARCHIVE_KEY, RENEWED_S, STALE_S, Ownership, read_archive_object
from relay.object_store.object_errors import PrefixBusy
from tests.support.archive_filling import append_all
from tests.support.generation_filling import A, identity, mysql_series
from tests.support.mirrored_archive import bucket, copied, filled, mirror, picture, restored


def silent_for_a_minute(tmp_path: Path) -> None:
    """Whoever wrote last has not said so since then."""
    about = read_archive_object(bucket(tmp_path))
    assert about is not None
    (tmp_path / "bucket" / ARCHIVE_KEY).write_bytes(replace(about, time=time.time() - STALE_S - 1).encode())


def due(mirrored: MirrorPass) -> None:
    """It is time to say again who writes."""
    mirrored._ownership._written_s -= RENEWED_S + 1


def whole(parts: int) -> bytearray:
    return mysql_series(1, f"{A}:1-{parts}")[0][1]


async def test_after_another_process_wrote_there_the_bucket_is_listed_again_and_has_no_hole(tmp_path: Path) -> None:
    archive = await Archive.open(tmp_path / "archive" / "source")
    archive.current.set_identity(identity(A, 1))
    await archive.current.begin_file("mysql-bin.000001")
    await append_all(archive.current, whole(10))
    shutil.copytree(archive.directory, tmp_path / "copy" / "source")  # an older snapshot of the relay's disk
    first = mirror(tmp_path, place=tmp_path / "archive")
    await copied(archive, first)
    await append_all(archive.current, whole(30), start=len(whole(10)))
    await copied(archive, first)
    # The first one is cut off from the bucket, and the snapshot is started beside it: what it has not, it takes for cut off.
    silent_for_a_minute(tmp_path)
    snapshot = await Archive.open(tmp_path / "copy" / "source")
    await copied(snapshot, mirror(tmp_path, place=tmp_path / "copy"))
    await snapshot.close()
    silent_for_a_minute(tmp_path)
    due(first)
    await append_all(archive.current, whole(40), start=len(whole(30)))
    assert not await asyncio.to_thread(first.run, picture(archive)), "it says that it knows nothing any more"
    assert first.pending_bytes(picture(archive)) == len(whole(40))
    await copied(archive, first)
    ended = archive.current.end
    await archive.close()
    assert restored(tmp_path).end == ended


async def test_who_removes_what_a_bucket_says_of_itself_has_it_listed_again(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    first = mirror(tmp_path)
    await copied(archive, first)
    shutil.rmtree(tmp_path / "bucket")
    due(first)
    await copied(archive, first)
    await copied(archive, first)
    ended = archive.current.end
    await archive.close()
    assert restored(tmp_path).end == ended


async def test_the_same_host_name_and_path_on_two_machines_are_two_writers(tmp_path: Path) -> None:
    """As containers have them: the other machine's directory is another one."""
    archive = await filled(tmp_path)
    place = tmp_path / "data"
    (place / "source").mkdir(parents=True)
    first = mirror(tmp_path, place=place)
    os.rename(place, tmp_path / "the other machine's")
    (place / "source").mkdir(parents=True)
    second = mirror(tmp_path, place=place)
    await copied(archive, first)
    for mirrored in (second, first, second):
        due(mirrored)
        if mirrored is first:
            assert await asyncio.to_thread(first.run, picture(archive))
            continue
        with pytest.raises(PrefixBusy, match="another process"):
            await asyncio.to_thread(second.run, picture(archive))
    # A process that was killed is followed at once by the next one in its own directory, and finds that out should it live.
    after = mirror(tmp_path, place=tmp_path / "the other machine's")
    await asyncio.to_thread(after.run, picture(archive))
    due(first)
    with pytest.raises(PrefixBusy):
        await asyncio.to_thread(first.run, picture(archive))
    await archive.close()


def test_a_place_stays_taken_while_a_long_upload_is_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.object_store.archive_object.RENEWED_S", 0.1)
    store = bucket(tmp_path)
    ownership = Ownership(store, "relay-a", tmp_path / "source", 0.0)
    ownership.claim()
    with ownership.kept():
        silent_for_a_minute(tmp_path)
        deadline = time.monotonic() + 10
        while (about := read_archive_object(store)) is None or time.time() - about.time > STALE_S:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    other = Ownership(store, "relay-a", tmp_path / "copy" / "source", 0.0)
    with pytest.raises(PrefixBusy):
        other.claim()


def test_who_lost_the_place_during_a_long_upload_is_told_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.object_store.archive_object.RENEWED_S", 0.1)
    store = bucket(tmp_path)
    ownership = Ownership(store, "relay-a", tmp_path / "source", 0.0)
    ownership.claim()
    about = read_archive_object(store)
    assert about is not None
    with pytest.raises(PrefixBusy), ownership.kept():
        for _ in range(20):  # a renewal that was on its way may write once more
            store.put_bytes(ARCHIVE_KEY, replace(about, token="another", time=time.time()).encode())
            time.sleep(0.05)
