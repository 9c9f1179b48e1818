"""Installing packages: the lists are fetched first, once a run. What apt-get would do is written down by one of ours."""

import os
import subprocess
from pathlib import Path

import pytest

from deploy.servers import ServerUnavailable, packages

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="packages are installed as root")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An apt-get that writes down what it is asked for, and fails at the words of the file `fails` beside it."""
    log = tmp_path / "calls"
    log.write_text("")
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "apt-get"
    program.write_text(f'#!/bin/sh\necho "$1" >>{log}\n! grep -qx "$1" {tmp_path}/fails 2>/dev/null\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("BINLOG_RELAY_SERVERS", str(tmp_path))
    monkeypatch.setattr(packages._NoServices, "_POLICY", tmp_path / "policy-rc.d")
    # Set first, so that it is unset again when the test is over.
    monkeypatch.setenv("BINLOG_RELAY_PACKAGE_LISTS", "")
    return log


def called(calls: Path) -> list[str]:
    return calls.read_text().split()


def in_shell(script: str) -> subprocess.CompletedProcess[str]:
    head = "say() { :; }; . deploy/debian_packages.sh; "
    return subprocess.run(["bash", "-c", head + script], cwd=ROOT, capture_output=True, text=True, check=False)


def test_package_lists_are_fetched_before_the_first_package_and_not_again(calls: Path) -> None:
    packages.apt_install(["one"], "one")
    packages.apt_install(["two"], "two")
    assert called(calls) == ["update", "install", "install"]


def test_lists_that_cannot_be_fetched_are_no_error(calls: Path) -> None:
    calls.with_name("fails").write_text("update\n")
    packages.apt_install(["one"], "one")
    packages.apt_install(["two"], "two")
    assert called(calls) == ["update", "install", "install"]


def test_a_package_that_cannot_be_installed_is_named(calls: Path) -> None:
    calls.with_name("fails").write_text("install\n")
    with pytest.raises(ServerUnavailable, match="apt-get install one"):
        packages.apt_install(["one"], "the one")


def test_the_shell_fetches_the_lists_once_for_itself_and_for_the_servers(calls: Path) -> None:
    done = in_shell("apt_install one one && apt_install two two; env")
    assert done.returncode == 0
    assert called(calls) == ["update", "install", "install"]
    assert "BINLOG_RELAY_PACKAGE_LISTS=fetched" in done.stdout.splitlines()


def test_the_shell_installs_also_where_the_lists_cannot_be_fetched(calls: Path) -> None:
    calls.with_name("fails").write_text("update\n")
    assert in_shell("apt_install one one").returncode == 0
    assert called(calls) == ["update", "install"]


def test_the_shell_says_that_a_package_cannot_be_installed(calls: Path) -> None:
    calls.with_name("fails").write_text("install\n")
    assert in_shell("apt_install one one").returncode != 0
