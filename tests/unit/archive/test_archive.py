"""The archive as its users see it: append, publish, read, reopen."""

import asyncio
import errno
import os
import shutil
import stat
import zlib
from pathlib import Path

import pytest

from protocol.position import Position
from relay.archive.generation import Generation
from relay.archive.recovery.recovery import Recovery
from relay.archive.storage.archive_errors import (
    ArchiveConflict,
    ArchiveCorrupt,
    ArchiveLocked,
    ArchiveMisuse,
    ArchiveUnknownFile,
    ArchiveWriteError,
)
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.write.options import ArchiveOptions, PublishPolicy, SyncPolicy
from relay.archive.write.run import Run
from relay.archive_inspection.listing import list_archive, read_ledger, rebuild_archive
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder, runs_of

FIRST = "mysql-bin.000001"
SECOND = "mysql-bin.000002"


def three_transactions(flavour: str = "mysql", checksum: bool = True) -> BinlogBuilder:
    return BinlogBuilder(flavour, checksum).ddl().transaction(10, 300).transaction(5)


async def wait_for_end(generation: Generation, position: Position) -> None:
    moved = asyncio.Event()
    generation.watch(moved.set)
    while generation.end != position:
        moved.clear()
        await moved.wait()
    generation.unwatch(moved.set)


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
@pytest.mark.parametrize("checksum", [True, False])
async def test_a_file_is_archived_byte_for_byte(tmp_path: Path, flavour: str, checksum: bool) -> None:
    built = three_transactions(flavour, checksum)
    await fill(tmp_path, (FIRST, built.data))
    assert (tmp_path / FIRST).read_bytes() == built.data


async def test_the_format_description_tells_the_files_facts(tmp_path: Path) -> None:
    built = BinlogBuilder("mariadb", server_id=77, checksum=False)
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    file = generation.file(FIRST)
    assert file is not None
    assert (file.flavour, file.server_version, file.server_id, file.checksum, file.created) == (
        "mariadb",
        "10.11.19-MariaDB-log",
        77,
        0,
        1_700_000_000,
    )
    await generation.close()


async def test_only_whole_transactions_are_published(tmp_path: Path) -> None:
    built = three_transactions()
    whole = built.last_boundary
    built.begin().table_map()
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    assert (generation.end, generation.received) == (Position(FIRST, whole), Position(FIRST, built.size))
    await generation.close()


async def test_watchers_are_woken_when_the_end_moves(tmp_path: Path) -> None:
    built = three_transactions()
    generation = await Generation.open(tmp_path)
    seen: list[Position | None] = []
    generation.watch(lambda: seen.append(generation.end))
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    assert seen[-1] == Position(FIRST, built.size)
    await generation.close()


async def test_with_publish_synced_the_end_moves_only_after_a_sync(tmp_path: Path) -> None:
    built = three_transactions()
    generation = await Generation.open(
        tmp_path, ArchiveOptions(sync=SyncPolicy.INTERVAL, publish=PublishPolicy.SYNCED, sync_interval_s=3600)
    )
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    assert generation.end == Position(FIRST, 4)
    await generation.close()


async def test_with_sync_transaction_and_publish_synced_the_end_follows(tmp_path: Path) -> None:
    built = three_transactions()
    generation = await Generation.open(
        tmp_path, ArchiveOptions(sync=SyncPolicy.TRANSACTION, publish=PublishPolicy.SYNCED)
    )
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    await asyncio.wait_for(wait_for_end(generation, Position(FIRST, built.size)), 10)
    assert generation.synced == generation.end
    await generation.close()


async def test_publish_synced_without_any_sync_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveMisuse, match="publish"):
        await Generation.open(tmp_path, ArchiveOptions(sync=SyncPolicy.NONE, publish=PublishPolicy.SYNCED))


async def test_rotation_seals_the_file_and_links_it_to_the_next(tmp_path: Path) -> None:
    one, two = three_transactions().rotate(SECOND), three_transactions()
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, one.data)
    await generation.begin_file(SECOND)
    await append_all(generation, two.data)
    first, second = generation.files
    assert (first.sealed, first.end, second.sealed, generation.next_file(FIRST)) == (True, one.size, False, second)
    await generation.close()


async def test_the_index_file_lists_names_as_a_server_writes_them(tmp_path: Path) -> None:
    await fill(tmp_path, (FIRST, three_transactions().data), (SECOND, three_transactions().data))
    assert (tmp_path / "mysql-bin.index").read_text() == f"./{FIRST}\n./{SECOND}\n"


async def test_counts_of_events_and_transactions_are_kept(tmp_path: Path) -> None:
    built = three_transactions()
    await fill(tmp_path, (FIRST, built.data))
    (file,) = list_archive(tmp_path)
    assert (file.events, file.groups, file.end) == (len(built.events), 3, built.size)


async def test_modes_are_0640_and_0750_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        directory = tmp_path / "archive" / "source"
        await fill(directory, (FIRST, three_transactions().data))
    finally:
        os.umask(old)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert (modes, stat.S_IMODE(directory.stat().st_mode)) == ({0o640}, 0o750)


async def test_a_clean_reopen_resumes_at_the_end_in_the_same_file(tmp_path: Path) -> None:
    built = three_transactions()
    await fill(tmp_path, (FIRST, built.data))
    before = built.size
    built.transaction(40)
    generation = await Generation.open(tmp_path)
    assert generation.end == Position(FIRST, before)
    await append_all(generation, built.data, start=before)
    assert generation.end == Position(FIRST, built.size)
    await generation.close()
    assert (tmp_path / FIRST).read_bytes() == built.data


async def test_a_clean_reopen_reads_no_events(tmp_path: Path) -> None:
    await fill(tmp_path, (FIRST, three_transactions().data))
    read: list[int] = []
    generation = await Generation.open(tmp_path, ArchiveOptions(on_progress=lambda name, count: read.append(count)))
    await generation.close()
    assert read == []


async def test_closing_inside_a_transaction_takes_its_start_back(tmp_path: Path) -> None:
    built = three_transactions()
    whole = built.size
    built.begin().table_map()
    await fill(tmp_path, (FIRST, built.data))
    assert (tmp_path / FIRST).stat().st_size == whole


async def test_trim_after_a_lost_connection_leaves_whole_transactions_and_right_counts(tmp_path: Path) -> None:
    built = three_transactions()
    whole, events = built.size, len(built.events)
    cut = BinlogBuilder(data=bytearray(built.data), events=[], header=False)
    cut.begin().table_map()
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, cut.data)
    assert await generation.trim() == Position(FIRST, whole)
    built.transaction(99)
    await append_all(generation, built.data, start=whole)
    await generation.close()
    (file,) = list_archive(tmp_path)
    assert ((tmp_path / FIRST).read_bytes(), file.events) == (bytes(built.data), len(built.events))
    assert events < len(built.events)


async def test_a_group_that_the_source_cut_is_published_and_in_the_ledger(tmp_path: Path) -> None:
    built = three_transactions().begin().table_map()
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    await generation.begin_file(SECOND, previous_cut=True)
    assert generation.files[0].end == built.size
    await generation.close()
    assert [row.kind for row in read_ledger(tmp_path)] == ["cut_group"]


async def test_a_second_process_is_refused_by_name(tmp_path: Path) -> None:
    generation = await Generation.open(tmp_path)
    with pytest.raises(ArchiveLocked, match="another process"):
        await Generation.open(tmp_path)
    await generation.close()


async def test_the_catalog_is_readable_beside_a_running_archive(tmp_path: Path) -> None:
    await fill(tmp_path, (FIRST, three_transactions().data))
    generation = await Generation.open(tmp_path)
    assert [file.name for file in list_archive(tmp_path)] == [FIRST]
    await generation.close()


async def test_the_identity_survives(tmp_path: Path) -> None:
    identity = SourceIdentity("mysql", "5.6.24-log", 7, "3e11fa47-71ca-11e1-9e33-c80aa9429562")
    generation = await Generation.open(tmp_path)
    generation.set_identity(identity)
    await generation.close()
    generation = await Generation.open(tmp_path)
    assert generation.identity == identity
    await generation.close()


@pytest.mark.parametrize("name", ["../mysql-bin.000002", "mysql-bin", "a/b.000002"])
async def test_a_name_with_a_path_in_it_is_refused(tmp_path: Path, name: str) -> None:
    generation = await Generation.open(tmp_path)
    with pytest.raises(ArchiveConflict, match="not a binlog file name"):
        await generation.begin_file(name)
    await generation.close()


async def test_a_source_that_starts_again_is_refused(tmp_path: Path) -> None:
    await fill(tmp_path, (SECOND, three_transactions().data))
    generation = await Generation.open(tmp_path)
    with pytest.raises(ArchiveConflict, match="reset"):
        await generation.begin_file(FIRST)
    await generation.close()


async def test_a_run_that_does_not_follow_is_refused(tmp_path: Path) -> None:
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    with pytest.raises(ArchiveMisuse, match="cannot follow"):
        generation.append(Run(b"x" * 10, 4, 100, b"", 0, 0, 0))
    await generation.close()


async def test_a_full_queue_is_refused(tmp_path: Path) -> None:
    generation = await Generation.open(tmp_path, ArchiveOptions(queue_limit_bytes=100))
    await generation.begin_file(FIRST)
    first, second = list(runs_of(three_transactions().data, [400]))
    generation.append(first)
    with pytest.raises(ArchiveMisuse):
        generation.append(second)
    await generation.close()


async def test_a_gap_in_the_sequence_is_in_the_ledger_and_never_stepped_over(tmp_path: Path) -> None:
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, three_transactions().data)
    await generation.begin_file("mysql-bin.000005")
    await append_all(generation, three_transactions().data)
    with pytest.raises(ArchiveUnknownFile, match="3 file"):
        generation.next_file(FIRST)
    await generation.close()
    assert [row.kind for row in read_ledger(tmp_path)] == ["gap"]


async def test_a_file_that_vanished_from_the_middle_is_a_ledger_row_and_a_gap(tmp_path: Path) -> None:
    names = [f"mysql-bin.00000{n}" for n in (1, 2, 3)]
    await fill(tmp_path, *[(name, three_transactions().data) for name in names])
    (tmp_path / names[1]).unlink()
    generation = await Generation.open(tmp_path)
    with pytest.raises(ArchiveUnknownFile):
        generation.next_file(names[0])
    await generation.close()
    assert {row.kind for row in read_ledger(tmp_path)} == {"file_missing", "gap"}


async def test_a_file_that_is_gone_is_in_the_ledger_although_the_first_open_after_it_was_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path, *((name, BinlogBuilder().transaction(3).data) for name in ("b.000001", "b.000002")))
    (tmp_path / "b.000001").unlink()

    def cut_short(*_arguments: object) -> None:
        raise OSError(errno.EIO, "as if it had been killed while it read the files")

    with monkeypatch.context() as patch, pytest.raises(ArchiveWriteError):
        patch.setattr(Recovery, "_reconcile", cut_short)
        await Generation.open(tmp_path)
    await (await Generation.open(tmp_path)).close()
    assert [(row.kind, row.file) for row in read_ledger(tmp_path)] == [("file_missing", "b.000001")]


async def test_two_files_with_one_number_are_refused(tmp_path: Path) -> None:
    await fill(tmp_path, (FIRST, three_transactions().data))
    shutil.copyfile(tmp_path / FIRST, tmp_path / "another.000001")
    with pytest.raises(ArchiveConflict, match=r"mysql-bin\.000001 and another\.000001 both claim number 1"):
        await Generation.open(tmp_path)


async def test_a_file_that_is_gone_is_in_the_ledger_although_another_has_its_number(tmp_path: Path) -> None:
    await fill(tmp_path, *((name, three_transactions().data) for name in (FIRST, SECOND)))
    (tmp_path / SECOND).rename(tmp_path / "another.000002")
    await (await Generation.open(tmp_path)).close()
    assert [(row.kind, row.file) for row in read_ledger(tmp_path)] == [("file_missing", SECOND)]


async def test_a_foreign_file_is_left_alone_and_noted_once(tmp_path: Path) -> None:
    await fill(tmp_path, (FIRST, three_transactions().data))
    (tmp_path / "notes.txt").write_text("mine")
    for _ in range(2):
        await (await Generation.open(tmp_path)).close()
    assert [(row.kind, row.file) for row in read_ledger(tmp_path)] == [("foreign_file", "notes.txt")]
    assert (tmp_path / "notes.txt").read_text() == "mine"


async def test_leftover_temporary_files_are_removed(tmp_path: Path) -> None:
    await fill(tmp_path, (FIRST, three_transactions().data))
    (tmp_path / f"{SECOND}.tmp").write_bytes(b"\xfebin")
    await (await Generation.open(tmp_path)).close()
    assert not (tmp_path / f"{SECOND}.tmp").exists()


async def test_a_missing_catalog_is_made_again_from_the_binlogs(tmp_path: Path) -> None:
    await fill(tmp_path, (FIRST, three_transactions().rotate(SECOND).data), (SECOND, three_transactions().data))
    before = [(f.name, f.end, f.events, f.groups, f.sealed) for f in list_archive(tmp_path)]
    for path in tmp_path.glob("catalog.sqlite*"):
        path.unlink()
    await (await Generation.open(tmp_path)).close()
    assert [(f.name, f.end, f.events, f.groups, f.sealed) for f in list_archive(tmp_path)] == before


async def test_a_corrupt_catalog_is_kept_aside(tmp_path: Path) -> None:
    await fill(tmp_path, (FIRST, three_transactions().data))
    (tmp_path / "catalog.sqlite").write_bytes(b"not a database at all" * 100)
    await (await Generation.open(tmp_path)).close()
    (row,) = read_ledger(tmp_path)
    assert (row.kind, (tmp_path / row.file).exists(), len(list_archive(tmp_path))) == ("catalog_set_aside", True, 1)


async def test_rebuild_keeps_the_ledger(tmp_path: Path) -> None:
    generation = await Generation.open(tmp_path)
    generation.append_ledger("test", FIRST, 4, "kept")
    await generation.begin_file(FIRST)
    await append_all(generation, three_transactions().data)
    await generation.close()
    rebuild_archive(tmp_path)
    assert [row.text for row in read_ledger(tmp_path)] == ["kept"]


async def test_rebuild_makes_the_same_index(tmp_path: Path) -> None:
    built = BinlogBuilder().transaction(*[200] * 2000).transaction(5)
    await fill(tmp_path, (FIRST, built.data))
    before = (tmp_path / f"{FIRST}.idx").read_bytes()
    rebuild_archive(tmp_path)
    assert (tmp_path / f"{FIRST}.idx").read_bytes() == before


async def test_rebuild_is_refused_while_a_relay_runs(tmp_path: Path) -> None:
    generation = await Generation.open(tmp_path)
    with pytest.raises(ArchiveLocked):
        rebuild_archive(tmp_path)
    await generation.close()


async def test_damage_in_an_older_file_stops_the_way_past_it(tmp_path: Path) -> None:
    built = three_transactions()
    await fill(tmp_path, (FIRST, built.data), (SECOND, three_transactions().data))
    bad = bytearray(built.data)
    bad[built.boundaries[-2] + 25] ^= 1
    (tmp_path / FIRST).write_bytes(bad)
    rebuild_archive(tmp_path)
    generation = await Generation.open(tmp_path)
    assert generation.files[0].end == built.boundaries[-2]
    with pytest.raises(ArchiveCorrupt, match="damaged"):
        generation.next_file(FIRST)
    await generation.close()


async def test_a_reader_sees_nothing_past_the_published_end(tmp_path: Path) -> None:
    built = three_transactions()
    whole = built.size
    built.begin()
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    buffer = memoryview(bytearray(10_000))
    with generation.open_reader(FIRST) as reader:
        assert (reader.read_into(buffer, 0), reader.read_into(buffer, whole)) == (whole, 0)
    await generation.close()


async def test_a_reader_outlives_the_files_name(tmp_path: Path) -> None:
    built = three_transactions()
    await fill(tmp_path, (FIRST, built.data))
    generation = await Generation.open(tmp_path)
    with generation.open_reader(FIRST) as reader:
        (tmp_path / FIRST).unlink()
        buffer = memoryview(bytearray(built.size))
        assert (reader.read_into(buffer, 0), bytes(buffer)) == (built.size, bytes(built.data))
    (tmp_path / FIRST).write_bytes(built.data)
    await generation.close()


async def test_an_unknown_name_never_becomes_a_path(tmp_path: Path) -> None:
    generation = await Generation.open(tmp_path)
    with pytest.raises(ArchiveUnknownFile):
        generation.path("../../etc/passwd")
    await generation.close()


async def test_a_sealed_file_gets_a_digest(tmp_path: Path) -> None:
    built = three_transactions()
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    await generation.begin_file(SECOND)
    async with asyncio.timeout(10):
        while generation.files[0].digest is None:
            await asyncio.sleep(0.01)
    await generation.close()
    assert list_archive(tmp_path)[0].digest == f"crc32:{zlib.crc32(built.data):08x}"


async def test_a_file_that_ends_inside_a_transaction_is_noted_even_if_the_caller_was_not_aware(tmp_path: Path) -> None:
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, three_transactions().begin().table_map().data)
    await generation.begin_file(SECOND)
    assert generation.files[0].cut
    await generation.close()
    assert {row.kind for row in read_ledger(tmp_path)} == {"unannounced_cut", "cut_group"}


async def test_reopening_the_writer_inside_a_transaction_goes_back_to_its_start(tmp_path: Path) -> None:
    built = three_transactions()
    whole = built.size
    built.begin().table_map()
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    assert await generation.reopen_writer() == Position(FIRST, whole)
    assert (tmp_path / FIRST).stat().st_size == whole
    await generation.close()


async def test_a_run_is_only_released_when_it_is_in_the_file(tmp_path: Path) -> None:
    built = three_transactions()
    generation = await Generation.open(tmp_path)
    await generation.begin_file(FIRST)
    seen: list[bool] = []
    done = asyncio.Event()
    for run in runs_of(built.data, built.boundaries):

        def written(run: Run = run) -> None:
            stored = (tmp_path / FIRST).read_bytes()
            seen.append(stored[run.position - len(run.data) : run.position] == run.data)
            if run.position == built.size:
                done.set()

        generation.append(run._replace(on_written=written))
    await done.wait()
    assert seen and all(seen)
    await generation.close()
