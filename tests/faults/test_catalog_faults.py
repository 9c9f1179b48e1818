"""A catalog that is lost, replaced, damaged or forbidden under a relay: it goes on, says so, and knows what it knew."""

import asyncio
import contextlib
import errno
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.catalog.catalog_rows import DamagedPlace
from relay.archive.generation import Generation
from relay.archive.recovery.recovery import Recovery
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.archived_file import ArchivedFile, SourceIdentity
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.archive_inspection.listing import list_archive, read_ledger, rebuild_archive
from relay.archive_inspection.verify import verify_archive
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder

NAMES = [f"mysql-bin.{number:06d}" for number in range(1, 5)]
WHO = SourceIdentity("mysql", "8.4.0", 7, None)
NOBODY = 65534


def content(following: str | None) -> bytearray:
    built = BinlogBuilder().ddl().transaction(10, 300)
    return (built.rotate(following) if following else built).data


def facts(files: list[ArchivedFile]) -> list[tuple[object, ...]]:
    return [tuple(getattr(file, name) for name in ArchivedFile.__slots__) for file in files]


async def written(generation: Generation) -> None:
    """Returns when the catalog has made all changes that were given to it."""
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    generation._catalog.submit(lambda catalog: loop.call_soon_threadsafe(done.set))
    async with asyncio.timeout(20):
        await done.wait()


async def running(directory: Path) -> Generation:
    """With three files, the last one open, and a catalog that has been written."""
    generation = await Generation.open(directory)
    generation.set_identity(WHO)
    for name, following in zip(NAMES, [*NAMES[1:3], None], strict=False):
        await generation.begin_file(name)
        await append_all(generation, content(following))
    await generation.trim()
    generation.append_ledger("test", NAMES[0], 4, "before")
    while any(file.digest is None for file in generation.files[:-1]):
        await asyncio.sleep(0.01)
    await written(generation)
    return generation


def remove(directory: Path) -> None:
    (directory / CATALOG_NAME).unlink()


def remove_all_of_it(directory: Path) -> None:
    for path in directory.glob("catalog.sqlite*"):
        path.unlink()


def replace(directory: Path) -> None:
    (directory / "another").write_bytes(b"no database" * 500)
    (directory / "another").rename(directory / CATALOG_NAME)


def replace_by_a_copy(directory: Path) -> None:
    shutil.copy(directory / CATALOG_NAME, directory / "another")
    (directory / "another").rename(directory / CATALOG_NAME)


@pytest.mark.parametrize(
    ("happen", "kind"),
    [
        (remove, "catalog_remade"),
        (remove_all_of_it, "catalog_remade"),
        (replace, "catalog_set_aside"),
        (replace_by_a_copy, "catalog_set_aside"),
    ],
)
async def test_a_catalog_that_is_lost_under_a_running_relay_is_put_back(
    tmp_path: Path, happen: Callable[[Path], None], kind: str
) -> None:
    generation = await running(tmp_path)
    before = facts(list_archive(tmp_path))
    happen(tmp_path)
    generation.append_ledger("test", NAMES[0], 4, "behind")
    await written(generation)
    assert (generation.failure, facts(list_archive(tmp_path))) == (None, before)
    assert sorted(row.kind for row in read_ledger(tmp_path)) == [kind, "test", "test"]
    await generation.begin_file(NAMES[3])
    await append_all(generation, content(None))
    await generation.close()
    again = await Generation.open(tmp_path)
    assert (again.identity, [file.name for file in again.files]) == (WHO, NAMES)
    await again.close()
    assert sorted(row.kind for row in read_ledger(tmp_path)) == [kind, "test", "test"]
    (tmp_path / "another").unlink(missing_ok=True)
    assert list(verify_archive(tmp_path, deep=True)) == []


def empty(directory: Path) -> None:
    (directory / CATALOG_NAME).write_bytes(b"")


@pytest.mark.parametrize("happen", [remove_all_of_it, replace, empty])
async def test_a_catalog_that_is_lost_before_its_first_change_is_made_again(
    tmp_path: Path, happen: Callable[[Path], None]
) -> None:
    await (await running(tmp_path)).close()
    generation = await Generation.open(tmp_path)
    before = facts(list_archive(tmp_path))
    happen(tmp_path)
    generation.append_ledger("test", NAMES[0], 4, "behind")
    await written(generation)
    await asyncio.sleep(0)  # the loop is told that it was made again
    await written(generation)
    assert [row[:2] for row in facts(list_archive(tmp_path))] == [row[:2] for row in before]
    await generation.close()
    again = await Generation.open(tmp_path)
    assert (again.identity, [file.name for file in again.files]) == (WHO, NAMES[:3])
    await again.close()
    kinds = [row.kind for row in read_ledger(tmp_path)]
    assert (len(kinds), kinds.count("test")) == (3, 2)


async def test_a_catalog_that_turns_out_damaged_under_a_running_relay_is_made_again(tmp_path: Path) -> None:
    generation = await running(tmp_path)
    before = facts(list_archive(tmp_path))
    for path in tmp_path.glob("catalog.sqlite*"):
        with path.open("r+b") as file:
            file.write(random.Random(1).randbytes(path.stat().st_size))
    generation._catalog.submit(_forget_what_is_in_memory)
    generation.append_ledger("test", NAMES[0], 4, "behind")
    await written(generation)
    await asyncio.sleep(0)  # the loop is told that it was made again
    await written(generation)
    assert generation.failure is None
    found = facts(list_archive(tmp_path))
    # Of the file that grows nothing is known to be synced until the next checkpoint.
    assert (found[:2], [row[0] for row in found]) == (before[:2], NAMES[:3])
    assert sorted(row.kind for row in read_ledger(tmp_path)) == ["catalog_set_aside", "test", "test"]
    await generation.close()
    again = await Generation.open(tmp_path)
    assert (again.identity, again.end) == (WHO, generation.end)
    await again.close()
    assert list(verify_archive(tmp_path, deep=True)) == []


@pytest.mark.parametrize("table", ["source", "ledger", "damage", "checks", "beginning"])
async def test_what_is_sound_in_a_damaged_catalog_is_kept(tmp_path: Path, table: str) -> None:
    """Digests above all: made again they would vouch for whatever is in the files now."""
    generation = await running(tmp_path)
    place = DamagedPlace(NAMES[0], 200, 120, 5.0, "for a test")
    generation._catalog.submit(lambda catalog: catalog.add_damage(place))
    await generation.close()
    before = facts(list_archive(tmp_path))
    with contextlib.closing(sqlite3.connect(tmp_path / CATALOG_NAME)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    with (tmp_path / CATALOG_NAME).open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(random.Random(3).randbytes(4096))
    (tmp_path / f"{NAMES[1]}.gtx").unlink()  # would be needed to read its GTIDs again
    recovered = Recovery(tmp_path, FileLayer()).run()
    assert facts(list_archive(tmp_path)) == before
    assert [row.kind for row in read_ledger(tmp_path)] == ["test", "catalog_set_aside"]
    assert recovered.damaged_places == ([] if table == "damage" else [place])
    assert not (tmp_path / f"{NAMES[1]}.gtx").exists()


@pytest.mark.parametrize("force", [False, True], ids=["start", "rebuild"])
@pytest.mark.parametrize(
    "step",
    ["files", "gtids", "records", "add_ledger", "forget_files", "put_files", "identity", "origin", "checks", "damage"],
)
def test_damage_that_is_met_at_any_step_of_a_recovery_is_cured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, force: bool
) -> None:
    asyncio.run(fill(tmp_path, *((name, content(NAMES[place + 1])) for place, name in enumerate(NAMES[:3]))))
    (tmp_path / NAMES[0]).unlink()
    with (tmp_path / NAMES[2]).open("ab") as file:
        file.write(b"no event at all" * 100)
    call = getattr(Catalog, step)
    met = 0

    def damaged(self: Catalog, *args: object, **named: object) -> object:
        nonlocal met
        met += 1
        if met == 1:
            raise CatalogUnreadable("the catalog is damaged: here", file=CATALOG_NAME)
        return call(self, *args, **named)

    monkeypatch.setattr(Catalog, step, damaged)
    recovered = Recovery(tmp_path, FileLayer()).run(force=force)
    assert met or (step == "gtids" and force)
    assert [file.name for file in recovered.files] == NAMES[1:3]
    told = [row.kind for row in read_ledger(tmp_path)]
    expected = {"catalog_set_aside", "file_missing", "trimmed_bad_bytes"}
    assert (set(told), len(told)) == (expected if met else expected - {"catalog_set_aside"}, 3 if met else 2)


def _forget_what_is_in_memory(catalog: Catalog) -> None:
    catalog._db.execute("PRAGMA shrink_memory")


@pytest.fixture
def of_nobody() -> Iterator[Path]:
    """An archive of another user, whose catalog belongs to root and may only be read."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        place.chmod(0o755)
        directory = place / "archive"
        asyncio.run(fill(directory, (NAMES[0], content(None))))
        for path in (directory, *directory.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        os.chown(directory / CATALOG_NAME, 0, 0)
        (directory / CATALOG_NAME).chmod(0o444)
        yield directory
    finally:
        shutil.rmtree(place)


def as_nobody(action: Callable[[], str]) -> str:
    """What `action` returns in a process of that user."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            answer = action()
        except BaseException as error:
            answer = f"unexpected: {error!r}"
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def test_a_catalog_that_may_not_be_written_is_named_and_rebuild_replaces_it(of_nobody: Path) -> None:
    async def start() -> str:
        try:
            generation = await Generation.open(of_nobody)
        except ArchiveWriteError as error:
            return f"{error.errno} {error}"
        await generation.close()
        return "started"

    def rebuild() -> str:
        return " ".join(row.kind for row in rebuild_archive(of_nobody).findings)

    refused = as_nobody(lambda: asyncio.run(start()))
    assert refused.startswith(f"{errno.EACCES} ") and CATALOG_NAME in refused and "chown" in refused, refused
    assert CATALOG_NAME in [finding.file for finding in verify_archive(of_nobody)]
    assert as_nobody(rebuild) == "catalog_set_aside"
    assert as_nobody(lambda: asyncio.run(start())) == "started"
    assert list(verify_archive(of_nobody, deep=True)) == []


@pytest.mark.parametrize(("mode", "uid"), [(0o000, None), (0o440, None), (0o640, NOBODY)])
def test_a_file_that_the_archives_owner_cannot_use_is_a_finding_also_for_root(
    tmp_path: Path, mode: int, uid: int | None
) -> None:
    if uid is not None and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    asyncio.run(fill(tmp_path, (NAMES[0], content(None))))
    path = tmp_path / NAMES[0]
    path.chmod(mode)
    if uid is not None:
        os.chown(path, uid, uid)
    findings = list(verify_archive(tmp_path))
    assert (findings[0].file, f"{mode:04o}" in findings[0].what, "chown" in findings[0].what) == (NAMES[0], True, True)


async def test_a_disk_without_inodes_is_not_called_full(tmp_path: Path) -> None:
    class Disk(FileLayer):
        out = False

        def create(self, path: Path) -> int:
            if self.out:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            return super().create(path)

        def free_inodes(self, directory: Path) -> int | None:
            return 0 if self.out else super().free_inodes(directory)

    disk = Disk()
    generation = await Generation.open(tmp_path, layer=disk)
    disk.out = True
    await generation.begin_file(NAMES[0])
    await append_all(generation, content(None))
    assert generation.failure is not None
    assert "no inodes left" in generation.failure.advice and "df -i" in generation.failure.advice
    disk.out = False
    await generation.close()
