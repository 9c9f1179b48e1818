"""An archive, its copy in a bucket, and an archive made again from that: what is lost, what is refused."""

import asyncio
import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from protocol.kernel.ingest import Ingest
from relay.archive.archive import Archive
from relay.archive.storage.files import FileLayer
from relay.archive_inspection.listing import list_archive, read_ledger
from relay.archive_inspection.verify import verify_archive
from relay.bucket_copy.bucket_manifest import is_page
from relay.bucket_copy.mirror_errors import RestoreRefused
from relay.bucket_copy.mirror_parts import MirrorPart, part_of, part_order, unpacked_part
from relay.mirror.mirror import Mirror
from relay.mirror.mirror_pass import MirrorPass
from relay.mirror.mirror_picture import PicturedFile, PicturedGeneration
from relay.mirror.restoring import restore_archive
from relay.object_store.archive_object import ARCHIVE_KEY, Ownership, read_archive_object
from relay.object_store.object_errors import MirrorRefused, ObjectDamaged, PrefixBusy
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import KeyMissing, KeyWrong, PackedDamaged
from relay.packing_process.compression_settings import CompressionSettings
from relay.packing_process.packer import ThreadPacker
from tests.support.archive_filling import append_all
from tests.support.binlog_comparison import check_relayed
from tests.support.generation_filling import A, append_files, identity, mysql_series, two_generations
from tests.support.mirrored_archive import KEYS, bucket, copied, filled, mirror, picture, restored


@pytest.mark.parametrize("keys", [None, KEYS], ids=["plain", "encrypted"])
async def test_an_archive_made_from_the_bucket_is_the_one_that_was_lost(tmp_path: Path, keys: KeyRing | None) -> None:
    archive = await filled(tmp_path)
    await copied(archive, mirror(tmp_path, keys=keys))
    ended, executed = archive.current.end, archive.executed
    assert ended is not None
    told = restored(tmp_path, keys)
    assert (told.files, told.end, told.dropped) == (2, ended, 0)
    await archive.close()
    again = await Archive.open(tmp_path / "again" / "source")
    assert (again.current.end, again.executed, again.current.identity) == (ended, executed, identity(A, 1))
    for file in again.current.files:
        data = (again.directory / file.name).read_bytes()
        assert check_relayed(data, (archive.directory / file.name).read_bytes(), file.name)
    # It goes on where the lost one ended.
    assert (again.directory / "server_uuid").read_text().startswith("11111111")
    (tail,) = mysql_series(3, f"{A}:7-12", start=f"{A}:1-6")
    await append_all(again.current, tail[1], start=ended.offset)
    await again.close()
    assert "view_skip" in {row.kind for row in read_ledger(again.directory)}
    assert list(verify_archive(again.directory, deep=True)) == []


async def test_binlogs_may_stay_in_the_bucket(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    await copied(archive, mirror(tmp_path))
    held = [(file.name, file.end, file.groups) for file in archive.current.files]
    executed = archive.executed
    await archive.close()
    told = restored(tmp_path, download=False)
    assert not (tmp_path / "again" / "source" / "mysql-bin.000001").exists()
    again = await Archive.open(tmp_path / "again" / "source")
    assert [(file.name, file.end, file.groups) for file in again.current.files] == held
    assert again.executed == executed
    assert told.bytes_read < 20_000
    await again.close()
    places = [file.place.tier if file.place else None for file in list_archive(tmp_path / "again" / "source")]
    assert places == ["object", "object", None]


async def test_each_moment_s_parts_give_whole_transactions_up_to_it(tmp_path: Path) -> None:
    archive = await Archive.open(tmp_path / "archive" / "source")
    ((name, data),) = mysql_series(1, f"{A}:1-60")
    mirrored = mirror(tmp_path)
    generation = archive.current
    await generation.begin_file(name)
    at = 4
    for number, stop in enumerate(range(700, len(data), 1100)):
        end = archive_boundary(data, stop)
        await append_all(generation, data[:end], start=at)
        at = end
        while generation.end is None or generation.end.offset < end:
            await asyncio.sleep(0.001)
        await copied(archive, mirrored)
        parts = [part for path in (tmp_path / "bucket").iterdir() if (part := part_of(path.name))]
        assert len(parts) <= 8
        if number % 4 == 0:
            told = restore_archive(bucket(tmp_path), tmp_path / f"again{number}" / "source", None, download=True)
            assert (told.end.offset, told.dropped) == (end, 0)
            assert (tmp_path / f"again{number}" / "source" / name).read_bytes() == (
                archive.directory / name
            ).read_bytes()[:end]
    # The file is there as a whole: its parts go.
    await append_files(archive, mysql_series(2, f"{A}:61", start=f"{A}:1-60"))
    await copied(archive, mirrored)
    assert {part_of(path.name).file for path in (tmp_path / "bucket").iterdir() if part_of(path.name)} == {
        "mysql-bin.000002"
    }  # type: ignore[union-attr]
    await archive.close()


def archive_boundary(data: bytearray, offset: int) -> int:
    ingest = Ingest()
    ingest.begin_file(4)
    ingest.feed(bytearray(data[4:offset]), 0, offset - 4)
    return ingest.boundary


async def test_parts_that_end_inside_a_transaction_are_cut_back_to_whole_ones(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    await copied(archive, mirror(tmp_path))
    end = archive.current.end
    assert end is not None
    # Somebody published more, and the relay died with half of it copied.
    path = archive.directory / end.file
    mirrored = mirror(tmp_path)
    with path.open("ab") as growing:
        (whole,) = mysql_series(3, f"{A}:7-12", start=f"{A}:1-6")
        growing.write(whole[1][end.offset : end.offset + 150])
    (grown,) = picture(archive)
    newest = PicturedFile(end.file, 3, end.offset + 150, sealed=False)
    await asyncio.to_thread(mirrored.run, [PicturedGeneration(1, grown.directory, "", (newest,))])
    await archive.close()
    told = restored(tmp_path)
    assert (told.end, told.dropped) == (end, 150)


async def test_several_sources_come_back_with_their_generations(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path / "archive" / "source")
    await copied(archive, mirror(tmp_path))
    executed = archive.executed
    files = [(one.number, [file.name for file in one.files]) for one in archive.all]
    await archive.close()
    for download in (True, False):
        directory = tmp_path / f"again{download}" / "source"
        restore_archive(bucket(tmp_path), directory, None, download=download)
        again = await Archive.open(directory)
        assert [(one.number, [file.name for file in one.files]) for one in again.all] == files
        assert again.executed == executed
        await again.close()


def names_in(place: Path) -> list[str]:
    """Of the objects; of a manifest's page without its number."""
    names = [path.name for path in (place / "bucket").iterdir()]
    return sorted(name.rpartition("-")[0] if is_page(name) else name for name in names)


async def test_a_pass_that_fails_anywhere_leaves_no_hole_and_the_next_one_ends_it(tmp_path: Path) -> None:
    archive = await filled(tmp_path)

    class Failing(ObjectStore):
        left = 0

        def put_bytes(self, key: str, data: bytes) -> None:
            self._spend()
            super().put_bytes(key, data)

        def put_file(self, key: str, path: Path) -> None:
            self._spend()
            super().put_file(key, path)

        def _spend(self) -> None:
            if not self.left:
                raise OSError(5, "killed here")
            self.left -= 1

    await copied(archive, mirror(tmp_path / "whole"))
    for allowed in range(25):
        place = tmp_path / f"at{allowed}"
        store = Failing(StoreOptions(f"file://{place}/bucket"))
        store.left = allowed
        one = MirrorPass(
            store, Ownership(store, "relay-a", archive.directory, 0.0), CompressionSettings(), threading.Event()
        )
        try:
            await asyncio.to_thread(one.run, picture(archive))
        except OSError:
            if (place / "bucket" / "mysql-bin.000001.place").exists():
                told = restore_archive(bucket(place), place / "again" / "source", None, download=True)
                assert told.end <= archive.current.end
        await copied(archive, mirror(place, place=tmp_path / "archive"))
        assert names_in(place) == names_in(tmp_path / "whole")
    assert not list(archive.directory.glob("*.tmp"))
    await archive.close()


# --- wrong uses ------------------------------------------------------------------------------------------------------------------


async def test_a_bucket_of_another_archive_or_of_a_second_relay_is_refused_by_name(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    first = mirror(tmp_path)
    await copied(archive, first)
    copy, stranger = mirror(tmp_path, place=tmp_path / "copy"), mirror(tmp_path, "relay-b")
    for other, kind, words in (
        (copy, PrefixBusy, "another process of this archive"),
        (stranger, MirrorRefused, "another archive"),
    ):
        with pytest.raises(kind, match=words):
            await asyncio.to_thread(other.run, picture(archive))
    # A minute later the copy may go on, and the first one finds that out and stops.
    about = read_archive_object(bucket(tmp_path))
    assert about is not None
    (tmp_path / "bucket" / ARCHIVE_KEY).write_bytes(replace(about, time=0.0).encode())
    await asyncio.to_thread(copy.run, picture(archive))
    first._ownership._written_s = float("-inf")
    with pytest.raises(PrefixBusy, match="another process"):
        await asyncio.to_thread(first.run, picture(archive))
    await archive.close()


async def test_what_cannot_be_restored_is_refused_by_name_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(RestoreRefused, match="holds no archive"):
        restored(tmp_path)
    archive = await filled(tmp_path)
    await copied(archive, mirror(tmp_path, keys=KEYS))
    await archive.close()
    with pytest.raises(RestoreRefused, match=r"holds the archive 'source', and relay\.toml is for 'other'"):
        restored(tmp_path, KEYS, name="other")
    for keys, kind in (
        (None, KeyMissing),
        (KeyRing({"one": b"x" * 32}, None), KeyWrong),
        (KeyRing({"two": bytes(32)}, None), KeyMissing),
    ):
        with pytest.raises(kind):
            restored(tmp_path, keys)
    place = tmp_path / "bucket" / "mysql-bin.000001.zst.enc"
    held = place.read_bytes()
    place.write_bytes(held[:-100])
    with pytest.raises(RestoreRefused, match="were stored"):
        restored(tmp_path, KEYS, download=False)
    with pytest.raises(RestoreRefused, match=r"mysql-bin\.000001.*is not what was stored"):
        restored(tmp_path, KEYS)
    place.unlink()
    with pytest.raises(RestoreRefused, match="hole"):
        restored(tmp_path, KEYS)
    place.write_bytes(held)
    about = tmp_path / "bucket" / ARCHIVE_KEY
    told = json.loads(about.read_text())
    about.write_text(json.dumps({**told, "format": 2}))
    with pytest.raises(MirrorRefused, match="format 2"):
        restored(tmp_path, KEYS)
    for wrong in ("{}", json.dumps({**told, "archive": "other"})):
        about.write_text(wrong)
        with pytest.raises(ObjectDamaged, match="not what binlog-relay wrote"):
            restored(tmp_path, KEYS)
    about.write_text(json.dumps(told))
    assert list((tmp_path / "again").iterdir()) == []
    (tmp_path / "again" / "source").mkdir()
    (tmp_path / "again" / "source" / "something").write_text("x")
    with pytest.raises(RestoreRefused, match="not empty"):
        restored(tmp_path, KEYS)
    (tmp_path / "again" / "source" / "something").unlink()
    assert restored(tmp_path, KEYS).files == 2


async def test_an_object_of_somebody_else_that_looks_like_a_part_does_not_disturb_a_restore(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    await copied(archive, mirror(tmp_path))
    ended = archive.current.end
    await archive.close()
    bucket(tmp_path).put_bytes("notes.part-0-5.zst", b"x")
    assert restored(tmp_path).end == ended


def test_a_part_that_unpacks_to_more_than_its_name_says_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "binlog").write_bytes(bytes(6000))
    order = part_order("mysql-bin.000001", 0, 5000)
    data = ThreadPacker(FileLayer()).make_in_memory(tmp_path / "binlog", order, None, lambda: False)
    part = MirrorPart("mysql-bin.000001", 0, 5000, "mysql-bin.000001.part-0-5000.zst")
    assert unpacked_part(data, part, None) == bytes(5000)
    with pytest.raises(PackedDamaged, match="has 5000 bytes of the binlog; by its name it has 50"):
        unpacked_part(data, part._replace(stop=50), None)


async def test_what_is_copied_is_not_kept_in_memory_by_name(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    await copied(archive, mirror(tmp_path))
    mirrored = mirror(tmp_path)
    await copied(archive, mirrored)
    assert mirrored._there == set() and mirrored.files == 0
    await archive.close()


async def test_copying_gives_way_to_whoever_receives_and_serves(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    options = StoreOptions(f"file://{tmp_path}/bucket")
    mirrored = Mirror(archive, options, CompressionSettings(), ("relay-a", "token"), 0.01)
    seen = []
    run = mirrored._pass.run

    def seen_run(picture: list[PicturedGeneration]) -> bool:
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return run(picture)

    mirrored._pass.run = seen_run  # type: ignore[method-assign, assignment]
    mirrored.begin()
    while mirrored.status().state != "following":
        await asyncio.sleep(0.01)
    await mirrored.close()
    await archive.close()
    assert set(seen) == {19}
