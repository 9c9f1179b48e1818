"""Where a source stands when its binlog is closed: dumps have that position, and a view knows the place."""

import asyncio
from pathlib import Path

import pytest

from protocol.position import Position
from relay.archive.archive import Archive
from relay.view.rules.kept_settings import view_directory
from relay.view.running.view import View
from relay.view.view_lookup import ViewLookup
from relay.view.view_place import InsideTransaction
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.event_stream import walk
from tests.support.kernel_builds import builds
from tests.support.view_chain import settings_of, view_keys

FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"


def marked(built: BinlogBuilder) -> bytes:
    """The file as the archive has it."""
    return bytes(built.data[:4]) + walk(builds()[-1], bytes(built.data[4:]), packets=False).produced


async def test_the_place_before_a_rotation_is_one_and_has_the_number_of_the_last_transaction(tmp_path: Path) -> None:
    first = BinlogBuilder("mysql").transaction(20).transaction(20)
    end = first.size
    first = first.rotate(SECOND)
    second = BinlogBuilder("mysql").transaction(20)
    await fill(tmp_path, (FIRST, marked(first)), (SECOND, marked(second)))
    mirror = await Archive.open(tmp_path)
    settings = settings_of(view_keys())
    directory = view_directory(tmp_path, settings.name)
    archive = await Archive.open(directory)
    view = View(mirror, archive, settings, {})
    view.begin()
    async with asyncio.timeout(10):
        while view.status.source != Position(SECOND, second.size) or view.status.behind_bytes:
            await asyncio.sleep(0.005)
    await view.close()
    await mirror.close()
    lookup = ViewLookup(tmp_path, directory, settings, {})
    place = lookup.of_source(Position(FIRST, end))
    assert (place.source, place.gno) == (Position(FIRST, end), 2)
    assert lookup.of_view(place.view) == place
    assert lookup.of_source(Position(FIRST, first.size)).gno == 2
    with pytest.raises(InsideTransaction):
        lookup.of_source(Position(FIRST, end - 1))
