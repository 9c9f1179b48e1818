"""The manual page and the completions say what the command line says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.manual import manual_page, pages

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_what_is_in_the_repository_is_what_the_command_line_gives(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == pages()[path], "run: python -m deploy.manual"


@pytest.mark.skipif(shutil.which("man") is None, reason="man is missing")
def test_man_shows_the_page_without_a_warning() -> None:
    page = ROOT / "deploy" / "man" / "binlog-relay.1"
    done = subprocess.run(
        ["man", "--warnings", "-l", str(page)],
        capture_output=True,
        text=True,
        env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("check-config", "--config, -c FILE", "EXIT STATUS", "SIGHUP"):
        assert word in done.stdout


def test_each_command_and_option_is_in_the_page() -> None:
    page = manual_page().replace("\\-", "-")
    for words in ("run", "archive accept-gap", "view seed", "audit"):
        assert f'.SS "{words}"' in page
    for option in ("--deep", "--renumber", "--log-level", "--start-position"):
        assert f"\\fB{option}\\fR" in page


@pytest.mark.parametrize("word", ["view s", "archive re"])
def test_a_shell_is_told_what_may_come_next(tmp_path: Path, word: str) -> None:
    """bash, with the file as it is shipped, and the program under its name."""
    program = tmp_path / "binlog-relay"
    start = "import sys; sys.argv[0] = 'binlog-relay'; from relay.cli.command_line import main; main()"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{start}" "$@"\n')
    program.chmod(0o755)
    asked = f"""
        . deploy/completions/binlog-relay
        COMP_WORDS=(binlog-relay {word}); COMP_CWORD=2
        _binlog_relay_completion binlog-relay; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", asked],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == {"view s": ["seed", "skip"], "archive re": ["rebuild", "repair", "restore"]}[word], (
        done.stderr
    )
