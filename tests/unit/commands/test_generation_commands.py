"""The `archive` commands, and the audits' list of files, on an archive of two sources."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.archive.catalog.catalog import Catalog
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.archive_inspection.verify import verify_generations
from relay.binlog_tables.plan.series_files import find_files
from relay.binlog_tables.plan.store import LocalStore
from relay.commands.archive_command import list_files, rebuild, show_ledger, verify
from relay.commands.archive_find import find
from relay.commands.outcome import CommandFailed
from tests.support.generation_filling import A, B, two_generations


@pytest.fixture
async def generation(tmp_path: Path) -> Path:
    """Closed; generation 1 has A's 1-6 in files 1 and 2, generation 2 5-9 and B's 1-2 in files 2 and 3."""
    await (await two_generations(tmp_path)).close()
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


async def test_list_names_the_files_of_all_sources_in_their_order(
    generation: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    list_files(generation, as_json=False)
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == [
        "mysql-bin.000001",
        "mysql-bin.000002",
        "g0002/mysql-bin.000002",
        "g0002/mysql-bin.000003",
    ]
    list_files(generation, as_json=True)
    assert [(line["file"], line["generation"], line["sealed"]) for line in lines(capsys)] == [
        ("mysql-bin.000001", 1, True),
        ("mysql-bin.000002", 1, True),
        ("mysql-bin.000002", 2, True),
        ("mysql-bin.000003", 2, False),
    ]


async def test_find_names_the_generation_and_the_older_one_first(
    generation: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for gtid, place in ((f"{A}:5", ("mysql-bin.000002", 1)), (f"{B}:2", ("mysql-bin.000003", 2))):
        find(generation, gtid=gtid, time=None, as_json=True)
        ((line),) = lines(capsys)
        assert (line["file"], line["generation"]) == place
    find(generation, gtid=f"{A}:9", time=None, as_json=False)
    assert capsys.readouterr().out.startswith("g0002/mysql-bin.000002\t")
    with pytest.raises(CommandFailed, match="does not hold"):
        find(generation, gtid=f"{B}:3", time=None, as_json=False)


async def test_the_ledger_is_one_by_time(generation: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_ledger(generation, as_json=True)
    assert {(line["kind"], line["generation"]) for line in lines(capsys)} == {
        ("generation_begun", 2),
        ("generation_ended", 1),
    }
    show_ledger(generation, as_json=False)
    assert "g0002/mysql-bin.000002" in capsys.readouterr().out


async def test_verify_looks_into_all_generations(generation: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(generation, deep=True, as_json=False) == 0
    assert capsys.readouterr().out == "The archive is fine.\n"
    path = generation / "g0002" / "mysql-bin.000002"
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    assert verify(generation, deep=True, as_json=False) > 0
    assert "g0002/mysql-bin.000002:" in capsys.readouterr().out


async def test_verify_finds_a_generation_that_does_not_begin_where_the_one_before_ended(generation: Path) -> None:
    path = generation / "g0002" / CATALOG_NAME
    catalog = Catalog.open(path, FileLayer())
    origin = catalog.origin()
    assert origin is not None
    catalog.set_origin(replace(origin, after_offset=4))
    catalog.close()
    ((number, finding),) = verify_generations(generation)
    assert number == 2 and "begins where the one before it ended at mysql-bin.000002:4;" in finding.what


async def test_rebuild_makes_all_of_it_again(generation: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in [*generation.rglob("*.idx"), *generation.rglob("*.gtx")]:
        path.unlink()
    rebuild(generation, as_json=False)
    assert "4 files in 2 generations" in capsys.readouterr().out
    assert list(verify_generations(generation, deep=True)) == []
    archive = await Archive.open(generation)
    assert [one.ended for one in archive.all] == [True, False]
    assert archive.current.origin is not None
    await archive.close()


async def test_audits_read_all_generations_in_order_under_names_that_differ(generation: Path) -> None:
    files = find_files(LocalStore(), str(generation))
    assert [file.name for file in files] == [
        "mysql-bin.000001",
        "mysql-bin.000002",
        "g0002/mysql-bin.000002",
        "g0002/mysql-bin.000003",
    ]
    assert [Path(file.path).is_file() for file in files] == [True] * 4
    assert [file.growing for file in files] == [False, False, False, True]
