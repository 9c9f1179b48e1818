"""A view never gives a transaction the number of another one: not where it, the source's files or both were purged or deleted."""

import asyncio
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.storage.directory_lock import take_lock
from relay.archive.storage.files import CATALOG_NAME, LEDGER_TEXT_NAME, FileLayer
from relay.archive_inspection.listing import read_ledger
from relay.commands.outcome import CommandFailed
from relay.commands.view_changes import rebuild
from relay.view.first_numbers import NUMBERS, engines_in
from relay.view.generations.view_generations import made_generations
from relay.view.inspect.made_again import made_again
from relay.view.inspect.named_view import named_view
from relay.view.inspect.view_comparison import differences
from relay.view.rules.settings import ViewSettings, ViewStart
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.stops.view_stop import ViewStop
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.view_files import ViewGroup, groups_in
from tests.support.view_making import UUID_OF_VIEW, made_view, marked, settings, until, until_made

NAMES = tuple(f"mysql-bin.{number:06d}" for number in (1, 2, 3, 4))
VERSION = "5.6.24-log"


def numbered() -> Iterator[tuple[str, bytes]]:
    for number, name in enumerate(NAMES):
        made = BinlogBuilder("mysql", version=VERSION)
        if not number:
            made.query("CREATE TABLE d.t (a INT) ENGINE=MyISAM").query("CREATE TABLE d.u (a INT) ENGINE=InnoDB")
        for _ in range(10):
            made.transaction(100)
        if number + 1 < len(NAMES):
            made.rotate(NAMES[number + 1])
        yield name, marked(made.data)


@pytest.fixture
async def place(tmp_path: Path) -> Path:
    """An archive of four files with its view: 12, 10, 10 and 10 transactions."""
    place = tmp_path / "source"
    await fill(place, *numbered())
    assert await made(place) == (1, 42)
    return place


async def made(place: Path, wanted: ViewSettings | None = None) -> tuple[int, int] | ViewStop:
    """The first and last number of the view, or what stops it."""
    mirror = await Archive.open(place)
    try:
        async with made_view(mirror, wanted or settings()) as view:
            status = await until(view, lambda status: status.stop is not None or status.behind_bytes == 0)
            if status.stop is not None:
                return status.stop
            await until_made(view)
            groups = list(groups_in(view.directory))
            return groups[0].gno, groups[-1].gno
    finally:
        await mirror.close()


async def purge(place: Path, mirror_files: int, view_files: int = 0) -> None:
    mirror = await Archive.open(place)
    async with made_view(mirror, settings()) as view:
        await until_made(view)
        if view_files:
            await view.archive.current.purge(NAMES[:view_files], "a test")
        if mirror_files:
            await mirror.current.purge(NAMES[:mirror_files], "a test")
    await mirror.close()


def by_number(place: Path) -> Sequence[ViewGroup]:
    return list(groups_in(place / "views" / "v"))


def refused(place: Path, wanted: ViewSettings | None = None) -> str:
    with pytest.raises(CommandFailed) as failure:
        rebuild(named_view(place, wanted or settings()), UUID_OF_VIEW, as_json=False)
    assert by_number(place), "nothing was removed"
    return str(failure.value)


START = 'start = {{ file = "{}", position = 4, next = {} }}'


@pytest.mark.parametrize(("mirror", "view"), [(1, 0), (1, 1), (2, 2), (2, 1), (2, 3), (1, 3)])
async def test_a_rebuild_names_the_start_before_it_removes_anything_whatever_was_purged(
    place: Path, mirror: int, view: int
) -> None:
    await purge(place, mirror, view)
    first = max(mirror, view)
    before = {(one.file, one.offset): one.gno for one in by_number(place)}
    text = refused(place)
    # Where the ledger has the number of the archive's oldest file, it may be named though the view has purged it.
    known = [START.format(NAMES[number], 3 + 10 * number) for number in (mirror, first)]
    assert any(one in text for one in known), text
    assert 'known_engines = { "d.t" = "MyISAM" }' in text or first > mirror, text
    number = next(number for number in range(4) if START.format(NAMES[number], 3 + 10 * number) in text)
    wrong = settings(start=ViewStart(Position(NAMES[number], 4), 77))
    assert START.format(NAMES[number], 3 + 10 * number) in refused(place, wrong)
    right = settings(start=ViewStart(Position(NAMES[number], 4), 3 + 10 * number), known_engines={"d.t": "MyISAM"})
    rebuild(named_view(place, right), UUID_OF_VIEW, as_json=False)
    assert await made(place, right) == (3 + 10 * number, 42)
    after = {(one.file, one.offset): one.gno for one in by_number(place)}
    assert after.keys() & before.keys()
    assert {key: gno for key, gno in after.items() if key in before}.items() <= before.items()


async def test_a_rebuild_where_only_the_view_was_purged_is_no_trouble(place: Path) -> None:
    await purge(place, 0, 2)
    rebuild(named_view(place, settings()), UUID_OF_VIEW, as_json=False)
    assert await made(place) == (1, 42)


@pytest.mark.parametrize("purged", [(1, 0), (2, 2), (2, 3)])
async def test_deleted_by_hand_it_stops_by_name_before_it_gives_a_number_and_goes_on_with_the_start_it_names(
    place: Path, purged: tuple[int, int]
) -> None:
    await purge(place, *purged)
    if purged[1] <= purged[0]:
        assert await made(place) == (3 + 10 * purged[0], 42) or not purged[1]
    shutil.rmtree(place / "views" / "v")
    stop = await made(place)
    assert isinstance(stop, ViewStop)
    assert (stop.reason.name, stop.file) == ("gtid_number_unknown", NAMES[purged[0]])
    assert not by_number(place)
    shutil.rmtree(place / "views" / "v")
    if purged[1] <= purged[0]:
        assert START.format(NAMES[purged[0]], 3 + 10 * purged[0]) in stop.reason.advice
    right = settings(start=ViewStart(Position(NAMES[purged[0]], 4), 3 + 10 * purged[0]))
    for wrong in (2, 1):
        start = replace(right, start=ViewStart(Position(NAMES[purged[0]], 4), wrong))
        if purged[1] <= purged[0]:
            stop = await made(place, start)
            assert isinstance(stop, ViewStop) and stop.reason.name == "gtid_number_unknown"
            shutil.rmtree(place / "views" / "v")
    assert await made(place, right) == (3 + 10 * purged[0], 42)


@pytest.mark.parametrize(("mirror", "view"), [(1, 0), (0, 1), (2, 2), (2, 1), (1, 3)])
async def test_what_is_left_behind_purges_is_verified_with_the_numbers_that_it_has(
    place: Path, mirror: int, view: int
) -> None:
    await purge(place, mirror, view)
    whole = named_view(place, settings())
    (generation,) = made_generations(place, whole.directory)
    again = made_again(whole, generation)
    assert [file.name for file in again.files] == list(NAMES[max(mirror, view) :])
    assert list(differences(generation.directory, again.files, again)) == []


async def test_the_number_is_noted_as_soon_as_files_are_purged(place: Path) -> None:
    """A relay that is killed then has no later moment for it."""
    mirror = await Archive.open(place)
    async with made_view(mirror, settings()) as view:
        await until_made(view)
        await mirror.current.purge(NAMES[:3], "a test")
        async with asyncio.timeout(20):
            while [row.file for row in read_ledger(place) if row.kind == NUMBERS] != [NAMES[0], NAMES[3]]:
                await asyncio.sleep(0.01)
    await mirror.close()


async def test_a_start_below_what_was_given_before_it_is_refused(place: Path) -> None:
    await purge(place, 2)
    shutil.rmtree(place / "views" / "v")
    stop = await made(place, settings(start=ViewStart(Position(NAMES[3], 4), 5)))
    assert isinstance(stop, ViewStop)
    assert "cannot be" in stop.reason.text and "the number was 23" in stop.reason.text


async def test_another_view_of_the_same_uuid_does_not_begin_with_other_numbers(place: Path) -> None:
    """Replicas may move to it by GTID."""
    await purge(place, 1)
    stop = await made(place, settings(name="w"))
    assert isinstance(stop, ViewStop)
    assert START.format(NAMES[1], 13) in stop.reason.advice
    assert await made(place, settings(name="x", start=ViewStart(Position(NAMES[1], 4), 13))) == (13, 42)


async def test_nothing_purged_a_deleted_view_is_made_again_also_where_its_or_the_archives_catalog_was_lost(
    place: Path,
) -> None:
    for path in (place / "views" / "v" / CATALOG_NAME, place / CATALOG_NAME):
        path.unlink()
        assert await made(place) == (1, 42)
        shutil.rmtree(place / "views")
        assert await made(place) == (1, 42)
    rows = [row for row in read_ledger(place) if row.kind == NUMBERS]
    assert [(row.file, row.offset) for row in rows] == [(NAMES[0], 4)]
    assert f"{UUID_OF_VIEW}:1" in rows[0].text


async def test_the_ledger_remembers_it_where_the_archives_catalog_was_lost(place: Path) -> None:
    await purge(place, 2, 2)
    shutil.rmtree(place / "views")
    (place / CATALOG_NAME).unlink()
    stop = await made(place)
    assert isinstance(stop, ViewStop)
    assert START.format(NAMES[2], 23) in stop.reason.advice


async def test_a_first_view_of_an_archive_that_was_purged_begins_with_the_oldest_file(tmp_path: Path) -> None:
    """No number was given before: the ledger would have it."""
    place = tmp_path / "source"
    await fill(place, *numbered())
    mirror = await Archive.open(place)
    await mirror.current.purge(NAMES[:2], "a test")
    await mirror.close()
    assert await made(place) == (1, 20)


async def begun_without_a_start(tmp_path: Path) -> Path:
    """As a second relay's, whose archive begins later, before anybody knew of `start`."""
    place = tmp_path / "source"
    await fill(place, *numbered())
    mirror = await Archive.open(place)
    await mirror.current.purge(NAMES[:1], "a test")
    await mirror.close()
    assert await made(place) == (1, 30)
    return place


async def test_numbers_that_were_wrong_and_that_no_replica_has_are_given_anew_when_somebody_says_so(
    tmp_path: Path,
) -> None:
    place = await begun_without_a_start(tmp_path)
    right = settings(start=ViewStart(Position(NAMES[1], 4), 13))
    assert '"binlog-relay view rebuild v --renumber"' in refused(place, right)
    rebuild(named_view(place, right), UUID_OF_VIEW, as_json=False, renumber=True, yes=True)
    assert await made(place, right) == (13, 42)
    # These are remembered as those were.
    assert START.format(NAMES[1], 13) in refused(place, settings())
    stop = await made(place, settings(name="w"))
    assert isinstance(stop, ViewStop) and START.format(NAMES[1], 13) in stop.reason.advice


async def test_a_view_that_stops_because_of_such_numbers_says_the_same_way_on(tmp_path: Path) -> None:
    place = await begun_without_a_start(tmp_path)
    shutil.rmtree(place / "views")
    right = settings(start=ViewStart(Position(NAMES[1], 4), 13))
    stop = await made(place, right)
    assert isinstance(stop, ViewStop) and "view rebuild v --renumber" in stop.reason.advice
    rebuild(named_view(place, right), UUID_OF_VIEW, as_json=False, renumber=True, yes=True)
    assert await made(place, right) == (13, 42)


async def test_of_a_view_without_numbers_nobody_speaks_of_them(place: Path) -> None:
    await purge(place, 2, 2)
    text = refused(place, settings(gtids="anonymous"))
    assert "other positions" in text and "number its" not in text and "--renumber" not in text
    assert START.format(NAMES[2], 23) in text


async def test_numbers_are_not_given_anew_unless_somebody_says_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await begun_without_a_start(tmp_path)
    right, before = settings(start=ViewStart(Position(NAMES[1], 4), 13)), read_ledger(place)
    with open(os.devnull) as nobody, pytest.raises(CommandFailed, match=r"No replica, nor a backup of one.*Add --yes"):
        monkeypatch.setattr("sys.stdin", nobody)
        rebuild(named_view(place, right), UUID_OF_VIEW, as_json=False, renumber=True)
    with pytest.raises(CommandFailed, match="it gives no numbers"):
        rebuild(named_view(place, settings(gtids="keep")), UUID_OF_VIEW, as_json=False, renumber=True, yes=True)
    lock = take_lock(place, FileLayer())
    with pytest.raises(CommandFailed, match="Stop it, run this again"):
        rebuild(named_view(place, right), UUID_OF_VIEW, as_json=False, renumber=True, yes=True)
    os.close(lock)
    assert by_number(place) and read_ledger(place) == before


async def test_where_the_ledger_is_lost_too_nothing_is_certain(place: Path) -> None:
    await purge(place, 2, 2)
    shutil.rmtree(place / "views")
    (place / LEDGER_TEXT_NAME).unlink()
    (place / CATALOG_NAME).write_bytes(b"no database at all")
    stop = await made(place)
    assert isinstance(stop, ViewStop)
    assert stop.reason.name == "gtid_number_unknown"
    assert START.format(NAMES[2], 1) in stop.reason.advice


async def test_a_view_from_before_the_ledger_remembered_is_noted_at_the_next_start(place: Path) -> None:
    """What is there says the number."""
    (place / CATALOG_NAME).unlink()
    (place / LEDGER_TEXT_NAME).unlink()
    assert await made(place) == (1, 42)
    await purge(place, 1)
    shutil.rmtree(place / "views")
    stop = await made(place)
    assert isinstance(stop, ViewStop)
    assert START.format(NAMES[1], 13) in stop.reason.advice


async def test_an_anonymous_view_gives_no_numbers_and_begins_anew(tmp_path: Path) -> None:
    place = tmp_path / "source"
    await fill(place, *numbered())
    wanted = settings(gtids="anonymous")
    assert await made(place, wanted) == (0, 0)
    mirror = await Archive.open(place)
    await mirror.current.purge(NAMES[:2], "a test")
    await mirror.close()
    shutil.rmtree(place / "views")
    assert await made(place, wanted) == (0, 0)


def test_the_engines_that_are_named_are_those_without_transactions() -> None:
    engines = TableEngines()
    assert engines_in(engines.state(), settings()) == {}
    engines.create(("d", "t"), "MyISAM", "5.6.24")
    engines.create(("d", "u"), "", "5.6.24")
    state = engines.state()
    assert engines_in(state, settings()) == {"d.t": "MyISAM"}
    assert engines_in(state, settings(known_engines={"*": "InnoDB"})) == {"d.t": "MyISAM", "*": "InnoDB"}
