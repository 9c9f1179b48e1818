"""Boundaries beside the output of stock mysqlbinlog."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from relay.commands.binlogs.annotate import Boundaries, Tally, annotated

RECORDED = Path(__file__).resolve().parents[3] / "deploy" / "recorded" / "mysql-bin.000005"
CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "recorded"


def printed_by_mysqlbinlog(path: Path = RECORDED) -> list[str]:
    program = shutil.which("mariadb-binlog") or shutil.which("mysqlbinlog")
    if program is None:
        pytest.skip("no mysqlbinlog on this machine")
    done = subprocess.run([program, str(path)], capture_output=True, check=True)
    return done.stdout.decode("latin-1").splitlines(keepends=True)


def test_every_event_that_mysqlbinlog_prints_gets_its_boundary_and_nothing_else_changes() -> None:
    lines = printed_by_mysqlbinlog()
    result = list(annotated(lines, Boundaries(RECORDED)))
    added = [line for line in result if line.startswith("# boundary: ")]
    assert len(added) == sum(line.startswith("# at ") for line in lines) > 50
    assert [line for line in result if not line.startswith("# boundary: ")] == lines
    begins = [result[index + 1] for index, line in enumerate(result) if line.startswith("# boundary: Start")]
    assert all("Query" in line or "Intvar" in line or "User_var" in line for line in begins)


def test_a_statement_that_looks_like_an_event_is_left_alone() -> None:
    boundaries = Boundaries(RECORDED)
    text = [
        "INSERT INTO t VALUES ('\n",
        "# at 120\n",
        "# at 196\n",
        "#261120 20:02:08 server id 1  end_log_pos 7\n",
        "')\n",
    ]
    assert list(annotated(text, boundaries)) == text


def test_events_that_mysqlbinlog_was_told_to_skip_do_not_matter() -> None:
    lines = printed_by_mysqlbinlog()
    place = [index for index, line in enumerate(lines) if line.startswith("# at ")][20]
    result = list(annotated(lines[place:], Boundaries(RECORDED)))
    assert result[1].startswith("# boundary: ")


def test_every_event_that_mysqlbinlog_prints_of_the_same_binlog_is_known() -> None:
    lines, tally = printed_by_mysqlbinlog(), Tally()
    list(annotated(lines, Boundaries(RECORDED), tally))
    assert tally == Tally(printed=sum(line.startswith("# at ") for line in lines), foreign=0)


@pytest.mark.parametrize(
    "path",
    [
        *(CORPUS / f"{name}.binlog" for name in ("mariadb", "mariadb-compressed", "mariadb118", "mysql56")),
        RECORDED.with_suffix(".000002"),
    ],
    ids=lambda path: path.name,
)
def test_no_event_of_a_binlog_is_foreign_to_it(path: Path) -> None:
    tally = Tally()
    list(annotated(printed_by_mysqlbinlog(path), Boundaries(path), tally))
    assert tally.printed > 3
    assert tally.foreign == 0


def test_an_event_with_another_end_is_foreign() -> None:
    tally = Tally()
    text = ["# at 4\n", "#261120 20:02:08 server id 1  end_log_pos 7\n"]
    assert list(annotated(text, Boundaries(RECORDED), tally)) == text
    assert tally == Tally(printed=1, foreign=1)


def test_an_event_that_a_server_made_up_for_the_connection_is_not_foreign() -> None:
    tally = Tally()
    list(annotated(["# at 4\n", "#700101  0:00:00 server id 1  end_log_pos 0 CRC32\n"], Boundaries(RECORDED), tally))
    assert tally == Tally(printed=0, foreign=0)


def test_a_binlog_that_is_not_the_printed_one_is_a_finding() -> None:
    source = "".join(f"# at {offset}\n#261120 20:02:08 server id 1  end_log_pos 99\n" for offset in (4, 5))
    done = subprocess.run(
        [sys.executable, "-m", "relay", "annotate", str(RECORDED)],
        input=source.encode(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, source.encode())
    message = f"2 of 2 events that mysqlbinlog printed are not in {RECORDED}: is it the same binlog?\n"
    assert done.stderr.decode() == message


def test_the_command_passes_bytes_of_any_encoding_through() -> None:
    source = b"# a comment \xff\xfe\r\nSELECT 1\n"
    done = subprocess.run(
        [sys.executable, "-m", "relay", "annotate", str(RECORDED)], input=source, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, source)


def test_a_file_that_is_no_binlog_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    done = subprocess.run(
        [sys.executable, "-m", "relay", "annotate", str(tmp_path / "text")], input=b"", capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"not a binlog" in done.stderr and b"Traceback" not in done.stderr


def test_headers_that_mysqlbinlog_holds_back_until_a_statements_last_event_are_no_hindrance() -> None:
    recorded = Path(__file__).resolve().parents[2] / "corpus" / "recorded" / "mariadb118.binlog"
    program = shutil.which("mariadb-binlog")
    if program is None:
        pytest.skip("no mariadb-binlog on this machine")
    done = subprocess.run([program, str(recorded)], capture_output=True, check=True)
    lines = done.stdout.decode("latin-1").splitlines(keepends=True)
    result = list(annotated(lines, Boundaries(recorded)))
    assert sum(line.startswith("# boundary: ") for line in result) == sum(line.startswith("# at ") for line in lines)
