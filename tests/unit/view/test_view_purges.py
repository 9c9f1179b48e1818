"""The mirror keeps the files that a view is still to be made from: of one that is refused, just restarted, stopped, or faulty."""

import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.position import Position
from relay.admin.purge_statements import purge_to, view_reader
from relay.archive.archive import Archive
from relay.archive.storage.files import FileLayer
from relay.archive.write.options import ArchiveOptions
from relay.service.view_service import _made_to as made_to_now
from relay.view.rules.settings import ViewSettings, ViewStart
from relay.view.running.making_progress import ViewStatus
from relay.view.running.view_opening import ViewNotOpened, open_view
from relay.view.shown_view import ShownView
from relay.view.unopened_view import UnopenedView
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.view_making import made_view, marked, settings, until, until_made

NAMES = [f"mysql-bin.00000{number}" for number in (1, 2, 3, 4, 5)]
FIRST, SECOND, THIRD, FOURTH, FIFTH = NAMES
CANNOT_BE_KEPT = "CREATE TABLE d.p (a INT) ENGINE=MyISAM PARTITION BY HASH (a) PARTITIONS 2"
STARTED = settings(start=ViewStart(Position(FIRST, 4), 100))


def binlog(name: str, following: str | None) -> bytes:
    made = BinlogBuilder("mysql", version="5.6.24-log")
    if name == THIRD:
        made.query(CANNOT_BE_KEPT)
    made.transaction(20)
    return marked((made.rotate(following) if following is not None else made).data)


@pytest.fixture
async def mirror(tmp_path: Path) -> AsyncIterator[Archive]:
    """Five files; a view of it stops at the beginning of the third."""
    following: list[str | None] = [*NAMES[1:], None]
    await fill(
        tmp_path / "source", *((name, binlog(name, after)) for name, after in zip(NAMES, following, strict=True))
    )
    archive = await Archive.open(tmp_path / "source")
    yield archive
    await archive.close()


async def purge(mirror: Archive, name: str, *views: ShownView) -> list[str]:
    """What is left after PURGE BINARY LOGS TO."""
    await purge_to(mirror, name, lambda: map(view_reader, views), "a test")
    return [file.name for file in mirror.current.files]


def stands(status: ViewStatus) -> bool:
    """It has stopped, and what was made before is on the disk."""
    return status.stop is not None and status.needed is not None and status.needed == status.source


async def stopped_in_the_third(mirror: Archive, wanted: ViewSettings) -> None:
    """Made up to there, and closed; the file that it began with is gone."""
    async with made_view(mirror, wanted) as view:
        await until(view, stands)
        assert view.status.stop is not None and view.status.stop.file == THIRD
        assert await purge(mirror, SECOND, view) == NAMES[1:]


@pytest.mark.parametrize("wanted", [settings(), STARTED])
async def test_a_view_that_stands_stopped_keeps_what_follows(mirror: Archive, wanted: ViewSettings) -> None:
    async with made_view(mirror, wanted) as view:
        await until(view, stands)
        assert await purge(mirror, FIFTH, view) == [THIRD, FOURTH, FIFTH]
        assert view.status.stop is not None
        await view.skip(THIRD, view.status.stop.offset, "a test")
        await until_made(view)
        assert view.status.stop is None


async def test_files_whose_part_of_the_view_is_not_on_the_disk_yet_stay(
    mirror: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash the view goes on where its own files end: what it needs there would be gone for good."""
    may_go = threading.Event()
    really = FileLayer.sync_data

    def sync(layer: FileLayer, fd: int) -> None:
        if os.readlink(f"/proc/self/fd/{fd}").endswith(f"/views/v/{SECOND}"):
            assert may_go.wait(20)
        really(layer, fd)

    monkeypatch.setattr(FileLayer, "sync_data", sync)
    async with made_view(mirror, settings(engines="innodb")) as view:
        status = await until(view, lambda status: status.behind_bytes == 0)
        assert status.source is not None and status.source.file == FIFTH
        assert status.needed == Position(SECOND, 4)
        assert await purge(mirror, FIFTH, view) == NAMES[1:]
        may_go.set()
        await until(view, lambda status: status.needed == status.source)
        assert await purge(mirror, FIFTH, view) == [FIFTH]


@pytest.mark.parametrize("wanted", [settings(), STARTED])
async def test_a_view_that_is_just_restarted_keeps_all_until_it_knows_where_it_is(
    mirror: Archive, wanted: ViewSettings
) -> None:
    await stopped_in_the_third(mirror, wanted)
    view = await open_view(mirror, wanted, ArchiveOptions())
    try:
        assert view.status.source is None
        assert await purge(mirror, FIFTH, view) == NAMES[1:]
        view.begin()
        await until(view, stands)
        assert view.status.source is not None and view.status.source.file == THIRD
        assert await purge(mirror, FIFTH, view) == [THIRD, FOURTH, FIFTH]
    finally:
        await view.close()


@pytest.mark.parametrize("wanted", [settings(), STARTED])
async def test_a_view_that_waits_before_its_first_step_keeps_its_file(mirror: Archive, wanted: ViewSettings) -> None:
    await stopped_in_the_third(mirror, wanted)
    directory = mirror.directory / "views" / "v"
    for path in directory.glob("*.map"):
        path.write_bytes(b"")
    async with made_view(mirror, wanted) as view:
        await until(view, stands)
        assert await purge(mirror, FIFTH, view) == [THIRD, FOURTH, FIFTH]


@pytest.mark.parametrize("wanted", [settings(), STARTED])
async def test_a_view_that_is_refused_keeps_what_it_is_not_made_of(mirror: Archive, wanted: ViewSettings) -> None:
    await stopped_in_the_third(mirror, wanted)
    other = settings(start=wanted.start, engines="innodb")
    with pytest.raises(ViewNotOpened, match="made with other settings"):
        await open_view(mirror, other, ArchiveOptions())
    refused = UnopenedView(other, "made with other settings")
    assert await purge(mirror, FIFTH, refused) == NAMES[1:]
    refused.made = made_to_now(mirror.directory, other)
    assert refused.made is not None
    assert await purge(mirror, FIFTH, refused) == [THIRD, FOURTH, FIFTH]


async def test_a_start_that_is_still_to_come_keeps_nothing_before_it(mirror: Archive) -> None:
    waiting = UnopenedView(settings(start=ViewStart(Position(FOURTH, 4), 100)), "waits")
    assert await purge(mirror, FIFTH, waiting) == [FOURTH, FIFTH]
    later = UnopenedView(settings(start=ViewStart(Position("mysql-bin.000099", 4), 100)), "waits")
    assert await purge(mirror, FIFTH, later) == [FIFTH]
