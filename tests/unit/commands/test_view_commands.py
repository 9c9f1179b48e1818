"""`binlog-relay view …` on a view whose places are known."""

import gzip
import json
import os
from pathlib import Path
from uuid import UUID

import pytest

from protocol.errors import ExitCode
from protocol.gtid.mysql_gtid import MysqlGtid
from protocol.position import Position
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.directory_lock import take_lock
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.archive_inspection.listing import read_ledger
from relay.commands.archive_command import verify
from relay.commands.outcome import CommandFailed
from relay.commands.view_changes import rebuild, skip
from relay.commands.view_command import find_place, list_views
from relay.commands.view_seed import seed
from relay.view.inspect.named_view import NamedView
from relay.view.inspect.view_listing import files_of
from relay.view.rules.kept_settings import view_directory
from relay.view.rules.settings import ViewSettings, ViewStart
from relay.view.seeding.dump_head import DumpRefused
from relay.view.seeding.restore_advice import WITHOUT_MODE
from relay.view.seeding.seed_statements import RelayAddress
from relay.view.stops.stop_reason import StopReason
from relay.view.stops.view_stop import STOPPED, ViewStop
from relay.view.view_place import PlaceUnknown, ViewPlace
from relay.view.view_skips import skips_of
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.gtid_binlog import add_mysql, mysql_binlog
from tests.support.known_places import KnownPlaces

OWN = "6d0c5a43-9c63-4f4e-8d1f-5a166f0f3cb2"
FILE = "mysql-bin.000001"
RELAY = RelayAddress("relay.example", 3307, "new_replica", False)
HEADING = "-- Position to start replication or point-in-time recovery from\n"
TEXT = "CREATE USER with a password hash of MySQL 5.6. Leave it out."


def view_of(archive: Path, places: list[ViewPlace], start: ViewStart | None = None) -> NamedView:
    settings = ViewSettings("gtid", "assign", UUID(OWN), start=start)
    return NamedView(archive, view_directory(archive, "gtid"), settings, KnownPlaces(places))


@pytest.fixture
async def view(tmp_path: Path) -> NamedView:
    """Three transactions in one file."""
    source, made = BinlogBuilder(), mysql_binlog(None)
    add_previous(made)
    places = [place(source, made, 0)]
    for gno in (1, 2, 3):
        source.transaction(20)
        add_mysql(made, MysqlGtid.from_text(f"{OWN}:{gno}"))
        places.append(place(source, made, gno))
    await fill(tmp_path, (FILE, source.data))
    await fill(view_directory(tmp_path, "gtid"), (FILE, made.data))
    return view_of(tmp_path, places)


def add_previous(made: BinlogBuilder) -> None:
    made.event(35, bytes(8), "alone")


def place(source: BinlogBuilder, made: BinlogBuilder, gno: int) -> ViewPlace:
    return ViewPlace(Position(FILE, source.size), Position(FILE, made.size), gno)


def places_of(view: NamedView) -> list[ViewPlace]:
    assert isinstance(view.places, KnownPlaces)
    return list(view.places._places)


def stopped(view: NamedView, gno: int = 1) -> tuple[NamedView, ViewStop]:
    """The view as it stands stopped behind transaction `gno`, and what it stopped at."""
    places = places_of(view)
    begin, end = places[gno].source, places[gno + 1].source
    details = json.dumps({"reason": "create_user", "replica_error": 1064, "group_stop": end.offset})
    catalog = Catalog.open(view.directory / CATALOG_NAME, FileLayer())
    catalog.add_ledger(LedgerRow(1_700_000_000.0, STOPPED, FILE, begin.offset, TEXT, details))
    catalog.close()
    return view_of(view.archive, places[: gno + 1]), ViewStop(
        FILE, begin.offset, end.offset, StopReason("create_user", TEXT, 1064, ""), 1_700_000_000.0
    )


def line(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    (text,) = capsys.readouterr().out.splitlines()
    found: dict[str, object] = json.loads(text)
    return found


# --- find ------------------------------------------------------------------------------------------------------------


def test_find_gives_the_same_facts_for_each_name_of_a_place(
    view: NamedView, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = places_of(view)[2]
    given = (
        {"source": str(wanted.source), "position": None, "gtid": None},
        {"source": None, "position": str(wanted.view), "gtid": None},
        {"source": None, "position": None, "gtid": f"{OWN}:2"},
    )
    for names in given:
        find_place(view, **names, as_json=True)
        assert line(capsys) == {
            "view": "gtid",
            "source_generation": 1,
            "source_file": FILE,
            "source_position": wanted.source.offset,
            "view_generation": 1,
            "view_file": FILE,
            "view_position": wanted.view.offset,
            "newest_assigned": f"{OWN}:2",
            "executed": f"{OWN}:1-2",
        }
    find_place(view, source=str(wanted.source), position=None, gtid=None, as_json=False)
    assert capsys.readouterr().out == f"{wanted.source}\t{wanted.view}\t{OWN}:2\t{OWN}:1-2\n"


def test_a_place_inside_a_transaction_is_refused_with_the_nearest_good_ones(view: NamedView) -> None:
    before, after = places_of(view)[1:3]
    with pytest.raises(CommandFailed, match="inside a transaction") as refused:
        find_place(view, source=f"{FILE}:{before.source.offset + 20}", position=None, gtid=None, as_json=False)
    for good in (before, after):
        assert f"{good.source} (view {good.view}, {OWN}:{good.gno})" in str(refused.value)


@pytest.mark.parametrize(
    ("source", "position", "gtid"),
    [
        (None, None, None),
        (f"{FILE}:4", f"{FILE}:4", None),
        ("../x.000001:4", None, None),
        (FILE, None, None),
        (f"{FILE}:-1", None, None),
        (f"{FILE}:" + "9" * 30, None, None),
        (None, "4", None),
        (None, None, "no gtid"),
        (None, None, f"{OWN}:1-2"),
    ],
)
def test_what_names_no_place_is_wrong_use(
    view: NamedView, source: str | None, position: str | None, gtid: str | None
) -> None:
    with pytest.raises(CommandFailed) as refused:
        find_place(view, source=source, position=position, gtid=gtid, as_json=False)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("source", "gtid", "what"),
    [
        ("mysql-bin.000007:4", None, "not in the view"),
        (f"{FILE}:99999", None, "not made yet"),
        (None, f"{OWN}:9", "1 to 3"),
        (None, "11111111-2222-3333-4444-555555555555:1", "does not hold"),
    ],
)
def test_a_place_that_the_view_does_not_have_is_told(
    view: NamedView, source: str | None, gtid: str | None, what: str
) -> None:
    with pytest.raises(PlaceUnknown, match=what):
        find_place(view, source=source, position=None, gtid=gtid, as_json=False)


def test_a_view_that_is_not_made_yet_is_told(view: NamedView, tmp_path: Path) -> None:
    new = view._replace(directory=view_directory(tmp_path, "new"))
    with pytest.raises(PlaceUnknown, match="is not made yet"):
        find_place(new, source=f"{FILE}:4", position=None, gtid=None, as_json=False)


# --- list ------------------------------------------------------------------------------------------------------------


def test_list_says_how_far_a_view_is_and_why_it_is_stopped(view: NamedView, capsys: pytest.CaptureFixture[str]) -> None:
    view, stop = stopped(view)
    list_views([view], as_json=True)
    end = places_of(view)[-1]
    found = line(capsys)
    assert (found["view"], found["uuid"], found["for"], found["files"]) == ("gtid", OWN, "mysql-9.7", 1)
    assert (found["source_position"], found["view_position"]) == (end.source.offset, end.view.offset)
    assert found["stop"] == {
        "generation": 1,
        "file": FILE,
        "position": stop.offset,
        "name": "create_user",
        "text": TEXT,
        "error": 1064,
        "advice": "",
        "since": "2023-11-14T22:13:20Z",
    }
    list_views([view], as_json=False)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"gtid\tassign\t{OWN}\tmysql-9.7\t1\t") and first.endswith("\tcreate_user")
    assert f"{FILE}:{stop.offset}: create_user" in second and "1064" in second


def test_list_counts_what_a_view_is_behind(view: NamedView, capsys: pytest.CaptureFixture[str]) -> None:
    places = places_of(view)
    list_views([view_of(view.archive, places[:2])], as_json=True)
    assert line(capsys)["behind_bytes"] == places[3].source.offset - places[1].source.offset
    new = view._replace(directory=view_directory(view.archive, "new"))
    list_views([new], as_json=True)
    found = line(capsys)
    assert (found["files"], found["source_file"], found["behind_bytes"]) == (0, None, places[3].source.offset)


def test_a_catalog_of_a_view_that_cannot_be_read_is_told_as_the_views(view: NamedView) -> None:
    (view.directory / CATALOG_NAME).write_bytes(b"no database at all")
    with pytest.raises(CommandFailed, match=r"View gtid, .*views/gtid") as refused:
        list_views([view], as_json=False)
    assert refused.value.exit_code == 4 and "view rebuild" in str(refused.value)
    rebuild(view, UUID(OWN), as_json=False)
    assert not view.directory.exists()


# --- seed ------------------------------------------------------------------------------------------------------------


def test_seed_prints_statements_for_a_place_that_a_client_can_be_given(
    view: NamedView, capsys: pytest.CaptureFixture[str]
) -> None:
    seed(view, RELAY, at=str(places_of(view)[2].source), dump=None, in_place=False, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    text = "\n".join(one for one in lines if not one.startswith("--"))
    assert [statement.split("\n")[0] for statement in text.split(";\n")] == [
        "RESET BINARY LOGS AND GTIDS",
        f"SET GLOBAL gtid_purged = '{OWN}:1-2'",
        "CHANGE REPLICATION SOURCE TO",
        "START REPLICA;",
    ]
    assert "Executed there: 2 transactions" in lines[0] and any("sql_log_bin" in one for one in lines)


def test_seed_finds_the_place_in_a_dump(view: NamedView, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.sql"
    offset = places_of(view)[3].source.offset
    change = f"-- CHANGE MASTER TO MASTER_LOG_FILE='{FILE}', MASTER_LOG_POS={offset};"
    dump.write_text(f"-- Host: db\x1b[2J    Database:\n-- Server version\t9.9.9\n{HEADING}{change}\n")
    seed(view, RELAY, at=None, dump=dump, in_place=False, as_json=False)
    out = capsys.readouterr().out
    assert f"gtid_purged = '{OWN}:1-3'" in out and f"{dump}, line 4" in out
    assert "was it taken at the source?" in out and "\x1b" not in out
    seed(view, RELAY, at=None, dump=dump, in_place=False, as_json=True)
    record = line(capsys)
    assert record["executed"] == f"{OWN}:1-3" and len(record["statements"]) == 4  # type: ignore[arg-type]


def test_seed_says_which_line_of_a_dump_a_new_server_does_not_know(
    view: NamedView, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change = f"CHANGE MASTER TO MASTER_LOG_FILE='{FILE}', MASTER_LOG_POS={places_of(view)[3].source.offset};\n"
    for begin, is_told in (("", True), ("-- ", False)):
        (tmp_path / "dump.sql").write_text(f"-- MySQL dump\n{HEADING}{begin}{change}")
        seed(view, RELAY, at=None, dump=tmp_path / "dump.sql", in_place=False, as_json=False)
        assert ("sed '3d; /^" in capsys.readouterr().out) == is_told


def test_seed_restores_a_packed_dump_as_it_is_packed(
    view: NamedView, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change = f"CHANGE MASTER TO MASTER_LOG_FILE='{FILE}', MASTER_LOG_POS={places_of(view)[3].source.offset};\n"
    dump = tmp_path / "shop.sql.gz"
    for begin, command in (
        ("", f"zcat {dump} | sed '2d; {WITHOUT_MODE}')"),
        ("-- ", f"zcat {dump} | sed '{WITHOUT_MODE}')"),
    ):
        dump.write_bytes(gzip.compress(f"{HEADING}{begin}{change}".encode()))
        seed(view, RELAY, at=None, dump=dump, in_place=False, as_json=False)
        assert command in capsys.readouterr().out


@pytest.mark.parametrize(
    ("host", "hosts", "doubt"),
    [
        ("db-old", ["db-old"], None),
        ("db-old", ["db-older"], "of host 'db-old', the relay is to follow db-older"),
        ("db-old", ["db-old", "db-older"], "of host 'db-old', the relay is to follow db-old or db-older"),
        ("db-old", [], "of host 'db-old'. At a replica"),
        ("localhost", ["localhost"], "the dump says 'localhost' of its host"),
        ("127.0.0.1", ["127.0.0.1"], "the dump says '127.0.0.1' of its host"),
        (None, ["db-old"], "does not say of which server it is"),
    ],
)
def test_seed_says_where_nothing_proves_that_the_source_was_dumped(
    view: NamedView,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    host: str | None,
    hosts: list[str],
    doubt: str | None,
) -> None:
    """A dump of a replica with --source-data looks the same."""
    dump = tmp_path / "dump.sql"
    change = f"-- CHANGE MASTER TO MASTER_LOG_FILE='{FILE}', MASTER_LOG_POS={places_of(view)[3].source.offset};\n"
    dump.write_text(f"{f'-- Host: {host}    Database:' if host else ''}\n{HEADING}{change}")
    seed(view, RELAY, hosts, at=None, dump=dump, in_place=False, as_json=False)
    out = capsys.readouterr().out
    assert ("@@server_id at the dumped server must say" in out) == (doubt is not None)
    assert doubt is None or doubt in out


def test_seed_says_that_at_the_beginning_of_a_file_every_server_has_a_place(
    view: NamedView, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump.sql"
    places = places_of(view)
    view = view_of(view.archive, [ViewPlace(Position(FILE, 4), Position(FILE, 4), 0), *places])
    for number, is_told in ((1, True), (2, False)):
        offset = places_of(view)[number].source.offset
        dump.write_text(f"{HEADING}-- CHANGE MASTER TO MASTER_LOG_FILE='{FILE}', MASTER_LOG_POS={offset};\n")
        seed(view, RELAY, ["db"], at=None, dump=dump, in_place=False, as_json=False)
        assert ("begins so at any server" in capsys.readouterr().out) == is_told


@pytest.mark.parametrize("shift", [1, -1, 20])
def test_seed_never_rounds_a_place(view: NamedView, tmp_path: Path, shift: int) -> None:
    dump = tmp_path / "dump.sql"
    offset = places_of(view)[2].source.offset + shift
    dump.write_text(f"{HEADING}CHANGE MASTER TO MASTER_LOG_FILE='{FILE}', MASTER_LOG_POS={offset};\n")
    with pytest.raises(CommandFailed, match="inside a transaction"):
        seed(view, RELAY, at=None, dump=dump, in_place=False, as_json=False)


def backup(view: NamedView, directory: Path, options: str) -> Path:
    directory.mkdir()
    (directory / "xtrabackup_binlog_info").write_text(f"{FILE}\t{places_of(view)[3].source.offset}\n")
    (directory / "backup-my.cnf").write_text(f"[mysqld]\ninnodb_page_size=16384\n{options}")
    return directory


def test_seed_knows_the_source_by_what_xtrabackup_says_of_the_server(
    view: NamedView, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = files_of(view.archive)
    other = file.server_id + 1
    uuid, catalog = f"{OWN[:-1]}a", Catalog.open(view.archive / CATALOG_NAME, FileLayer())
    catalog.set_identity(SourceIdentity("mysql", file.server_version, file.server_id, uuid))
    catalog.close()
    of_the_source = (
        f"server_id={file.server_id}\n",
        f"server_id={file.server_id}\nserver_uuid={OWN}\n",
        f"server_id={other}\nserver_uuid={uuid.upper()}\n",
    )
    for number, options in enumerate(of_the_source):
        seed(view, RELAY, at=None, dump=backup(view, tmp_path / f"b{number}", options), in_place=False, as_json=False)
        out = capsys.readouterr().out
        assert "Look at this" not in out and "--copy-back" in out and "sql_log_bin" not in out
    for number, options in enumerate(
        (f"server_id={other}\n", f"server_id={other}\nserver_uuid={OWN}\n", f"server_uuid={OWN}\n")
    ):
        with pytest.raises(
            CommandFailed, match=f"{FILE} is of server_id {file.server_id}, server_uuid {uuid}"
        ) as refused:
            dump = backup(view, tmp_path / f"r{number}", options)
            seed(view, RELAY, at=None, dump=dump, in_place=False, as_json=False)
        assert refused.value.exit_code == ExitCode.FINDINGS and "--at" in str(refused.value)
    for number, options in enumerate(("", "server_id=0\n")):
        seed(view, RELAY, at=None, dump=backup(view, tmp_path / f"u{number}", options), in_place=False, as_json=False)
        assert "does not say of which server it is" in capsys.readouterr().out


def test_seed_wants_one_place(view: NamedView, tmp_path: Path) -> None:
    for at, dump, in_place in ((None, None, False), (f"{FILE}:4", tmp_path, False), (None, tmp_path, True)):
        with pytest.raises(CommandFailed) as refused:
            seed(view, RELAY, at=at, dump=dump, in_place=in_place, as_json=False)
        assert refused.value.exit_code == 2
    with pytest.raises(DumpRefused, match="none of metadata"):
        seed(view, RELAY, at=None, dump=tmp_path, in_place=False, as_json=False)


# --- skip and rebuild ------------------------------------------------------------------------------------------------


def test_skip_writes_the_decision_and_forgets_the_stop(view: NamedView, capsys: pytest.CaptureFixture[str]) -> None:
    view, stop = stopped(view)
    skip(view, at=f"{FILE}:{stop.offset}", yes=True, as_json=True)
    assert line(capsys) == {"view": "gtid", "file": FILE, "offset": stop.offset, "group_stop": stop.group_stop}
    assert skips_of(read_ledger(view.archive), "gtid") == {(1, FILE): {stop.offset: stop.group_stop}}
    with pytest.raises(CommandFailed, match="is not stopped"):
        skip(view, at=f"{FILE}:{stop.offset}", yes=True, as_json=True)


@pytest.mark.parametrize("offset", [4, 120, 121])
def test_skip_refuses_any_other_place_and_names_the_right_one(view: NamedView, offset: int) -> None:
    view, stop = stopped(view, 2)
    with pytest.raises(CommandFailed, match=f"stands stopped at {FILE}:{stop.offset}"):
        skip(view, at=f"{FILE}:{offset}", yes=True, as_json=False)
    assert not read_ledger(view.archive)


def test_skip_without_yes_and_without_somebody_to_ask_changes_nothing(
    view: NamedView, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, stop = stopped(view)
    with open(os.devnull) as nobody, pytest.raises(CommandFailed, match="Add --yes"):
        monkeypatch.setattr("sys.stdin", nobody)
        skip(view, at=f"{FILE}:{stop.offset}", yes=False, as_json=False)
    assert not read_ledger(view.archive)


def test_while_the_relay_runs_skip_and_rebuild_say_what_to_do(view: NamedView) -> None:
    view, stop = stopped(view)
    lock = take_lock(view.archive, FileLayer())
    try:
        call = rf"CALL binlog_relay\.view_skip\('gtid', '{FILE}', {stop.offset}\)"
        with pytest.raises(CommandFailed, match=call):
            skip(view, at=f"{FILE}:{stop.offset}", yes=True, as_json=False)
        with pytest.raises(CommandFailed, match="Stop it, run this again"):
            rebuild(view, UUID(OWN), as_json=False)
    finally:
        os.close(lock)
    assert (view.directory / FILE).exists()


def test_rebuild_removes_the_view_and_leaves_the_mirror(view: NamedView, capsys: pytest.CaptureFixture[str]) -> None:
    before = (view.archive / FILE).read_bytes()
    rebuild(view, UUID(OWN), as_json=False)
    assert "1 files" in capsys.readouterr().out and not view.directory.exists()
    assert (view.archive / FILE).read_bytes() == before
    rebuild(view, UUID(OWN), as_json=False)
    assert "has no files" in capsys.readouterr().out


def test_rebuild_says_that_what_was_skipped_stays_left_out(view: NamedView, capsys: pytest.CaptureFixture[str]) -> None:
    view, stop = stopped(view)
    skip(view, at=f"{FILE}:{stop.offset}", yes=True, as_json=True)
    capsys.readouterr()
    rebuild(view, UUID(OWN), as_json=False)
    assert "leaves out again what was skipped in it, 1 transactions" in capsys.readouterr().out
    rebuild(view, UUID(OWN), as_json=True)
    assert line(capsys)["left_out"] == 1


def test_a_view_that_would_have_other_gtids_is_not_removed(view: NamedView) -> None:
    """The source was another one when it was begun."""
    other = UUID("11111111-2222-3333-4444-555555555555")
    with pytest.raises(CommandFailed, match=f'uuid = "{OWN}"'):
        rebuild(view, other, as_json=False)
    assert (view.directory / FILE).exists()


async def test_a_view_that_would_be_numbered_otherwise_is_not_removed(view: NamedView) -> None:
    """What the archive has purged is not made again: numbers would begin at 1 with another transaction."""
    later = "mysql-bin.000002"
    binlog = BinlogBuilder().transaction(20)
    for path in view.archive.glob("*"):
        if path.is_file():
            path.unlink()
    await fill(view.archive, (later, binlog.data))
    places = [*places_of(view), ViewPlace(Position(later, 4), Position(later, 4), 3)]
    with pytest.raises(CommandFailed, match=r'start = \{ file = "mysql-bin.000002", position = 4, next = 4 \}'):
        rebuild(view_of(view.archive, places), UUID(OWN), as_json=False)
    assert (view.directory / FILE).exists()
    wrong = ViewStart(Position(later, 4), 5)
    with pytest.raises(CommandFailed, match="next = 4"):
        rebuild(view_of(view.archive, places, wrong), UUID(OWN), as_json=False)
    rebuild(view_of(view.archive, places, ViewStart(Position(later, 4), 4)), UUID(OWN), as_json=False)
    assert not view.directory.exists()


# --- archive verify --------------------------------------------------------------------------------------------------


def test_verify_of_an_archive_has_a_line_for_each_finding_in_a_view(
    view: NamedView, capsys: pytest.CaptureFixture[str]
) -> None:
    before = verify(view.archive, deep=True, as_json=False)
    capsys.readouterr()
    path = view.directory / FILE
    data = path.read_bytes()
    path.write_bytes(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    assert verify(view.archive, deep=True, as_json=False) == before + 1
    assert f"views/gtid/{FILE}:" in capsys.readouterr().out
    verify(view.archive, deep=True, as_json=True)
    assert any(json.loads(text).get("view") == "gtid" for text in capsys.readouterr().out.splitlines())
    assert verify(view.directory, deep=True, as_json=False) == 1  # as of any archive
