"""An archive that a newer version wrote is refused by name, and left as it is."""

import sqlite3
from pathlib import Path

import pytest

from protocol.errors import ExitCode
from relay.archive.archive import Archive
from relay.archive.catalog.catalog import Catalog, CatalogNewer
from relay.archive.catalog.catalog_layout import APPLICATION, EARLIER, LAYOUT
from relay.archive_inspection.listing import rebuild_archive
from relay.archive_inspection.verify import verify_archive
from relay.commands.archive_command import list_files
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder

NAME = "mysql-bin.000001"


def make_newer(catalog: Path, layout: int = LAYOUT + 1, application: int | None = None) -> None:
    db = sqlite3.connect(catalog)
    db.execute(f"PRAGMA user_version = {layout}")
    db.execute(f"PRAGMA application_id = {APPLICATION + layout if application is None else application}")
    db.close()


@pytest.fixture
async def catalog(tmp_path: Path) -> Path:
    binlog = BinlogBuilder()
    binlog.transaction()
    await fill(tmp_path, (NAME, binlog.data))
    return tmp_path / "catalog.sqlite"


def held(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix not in (".lock", "")}


async def test_a_newer_archive_is_refused_by_name_and_nothing_in_it_changes(tmp_path: Path, catalog: Path) -> None:
    make_newer(catalog)
    before = held(tmp_path)
    with pytest.raises(CatalogNewer, match=f"has layout {LAYOUT + 1}: a newer binlog-relay wrote it") as refused:
        await Archive.open(tmp_path)
    assert str(catalog) in str(refused.value)
    assert "Nothing was changed" in refused.value.advice
    assert held(tmp_path) == before


async def test_commands_refuse_it_too(tmp_path: Path, catalog: Path) -> None:
    make_newer(catalog)
    with pytest.raises(CatalogNewer):
        list(verify_archive(tmp_path))
    with pytest.raises(CatalogNewer, match="a newer binlog-relay") as refused:
        list_files(tmp_path, as_json=False)
    assert refused.value.exit_code == ExitCode.WRONG_USE


async def test_a_rebuild_makes_it_one_of_this_version(tmp_path: Path, catalog: Path) -> None:
    make_newer(catalog)
    recovered = rebuild_archive(tmp_path)
    assert [file.name for file in recovered.files] == [NAME]
    assert "catalog_set_aside" in [row.kind for row in recovered.findings]
    await (await Archive.open(tmp_path)).close()
    assert list(verify_archive(tmp_path, deep=True)) == []


@pytest.mark.parametrize("application", [0, APPLICATION + LAYOUT])
async def test_a_number_that_damage_wrote_is_no_newer_version(tmp_path: Path, catalog: Path, application: int) -> None:
    make_newer(catalog, application=application)
    archive = await Archive.open(tmp_path)
    assert [file.name for file in archive.current.files] == [NAME]
    await archive.close()
    assert len(list(tmp_path.glob("catalog.sqlite.corrupt-*"))) >= 1


async def test_a_catalog_says_its_layout_twice(tmp_path: Path, catalog: Path) -> None:
    db = sqlite3.connect(catalog)
    assert db.execute("PRAGMA user_version").fetchone() == (LAYOUT,)
    assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION + LAYOUT,)
    db.close()
    assert set(EARLIER) == set(range(1, LAYOUT))
    Catalog.open_read_only(catalog).close()
