"""An archive that is copied while its relay writes it: the copy is whole up to some transaction, and a relay goes on from there."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.binlog_comparison import check_archive
from tests.support.chain import Chain, wait_until
from tests.support.free_port import free_port
from tests.support.hand_over import write_load
from tests.support.relay_process import RelayProcess

pytestmark = pytest.mark.interop

Wait = Callable[[], None]


def by_cp(archive: Path, copy: Path, wait: Wait) -> None:
    subprocess.run(["cp", "-a", str(archive), str(copy)], check=True)


def by_tar(archive: Path, copy: Path, wait: Wait) -> None:
    copy.mkdir()
    made = copy.parent / "archive.tar"
    # GNU tar ends with 1 where a file grew while it was read.
    assert subprocess.run(["tar", "-C", str(archive), "-cf", str(made), "."], check=False).returncode in (0, 1)
    subprocess.run(["tar", "-C", str(copy), "-xf", str(made)], check=True)


def binlogs_first(archive: Path, copy: Path, wait: Wait) -> None:
    copy_in_turn(archive, copy, wait, binlogs_first=True)


def binlogs_last(archive: Path, copy: Path, wait: Wait) -> None:
    copy_in_turn(archive, copy, wait, binlogs_first=False)


def without_the_catalog(archive: Path, copy: Path, wait: Wait) -> None:
    shutil.copytree(archive, copy, ignore=shutil.ignore_patterns("catalog.sqlite*"))


def copy_in_turn(archive: Path, copy: Path, wait: Wait, *, binlogs_first: bool) -> None:
    """Binlogs, and what is known of them, of different times."""
    copy.mkdir()
    for turn in (binlogs_first, not binlogs_first):
        for path in sorted(archive.iterdir()):
            if path.is_file() and path.name.startswith("mysql-bin.0") == turn:
                shutil.copy2(path, copy / path.name)
        wait()


@pytest.mark.parametrize("copied", [by_cp, by_tar, binlogs_first, binlogs_last, without_the_catalog])
def test_a_relay_goes_on_from_a_copy_of_a_running_ones_archive(
    servers: ServerFactory, tmp_path: Path, copied: Callable[[Path, Path, Wait], None]
) -> None:
    other = tmp_path / "other"
    with Chain(servers, "mysql56", tmp_path / "first") as chain, write_load(chain.source) as count:

        def wait_for_more() -> None:
            begun = count()
            wait_until(lambda: count() > begun + 50, "the load goes on")

        wait_for_more()
        copy = other / "archive" / "source"
        copy.parent.mkdir(parents=True)
        copied(chain.relay.archive, copy, wait_for_more)
        (copy / "server_uuid").unlink()
        relay = RelayProcess(other, chain.source, port=free_port(), server_id=4243)
        verified = relay.command("archive", "verify")
        assert verified.returncode == 0 or copied in (binlogs_first, without_the_catalog), verified.stdout
        with relay:
            wait_for_more()
            assert not chain.relay.logged("source_lost")
            end = chain.source.master_status()
            relay.wait_archived(end.file, end.position)
            assert check_archive(copy, chain.source.binlogs()[:2]) > 0
        verified = relay.command("archive", "verify")
        assert verified.returncode == 0, verified.stdout
