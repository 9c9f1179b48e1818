"""Who watches the archive: told in order, and a fault of one is told once and keeps nobody else waiting."""

import asyncio
from pathlib import Path

import structlog.testing

from relay.archive.generation import Generation
from relay.archive.storage.watchers import Watchers
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder

NAME = "mysql-bin.000001"


def test_all_are_told_until_they_are_removed() -> None:
    watchers, told = Watchers(), []

    def first() -> None:
        told.append("first")
        watchers.remove(first)

    def second() -> None:
        told.append("second")

    for callback in (first, second):
        watchers.add(callback)
    watchers.notify()
    watchers.notify()
    watchers.remove(first)
    assert told == ["first", "second", "second"]


def test_a_fault_is_told_once_and_again_after_it_went_well() -> None:
    watchers, told, bad = Watchers(), [], [True, True, False, True, True]

    def faulty() -> None:
        if bad.pop(0):
            raise ZeroDivisionError("a bug")

    watchers.add(faulty)
    watchers.add(lambda: told.append(True))
    with structlog.testing.capture_logs() as logs:
        for _ in range(5):
            watchers.notify()
    assert len(told) == 5
    assert [(line["event"], line["log_level"]) for line in logs] == [("archive_watcher_failed", "error")] * 2
    assert "faulty" in logs[0]["watcher"] and isinstance(logs[0]["exc_info"], ZeroDivisionError)
    watchers.remove(faulty)
    watchers.notify()


async def test_the_archive_goes_on_whoever_fails_that_watches_it(tmp_path: Path) -> None:
    """Buffers come back, the sync is told: what the source waits for is not kept by who shows a number."""
    generation = await Generation.open(tmp_path)

    def faulty() -> None:
        raise ZeroDivisionError("a bug")

    synced: list[object] = []
    generation.watch(faulty)
    generation.watch_sync(lambda: synced.append(generation.synced))
    built = BinlogBuilder().ddl().transaction(30)
    with structlog.testing.capture_logs() as logs:
        await generation.begin_file(NAME)
        await append_all(generation, built.data)
        generation.sync_up_to(NAME, built.size)
        async with asyncio.timeout(10):
            while generation.synced is None or generation.synced.offset < built.size:
                await asyncio.sleep(0.005)
    assert generation.queued_bytes == 0 and synced and synced[-1] == generation.end
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["archive_watcher_failed"]
    await generation.close()
