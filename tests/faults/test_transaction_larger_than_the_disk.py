"""A transaction that does not fit on the archive's disk is asked for again when there is more room, and not before."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.verify import verify_archive
from tests.conftest import ServerFactory
from tests.support.binlog_comparison import check_archive
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess
from tests.support.small_disk import small_disk

pytestmark = pytest.mark.interop
ROWS, ROW_BYTES = 12, 4_000_000
# Without the wait for room the second and third attempt come after at most 2 and 4 s more.
UNTIL_THE_THIRD_S = 8.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs with room for about half of the transaction."""
    with small_disk(tmp_path / "disk", "24m") as place:
        yield place


def resize(disk: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


def attempts(relay: RelayProcess) -> int:
    return len(relay.logged("source_attached"))


def test_it_is_asked_for_again_when_there_is_more_room_and_the_ledger_says_so_once(
    servers: ServerFactory, tmp_path: Path, disk: Path
) -> None:
    source = servers("mysql56").start(server_id=1, options=["--binlog-format=ROW"])
    source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (v LONGBLOB) ENGINE=InnoDB"])
    sections: dict[str, dict[str, Any]] = {"archive": {"dir": str(disk)}, "[account]": {"admin": True}}
    with RelayProcess(tmp_path / "relay", source, port=free_port(), sections=sections) as relay:
        relay.archive = disk / "source"
        end = source.master_status()
        relay.wait_archived(end.file, end.position)
        insert = f"INSERT INTO d.t VALUES (REPEAT('x', {ROW_BYTES}))"
        source.execute_many(["BEGIN", *[insert] * ROWS, "COMMIT"])
        wait_until(lambda: relay.logged("source_lost"), "the full disk", 30)
        (lost,) = relay.logged("source_lost")
        place = f"{end.file}:{end.position}"
        assert f"The transaction at {place} is larger than the disk has room for" in lost["advice"]
        before = attempts(relay)
        deadline = time.monotonic() + UNTIL_THE_THIRD_S
        while time.monotonic() < deadline:
            assert attempts(relay) == before, "it is asked for again, and there is no more room"
            time.sleep(0.1)
        # What is there is served, and the operator may have it tried all the same.
        assert relay.sql("SHOW BINARY LOGS")[-1][:2] == (end.file, end.position)
        relay.sql("START SLAVE")
        wait_until(lambda: attempts(relay) == before + 1, "another attempt", 10)
        wait_until(lambda: len(relay.logged("source_lost")) == 2, "its end", 30)
        rows = [row for row in read_ledger(relay.archive) if row.kind == "write_failed"]
        assert len(rows) == 1
        assert place in rows[0].text
        assert "bytes of it were written" in rows[0].text
        assert "are free now" in rows[0].text
        resize(disk, "128m")
        end = source.master_status()
        relay.wait_archived(end.file, end.position, timeout_s=30)
        assert attempts(relay) == before + 2
        assert relay.stop() == 0
        check_archive(relay.archive, source.binlogs())
        assert list(verify_archive(relay.archive, deep=True)) == []
