"""Which transactions of a view wait for which: a function of the binlog and of what is known of tables, however it is made."""

import shutil
from pathlib import Path
from random import Random

import pytest

import relay.view.running.maker as maker
from protocol.binlog.gtid_event import Gtid
from protocol.position import Position
from relay.admin.purge_statements import purge_to, view_reader
from relay.archive.archive import Archive
from relay.view.dependencies import planned_tables
from relay.view.dependencies.planned_tables import PlannedTables
from relay.view.rules.settings import ViewStart
from relay.view.translate.wait_counts import WaitCounts, kept_counts
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_map import ViewMap
from relay.view.view_rules import rules_of
from tests.support.archive_filling import fill
from tests.support.keyed_binlog import KeyedBinlog
from tests.support.view_making import made_view, settings, until, until_made
from tests.support.view_waits import Waits, gtids_of, waits_in

FILE = "mysql-bin.000001"
WANTED = settings(dependencies="writeset")
BEGIN = ViewCheckpoint.of_file(1, b"")


def translation(data: bytes, at: ViewCheckpoint = BEGIN, tables: PlannedTables | None = None) -> FileTranslation:
    def read_into(view: memoryview, offset: int) -> int:
        piece = data[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    made = FileTranslation(FILE, read_into, WANTED, rules_of(WANTED), at, {})
    made.tables = tables or PlannedTables()
    return made


def made_of(one: FileTranslation, data: bytes, room: int = 1 << 20) -> tuple[bytes, list[ViewCheckpoint]]:
    out = bytearray()
    buffer = bytearray(room)
    while not one.done:
        out += buffer[: one.fill(buffer, 0, len(data), sealed=True)]
    return bytes(out), one.marks


def gtids(made: bytes) -> list[Gtid]:
    return list(gtids_of(b"\xfebin" + made))


@pytest.mark.parametrize(
    ("seed", "count", "filler", "large"), [(1, 2500, 4000, False), (2, 600, 100, True), (3, 6000, 10, False)]
)
def test_from_each_mark_on_the_same_is_made(seed: int, count: int, filler: int, large: bool) -> None:
    data = KeyedBinlog(seed, count, filler, large).make()
    tables = PlannedTables()
    whole, marks = made_of(translation(data, tables=tables), data)
    waits = Waits({FILE: [(one.last_committed or 0, one.sequence_number or 0) for one in gtids(whole)]})
    waits.check_numbers()
    assert waits.width > 1.5
    assert len(marks) > 2
    chance = Random(seed)
    for mark in [marks[0], *chance.sample(marks[1:], min(12, len(marks) - 1))]:
        again, _ = made_of(translation(data, mark, tables), data, chance.choice((200, 9000, 300_000, 1 << 20)))
        assert again == whole[mark.view - 4 :], mark.source


@pytest.mark.parametrize("seed", range(4))
def test_the_same_is_made_of_pieces_of_any_size(seed: int) -> None:
    keyed = KeyedBinlog(seed, 300, 100, large=True)
    data = keyed.make()
    whole, _ = made_of(translation(data), data)
    chance = Random(seed)
    for room in (130, 700, 50_000, 1 << 20):
        one = translation(data)
        out = bytearray()
        buffer = bytearray(room)
        ends = sorted(chance.sample(keyed.starts[5:], 40))
        for end in [*ends, len(data)]:
            while count := one.fill(buffer, 0, end, sealed=end == len(data)):
                out += buffer[:count]
        assert out == whole


async def test_a_view_that_is_made_again_is_the_same_and_goes_on_where_it_was(tmp_path: Path) -> None:
    data = KeyedBinlog(5, 1500, 4000).make()
    await fill(tmp_path, (FILE, data))
    mirror = await Archive.open(tmp_path)
    async with made_view(mirror, WANTED) as view:
        await until_made(view)
        directory = view.directory
        counted = view.status.waits
    assert counted is not None and kept_counts(directory) == counted
    first = (directory / FILE).read_bytes()
    async with made_view(mirror, WANTED) as view:
        await until_made(view)
    assert (directory / FILE).read_bytes() == first
    assert kept_counts(directory) == counted
    assert len(ViewMap.read(directory / FILE)) > 1
    await mirror.close()
    assert first[4:] == made_of(translation(data), data)[0]
    check_counts(counted, waits_in(directory))


async def test_what_was_counted_last_is_kept_also_where_the_source_writes_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maker, "_KEEP_WAITS_S", 2.0)
    await fill(tmp_path, *((f"mysql-bin.{number:06}", KeyedBinlog(5, 400).make()) for number in (1, 2)))
    mirror = await Archive.open(tmp_path)
    async with made_view(mirror, WANTED) as view:
        await until_made(view)
        await until(view, lambda status: status.waits is not None and kept_counts(view.directory) == status.waits)
    await mirror.close()


def check_counts(counted: WaitCounts, waits: Waits) -> None:
    """What is counted is what the GTID events say."""
    pairs = waits.files[FILE]
    beside = sum(last < number - 1 for last, number in pairs)
    assert (counted.groups, counted.beside) == (len(pairs), beside)
    assert counted.width == pytest.approx(waits.width)
    assert sum(counted.serial.values()) == len(pairs) - beside - 1
    causes = {why for why, _table in counted.serial}
    assert {"statement", "same_rows", "history_full"} <= causes
    assert ("no_key", "d.keyless") in counted.serial


async def test_what_only_purged_binlogs_needed_is_kept_no_longer_and_the_rest_is_made_again_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned_tables, "_LEAST_GONE", 1)
    names = [f"mysql-bin.{number:06}" for number in (1, 2, 3)]
    archive = tmp_path / "source"
    await fill(archive, *((name, KeyedBinlog(9, 900, begins=name == FILE).make()) for name in names))
    mirror = await Archive.open(archive)
    kept = archive / "views" / "v.tables.jsonl"
    async with made_view(mirror, WANTED) as view:
        await until_made(view)
        directory = view.directory
        await purge_to(mirror, names[2], lambda: [view_reader(view)], "a test")
    before, waits = kept.read_text(), waits_in(directory).files[names[2]]
    first = gtids((directory / names[2]).read_bytes()[4:])[0].gno
    assert [file.name for file in mirror.current.files] == names[2:] and "CREATE TABLE b " in before
    async with made_view(mirror, WANTED) as view:  # goes on with the file that is left
        await until_made(view)
    assert kept.read_text().startswith('{"kind": "state"') and "CREATE TABLE b " not in kept.read_text()
    assert len(kept.read_text()) < len(before)
    shutil.rmtree(directory)
    start = ViewStart(Position(names[2], 4), first)
    async with made_view(mirror, settings(dependencies="writeset", start=start)) as view:
        await until_made(view)
    assert waits_in(directory).files == {names[2]: waits}
    assert sum(last < number - 1 for last, number in waits) > len(waits) / 4
    await mirror.close()
