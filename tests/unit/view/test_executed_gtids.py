"""What is executed before a place of a view: the assigned numbers and the source's own."""

import time
from pathlib import Path
from uuid import UUID

import pytest

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mysql_gtid import MysqlGtid
from protocol.position import Position
from relay.view.inspect.executed_gtids import executed_before, held_before
from relay.view.rules.settings import GtidPolicy, ViewSettings, ViewStart
from relay.view.view_place import PlaceUnknown, ViewPlace
from tests.support.archive_filling import fill
from tests.support.gtid_binlog import add_mysql, mysql_binlog

OWN = "6d0c5a43-9c63-4f4e-8d1f-5a166f0f3cb2"
SOURCE = "11111111-2222-3333-4444-555555555555"


def settings(gtids: GtidPolicy = "assign", start: ViewStart | None = None) -> ViewSettings:
    return ViewSettings("gtid", gtids, UUID(OWN), start=start)


def place(file: str, offset: int, gno: int) -> ViewPlace:
    return ViewPlace(Position(file, 4), Position(file, offset), gno)


async def made(directory: Path, *insides: str, before: str = "") -> list[list[int]]:
    """An archive with these GTIDs, a file each; of each file the offsets behind its head and each transaction."""
    executed = GtidSet.from_text(before)
    files, places = [], []
    for number, inside in enumerate(insides, start=1):
        binlog = mysql_binlog(executed)
        offsets = [binlog.size]
        for text in inside.split():
            add_mysql(binlog, MysqlGtid.from_text(text), size=9000)
            offsets.append(binlog.size)
            executed |= GtidSet.from_text(text)
        files.append((f"mysql-bin.{number:06d}", binlog.data))
        places.append(offsets)
    await fill(directory, *files)
    return places


async def test_each_place_has_what_is_before_it_and_nothing_else(tmp_path: Path) -> None:
    insides = [" ".join(f"{OWN}:{number}" for number in range(first, first + 30)) for first in (1, 31, 61)]
    places = await made(tmp_path, *insides)
    for number, offsets in enumerate(places):
        for count, offset in enumerate(offsets):
            gno = number * 30 + count
            got = executed_before(tmp_path, settings(), place(f"mysql-bin.{number + 1:06d}", offset, gno))
            assert got == (GtidSet.from_text(f"{OWN}:1-{gno}") if gno else GtidSet())


@pytest.mark.parametrize("behind_magic", [0, 116])
async def test_in_the_head_of_a_file_all_is_executed_that_the_head_tells_of(tmp_path: Path, behind_magic: int) -> None:
    """A source without GTIDs stands there after FLUSH LOGS: its file has no Previous_gtids event, the view's has one."""
    await made(tmp_path, f"{OWN}:1 {OWN}:2", f"{OWN}:3")
    got = executed_before(tmp_path, settings(), place("mysql-bin.000002", 4 + behind_magic, 2))
    assert got.line == f"{OWN}:1-2"


async def test_a_file_that_has_not_told_yet_what_is_before_it_goes_on_where_the_one_before_ends(tmp_path: Path) -> None:
    first = mysql_binlog(GtidSet())
    for gno in (1, 2):
        add_mysql(first, MysqlGtid.from_text(f"{OWN}:{gno}"))
    begun = mysql_binlog(None)
    await fill(tmp_path, ("mysql-bin.000001", first.data), ("mysql-bin.000002", begun.data))
    got = executed_before(tmp_path, settings(), place("mysql-bin.000002", begun.size, 2))
    assert got.line == f"{OWN}:1-2"
    with pytest.raises(PlaceUnknown, match="behind transaction 1 by the view's map"):
        executed_before(tmp_path, settings(), place("mysql-bin.000002", begun.size, 1))


async def test_transactions_that_had_a_gtid_are_in_it_too(tmp_path: Path) -> None:
    (offsets,) = await made(tmp_path, f"{OWN}:1 {SOURCE}:7 {OWN}:2 {SOURCE}:8")
    got = [
        executed_before(tmp_path, settings(), place("mysql-bin.000001", at, gno))
        for at, gno in zip(offsets, (0, 1, 1, 2, 2), strict=True)
    ]
    assert [one.line for one in got] == [
        "",
        f"{OWN}:1",
        f"{SOURCE}:7,{OWN}:1",
        f"{SOURCE}:7,{OWN}:1-2",
        f"{SOURCE}:7-8,{OWN}:1-2",
    ]


@pytest.mark.parametrize("gno", [0, 1, 3])
async def test_a_number_that_the_binlog_contradicts_is_refused(tmp_path: Path, gno: int) -> None:
    (offsets,) = await made(tmp_path, f"{OWN}:1 {OWN}:2")
    with pytest.raises(PlaceUnknown, match=f"behind transaction {gno} by the view's map"):
        executed_before(tmp_path, settings(), place("mysql-bin.000001", offsets[2], gno))


@pytest.mark.parametrize("before", ["", f"{OWN}:1-99"])
async def test_a_view_that_begins_with_a_later_number_has_executed_those_before(tmp_path: Path, before: str) -> None:
    (offsets,) = await made(tmp_path, f"{OWN}:100 {OWN}:101", before=before)
    later = settings(start=ViewStart(Position("mysql-bin.000001", 4), 100))
    got = executed_before(tmp_path, later, place("mysql-bin.000001", offsets[1], 100))
    assert got.line == f"{OWN}:1-100"


async def test_an_anonymous_view_has_none_and_one_that_keeps_has_the_sources(tmp_path: Path) -> None:
    (offsets,) = await made(tmp_path, f"{SOURCE}:1 {SOURCE}:2")
    here = place("mysql-bin.000001", offsets[1], 0)
    assert not executed_before(tmp_path, settings("anonymous"), here)
    assert executed_before(tmp_path, settings("keep"), here).line == f"{SOURCE}:1"


async def test_a_file_that_the_view_does_not_have_is_told(tmp_path: Path) -> None:
    await made(tmp_path, f"{OWN}:1")
    with pytest.raises(PlaceUnknown, match="not in the catalog"):
        held_before(tmp_path, Position("mysql-bin.000009", 4))


async def test_the_answer_does_not_wait_for_a_file_to_be_read(tmp_path: Path) -> None:
    (offsets,) = await made(tmp_path, " ".join(f"{OWN}:{number}" for number in range(1, 3001)))
    started = time.process_time()
    for count in range(0, 3000, 300):
        executed_before(tmp_path, settings(), place("mysql-bin.000001", offsets[count], count))
    assert (time.process_time() - started) / 10 < 0.05
