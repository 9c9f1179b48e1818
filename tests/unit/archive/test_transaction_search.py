"""Finding a transaction in an archive, by GTID and by time, also beside a running relay and without an index."""

import asyncio
import json
from pathlib import Path

import pytest

import relay.cli.command_line
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList
from protocol.gtid.mysql_gtid import MysqlGtid
from relay.archive.generation import Generation
from relay.archive_inspection.listing import list_archive
from relay.archive_inspection.transaction_search import TransactionPlace, find_gtid, find_time
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.gtid_binlog import add_mariadb, add_mysql, mariadb_binlog, mysql_binlog

U = "11111111-1111-1111-1111-111111111111"
T0 = 1_700_000_000


def mysql_files() -> tuple[list[tuple[str, bytearray]], list[TransactionPlace]]:
    """Two files of 60 transactions of 3 kB, one a second, and where each is; every seventh has a tag."""
    files, places = [], []
    before = GtidSet()
    for file in (1, 2):
        name = f"mysql-bin.{file:06d}"
        binlog = mysql_binlog(before, T0 + file * 60)
        for number in range(file * 60, file * 60 + 60):
            gtid = MysqlGtid.from_text(f"{U}:tag:{number}" if number % 7 == 0 else f"{U}:{number}")
            binlog.timestamp = T0 + number
            start = binlog.size
            add_mysql(binlog, gtid, 3000)
            places.append(TransactionPlace(name, start, binlog.size, str(gtid), T0 + number))
            before |= GtidSet([gtid])
        files.append((name, binlog.data))
    return files, places


def mariadb_files() -> tuple[list[tuple[str, bytearray]], list[TransactionPlace]]:
    files, places = [], []
    state = GtidList()
    for file in (1, 2):
        name = f"mysql-bin.{file:06d}"
        binlog: BinlogBuilder = mariadb_binlog(state)
        for number in range(file * 60, file * 60 + 60):
            gtid = DomainGtid(number % 2, 1 + number % 3, number)
            binlog.timestamp = T0 + number
            start = binlog.size
            add_mariadb(binlog, gtid, 3000)
            places.append(TransactionPlace(name, start, binlog.size, str(gtid), T0 + number))
            state = state.advanced([gtid])
        files.append((name, binlog.data))
    return files, places


def parsed(text: str | None) -> MysqlGtid | DomainGtid:
    assert text is not None
    return MysqlGtid.from_text(text) if ":" in text else DomainGtid.from_text(text)


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("made", [mysql_files, mariadb_files])
async def test_every_transaction_is_found_by_its_gtid(tmp_path: Path, made, indexed: bool) -> None:
    files, places = made()
    await fill(tmp_path, *files)
    if not indexed:
        for path in tmp_path.glob("*.gtx"):
            path.unlink()
    assert [find_gtid(tmp_path, parsed(place.gtid)) for place in places] == places


@pytest.mark.parametrize("made", [mysql_files, mariadb_files])
async def test_the_first_transaction_from_a_time_on_is_found(tmp_path: Path, made) -> None:
    files, places = made()
    await fill(tmp_path, *files)
    assert [find_time(tmp_path, place.timestamp) for place in places] == places
    assert find_time(tmp_path, T0 + 1000) is None


async def test_what_the_archive_lacks_is_not_found(tmp_path: Path) -> None:
    files, _places = mysql_files()
    await fill(tmp_path, *files)
    for text in (f"{U}:59", f"{U}:180", f"{U}:63", f"{U}:tag:64", "22222222-2222-2222-2222-222222222222:60", "0-1-60"):
        assert find_gtid(tmp_path, parsed(text)) is None


async def test_the_file_that_grows_is_searched_too(tmp_path: Path) -> None:
    ((name, data), _second), places = mysql_files()
    generation = await Generation.open(tmp_path)
    await generation.begin_file(name)
    await append_all(generation, data, range(0, len(data), 5000))
    while not list_archive(tmp_path):
        await asyncio.sleep(0.01)
    mine = [place for place in places if place.file == name]
    assert [find_gtid(tmp_path, parsed(place.gtid)) for place in mine] == mine
    await generation.close()


async def test_an_index_that_no_relay_wrote_costs_only_time(tmp_path: Path) -> None:
    files, places = mysql_files()
    await fill(tmp_path, *files)
    for path in tmp_path.glob("*.gtx"):
        path.write_bytes(b"\x07" * 400)
    assert find_gtid(tmp_path, parsed(places[5].gtid)) == places[5]
    assert find_time(tmp_path, places[70].timestamp) == places[70]


async def test_the_command_names_file_position_and_transaction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files, places = mysql_files()
    await fill(tmp_path / "archive" / "source", *files)
    config = tmp_path / "relay.toml"
    config.write_text(f'[source]\nkind = "directory"\npath = "x"\n[archive]\ndir = "{tmp_path}/archive"\n')
    wanted = places[64]
    arguments = ["binlog-relay", "archive", "find", "--config", str(config), "--json"]
    for option in (["--gtid", str(wanted.gtid)], ["--time", str(wanted.timestamp)]):
        monkeypatch.setattr("sys.argv", [*arguments, *option])
        with pytest.raises(SystemExit) as ended:
            relay.cli.command_line.main()
        assert ended.value.code in (0, None)
        found = json.loads(capsys.readouterr().out)
        assert (found["file"], found["position"], found["gtid"]) == (wanted.file, wanted.start, wanted.gtid)
    monkeypatch.setattr("sys.argv", [*arguments, "--gtid", f"{U}:1"])
    with pytest.raises(SystemExit) as ended:
        relay.cli.command_line.main()
    assert (ended.value.code, "does not hold" in capsys.readouterr().err) == (1, True)
