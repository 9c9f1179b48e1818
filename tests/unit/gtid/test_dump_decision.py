"""Where a replica that asks by GTID starts, and who is not served."""

import pytest

from protocol.errors import PositionRefused
from protocol.gtid.dump_decision import (
    AnonymousInTheWay,
    MariadbHoldings,
    MysqlHoldings,
    MysqlStart,
    SourceHoldings,
    StillAwaited,
    mariadb_start,
    mysql_start,
)
from protocol.gtid.file_search import Break, FileSearch
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition
from protocol.gtid.mysql_gtid import parse_uuid

U = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
V = "3e11fa47-71ca-11e1-9e33-c80aa9429561"
VERSION = (9, 7, 4)


def gtids(text: str) -> GtidSet:
    return GtidSet.from_text(text)


def holdings(*insides: str, purged: str = "", anonymous: tuple[int, ...] = ()) -> MysqlHoldings:
    search, executed = FileSearch(), gtids(purged)
    for inside in insides:
        search.append(gtids(inside))
        executed |= gtids(inside)
    return MysqlHoldings(search, executed, gtids(purged), anonymous)


FILES = holdings(f"{U}:4-10", f"{U}:11-20,{V}:1-5", f"{U}:21-30", "", purged=f"{U}:1-3")


def start(held: str, files: MysqlHoldings = FILES, named: int | None = None) -> MysqlStart:
    return mysql_start(gtids(held), files, source_uuids=[parse_uuid(U)], version=VERSION, named=named)


@pytest.mark.parametrize(
    ("held", "number", "held_here"),
    [
        (f"{U}:1-3", 0, 0),
        (f"{U}:1-7", 0, 4),
        (f"{U}:1-10", 1, 0),
        (f"{U}:1-20", 1, 10),  # of V it has nothing
        (f"{U}:1-20,{V}:1-5", 2, 0),
        (f"{U}:1-3:21-30", 0, 10),
        (f"{U}:1-30,{V}:1-5", 3, 0),  # lacks nothing: the newest file
    ],
)
def test_the_first_file_that_has_something_new_and_how_much_of_the_rest_is_held(
    held: str, number: int, held_here: int
) -> None:
    found = start(held)
    assert (found.number, found.held_here, found.later) == (number, held_here, False)


def test_what_is_held_of_earlier_files_is_not_looked_for() -> None:
    assert str(start(f"{U}:1-12").held) == f"{U}:11-12"


def test_transactions_of_other_servers_that_are_not_here_may_come() -> None:
    found = start(f"{U}:1-20,{V}:1-9")
    assert found == MysqlStart(2, gtids(f"{V}:6-9"), 0, True)


def test_what_a_replica_has_of_servers_that_nothing_here_is_of_is_told_apart() -> None:
    w = "33333333-3333-3333-3333-333333333333"
    found = start(f"{U}:1-7,{w}:1-9:tag:4")
    assert found == MysqlStart(0, gtids(f"{U}:4-7"), 4, False, gtids(f"{w}:1-9:tag:4"))


def test_more_of_the_sources_own_is_awaited() -> None:
    with pytest.raises(StillAwaited) as caught:
        start(f"{U}:1-31")
    assert caught.value.refused.what.startswith("Replica has more GTIDs than the source has")
    assert f"{U}:31" in caught.value.refused.what


def test_what_is_in_no_file_any_more_is_refused() -> None:
    with pytest.raises(PositionRefused, match=f"the missing transactions are '{U}:1-2'"):
        start(f"{U}:3-30")


def test_a_transaction_without_a_gtid_is_in_the_way_from_earlier_files_only() -> None:
    files = holdings(f"{U}:1-10", f"{U}:11-20", f"{U}:21-30", anonymous=(1,))
    for held in (f"{U}:1-9", f"{U}:1-10"):
        with pytest.raises(AnonymousInTheWay) as caught:
            start(held, files)
        assert caught.value.number == 1
    assert start(f"{U}:1-20", files).number == 2


def test_a_file_that_is_named_is_not_argued_about() -> None:
    found = start(f"{U}:25-31", named=2)
    assert (found.number, found.held_here, found.later) == (2, 6, True)


def test_nothing_is_promised_without_a_file() -> None:
    with pytest.raises(IndexError):
        start("", holdings())
    with pytest.raises(IndexError):
        mariadb_start(GtidPosition(), MariadbHoldings([], GtidList()), ignore_duplicates=False)


MARIADB = MariadbHoldings(
    [GtidList.from_text(text) for text in ("0-1-3", "0-1-10", "0-1-10,0-2-12,1-1-2")],
    GtidList.from_text("0-2-12,0-1-20,1-1-5"),
)


@pytest.mark.parametrize(
    ("position", "number", "awaited"),
    [
        ("0-1-3", 0, []),
        ("0-1-7", 0, ["0-1-7"]),
        ("0-1-10", 1, []),
        ("0-2-12", 1, ["0-2-12"]),
        ("0-2-12,1-1-2", 2, []),
        ("0-1-20,1-1-3", 2, ["0-1-20", "1-1-3"]),
        ("0-1-20,1-1-3,9-9-9", 2, ["0-1-20", "1-1-3"]),  # the source never wrote in domain 9
    ],
)
def test_the_newest_file_before_a_position_and_what_is_awaited(position: str, number: int, awaited: list[str]) -> None:
    found = mariadb_start(GtidPosition.from_text(position), MARIADB, ignore_duplicates=False)
    assert (found.number, [str(gtid) for gtid in found.awaited]) == (number, awaited)


@pytest.mark.parametrize(
    ("position", "is_new"), [("", True), ("9-9-9", True), ("0-1-10", False), ("0-1-10,9-9-9", False)]
)
def test_a_replica_is_new_that_has_nothing_of_the_source(position: str, is_new: bool) -> None:
    files = MariadbHoldings([GtidList()], GtidList.from_text("0-1-20"))
    assert mariadb_start(GtidPosition.from_text(position), files, ignore_duplicates=False).is_new == is_new


def test_a_position_before_all_files_is_refused() -> None:
    with pytest.raises(PositionRefused, match="Could not find GTID state requested by slave in any binlog files"):
        mariadb_start(GtidPosition.from_text("0-1-2"), MARIADB, ignore_duplicates=False)


def test_a_position_ahead_is_awaited_and_one_beside_is_refused() -> None:
    with pytest.raises(StillAwaited) as caught:
        mariadb_start(GtidPosition.from_text("0-1-21,1-1-5"), MARIADB, ignore_duplicates=False)
    assert "0-1-21, which is not in the master's binlog" in caught.value.refused.what
    with pytest.raises(PositionRefused, match="diverged"):
        mariadb_start(GtidPosition.from_text("0-9-15,1-1-9"), MARIADB, ignore_duplicates=False)
    with pytest.raises(PositionRefused, match="diverged"):
        mariadb_start(GtidPosition.from_text("0-1-21,1-9-2"), MARIADB, ignore_duplicates=False)


def test_who_ignores_duplicates_waits_in_the_stream() -> None:
    found = mariadb_start(GtidPosition.from_text("0-1-21,1-1-5"), MARIADB, ignore_duplicates=True)
    assert [str(gtid) for gtid in found.awaited] == ["0-1-21", "1-1-5"]


FORGETFUL = MariadbHoldings(
    [GtidList.from_text(text) for text in ("0-1-1,11-5-1", "0-1-4,11-5-3", "0-1-4")],
    GtidList.from_text("0-1-6"),
    [Break(2, GtidList.from_text("11-5-3"))],
)


@pytest.mark.parametrize(
    ("position", "number", "awaited"),
    [
        ("0-1-4,11-5-3", 2, []),
        ("0-1-4,11-5-9", 2, []),
        ("0-1-4,11-5-2", 0, ["0-1-4", "11-5-2"]),
        ("0-1-4", 2, []),
        # What comes of the domain before it was forgotten, and the replica has, is not sent again.
        ("0-1-2,11-5-2", 0, ["0-1-2", "11-5-2"]),
    ],
)
def test_a_domain_that_the_source_forgot_counts_in_the_files_before(
    position: str, number: int, awaited: list[str]
) -> None:
    found = mariadb_start(GtidPosition.from_text(position), FORGETFUL, ignore_duplicates=False)
    assert (found.number, [str(gtid) for gtid in found.awaited]) == (number, awaited)
    assert [gtid.domain_id for gtid in found.strange] == ([11] if "11" in position else [])


@pytest.mark.parametrize(
    ("state", "lacks"), [("0-1-6", False), ("", False), ("0-1-6,11-5-1", True), ("0-1-6,11-5-2", False)]
)
def test_a_source_lacks_nothing_of_a_domain_that_it_does_not_have(state: str, lacks: bool) -> None:
    assert SourceHoldings(GtidList.from_text(state)).lacks([DomainGtid(11, 5, 2)]) is lacks


def test_a_source_of_another_kind_lacks_nothing_that_is_asked_for() -> None:
    assert not SourceHoldings(gtids(f"{U}:1-9")).lacks([DomainGtid(11, 5, 2)])
    assert not SourceHoldings(GtidList()).lacks(gtids(f"{U}:1-9"))
