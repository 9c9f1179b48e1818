"""Stretches of an archive as plain binlogs, compared with what was archived."""

import asyncio
import itertools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from protocol.errors import RelayError
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList
from protocol.gtid.mysql_gtid import MysqlGtid
from relay.archive.generation import Generation
from relay.archive_inspection.listing import list_archive
from relay.binlog_file.binlog_scan import BinlogScan
from relay.commands.binlogs.positions_command import valid_positions
from relay.export.export_command import ExportRequest, export
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.binlog_comparison import check_relayed
from tests.support.exported_events import Told, binlogs, checked_events, executed_before, told_events
from tests.support.generation_filling import A, B, behind_a_gap, two_generations
from tests.support.gtid_binlog import add_mariadb, add_mysql, mariadb_binlog, mysql_binlog
from tests.support.packed_archive import pack_away

U = "11111111-1111-1111-1111-111111111111"
T0 = 1_700_000_000
CORPUS = Path(__file__).resolve().parents[2] / "corpus"
File = tuple[str, bytearray]


def exported(
    directory: Path, out: Path, begin: str | None = None, capsys: pytest.CaptureFixture[str] | None = None, **other: Any
) -> list[dict[str, Any]]:
    """The lines of the manifest; the last one is of all."""
    request = ExportRequest(
        out,
        begin,
        other.get("to"),
        other.get("before"),
        tuple(other.get("tables", ())),
        other.get("undecided", "refuse"),
        other.get("across_gaps", False),
    )
    found = export(directory, request, as_json=True)
    assert found is other.get("found", False)
    return (
        [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[0] == "{"]
        if capsys is not None
        else []
    )


def mysql_files(each: int = 4) -> tuple[list[File], list[tuple[str, int, int, str]]]:
    """Two files; and of each transaction its file, range and GTID. One is larger than what is read at once."""
    files, places = [], []
    before = GtidSet()
    for file in (1, 2):
        name = f"mysql-bin.{file:06d}"
        binlog = mysql_binlog(before, T0 + file * each)
        for number in range(file * each, file * each + each):
            gtid = MysqlGtid.from_text(f"{U}:tag:{number}" if number % 3 == 0 else f"{U}:{number}")
            binlog.timestamp = T0 + 10 * number
            start = binlog.size
            add_mysql(binlog, gtid, 1_300_000 if number == 5 else 300)
            places.append((name, start, binlog.size, str(gtid)))
            before |= GtidSet([gtid])
        files.append((name, binlog.rotate(f"mysql-bin.{file + 1:06d}").data))
    return files, places


def mariadb_files(each: int = 4) -> tuple[list[File], list[tuple[str, int, int, str]]]:
    files, places = [], []
    state = GtidList()
    for file in (1, 2):
        name = f"mysql-bin.{file:06d}"
        binlog = mariadb_binlog(state)
        for number in range(file * each, file * each + each):
            gtid = DomainGtid(number % 2, 1 + number % 3, number)
            binlog.timestamp = T0 + 10 * number
            start = binlog.size
            add_mariadb(binlog, gtid, 300)
            places.append((name, start, binlog.size, str(gtid)))
            state = state.advanced([gtid])
        files.append((name, binlog.rotate(f"mysql-bin.{file + 1:06d}").data))
    return files, places


def between(files: Sequence[File], begin: tuple[str, int], end: tuple[str, int]) -> list[Told]:
    return [event for name, data in files for offset, event in told_events(data) if begin <= (name, offset) < end]


def executed_at(files: Sequence[File], places: Sequence[tuple[str, int, int, str]], at: tuple[str, int]) -> object:
    done = [gtid for name, _start, end, gtid in places if (name, end) <= at]
    if ":" in places[0][3]:
        return GtidSet(MysqlGtid.from_text(gtid) for gtid in done)
    return GtidList(DomainGtid.from_text(gtid) for gtid in done)


@pytest.mark.parametrize("made", [mysql_files, mariadb_files])
async def test_each_stretch_between_two_transactions_has_its_events_and_says_what_was_before(
    tmp_path: Path, made: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    files, places = made()
    await fill(tmp_path / "archive", *files)
    spots = sorted({(name, start) for name, start, _end, _gtid in places} | {(places[-1][0], places[-1][2])})
    for number, (begin, end) in enumerate(itertools.combinations(spots, 2)):
        out = tmp_path / f"out{number}"
        lines = exported(tmp_path / "archive", out, f"{begin[0]}:{begin[1]}", capsys, to=f"{end[0]}:{end[1]}")
        written = binlogs(out)
        assert [event for path in written for event in checked_events(path)] == between(files, begin, end)
        assert executed_before(written[0]) == executed_at(files, places, begin)
        inside = [place for place in places if begin <= (place[0], place[1]) < end]
        assert [path.name for path in written] == list(dict.fromkeys(place[0] for place in inside))
        last = lines[-1]["last"]
        assert (last["file"], last["position"], last["end"], last["gtid"]) == inside[-1]
        assert lines[-1]["transactions"] == len(inside)


async def test_a_whole_archive_is_the_source_s_files_byte_for_byte(tmp_path: Path) -> None:
    files, _places = mysql_files()
    await fill(tmp_path / "archive", *files)
    exported(tmp_path / "archive", tmp_path / "out")
    for name, data in files:
        assert check_relayed((tmp_path / "out" / name).read_bytes(), bytes(data), name) > 5


@pytest.mark.parametrize(
    "path",
    [
        *sorted((CORPUS / "recorded").glob("*.binlog")),
        *(
            CORPUS / "built" / f"{name}.binlog"
            for name in ("mariadb55", "mysql51-beta", "mysql51-full-write", "mysql57-anonymous")
        ),
    ],
    ids=lambda path: path.stem,
)
async def test_each_stretch_of_a_recorded_binlog_has_its_events(tmp_path: Path, path: Path) -> None:
    data = path.read_bytes()
    await fill(tmp_path / "archive", ("mysql-bin.000001", data))
    with BinlogScan(path) as scan:
        spots = list(valid_positions(scan))
    events = told_events(data)
    step = max(1, len(spots) // 7)
    for number, (begin, end) in enumerate(itertools.combinations(sorted({*spots[::step], spots[-1]}), 2)):
        wanted = [event for offset, event in events if begin <= offset < end]
        if not wanted:
            continue
        out = tmp_path / f"out{number}"
        request = ExportRequest(out, f"mysql-bin.000001:{begin}", f"mysql-bin.000001:{end}", None, (), "refuse", False)
        export(tmp_path / "archive", request, as_json=True)
        # Servers before 5.5 wrote other things into the end positions of events inside of transactions.
        assert checked_events(out / "mysql-bin.000001", positions="mysql51" not in path.name) == wanted


async def test_packed_binlogs_are_exported_as_plain_ones(tmp_path: Path) -> None:
    files, places = mysql_files()
    directory = tmp_path / "a" / "source"
    await fill(directory, *files)
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    name, _start, stop, _gtid = places[1]
    exported(directory, plain, f"{name}:{stop}")
    pack_away(directory / name, directory)
    assert not (directory / name).exists()
    exported(directory, packed, f"{name}:{stop}")
    assert {path.name: path.read_bytes() for path in binlogs(packed)} == {
        path.name: path.read_bytes() for path in binlogs(plain)
    }


async def test_a_place_inside_a_transaction_is_refused_with_the_nearest_good_ones(tmp_path: Path) -> None:
    files, places = mysql_files()
    await fill(tmp_path / "archive", *files)
    name, start, end, _gtid = places[2]
    for option, message in (("to", f"before {start}, after {end}"), ("begin", f"before {start}, after {end}")):
        with pytest.raises(RelayError, match=message) as refused:
            exported(tmp_path / "archive", tmp_path / "out", **{option: f"{name}:{start + 3}"})
        assert refused.value.exit_code == 2
    for offset in (2, 10_000_000):
        with pytest.raises(RelayError, match="nearest good positions"):
            exported(tmp_path / "archive", tmp_path / "out", to=f"{name}:{offset}")
    with pytest.raises(RelayError, match="no such file"):
        exported(tmp_path / "archive", tmp_path / "out", to="mysql-bin.000009:4")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive"]


async def test_a_place_is_checked_where_the_index_is_lost(tmp_path: Path) -> None:
    files, places = mysql_files()
    await fill(tmp_path / "archive", *files)
    (tmp_path / "archive" / "mysql-bin.000001.idx").unlink()
    name, start, end, _gtid = places[2]
    with pytest.raises(RelayError, match=f"before {start}, after {end}"):
        exported(tmp_path / "archive", tmp_path / "out", to=f"{name}:{start + 3}")
    exported(tmp_path / "archive", tmp_path / "out", to=f"{name}:{start}")


@pytest.mark.parametrize("made", [mysql_files, mariadb_files])
async def test_times_and_gtids_name_the_same_places(
    tmp_path: Path, made: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    files, places = made(5)
    await fill(tmp_path / "archive", *files)
    fourth, eighth = places[3], places[7]
    time = T0 + 10 * (5 + 7)
    for number, other in enumerate(
        (
            {"to": eighth[3]},
            {"before": places[8][3]},
            {"to": str(time + 5)},
            {"to": str(time + 10)},
            {"before": f"time:{time + 1}"},
        )
    ):
        for begin in (fourth[3], f"gtid:{fourth[3]}", str(T0 + 10 * (5 + 2) + 1)):
            out = tmp_path / f"out{number}{begin[:4]}"
            lines = exported(tmp_path / "archive", out, begin, capsys, **other)
            assert (lines[-1]["first"]["gtid"], lines[-1]["last"]["gtid"]) == (fourth[3], eighth[3]), other
    lines = exported(tmp_path / "archive", tmp_path / "late", None, capsys, to=str(T0 + 10_000))
    assert lines[-1]["transactions"] == len(places)
    for words in ({"begin": str(T0 + 10_000)}, {"to": f"{'9-9-9' if '-' in fourth[3][:4] else U + ':999'}"}):
        with pytest.raises(RelayError):
            exported(tmp_path / "archive", tmp_path / "none", **words)


async def test_what_the_file_that_grows_has_by_now_is_exported(tmp_path: Path) -> None:
    ((name, data), _second), places = mysql_files()
    generation = await Generation.open(tmp_path / "archive")
    await generation.begin_file(name)
    cut = places[3][1] + 40
    await append_all(generation, data[: places[3][1]])
    while not list_archive(tmp_path / "archive"):
        await asyncio.sleep(0.01)
    with (tmp_path / "archive" / name).open("ab") as growing:
        growing.write(data[places[3][1] : cut])
    exported(tmp_path / "archive", tmp_path / "out")
    assert checked_events(tmp_path / "out" / name) == between([(name, data)], (name, 4), (name, places[3][1]))
    os.truncate(tmp_path / "archive" / name, places[3][1])
    await generation.close()


# --- several sources -----------------------------------------------------------------------------------------------------------


async def test_what_a_later_source_repeats_is_exported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await (await two_generations(tmp_path / "archive")).close()
    lines = exported(tmp_path / "archive", tmp_path / "out", None, capsys)
    assert [path.name for path in binlogs(tmp_path / "out")] == [
        "g0001.mysql-bin.000001",
        "g0001.mysql-bin.000002",
        "g0002.mysql-bin.000002",
        "g0002.mysql-bin.000003",
    ]
    assert lines[-1]["transactions"] == 11
    assert lines[-1]["last"]["gtid"] == f"{B}:2"
    (seam,) = [line for line in lines if line["kind"] == "seam"]
    assert (seam["seam"], seam["leads_on"]) == ("change_of_source", True)
    assert [line["transactions"] for line in lines if line["kind"] == "file"] == [3, 3, 3, 2]
    # From the later source alone: all that it has.
    lines = exported(tmp_path / "archive", tmp_path / "later", "g0002.mysql-bin.000002:4", capsys)
    assert lines[-1]["transactions"] == 7
    with pytest.raises(RelayError, match=r"g0001\.mysql-bin.000002:4 or g0002.mysql-bin.000002:4"):
        exported(tmp_path / "archive", tmp_path / "which", "mysql-bin.000002:4")


async def test_a_gap_is_named_and_crossed_only_if_somebody_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await (await behind_a_gap(tmp_path / "archive")).close()
    with pytest.raises(RelayError, match=r"accepted gap.*--across-gaps"):
        exported(tmp_path / "archive", tmp_path / "out")
    lines = exported(tmp_path / "archive", tmp_path / "out", None, capsys, across_gaps=True)
    # What the source has lost, 4-6 of file 2, does not come before what it has now.
    assert [(line["name"], line["transactions"]) for line in lines if line["kind"] == "file"] == [
        ("g0001.mysql-bin.000001", 3),
        ("g0002.mysql-bin.000002", 2),
    ]
    (seam,) = [line for line in lines if line["kind"] == "seam"]
    assert (seam["seam"], seam["leads_on"]) == ("accepted_gap", False)
    assert f"{A}:4-6" in seam["text"]
    with pytest.raises(RelayError, match="in what the source has lost"):
        exported(tmp_path / "archive", tmp_path / "lost", "g0001.mysql-bin.000002:4", across_gaps=True)
    lines = exported(tmp_path / "archive", tmp_path / "lost", "g0001.mysql-bin.000002:4", capsys, to=f"{A}:5")
    assert lines[-1]["transactions"] == 2


# --- what is wrong ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checksum", [True, False])
async def test_damaged_bytes_are_not_given_a_right_checksum(tmp_path: Path, checksum: bool) -> None:
    binlog = BinlogBuilder(checksum=checksum)
    for _ in range(400):
        binlog.transaction(200, 300)
    await fill(tmp_path / "archive", ("mysql-bin.000001", binlog.data))
    path = tmp_path / "archive" / "mysql-bin.000001"
    data = bytearray(path.read_bytes())
    event = next(event for event in binlog.events if event.kind == 30 and event.start > 60_000)
    data[event.start + 60] ^= 1
    path.write_bytes(data)
    with pytest.raises(RelayError, match=r"mysql-bin\.000001") as refused:
        exported(tmp_path / "archive", tmp_path / "out")
    assert refused.value.exit_code == 4
    assert not (tmp_path / "out").exists()
    # What lies before it is good.
    exported(tmp_path / "archive", tmp_path / "out", to=f"mysql-bin.000001:{binlog.boundary_at_or_before(16_000)}")


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    files, _places = mysql_files()
    await fill(tmp_path / "archive", files[0], ("mysql-bin.000004", files[1][1]))
    with pytest.raises(RelayError, match=r"2 file.s. between mysql-bin\.000001 and mysql-bin.000004"):
        exported(tmp_path / "archive", tmp_path / "out")
    exported(tmp_path / "archive", tmp_path / "out", across_gaps=True)
    assert len(binlogs(tmp_path / "out")) == 2
    (tmp_path / "archive" / "mysql-bin.000001").unlink()
    with pytest.raises(RelayError, match="not there any more") as refused:
        exported(tmp_path / "archive", tmp_path / "lost", across_gaps=True)
    assert refused.value.exit_code == 4


async def test_a_transaction_that_the_source_never_ended_is_left_out_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = BinlogBuilder().transaction().begin().table_map().rows()
    second = BinlogBuilder().transaction()
    await fill(tmp_path / "archive", ("mysql-bin.000001", first.data), ("mysql-bin.000002", second.data))
    lines = exported(tmp_path / "archive", tmp_path / "out", None, capsys)
    assert lines[-1]["transactions"] == 2
    (seam,) = [line for line in lines if line["kind"] == "seam"]
    assert (seam["seam"], seam["before"]) == ("cut_transaction", f"mysql-bin.000001:{first.last_boundary}")
    assert (tmp_path / "out" / "mysql-bin.000001").stat().st_size == first.last_boundary


async def test_an_export_makes_its_own_directory_and_takes_over_from_one_that_was_killed(tmp_path: Path) -> None:
    files, _places = mysql_files()
    await fill(tmp_path / "archive", *files)
    (tmp_path / "out").mkdir()
    (tmp_path / ".out.exporting").mkdir()
    (tmp_path / ".out.exporting" / "mysql-bin.000007").write_bytes(b"half")
    exported(tmp_path / "archive", tmp_path / "out")
    assert [path.name for path in binlogs(tmp_path / "out")] == ["mysql-bin.000001", "mysql-bin.000002"]
    with pytest.raises(RelayError, match="not empty"):
        exported(tmp_path / "archive", tmp_path / "out")


async def test_an_end_before_the_beginning_and_words_that_are_no_place_are_refused(tmp_path: Path) -> None:
    files, places = mysql_files()
    await fill(tmp_path / "archive", *files)
    name, start, _end, _gtid = places[2]
    with pytest.raises(RelayError, match="not behind the beginning"):
        exported(tmp_path / "archive", tmp_path / "out", f"{name}:{start}", to=f"{name}:{start}")
    for text in ("tomorrow", "mysql-bin:4", f"{U}:x", "gtid:0-1", "time:soon", ""):
        with pytest.raises(RelayError):
            exported(tmp_path / "archive", tmp_path / "out", text)
    with pytest.raises(RelayError, match="either"):
        exported(tmp_path / "archive", tmp_path / "out", to="5", before="5")
    with pytest.raises(RelayError, match="--undecided"):
        exported(tmp_path / "archive", tmp_path / "out", undecided="drop")


async def test_names_that_a_shell_sorts_otherwise_get_a_number_in_front(tmp_path: Path) -> None:
    first, second = BinlogBuilder().transaction(), BinlogBuilder().transaction()
    await fill(tmp_path / "archive", ("mysql-bin.999999", first.data), ("mysql-bin.1000000", second.data))
    exported(tmp_path / "archive", tmp_path / "out")
    assert [path.name for path in binlogs(tmp_path / "out")] == ["000001.mysql-bin.999999", "000002.mysql-bin.1000000"]
