"""Purging an archive: what goes, what stays, and what is said about it."""

import asyncio
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.position import Position
from relay.archive.generation import Generation
from relay.archive.read.position_check import Verdict
from relay.archive.storage.archive_errors import ArchiveMisuse, ArchiveUnknownFile, ArchiveWriteError
from relay.archive.storage.files import PURGE_NAME
from relay.archive.write.options import ArchiveOptions
from relay.archive_inspection.listing import list_archive, read_ledger
from relay.archive_inspection.verify import verify_archive
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.forgetful_disk import ForgetfulDisk

NAMES = [f"mysql-bin.{number:06d}" for number in range(1, 6)]


def binlogs() -> Iterator[tuple[str, bytes | bytearray]]:
    """Four finished files and one that grows."""
    for name, following in zip(NAMES, [*NAMES[1:], ""], strict=True):
        built = BinlogBuilder(timestamp=1000 * int(name[-1])).transaction(10).transaction(30, 3)
        yield name, built.rotate(following).data if following else built.data


def binlogs_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name in NAMES)


async def test_purged_files_and_their_indexes_are_gone_and_the_rest_is_whole(tmp_path: Path) -> None:
    await fill(tmp_path, *binlogs())
    generation = await Generation.open(tmp_path)
    await generation.purge(NAMES[:2], "for a test")
    names = [file.name for file in generation.files]
    await generation.close()
    left = sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("mysql-bin.0"))
    expected = sorted(name + suffix for name in NAMES[2:] for suffix in ("", ".gtx", ".idx"))
    assert (names, left, list(verify_archive(tmp_path, deep=True))) == (NAMES[2:], expected, [])


async def test_catalog_index_and_ledger_know_before_the_purge_returns(tmp_path: Path) -> None:
    await fill(tmp_path, *binlogs())
    generation = await Generation.open(tmp_path)
    await generation.purge(NAMES[:3], "wanted by 'root'@'10.0.0.1'")
    assert [file.name for file in list_archive(tmp_path)] == NAMES[3:]
    assert (tmp_path / "mysql-bin.index").read_text().split() == [f"./{name}" for name in NAMES[3:]]
    rows = [row for row in read_ledger(tmp_path) if row.kind == "purged"]
    assert [row.file for row in rows] == NAMES[:3]
    assert "wanted by 'root'@'10.0.0.1'" in rows[0].text
    assert not (tmp_path / PURGE_NAME).exists()
    await generation.close()


async def test_the_newest_file_is_never_purged(tmp_path: Path) -> None:
    await fill(tmp_path, *binlogs())
    generation = await Generation.open(tmp_path)
    with pytest.raises(ArchiveMisuse):
        await generation.purge(NAMES, "all")
    assert binlogs_in(tmp_path) == NAMES
    await generation.close()


async def test_only_the_oldest_files_can_be_purged(tmp_path: Path) -> None:
    await fill(tmp_path, *binlogs())
    generation = await Generation.open(tmp_path)
    with pytest.raises(ArchiveMisuse):
        await generation.purge([NAMES[1]], "a hole")
    assert binlogs_in(tmp_path) == NAMES
    await generation.close()


async def test_a_purged_file_is_unknown_from_the_call_on(tmp_path: Path) -> None:
    await fill(tmp_path, *binlogs())
    generation = await Generation.open(tmp_path)
    purging = asyncio.ensure_future(generation.purge(NAMES[:1], "now"))
    await asyncio.sleep(0)
    assert generation.file(NAMES[0]) is None
    assert (await generation.check_position(NAMES[0], 4)).verdict is Verdict.UNKNOWN_FILE
    with pytest.raises(ArchiveUnknownFile):
        generation.path(NAMES[0])
    await purging
    await generation.close()


async def test_an_open_reader_keeps_a_purged_file_readable(tmp_path: Path) -> None:
    files = dict(binlogs())
    await fill(tmp_path, *files.items())
    generation = await Generation.open(tmp_path)
    with generation.open_reader(NAMES[0]) as reader:
        await generation.purge(NAMES[:1], "now")
        buffer = bytearray(len(files[NAMES[0]]) - 4)
        assert reader.read_into(memoryview(buffer), 4) == len(buffer)
        assert bytes(buffer) == bytes(files[NAMES[0]][4:])
    await generation.close()


async def test_the_archive_grows_on_while_old_files_are_purged(tmp_path: Path) -> None:
    files = list(binlogs())
    await fill(tmp_path, *files[:-1])
    generation = await Generation.open(tmp_path)
    purging = asyncio.ensure_future(generation.purge(NAMES[:3], "now"))
    await generation.begin_file(NAMES[4])
    await append_all(generation, files[4][1])
    await purging
    end = generation.end
    await generation.close()
    assert end == Position(NAMES[4], len(files[4][1]))
    assert (tmp_path / "mysql-bin.index").read_text().split() == [f"./{name}" for name in NAMES[3:]]
    assert list(verify_archive(tmp_path, deep=True)) == []


async def test_two_purges_at_a_time_are_refused(tmp_path: Path) -> None:
    await fill(tmp_path, *binlogs())
    generation = await Generation.open(tmp_path)
    first = asyncio.ensure_future(generation.purge(NAMES[:1], "one"))
    await asyncio.sleep(0)
    with pytest.raises(ArchiveMisuse, match="at work"):
        await generation.purge(NAMES[1:2], "two")
    await first
    await generation.close()


async def test_closing_waits_for_a_purge_whose_caller_has_gone(tmp_path: Path) -> None:
    await fill(tmp_path, *binlogs())
    generation = await Generation.open(tmp_path)
    purging = asyncio.ensure_future(generation.purge(NAMES[:2], "now"))
    await asyncio.sleep(0)
    purging.cancel()
    await asyncio.sleep(0)
    await generation.close()
    assert (binlogs_in(tmp_path), (tmp_path / PURGE_NAME).exists()) == (NAMES[2:], False)


async def test_a_purge_makes_room_on_a_full_disk(tmp_path: Path) -> None:
    class Disk(ForgetfulDisk):
        def unlink(self, path: Path) -> None:
            super().unlink(path)
            self.room_bytes = None

    await fill(tmp_path, *binlogs())
    disk = Disk()
    generation = await Generation.open(tmp_path, ArchiveOptions(on_failure=lambda error: None), layer=disk)
    disk.room_bytes = 0
    await generation.purge(NAMES[:2], "now")
    await generation.close()
    assert (binlogs_in(tmp_path), list(verify_archive(tmp_path, deep=True))) == (NAMES[2:], [])


async def test_a_purge_that_cannot_begin_leaves_everything_and_says_so(tmp_path: Path) -> None:
    class Disk(ForgetfulDisk):
        broken = False

        def rename(self, source: Path, target: Path) -> None:
            if self.broken and target.name == PURGE_NAME:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().rename(source, target)

    await fill(tmp_path, *binlogs())
    disk = Disk()
    generation = await Generation.open(tmp_path, layer=disk)
    disk.broken = True
    with pytest.raises(ArchiveWriteError, match=r"could not be purged.*Nothing was removed"):
        await generation.purge(NAMES[:2], "now")
    assert ([file.name for file in generation.files], binlogs_in(tmp_path)) == (NAMES, NAMES)
    assert generation.file(NAMES[0]) is not None
    await generation.close()
