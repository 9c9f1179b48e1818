"""A view where another source goes on: a generation of its own, made of the files of that source; or it stops by name."""

import shutil
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mysql_gtid import MysqlGtid
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.storage.files import MADE_FROM_NAME, FileLayer
from relay.view.generations.view_generations import keep_made_from, made_generations
from relay.view.inspect.made_again import made_again
from relay.view.inspect.named_view import NamedView, named_view
from relay.view.inspect.view_comparison import differences
from relay.view.inspect.view_listing import files_of, view_facts
from relay.view.inspect.view_outlook import view_outlook
from relay.view.rules.settings import ViewSettings
from relay.view.running.view import View
from relay.view.view_place import PlaceUnknown
from tests.support.binlog_builder import CLOSES
from tests.support.generation_filling import (
    A,
    B,
    File,
    append_files,
    behind_a_gap,
    change_source,
    identity,
    mysql_series,
    two_generations,
)
from tests.support.gtid_binlog import add_mysql, mysql_binlog
from tests.support.gtid_stream import END, START
from tests.support.served_generations import call, read_refusal, servers_of_generations, transactions
from tests.support.view_making import files_of_view, made_view, settings, until, until_made

FIRST, SECOND, THIRD = (f"mysql-bin.{number:06d}" for number in (1, 2, 3))
ALL = f"{A}:1-9,{B}:1-2"
FILES_OF_B = mysql_series(2, f"{A}:5-9", f"{B}:1-2", start=f"{A}:1-4")

by_gtid = pytest.mark.parametrize("gtids", ["assign", "keep"])


async def first_source(directory: Path) -> Archive:
    """Source A with 1-6 in two files."""
    archive = await Archive.open(directory)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-3", f"{A}:4-6"))
    return archive


def line(archive: Archive) -> str:
    """What is executed."""
    executed = archive.executed
    return executed.line if isinstance(executed, GtidSet) else ""


def all_files(view: Path) -> dict[str, dict[str, bytes]]:
    """Of each generation's directory."""
    return {path.name: files_of_view(path) for path in (view, *sorted(view.glob("g0*")))}


async def remade(place: Path, wanted: ViewSettings) -> dict[str, dict[str, bytes]]:
    mirror = await Archive.open(place)
    try:
        async with made_view(mirror, wanted) as view:
            await until_all(view, mirror)
        return all_files(view.directory)
    finally:
        await mirror.close()


async def until_all(view: View, mirror: Archive) -> None:
    await until(view, lambda status: status.source == mirror.current.end and status.behind_bytes == 0)
    # What is handed over to a generation that has not begun yet is seen nowhere else.
    await until(view, lambda _: line(view.archive) == line(mirror))
    await until_made(view)
    await view.archive.settled()


async def stopped(mirror: Archive, wanted: ViewSettings) -> tuple[str, str, int, str]:
    """The reason, its place and its text, of a view that stops."""
    async with made_view(mirror, wanted) as view:
        status = await until(view, lambda status: status.stop is not None)
        assert status.stop is not None
        return status.stop.reason.name, status.stop.file, status.stop.offset, status.stop.reason.text


@by_gtid
async def test_the_view_goes_on_with_the_other_source_and_has_what_the_archive_has(tmp_path: Path, gtids: str) -> None:
    mirror = await first_source(tmp_path / "source")
    wanted = settings(gtids=gtids)
    async with made_view(mirror, wanted) as view:
        await until_all(view, mirror)
        await change_source(mirror, identity(B, 2), FILES_OF_B)
        await until_all(view, mirror)
        assert line(view.archive) == line(mirror) == ALL
        assert [one.number for one in view.archive.all] == [1, 2]
        assert [[file.name for file in one.files] for one in view.archive.all] == [[FIRST, SECOND], [SECOND, THIRD]]
        assert view.archive.all[0].ended
        assert view.archive.current.identity == identity(B, 2)
        assert view.status.source_generation == 2
        grown = all_files(view.directory)
    await mirror.close()
    shutil.rmtree(tmp_path / "source" / "views")
    assert await remade(tmp_path / "source", wanted) == grown


@by_gtid
async def test_several_changes_and_a_way_back_are_followed(tmp_path: Path, gtids: str) -> None:
    mirror = await two_generations(tmp_path / "source")
    async with made_view(mirror, settings(gtids=gtids)) as view:
        await until_all(view, mirror)
        await change_source(mirror, identity(A, 1), mysql_series(3, f"{B}:1-2,{A}:10", start=f"{A}:1-9"))
        await until_all(view, mirror)
        assert line(view.archive) == line(mirror) == f"{A}:1-10,{B}:1-2"
        assert [made.source_number for made in made_generations(mirror.directory, view.directory)] == [1, 2, 3]
    await mirror.close()


@pytest.mark.parametrize("fraction", [None, 0.0, 0.2, 0.6, 0.99])
@pytest.mark.parametrize("file", [SECOND, THIRD])
async def test_cut_at_any_byte_behind_the_change_it_is_made_again_to_the_same_bytes(
    tmp_path: Path, file: str, fraction: float | None
) -> None:
    place = tmp_path / "source"
    await (await two_generations(place)).close()
    expected = await remade(place, settings())
    directory = place / "views" / "v" / "g0002"
    for path in directory.iterdir():
        later = path.name > file and not path.name.startswith(f"{file}.")
        is_gone = fraction is None and path.name.startswith(file)
        if later or is_gone or path.name.startswith(("catalog.sqlite", "mysql-bin.index", "ledger")):
            path.unlink()
    if fraction is not None:
        data = expected["g0002"][file]
        (directory / file).write_bytes(data[: 4 + int((len(data) - 4) * fraction)])
    assert await remade(place, settings()) == expected


@pytest.mark.parametrize("has_made_from", [True, False])
async def test_what_was_prepared_when_the_relay_was_killed_is_taken_back_and_made(
    tmp_path: Path, has_made_from: bool
) -> None:
    place = tmp_path / "source"
    mirror = await first_source(place)
    async with made_view(mirror, settings()) as view:
        await until_all(view, mirror)
        prepared = await view.archive.prepare(identity(B, 2), "a test", "mysql-bin.000009")
        if has_made_from:
            keep_made_from(prepared.directory, 7, Position("mysql-bin.000009", 4), 1, FileLayer())
        shutil.copytree(prepared.directory, tmp_path / "prepared")
    await change_source(mirror, identity(B, 2), FILES_OF_B)
    await mirror.close()
    shutil.copytree(tmp_path / "prepared", view.directory / "g0002")
    made = await remade(place, settings())
    shutil.rmtree(place / "views")
    assert await remade(place, settings()) == made
    assert set(made) == {"v", "g0002"}


@pytest.mark.parametrize("made_to_the_end", [True, False])
async def test_a_first_generation_that_was_purged_is_no_obstacle_once_all_of_it_was_made(
    tmp_path: Path, made_to_the_end: bool
) -> None:
    place = tmp_path / "source"
    mirror = await first_source(place)
    async with made_view(mirror, settings()) as view:
        await until_all(view, mirror)
    if not made_to_the_end:
        await append_files(mirror, mysql_series(3, f"{A}:7", start=f"{A}:1-6"))
    await change_source(mirror, identity(B, 2), FILES_OF_B)
    await mirror.all[0].purge([file.name for file in mirror.all[0].files], "a test")
    await mirror.forget_emptied()
    assert [one.number for one in mirror.all] == [2]
    async with made_view(mirror, settings()) as view:
        if made_to_the_end:
            await until_all(view, mirror)
            assert line(view.archive) == ALL
        else:
            status = await until(view, lambda status: status.stop is not None)
            assert status.stop is not None and status.stop.reason.name == "source_file_missing"
    if made_to_the_end:
        made = all_files(view.directory)
        await mirror.close()
        mirror = await Archive.open(place)
        async with made_view(mirror, settings()) as view:
            await append_files(mirror, mysql_series(4, f"{B}:3", start=ALL))
            await until_all(view, mirror)
            assert line(view.archive) == f"{A}:1-9,{B}:1-3"
        grown = all_files(view.directory)
        for directory, files in made.items():
            assert files.items() <= grown[directory].items() or directory == "g0002"
    await mirror.close()


async def test_a_view_that_is_begun_behind_a_purged_generation_has_another_number_than_the_archives(
    tmp_path: Path,
) -> None:
    mirror = await two_generations(tmp_path)
    await mirror.all[0].purge([file.name for file in mirror.all[0].files], "a test")
    await mirror.forget_emptied()
    async with made_view(mirror, settings()) as view:
        await until_all(view, mirror)
        await change_source(mirror, identity(A, 1), mysql_series(1, f"{B}:2,{A}:10", start=f"{A}:1-9,{B}:1"))
        await until_all(view, mirror)
        made = made_generations(mirror.directory, view.directory)
        assert [(one.number, one.source_number) for one in made] == [(1, 2), (2, 3)]
        assert line(view.archive) == f"{A}:1-10,{B}:1-2"
    await mirror.close()
    assert await remade(tmp_path, settings()) == all_files(view.directory)


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"generation": 0}', b'{"generation": "2"}', b"[2]"])
async def test_a_view_that_does_not_know_what_it_is_made_from_says_so_and_guesses_nothing(
    tmp_path: Path, content: bytes | None
) -> None:
    await (await two_generations(tmp_path)).close()
    await remade(tmp_path, settings())
    path = tmp_path / "views" / "v" / "g0002" / MADE_FROM_NAME
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    mirror = await Archive.open(tmp_path)
    name, _file, _offset, text = await stopped(mirror, settings())
    assert name == "archive_unreadable" and "g0002/made-from.json" in text and "rebuild the view" in text
    await mirror.close()
    with pytest.raises(OSError, match="rebuild the view"):
        named_view(tmp_path, settings()).of_source(Position(THIRD, 4))


# --- what is not sound -----------------------------------------------------------------------------------------------


async def test_a_view_without_gtids_stops_where_another_source_goes_on(tmp_path: Path) -> None:
    mirror = await two_generations(tmp_path)
    end = mirror.all[0].end
    assert end is not None
    name, file, offset, text = await stopped(mirror, settings(gtids="anonymous"))
    assert (name, file, offset) == ("source_changed", end.file, end.offset)
    assert "the view gives transactions no GTIDs" in text
    assert not (tmp_path / "views" / "v" / "g0002").exists()
    await mirror.close()


async def test_a_view_that_gave_numbers_stops_since_the_other_source_may_have_given_others(tmp_path: Path) -> None:
    mirror = await Archive.open(tmp_path)
    mirror.current.set_identity(identity(A, 1))
    numbered = add_mysql(mysql_binlog(GtidSet()), None)
    await append_files(mirror, [(FIRST, numbered.data), *mysql_series(2, f"{A}:1-2")])
    await change_source(mirror, identity(B, 2), mysql_series(1, f"{A}:1-3"))
    name, file, _offset, text = await stopped(mirror, settings())
    assert (name, file) == ("source_changed", SECOND)
    assert "gave numbers" in text
    await mirror.close()


async def test_a_view_stops_before_a_gap_that_was_accepted(tmp_path: Path) -> None:
    mirror = await behind_a_gap(tmp_path)
    assert (await stopped(mirror, settings()))[0] == "gap_in_archive"
    await mirror.close()


def without_gtid(kind: str) -> tuple[list[File], int]:
    """Files of B in which the second transaction has no GTID; where it begins."""
    binlog = mysql_binlog(GtidSet.from_text(f"{A}:1-5"))
    add_mysql(binlog, MysqlGtid.from_text(f"{A}:6"))
    at = binlog.size
    if kind == "bare":
        add_mysql(binlog, None)
    else:
        body = bytes((0,)) + bytes(24) + b"\x02" + bytes(16)
        binlog.event(34, body, "opens", flags=START)
        body = struct.pack("<IIBHH", 7, 0, 4, 0, 0) + b"test\0CREATE TABLE d.t (a INT)"
        binlog.event(2, body, CLOSES, flags=END)
    add_mysql(binlog, MysqlGtid.from_text(f"{A}:7"))
    return [(SECOND, binlog.data)], at


@by_gtid
@pytest.mark.parametrize("kind", ["bare", "anonymous"])
async def test_a_transaction_of_the_other_source_without_a_gtid_stops_the_view_until_somebody_leaves_it_out(
    tmp_path: Path, gtids: str, kind: str
) -> None:
    mirror = await first_source(tmp_path)
    files, at = without_gtid(kind)
    await change_source(mirror, identity(B, 2), files)
    wanted = settings(gtids=gtids)
    async with made_view(mirror, wanted) as view:
        status = await until(view, lambda status: status.stop is not None)
        assert status.stop is not None
        assert (status.stop.reason.name, status.stop.file, status.stop.offset) == ("source_changed", SECOND, at)
        assert status.stop.generation == 2
        await until(view, lambda status: line(view.archive) == f"{A}:1-6")
        await view.skip(SECOND, at, "a test")
        await until_all(view, mirror)
        assert line(view.archive) == f"{A}:1-7"
        assert not any(view.archive.current.gtids.has_anonymous(file.name) for file in view.archive.current.files)
    expected = {name: data for name, data in files_of_view(view.directory / "g0002").items() if "." not in name[10:]}
    await mirror.close()
    shutil.rmtree(tmp_path / "views")
    made = (await remade(tmp_path, wanted))["g0002"]
    assert {name: made[name] for name in expected} == expected


# --- served ----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Archive], Any]]:
    async with servers_of_generations() as start:
        yield start


@by_gtid
@pytest.mark.parametrize(
    ("held", "sent"),
    [
        ("", [FIRST, "A1", "A2", "A3", SECOND, "A4", "A5", "A6", SECOND, "A7", "A8", "A9", THIRD, "B1", "B2"]),
        (f"{A}:1-4", [SECOND, "A5", "A6", "A7", "A8", "A9", THIRD, "B1", "B2"]),
        (f"{A}:1-4:8", [SECOND, "A5", "A6", "A7", "A9", THIRD, "B1", "B2"]),
        (ALL, [THIRD]),
    ],
)
async def test_a_replica_by_gtid_gets_each_transaction_once(
    serve: Callable[[Archive], Any], tmp_path: Path, gtids: str, held: str, sent: list[str]
) -> None:
    mirror = await two_generations(tmp_path)
    async with made_view(mirror, settings(gtids=gtids)) as view:
        await until_all(view, mirror)
        served = await serve(view.archive)
        client = await served.by_set(held)
        assert transactions(await call(client.events_to_eof)) == sent
    await mirror.close()


@by_gtid
async def test_a_replica_by_file_and_position_is_told_the_place_in_the_view_and_goes_on_there(
    serve: Callable[[Archive], Any], tmp_path: Path, gtids: str
) -> None:
    mirror = await two_generations(tmp_path)
    async with made_view(mirror, settings(gtids=gtids)) as view:
        await until_all(view, mirror)
        served = await serve(view.archive)
        client = await served.client()
        await call(lambda: client.ask_dump(FIRST, 4))
        text = await read_refusal(client)
        end = view.archive.all[0].end
        place = named_view(tmp_path, settings(gtids=gtids)).after(MysqlGtid.from_text(f"{A}:6"))
        assert (place.generation, place.view) == (1, end)
        told = f"MASTER_LOG_FILE='{SECOND}', MASTER_LOG_POS="
        assert str(end) in text and told in text
        offset = int(text.partition(told)[2].partition(".")[0])
        other = await served.client()
        await call(lambda: other.ask_dump(SECOND, offset, flags=1))
        assert transactions(await call(other.events_to_eof)) == [SECOND, "A7", "A8", "A9", THIRD, "B1", "B2"]
    await mirror.close()


# --- looked at from outside ------------------------------------------------------------------------------------------


@pytest.fixture
async def changed(tmp_path: Path) -> NamedView:
    """A view over two sources, of which both have a file of the same name."""
    await (await two_generations(tmp_path)).close()
    await remade(tmp_path, settings())
    return named_view(tmp_path, settings())


def test_places_of_both_sources_are_found_by_the_files_name_with_its_generation(changed: NamedView) -> None:
    found = changed.after(MysqlGtid.from_text(f"{B}:1"))
    assert (found.source.file, found.source_generation, found.generation) == (THIRD, 2, 2)
    assert changed.of_source(found.source) == changed.of_view(found.view) == found
    assert found.view_text == f"g0002.{found.view}"
    assert changed.executed(found).line == f"{A}:1-9,{B}:1"
    first = changed.after(MysqlGtid.from_text(f"{A}:4"))
    assert (first.generation, changed.executed(first).line) == (1, f"{A}:1-4")
    for generation, held in ((1, f"{A}:1-3"), (2, f"{A}:1-4")):
        head = changed.of_view(Position(f"g{generation:04d}.{SECOND}", head_of(changed, generation)))
        assert (head.generation, head.source_generation) == (generation, generation)
        assert changed.of_source(Position(f"g{generation:04d}.{SECOND}", head.source.offset)) == head
        assert changed.executed(head).line == held
    assert changed.places.end() == changed.after(MysqlGtid.from_text(f"{B}:2"))


def head_of(view: NamedView, generation: int) -> int:
    """Where the first transaction of its second file begins."""
    directory = view.directory if generation == 1 else view.directory / "g0002"
    data = (directory / SECOND).read_bytes()
    at = 4
    while data[at + 4] in (15, 35):
        at += int.from_bytes(data[at + 9 : at + 13], "little")
    return at


@pytest.mark.parametrize("of", ["source", "view"])
def test_a_name_that_two_sources_used_is_no_place_by_itself(changed: NamedView, of: str) -> None:
    find = changed.of_source if of == "source" else changed.of_view
    with pytest.raises(PlaceUnknown, match=rf"write which is meant, g0001\.{SECOND} and g0002\.{SECOND}"):
        find(Position(SECOND, 4))


async def test_a_name_that_the_view_has_once_and_the_archive_twice_is_none_either(tmp_path: Path) -> None:
    mirror = await first_source(tmp_path)
    async with made_view(mirror, settings()) as view:
        await until_all(view, mirror)
    await change_source(mirror, identity(B, 2), FILES_OF_B)
    await mirror.close()
    with pytest.raises(PlaceUnknown, match="write which is meant"):
        named_view(tmp_path, settings()).of_source(Position(SECOND, 4))


@pytest.mark.parametrize(
    "name", [f"g0003.{SECOND}", f"g0002.{FIRST}", "g0002.../catalog.000001", "g0001.", THIRD + "/"]
)
def test_a_name_of_nothing_is_no_place(changed: NamedView, name: str) -> None:
    for find in (changed.of_source, changed.of_view):
        with pytest.raises(PlaceUnknown, match="is not in the view"):
            find(Position(name, 4))


def test_what_is_listed_and_verified_is_all_generations(changed: NamedView) -> None:
    facts = view_facts(changed.archive, changed.directory, changed.settings, changed.places)
    assert (facts.files, facts.behind_bytes, facts.stop) == (4, 0, None)
    assert facts.made is not None and facts.made.source_text.startswith(f"g0002.{THIRD}:")
    for made in made_generations(changed.archive, changed.directory):
        assert list(differences(made.directory, files_of(made.directory), made_again(changed, made))) == []
    path = changed.directory / "g0002" / SECOND
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)
    made = made_generations(changed.archive, changed.directory)[1]
    (found,) = differences(made.directory, files_of(made.directory), made_again(changed, made))
    assert found.view == Position(SECOND, 300)


@pytest.mark.parametrize("made", [False, True])
async def test_what_will_stop_the_view_is_known_for_all_sources(tmp_path: Path, made: bool) -> None:
    mirror = await first_source(tmp_path)
    if made:
        async with made_view(mirror, settings()) as view:
            await until_all(view, mirror)
    files, at = without_gtid("bare")
    await change_source(mirror, identity(B, 2), files)
    if made:
        name, file, offset, text = await stopped(mirror, settings())
        assert (name, file, offset) == ("source_changed", SECOND, at)
        assert "a transaction without a GTID" in text
    end = mirror.current.end
    await mirror.close()
    outlook = view_outlook(named_view(tmp_path, settings()))
    (stop,) = outlook.found.stops
    assert (stop.reason.name, stop.file, stop.offset, outlook.end) == ("source_changed", SECOND, at, end)


async def test_numbers_that_the_view_will_give_are_known_as_what_stops_it_behind_them(tmp_path: Path) -> None:
    mirror = await Archive.open(tmp_path)
    mirror.current.set_identity(identity(A, 1))
    numbered = add_mysql(mysql_binlog(GtidSet()), None)
    await append_files(mirror, [(FIRST, numbered.data), *mysql_series(2, f"{A}:1-2")])
    await change_source(mirror, identity(B, 2), mysql_series(1, f"{A}:1-3"))
    end = mirror.all[0].end
    await mirror.close()
    assert end is not None
    (stop,) = view_outlook(named_view(tmp_path, settings())).found.stops
    assert (stop.reason.name, stop.file, stop.offset) == ("source_changed", end.file, end.offset)
    assert view_outlook(named_view(tmp_path, settings(gtids="keep"))).found.total == 0
