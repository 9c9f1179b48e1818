"""What somebody decides about a stopped view is on the disk before anything is made by it, and nothing is tried meanwhile."""

import asyncio
import errno
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.errors import StatementRefused
from relay.archive.archive import Archive
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.generation import Generation
from relay.archive_inspection.listing import read_ledger
from relay.view.view_skips import skips_of
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.view_making import UUID_OF_VIEW, made_view, marked, settings, until, until_made

SOURCE = "mysql-bin.000001"
CANNOT_BE_KEPT = "CREATE TABLE d.p (a INT) ENGINE=MyISAM PARTITION BY HASH (a) PARTITIONS 2"


def binlog() -> tuple[BinlogBuilder, int]:
    made = BinlogBuilder("mysql", version="5.6.24-log").transaction(10)
    at = made.size
    return made.query(CANNOT_BE_KEPT).transaction(10), at


@pytest.fixture
async def mirror(tmp_path: Path) -> AsyncIterator[Archive]:
    await fill(tmp_path / "source", (SOURCE, marked(binlog()[0].data)))
    archive = await Archive.open(tmp_path / "source")
    yield archive
    await archive.close()


class Held:
    """Of the archive's generations: writing a row of the ledger lasts until `go_on`, and then fails or not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.may_go = threading.Event(), threading.Event()
        self.fails = False
        really = Generation.write_ledger

        def write(generation: Generation, row: LedgerRow) -> None:
            self.asked.set()
            assert self.may_go.wait(20)
            if self.fails:
                raise OSError(errno.EIO, "the ledger cannot be written", "catalog.sqlite")
            really(generation, row)

        monkeypatch.setattr(Generation, "write_ledger", write)


async def test_nothing_is_made_without_a_transaction_before_the_ledger_says_so(
    mirror: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash the relay would make the view with it, or stop there again, while replicas have it without."""
    at = binlog()[1]
    async with made_view(mirror, settings()) as view:
        await until(view, lambda status: status.stop is not None and bool(str(view.archive.executed)))
        held = Held(monkeypatch)
        skipping = asyncio.create_task(view.skip(SOURCE, at, "a test"))
        await asyncio.to_thread(held.asked.wait, 20)
        for _ in range(20):
            await asyncio.sleep(0.005)
            assert str(view.archive.executed) == f"{UUID_OF_VIEW}:1"
            assert view.status.stop is not None
        held.may_go.set()
        await skipping
        assert at in skips_of(read_ledger(mirror.directory), "v")[1, SOURCE]
        await until(view, lambda status: status.stop is None and status.behind_bytes == 0)
        await until_made(view)
        assert str(view.archive.executed) == f"{UUID_OF_VIEW}:1-3"


async def test_a_decision_that_cannot_be_written_changes_nothing_and_can_be_made_again(
    mirror: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = binlog()[1]
    async with made_view(mirror, settings()) as view:
        await until(view, lambda status: status.stop is not None)
        held = Held(monkeypatch)
        held.fails = True
        held.may_go.set()
        with pytest.raises(StatementRefused, match="could not be written into the ledger") as refused:
            await view.skip(SOURCE, at, "a test")
        assert "the ledger cannot be written" in refused.value.what
        assert not skips_of(read_ledger(mirror.directory), "v")
        held.fails = False
        await view.skip(SOURCE, at, "a test")
        await until(view, lambda status: status.stop is None and status.behind_bytes == 0)


async def test_a_running_view_is_not_waited_for(mirror: Archive) -> None:
    async with made_view(mirror, settings(engines="innodb")) as view:
        await until_made(view)
        assert view.status.stop is None
        async with asyncio.timeout(1):
            with pytest.raises(StatementRefused, match="does not stand still"):
                await view.skip(SOURCE, 4, "a test")
