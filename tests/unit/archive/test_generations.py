"""An archive over several sources: what each generation is, where one ends, what a crash leaves."""

from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from protocol.gtid.gtid_set import GtidSet
from protocol.position import Position
from relay.archive import archive as generations_module
from relay.archive.archive import Generations
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.generation import Archive, ArchiveState, list_archive, read_ledger
from relay.archive.inspect.verify import verify_archive
from relay.archive.storage.archive_errors import ArchiveMisuse
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.archive.storage.origin import Beginning
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


def names(archive: Archive) -> list[str]:
    return [file.name for file in archive.files]


async def test_a_new_archive_is_one_generation(tmp_path: Path) -> None:
    generations = await Generations.open(tmp_path)
    (only,) = generations.all
    assert (only.number, only.archive.directory, only.beginning, only.ended) == (1, tmp_path, None, False)
    assert generations.executed is None and generations.after(only) is None
    await generations.close()


async def test_the_next_source_has_a_directory_of_its_own_and_the_one_before_has_ended(tmp_path: Path) -> None:
    generations = await two_generations(tmp_path)
    first, second = generations.all
    assert (names(first.archive), first.ended) == (["mysql-bin.000001", "mysql-bin.000002"], True)
    assert (names(second.archive), second.ended) == (["mysql-bin.000002", "mysql-bin.000003"], False)
    assert second.archive.directory == tmp_path / "g0002" and generations.archive is second.archive
    assert all(file.sealed for file in first.archive.files)
    assert second.archive.identity == identity(B, 2)
    assert generations.after(first) is second
    assert second.beginning is not None and first.archive.end is not None
    assert Position(second.beginning.after_file, second.beginning.after_offset) == first.archive.end
    assert (second.beginning.file, second.beginning.state) == ("mysql-bin.000002", GtidSet.from_text(f"{A}:1-6"))
    await generations.close()


async def test_what_is_executed_is_what_all_generations_have(tmp_path: Path) -> None:
    generations = await two_generations(tmp_path)
    first, second = generations.all
    assert first.executed == GtidSet.from_text(f"{A}:1-6")
    assert second.executed == generations.executed == GtidSet.from_text(f"{A}:1-9,{B}:1-2")
    assert generations.purged == GtidSet()
    await generations.close()


async def test_before_the_new_source_has_sent_what_was_there_it_counts_all_the_same(tmp_path: Path) -> None:
    generations = await Generations.open(tmp_path)
    await append_files(generations, mysql_series(1, f"{A}:1-6"))
    await change_source(generations, identity(B, 2), mysql_series(1, f"{A}:1-2"))
    assert generations.archive.gtids.executed == GtidSet.from_text(f"{A}:1-2")
    assert generations.executed == GtidSet.from_text(f"{A}:1-6")
    await generations.close()


async def test_a_mariadb_source_that_is_behind_for_a_moment_takes_nothing_back(tmp_path: Path) -> None:
    generations = await Generations.open(tmp_path)
    await append_files(generations, mariadb_series(1, "0-1-1,0-1-2,0-1-3"))
    await change_source(generations, identity(None, 2, "mariadb"), mariadb_series(1, "0-1-1,0-1-2"))
    assert str(generations.executed) == "0-1-3"
    await append_files(generations, mariadb_series(2, "0-1-3,0-2-4", start="0-1-2"))
    assert str(generations.executed) == "0-1-3,0-2-4"
    await generations.close()


async def test_a_domain_that_the_later_source_forgot_is_not_kept_of_the_one_before(tmp_path: Path) -> None:
    generations = await Generations.open(tmp_path)
    await append_files(generations, mariadb_series(1, "0-1-1,11-5-1,11-6-2"))
    # Made from a backup: of the domain it knows the newest group only.
    await change_source(generations, identity(None, 2, "mariadb"), mariadb_series(1, "0-2-2", start="0-1-1,11-6-2"))
    assert str(generations.executed) == "0-1-1,0-2-2,11-5-1,11-6-2"
    await append_files(generations, mariadb_series(2, "0-2-3", start="0-1-1,0-2-2"))
    assert str(generations.executed) == "0-1-1,0-2-3"
    await generations.close()
    again = await Generations.open(tmp_path)
    assert str(again.executed) == "0-1-1,0-2-3"
    await again.close()


async def test_all_of_it_is_there_again_at_the_next_open(tmp_path: Path) -> None:
    generations = await two_generations(tmp_path)
    beginning, executed = generations.current.beginning, generations.executed
    ends = [generation.archive.end for generation in generations.all]
    await generations.close()
    generations = await Generations.open(tmp_path)
    first, second = generations.all
    assert [generation.archive.end for generation in generations.all] == ends
    assert (first.ended, second.ended) == (True, False)
    assert (second.beginning, generations.executed) == (beginning, executed)
    await append_files(generations, mysql_series(4, f"{B}:3", start=f"{A}:1-9,{B}:1-2"))
    assert names(second.archive)[-1] == "mysql-bin.000004"
    await generations.close()


async def test_the_ledgers_say_where_one_ended_and_the_other_begins(tmp_path: Path) -> None:
    generations = await two_generations(tmp_path)
    end = generations.all[0].archive.end
    await generations.close()
    await (await Generations.open(tmp_path)).close()
    (ended,) = [row for row in read_ledger(tmp_path) if row.kind == "generation_ended"]
    (begun,) = [row for row in read_ledger(tmp_path / "g0002") if row.kind == "generation_begun"]
    assert Position(ended.file, ended.offset) == end
    assert f"ended at {end}" in begun.text and "source-b:3306" in begun.text and A in begun.text and B in begun.text


async def test_each_generation_is_an_archive_that_can_be_verified(tmp_path: Path) -> None:
    await (await two_generations(tmp_path)).close()
    for _number, path in begun_generations(tmp_path):
        assert list(verify_archive(path, deep=True)) == []


async def test_nothing_is_appended_to_one_that_has_ended(tmp_path: Path) -> None:
    generations = await two_generations(tmp_path)
    archive = generations.all[0].archive
    assert archive.state is ArchiveState.ENDED
    with pytest.raises(ArchiveMisuse, match="ended"):
        archive.start_file("mysql-bin.000003")
    with pytest.raises(ArchiveMisuse, match="ended"):
        await archive.reopen_writer()
    await generations.close()


async def test_what_was_prepared_and_got_no_file_leaves_nothing_behind(tmp_path: Path) -> None:
    generations = await Generations.open(tmp_path)
    await append_files(generations, mysql_series(1, f"{A}:1-3"))
    before = generations.current
    await generations.prepare(identity(B, 2), "source-b:3306", "mysql-bin.000001")
    assert (tmp_path / "g0002").is_dir() and generations.current is before
    await generations.discard_prepared()
    assert not (tmp_path / "g0002").exists()
    assert generations.current is before and generations.receiving is before and not before.ended
    await append_files(generations, mysql_series(2, f"{A}:4", start=f"{A}:1-3"))
    assert generations.executed == GtidSet.from_text(f"{A}:1-4")
    await generations.close()


async def test_what_was_prepared_and_got_its_file_is_not_taken_back(tmp_path: Path) -> None:
    generations = await two_generations(tmp_path)
    await generations.discard_prepared()
    assert [generation.number for generation in generations.all] == [1, 2]
    await generations.close()


async def test_what_was_prepared_when_the_process_ended_is_removed_at_the_next_open(tmp_path: Path) -> None:
    generations = await Generations.open(tmp_path)
    await append_files(generations, mysql_series(1, f"{A}:1-3"))
    prepared = await generations.prepare(identity(B, 2), "source-b:3306", "mysql-bin.000001")
    assert begun_generations(tmp_path) == [(1, tmp_path)]
    generations._prepared = None  # as if nobody had come to discard it
    await prepared.archive.close()
    await generations.close()
    generations = await Generations.open(tmp_path)
    assert [generation.number for generation in generations.all] == [1]
    assert not (tmp_path / "g0002").exists()
    await append_files(generations, mysql_series(2, f"{A}:4", start=f"{A}:1-3"))
    await generations.close()


async def test_one_that_was_not_sealed_when_the_process_ended_is_at_the_next_open(tmp_path: Path) -> None:
    generations = await Generations.open(tmp_path)
    await append_files(generations, mysql_series(1, f"{A}:1-3"))
    await generations.close()
    second = tmp_path / "g0002"
    second.mkdir()
    archive = await Archive.open(second)
    ((name, data),) = mysql_series(1, f"{A}:1-4")
    await archive.begin_file(name)
    await append_all(archive, data)
    await archive.close()
    assert not list_archive(tmp_path)[-1].sealed
    generations = await Generations.open(tmp_path)
    first, second_generation = generations.all
    assert first.ended and first.archive.files[-1].sealed and not second_generation.ended
    await generations.close()


async def test_a_lost_catalog_loses_no_generation(tmp_path: Path) -> None:
    generations = await two_generations(tmp_path)
    executed = generations.executed
    await generations.close()
    for path in (tmp_path, tmp_path / "g0002"):
        for file in path.glob(f"{CATALOG_NAME}*"):
            file.unlink()
    generations = await Generations.open(tmp_path)
    assert ([one.number for one in generations.all], generations.executed) == ([1, 2], executed)
    assert generations.current.before == GtidSet.from_text(f"{A}:1-6")
    await generations.close()


async def test_watchers_hear_of_every_generation_and_of_its_end(tmp_path: Path) -> None:
    generations = await Generations.open(tmp_path)
    await append_files(generations, mysql_series(1, f"{A}:1-3"))
    seen = []
    generations.watch(lambda: seen.append((generations.current.number, generations.all[0].ended)))
    await change_source(generations, identity(B, 2), mysql_series(1, f"{A}:1-3", f"{A}:4"))
    assert seen[0][0] == 2 and (2, True) in seen
    await generations.close()


async def test_a_third_source_goes_on_where_the_second_ends(tmp_path: Path) -> None:
    generations = await two_generations(tmp_path)
    await change_source(generations, identity(A, 1), mysql_series(3, f"{A}:7-9,{B}:1-3", start=f"{A}:1-6"))
    assert [one.number for one in generations.all] == [1, 2, 3]
    assert [one.ended for one in generations.all] == [True, True, False]
    assert generations.executed == GtidSet.from_text(f"{A}:1-9,{B}:1-3")
    await generations.close()


async def test_a_generation_that_was_purged_as_a_whole_is_no_more_among_them(tmp_path: Path) -> None:
    generations = await two_generations(tmp_path)
    first = generations.all[0]
    await first.archive.purge(names(first.archive), "for a test")
    await generations.forget_emptied()
    assert [one.number for one in generations.all] == [2]
    # 4 was in B's file already.
    assert generations.purged == GtidSet.from_text(f"{A}:1-4")
    await generations.close()
    generations = await Generations.open(tmp_path)
    assert [one.number for one in generations.all] == [2]
    assert generations.purged == GtidSet.from_text(f"{A}:1-4")
    assert generations.executed == GtidSet.from_text(f"{A}:1-9,{B}:1-2")
    await change_source(generations, identity(A, 1), mysql_series(3, f"{A}:7-9,{B}:1-3", start=f"{A}:1-6"))
    assert [one.number for one in generations.all] == [2, 3]
    await generations.close()


async def test_what_the_middle_of_three_had_is_known_when_it_was_purged(tmp_path: Path) -> None:
    generations = await two_generations(tmp_path)
    await change_source(generations, identity(A, 1), mysql_series(3, f"{A}:7-9,{B}:1-3", start=f"{A}:1-6"))
    gone = [str(generations.purged)]
    for generation in generations.all[:2]:
        for name in names(generation.archive):
            await generation.archive.purge([name], "for a test")
            gone.append(str(generations.purged))
    # A has 1 to 3 and 4 to 6, B 5 to 9 and its own two, the third one 7 to 9 and all of B.
    assert gone == ["", f"{A}:1-3", f"{A}:1-4", f"{A}:1-6", f"{A}:1-6"]
    await generations.forget_emptied()
    await generations.close()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["g0002", "g0003"]
    generations = await Generations.open(tmp_path)
    assert [one.number for one in generations.all] == [3]
    assert generations.executed == GtidSet.from_text(f"{A}:1-9,{B}:1-3")
    await generations.close()


def test_a_beginning_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / CATALOG_NAME
    catalog = Catalog.open(path, FileLayer())
    assert catalog.beginning() is None
    beginning = Beginning(1.5, "b.000001", "a.000007", 1234, GtidSet.from_text(f"{A}:1-6"))
    catalog.set_beginning(beginning)
    assert catalog.beginning() == beginning
    catalog.close()


async def test_an_end_that_fails_by_a_fault_of_ours_is_told_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, tries = Generations._end_archive, 0

    async def fails_twice(self: Generations, *which: Any) -> None:
        nonlocal tries
        tries += 1
        if tries <= 2:
            raise ZeroDivisionError("a bug")
        await end(self, *which)

    monkeypatch.setattr(generations_module, "_END_AGAIN_S", 0.01)
    monkeypatch.setattr(Generations, "_end_archive", fails_twice)
    with structlog.testing.capture_logs() as logs:
        generations = await two_generations(tmp_path)
    assert generations.all[0].ended and tries == 3
    (line,) = [line for line in logs if line["log_level"] == "error"]
    assert (line["event"], type(line["exc_info"])) == ("generation_not_ended", ZeroDivisionError)
    await generations.close()
