"""NAME.map and NAME.rules are a cache: lost, cut, filled with zeros, changed at any byte or on a full disk, the view is the same."""

import errno
import os
import random
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.storage.files import FileLayer
from relay.view.rules.settings import ViewSettings, ViewStart
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_lookup import ViewLookup
from relay.view.view_map import MapWriter, ViewMap, map_paths
from relay.view.view_place import PlaceUnknown, ViewPlace
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.view_files import binlogs_in
from tests.support.view_making import files_of_view, made_view, marked, settings, until, until_made

NAMES = tuple(f"mysql-bin.{number:06d}" for number in (1, 2, 3))
VERSION = "5.6.24-log"
BEGIN = ViewCheckpoint.of_file(1, b"")


def binlog(first: int, following: str | None) -> BinlogBuilder:
    """With tables without transactions, so that rules know something, and some hundred KiB, so that there are several records."""
    made = BinlogBuilder("mysql", version=VERSION)
    for number in range(first, first + 60):
        made.transaction(3000 + number % 7 * 40)
        if number % 5 == 0:
            made.query(f"CREATE TABLE d.t{number} (a INT) ENGINE=MyISAM")
        if number % 5 == 1 and number > first + 1:
            table = number - 1
            made.query("BEGIN", OPENS).query(f"UPDATE d.t{table} SET a = 1", INSIDE).query("ROLLBACK", CLOSES)
    return made if following is None else made.rotate(following)


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of three files with its view."""
    import asyncio

    async def made() -> Path:
        place = tmp_path_factory.mktemp("archived") / "source"
        files = [(name, marked(binlog(number * 100, following).data)) for number, name, following in numbered()]
        await fill(place, *files)
        await made_in_one_go(place)
        return place

    return asyncio.run(made())


def numbered() -> Iterator[tuple[int, str, str | None]]:
    yield from zip(range(3), NAMES, (*NAMES[1:], None), strict=True)


@pytest.fixture
def place(archived: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(archived, tmp_path / "source"))


async def made_in_one_go(place: Path, wanted: ViewSettings | None = None) -> dict[str, bytes]:
    mirror = await Archive.open(place)
    try:
        async with made_view(mirror, wanted or settings()) as view:
            status = await until(view, lambda status: status.stop is not None or status.behind_bytes == 0)
            assert status.stop is None, status.stop
            await until_made(view)
        return files_of_view(view.directory)
    finally:
        await mirror.close()


def places(place: Path, wanted: ViewSettings | None = None) -> list[ViewPlace]:
    """All transactions of the view, looked up in each of the three ways; what is the same by all of them."""
    lookup = ViewLookup(place, place / "views" / "v", wanted or settings(), {})
    end = lookup.end()
    assert end is not None
    found = []
    for gno in range(1, end.gno + 1, 97):
        one = lookup.of_gno(gno)
        assert lookup.of_source(one.source) == lookup.of_view(one.view) == one
        found.append(one)
    return [*found, end]


DAMAGES: dict[str, Callable[[Path], object]] = {
    "lost": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "zeros at the end": lambda path: path.write_bytes(path.read_bytes()[:100] + bytes(path.stat().st_size - 100)),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 3]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\xff" * 77),
    "of another version": lambda path: path.write_bytes(b"BRVMAP1\n" + path.read_bytes()[8:]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("suffix", [".map", ".rules"])
@pytest.mark.parametrize("which", [NAMES[-1:], NAMES], ids=["the newest", "all"])
async def test_damaged_maps_are_made_again_and_the_view_goes_on_with_the_same_bytes(
    place: Path, which: tuple[str, ...], suffix: str, damage: Callable[[Path], object]
) -> None:
    directory = place / "views" / "v"
    before = files_of_view(directory)
    known = places(place)
    for name in which:
        damage(directory / (name + suffix))
    assert places(place) == known
    after = await made_in_one_go(place)
    assert {name: after[name] for name in NAMES} == {name: before[name] for name in NAMES}
    assert places(place) == known


@pytest.mark.parametrize("suffix", [".map", ".rules"])
async def test_maps_changed_at_any_byte_or_cut_at_any_give_the_same_places_and_the_same_view(
    place: Path, suffix: str
) -> None:
    directory = place / "views" / "v"
    expected = {path.name: path.read_bytes() for path in binlogs_in(directory)}
    known = places(place)
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    chosen = random.Random(seed)
    whole = {name: (directory / (name + suffix)).read_bytes() for name in NAMES}
    for attempt in range(8):
        for name, data in whole.items():
            at = chosen.randrange(len(data))
            changed = bytearray(data)
            changed[at] ^= 1 << chosen.randrange(8)
            (directory / (name + suffix)).write_bytes(changed if attempt % 2 else data[:at])
        assert places(place) == known
        if attempt % 4 == 3:
            await made_in_one_go(place)
            assert {path.name: path.read_bytes() for path in binlogs_in(directory)} == expected
            assert places(place) == known


async def test_what_comes_after_a_lost_map_is_what_would_have_come(place: Path, tmp_path: Path) -> None:
    """The rules know the tables of all files before, though no map says so any more."""
    added = binlog(200, None)
    for number in range(100, 160, 5):
        added.query("BEGIN", OPENS).query(f"UPDATE d.t{number} SET a = 1", INSIDE).query("ROLLBACK", CLOSES)
    data = marked(added.data)
    undamaged = Path(shutil.copytree(place, tmp_path / "undamaged"))
    for path in (place / "views" / "v").glob("*.map"):
        path.unlink()
    made = []
    for archive in (place, undamaged):
        mirror = await Archive.open(archive)
        async with made_view(mirror, settings()) as view:
            end = mirror.current.end
            assert end is not None
            await append_all(mirror.current, data, start=end.offset)
            await until(view, lambda status, mirror=mirror: status.source == mirror.current.end)  # type: ignore[misc]
            await until_made(view)
            assert view.status.stop is None
        await mirror.close()
        made.append({path.name: path.read_bytes() for path in binlogs_in(archive / "views" / "v")})
    assert made[0] == made[1]


async def test_a_lost_map_whose_rules_nobody_can_find_out_again_stops_the_view_by_name(place: Path) -> None:
    """What its tables were stood in files that are purged, of the source and of the view."""
    directory = place / "views" / "v"
    mirror = await Archive.open(place)
    async with made_view(mirror, settings()) as view:
        await until_made(view)
        await view.archive.current.purge(NAMES[:2], "a test")
        await mirror.current.purge(NAMES[:2], "a test")
    await mirror.close()
    map_paths(directory / NAMES[2])[0].unlink()
    mirror = await Archive.open(place)
    async with made_view(mirror, settings()) as view:
        status = await until(view, lambda status: status.stop is not None)
        assert status.stop is not None
        assert status.stop.reason.name == "view_map_lost"
    await mirror.close()
    with pytest.raises(PlaceUnknown, match="map does not reach"):
        ViewLookup(place, directory, settings(), {}).of_source(Position(NAMES[2], 4))


class _FullDisk(FileLayer):
    """Has room for so many more bytes."""

    def __init__(self, room: int) -> None:
        self.room = room

    def pwritev(self, fd: int, buffers: "list[bytes]", offset: int) -> int:  # type: ignore[override]
        size = sum(map(len, buffers))
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if size > self.room:
            buffers, size = [b"".join(buffers)[: self.room]], self.room
        self.room -= size
        return super().pwritev(fd, buffers, offset)


def records(count: int, rules: Callable[[int], bytes]) -> list[ViewCheckpoint]:
    return [BEGIN, *(ViewCheckpoint(n * 70_000, n * 71_000, n * 10, n * 10, rules(n)) for n in range(1, count))]


def written(layer: FileLayer, file: Path, wanted: list[ViewCheckpoint]) -> None:
    writer = MapWriter(layer, file, wanted[0])
    try:
        writer.add(wanted)
    finally:
        writer.close()


def test_a_disk_that_is_full_at_any_byte_leaves_what_was_there_and_takes_the_rest_when_there_is_room(
    tmp_path: Path,
) -> None:
    wanted = records(12, lambda n: b"tables %d" % (n // 3) if n > 2 else b"")
    whole = tmp_path / "whole"
    written(FileLayer(), whole, wanted)
    expected = [path.read_bytes() for path in map_paths(whole)]
    room = 0
    while True:
        file = tmp_path / f"file{room}"
        written(FileLayer(), file, wanted[:6])
        before = ViewMap.read(file).last()
        assert before is not None and before == wanted[5]
        try:
            # As the maker does: it goes on from a record, time and again.
            for _ in range(2):
                layer = _FullDisk(room)
                writer = MapWriter(layer, file, wanted[4])
                try:
                    writer.add(wanted)
                finally:
                    writer.close()
            break
        except OSError:
            found = ViewMap.read(file).last()
            assert found in wanted and found.source >= wanted[4].source  # type: ignore[union-attr]
        written(FileLayer(), file, [wanted[4], *wanted])
        assert [path.read_bytes() for path in map_paths(file)] == expected
        room += 7
    assert room > 100


def test_a_new_map_is_whole_or_not_there_where_the_disk_is_full_at_any_byte(tmp_path: Path) -> None:
    begin = BEGIN._replace(rules=b"tables")
    for room in range(90):
        file = tmp_path / f"file{room}"
        try:
            MapWriter(_FullDisk(room), file, begin).close()
        except OSError:
            assert not map_paths(file)[0].exists()
            continue
        assert ViewMap.read(file).beginning() == begin
        return
    raise AssertionError("90 bytes are enough")


def test_the_beginning_of_a_file_is_on_the_disk_before_anything_else_is_written(tmp_path: Path) -> None:
    """A power failure takes the rest of a map, and never what nobody could find out again."""
    synced: list[str] = []

    class Watched(FileLayer):
        def sync_data(self, fd: int) -> None:
            synced.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)

        def rename(self, source: Path, target: Path) -> None:
            synced.append(f"{source.name} is {target.name}")
            super().rename(source, target)

        def sync_directory(self, path: Path) -> None:
            synced.append("directory")

    MapWriter(Watched(), tmp_path / "a", BEGIN._replace(rules=b"tables")).close()
    assert synced == ["a.rules", "a.map.tmp", "a.map.tmp is a.map", "directory"]


@pytest.mark.parametrize("other", [500, 4711])
def test_a_map_of_a_start_that_was_not_taken_says_nothing_of_the_one_that_was(tmp_path: Path, other: int) -> None:
    """A relay that was killed before the file was there, and a `start` that is another now."""
    file = tmp_path / "mysql-bin.000001"
    wanted = [ViewCheckpoint.of_file(7, b"", 1000), ViewCheckpoint(1000, 160, 7, 1, b"tables"), *records(3, bytes)[1:]]
    written(FileLayer(), file, [ViewCheckpoint.of_file(9, b"", other)])
    written(FileLayer(), file, wanted)
    found = ViewMap.read(file)
    assert len(found) == len(wanted)
    assert found.beginning() == wanted[0]
    assert found.before_place(wanted[0].place) == wanted[0]
    assert found.before_source(1000) == wanted[1]
    written(FileLayer(), file, wanted[1:])
    assert [ViewMap.read(file).before_place(one.place) for one in wanted] == wanted


def test_a_file_with_thousands_of_states_is_looked_up_within_some_megabytes(tmp_path: Path) -> None:
    """Of 2,000 tables at each record 120 KB: all of them would be 480 MB."""
    rules = b",".join(b'["shop","table_%05d","MyISAM","InnoDB",true,false]' % n for n in range(2400))
    file = tmp_path / "mysql-bin.000001"
    wanted = records(4000, lambda n: rules + b"%d" % n)
    written(FileLayer(), file, wanted)
    source = wanted[-1].source
    assert map_paths(file)[1].stat().st_size * 16 <= source + (1 << 20), "the rules take a part of what the source has"
    tracemalloc.start()
    try:
        found = ViewMap.read(file)
        for n in (1, 1500, 3999):
            one = found.before_source(n * 70_000)
            assert one is not None and 0 <= n * 70_000 - one.source <= 64 * 70_000
            assert found.before_view(one.view) == found.before_gno(one.next_gno) == one
        MapWriter(FileLayer(), file, one).close()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


async def test_a_view_with_a_start_finds_its_beginning_again(place: Path) -> None:
    wanted = settings(start=ViewStart(Position(NAMES[1], 4), 1001))
    shutil.rmtree(place / "views")
    before = await made_in_one_go(place, wanted)
    for path in (place / "views" / "v").glob("*.map"):
        path.unlink()
    lookup = ViewLookup(place, place / "views" / "v", wanted, {})
    assert lookup.of_source(Position(NAMES[1], 4)).gno == 1000
    assert lookup.of_gno(1100).gno == 1100
    after = await made_in_one_go(place, wanted)
    assert {name: after[name] for name in NAMES[1:]} == {name: before[name] for name in NAMES[1:]}
