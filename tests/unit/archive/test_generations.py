"""An archive over several sources: what each generation is, where one ends, what a crash leaves."""

from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from protocol.gtid.gtid_set import GtidSet
from protocol.position import Position
from relay.archive import archive as archive_module
from relay.archive.archive import Archive
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.generation import Generation, GenerationState
from relay.archive.storage.archive_errors import ArchiveMisuse
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.archive.storage.origin import Origin
from relay.archive_inspection.listing import list_archive, read_ledger
from relay.archive_inspection.verify import verify_archive
from tests.support.archive_filling import append_all
from tests.support.generation_filling import (
    A,
    B,
    append_files,
    change_source,
    identity,
    mariadb_series,
    mysql_series,
    two_generations,
)


def names(generation: Generation) -> list[str]:
    return [file.name for file in generation.files]


async def test_a_new_archive_is_one_generation(tmp_path: Path) -> None:
    archive = await Archive.open(tmp_path)
    (only,) = archive.all
    assert (only.number, only.directory, only.origin, only.ended) == (1, tmp_path, None, False)
    assert archive.executed is None and archive.after(only) is None
    await archive.close()


async def test_the_next_source_has_a_directory_of_its_own_and_the_one_before_has_ended(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path)
    first, second = archive.all
    assert (names(first), first.ended) == (["mysql-bin.000001", "mysql-bin.000002"], True)
    assert (names(second), second.ended) == (["mysql-bin.000002", "mysql-bin.000003"], False)
    assert second.directory == tmp_path / "g0002" and archive.current is second
    assert all(file.sealed for file in first.files)
    assert second.identity == identity(B, 2)
    assert archive.after(first) is second
    assert second.origin is not None and first.end is not None
    assert Position(second.origin.after_file, second.origin.after_offset) == first.end
    assert (second.origin.file, second.origin.state) == ("mysql-bin.000002", GtidSet.from_text(f"{A}:1-6"))
    await archive.close()


async def test_what_is_executed_is_what_all_generations_have(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path)
    first, second = archive.all
    assert first.executed == GtidSet.from_text(f"{A}:1-6")
    assert second.executed == archive.executed == GtidSet.from_text(f"{A}:1-9,{B}:1-2")
    assert archive.purged == GtidSet()
    await archive.close()


async def test_before_the_new_source_has_sent_what_was_there_it_counts_all_the_same(tmp_path: Path) -> None:
    archive = await Archive.open(tmp_path)
    await append_files(archive, mysql_series(1, f"{A}:1-6"))
    await change_source(archive, identity(B, 2), mysql_series(1, f"{A}:1-2"))
    assert archive.current.gtids.executed == GtidSet.from_text(f"{A}:1-2")
    assert archive.executed == GtidSet.from_text(f"{A}:1-6")
    await archive.close()


async def test_a_mariadb_source_that_is_behind_for_a_moment_takes_nothing_back(tmp_path: Path) -> None:
    archive = await Archive.open(tmp_path)
    await append_files(archive, mariadb_series(1, "0-1-1,0-1-2,0-1-3"))
    await change_source(archive, identity(None, 2, "mariadb"), mariadb_series(1, "0-1-1,0-1-2"))
    assert str(archive.executed) == "0-1-3"
    await append_files(archive, mariadb_series(2, "0-1-3,0-2-4", start="0-1-2"))
    assert str(archive.executed) == "0-1-3,0-2-4"
    await archive.close()


async def test_a_domain_that_the_later_source_forgot_is_not_kept_of_the_one_before(tmp_path: Path) -> None:
    archive = await Archive.open(tmp_path)
    await append_files(archive, mariadb_series(1, "0-1-1,11-5-1,11-6-2"))
    # Made from a backup: of the domain it knows the newest group only.
    await change_source(archive, identity(None, 2, "mariadb"), mariadb_series(1, "0-2-2", start="0-1-1,11-6-2"))
    assert str(archive.executed) == "0-1-1,0-2-2,11-5-1,11-6-2"
    await append_files(archive, mariadb_series(2, "0-2-3", start="0-1-1,0-2-2"))
    assert str(archive.executed) == "0-1-1,0-2-3"
    await archive.close()
    again = await Archive.open(tmp_path)
    assert str(again.executed) == "0-1-1,0-2-3"
    await again.close()


async def test_all_of_it_is_there_again_at_the_next_open(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path)
    beginning, executed = archive.current.origin, archive.executed
    ends = [generation.end for generation in archive.all]
    await archive.close()
    archive = await Archive.open(tmp_path)
    first, second = archive.all
    assert [generation.end for generation in archive.all] == ends
    assert (first.ended, second.ended) == (True, False)
    assert (second.origin, archive.executed) == (beginning, executed)
    await append_files(archive, mysql_series(4, f"{B}:3", start=f"{A}:1-9,{B}:1-2"))
    assert names(second)[-1] == "mysql-bin.000004"
    await archive.close()


async def test_the_ledgers_say_where_one_ended_and_the_other_begins(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path)
    end = archive.all[0].end
    await archive.close()
    await (await Archive.open(tmp_path)).close()
    (ended,) = [row for row in read_ledger(tmp_path) if row.kind == "generation_ended"]
    (begun,) = [row for row in read_ledger(tmp_path / "g0002") if row.kind == "generation_begun"]
    assert Position(ended.file, ended.offset) == end
    assert f"ended at {end}" in begun.text and "source-b:3306" in begun.text and A in begun.text and B in begun.text


async def test_each_generation_is_an_archive_that_can_be_verified(tmp_path: Path) -> None:
    await (await two_generations(tmp_path)).close()
    for _number, path in begun_generations(tmp_path):
        assert list(verify_archive(path, deep=True)) == []


async def test_nothing_is_appended_to_one_that_has_ended(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path)
    generation = archive.all[0]
    assert generation.state is GenerationState.ENDED
    with pytest.raises(ArchiveMisuse, match="ended"):
        generation.start_file("mysql-bin.000003")
    with pytest.raises(ArchiveMisuse, match="ended"):
        await generation.reopen_writer()
    await archive.close()


async def test_what_was_prepared_and_got_no_file_leaves_nothing_behind(tmp_path: Path) -> None:
    archive = await Archive.open(tmp_path)
    await append_files(archive, mysql_series(1, f"{A}:1-3"))
    before = archive.current
    await archive.prepare(identity(B, 2), "source-b:3306", "mysql-bin.000001")
    assert (tmp_path / "g0002").is_dir() and archive.current is before
    await archive.discard_prepared()
    assert not (tmp_path / "g0002").exists()
    assert archive.current is before and archive.receiving is before and not before.ended
    await append_files(archive, mysql_series(2, f"{A}:4", start=f"{A}:1-3"))
    assert archive.executed == GtidSet.from_text(f"{A}:1-4")
    await archive.close()


async def test_what_was_prepared_and_got_its_file_is_not_taken_back(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path)
    await archive.discard_prepared()
    assert [generation.number for generation in archive.all] == [1, 2]
    await archive.close()


async def test_what_was_prepared_when_the_process_ended_is_removed_at_the_next_open(tmp_path: Path) -> None:
    archive = await Archive.open(tmp_path)
    await append_files(archive, mysql_series(1, f"{A}:1-3"))
    prepared = await archive.prepare(identity(B, 2), "source-b:3306", "mysql-bin.000001")
    assert begun_generations(tmp_path) == [(1, tmp_path)]
    archive._prepared = None  # as if nobody had come to discard it
    await prepared.close()
    await archive.close()
    archive = await Archive.open(tmp_path)
    assert [generation.number for generation in archive.all] == [1]
    assert not (tmp_path / "g0002").exists()
    await append_files(archive, mysql_series(2, f"{A}:4", start=f"{A}:1-3"))
    await archive.close()


async def test_one_that_was_not_sealed_when_the_process_ended_is_at_the_next_open(tmp_path: Path) -> None:
    archive = await Archive.open(tmp_path)
    await append_files(archive, mysql_series(1, f"{A}:1-3"))
    await archive.close()
    second = tmp_path / "g0002"
    second.mkdir()
    generation = await Generation.open(second)
    ((name, data),) = mysql_series(1, f"{A}:1-4")
    await generation.begin_file(name)
    await append_all(generation, data)
    await generation.close()
    assert not list_archive(tmp_path)[-1].sealed
    archive = await Archive.open(tmp_path)
    first, second_generation = archive.all
    assert first.ended and first.files[-1].sealed and not second_generation.ended
    await archive.close()


async def test_a_lost_catalog_loses_no_generation(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path)
    executed = archive.executed
    await archive.close()
    for path in (tmp_path, tmp_path / "g0002"):
        for file in path.glob(f"{CATALOG_NAME}*"):
            file.unlink()
    archive = await Archive.open(tmp_path)
    assert ([one.number for one in archive.all], archive.executed) == ([1, 2], executed)
    assert archive.current.before == GtidSet.from_text(f"{A}:1-6")
    await archive.close()


async def test_watchers_hear_of_every_generation_and_of_its_end(tmp_path: Path) -> None:
    archive = await Archive.open(tmp_path)
    await append_files(archive, mysql_series(1, f"{A}:1-3"))
    seen = []
    archive.watch(lambda: seen.append((archive.current.number, archive.all[0].ended)))
    await change_source(archive, identity(B, 2), mysql_series(1, f"{A}:1-3", f"{A}:4"))
    assert seen[0][0] == 2 and (2, True) in seen
    await archive.close()


async def test_a_third_source_goes_on_where_the_second_ends(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path)
    await change_source(archive, identity(A, 1), mysql_series(3, f"{A}:7-9,{B}:1-3", start=f"{A}:1-6"))
    assert [one.number for one in archive.all] == [1, 2, 3]
    assert [one.ended for one in archive.all] == [True, True, False]
    assert archive.executed == GtidSet.from_text(f"{A}:1-9,{B}:1-3")
    await archive.close()


async def test_a_generation_that_was_purged_as_a_whole_is_no_more_among_them(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path)
    first = archive.all[0]
    await first.purge(names(first), "for a test")
    await archive.forget_emptied()
    assert [one.number for one in archive.all] == [2]
    # 4 was in B's file already.
    assert archive.purged == GtidSet.from_text(f"{A}:1-4")
    await archive.close()
    archive = await Archive.open(tmp_path)
    assert [one.number for one in archive.all] == [2]
    assert archive.purged == GtidSet.from_text(f"{A}:1-4")
    assert archive.executed == GtidSet.from_text(f"{A}:1-9,{B}:1-2")
    await change_source(archive, identity(A, 1), mysql_series(3, f"{A}:7-9,{B}:1-3", start=f"{A}:1-6"))
    assert [one.number for one in archive.all] == [2, 3]
    await archive.close()


async def test_what_the_middle_of_three_had_is_known_when_it_was_purged(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path)
    await change_source(archive, identity(A, 1), mysql_series(3, f"{A}:7-9,{B}:1-3", start=f"{A}:1-6"))
    gone = [str(archive.purged)]
    for generation in archive.all[:2]:
        for name in names(generation):
            await generation.purge([name], "for a test")
            gone.append(str(archive.purged))
    # A has 1 to 3 and 4 to 6, B 5 to 9 and its own two, the third one 7 to 9 and all of B.
    assert gone == ["", f"{A}:1-3", f"{A}:1-4", f"{A}:1-6", f"{A}:1-6"]
    await archive.forget_emptied()
    await archive.close()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["g0002", "g0003"]
    archive = await Archive.open(tmp_path)
    assert [one.number for one in archive.all] == [3]
    assert archive.executed == GtidSet.from_text(f"{A}:1-9,{B}:1-3")
    await archive.close()


def test_a_beginning_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / CATALOG_NAME
    catalog = Catalog.open(path, FileLayer())
    assert catalog.origin() is None
    origin = Origin(1.5, "b.000001", "a.000007", 1234, GtidSet.from_text(f"{A}:1-6"))
    catalog.set_origin(origin)
    assert catalog.origin() == origin
    catalog.close()


async def test_an_end_that_fails_by_a_fault_of_ours_is_told_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, tries = Archive._seal, 0

    async def fails_twice(self: Archive, *which: Any) -> None:
        nonlocal tries
        tries += 1
        if tries <= 2:
            raise ZeroDivisionError("a bug")
        await end(self, *which)

    monkeypatch.setattr(archive_module, "_END_AGAIN_S", 0.01)
    monkeypatch.setattr(Archive, "_seal", fails_twice)
    with structlog.testing.capture_logs() as logs:
        archive = await two_generations(tmp_path)
    assert archive.all[0].ended and tries == 3
    (line,) = [line for line in logs if line["log_level"] == "error"]
    assert (line["event"], type(line["exc_info"])) == ("generation_not_ended", ZeroDivisionError)
    await archive.close()
