"""Root works in another's archive as that other: in processes of their own, since there is no way back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

OTHER = 65534
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
SCRIPT = """
import os, sys
from pathlib import Path
from relay.disk.file_owner import NotTheOwner, become_owner
from relay.disk import file_owner
if sys.argv[3] == "refused":
    def refuse(*_): raise PermissionError(1, "Operation not permitted")
    os.setresuid = refuse
directory = Path(sys.argv[1])
try:
    name = become_owner(directory, directory.parent, reads_all=sys.argv[3] != "stays")
except NotTheOwner as error:
    sys.exit(str(error))
(directory / "made").write_text("x") if not directory.is_symlink() else None
try:
    Path(sys.argv[2]).open("a")
except PermissionError:
    print(name, os.getresuid(), os.getresgid(), os.getgroups(), Path(sys.argv[2]).read_text())
else:
    print("the victim can be written")
"""


def run(directory: Path, victim: Path, how: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(directory), str(victim), how], capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text("secret")
    path.chmod(0o600)
    return path


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "top" / "source"
    path.mkdir(parents=True)
    for place in (path.parent, path):
        os.chown(place, OTHER, OTHER)
    return path


@ROOT_ONLY
def test_root_becomes_the_owner_for_good_and_still_reads_what_only_root_reads(archive: Path, victim: Path) -> None:
    done = run(archive, victim)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == f"nobody {(OTHER,) * 3} {(OTHER,) * 3} [{OTHER}] secret"
    assert (archive / "made").stat().st_uid == OTHER


@ROOT_ONLY
def test_the_directory_above_says_whose_it_is_where_a_link_stands_in_its_place(archive: Path, victim: Path) -> None:
    archive.rmdir()
    archive.symlink_to("/root")
    done = run(archive, victim)
    assert done.stdout.startswith("nobody ")


@ROOT_ONLY
def test_where_root_may_not_become_another_user_it_is_told_what_to_type(archive: Path, victim: Path) -> None:
    done = run(archive, victim, "refused")
    assert done.returncode == 1
    assert "belongs to nobody, and root changes nothing there" in done.stderr
    assert "runuser -u nobody -- binlog-relay" in done.stderr


@ROOT_ONLY
def test_the_relay_itself_keeps_no_right_of_roots(archive: Path, victim: Path) -> None:
    done = run(archive, victim, "stays")
    assert "secret" not in done.stdout  # and where this Python is root's alone, it says so
    assert "part of the program" in done.stderr or "Permission denied" in done.stderr


@ROOT_ONLY
def test_an_archive_of_roots_is_roots(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "source").mkdir()
    assert run(tmp_path / "source", victim).stdout == "the victim can be written\n"
