"""The place behind a transaction that the view numbered: right behind it, whatever follows that takes no number."""

import struct
from pathlib import Path

import pytest

from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mysql_gtid import MysqlGtid
from protocol.position import Position
from relay.archive.archive import Archive
from relay.view.inspect.named_view import NamedView, named_view
from relay.view.view_place import PlaceUnknown
from tests.support.archive_filling import fill
from tests.support.binlog_builder import ALONE, CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.gtid_binlog import add_mysql
from tests.support.view_making import UUID_OF_VIEW, made_view, marked, settings, until_made

FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"
SOURCE = "11111111-2222-3333-4444-555555555555"
ANONYMOUS = 34


def behind(executed: str) -> BinlogBuilder:
    """A file that tells of these GTIDs before it."""
    binlog = BinlogBuilder(version="5.7.44-log")
    return binlog.event(35, encode_gtid_set(GtidSet.from_text(executed)), ALONE)


def without_gtid(binlog: BinlogBuilder, *statements: str) -> int:
    """One transaction as a server with GTIDs half switched on writes it; where it ends."""
    clock = b"\1" + bytes(16) + bytes(8) + struct.pack("<Bqq", 2, 0, 1)
    binlog.event(ANONYMOUS, clock, OPENS)
    if len(statements) == 1:
        binlog.query(statements[0], CLOSES)
    else:
        binlog.query("BEGIN", INSIDE)
        for statement in statements:
            binlog.query(statement, INSIDE)
        binlog.event(16, bytes(8), CLOSES)
    return binlog.size


def with_gtid(binlog: BinlogBuilder, number: int) -> None:
    add_mysql(binlog, MysqlGtid.from_text(f"{SOURCE}:{number}"), size=100)


async def viewed(place: Path, *files: tuple[str, BinlogBuilder]) -> NamedView:
    await fill(place, *((name, marked(binlog.data)) for name, binlog in files))
    mirror = await Archive.open(place)
    async with made_view(mirror, settings()) as view:
        await until_made(view)
    await mirror.close()
    return named_view(place, settings())


async def test_transactions_with_gtids_of_the_source_behind_it_are_not_before_the_place(tmp_path: Path) -> None:
    """A replica that goes back to the mirror there would never have them."""
    first, second = behind(""), behind(f"{SOURCE}:1-3")
    ends = [
        without_gtid(first, "CREATE TABLE d.t (a INT) ENGINE=InnoDB"),
        without_gtid(first, "INSERT INTO d.t VALUES (1)"),
    ]
    for number in (1, 2, 3):
        with_gtid(first, number)
    first.rotate(SECOND)
    for number in (4, 5):
        with_gtid(second, number)
    ends.append(without_gtid(second, "INSERT INTO d.t VALUES (2)"))
    with_gtid(second, 6)
    view = await viewed(tmp_path / "source", (FIRST, first), (SECOND, second))
    wanted = zip((FIRST, FIRST, SECOND), ends, ("", "", f"{SOURCE}:1-5"), strict=True)
    for number, (file, end, own) in enumerate(wanted, start=1):
        place = view.after(MysqlGtid.from_text(f"{UUID_OF_VIEW}:{number}"))
        assert (place.source, place.gno) == (Position(file, end), number)
        numbered = f"{UUID_OF_VIEW}:1{f'-{number}' if number > 1 else ''}"
        assert view.executed(place).line == ",".join(filter(None, (own, numbered)))
        assert view.of_source(place.source) == view.of_view(place.view) == place


async def test_the_first_part_of_what_became_several_is_named_with_all_its_parts(tmp_path: Path) -> None:
    binlog = behind("")
    without_gtid(binlog, "CREATE TABLE d.m (a INT) ENGINE=MyISAM")
    before = without_gtid(binlog, "CREATE TABLE d.i (a INT) ENGINE=InnoDB")
    after = without_gtid(binlog, "INSERT INTO d.m VALUES (1)", "INSERT INTO d.i VALUES (1)")
    view = await viewed(tmp_path / "source", (FIRST, binlog))
    with pytest.raises(PlaceUnknown) as unknown:
        view.after(MysqlGtid.from_text(f"{UUID_OF_VIEW}:3"))
    for told in (f"{UUID_OF_VIEW}:3-4", f"{FIRST}:{before} is before", f"{FIRST}:{after} behind"):
        assert told in str(unknown.value)
    assert view.after(MysqlGtid.from_text(f"{UUID_OF_VIEW}:4")).source == Position(FIRST, after)
    with pytest.raises(PlaceUnknown, match="1 to 4"):
        view.after(MysqlGtid.from_text(f"{UUID_OF_VIEW}:5"))
