"""The audit `continuity`: complete from A to B, or what is missing; each of its findings."""

import re
import struct
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.generation import Generation
from relay.audit.continuity import gtid_ranges
from relay.audit.continuity.gtid_continuity import FileRange, compare, merged, without
from relay.audit.continuity.ledger import GAPS, ledger_findings, read_ledgers
from relay.binlog_tables.plan.series_files import find_files
from relay.binlog_tables.plan.store import LocalStore
from tests.audit.job_runs import run
from tests.audit.test_splits import add_transaction, write
from tests.support.archive_filling import fill
from tests.support.binlog_builder import ALONE, INSIDE, OPENS, BinlogBuilder
from tests.support.generation_filling import append_files, change_source, identity

RECORDED = Path(__file__).resolve().parents[1] / "corpus" / "recorded"
SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OTHER = "11111111-2222-3333-4444-555555555555"
BEGUN = 1_700_000_000


def with_gtids(before: str, numbers: range | list[int], uuid: str = SOURCE, **options: Any) -> BinlogBuilder:
    """A file whose head names `before`, with a transaction for each number."""
    binlog = BinlogBuilder(**options)
    binlog.event(35, encode_gtid_set(GtidSet.from_text(before)), ALONE)
    for number in numbers:
        binlog.event(33, b"\x01" + UUID(uuid).bytes + struct.pack("<Q", number) + bytes(17), OPENS)
        binlog.query("BEGIN", INSIDE).table_map().rows().xid()
        binlog.timestamp += 1
    return binlog


async def test_a_complete_archive_is_called_complete(spark: Any, tmp_path: Path) -> None:
    first = with_gtids("", range(1, 6)).rotate("bin.000002")
    second = with_gtids(f"{SOURCE}:1-5", range(6, 9), timestamp=BEGUN + 100).stop()
    third = with_gtids(f"{SOURCE}:1-8", [9], timestamp=BEGUN + 200)
    files = [(f"bin.{number:06}", bytes(one.data)) for number, one in enumerate((first, second, third), 1)]
    await fill(tmp_path / "archive", *files)
    done = run(spark, "continuity", tmp_path / "archive", tmp_path)
    assert [finding.name for finding in done.outcome.result.findings] == []
    assert done.outcome.result.verdict == (
        f"Complete from bin.000001:4 (2023-11-14 22:13:20) to bin.000003:{third.size} (2023-11-14 22:16:40 UTC)."
    )
    assert [(row["file"], row["events"], row["last_type"]) for row in done.parquet("files")] == [
        ("bin.000001", len(first.events), "Rotate"),
        ("bin.000002", len(second.events), "Stop"),
        ("bin.000003", len(third.events), "Xid"),
    ]
    assert done.table("Files")  # files


def test_files_of_real_servers_are_complete_in_themselves(spark: Any, tmp_path: Path) -> None:
    for name in ("mysql97-gtid", "mariadb118"):
        done = run(spark, "continuity", RECORDED / f"{name}.binlog", tmp_path)
        assert done.names == set()
        assert done.outcome.result.verdict.startswith(f"Complete from {name}.binlog:4")


async def test_everything_that_breaks_the_chain_is_found(spark: Any, tmp_path: Path) -> None:
    """One archive with all of it: a missing file, one of another source, one cut, one whose times go back."""
    first = with_gtids("", [1, 2, 4, 4]).rotate("bin.000002")
    cut = with_gtids(f"{SOURCE}:1-4", [5, 7], timestamp=BEGUN + 100)
    wrong = cut.size
    cut_data = cut.data + b"\0" * 13
    foreign = with_gtids(f"{OTHER}:1-10", [11], OTHER, timestamp=BEGUN - 5000, server_id=99, version="5.7.44-log")
    foreign.rotate("bin.000009")
    back = with_gtids("", [], timestamp=BEGUN + 300)
    for number in range(400):
        add_transaction(back, 1000)
        if number == 200:
            back.timestamp -= 7200
            at_back = back.size
    generation = tmp_path / "archive"
    generation.mkdir()
    for name, data in (("000001", first.data), ("000002", cut_data), ("000005", foreign.data), ("000006", back.data)):
        write(generation, f"bin.{name}", data)
    done = run(spark, "continuity", generation, tmp_path)
    assert done.names == {
        "file_missing",
        "file_unfinished",
        "chain_broken",
        "identity_changed",
        "begun_earlier",
        "time_backwards",
        "gtid_missing",
        "gtid_twice",
        "gtid_head_differs",
        "source_changed",
        "event_truncated",
    }
    assert done.finding("file_missing").count == 2
    assert done.finding("file_missing").places[0].text == "bin.000003 to bin.000004 before it"
    assert done.places("event_truncated") == [f"bin.000002:{wrong}"]
    assert done.places("file_unfinished")[0].startswith("bin.000002:")
    assert done.finding("chain_broken").places[0].text == "goes on in bin.000009; the next file here is bin.000006"
    assert "server 99 (5.7.44-log); before it server 1" in done.finding("identity_changed").places[0].text
    assert [place.file for place in done.finding("begun_earlier").places] == ["bin.000005"]
    assert [place.text for place in done.finding("gtid_missing").places] == [f"{SOURCE}:6"]
    assert done.finding("gtid_twice").places[0].text == f"1 of {SOURCE}:4 came before"
    assert [place.file for place in done.finding("gtid_head_differs").places] == [
        "bin.000002",
        "bin.000005",
        "bin.000006",
    ]
    earlier, place = done.finding("time_backwards").places
    assert (earlier.file, place.file) == ("bin.000005", "bin.000006")
    assert at_back <= (place.position or 0) < at_back + 300_000
    assert done.outcome.result.verdict.startswith("Not complete from bin.000001:4")


async def two_sources(generation: Path) -> Archive:
    """A writes 1-6 in two files that lead to each other; B, with 1-4 in its head, repeats 5-6 and goes on in two more files."""
    archive = await Archive.open(generation)
    archive.current.set_identity(identity(SOURCE, 1))
    first = with_gtids("", range(1, 4)).rotate("bin.000002")
    second = with_gtids(f"{SOURCE}:1-3", range(4, 7), timestamp=BEGUN + 100)
    await append_files(archive, [("bin.000001", first.data), ("bin.000002", second.data)])
    third = with_gtids(f"{SOURCE}:1-4", range(5, 10), timestamp=BEGUN - 5000, server_id=2).rotate("b.000008")
    fourth = with_gtids(f"{SOURCE}:1-9", [10, 11], timestamp=BEGUN + 300, server_id=2)
    await change_source(archive, identity(OTHER, 2), [("b.000007", third.data), ("b.000008", fourth.data)])
    return archive


async def test_an_accepted_gap_is_a_finding_and_no_other_source(spark: Any, tmp_path: Path) -> None:
    directory = tmp_path / "archive"
    archive = await Archive.open(directory)
    archive.current.set_identity(identity(SOURCE, 1))
    await append_files(archive, [("bin.000001", with_gtids("", range(1, 4)).data)])
    end = archive.current.end
    assert end is not None
    gap = AcceptedGap(
        flavour="mysql",
        stop="position_purged",
        time=1.0,
        by="somebody",
        source="db:3306",
        after=end,
        last_time=BEGUN,
        common=None,
        to=Position("bin.000003", 4),
        created=BEGUN + 100,
        server_id=1,
        is_whole=False,
        missing=f"{SOURCE}:4-6",
        state=f"{SOURCE}:1-3",
    )
    await archive.prepare(identity(SOURCE, 1), "db:3306", "bin.000003", gap)
    third = with_gtids(f"{SOURCE}:1-6", [7, 8], timestamp=BEGUN + 100)
    await append_files(archive, [("bin.000003", third.data)])
    await archive.settled()
    await archive.close()
    done = run(spark, "continuity", directory, tmp_path)
    assert done.places("ledger_gap_accepted") == ["g0002/bin.000003:4"]
    assert f"{SOURCE}:4-6" in done.finding("ledger_gap_accepted").places[0].text
    assert "source_replaced" not in {finding.name for finding in done.outcome.result.findings}


async def test_an_archive_that_went_on_with_another_source_is_complete(spark: Any, tmp_path: Path) -> None:
    generation = tmp_path / "archive"
    archive = await two_sources(generation)
    archive.current.append_ledger("gap", "b.000007", 4, "nobody knows")
    await archive.close()
    alone = find_files(LocalStore(), str(generation / "g0002"))
    assert {row.file for row in read_ledgers(str(generation / "g0002"), alone, of_these=False)} == {"b.000007"}
    done = run(spark, "continuity", generation, tmp_path)
    assert done.names == {"ledger_gap"}
    assert done.places("ledger_gap") == ["g0002/b.000007:4"]
    assert done.places("source_replaced") == ["g0002/b.000007:4"]
    assert [row["file"] for row in done.parquet("files")] == [
        *("bin.000001", "bin.000002"),
        *("g0002/b.000007", "g0002/b.000008"),
    ]
    # the order of the archive, not that of the names' lengths
    largest = run(spark, "transactions", generation, tmp_path).parquet("largest")
    assert [row["file"] for row in largest][:3] == ["bin.000001"] * 3


async def test_a_part_of_an_archive_is_complete_in_itself(spark: Any, tmp_path: Path) -> None:
    """--since and --until choose files, and cut none of them."""
    files = []
    for number, (first, last) in enumerate(((1, 5), (6, 9), (10, 12)), 1):
        before = f"{SOURCE}:1-{first - 1}" if first > 1 else ""
        binlog = with_gtids(before, range(first, last + 1), timestamp=BEGUN + 100 * number)
        files.append((f"bin.{number:06}", bytes(binlog.rotate(f"bin.{number + 1:06}").data)))
    await fill(tmp_path / "archive", *files)
    since = datetime.fromtimestamp(BEGUN + 150, UTC)  # behind all events of the first file
    done = run(spark, "continuity", tmp_path / "archive", tmp_path, since=since)
    assert [finding.name for finding in done.outcome.result.findings] == []
    assert done.outcome.result.verdict.startswith("Complete from bin.000001:4")
    inside = datetime.fromtimestamp(BEGUN + 202, UTC)
    done = run(
        spark,
        "continuity",
        tmp_path / "archive",
        tmp_path,
        since=inside,
        until=datetime.fromtimestamp(BEGUN + 203, UTC),
    )
    assert [finding.name for finding in done.outcome.result.findings] == []
    assert [row["events"] for row in done.parquet("files")] == [len_events(files[1][1])]


def len_events(data: bytes) -> int:
    """How many events a file has, by their lengths."""
    at, count = 4, 0
    while at < len(data):
        at += int.from_bytes(data[at + 9 : at + 13], "little")
        count += 1
    return count


async def test_what_the_ledger_tells_is_told_and_compared_with_the_files(spark: Any, tmp_path: Path) -> None:
    data = bytes(BinlogBuilder().transaction().stop().data)
    await fill(tmp_path / "archive", ("bin.000001", data), ("bin.000003", data))
    generation = await Generation.open(tmp_path / "archive")
    generation.append_ledger("renamed", "bin.000001", 4, "only a note")
    await generation.close()
    write(tmp_path / "archive", "bin.000005", data)
    done = run(spark, "continuity", tmp_path / "archive", tmp_path)
    assert done.names == {"file_missing", "ledger_gap"}
    assert done.places("ledger_gap") == ["bin.000003:4"]
    assert "only a note" in done.page.text
    known, unknown = (place.text for place in done.finding("file_missing").places)
    assert re.fullmatch(r"bin\.000002 before it; noted in the ledger \d{4}-\d\d-\d\d", known)
    assert unknown == "bin.000004 before it; the ledger has no note of it"


def test_every_kind_of_gap_in_a_ledger_is_a_finding_and_is_one_that_the_relay_writes() -> None:
    ledger = [LedgerRow(1.0, kind, "bin.000002", 4, "why") for kind in (*GAPS, "renamed", "purged", "write_failed")]
    assert [finding.name for finding in ledger_findings(ledger, 5)] == [f"ledger_{kind}" for kind in GAPS]
    relay = RECORDED.parents[2] / "relay"
    written = "".join(path.read_text() for path in relay.rglob("*.py") if "audit" not in path.parts)
    assert [kind for kind in GAPS if f'"{kind}"' not in written] == []


async def test_what_is_only_good_to_know_is_a_note(spark: Any, tmp_path: Path) -> None:
    """Another name, another version, transactions without GTID, times a minute back: in the archive's order, not the names'."""
    first = with_gtids("", [1, 2]).transaction().stop()
    second = with_gtids(f"{SOURCE}:1-2", [3], timestamp=BEGUN + 100, version="5.6.51-log")
    second.timestamp += 500
    second.transaction().rotate("bin.000003")
    third = with_gtids(f"{SOURCE}:1-3", [4], timestamp=BEGUN + 450, version="5.6.51-log")
    names = ("mysql-bin.000001", "bin.000002", "bin.000003")
    await fill(tmp_path / "archive", *zip(names, (bytes(one.data) for one in (first, second, third)), strict=True))
    done = run(spark, "continuity", tmp_path / "archive", tmp_path)
    notes = {finding.name: [str(place) for place in finding.places] for finding in done.outcome.result.findings}
    assert done.names == set()
    assert notes == {
        "files_renamed": ["bin.000002"],
        "version_changed": ["bin.000002:4"],
        "gtid_partly": [],
        "time_behind": [f"bin.000003:{third.events[2].start}"],
    }


def test_sequences_that_are_too_scattered_are_said_not_to_be_compared(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gtid_ranges, "_MOST_RANGES", 3)
    binlog = with_gtids("", [1, 3, 5, 7, 9])
    binlog_of_other = with_gtids("", [1, 3], OTHER)
    write(tmp_path, "bin.000001", binlog.data)
    write(tmp_path, "bin.000002", binlog_of_other.data)
    done = run(spark, "continuity", tmp_path / "bin.*", tmp_path)
    assert [place.text for place in done.finding("gtid_not_compared").places] == [f"5 ranges of {SOURCE}:1-9"]
    assert [place.text for place in done.finding("gtid_missing").places] == [f"{OTHER}:2"]


# ---- ranges, without Spark -------------------------------------------------------------------------------------------


def ranges(file: str, *numbers: tuple[int, int], key: str = SOURCE) -> list[FileRange]:
    return [FileRange(file, key, first, last) for first, last in numbers]


def gtids(text: str) -> GtidSet:
    return GtidSet.from_text(text)


def test_what_was_missing_before_the_archive_begins_is_not_missing_in_it() -> None:
    report = compare(["a"], [gtids(f"{SOURCE}:1-5:8")], ranges("a", (9, 12), (14, 14)))
    assert [place.text for place in report.missing] == [f"{SOURCE}:13"]
    assert compare(["a"], [None], ranges("a", (900, 950))).missing == []
    late = compare(["a"], [gtids("")], ranges("a", (3, 4)))
    assert [place.text for place in late.missing] == [f"{SOURCE}:1-2"]


def test_a_gap_that_a_later_file_fills_is_none() -> None:
    report = compare(["a", "b"], [gtids(""), None], [*ranges("a", (1, 4), (6, 9)), *ranges("b", (5, 5), (10, 10))])
    assert (report.missing, report.twice) == ([], [])


def test_the_place_of_a_gap_is_the_file_behind_it() -> None:
    files = ["a", "b", "c"]
    report = compare(files, [None] * 3, [*ranges("a", (1, 4)), *ranges("b", (5, 5)), *ranges("c", (7, 8))])
    assert [(place.file, place.text) for place in report.missing] == [("c", f"{SOURCE}:6")]


def test_a_later_source_repeats_and_does_not_know_all_but_must_not_know_more() -> None:
    files = ["a", "g0002/a", "g0002/b"]
    heads = [gtids(""), gtids(f"{SOURCE}:1-4"), gtids(f"{SOURCE}:1-9")]
    inside = [*ranges("a", (1, 6)), *ranges("g0002/a", (5, 9)), *ranges("g0002/b", (10, 12))]
    report = compare(files, heads, inside)
    assert (report.missing, report.twice, report.differs) == ([], [], [])
    # or without what it repeats
    left = [*ranges("a", (1, 6)), *ranges("g0002/a", (7, 9)), *ranges("g0002/b", (10, 12))]
    report = compare(files, heads, left)
    assert (report.missing, report.twice, report.differs) == ([], [], [])
    heads[1] = gtids(f"{SOURCE}:1-4,{OTHER}:1-3")
    report = compare(files, heads, inside)
    assert (report.differs[0].file, report.differs[0].text) == (
        "g0002/a",
        f"its source had executed {OTHER}:1-3, which the sources before it did not write here",
    )


def test_a_head_that_cannot_be_read_leaves_the_others_to_be_compared() -> None:
    report = compare(["a", "b"], [None, gtids("")], [*ranges("a", (900, 901)), *ranges("b", (1, 2), key=OTHER)])
    assert (report.missing, report.twice) == ([], [])


def test_a_list_of_last_numbers_does_not_fill_gaps() -> None:
    heads = [GtidList.from_text(""), GtidList.from_text("0-1-9"), GtidList.from_text("0-1-12")]
    inside = [*ranges("a", (1, 4), (6, 9), key="0"), *ranges("b", (10, 11), key="0"), *ranges("c", (13, 13), key="0")]
    report = compare(["a", "b", "c"], heads, inside)
    assert [place.text for place in report.missing] == ["0:5"]
    assert [place.text for place in report.differs] == [
        "its head says that domain 0 was at 12; the files before it end at 11"
    ]


def test_a_hundred_thousand_gaps_are_compared_at_once() -> None:
    begun = time.process_time()
    count = 100_000
    report = compare(["a", "b"], [None, None], [FileRange("a", SOURCE, 2 * n, 2 * n) for n in range(1, count)], 7)
    assert (len(report.missing), report.missing_count) == (7, count - 2)
    assert time.process_time() - begun < 10  # a second; quadratic it is hours


def test_ranges_are_merged_and_subtracted() -> None:
    assert merged([(5, 6), (1, 2), (3, 3), (6, 9)]) == [(1, 3), (5, 9)]
    assert without([(1, 10)], [(2, 3), (5, 5), (9, 20)]) == [(1, 1), (4, 4), (6, 8)]
