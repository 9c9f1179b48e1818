"""A fault of ours in one of the archive's threads: told with a traceback, the archive has failed, and nothing waits for ever."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from relay.archive.generation import Generation, GenerationState
from relay.archive.gtids.gtid_recorder import GtidRecorder
from relay.archive.recovery import digest
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.files import FileLayer
from relay.archive.write.options import ArchiveOptions, SyncPolicy
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.verify import verify_archive
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder

NAME = "mysql-bin.000001"


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def fail(*_what: object) -> Any:
    raise ZeroDivisionError("a bug")


def the_fault(logs: list[Any], event: str) -> None:
    (line,) = [line for line in logs if line["log_level"] == "error" and line["event"] != "archive_failed"]
    assert (line["event"], type(line["exc_info"])) == (event, ZeroDivisionError)
    assert line["exc_info"].__traceback__ is not None


async def test_the_writer_goes_on_where_the_archive_was_whole_once_it_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = BinlogBuilder().ddl().transaction(30)
    generation = await Generation.open(tmp_path, ArchiveOptions(on_failure=lambda error: None))
    await generation.begin_file(NAME)
    await append_all(generation, built.data)
    start = built.size
    built.transaction(20)
    with structlog.testing.capture_logs() as logs, monkeypatch.context() as patched:
        patched.setattr(GtidRecorder, "take", fail)
        with contextlib.suppress(ArchiveWriteError, TimeoutError):
            async with asyncio.timeout(1):
                await append_all(generation, built.data, start=start)
        await until(lambda: generation.state is GenerationState.FAILED)
    the_fault(logs, "archive_writer_failed")
    assert generation.failure is not None and "by a fault of binlog-relay" in str(generation.failure)
    end = await generation.reopen_writer()
    assert end is not None and end.offset == start
    await append_all(generation, built.data, start=start)
    async with asyncio.timeout(10):
        await generation.close()
    assert (tmp_path / NAME).read_bytes() == bytes(built.data)
    assert list(verify_archive(tmp_path, deep=True)) == []


class BadSync(FileLayer):
    armed = False

    def sync_data(self, fd: int) -> None:
        if self.armed and threading.current_thread().name == "archive-sync":
            fail()
        super().sync_data(fd)


async def test_a_sync_that_ends_by_surprise_has_failed(tmp_path: Path) -> None:
    layer = BadSync()
    generation = await Generation.open(
        tmp_path,
        ArchiveOptions(sync=SyncPolicy.INTERVAL, sync_interval_s=0.02, on_failure=lambda error: None),
        layer=layer,
    )
    await generation.begin_file(NAME)
    layer.armed = True
    with structlog.testing.capture_logs() as logs:
        built = BinlogBuilder().ddl()
        await append_all(generation, built.data)
        await until(lambda: generation.state is GenerationState.FAILED)
    layer.armed = False
    the_fault(logs, "archive_sync_failed")
    end = await generation.reopen_writer()
    assert end is not None and end.offset == built.size
    await until(lambda: generation.synced == end)
    async with asyncio.timeout(10):
        await generation.close()


async def test_a_change_of_the_catalog_that_ends_by_surprise_fails_the_archive(tmp_path: Path) -> None:
    generation = await Generation.open(tmp_path, ArchiveOptions(on_failure=lambda error: None))
    faults = 1

    def change(_catalog: object) -> None:
        nonlocal faults
        faults -= 1
        if faults == 0:
            fail()

    with structlog.testing.capture_logs() as logs:
        generation._catalog.submit(change)
        generation.append_ledger("gap", NAME, 4, "behind it in line")
        await until(lambda: generation.state is GenerationState.FAILED)
    the_fault(logs, "catalog_failed")
    await generation.reopen_writer()
    async with asyncio.timeout(10):
        await generation.close()
    assert [row.text for row in read_ledger(tmp_path)] == ["behind it in line"]


async def test_a_digest_that_ends_by_surprise_is_in_the_ledger_and_the_next_file_gets_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation = await Generation.open(tmp_path)
    second = "mysql-bin.000002"
    made = digest.checked_digest

    def fails_on_the_first(layer: FileLayer, path: Path, *more: Any) -> Any:
        return fail() if path.name == NAME else made(layer, path, *more)

    monkeypatch.setattr(digest, "checked_digest", fails_on_the_first)
    with structlog.testing.capture_logs() as logs:
        for name, following in ((NAME, second), (second, "mysql-bin.000003")):
            await generation.begin_file(name)
            await append_all(generation, BinlogBuilder().ddl().rotate(following).data)
        await generation.begin_file("mysql-bin.000003")
        await until(lambda: generation.files[1].digest)
    assert generation.files[0].digest is None
    told = [line["event"] for line in logs if line["log_level"] == "error"]
    assert told == ["digest_failed", "archive_digest_failed"]
    async with asyncio.timeout(10):
        await generation.close()
    assert [row.kind for row in read_ledger(tmp_path)] == ["digest_failed"]
