"""A view is a function of the archive and its settings: made in one go, in pieces, after a crash at any byte, or again."""

import shutil
from pathlib import Path

import pytest

from protocol.position import Position
from relay.archive.archive import Archive
from relay.view.running.view_opening import ViewNotOpened
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.view_making import (
    UUID_OF_VIEW,
    files_of_view,
    is_published,
    made_view,
    marked,
    settings,
    until,
    until_made,
)

SOURCE = "mysql-bin.000001"
SECOND = "mysql-bin.000002"
VERSION = "5.6.24-log"


def first_file() -> BinlogBuilder:
    """Transactions of several kinds and sizes, one of them larger than the buffers that go round."""
    made = BinlogBuilder("mysql", version=VERSION)
    for number in range(200):
        made.transaction(20 + number % 7 * 40)
        if number % 50 == 7:
            made.query(f"CREATE TABLE d.t{number} (a INT) ENGINE=MyISAM")
        if number % 50 == 9:
            made.query("BEGIN", OPENS).query("UPDATE d.t7 SET a = 1", INSIDE).query("ROLLBACK", CLOSES)
        if number == 120:
            made.transaction(*(70_000 for _ in range(20)))
    return made.rotate(SECOND)


def second_file() -> BinlogBuilder:
    made = BinlogBuilder("mysql", version=VERSION)
    for number in range(30):
        made.transaction(100 + number)
    return made


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with two files, without a view."""
    import asyncio

    place = tmp_path_factory.mktemp("archived") / "source"
    asyncio.run(fill(place, (SOURCE, marked(first_file().data)), (SECOND, marked(second_file().data))))
    return place


@pytest.fixture
def place(archived: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(archived, tmp_path / "source"))


async def made_in_one_go(place: Path) -> dict[str, bytes]:
    mirror = await Archive.open(place)
    try:
        async with made_view(mirror, settings()) as view:
            await until_made(view)
        return files_of_view(view.directory)
    finally:
        await mirror.close()


async def test_each_transaction_has_a_number_and_the_places_of_both_are_known(place: Path) -> None:
    mirror = await Archive.open(place)
    async with made_view(mirror, settings()) as view:
        status = await until_made(view)
        assert str(view.archive.executed) == f"{UUID_OF_VIEW}:1-{200 + 4 + 4 + 1 + 30}"
        assert status.source == mirror.current.end
        assert status.stop is None
    await mirror.close()


async def test_it_grows_with_the_archive_and_is_what_one_go_makes(place: Path, tmp_path: Path) -> None:
    expected = await made_in_one_go(place)
    grown = await Archive.open(tmp_path / "grown")
    async with made_view(grown, settings()) as view:
        for name, data in ((SOURCE, marked(first_file().data)), (SECOND, marked(second_file().data))):
            await grown.current.begin_file(name)
            await append_all(grown.current, data, cuts=range(3000, len(data), 40_000))
        await until(view, lambda status: status.source == grown.current.end)
        await until_made(view)
    await grown.close()
    made = files_of_view(view.directory)
    assert {name: data for name, data in made.items() if not name.endswith((".map", ".rules"))} == {
        name: data for name, data in expected.items() if not name.endswith((".map", ".rules"))
    }


@pytest.mark.parametrize("fraction", [0.0001, 0.1, 0.33, 0.5, 0.77, 0.9, 0.9999])
@pytest.mark.parametrize("file", [SOURCE, SECOND])
async def test_cut_at_any_byte_it_is_made_again_to_the_same_bytes(place: Path, file: str, fraction: float) -> None:
    expected = await made_in_one_go(place)
    directory = place / "views" / "v"
    later = [name for name in expected if name > file and not name.startswith(f"{file}.")]
    for name in later:
        (directory / name).unlink()
    for path in directory.iterdir():
        if path.name.startswith(tuple(later) or ("none",)) or path.name.startswith("catalog.sqlite"):
            path.unlink()
    size = 4 + int((len(expected[file]) - 4) * fraction)
    with (directory / file).open("r+b") as binlog:
        binlog.truncate(size)
    index = directory / "mysql-bin.index"
    if later and index.exists():
        index.unlink()
    assert await made_in_one_go(place) == expected


async def test_deleted_it_is_made_again_to_the_same_bytes(place: Path) -> None:
    expected = await made_in_one_go(place)
    shutil.rmtree(place / "views")
    assert await made_in_one_go(place) == expected


async def test_other_settings_are_refused_with_what_has_changed(place: Path) -> None:
    expected = await made_in_one_go(place)
    mirror = await Archive.open(place)
    with pytest.raises(ViewNotOpened, match="engines was 'keep', is 'innodb'"):
        async with made_view(mirror, settings(engines="innodb")):
            pass
    await mirror.close()
    assert files_of_view(place / "views" / "v") == expected


async def test_answers_that_take_stops_away_are_taken_and_cannot_be_taken_back(place: Path) -> None:
    expected = await made_in_one_go(place)
    mirror = await Archive.open(place)
    for answers in ({"plain_tables": ("d.t",)}, {"plain_tables": ("d.t", "*"), "foreign_keys": "innodb"}):
        async with made_view(mirror, settings(**answers)) as view:
            await until_made(view)
    for fewer in ({"plain_tables": ("d.t", "*")}, {"foreign_keys": "innodb"}, {}):
        with pytest.raises(ViewNotOpened, match=r"(plain_tables|foreign_keys) was"):
            async with made_view(mirror, settings(**fewer)):
                pass
    with pytest.raises(ViewNotOpened, match="engines was 'keep', is 'innodb'"):
        async with made_view(
            mirror, settings(plain_tables=("d.t", "d.u", "*"), foreign_keys="innodb", engines="innodb")
        ):
            pass
    await mirror.close()
    view_files = files_of_view(place / "views" / "v")
    assert {name: data for name, data in view_files.items() if name != "view.json"} == {
        name: data for name, data in expected.items() if name != "view.json"
    }


async def test_what_is_not_what_would_be_made_stops_it(place: Path) -> None:
    expected = await made_in_one_go(place)
    directory = place / "views" / "v"
    path = directory / SECOND
    with path.open("r+b") as binlog:
        binlog.seek(len(expected[SECOND]) - 30)
        changed = binlog.read(1)
        binlog.seek(-1, 1)
        binlog.write(bytes((changed[0] ^ 1,)))
    (directory / f"{SECOND}.idx").unlink()
    mirror = await Archive.open(place)
    async with made_view(mirror, settings()) as view:
        status = await until(view, lambda status: status.stop is not None or status.behind_bytes == 0)
        # Cut back to before the damage by the recovery, and made again from there; or stopped: never served as it is.
        if status.stop is None:
            await until_made(view)
            assert (directory / SECOND).read_bytes() == expected[SECOND]
        else:
            assert status.stop.reason.name == "view_differs"
    await mirror.close()


async def test_a_damaged_file_of_the_archive_stops_the_view_there_and_the_archive_says_so(place: Path) -> None:
    path = place / SOURCE
    with path.open("r+b") as binlog:
        binlog.seek(20_000)
        byte = binlog.read(1)
        binlog.seek(-1, 1)
        binlog.write(bytes((byte[0] ^ 4,)))
    mirror = await Archive.open(place)
    async with made_view(mirror, settings()) as view:
        status = await until(view, lambda status: status.stop is not None and is_published(view))
        assert status.stop is not None
        assert status.stop.reason.name == "archive_damaged"
        assert status.stop.file == SOURCE
        assert status.view is not None
        assert status.view.offset > 15_000
    assert mirror.current.damaged_files.first(SOURCE) is not None
    await mirror.close()


@pytest.mark.parametrize("is_complete", [False, True])
async def test_a_transaction_that_cannot_be_kept_is_left_out_only_when_somebody_says_so(
    tmp_path: Path, is_complete: bool
) -> None:
    made = BinlogBuilder("mysql", version=VERSION).transaction(10)
    at = made.size
    made.query("CREATE TABLE d.p (a INT) ENGINE=MyISAM PARTITION BY HASH (a) PARTITIONS 2").transaction(10)
    place = tmp_path / "source"
    files = [(SOURCE, marked(made.data))]
    if is_complete:
        files = [(SOURCE, marked(made.rotate(SECOND).data)), (SECOND, marked(BinlogBuilder(version=VERSION).data))]
    await fill(place, *files)
    mirror = await Archive.open(place)
    async with made_view(mirror, settings()) as view:
        status = await until(view, lambda status: status.stop is not None and is_published(view))
        assert status.stop is not None
        assert (status.stop.file, status.stop.offset, status.stop.reason.error) == (SOURCE, at, 1178)
        await until(view, lambda status: str(view.archive.executed) == f"{UUID_OF_VIEW}:1")
        await view.skip(SOURCE, at, "a test")
        await until(view, lambda status: status.stop is None and status.behind_bytes == 0)
        await until_made(view)
        assert str(view.archive.executed) == f"{UUID_OF_VIEW}:1-3"
    expected = files_of_view(view.directory)
    await mirror.close()
    shutil.rmtree(place / "views")
    assert await made_in_one_go(place) == expected


async def test_a_start_numbers_as_another_relay_did(place: Path) -> None:
    from relay.view.rules.settings import ViewStart

    mirror = await Archive.open(place)
    start = ViewStart(Position(SECOND, 4), 1_000_001)
    async with made_view(mirror, settings(start=start)) as view:
        await until_made(view)
        assert str(view.archive.executed) == f"{UUID_OF_VIEW}:1-1000030"
        assert str(view.archive.purged) == f"{UUID_OF_VIEW}:1-1000000"
    await mirror.close()
