"""What the archive says by GTID: while it grows, after a restart, rebuilt, purged."""

import asyncio
from pathlib import Path

import pytest

from protocol.gtid.file_search import Break
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList
from protocol.gtid.mysql_gtid import MysqlGtid, Tsid
from relay.archive.generation import Generation
from relay.archive.gtids.gtid_state import GtidState, GtidView
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.gtid_facts import GtidChain, GtidFacts, state_behind
from relay.archive.write.options import ArchiveOptions, PublishPolicy, SyncPolicy
from relay.archive_inspection.listing import read_ledger, rebuild_archive
from relay.archive_inspection.verify import verify_archive
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.gtid_binlog import add_mariadb, add_mysql, mariadb_binlog, mysql_binlog
from tests.support.old_catalog import take_back

U = "11111111-1111-1111-1111-111111111111"
V = "22222222-2222-2222-2222-222222222222"
NAMES = [f"mysql-bin.{number:06d}" for number in range(1, 8)]


def gtids(text: str) -> GtidSet:
    return GtidSet.from_text(text)


def mysql_files(*insides: str, start: str = "") -> list[tuple[str, bytearray]]:
    """Files that follow each other, with these transactions in them, each announced by the next one's head."""
    before = gtids(start)
    files = []
    for name, inside in zip(NAMES, insides, strict=False):
        binlog = mysql_binlog(before)
        for gtid in gtids(inside).members():
            add_mysql(binlog, gtid)
        before |= gtids(inside)
        files.append((name, binlog.data))
    return files


def mariadb_files(*insides: str) -> list[tuple[str, bytearray]]:
    state = GtidList()
    files = []
    for name, inside in zip(NAMES, insides, strict=False):
        binlog = mariadb_binlog(state)
        for text in inside.split(","):
            gtid = DomainGtid.from_text(text)
            add_mariadb(binlog, gtid)
            state = state.advanced([gtid])
        files.append((name, binlog.data))
    return files


def archived_file(number: int) -> ArchivedFile:
    return ArchivedFile(f"mysql-bin.{number:06d}", number, 200, True, 0, "8.4.0", 1, 1, "mysql")


def shown(view: GtidView) -> tuple[object, ...]:
    """A view as values that can be compared."""
    insides = [view.search.inside(place) for place in range(len(view.search))]
    befores = [str(before) for before in view.befores]
    return (
        view.flavour,
        view.names,
        insides if view.flavour == "mysql" else None,
        befores,
        view.breaks,
        str(view.executed),
        str(view.purged),
        view.anonymous_files,
    )


async def live(directory: Path, files: list[tuple[str, bytearray]]) -> GtidView:
    generation = await Generation.open(directory)
    for name, data in files:
        await generation.begin_file(name)
        await append_all(generation, data, range(5, len(data), 61))
    view = generation.gtids.view()
    await generation.close()
    return view


async def reopened(directory: Path) -> GtidView:
    generation = await Generation.open(directory)
    view = generation.gtids.view()
    await generation.close()
    return view


MYSQL = mysql_files(f"{U}:1-5,{V}:7:9", f"{U}:6,{V}:1:tag:1-3", f"{U}:7-9,{V}:8", start=f"{V}:100-200")
MARIADB = mariadb_files("0-1-1,0-1-2,1-2-1", "0-3-3,0-1-4,1-2-5", "7-1-1,0-3-5")


async def test_the_state_grows_with_the_files_of_mysql(tmp_path: Path) -> None:
    view = await live(tmp_path, MYSQL)
    assert view.executed == gtids(f"{U}:1-9,{V}:7-9:100-200:tag:1-3,{V}:1")
    assert view.purged == gtids(f"{V}:100-200")
    assert view.search.first_needed(gtids(f"{U}:1-5,{V}:7:9")) == 1


async def test_the_state_grows_with_the_files_of_mariadb(tmp_path: Path) -> None:
    view = await live(tmp_path, MARIADB)
    assert str(view.executed) == "0-1-4,0-3-5,1-2-5,7-1-1"
    assert [str(before) for before in view.befores] == ["", "0-1-2,1-2-1", "0-3-3,0-1-4,1-2-5"]


@pytest.mark.parametrize("files", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
async def test_a_restart_knows_what_was_known(tmp_path: Path, files: list[tuple[str, bytearray]]) -> None:
    before = await live(tmp_path, files)
    assert shown(await reopened(tmp_path)) == shown(before)


@pytest.mark.parametrize("files", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
async def test_a_rebuild_knows_what_was_known(tmp_path: Path, files: list[tuple[str, bytearray]]) -> None:
    before = await live(tmp_path, files)
    for path in tmp_path.glob("*.gtx"):
        path.unlink()
    rebuild_archive(tmp_path)
    assert shown(await reopened(tmp_path)) == shown(before)
    assert len(list(tmp_path.glob("*.gtx"))) == 3


@pytest.mark.parametrize("layout", [1, 2, 3, 4])
@pytest.mark.parametrize("files", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
async def test_a_catalog_of_an_earlier_layout_is_taken_over(
    tmp_path: Path, files: list[tuple[str, bytearray]], layout: int
) -> None:
    before = await live(tmp_path, files)
    take_back(tmp_path / "catalog.sqlite", layout)
    assert shown(await reopened(tmp_path)) == shown(before)
    assert list(tmp_path.glob("catalog.sqlite.corrupt-*")) == []
    assert list(verify_archive(tmp_path, deep=True)) == []


async def test_only_what_is_synced_counts_where_only_that_is_published(tmp_path: Path) -> None:
    ((name, data),) = mysql_files(f"{U}:1-5")
    generation = await Generation.open(
        tmp_path, ArchiveOptions(sync=SyncPolicy.INTERVAL, publish=PublishPolicy.SYNCED, sync_interval_s=3600.0)
    )
    await generation.begin_file(name)
    await append_all(generation, data)
    assert generation.gtids.executed == gtids("")
    await generation.trim()
    assert generation.gtids.executed == gtids(f"{U}:1-5")
    await generation.close()


async def test_a_purge_moves_transactions_to_purged(tmp_path: Path) -> None:
    await fill(tmp_path, *MYSQL)
    generation = await Generation.open(tmp_path)
    await generation.purge(NAMES[:2], "for a test")
    view = generation.gtids.view()
    await generation.close()
    assert view.names == (NAMES[2],)
    assert view.purged == gtids(f"{U}:1-6,{V}:7:9:100-200,{V}:1:tag:1-3")
    assert shown(await reopened(tmp_path)) == shown(view)


@pytest.mark.parametrize("files", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
async def test_the_state_before_the_oldest_file_outlives_a_purge(
    tmp_path: Path, files: list[tuple[str, bytearray]]
) -> None:
    await fill(tmp_path, *files)
    generation = await Generation.open(tmp_path)
    await generation.purge(NAMES[:1], "for a test")
    view = generation.gtids.view()
    await generation.close()
    assert shown(await reopened(tmp_path)) == shown(view)


async def test_files_that_are_being_purged_are_not_in_the_view_any_more(tmp_path: Path) -> None:
    await fill(tmp_path, *MYSQL)
    generation = await Generation.open(tmp_path)
    purge = asyncio.create_task(generation.purge(NAMES[:2], "for a test"))
    await asyncio.sleep(0)
    view = generation.gtids.view()
    assert view.names == tuple(file.name for file in generation.files) == (NAMES[2],)
    await purge
    assert shown(generation.gtids.view()) == shown(view)
    await generation.close()


async def test_a_purge_of_many_files_takes_what_they_held_and_no_more() -> None:
    state = GtidState()
    for number in range(300):
        state.begin_file(f"b.{number:06d}", "mysql")
        state.seal(GtidFacts(None, gtids(f"{U}:{number + 1}"), 0))
    for stop in (3, 140, 270):
        state.forget_oldest({f"b.{number:06d}" for number in range(stop)})
        assert (state.purged, state.executed) == (gtids(f"{U}:1-{stop}"), gtids(f"{U}:1-300"))
        assert state.view().search.first_needed(gtids(f"{U}:1-{stop}")) == 0


def facts_of_many_files() -> list[GtidFacts]:
    """Most go on where the one before ended; some do not, some have transactions without a GTID, one cannot be read."""
    facts = [GtidFacts(None, gtids(f"{U}:{number}"), 0) for number in range(1, 301)]
    facts[40] = GtidFacts(gtids(f"{U}:1-39,{V}:1-7"), gtids(f"{U}:41"), 0)
    facts[41] = GtidFacts(None, gtids(f"{U}:42,{V}:9"), 3)
    facts[60:90] = [GtidFacts(None, GtidSet(), 5)] * 30
    facts[150] = GtidFacts(None, None, 1)
    return facts


def test_many_files_at_a_start_say_what_they_say_one_after_the_other() -> None:
    facts = facts_of_many_files()
    files = [archived_file(number) for number in range(1, 301)]
    at_once, each = GtidState(), GtidState()
    at_once.load(files, facts)
    for file, one in zip(files, facts, strict=True):
        each.begin_file(file.name, file.flavour)
        each.seal(one)
    assert shown(at_once.view()) == shown(each.view())
    assert [at_once.has_anonymous(file.name) for file in files] == [each.has_anonymous(file.name) for file in files]
    for state in (at_once, each):
        state.begin_file("mysql-bin.000301", "mysql")
        state.seal(GtidFacts(None, gtids(f"{U}:301"), 0))
        state.forget_oldest({file.name for file in files[:130]})
    assert shown(at_once.view()) == shown(each.view())


def test_the_state_behind_files_is_the_same_whether_somebody_asked_between_them_or_not() -> None:
    asked, not_asked = GtidChain(), GtidChain()
    facts = facts_of_many_files()
    for stop in (40, 42, 150, 151, 300):
        for number in range(asked.number + 1, stop):
            before = asked.state
            asked.add(number, facts[number])
            not_asked.add(number, facts[number])
            one = facts[number]
            was = before if one.before is None else one.before
            assert asked.state == (None if one.inside is None else state_behind(was, one.inside))
        assert not_asked.state == asked.state
    assert asked.state == gtids(f"{U}:152-300")


async def test_a_purge_before_the_seal_leaves_the_state_before_the_file(tmp_path: Path) -> None:
    files = mysql_files(f"{U}:1-5", f"{U}:6", f"{U}:7")
    await fill(tmp_path, *files[:2])
    generation = await Generation.open(tmp_path)
    await generation.purge(NAMES[:1], "for a test")
    await generation.begin_file(files[2][0])
    await append_all(generation, files[2][1])
    await generation.close()
    assert (await reopened(tmp_path)).purged == gtids(f"{U}:1-5")


async def test_transactions_without_a_gtid_mark_their_file(tmp_path: Path) -> None:
    plain = add_mysql(mysql_binlog(None), None)
    mixed = add_mysql(add_mysql(mysql_binlog(gtids("")), None), MysqlGtid(Tsid.from_key(bytes(16)), 1))
    files = [(NAMES[0], plain.data), *[(NAMES[1], mixed.data)], (NAMES[2], mysql_files(f"{U}:1")[0][1])]
    view = await live(tmp_path, files)
    assert view.anonymous_files == (0, 1)
    assert shown(await reopened(tmp_path)) == shown(view)


async def test_a_head_that_names_other_transactions_is_in_the_ledger_and_counts(tmp_path: Path) -> None:
    files = mysql_files(f"{U}:1-5", f"{U}:6")
    files.append((NAMES[2], add_mysql(mysql_binlog(gtids(f"{U}:1-4:6,{V}:1-9")), MysqlGtid(*first(V, 10))).data))
    view = await live(tmp_path, files)
    (row,) = read_ledger(tmp_path)
    assert (row.kind, row.file, row.offset) == ("gtid_head_differs", NAMES[2], 4)
    assert f"{V}:1-9" in row.text
    assert f"{U}:5" in row.text
    assert (view.executed, view.purged) == (gtids(f"{U}:1-6,{V}:1-10"), gtids(f"{V}:1-9"))
    assert shown(await reopened(tmp_path)) == shown(view)
    assert len(read_ledger(tmp_path)) == 1


def first(uuid: str, number: int) -> tuple[Tsid, int]:
    (gtid,) = gtids(f"{uuid}:{number}").members()
    return gtid.tsid, gtid.gno


async def test_gtids_that_cannot_be_read_do_not_stop_the_archive(tmp_path: Path) -> None:
    broken = mysql_binlog(gtids(""))
    add_mysql(broken, MysqlGtid(*first(U, 1)))
    broken.event(35, b"\1", "alone")
    files = [(NAMES[0], broken.data), *[(NAMES[1], mysql_files("", f"{U}:2", start=f"{U}:1")[1][1])]]
    view = await live(tmp_path, files)
    assert [row.kind for row in read_ledger(tmp_path)] == ["gtid_unreadable"]
    assert (view.names, view.anonymous_files) == ((NAMES[0], NAMES[1]), (0,))
    again = await reopened(tmp_path)
    assert (again.anonymous_files, again.search.inside(1)) == ((0,), gtids(f"{U}:2"))


async def test_a_group_that_the_source_cut_does_not_count(tmp_path: Path) -> None:
    binlog = add_mysql(mysql_binlog(gtids("")), MysqlGtid(*first(U, 1)))
    add_mysql(binlog, MysqlGtid(*first(U, 2)), ended=False)
    following = add_mysql(mysql_binlog(gtids(f"{U}:1")), MysqlGtid(*first(U, 2)))
    generation = await Generation.open(tmp_path)
    await generation.begin_file(NAMES[0])
    await append_all(generation, binlog.data)
    await generation.begin_file(NAMES[1], previous_cut=True)
    await append_all(generation, following.data)
    view = generation.gtids.view()
    await generation.close()
    assert [view.search.inside(place) for place in (0, 1)] == [gtids(f"{U}:1"), gtids(f"{U}:2")]
    assert [row.kind for row in read_ledger(tmp_path)] == ["cut_group"]
    rebuild_archive(tmp_path)
    assert shown(await reopened(tmp_path)) == shown(view)


async def test_a_trim_in_a_transaction_takes_nothing_that_ended(tmp_path: Path) -> None:
    ((name, data),) = mysql_files(f"{U}:1-3")
    built = BinlogBuilder()
    assert built.size < len(data)
    for cut in range(len(data) - 250, len(data), 7):
        directory = tmp_path / str(cut)
        generation = await Generation.open(directory)
        await generation.begin_file(name)
        await append_all_whole_events(generation, data, cut)
        position = await generation.trim()
        assert position is not None
        ended = generation.gtids.executed
        assert ended == gtids(f"{U}:1-2")
        await append_all(generation, data, start=position.offset)
        assert generation.gtids.executed == gtids(f"{U}:1-3")
        await generation.close()
        assert (await reopened(directory)).executed == gtids(f"{U}:1-3")


async def append_all_whole_events(generation: Generation, data: bytearray, stop: int) -> None:
    at = 4
    while at + int.from_bytes(data[at + 9 : at + 13], "little") <= stop:
        at += int.from_bytes(data[at + 9 : at + 13], "little")
    await append_all(generation, data[:at])


def forgetful_files() -> list[tuple[str, bytearray]]:
    """A source that took domain 11 out of its state before the third file."""
    files = mariadb_files("0-1-1,11-5-1", "0-1-2,11-5-2", "0-1-3")
    binlog = add_mariadb(mariadb_binlog(GtidList.from_text("0-1-2")), DomainGtid(0, 1, 3))
    return [*files[:2], (NAMES[2], binlog.data)]


async def test_a_domain_that_the_source_forgot_is_in_no_state_from_then_on(tmp_path: Path) -> None:
    view = await live(tmp_path, forgetful_files())
    assert [str(before) for before in view.befores] == ["", "0-1-1,11-5-1", "0-1-2"]
    assert (str(view.executed), view.breaks) == ("0-1-3", (Break(2, GtidList.from_text("11-5-2")),))
    assert read_ledger(tmp_path) == []
    assert shown(await reopened(tmp_path)) == shown(view)


async def test_a_purge_leaves_where_a_domain_was_forgotten(tmp_path: Path) -> None:
    await fill(tmp_path, *forgetful_files())
    generation = await Generation.open(tmp_path)
    await generation.purge(NAMES[:1], "for a test")
    assert [found.number for found in generation.gtids.view().breaks] == [1]
    await generation.purge(NAMES[1:2], "for a test")
    assert generation.gtids.view().breaks == ()
    await generation.close()
