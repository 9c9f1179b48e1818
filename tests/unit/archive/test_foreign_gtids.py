"""GTID events that a file of its family of servers never has: nothing of them becomes state, and the archive opens again."""

import struct
from pathlib import Path

import pytest

from protocol.gtid.dump_decision import MariadbHoldings, UnreadableInTheWay, mariadb_start
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition
from protocol.gtid.mysql_gtid import MysqlGtid, Tsid
from relay.archive.generation import Generation
from relay.archive.gtids.gtid_state import GtidState, GtidView
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.gtid_facts import GtidChain, GtidFacts, GtidNews
from relay.archive_inspection.listing import read_ledger, rebuild_archive
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder, runs_of
from tests.support.gtid_binlog import add_mariadb, add_mysql, mariadb_binlog, mysql_binlog

NAMES = [f"mysql-bin.{number:06d}" for number in range(1, 4)]
SOURCE = Tsid.from_key(bytes(range(16)))
PREVIOUS_GTIDS = (35, struct.pack("<Q", 1) + bytes(range(16)) + struct.pack("<QQQ", 1, 1, 9))
GTID = (33, b"\1" + bytes(range(16)) + struct.pack("<Q", 9) + b"\2" + struct.pack("<QQ", 0, 1))
ANONYMOUS = (34, b"\0" + bytes(24) + b"\2" + struct.pack("<QQ", 0, 1))
GTID_LIST = (163, struct.pack("<IIIQ", 1, 0, 1, 5))
EMPTY_LIST = (163, struct.pack("<I", 0))
MARIADB_GTID = (162, struct.pack("<QIB", 5, 0, 1) + bytes(6))
CASES = [
    *(("mysql", one) for one in (GTID_LIST, EMPTY_LIST, MARIADB_GTID, PREVIOUS_GTIDS)),
    *(("mariadb", one) for one in (PREVIOUS_GTIDS, GTID, ANONYMOUS, GTID_LIST)),
]


def binlog(flavour: str, number: int) -> BinlogBuilder:
    """A file with transaction `number`, after those below it."""
    if flavour == "mysql":
        before = GtidSet.from_text(f"{SOURCE}:1-{number - 1}" if number > 1 else "")
        return add_mysql(mysql_binlog(before), MysqlGtid(SOURCE, number))
    state = GtidList([DomainGtid(0, 1, number - 1)] if number > 1 else [])
    return add_mariadb(mariadb_binlog(state), DomainGtid(0, 1, number))


def shown(generation: Generation) -> tuple[object, ...]:
    view: GtidView = generation.gtids.view()
    return view.names, view.anonymous_files, view.unreadable_files, [generation.gtids.file(name) for name in NAMES]


@pytest.mark.parametrize(("flavour", "foreign"), CASES)
async def test_an_event_of_the_other_family_leaves_the_gtids_of_its_file_not_known(
    tmp_path: Path, flavour: str, foreign: tuple[int, bytes]
) -> None:
    middle = binlog(flavour, 2)
    middle.event(*foreign, "alone")
    files = [binlog(flavour, 1), middle, binlog(flavour, 3)]
    generation = await Generation.open(tmp_path)
    for name, file in zip(NAMES, files, strict=True):
        await generation.begin_file(name)
        await append_all(generation, file.data)
    await generation.trim()
    seen = shown(generation)
    assert seen[2] == (1,)
    assert generation.end is not None and generation.end.offset == len(files[2].data)
    await generation.close()
    assert [row.file for row in read_ledger(tmp_path) if row.kind == "gtid_unreadable"] == [NAMES[1]]
    for _ in range(2):
        generation = await Generation.open(tmp_path)
        assert shown(generation) == seen
        await generation.purge(NAMES[:2], "a test")
        assert generation.gtids.view().unreadable_files == ()
        generation.gtids.give_up(NAMES[2:])
        assert generation.gtids.view().unreadable_files == (0,)
        await generation.close()
        for name, file in zip(NAMES[:2], files, strict=False):
            (tmp_path / name).write_bytes(file.data)
        rebuild_archive(tmp_path)


async def test_what_is_not_known_of_the_file_that_grows_is_told_at_once_not_when_it_is_complete(tmp_path: Path) -> None:
    file = binlog("mysql", 1)
    file.event(*GTID_LIST, "alone")
    generation = await Generation.open(tmp_path)
    await generation.begin_file(NAMES[0])
    await append_all(generation, file.data)
    await generation.trim()
    assert generation.gtids.has_anonymous(NAMES[0])
    assert generation.gtids.view().unreadable_files == (0,)
    await generation.close()


@pytest.mark.parametrize("order", [("mysql", "mariadb", "mariadb"), ("mariadb", "mysql", "mysql")])
async def test_files_of_another_family_than_the_newest_are_not_known_by_gtid(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    generation = await Generation.open(tmp_path)
    for number, flavour in enumerate(order):
        await generation.begin_file(NAMES[number])
        await append_all(generation, binlog(flavour, number + 1).data)
    await generation.trim()
    seen = shown(generation)
    assert (generation.gtids.flavour, seen[2]) == (order[-1], (0,))
    await generation.close()
    assert ("gtid_unreadable", NAMES[1]) in [(row.kind, row.file) for row in read_ledger(tmp_path)]
    rebuild_archive(tmp_path)
    generation = await Generation.open(tmp_path)
    assert shown(generation) == seen
    await generation.close()


def test_facts_of_the_other_family_that_were_stored_are_not_believed() -> None:
    files = [ArchivedFile(name, number, 200, number < 3, 0, "x", 1, 1, "mysql") for number, name in enumerate(NAMES, 1)]
    facts = GtidFacts(GtidList([DomainGtid(0, 1, 5)]), GtidList(), 0)
    state = GtidState()
    state.load(files, [GtidFacts(None, GtidSet(), 0), facts, facts])
    assert state.view().unreadable_files == (1, 2)
    state.begin_file("mysql-bin.000004", "mysql")
    state.report(300, GtidNews(None, (), 0, readable=False))
    assert state.view().unreadable_files == (1,)
    state.publish(300)
    assert state.view().unreadable_files == (1, 3)
    chain = GtidChain()
    chain.add(1, facts)
    assert chain.entry(2, GtidFacts(None, GtidSet(), 0)).before is None


def test_a_mariadb_replica_is_not_served_past_a_file_whose_gtids_are_not_known() -> None:
    befores = [GtidList(), GtidList([DomainGtid(0, 1, 5)]), GtidList([DomainGtid(0, 1, 9)])]
    holdings = MariadbHoldings(befores, GtidList([DomainGtid(0, 1, 12)]), unreadable=[1])
    with pytest.raises(UnreadableInTheWay):
        mariadb_start(GtidPosition([DomainGtid(0, 1, 6)]), holdings, ignore_duplicates=False)
    assert mariadb_start(GtidPosition([DomainGtid(0, 1, 10)]), holdings, ignore_duplicates=False).number == 2


async def test_gtids_are_known_again_where_what_could_not_be_read_was_cut_off(tmp_path: Path) -> None:
    file = binlog("mysql", 1)
    boundary = len(file.data)
    file.event(*MARIADB_GTID, "start")
    generation = await Generation.open(tmp_path)
    await generation.begin_file(NAMES[0])
    for run in runs_of(file.data, ()):
        generation.append(run._replace(boundary=min(run.boundary, boundary)))
    await generation.trim()
    assert generation.end is not None and generation.end.offset == boundary
    assert generation.gtids.view().unreadable_files == ()
    assert str(generation.gtids.executed) == f"{SOURCE}:1"
    seen = shown(generation)
    await generation.close()
    generation = await Generation.open(tmp_path)
    assert shown(generation) == seen
    await generation.close()


async def test_a_head_that_cannot_be_read_keeps_no_file_from_being_completed_after_a_restart(tmp_path: Path) -> None:
    file = mysql_binlog(None)
    file.event(35, b"\1\2\3", "alone")
    add_mysql(file, MysqlGtid(SOURCE, 1))
    generation = await Generation.open(tmp_path)
    await generation.begin_file(NAMES[0])
    await append_all(generation, file.data)
    await generation.close()
    generation = await Generation.open(tmp_path)
    await generation.begin_file(NAMES[1])
    await append_all(generation, binlog("mysql", 2).data)
    await generation.trim()
    seen = shown(generation)
    assert (seen[0], seen[2]) == (tuple(NAMES[:2]), (0,))
    await generation.close()
    generation = await Generation.open(tmp_path)
    assert shown(generation) == seen
    await generation.close()
