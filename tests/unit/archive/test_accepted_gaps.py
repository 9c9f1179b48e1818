"""A generation behind a gap in the source's binlogs: what is known of it, what is served before it, and who lacks what."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import structlog.testing

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList, GtidPosition
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.gaps.accepted_gap import GapUnreadable, gap_before, kept_gap
from relay.archive.gaps.gap_decision import GapDecision
from relay.archive.gaps.lost_gtids import ArchivedPart, GapGtids, lost_and_held, mariadb_gap, mysql_gap, mysql_gtids_in
from relay.archive.storage.files import ACCEPTED_NAME, CATALOG_NAME, GAP_NAME, LEDGER_TEXT_NAME
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.verify import verify_generations
from relay.commands.archive_command import list_files, show_ledger, verify
from tests.support.generation_filling import GAP, A, behind_a_gap


async def test_behind_a_gap_the_archive_has_what_the_source_has_and_remembers_the_gap(tmp_path: Path) -> None:
    archive = await behind_a_gap(tmp_path)
    for _ in range(2):
        first, second = archive.all
        assert second.gap is not None and first.gap is None
        assert (second.gap.lost, second.gap.has_lost, second.gap.is_whole) == (f"{A}:4-6", True, True)
        assert first.executed == GtidSet.from_text(f"{A}:1-6")
        assert archive.executed == GtidSet.from_text(f"{A}:1-5")
        assert second.before == GtidSet.from_text(f"{A}:1-3")
        await archive.close()
        archive = await Archive.open(tmp_path)
    await archive.close()
    assert list(verify_generations(tmp_path, deep=True)) == []


async def test_before_a_gap_replicas_are_sent_what_the_source_has_too(tmp_path: Path) -> None:
    archive = await behind_a_gap(tmp_path)
    first, second = archive.all
    common, lost = first.files
    assert first.fork == Position(common.name, common.end)
    assert [first.served_end(file) for file in (common, lost)] == [common.end, 4]
    assert second.fork is None and second.served_end(second.files[0]) == second.files[0].end
    first.fork = Position(lost.name, 200)
    assert [first.served_end(file) for file in (common, lost)] == [common.end, 200]
    await archive.close()


async def test_the_ledger_of_the_generation_tells_the_gap_to_people_and_programs(tmp_path: Path) -> None:
    await (await behind_a_gap(tmp_path)).close()
    ((_, path),) = [found for found in begun_generations(tmp_path) if found[0] == 2]
    (row,) = [row for row in read_ledger(path) if row.kind == "gap_accepted"]
    assert (row.file, row.offset) == ("mysql-bin.000002", 4)
    for part in ("No binlog is missing", "has lost", f"{A}:4-6", "server_id 7 up to", "Accepted by 'root'@'localhost'"):
        assert part in row.text, row.text
    details = json.loads(row.details)
    assert (details["stop"], details["lost"], details["to"]["file"]) == (GAP.stop, GAP.lost, "mysql-bin.000002")


@pytest.mark.parametrize("what", ["removed", "damaged"])
async def test_without_its_file_a_gap_is_known_from_the_ledger(tmp_path: Path, what: str) -> None:
    await (await behind_a_gap(tmp_path)).close()
    path = tmp_path / "g0002" / GAP_NAME
    path.write_bytes(b"\xff{") if what == "damaged" else path.unlink()
    found = gap_before(tmp_path / "g0002")
    assert found is not None and found.lost == GAP.lost


async def test_a_gap_of_which_nothing_can_be_read_is_still_one(tmp_path: Path) -> None:
    archive = await behind_a_gap(tmp_path)
    end = archive.all[0].end
    await archive.close()
    (tmp_path / "g0002" / GAP_NAME).write_text("{}")
    for path in (tmp_path / "g0002").glob(f"{CATALOG_NAME}*"):
        path.unlink()
    (tmp_path / "g0002" / LEDGER_TEXT_NAME).unlink()
    with pytest.raises(GapUnreadable):
        gap_before(tmp_path / "g0002")
    with structlog.testing.capture_logs() as logs:
        archive = await Archive.open(tmp_path)
    assert "gap_unreadable" in [line["event"] for line in logs]
    first, second = archive.all
    assert second.gap is not None and not second.gap.is_whole and first.fork == end
    await archive.close()


def test_a_decision_is_kept_until_a_generation_stands_behind_it(tmp_path: Path) -> None:
    GapDecision(tmp_path).write(GAP)
    again = GapDecision(tmp_path)
    again.load(None)
    assert again.gap == GAP
    again.load(GAP)
    assert not (tmp_path / ACCEPTED_NAME).exists()
    fresh = GapDecision(tmp_path)
    fresh.load(None)
    assert fresh.gap is None


async def test_a_decision_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    (tmp_path / ACCEPTED_NAME).write_text("[1]")
    decision = GapDecision(tmp_path)
    with structlog.testing.capture_logs() as logs:
        decision.load(None)
    assert decision.gap is None and [line["event"] for line in logs] == ["gap_decision_unreadable"]
    await decision.keep(GAP)
    assert kept_gap(tmp_path, ACCEPTED_NAME) == GAP
    await decision.drop()
    assert decision.gap is None and not (tmp_path / ACCEPTED_NAME).exists()


def test_the_same_gap_is_the_same_whoever_accepts_it() -> None:
    assert GAP.same_facts(replace(GAP, by="somebody", time=1.0, source="other:1", replicas=(), stop="x"))
    assert not GAP.same_facts(replace(GAP, to=Position("mysql-bin.000003", 4)))
    assert not GAP.same_facts(replace(GAP, missing=f"{A}:7"))


@pytest.mark.parametrize(
    ("executed", "has", "before", "lost", "state", "missing"),
    [
        ("1-6", "1-9", "1-9", "", "1-6", "7-9"),  # purged too early
        ("1-6", "1-3", "1-3", "4-6", "1-3", ""),  # the end was lost
        ("1-6", "", "", "1-6", "", ""),  # reset
        ("1-6", "1-3", "1-5", "4-6", "1-3", "4-5"),  # the end was lost, and the next file is passed over
    ],
)
def test_what_a_mysql_source_lost_and_what_is_missing(
    executed: str, has: str, before: str, lost: str, state: str, missing: str
) -> None:
    def text(numbers: str) -> str:
        return f"{A}:{numbers}" if numbers else ""

    found = mysql_gap(*(GtidSet.from_text(text(one)) for one in (executed, has, before)))
    assert found == GapGtids(text(lost), text(state), text(missing))


def test_what_replicas_are_sent_no_more_counts_as_lost_also_where_the_source_has_it_in_its_tables() -> None:
    executed, has, cut_off = (GtidSet.from_text(f"{A}:{numbers}") for numbers in ("1-6", "1-5", "5-6"))
    assert mysql_gap(executed, has, has, cut_off) == GapGtids(f"{A}:5-6", f"{A}:1-4", f"{A}:5")


async def test_what_is_archived_behind_a_place_is_read_from_the_files(tmp_path: Path) -> None:
    archive = await behind_a_gap(tmp_path)
    files, layer = archive.all[0].files, archive.all[0].layer
    parts = [ArchivedPart(tmp_path / file.name, 4, file.end, bool(file.checksum)) for file in files]
    assert mysql_gtids_in(layer, parts) == GtidSet.from_text(f"{A}:1-6")
    assert mysql_gtids_in(layer, [parts[0]._replace(start=files[0].end), parts[1]]) == GtidSet.from_text(f"{A}:4-6")
    assert mysql_gtids_in(layer, []) == GtidSet()
    await archive.close()


@pytest.mark.parametrize(
    ("executed", "has", "before", "lost", "state", "missing"),
    [
        ("0-1-6", "0-1-9", "0-1-9", "", "0-1-6", "those after 0-1-6 up to 0-1-9"),
        ("0-1-6", "0-1-6", "0-1-7,1-5-3", "", "0-1-6", "0-1-7, all of 1-5 up to 1-5-3"),
        ("0-1-6", "0-1-3", "0-1-3", "0-1-6", "0-1-3", ""),
        ("0-1-6", "", "", "0-1-6", "", ""),
        ("0-2-4,0-1-6", "0-2-4,0-1-5", "0-2-4,0-1-5", "0-1-6", "0-2-4,0-1-5", ""),
        ("0-1-6,7-1-2", "0-1-6", "0-1-6", "", "0-1-6,7-1-2", ""),  # domain 7 was taken out there
    ],
)
def test_what_a_mariadb_source_lost_and_what_is_missing(
    executed: str, has: str, before: str, lost: str, state: str, missing: str
) -> None:
    found = mariadb_gap(*(GtidList.from_text(one) for one in (executed, has, before)))
    assert found == GapGtids(lost, state, missing)


@pytest.mark.parametrize(
    ("held", "executed", "found"),
    [
        ("1-3", "1-5", ""),
        ("1-4", "1-5", "4"),
        ("1-6", "1-3", "4-6"),
        ("1-7", "1-7", ""),  # 7 only the new history has
    ],
)
def test_a_mysql_replica_that_has_what_was_lost_is_known(held: str, executed: str, found: str) -> None:
    purged = GtidSet.from_text(f"{A}:1-3")
    told = lost_and_held(GAP, GtidSet.from_text(f"{A}:{held}"), GtidSet.from_text(f"{A}:{executed}"), purged)
    assert told == (f"{A}:{found}" if found else "")


@pytest.mark.parametrize(("held", "found"), [("0-1-3", ""), ("0-1-4", "0-1-4"), ("0-1-6", "0-1-6"), ("0-1-7", "")])
def test_a_mariadb_replica_that_has_what_was_lost_is_known(held: str, found: str) -> None:
    gap = replace(GAP, flavour="mariadb", lost="0-1-6", state="0-1-3")
    assert lost_and_held(gap, GtidPosition.from_text(held), GtidList.from_text("0-1-9"), None) == found


def test_what_is_held_of_another_kind_was_not_lost() -> None:
    assert lost_and_held(GAP, GtidPosition.from_text("0-1-5"), None, None) == ""
    assert lost_and_held(replace(GAP, flavour="mariadb", lost="0-1-6", state=None), GtidSet(), None, None) == ""


async def test_the_commands_show_the_gap_and_find_nothing_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await (await behind_a_gap(tmp_path)).close()
    capsys.readouterr()
    list_files(tmp_path, as_json=False)
    notes = [line.split("\t")[-1] for line in capsys.readouterr().out.splitlines()]
    assert notes == ["-", "-", "behind an accepted gap"]
    list_files(tmp_path, as_json=True)
    assert [json.loads(line)["behind_gap"] for line in capsys.readouterr().out.splitlines()] == [False, False, True]
    assert verify(tmp_path, deep=True, as_json=False) == 0
    assert "g0002/mysql-bin.000002 stands behind an accepted gap: No binlog is missing" in capsys.readouterr().out
    show_ledger(tmp_path, as_json=True)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (details,) = [row["details"] for row in rows if row["kind"] == "gap_accepted"]
    assert details["stop"] == "source_lost_its_tail"
