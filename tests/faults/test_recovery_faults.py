"""A recovery that is killed at any step: the next one leaves the archive and the ledger as if nothing had happened."""

import asyncio
import errno
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.ledger_records import read_record
from relay.archive.catalog.ledger_text import read_lines
from relay.archive.catalog.purge_intent import write_intent
from relay.archive.generation import Generation
from relay.archive.recovery.recovery import Recovery
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.files import LEDGER_TEXT_NAME, PURGE_NAME, Buffer, FileLayer
from relay.archive.storage.ledger_kinds import CATALOG_SET_ASIDE, PURGED
from relay.archive.write.options import ArchiveOptions, SyncPolicy
from relay.archive_inspection.listing import list_archive, read_ledger, rebuild_archive
from relay.archive_inspection.verify import verify_archive
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.forgetful_disk import ForgetfulDisk
from tests.unit.archive.test_archive_gtids import MARIADB, MYSQL

NAMES: Final = [f"mysql-bin.{number:06d}" for number in range(1, 6)]
NEWEST: Final = NAMES[-1]
ROOT: Final = Path(__file__).resolve().parents[2]


def files() -> list[tuple[str, bytearray]]:
    built = [BinlogBuilder().ddl().transaction(10, 300).rotate(name) for name in NAMES[1:]]
    return [*zip(NAMES, [one.data for one in built], strict=False), (NEWEST, newest().data)]


def newest() -> BinlogBuilder:
    return BinlogBuilder().ddl().transaction(10, 300).transaction(5)


def leave_an_incomplete_tail(directory: Path) -> None:
    with (directory / NEWEST).open("ab") as file:
        file.write(newest().begin().table_map().data[newest().size :])


def leave_bad_bytes(directory: Path) -> None:
    with (directory / NEWEST).open("ab") as file:
        file.write(b"no event at all" * 100_000)


def leave_zeros(directory: Path) -> None:
    with (directory / NEWEST).open("ab") as file:
        file.write(bytes(5000))


def lose_files(directory: Path) -> None:
    for name in NAMES[:2]:
        (directory / name).unlink()


def damage_the_catalog(directory: Path) -> None:
    (directory / "catalog.sqlite").write_bytes(b"no database" * 500)
    (directory / "catalog.sqlite-wal").write_bytes(b"no log" * 500)


def begin_a_purge(directory: Path) -> None:
    rows = [LedgerRow(1.5, PURGED, name, 4, "for a test") for name in NAMES[:3]]
    write_intent(FileLayer(), directory, rows)


def begin_a_purge_that_cannot_be_read(directory: Path) -> None:
    (directory / PURGE_NAME).write_text('[1.0, "purged", "../../etc/passwd", 4, ""]\n')


DISASTERS: Final[dict[str, tuple[Callable[[Path], None], ...]]] = {
    "an incomplete tail": (leave_an_incomplete_tail,),
    "bad bytes": (leave_bad_bytes,),
    "zeros": (leave_zeros,),
    "lost files": (lose_files, leave_an_incomplete_tail),
    "a damaged catalog": (damage_the_catalog, leave_an_incomplete_tail),
    "a purge": (begin_a_purge, leave_an_incomplete_tail),
    "a purge that cannot be read": (begin_a_purge_that_cannot_be_read, leave_bad_bytes),
    "all at once": (begin_a_purge_that_cannot_be_read, lose_files, damage_the_catalog, leave_bad_bytes),
}
KINDS: Final = {
    leave_an_incomplete_tail: ["trimmed_tail"],
    leave_bad_bytes: ["trimmed_bad_bytes"],
    leave_zeros: ["trimmed_bad_bytes"],
    damage_the_catalog: ["catalog_set_aside"],
    begin_a_purge: ["purged"] * 3,
    begin_a_purge_that_cannot_be_read: ["purge_unreadable"],
}


def prepare(directory: Path, disaster: str) -> None:
    asyncio.run(fill(directory, *files()))
    for happen in DISASTERS[disaster]:
        happen(directory)


def state(directory: Path) -> dict[str, object]:
    """What an archive is after another recovery.

    Without times, without the name that a catalog is kept under and why; without the indexes, which may have a record more
    at the file's end (`verify` looks at them).
    """
    recovered = Recovery(directory, FileLayer()).run()
    without_times = r"catalog\.sqlite(-wal|-shm)?|ledger\.jsonl"
    contents = {
        re.sub(r"corrupt-\d+", "corrupt-N", path.name): path.read_bytes()
        for path in directory.iterdir()
        if path.suffix != ".idx" and not re.fullmatch(without_times, path.name)
    }
    lines = read_lines(FileLayer(), directory / LEDGER_TEXT_NAME)
    texts = [row for _, line in lines.lines if isinstance(row := read_record(line), LedgerRow)]
    rows = [
        (row.kind, "", -1, "") if row.kind == CATALOG_SET_ASIDE else (row.kind, row.file, row.offset, row.text)
        for row in read_ledger(directory)
    ]
    return {
        "files": [(file.name, file.end, file.sealed, file.events) for file in recovered.files],
        "contents": contents,
        "ledger": sorted(rows),
        "ledger as text": (sorted(texts, key=str) == sorted(read_ledger(directory), key=str), lines.damaged),
        "catalog": [(file.name, file.end) for file in list_archive(directory)],
        "findings of verify": [str(finding) for finding in verify_archive(directory, deep=True)],
    }


def run_killed(generation: Path, copies: Path, order: str) -> int:
    command = [sys.executable, "-m", "tests.support.killed_recovery", str(generation), str(copies), order]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.fixture
def damaged(tmp_path: Path, disaster: str) -> Path:
    directory = tmp_path / "archive"
    prepare(directory, disaster)
    return directory


def as_if_never_killed(directory: Path, disaster: str) -> dict[str, object]:
    copy = directory.with_name("not killed")
    shutil.copytree(directory, copy)
    expected = state(copy)
    kinds = [row.kind for row in read_ledger(copy)]
    for happened in DISASTERS[disaster]:
        for kind in KINDS.get(happened, []):
            kinds.remove(kind)
    assert set(kinds) <= {"file_missing", "gap"}, "the disaster is not what it was to be"
    assert expected["ledger as text"] == (True, [])
    return expected


def differences(expected: dict[str, object], directory: Path) -> list[str]:
    found = state(directory)
    wrong = [
        f"{key}: {found[key]} instead of {expected[key]}"
        for key in found.keys() - {"contents"}
        if found[key] != expected[key]
    ]
    contents, wanted = found["contents"], expected["contents"]
    assert isinstance(contents, dict) and isinstance(wanted, dict)
    return wrong + [name for name in contents.keys() | wanted.keys() if contents.get(name) != wanted.get(name)]


@pytest.mark.parametrize("disaster", DISASTERS)
def test_a_recovery_killed_at_any_step_is_finished_and_told_once_by_the_next(
    tmp_path: Path, damaged: Path, disaster: str
) -> None:
    expected = as_if_never_killed(damaged, disaster)
    copies = tmp_path / "copies"
    steps = run_killed(damaged, copies, "every")
    assert steps > 5, "nothing was killed"
    wrong = {step: found for step in range(steps) if (found := differences(expected, copies / str(step)))}
    assert wrong == {}


@pytest.mark.parametrize("disaster", ["all at once"])
def test_a_recovery_killed_again_and_again_is_told_once(tmp_path: Path, damaged: Path, disaster: str) -> None:
    expected = as_if_never_killed(damaged, disaster)
    turns = []
    for seed in range(12):
        turns.append(run_killed(damaged, tmp_path / "copies", str(seed)))
        assert differences(expected, tmp_path / "copies" / str(seed)) == [], f"seed {seed}, {turns[-1]} processes"
    assert max(turns) > 3, "hardly anything was killed"


async def test_what_cannot_be_told_is_not_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(tmp_path, *files())
    leave_an_incomplete_tail(tmp_path)
    size = (tmp_path / NEWEST).stat().st_size

    def refuse(catalog: Catalog, row: LedgerRow) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as full:
        full.setattr(Catalog, "add_ledger", refuse)
        with pytest.raises(ArchiveWriteError, match="disk is full"):
            await Generation.open(tmp_path)
    assert (tmp_path / NEWEST).stat().st_size == size
    await (await Generation.open(tmp_path)).close()
    assert (tmp_path / NEWEST).stat().st_size == newest().size
    assert [row.kind for row in read_ledger(tmp_path)] == ["trimmed_tail"]


def test_bad_bytes_are_kept_durably_before_they_are_cut_off(tmp_path: Path) -> None:
    class PowerCut(ForgetfulDisk):
        """The power goes when the binlog is to be cut."""

        def truncate(self, fd: int, size: int) -> None:
            if size == newest().size:
                self.lose_power(directory, tmp_path / "survivor", 1)
            super().truncate(fd, size)

    directory = tmp_path / "archive"
    asyncio.run(fill(directory, *files()))
    leave_bad_bytes(directory)
    bad = (directory / NEWEST).read_bytes()[newest().size :]
    Recovery(directory, PowerCut()).run()
    assert (tmp_path / "survivor" / f"{NEWEST}.lost-{newest().size}").read_bytes() == bad


def test_the_log_of_a_catalog_that_is_set_aside_goes_with_it_also_behind_a_crash(tmp_path: Path) -> None:
    directory = tmp_path / "archive"
    asyncio.run(fill(directory, *files()))
    damage_the_catalog(directory)
    main, log = ((directory / name).read_bytes() for name in ("catalog.sqlite", "catalog.sqlite-wal"))
    # As a kill between the two renames leaves it.
    (directory / "catalog.sqlite").rename(directory / "catalog.sqlite.corrupt-77")
    Recovery(directory, FileLayer()).run()
    assert (directory / "catalog.sqlite.corrupt-77").read_bytes() == main
    assert (directory / "catalog.sqlite.corrupt-77-wal").read_bytes() == log
    assert [(row.kind, row.file) for row in read_ledger(directory)] == [
        ("catalog_set_aside", "catalog.sqlite.corrupt-77")
    ]


def test_a_rebuild_tells_of_files_that_are_lost(tmp_path: Path) -> None:
    asyncio.run(fill(tmp_path, *files()))
    (tmp_path / NEWEST).unlink()
    rebuild_archive(tmp_path)
    assert [(row.kind, row.file) for row in read_ledger(tmp_path)] == [("file_missing", NEWEST)]
    assert [file.name for file in list_archive(tmp_path)] == NAMES[:-1]


class RefusingDisk(FileLayer):
    """`full`: a write puts in a part and fails, and the file cannot be cut back. `sync_fails`: of binlogs."""

    def __init__(self) -> None:
        self.full = self.sync_fails = False
        self.size_told = -1

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        if not self.full:
            return super().pwritev(fd, buffers, offset)
        super().pwritev(fd, [bytes(buffers[0])[:30]], offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def truncate(self, fd: int, size: int) -> None:
        if self.full:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().truncate(fd, size)

    def sync_data(self, fd: int) -> None:
        if self.sync_fails and os.readlink(f"/proc/self/fd/{fd}").endswith(NAMES[0]):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync_data(fd)


async def test_a_cut_after_a_failed_write_is_told_although_reopening_fails_behind_it(tmp_path: Path) -> None:
    built = newest()
    whole = built.size
    built.transaction(400)
    disk = RefusingDisk()
    generation = await Generation.open(
        tmp_path, ArchiveOptions(sync=SyncPolicy.NONE, on_failure=lambda error: None), layer=disk
    )
    await generation.begin_file(NAMES[0])
    await append_all(generation, built.data[:whole])
    disk.full = True
    await append_all(generation, built.data, start=whole)
    assert (tmp_path / NAMES[0]).stat().st_size == whole + 30
    disk.full, disk.sync_fails = False, True
    with pytest.raises(ArchiveWriteError):
        await generation.reopen_writer()
    assert (tmp_path / NAMES[0]).stat().st_size == whole
    assert [row.kind for row in read_ledger(tmp_path)] == ["trim_failed", "write_failed", "trimmed_tail"]
    disk.sync_fails = False
    await generation.reopen_writer()
    await append_all(generation, built.data, start=whole)
    await generation.close()
    assert (tmp_path / NAMES[0]).read_bytes() == built.data
    assert [row.kind for row in read_ledger(tmp_path)].count("trimmed_tail") == 1


async def test_a_writer_is_not_reopened_while_the_ledger_cannot_take_the_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = newest()
    whole = built.size
    built.transaction(400)
    disk = RefusingDisk()
    generation = await Generation.open(tmp_path, ArchiveOptions(on_failure=lambda error: None), layer=disk)
    await generation.begin_file(NAMES[0])
    await append_all(generation, built.data[:whole])
    disk.full = True
    await append_all(generation, built.data, start=whole)
    disk.full = False

    def refuse(catalog: Catalog, row: LedgerRow) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as full:
        full.setattr(Catalog, "add_ledger", refuse)
        full.setattr("relay.archive.catalog.catalog_thread._WRITE_WAIT_S", 0.2)
        with pytest.raises(ArchiveWriteError, match="the ledger cannot be written"):
            await generation.reopen_writer()
        assert (tmp_path / NAMES[0]).stat().st_size == whole + 30
    await generation.reopen_writer()
    assert (tmp_path / NAMES[0]).stat().st_size == whole
    await generation.close()
    assert [row.kind for row in read_ledger(tmp_path)].count("trimmed_tail") == 1


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
async def test_what_comes_behind_a_file_that_cannot_be_read_is_not_taken_for_the_beginning(
    tmp_path: Path, flavour: str
) -> None:
    files = MYSQL if flavour == "mysql" else MARIADB
    await fill(tmp_path, *files)
    whole = await Generation.open(tmp_path)
    executed = whole.gtids.executed
    await whole.close()
    (tmp_path / files[0][0]).write_bytes(b"")
    generation = await Generation.open(tmp_path)
    view = generation.gtids.view()
    if flavour == "mariadb":
        assert len(view.befores[1]) > 0, "a replica that has nothing would begin at the second file, without a word"
    assert generation.gtids.executed == executed
    await generation.close()
