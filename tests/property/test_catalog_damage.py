"""Whatever becomes of the catalog's bytes: the relay starts, every binlog is there, the ledger says what it said."""

import asyncio
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from protocol.gtid.gtid_set import GtidSet
from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.catalog.catalog_rows import DamagedPlace, LedgerRow
from relay.archive.generation import Generation
from relay.archive.recovery.recovery import Recovery
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.files import CATALOG_NAME, LEDGER_TEXT_NAME, FileLayer
from relay.archive.storage.ledger_kinds import (
    CATALOG_REMADE,
    CATALOG_SET_ASIDE,
    LEDGER_TEXT_DAMAGED,
    LEDGER_TEXT_REMADE,
)
from relay.archive.storage.origin import Origin
from relay.archive_inspection.listing import count_ledger, list_archive, read_ledger, rebuild_archive
from relay.archive_inspection.verify import verify_generations
from tests.support.archive_filling import append_all, fill
from tests.support.gtid_binlog import add_mysql, mysql_binlog

TOLD: Final = {"test", CATALOG_SET_ASIDE, CATALOG_REMADE, LEDGER_TEXT_DAMAGED, LEDGER_TEXT_REMADE}
U: Final = "11111111-1111-1111-1111-111111111111"
PAGE: Final = 4096
WHO: Final = SourceIdentity("mysql", "8.4.0", 7, U)
ORIGIN: Final = Origin(3.5, "mysql-bin.000001", "old-bin.000009", 400, GtidSet.from_text(f"{U}:1-2"))
ROWS: Final = [LedgerRow(float(n), "test", f"mysql-bin.{n:06d}", n, "something that happened " * 4) for n in range(60)]


def files() -> list[tuple[str, bytearray]]:
    before = GtidSet()
    built = []
    for number, text in enumerate(("1-5", "6-9", "10-12"), 1):
        binlog = mysql_binlog(before)
        inside = GtidSet.from_text(f"{U}:{text}")
        for gtid in inside.members():
            add_mysql(binlog, gtid)
        before |= inside
        built.append((f"mysql-bin.{number:06d}", binlog.data))
    return built


def facts(files: list[object]) -> list[tuple[object, ...]]:
    return [(f.name, f.end, f.sealed, f.events, f.groups) for f in files]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with something in every table of its catalog, all of it in the database and nothing in its log."""
    directory = tmp_path_factory.mktemp("catalog") / "archive"
    asyncio.run(fill(directory, *files()))
    catalog = Catalog.open(directory / CATALOG_NAME, FileLayer())
    catalog.set_identity(WHO)
    catalog.set_origin(ORIGIN)
    for row in ROWS:
        catalog.add_ledger(row)
    catalog.add_damage(DamagedPlace("gone", 1, 1, 1.0, "test"))
    catalog.note_check(1, 1.0)
    catalog.close()
    assert not (directory / "catalog.sqlite-wal").exists()
    return directory


def assert_whole(directory: Path, before: Path) -> None:
    """The relay starts there, and knows all that it knew."""
    recovered = Recovery(directory, FileLayer()).run()
    assert facts(list(recovered.files)) == facts(list(list_archive(before)))
    assert (recovered.identity, recovered.origin) == (WHO, ORIGIN)
    assert recovered.gtids.executed == GtidSet.from_text(f"{U}:1-12")
    ledger = read_ledger(directory)
    assert [row for row in ledger if row.kind == "test"] == ROWS
    kept = [path.name for path in directory.glob("catalog.sqlite.corrupt-*") if path.name[-4:] not in ("-wal", "-shm")]
    told = [row.file for row in ledger if row.kind == CATALOG_SET_ASIDE]
    assert (sorted(told), {row.kind for row in ledger} <= TOLD) == (
        sorted(kept),
        True,
    )


def put(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def random_bytes(chance: random.Random, at: int, count: int) -> Callable[[Path], None]:
    data = chance.randbytes(count)
    return lambda path: put(path, at, data)


def disasters(size: int) -> Iterator[tuple[str, Callable[[Path], None]]]:
    chance = random.Random(15)
    for page in range(size // PAGE):
        garbage = chance.randbytes(PAGE)
        yield f"page {page} garbage", lambda path, at=page * PAGE, data=garbage: put(path, at, data)
        yield f"page {page} zero", lambda path, at=page * PAGE: put(path, at, bytes(PAGE))
        yield f"cut in page {page}", lambda path, at=page * PAGE + 100: cut(path, at)
        yield f"cut before page {page}", lambda path, at=page * PAGE: cut(path, at)
    for at in range(100):
        yield f"byte {at}", random_bytes(chance, at, 1)
    for _ in range(150):
        at, count = chance.randrange(size), chance.choice([1, 1, 1, 4, 64])
        yield f"{count} bytes at {at}", random_bytes(chance, at, count)
    yield "missing", Path.unlink


def test_after_any_damage_to_the_catalog_the_relay_starts_and_knows_what_it_knew(archive: Path, tmp_path: Path) -> None:
    wrong = {}
    for name, happen in disasters((archive / CATALOG_NAME).stat().st_size):
        directory = tmp_path / "one"
        shutil.copytree(archive, directory)
        happen(directory / CATALOG_NAME)
        try:
            assert_whole(directory, archive)
        except Exception as error:
            wrong[name] = repr(error)[:300]
        shutil.rmtree(directory)
    assert wrong == {}


def test_after_any_damage_to_the_catalog_rebuild_makes_it_again(archive: Path, tmp_path: Path) -> None:
    size = (archive / CATALOG_NAME).stat().st_size
    wrong = {}
    for name, happen in disasters(size):
        if not name.startswith(("page", "cut", "missing")):
            continue
        directory = tmp_path / "one"
        shutil.copytree(archive, directory)
        happen(directory / CATALOG_NAME)
        try:
            rebuild_archive(directory)
            assert_whole(directory, archive)
        except Exception as error:
            wrong[name] = repr(error)[:300]
        shutil.rmtree(directory)
    assert wrong == {}


def test_whoever_reads_a_damaged_catalog_is_told_that_it_is_damaged(archive: Path, tmp_path: Path) -> None:
    shutil.copytree(archive, tmp_path / "one")
    path = tmp_path / "one" / CATALOG_NAME
    sound = path.read_bytes()
    wrong = {}
    readers = (list_archive, read_ledger, count_ledger, lambda where: list(verify_generations(where, deep=True)))
    for name, happen in disasters(len(sound)):
        path.write_bytes(sound)
        happen(path)
        for read in readers:
            try:
                read(tmp_path / "one")
            except CatalogUnreadable:
                pass
            except Exception as error:
                wrong[name] = repr(error)[:300]
    assert wrong == {}


def test_after_any_damage_to_the_text_too_the_relay_starts(archive: Path, tmp_path: Path) -> None:
    """With a good catalog nothing is lost; without one each line that is sound is there again, and nothing else."""
    chance = random.Random(3)
    size = (archive / LEDGER_TEXT_NAME).stat().st_size
    wrong = {}
    for turn in range(150):
        directory = tmp_path / "one"
        shutil.copytree(archive, directory)
        path = directory / LEDGER_TEXT_NAME
        at = chance.randrange(size)
        if turn % 5 == 0:
            cut(path, at)
        else:
            put(path, at, chance.randbytes(chance.choice([1, 1, 4, 300])))
        try:
            if turn % 2:
                assert_whole(directory, archive)
            (directory / CATALOG_NAME).unlink()
            recovered = Recovery(directory, FileLayer()).run()
            assert facts(list(recovered.files)) == facts(list(list_archive(archive)))
            assert recovered.identity in (WHO, None) and recovered.origin in (ORIGIN, None)
            found = [row for row in read_ledger(directory) if row.kind == "test"]
            assert set(found) <= set(ROWS) and len(found) == len(set(found))
            assert turn % 2 == 0 or found == ROWS
        except Exception as error:
            wrong[turn, at] = repr(error)[:300]
        shutil.rmtree(directory)
    assert wrong == {}


@pytest.mark.parametrize("how", ["garbage", "zero", "cut"])
async def test_damage_under_a_running_relay_costs_nothing(archive: Path, tmp_path: Path, how: str) -> None:
    """Whether SQLite meets it depends on what it has in memory; in any case the archive goes on, and the next start is whole."""
    size = (archive / CATALOG_NAME).stat().st_size
    more = files()
    name, data = "mysql-bin.000004", more[2][1]
    for page in range(size // PAGE):
        directory = tmp_path / f"{how}{page}"
        shutil.copytree(archive, directory)
        generation = await Generation.open(directory)
        path = directory / CATALOG_NAME
        if how == "cut":
            cut(path, page * PAGE)
        else:
            put(path, page * PAGE, bytes(PAGE) if how == "zero" else random.Random(page).randbytes(PAGE))
        await generation.begin_file(name)
        await append_all(generation, data)
        generation.append_ledger("test_later", name, 4, "written behind the damage")
        await generation.trim()
        assert generation.failure is None, f"page {page}"
        await generation.close()
        recovered = Recovery(directory, FileLayer()).run()
        assert [file.name for file in recovered.files][-1] == name, f"page {page}"
        assert (recovered.files[-1].end, len(recovered.files)) == (len(data), 4), f"page {page}"
        assert recovered.identity == WHO
        ledger = read_ledger(directory)
        assert [row for row in ledger if row.kind == "test"] == ROWS, f"page {page}"
        assert [row.kind for row in ledger].count("test_later") == 1, f"page {page}"
