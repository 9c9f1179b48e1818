"""Boundaries beside the output of stock mysqlbinlog."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from relay.commands.annotate import Boundaries, annotated

RECORDED = Path(__file__).resolve().parents[2] / "deploy" / "recorded" / "mysql-bin.000005"


def printed_by_mysqlbinlog() -> list[str]:
    program = shutil.which("mariadb-binlog") or shutil.which("mysqlbinlog")
    if program is None:
        pytest.skip("no mysqlbinlog on this machine")
    done = subprocess.run([program, str(RECORDED)], capture_output=True, check=True)
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
