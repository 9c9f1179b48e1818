"""The directory an audit leaves: whole or not at all, and nobody else's."""

import os
import socket
from pathlib import Path

import pytest

from relay.audit.runner.output import SUMMARY, check_output, write_summary, write_text, written_whole
from relay.commands.outcome import CommandFailed


def left_behind(directory: Path) -> list[str]:
    return sorted(name for name in os.listdir(directory) if name.startswith("."))


def test_what_was_written_appears_at_once_and_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with written_whole(out) as directory:
        assert not out.exists()
        write_text(directory / "report.html", "x")
        write_summary(directory, {"job": "x"})
    assert sorted(os.listdir(out)) == [SUMMARY, "report.html"]
    assert (out / "report.html").stat().st_mode & 0o777 == 0o640
    assert left_behind(tmp_path) == []


def test_a_run_that_fails_leaves_nothing_and_keeps_what_was_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with written_whole(out) as directory:
        write_summary(directory, {"run": 1})
    with pytest.raises(KeyboardInterrupt), written_whole(out) as directory:
        write_summary(directory, {"run": 2})
        raise KeyboardInterrupt
    assert '"run": 1' in (out / SUMMARY).read_text()
    assert left_behind(tmp_path) == []


def test_an_audit_is_written_anew_as_a_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for run in (1, 2):
        with written_whole(out) as directory:
            write_summary(directory, {"run": run})
            write_text(directory / f"only-{run}", "")
    assert sorted(os.listdir(out)) == [SUMMARY, "only-2"]
    assert left_behind(tmp_path) == []


def test_what_killed_runs_left_is_taken_away_and_what_they_set_aside_comes_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    host = socket.gethostname()
    dead = tmp_path / f".out.partial-{host}-999999999-aa"
    alive = tmp_path / f".out.partial-{host}-{os.getpid()}-bb"
    elsewhere = tmp_path / ".out.partial-another-machine-1-cc"
    aside = tmp_path / f".out.partial-{host}-999999998-dd.old"
    for path in (dead, alive, elsewhere, aside):
        path.mkdir()
    write_summary(aside, {"run": 0})
    with pytest.raises(ValueError, match="stop"), written_whole(out):
        raise ValueError("stop")
    assert (out / SUMMARY).exists()
    assert left_behind(tmp_path) == sorted([alive.name, elsewhere.name])


def test_an_audit_that_another_run_finished_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        pytest.raises(CommandFailed, match="while this one ran"),
        written_whole(out, replace=False),
        written_whole(out, replace=False) as other,
    ):
        write_summary(other, {"run": "other"})
    assert "other" in (out / SUMMARY).read_text()
    assert left_behind(tmp_path) == []


def test_a_link_to_an_empty_directory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    out = tmp_path / "out"
    out.symlink_to(tmp_path / "there")
    check_output(out, replace=False)
    with written_whole(out) as directory:
        write_summary(directory, {})
    assert os.listdir(tmp_path / "there") == [SUMMARY]
    assert out.is_symlink()


def test_what_is_not_an_audit_is_never_written_over(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    check_output(out, replace=False)
    (out / "thesis.txt").write_text("years of work")
    for replace in (False, True):
        with pytest.raises(CommandFailed, match="holds other things than an audit"):
            check_output(out, replace=replace)
    with pytest.raises(CommandFailed, match="filled by somebody else"), written_whole(out):
        pass
    assert os.listdir(out) == ["thesis.txt"]


def test_an_audit_is_written_over_only_when_asked_for(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with written_whole(out) as directory:
        write_summary(directory, {})
    with pytest.raises(CommandFailed, match="--replace writes it again"):
        check_output(out, replace=False)
    check_output(out, replace=True)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("file", "is no directory"),
        ("nowhere/out", "there is no directory"),
        ("x" * 240, "nothing can be made in .*: File name too long"),
        pytest.param(
            "/proc/out",
            "nothing can be made in /proc",
            marks=pytest.mark.skipif(not os.path.isdir("/proc"), reason="there is no /proc here"),
        ),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_any_work(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandFailed, match=why):
        check_output(tmp_path / name, replace=False)
