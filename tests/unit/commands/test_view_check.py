"""`binlog-relay view check`: what is ahead of a view, before it is made, while it stands, and when it was decided."""

import json
from pathlib import Path

import pytest

from protocol.position import Position
from relay.archive.archive import Archive
from relay.commands.view_command import check_view
from relay.view.inspect.named_view import NamedView, named_view
from relay.view.inspect.view_outlook import view_outlook
from relay.view.rules.settings import ViewStart
from tests.support.archive_filling import fill
from tests.support.binlog_builder import INSIDE, OPENS, BinlogBuilder
from tests.support.generation_filling import behind_a_gap, two_generations
from tests.support.view_making import made_view, marked, settings, until

FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"
MIXED = "UPDATE i, m SET i.a = 1, m.a = 'hunter2'"


def mixing(binlog: BinlogBuilder) -> BinlogBuilder:
    return binlog.transaction(50).query("BEGIN", OPENS).query(MIXED, INSIDE).xid()


def first() -> BinlogBuilder:
    made = BinlogBuilder().query("CREATE TABLE i (a INT) ENGINE=InnoDB").query("CREATE TABLE m (a INT) ENGINE=MyISAM")
    return mixing(mixing(made))


@pytest.fixture
async def archive(tmp_path: Path) -> Path:
    """Two files, with two stops in the first and one in the second."""
    files = [(FIRST, first().rotate(SECOND)), (SECOND, mixing(BinlogBuilder()).transaction(10))]
    await fill(tmp_path / "source", *((name, marked(binlog.data)) for name, binlog in files))
    return tmp_path / "source"


def lines(view: NamedView, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    check_view(view, as_json=True)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_each_stop_is_told_with_its_place_and_the_ways_on(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    view = named_view(archive, settings())
    told = lines(view, capsys)
    assert [(one["file"], one["reason"], one["replica_error"]) for one in told[:-1]] == [
        (FIRST, "statement_mixes_engines", 1785),
        (FIRST, "statement_mixes_engines", 1785),
        (SECOND, "statement_mixes_engines", 1785),
    ]
    assert (told[-1]["stops"], told[-1]["looked_at_from"]) == (3, f"{FIRST}:4")
    assert check_view(view, as_json=False) == 3
    text = capsys.readouterr().out
    assert "View v will stop 3 times" in text
    assert text.count("Ways on") == 1
    assert "hunter2" not in text
    assert not (archive / "views").exists()


def test_nothing_is_told_where_nothing_stops_it(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_view(named_view(archive, settings(engines="innodb")), as_json=False) == 0
    assert "Nothing stops view v." in capsys.readouterr().out


async def test_a_view_that_is_made_is_looked_at_from_where_it_stands(archive: Path) -> None:
    every = view_outlook(named_view(archive, settings())).found.stops
    mirror = await Archive.open(archive)
    async with made_view(mirror, settings()) as view:
        await until(view, lambda status: status.stop is not None and status.view is not None and status.view.offset > 4)
        assert view_outlook(named_view(archive, settings())).found.stops == every
        await view.skip(FIRST, every[0].offset, "a test")
        await until(view, lambda status: status.stop is not None and status.stop.offset == every[1].offset)
        assert view_outlook(named_view(archive, settings())).found.stops == every[1:]
    await mirror.close()
    assert view_outlook(named_view(archive, settings())).found.stops == every[1:]


def test_a_view_with_a_start_is_looked_at_from_there(archive: Path) -> None:
    start = ViewStart(Position(SECOND, 4), 100)
    outlook = view_outlook(named_view(archive, settings(start=start)))
    assert outlook.begin == start.position
    assert outlook.found.total == 0  # of the tables nothing is known there
    gone = ViewStart(Position("mysql-bin.000009", 4), 100)
    (stop,) = view_outlook(named_view(archive, settings(start=gone))).found.stops
    assert stop.reason.name == "start_not_archived"


async def test_where_no_view_can_go_on_is_the_last_stop(tmp_path: Path) -> None:
    changed, gap = tmp_path / "changed", tmp_path / "gap"
    mirror = await two_generations(changed)
    end, last = mirror.all[0].end, mirror.current.end
    await mirror.close()
    assert end is not None
    (stop,) = view_outlook(named_view(changed, settings(gtids="anonymous"))).found.stops
    assert (stop.reason.name, stop.file, stop.offset) == ("source_changed", end.file, end.offset)
    by_gtid = view_outlook(named_view(changed, settings()))
    assert (by_gtid.found.total, by_gtid.end) == (0, last)
    await (await behind_a_gap(gap)).close()
    (stop,) = view_outlook(named_view(gap, settings())).found.stops
    assert (stop.reason.name, stop.file) == ("gap_in_archive", FIRST)


def test_what_cannot_be_read_is_told(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray((archive / FIRST).read_bytes())
    data[-200] ^= 1
    (archive / FIRST).write_bytes(data)
    view = named_view(archive, settings(engines="innodb"))
    assert check_view(view, as_json=False) == 1
    text = capsys.readouterr().out
    assert f"{FIRST} was not looked at from" in text
    assert "Nothing of what could be read stops view v." in text
