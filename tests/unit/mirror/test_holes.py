"""A copy that lacks binlogs in its middle: a restore names them, and does not make an archive with a hole in silence."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from relay.archive.archive import Archive
from relay.archive_inspection.listing import read_ledger
from relay.bucket_copy.bucket_gaps import HolesWanted
from relay.bucket_copy.mirror_errors import RestoreRefused
from relay.mirror.mirror import Mirror
from relay.object_store.store_options import StoreOptions
from relay.packing_process.compression_settings import CompressionSettings
from tests.support.archive_filling import append_all
from tests.support.generation_filling import A, append_files, identity, mysql_series, two_generations
from tests.support.mirrored_archive import bucket, copied, mirror, picture, restored

NAMES = [f"mysql-bin.{number:06d}" for number in range(1, 6)]
INSIDES = (f"{A}:1-3", f"{A}:4-20", f"{A}:21-23", f"{A}:24-26", f"{A}:27-29")


async def with_a_hole(tmp_path: Path) -> dict[str, int]:
    """In the bucket are 1, the beginning of 2, and 4 and 5: 2 and 3 were purged before they were copied. The sizes of all."""
    archive = await Archive.open(tmp_path / "archive" / "source")
    archive.current.set_identity(identity(A, 1))
    (archive.directory / "server_uuid").write_text("11111111-2222-3333-4444-555555555555\n")
    mirrored = mirror(tmp_path)
    (half,) = mysql_series(2, f"{A}:4-9", start=f"{A}:1-3")
    await append_files(archive, [*mysql_series(1, INSIDES[0]), half])
    await copied(archive, mirrored)
    series = mysql_series(1, *INSIDES)
    await append_all(archive.current, series[1][1], start=len(half[1]))
    await append_files(archive, series[2:])
    sizes = {file.name: file.end for file in archive.current.files}
    await archive.current.purge(NAMES[:3], "by hand")
    await copied(archive, mirrored)
    await archive.close()
    return sizes


async def names(tmp_path: Path) -> list[str]:
    archive = await Archive.open(tmp_path / "again" / "source")
    found = [file.name for one in archive.all for file in one.files]
    await archive.close()
    return found


async def test_a_restore_refuses_a_copy_with_a_hole_and_names_each_binlog_with_its_size(tmp_path: Path) -> None:
    sizes = await with_a_hole(tmp_path)
    with pytest.raises(RestoreRefused) as refused:
        restored(tmp_path)
    text = str(refused.value)
    assert "lacks 2 binlogs in the middle of the copy" in text
    assert f"{NAMES[1]} ({sizes[NAMES[1]]} bytes, the first " in text
    assert f"{NAMES[2]} ({sizes[NAMES[2]]} bytes; it was purged before it was copied)" in text
    assert "--holes before" in text and "Nothing was restored" in text
    assert not (tmp_path / "again" / "source").exists()


@pytest.mark.parametrize(
    ("wanted", "there"),
    [(HolesWanted.BEFORE, NAMES[:2]), (HolesWanted.BEHIND, NAMES[3:]), (HolesWanted.KEEP, [NAMES[0], *NAMES[3:]])],
)
@pytest.mark.parametrize("download", [True, False])
async def test_what_is_before_behind_or_around_the_hole_comes_back_when_it_is_asked_for(
    tmp_path: Path, wanted: HolesWanted, there: list[str], download: bool
) -> None:
    sizes = await with_a_hole(tmp_path)
    done = restored(tmp_path, holes=wanted, download=download)
    assert [hole.file for hole in done.holes] == NAMES[1:3]
    assert await names(tmp_path) == there
    if wanted is HolesWanted.BEFORE:
        # The binlog that lacks comes back as far as its parts go, for the source to go on with.
        assert done.end.file == NAMES[1] and 4 < done.end.offset < sizes[NAMES[1]]
    else:
        assert (done.end.file, done.end.offset) == (NAMES[4], sizes[NAMES[4]])


async def test_binlogs_that_lack_at_the_end_of_a_source_are_a_hole_too(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path / "archive" / "source")
    mirrored = mirror(tmp_path)
    first, second = picture(archive)
    only = replace(first, files=first.files[:1])
    while not mirrored.done:
        await asyncio.to_thread(mirrored.run, [only])
        await asyncio.sleep(0.01)
    await archive.all[0].purge([file.name for file in first.files], "by hand")
    await copied(archive, mirrored)
    await archive.close()
    lost = first.files[1]
    with pytest.raises(RestoreRefused, match=rf"lacks a binlog .*: {lost.name} \({lost.end} bytes; it was purged"):
        restored(tmp_path)
    restored(tmp_path, holes=HolesWanted.BEHIND)
    assert await names(tmp_path) == [file.name for file in second.files]


async def test_a_copy_without_a_hole_is_restored_with_any_choice(tmp_path: Path) -> None:
    archive = await Archive.open(tmp_path / "archive" / "source")
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, *INSIDES[:3]))
    await copied(archive, mirror(tmp_path))
    ended = archive.current.end
    await archive.close()
    # What is purged behind its copy leaves no hole.
    bucket(tmp_path).delete([f"{NAMES[0]}{suffix}" for suffix in (".zst", ".place")])
    done = restored(tmp_path, holes=HolesWanted.BEFORE)
    assert (done.holes, done.end) == ((), ended)


async def test_what_is_purged_before_it_was_copied_is_told_with_its_size(tmp_path: Path) -> None:
    archive = await Archive.open(tmp_path / "archive" / "source")
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, *INSIDES))
    size = sum(file.end for file in archive.current.files[:3])
    options = StoreOptions(f"file://{tmp_path}/bucket/x")
    mirrored = Mirror(archive, options, CompressionSettings(), ("relay-a", "token"), 0.01)
    (tmp_path / "bucket" / "x").rmdir()
    (tmp_path / "bucket" / "x").write_text("the bucket is away")
    assert mirrored.first_lacking() == (1, 1)
    with capture_logs() as logs:
        mirrored.begin()
        while mirrored.status().failures < 1:
            await asyncio.sleep(0.01)
        picture = mirrored._picture()
        await archive.current.purge(NAMES[:3], "by hand")
        mirrored._tell_lost(picture)
    (tmp_path / "bucket" / "x").unlink()
    assert mirrored.first_lacking() == (1, 4)
    assert mirrored.status().lost_files == 3
    await mirrored.close()
    await archive.close()
    [told] = [one for one in logs if one["event"] == "mirror_lost"]
    assert (told["files"], told["bytes"]) == (3, size)
    [row] = [row for row in read_ledger(archive.directory) if row.kind == "mirror_lost"]
    assert f"3 binlogs, {NAMES[0]} to {NAMES[2]}, ({size} bytes) were purged before they were copied" in row.text
