"""A view that begins inside a file: exactly there, with the numbers of the view that has all, and with what came before known."""

import shutil
import struct
import threading
from pathlib import Path
from uuid import UUID

import pytest

from protocol.binlog.event_type import EventType
from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive_inspection.listing import read_ledger
from relay.config import ViewSection
from relay.config.sections import ViewStartPlace
from relay.view.first_numbers import NUMBERS
from relay.view.generations.view_generations import made_generations
from relay.view.inspect.made_again import made_again
from relay.view.inspect.named_view import NamedView, named_view
from relay.view.inspect.view_comparison import differences
from relay.view.inspect.view_outlook import view_outlook
from relay.view.rules.settings import ViewSettings, ViewStart
from relay.view.translate.before_start import BeforeStart
from relay.view.view_place import InsideTransaction, PlaceUnknown
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import ALONE, CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.view_making import UUID_OF_VIEW, files_of_view, made_view, marked, settings, until, until_made

SOURCE = "mysql-bin.000001"
SECOND = "mysql-bin.000002"
VERSION = "5.6.24-log"


def events_of(data: bytes) -> list[tuple[int, int, bytes]]:
    """(offset, type, body without checksum) of each."""
    found, at = [], 4
    while at < len(data):
        _time, kind, _server, size, _end, _flags = struct.unpack_from("<IBIIIH", data, at)
        found.append((at, kind, data[at + 19 : at + size - 4]))
        at += size
    return found


def built() -> tuple[BinlogBuilder, list[int]]:
    """A file of many transactions, with the places between them."""
    made, places = BinlogBuilder("mysql", version=VERSION), []
    for number in range(400):
        places.append(made.size)
        if number == 120:
            made.transaction(*(70_000 for _ in range(20)))
        elif number % 50 == 7:
            made.query(f"CREATE TABLE d.t{number} (a INT) ENGINE=MyISAM")
        else:
            made.transaction(20 + number % 7 * 90)
    places.append(made.size)
    return made.rotate(SECOND), places


PLACES = built()[1]


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with two files, without a view."""
    import asyncio

    place = tmp_path_factory.mktemp("archived") / "source"
    second = BinlogBuilder("mysql", version=VERSION).transaction(30).transaction(40)
    asyncio.run(fill(place, (SOURCE, marked(built()[0].data)), (SECOND, marked(second.data))))
    return place


@pytest.fixture
def place(archived: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(archived, tmp_path / "source"))


def starting(offset: int, next_gno: int, **changed: object) -> ViewSettings:
    return settings(start=ViewStart(Position(SOURCE, offset), next_gno), **changed)


async def made(place: Path, wanted: ViewSettings) -> dict[str, bytes]:
    mirror = await Archive.open(place)
    try:
        async with made_view(mirror, wanted) as view:
            status = await until_made(view)
            assert status.stop is None
        return files_of_view(view.directory)
    finally:
        await mirror.close()


def numbered(files: dict[str, bytes]) -> dict[int, bytes]:
    """By the number of a view's transaction: what is behind its GTID event, up to the next one, of both files."""
    found: dict[int, bytes] = {}
    number = 0
    for name in (SOURCE, SECOND):
        for _at, kind, body in events_of(files[name]):
            if kind == EventType.GTID:
                assert body[1:17] == UUID_OF_VIEW.bytes
                number = struct.unpack_from("<q", body, 17)[0]
                found[number] = b""
            elif kind in (EventType.FORMAT_DESCRIPTION, EventType.PREVIOUS_GTIDS, EventType.ROTATE):
                number = 0
            elif number:
                found[number] += bytes((kind,)) + body
    return found


@pytest.mark.parametrize("index", [0, 1, 8, 119, 120, 121, 300, 399])
async def test_the_same_transactions_have_the_numbers_that_the_view_of_all_gave(place: Path, index: int) -> None:
    whole = numbered(await made(place, settings()))
    shutil.rmtree(place / "views")
    begun = numbered(await made(place, starting(PLACES[index], index + 1)))
    assert min(begun) == index + 1
    assert begun == {number: text for number, text in whole.items() if number > index}


async def test_the_first_file_begins_with_its_head_and_the_numbers_before(place: Path) -> None:
    files = await made(place, starting(PLACES[300], 301))
    (_, first, _), (_, second, previous), (_, third, gtid), *_ = events_of(files[SOURCE])
    assert (first, second, third) == (EventType.FORMAT_DESCRIPTION, EventType.PREVIOUS_GTIDS, EventType.GTID)
    assert decode_gtid_set(previous) == GtidSet.from_text(f"{UUID_OF_VIEW}:1-300")
    assert struct.unpack_from("<q", gtid, 17)[0] == 301


@pytest.mark.parametrize("fraction", [0.0001, 0.1, 0.5, 0.9, 0.9999, None])
@pytest.mark.parametrize("index", [1, 120, 300])
async def test_cut_or_deleted_it_is_made_again_to_the_same_bytes(
    place: Path, index: int, fraction: float | None
) -> None:
    wanted = starting(PLACES[index], index + 1)
    expected = await made(place, wanted)
    directory = place / "views" / "v"
    if fraction is None:
        shutil.rmtree(place / "views")
    else:
        for path in directory.iterdir():
            if path.name.startswith((SECOND, "catalog.sqlite", "mysql-bin.index")):
                path.unlink()
        with (directory / SOURCE).open("r+b") as binlog:
            binlog.truncate(4 + int((len(expected[SOURCE]) - 4) * fraction))
    assert await made(place, wanted) == expected


async def test_it_grows_with_the_archive_and_is_what_one_go_makes(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.view.running.maker.AGAIN_S", 0.05)
    wanted = starting(PLACES[300], 301)
    expected = await made(place, wanted)
    data = marked(built()[0].data)
    mirror = await Archive.open(tmp_path / "grown")
    await mirror.current.begin_file(SOURCE)
    await append_all(mirror.current, data[: PLACES[100]])
    async with made_view(mirror, wanted) as view:
        status = await until(view, lambda status: status.stop is not None)
        assert status.stop is not None and status.stop.reason.name == "start_not_archived"
        assert (status.stop.file, status.stop.offset) == (SOURCE, PLACES[300])
        await append_all(mirror.current, data[: PLACES[350]], start=PLACES[100])
        await until(view, lambda status: status.stop is None and status.behind_bytes == 0)
        await append_all(mirror.current, data, start=PLACES[350])
        await mirror.current.begin_file(SECOND)
        await append_all(mirror.current, (place / SECOND).read_bytes())
        await until(view, lambda status: status.source == mirror.current.end)
        await until_made(view)
    await mirror.close()
    grown = files_of_view(view.directory)
    assert {name: grown[name] for name in (SOURCE, SECOND)} == {name: expected[name] for name in (SOURCE, SECOND)}


async def test_a_relay_whose_archive_begins_later_makes_the_same_bytes(place: Path, tmp_path: Path) -> None:
    second = BinlogBuilder("mysql", version=VERSION).transaction(30)
    wanted = settings(start=ViewStart(Position(SECOND, second.size), 402))
    expected = await made(place, wanted)
    await fill(tmp_path / "later", (SECOND, (place / SECOND).read_bytes()))
    assert await made(tmp_path / "later", wanted) == expected


async def test_what_stands_before_the_start_is_not_gone_over_on_the_event_loop(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However little stands behind it."""
    names = []
    learn = BeforeStart.learn

    def learned(before: BeforeStart, begin: int, start: int) -> GtidSet:
        names.append(threading.current_thread().name)
        return learn(before, begin, start)

    monkeypatch.setattr(BeforeStart, "learn", learned)
    await made(place, starting(PLACES[400], 401))
    assert names and all(name.startswith("view-maker") for name in names)


# --- refused by name ---------------------------------------------------------------------------------------------------


async def refused(place: Path, wanted: ViewSettings) -> tuple[str, str, str]:
    """The stop's name, text and advice; nothing is made."""
    mirror = await Archive.open(place)
    try:
        async with made_view(mirror, wanted) as view:
            stop = (await until(view, lambda status: status.stop is not None)).stop
            assert stop is not None and wanted.start is not None
            assert (stop.file, stop.offset) == (wanted.start.position.file, wanted.start.position.offset)
            assert stop.group_stop == stop.offset
            assert not view.archive.current.files
            return stop.reason.name, stop.reason.text, stop.reason.advice
    finally:
        await mirror.close()


@pytest.mark.parametrize("behind", [1, 20])
async def test_a_start_inside_a_transaction_is_refused_with_the_nearest_good_ones(place: Path, behind: int) -> None:
    for index in (0, 120, 300):
        name, text, advice = await refused(place, starting(PLACES[index] + behind, 5))
        assert name == "start_inside_transaction"
        assert f"{SOURCE}:{PLACES[index]} before, {SOURCE}:{PLACES[index + 1]} after" in text
        assert f"view find v --source {SOURCE}:{PLACES[index]}" in advice
        shutil.rmtree(place / "views")


async def test_a_start_inside_the_head_is_refused_too(place: Path) -> None:
    name, text, _ = await refused(place, starting(50, 5))
    assert name == "start_inside_transaction"
    assert f"{SOURCE}:4 before, {SOURCE}:{PLACES[0]} after" in text


async def test_a_start_past_the_end_is_refused_with_the_end(place: Path) -> None:
    end = (place / SOURCE).stat().st_size
    name, text, _ = await refused(place, starting(end + 1, 5))
    assert name == "start_not_archived"
    assert f"the file ends at {end}" in text


@pytest.mark.parametrize("name", ["mysql-bin.000099", "binlog.000001"])
async def test_a_start_in_a_file_that_is_not_there_is_told_by_name(place: Path, name: str) -> None:
    stop, text, advice = await refused(place, settings(start=ViewStart(Position(name, 4), 5)))
    assert stop == "start_not_archived"
    assert name in text and SOURCE in text and "[[view]] v" in advice


async def test_a_start_that_was_refused_may_be_corrected(place: Path) -> None:
    await refused(place, starting(PLACES[3] + 1, 4))
    files = await made(place, starting(PLACES[3], 4))
    assert min(numbered(files)) == 4


async def test_a_start_that_was_refused_gave_no_number_and_leaves_no_map(place: Path) -> None:
    """Whatever is right, with whatever number, may be written in its place."""
    await refused(place, starting(PLACES[3] + 1, 1000))
    assert not [row for row in read_ledger(place) if row.kind == NUMBERS]
    assert files_of_view(place / "views" / "v") == {}
    files = await made(place, starting(PLACES[5], 6))
    assert min(numbered(files)) == 6
    rows = [row for row in read_ledger(place) if row.kind == NUMBERS]
    assert [(row.file, row.offset) for row in rows] == [(SOURCE, PLACES[5])]
    assert f"{UUID_OF_VIEW}:6" in rows[0].text


async def test_a_view_that_was_begun_inside_a_file_does_not_begin_elsewhere_with_other_numbers(place: Path) -> None:
    await made(place, starting(PLACES[300], 301))
    shutil.rmtree(place / "views")
    for wanted in (settings(), starting(PLACES[300], 300), starting(PLACES[301], 300)):
        mirror = await Archive.open(place)
        async with made_view(mirror, wanted) as view:
            stop = (await until(view, lambda status: status.stop is not None)).stop
            assert stop is not None and stop.reason.name == "gtid_number_unknown"
            assert f"{SOURCE}:{PLACES[300]}" in stop.reason.text
        await mirror.close()
        shutil.rmtree(place / "views")
    assert min(numbered(await made(place, starting(PLACES[301], 302)))) == 302


@pytest.mark.parametrize("suffixes", [(".map",), (".rules",), (".map", ".rules")])
async def test_maps_that_were_lost_are_made_again_from_the_start_on(place: Path, suffixes: tuple[str, ...]) -> None:
    wanted = starting(PLACES[121], 122)
    before = await made(place, wanted)
    view = named(place, wanted)
    known = [view.of_source(Position(SOURCE, PLACES[index])) for index in (121, 122, 300, 399)]
    for path in (place / "views" / "v").iterdir():
        if path.suffix in suffixes:
            path.unlink()
    again = named(place, wanted)
    assert [again.of_source(one.source) for one in known] == known
    assert [again.of_view(one.view) for one in known] == known
    assert [again.places.of_gno(one.gno) for one in known] == known
    with pytest.raises(PlaceUnknown, match=f"the view begins with {SOURCE}:{PLACES[121]}"):
        again.of_source(Position(SOURCE, PLACES[120]))
    after = await made(place, wanted)
    assert {name: after[name] for name in (SOURCE, SECOND)} == {name: before[name] for name in (SOURCE, SECOND)}
    assert [named(place, wanted).of_source(one.source) for one in known] == known


# --- places and checks -------------------------------------------------------------------------------------------------


def named(place: Path, wanted: ViewSettings) -> NamedView:
    return named_view(place, wanted)


async def test_places_before_the_start_are_not_in_the_view_and_those_behind_are(place: Path) -> None:
    wanted = starting(PLACES[300], 301)
    files = await made(place, wanted)
    view = named(place, wanted)
    head = next(at for at, kind, _ in events_of(files[SOURCE]) if kind == EventType.GTID)
    for offset in (4, PLACES[0], PLACES[299], PLACES[300] - 1):
        with pytest.raises(PlaceUnknown, match=f"the view begins with {SOURCE}:{PLACES[300]}"):
            view.of_source(Position(SOURCE, offset))
    first = view.of_source(Position(SOURCE, PLACES[300]))
    assert (first.source.offset, first.view.offset, first.gno) == (PLACES[300], head, 300)
    assert str(view.executed(first)) == f"{UUID_OF_VIEW}:1-300"
    assert view.of_view(Position(SOURCE, 4)).source.offset == PLACES[300]
    assert view.places.of_gno(300).source.offset == PLACES[300]
    later = view.of_source(Position(SOURCE, PLACES[350]))
    assert later.gno == 350 and view.of_view(later.view) == later
    with pytest.raises(InsideTransaction):
        view.of_source(Position(SOURCE, PLACES[300] + 1))


async def test_it_is_what_the_archive_gives(place: Path) -> None:
    wanted = starting(PLACES[300], 301)
    await made(place, wanted)
    view = named(place, wanted)
    (generation,) = made_generations(place, view.directory)
    again = made_again(view, generation)
    assert [file.name for file in again.files] == [SOURCE, SECOND]
    assert list(differences(generation.directory, again.files, again)) == []


@pytest.mark.parametrize("is_made", [False, True])
async def test_a_check_looks_from_the_start_on(place: Path, is_made: bool) -> None:
    wanted = starting(PLACES[390], 391)
    if is_made:
        await made(place, wanted)
    outlook = view_outlook(named(place, wanted))
    assert outlook.found.total == 0 and not outlook.found.unread
    if not is_made:
        assert outlook.begin == Position(SOURCE, PLACES[390])
        assert outlook.size_bytes < 20_000


@pytest.mark.parametrize(
    ("file", "behind", "name"),
    [
        (SOURCE, 1, "start_inside_transaction"),
        (SOURCE, 10**7, "start_not_archived"),
        (SECOND[:-1] + "9", 0, "start_not_archived"),
    ],
)
async def test_a_check_says_that_the_start_is_none(place: Path, file: str, behind: int, name: str) -> None:
    wanted = settings(start=ViewStart(Position(file, PLACES[3] + behind), 4))
    outlook = view_outlook(named(place, wanted))
    assert [stop.reason.name for stop in outlook.found.stops] == [name]


# --- what came before --------------------------------------------------------------------------------------------------


async def test_gtids_of_the_source_before_the_start_stand_in_the_head(tmp_path: Path) -> None:
    sid = "11111111-2222-3333-4444-555555555555"
    source = BinlogBuilder("mysql", version="5.6.24-log")
    source.event(EventType.PREVIOUS_GTIDS, encode_gtid_set(GtidSet.from_text(f"{sid}:1-5")), ALONE)
    start = 0
    for number in (6, 7, 8):
        start = source.size
        source.event(EventType.GTID, b"\1" + UUID(sid).bytes + struct.pack("<q", number), OPENS)
        source.query("BEGIN", INSIDE).query("COMMIT", CLOSES)
    await fill(tmp_path / "source", (SOURCE, marked(source.data)))
    files = await made(tmp_path / "source", starting(start, 1001))
    previous = next(body for _, kind, body in events_of(files[SOURCE]) if kind == EventType.PREVIOUS_GTIDS)
    assert decode_gtid_set(previous) == GtidSet.from_text(f"{sid}:1-7,{UUID_OF_VIEW}:1-1000")


async def test_tables_that_were_defined_before_the_start_are_known(tmp_path: Path) -> None:
    """A transaction of both engines is divided as in the view that has all: the numbers behind it are the same."""
    source = BinlogBuilder("mysql", version=VERSION)
    source.query("CREATE TABLE d.m (a INT) ENGINE=MyISAM").query("CREATE TABLE d.i (a INT) ENGINE=InnoDB")
    start = source.size
    mixed(source)
    source.transaction(10)
    await fill(
        tmp_path / "source", (SOURCE, marked(source.data)), (SECOND, marked(BinlogBuilder(version=VERSION).data))
    )
    whole = numbered(await made(tmp_path / "source", settings()))
    shutil.rmtree(tmp_path / "source" / "views")
    begun = numbered(await made(tmp_path / "source", starting(start, 3)))
    assert len(whole) == 5
    assert begun == {number: text for number, text in whole.items() if number > 2}


def mixed(source: BinlogBuilder) -> None:
    source.query("BEGIN", OPENS).query("INSERT INTO d.m VALUES (1)", INSIDE).query("INSERT INTO d.i VALUES (1)", INSIDE)
    source.query("COMMIT", CLOSES)


def test_the_configuration_says_it_as_the_view_understands_it() -> None:
    section = ViewSection.model_validate({"name": "v", "start": {"file": SOURCE, "position": 4711, "next": 1001}})
    assert isinstance(section.start, ViewStartPlace) and section.start.position == 4711
