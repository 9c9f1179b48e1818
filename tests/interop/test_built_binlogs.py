"""Stock mariadb-binlog reads the built files of tests/corpus as what they are meant to be."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import need_server
from tests.corpus.build import BUILT, STORED, mariadb100_long
from tests.corpus.test_corpus_boundaries import events_of

pytestmark = pytest.mark.interop

REFUSED = {"mysql51-incident"}  # as servers do
REFUSED_SINCE_2026 = {"mariadb106-broken-extra-data"}  # 10.11.19 does; earlier ones read it


def read(path: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    """What mariadb-binlog prints of a file; what LOAD DATA would load goes to `directory`."""
    program = need_server("mariadb").mysqlbinlog()
    options = ["--no-defaults", "--base64-output=decode-rows", "--verbose", f"--local-load={directory}"]
    return subprocess.run([*program, *options, str(path)], capture_output=True, text=True, check=False)


def places(path: Path) -> list[int]:
    """Where each event begins."""
    at = 4
    found = []
    for event in events_of(path):
        found.append(at)
        at += len(event)
    return found


@pytest.mark.parametrize("name", sorted(STORED.keys() - REFUSED - REFUSED_SINCE_2026))
def test_a_built_file_is_read_to_its_end_event_by_event(tmp_path: Path, name: str) -> None:
    path = BUILT / f"{name}.binlog"
    done = read(path, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [int(place) for place in re.findall(r"^# at (\d+)$", done.stdout, re.MULTILINE)] == places(path)


def test_the_long_file_is_read_to_its_end_event_by_event(tmp_path: Path) -> None:
    path = tmp_path / "bin.000001"
    path.write_bytes(mariadb100_long())
    done = read(path, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    found = [int(place) for place in re.findall(r"^# at (\d+)$", done.stdout, re.MULTILINE)]
    assert (len(found), found) == (7754, places(path))


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_an_event_that_servers_refuse_is_refused(tmp_path: Path, name: str) -> None:
    done = read(BUILT / f"{name}.binlog", tmp_path)
    assert (done.returncode, "Could not read entry at offset 106" in done.stderr) == (1, True)


@pytest.mark.parametrize("name", sorted(REFUSED_SINCE_2026))
def test_an_event_that_new_servers_refuse_is_refused_or_read_to_its_end(tmp_path: Path, name: str) -> None:
    path = BUILT / f"{name}.binlog"
    done = read(path, tmp_path)
    if done.returncode:
        assert "Could not read entry at offset 256" in done.stderr
    else:
        assert [int(place) for place in re.findall(r"^# at (\d+)$", done.stdout, re.MULTILINE)] == places(path)


def test_a_partial_update_has_the_columns_that_its_bitmaps_name(tmp_path: Path) -> None:
    shown = read(BUILT / "mysql51-partial-update.binlog", tmp_path).stdout
    assert "### UPDATE `shop`.`stock`\n### WHERE\n###   @1=8\n###   @3=24\n### SET\n###   @1=8\n###   @3=99\n" in shown
    assert "### DELETE FROM `shop`.`stock`\n### WHERE\n###   @1=6\n#" in shown


@pytest.mark.parametrize("name", ["mysql41-load-data", "mysql51-beta", "mysql51-telco"])
def test_load_data_has_all_of_its_blocks(tmp_path: Path, name: str) -> None:
    shown = read(BUILT / f"{name}.binlog", tmp_path).stdout
    assert "LOAD DATA LOCAL INFILE" in shown
    (loaded,) = (path.read_bytes() for path in tmp_path.iterdir())
    assert (len(loaded), loaded[:8]) == (1170, b"crate 0\n")
