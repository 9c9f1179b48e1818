"""The command line: what it prints, and how it ends."""

import errno
import json
import os
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

import relay.cli.command_line
from relay.binlog_file.binlog_scan import BinlogScan, Unreadable
from relay.commands.archive_command import print_table
from relay.commands.binlogs.positions_command import Standing, report_position, summarise_positions
from relay.commands.outcome import CommandFailed

ROOT = Path(__file__).parents[3]
ENCRYPTED = ROOT / "tests" / "corpus" / "encrypted" / "mariadb.binlog"
LENGTHS = bytes(
    [56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 95, 0, 4, 26, 8, 0, 0, 0, 8, 8, 8, 2, 0, 0, 0, 10, 10, 10]
)
TIME = 1_700_000_000


def event(event_type: int, body: bytes, at: int, flags: int = 0) -> bytes:
    size = 19 + len(body) + 4
    whole = struct.pack("<IBIIIH", TIME + at, event_type, 7, size, at + size, flags) + body
    return whole + struct.pack("<I", zlib.crc32(whole))


def binlog(*events: tuple[int, bytes]) -> bytes:
    fde = struct.pack("<H50sIB", 4, b"5.6.24-log", TIME, 19) + LENGTHS + b"\x01"
    data = bytearray(b"\xfebin")
    for event_type, body in ((15, fde), *events):
        data += event(event_type, body, len(data))
    return bytes(data)


def statement(text: bytes) -> tuple[int, bytes]:
    return 2, struct.pack("<IIBHH", 9, 0, 4, 0, 0) + b"shop\0" + text


XID = (16, struct.pack("<Q", 42))
GROUP = (statement(b"BEGIN"), statement(b"INSERT INTO t VALUES (1)"), XID)


def written(directory: Path, data: bytes) -> Path:
    path = directory / "mysql-bin.000001"
    path.write_bytes(data)
    return path


def starts(data: bytes) -> list[int]:
    """Offsets of all events, and the end."""
    places = [4]
    while places[-1] < len(data):
        places.append(places[-1] + int.from_bytes(data[places[-1] + 9 : places[-1] + 13], "little"))
    return places


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        self.lines = [line for line in out.splitlines() if not line.startswith("# file")]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["binlog-relay", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            relay.cli.command_line.main()
        captured = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), captured.out, captured.err)

    return run


def test_an_event_line_has_position_time_server_end_crc_type_boundary_and_essentials(command, tmp_path: Path) -> None:
    data = binlog(*GROUP)
    places = starts(data)
    line = command("events", written(tmp_path, data)).lines[1]
    expected = f"# {places[1]} 2023-11-14T22:15:"
    assert line.startswith(expected)
    assert line.endswith(f"server id 7 end_log_pos {places[2]} CRC32 ok Query, Start Transaction: [shop] BEGIN")


def test_a_good_file_has_no_findings(command, tmp_path: Path) -> None:
    result = command("events", written(tmp_path, binlog(*GROUP)))
    assert (result.code, result.err) == (0, "")


def test_json_lines_carry_the_same(command, tmp_path: Path) -> None:
    lines = command("events", "--json", written(tmp_path, binlog(*GROUP))).lines
    records = [json.loads(line) for line in lines]
    assert [record["boundary"] for record in records[1:]] == [
        "Start Transaction",
        "Inside Transaction",
        "End Transaction",
    ]
    assert (records[3]["type"], records[3]["description"], records[3]["crc"]) == ("Xid", "xid 42", "ok")


def test_a_violation_is_printed_where_it_happens_with_the_exact_text(command, tmp_path: Path) -> None:
    data = binlog(*GROUP, XID)
    places = starts(data)
    result = command("events", written(tmp_path, data))
    assert result.lines[-1] == (
        "# WARNING: Unable to change boundary parser from End Transaction to End Transaction. "
        f"Xid at {places[4]} follows Xid at {places[3]}"
    )
    assert result.code == 1


def test_a_violation_by_the_first_event_is_from_not_defined(command, tmp_path: Path) -> None:
    result = command("events", "--json", written(tmp_path, binlog(XID)))
    record = json.loads(result.lines[-1])
    assert record["violation"] == "Unable to change boundary parser from Not Defined to End Transaction."


def test_an_unknown_type_is_named_once(command, tmp_path: Path) -> None:
    result = command("events", written(tmp_path, binlog((99, b""), (99, b""))))
    assert sum("NOTE: Unknown event" in line for line in result.lines) == 1
    assert "Unknown(99), Ignore Boundary" in result.lines[1]


def test_a_wrong_checksum_is_a_finding_and_reading_goes_on(command, tmp_path: Path) -> None:
    data = bytearray(binlog(*GROUP))
    data[starts(data)[2] + 40] ^= 1
    result = command("events", written(tmp_path, bytes(data)))
    assert ["bad" in line for line in result.lines] == [False, False, True, False]
    assert result.code == 1


def test_a_file_cut_anywhere_ends_with_a_named_error_or_at_an_event(command, tmp_path: Path) -> None:
    data = binlog(*GROUP)
    places = starts(data)
    for size in range(places[1], len(data)):
        result = command("events", "--no-detail", written(tmp_path, data[:size]))
        if size in places:
            assert result.code == 0
        else:
            at = max(place for place in places if place < size)
            assert f"# ERROR: event_truncated at {at}:" in result.out
            assert result.code == 1


def test_an_impossible_length_ends_with_a_named_error(command, tmp_path: Path) -> None:
    data = bytearray(binlog(*GROUP))
    at = starts(data)[2]
    data[at + 9 : at + 13] = struct.pack("<I", 18)
    result = command("events", written(tmp_path, bytes(data)))
    assert f"# ERROR: event_length_wrong at {at}: Query announces 18 bytes" in result.out
    assert result.code == 1


@pytest.mark.parametrize(
    ("options", "types"),
    [
        (["--type", "xid"], ["Xid"]),
        (["--type", "16"], ["Xid"]),
        (["--boundary", "start"], ["Query"]),
        (["--boundary", "start", "--boundary", "end"], ["Query", "Xid"]),
        (["--since", "2033-01-01"], []),
        (["--until", "2033-01-01T00:00:00Z", "--type", "Xid"], ["Xid"]),
        (["--stop-position", "5"], ["Format_description"]),
        (["--start-position", "5", "--boundary", "ignore"], []),
    ],
)
def test_filters_leave_only_what_was_asked_for(command, tmp_path: Path, options: list[str], types: list[str]) -> None:
    lines = command("events", "--json", *options, written(tmp_path, binlog(*GROUP))).lines
    assert [json.loads(line)["type"] for line in lines] == types


def test_no_detail_leaves_statements_out(command, tmp_path: Path) -> None:
    assert "INSERT" not in command("events", "--no-detail", written(tmp_path, binlog(*GROUP))).out


def test_a_statement_of_several_megabytes_is_listed_by_its_head(command, tmp_path: Path) -> None:
    big = statement(b"INSERT INTO t VALUES ('" + b"x" * 3_000_000 + b"')")
    result = command("events", written(tmp_path, binlog(GROUP[0], big, XID)))
    assert [line.split("CRC32 ok ")[1].split(",")[0] for line in result.lines] == [
        "Format_description",
        "Query",
        "Query",
        "Xid",
    ]
    assert result.code == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["events", "/nonexistent"], "cannot be opened"),
        (["events", "--type", "qery", "/nonexistent"], "Did you mean Query"),
        (["events", "--boundary", "middle", "/nonexistent"], "write one of"),
        (["events", "--since", "soon", "/nonexistent"], "write a time such as"),
        (["positions", "/nonexistent"], "cannot be opened"),
        (["positions", str(ROOT / "pyproject.toml")], "is not a binlog"),
        (["check-config", "--config", "/nonexistent"], "cannot be read"),
        (["archive", "list", "--config", "/nonexistent"], "cannot be read"),
        (["archive", "find", "--config", str(ROOT / "deploy" / "relay.toml")], "either --gtid or --time"),
        (["no-such-command"], "No such command"),
        (["events"], "Missing argument"),
    ],
)
def test_wrong_use_ends_with_2_and_a_sentence(command, arguments: list[str], part: str) -> None:
    result = command(*arguments)
    assert part in result.err
    assert (result.code, "Traceback" in result.err) == (2, False)


def test_an_unexpected_error_is_one_line_without_a_traceback(command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BINLOG_RELAY_DEBUG", raising=False)
    monkeypatch.setattr(relay.cli.relay_commands, "loaded_config", lambda _path, **_how: 1 / 0)
    result = command("check-config", "--config", "x")
    assert (result.code, result.err.count("\n")) == (70, 1)
    assert "ZeroDivisionError at test_command_line.py" in result.err


def test_no_error_gives_a_terminal_orders_of_others(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (
        CommandFailed("it said \x1b[2J\x07\u202e:\n\tA second line.", 1),
        OSError(2, "gone", "\x1b]0;name\x07"),
        ValueError("\x9b2J"),
    ):

        def refused(error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(relay.cli.command_line, "_run", refused)
        with pytest.raises(SystemExit):
            relay.cli.command_line.main()
        told = capsys.readouterr().err
        assert all(line.isprintable() for line in told.rstrip("\n").split("\n")), ascii(told)
        assert isinstance(error, OSError | ValueError) or "\n    A second line." in told


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("groups", [1, 500])
def test_an_output_that_cannot_be_written_is_no_finding(tmp_path: Path, unbuffered: str, groups: int) -> None:
    path = written(tmp_path, binlog(*GROUP * groups))
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "relay", "events", str(path)],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            check=False,
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"No space left on device" in done.stderr and b"where the output goes" in done.stderr


def test_check_config_says_that_a_good_file_is_fine(command) -> None:
    result = command("check-config", "--config", ROOT / "deploy" / "relay.toml")
    assert (result.code, "is fine" in result.out) == (0, True)


def test_an_archive_that_is_not_there_is_wrong_use(command, tmp_path: Path) -> None:
    config = tmp_path / "relay.toml"
    config.write_text('[source]\nkind = "directory"\npath = "x"\n[archive]\ndir = "none"\n')
    for subcommand in (["list"], ["verify"], ["rebuild"], ["ledger"], ["find", "--gtid", "0-1-1"]):
        result = command("archive", *subcommand, "--config", config)
        assert (result.code, "There is no archive" in result.err) == (2, True)


def test_an_empty_directory_is_no_archive_and_stays_empty(command, tmp_path: Path) -> None:
    config = tmp_path / "relay.toml"
    config.write_text('[source]\nkind = "directory"\npath = "x"\n[archive]\ndir = "empty"\n')
    held = tmp_path / "empty" / "source"
    held.mkdir(parents=True)
    for subcommand in (["list"], ["verify"], ["rebuild"], ["ledger"], ["find", "--gtid", "0-1-1"]):
        result = command("archive", *subcommand, "--config", config)
        assert (result.code, "There is no archive" in result.err) == (2, True)
    assert list(held.iterdir()) == []


def test_an_archive_that_may_not_be_read_is_wrong_use_and_no_damage(
    command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "relay.toml"
    config.write_text('[source]\nkind = "directory"\npath = "x"\n[archive]\ndir = "held"\n')
    (tmp_path / "held" / "source").mkdir(parents=True)
    # Tests may run as root, whom nothing is forbidden.
    monkeypatch.setattr(os, "access", lambda path, mode: "held" not in str(path))
    for subcommand in ("list", "verify", "rebuild", "ledger"):
        result = command("archive", subcommand, "--config", config)
        assert (result.code, "may not be used by this user" in result.err) == (2, True)


def test_a_catalog_that_cannot_be_read_is_told_with_what_to_do(command, tmp_path: Path) -> None:
    config = tmp_path / "relay.toml"
    config.write_text('[source]\nkind = "directory"\npath = "x"\n[archive]\ndir = "held"\n')
    (tmp_path / "held" / "source").mkdir(parents=True)
    (tmp_path / "held" / "source" / "catalog.sqlite").write_bytes(bytes(range(256)) * 20)
    for subcommand in ("list", "ledger"):
        result = command("archive", subcommand, "--config", config)
        assert (result.code, "archive rebuild" in result.err) == (4, True)


def test_a_table_keeps_names_and_numbers_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    rows = [("mysql-bin.000001", "2026-11-20T20:36:26Z", "1234567890", "words " * 20)]
    print_table(("file", "first", "end", "text"), rows, numbers=(2,))
    shown = capsys.readouterr().out
    assert [cell in shown for cell in rows[0][:3]] == [True, True, True]


def test_help_comes_at_once() -> None:
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "relay", "--help"], cwd=ROOT, check=True, capture_output=True)
    # 0.4 s is the aim on an idle machine; the limit leaves room for a busy one.
    assert time.monotonic() - started < 4


def test_a_reader_that_stops_early_is_no_error(tmp_path: Path) -> None:
    path = written(tmp_path, binlog(*GROUP * 20_000))
    listing = subprocess.Popen(
        [sys.executable, "-m", "relay", "events", str(path)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert listing.stdout is not None and listing.stderr is not None
    os.read(listing.stdout.fileno(), 100)
    listing.stdout.close()
    error = listing.stderr.read()
    listing.stderr.close()
    assert (listing.wait(30), error) == (0, b"")


# --- positions -----------------------------------------------------------------------------------------------------


def test_every_offset_of_a_file_is_judged_right(tmp_path: Path) -> None:
    data = binlog(*GROUP, statement(b"CREATE TABLE t (a INT)"), *GROUP)
    places = starts(data)
    path = written(tmp_path, data)
    valid = {places[0], places[1], places[4], places[5], places[8]}
    for offset in range(len(data) + 3):
        report = report_position(path, offset)
        assert (report.standing is Standing.VALID) == (offset in valid)
        assert report.before == max((place for place in valid if place < offset), default=None)
        assert report.after == min((place for place in valid if place > offset), default=None)


def test_an_offset_between_the_events_of_a_transaction_names_the_transaction(tmp_path: Path) -> None:
    data = binlog(*GROUP)
    places = starts(data)
    report = report_position(written(tmp_path, data), places[2])
    assert (report.standing, report.group) == (Standing.INSIDE_TRANSACTION, (places[1], places[4]))


def test_an_offset_inside_an_event_names_event_and_transaction(tmp_path: Path) -> None:
    data = binlog(*GROUP)
    places = starts(data)
    report = report_position(written(tmp_path, data), places[2] + 1)
    assert (report.event, report.group) == ((places[2], places[3], "Query"), (places[1], places[4]))


def test_an_offset_past_the_end_names_the_end(tmp_path: Path) -> None:
    data = binlog(*GROUP)
    assert f"the file ends at {len(data)}" in str(report_position(written(tmp_path, data), len(data) + 1))


def test_a_transaction_that_the_file_does_not_finish_has_no_end(tmp_path: Path) -> None:
    data = binlog(*GROUP[:2])
    report = report_position(written(tmp_path, data), len(data))
    assert (report.standing, report.group) == (Standing.INSIDE_TRANSACTION, (starts(data)[1], None))


def test_positions_far_into_a_long_file_are_the_same(tmp_path: Path) -> None:
    data = binlog(*GROUP * 20_000)
    places = starts(data)
    report = report_position(written(tmp_path, data), places[50_000])
    assert (report.before, report.after) == (places[49_999], places[50_002] if (50_000 - 1) % 3 else places[50_003])


def test_a_summary_counts_all_valid_positions(tmp_path: Path) -> None:
    data = binlog(*GROUP, *GROUP)
    summary = summarise_positions(written(tmp_path, data))
    assert (summary.first, summary.last, summary.count) == (4, len(data), 4)


def test_positions_end_with_1_for_an_offset_that_is_none(command, tmp_path: Path) -> None:
    path = written(tmp_path, binlog(*GROUP))
    assert [command("positions", path, offset).code for offset in (4, 5)] == [0, 1]


def test_all_positions_are_listed_one_a_line(command, tmp_path: Path) -> None:
    data = binlog(*GROUP)
    places = starts(data)
    result = command("positions", "--all", written(tmp_path, data))
    assert result.out.split() == [str(places[0]), str(places[1]), str(places[4])]


def test_where_a_file_breaks_off_nothing_can_start(command, tmp_path: Path) -> None:
    data = binlog(*GROUP, *GROUP)
    broken_at = starts(data)[4]
    path = written(tmp_path, data[: broken_at + 9] + b"\x05\0\0\0" + data[broken_at + 13 :])
    result = command("positions", path, broken_at)
    assert (result.code, "cannot be read from there on (event_length_wrong" in result.out) == (1, True)
    assert "the end of the file" not in result.out


def test_a_wrong_checksum_of_an_event_that_is_read_in_pieces_is_a_finding(command, tmp_path: Path) -> None:
    big = statement(b"INSERT INTO t VALUES ('" + b"x" * 600_000 + b"')")
    data = bytearray(binlog(statement(b"BEGIN"), big, big, big, XID))
    place = starts(bytes(data))[3]  # a chunk of a megabyte ends in it
    data[place + 599_000] ^= 1
    path = written(tmp_path, bytes(data))
    shown = command("events", str(path))
    assert (shown.code, shown.out.count("checksum_mismatch"), f"checksum_mismatch at {place}" in shown.out) == (
        1,
        1,
        True,
    )
    lines = [json.loads(line) for line in command("events", "--json", str(path)).out.splitlines()]
    assert [line["position"] for line in lines if line.get("error") == "checksum_mismatch"] == [place]
    summary = command("positions", str(path))
    assert f"1 event has a wrong checksum, the first at {place}" in summary.out


def test_a_summary_tells_of_wrong_checksums(command, tmp_path: Path) -> None:
    data = bytearray(binlog(*GROUP, *GROUP))
    place = starts(bytes(data))[2]
    data[place + 25] ^= 0xFF
    result = command("positions", written(tmp_path, bytes(data)))
    assert (result.code, f"1 event has a wrong checksum, the first at {place}" in result.out) == (1, True)


def test_a_pipe_without_a_writer_is_not_waited_for(command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = command("events", tmp_path / "pipe")
    assert (result.code, "is no regular file" in result.err) == (2, True)


def test_a_closed_output_is_no_bug(tmp_path: Path) -> None:
    path = written(tmp_path, binlog(*GROUP))
    for subcommand in ("events", "positions"):
        ended = subprocess.run(
            ["/bin/sh", "-c", f'exec "$0" -m relay {subcommand} "$1" >&-', sys.executable, str(path)],
            cwd=ROOT,
            capture_output=True,
            timeout=30,
        )
        assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_file_encrypted_at_rest_is_named_and_not_guessed(command) -> None:
    result = command("events", ENCRYPTED)
    assert "# ERROR: binlog_encrypted at 256" in result.out
    assert len(result.lines) == 2


def test_a_file_encrypted_by_mysql_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="encrypted at rest by MySQL"):
        BinlogScan(written(tmp_path, b"\xfdbin" + bytes(600)))


def test_a_filter_that_hides_format_and_table_maps_does_not_take_the_details_away() -> None:
    recorded = Path(__file__).resolve().parents[3] / "deploy" / "recorded" / "mysql-bin.000005"
    shown = {}
    for kind in ("xid", "write_rows"):
        done = subprocess.run(
            [sys.executable, "-m", "relay", "events", "--type", kind, str(recorded)],
            capture_output=True,
            text=True,
            check=True,
        )
        shown[kind] = done.stdout.splitlines()[-1]
    assert shown["xid"].endswith(": xid 561")
    assert "workload.isam" in shown["write_rows"]


def config_with_archive(tmp_path: Path, place: str) -> Path:
    config = tmp_path / "relay.toml"
    config.write_text(f'[source]\nkind = "directory"\npath = "x"\n[archive]\ndir = "{place}"\n')
    return config


def test_check_config_makes_the_archives_directory_and_leaves_nothing(command, tmp_path: Path) -> None:
    result = command("check-config", "--config", config_with_archive(tmp_path, str(tmp_path / "a" / "b")))
    assert (result.code, "is fine" in result.out, (tmp_path / "a").exists()) == (0, True, False)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("/proc/archive", "cannot be made"),
        ("{tmp}/file/archive", "cannot be made"),
        ("/proc/self", "cannot be made"),
    ],
)
def test_check_config_says_where_the_archive_cannot_be(command, tmp_path: Path, place: str, words: str) -> None:
    (tmp_path / "file").touch()
    config = config_with_archive(tmp_path, place.format(tmp=tmp_path))
    result = command("check-config", "--config", config)
    assert (result.code, words in result.err, "[archive] dir" in result.err) == (2, True, True)


def test_check_config_says_that_the_archive_cannot_be_written(
    command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    result = command("check-config", "--config", config_with_archive(tmp_path, str(tmp_path / "a")))
    assert (result.code, "cannot be written in" in result.err, "No space left" in result.err) == (2, True, True)
    assert not (tmp_path / "a").exists()
