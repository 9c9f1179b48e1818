"""The thread that syncs, by itself: when it syncs, what it reports, and what it leaves alone."""

import errno
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue

import pytest

from relay.archive.generation import Generation
from relay.archive.storage.files import FileLayer
from relay.archive.write.options import ArchiveOptions, SyncPolicy
from relay.archive.write.sync_thread import Checkpoint, SyncThread, Written
from relay.archive_inspection.listing import list_archive
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder

NAME = "mysql-bin.000001"
LONG_S = 10.0
SHORT_S = 0.15


class Disk(FileLayer):
    """Notes what is synced. While `held` is clear a sync waits; `broken`: it fails."""

    def __init__(self) -> None:
        self.synced: list[int] = []
        self.begun = threading.Semaphore(0)
        self.held = threading.Event()
        self.held.set()
        self.broken = False

    def sync_data(self, fd: int) -> None:
        self.begun.release()
        assert self.held.wait(LONG_S)
        if self.broken:
            raise OSError(errno.EIO, "Input/output error")
        self.synced.append(fd)


class File:
    """A file that is synced, and how often its indexes were."""

    def __init__(self, name: str = NAME, fd: int = 100) -> None:
        self.name = name
        self.fd = fd
        self.indexes_synced = 0

    def sync_indexes(self, layer: FileLayer) -> None:
        self.indexes_synced += 1

    def up_to(self, boundary: int) -> Written:
        return Written(self, boundary, boundary, boundary // 10, boundary // 100, 1_700_000_000)


class Reported:
    """What a thread has told."""

    def __init__(self) -> None:
        self.told: SimpleQueue[tuple[str, int] | Checkpoint | OSError] = SimpleQueue()

    def synced(self, name: str, boundary: int) -> None:
        self.told.put((name, boundary))

    def next_boundary(self) -> int:
        """Of the next report of a sync; checkpoints are passed over."""
        while isinstance(report := self.told.get(timeout=LONG_S), Checkpoint):
            pass
        assert not isinstance(report, OSError), report
        return report[1]

    def is_silent(self) -> bool:
        try:
            self.told.get(timeout=SHORT_S)
        except Empty:
            return True
        return False


@contextmanager
def started(disk: FileLayer, policy: SyncPolicy, interval_s: float = 3600.0) -> Iterator[tuple[SyncThread, Reported]]:
    reported = Reported()
    thread = SyncThread(
        disk,
        policy,
        interval_s,
        on_synced=reported.synced,
        on_checkpoint=reported.told.put,
        on_failure=reported.told.put,
    )
    thread.start()
    try:
        yield thread, reported
    finally:
        thread.stop()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_under_the_policy_transaction_what_grows_is_synced_at_once() -> None:
    disk, file = Disk(), File()
    with started(disk, SyncPolicy.TRANSACTION) as (thread, reported):
        thread.begin_at(file.up_to(4))
        assert reported.is_silent()
        thread.grow(file.up_to(500), (1, 4))
        assert reported.next_boundary() == 500
        assert disk.synced == [file.fd]


def test_under_the_policy_interval_what_has_grown_is_synced_once() -> None:
    disk, file = Disk(), File()
    with started(disk, SyncPolicy.INTERVAL, 0.02) as (thread, reported):
        thread.grow(file.up_to(500), (1, 4))
        assert reported.next_boundary() == 500
        assert reported.is_silent()
        assert disk.synced == [file.fd]


def test_under_the_policy_none_only_what_is_wanted_is_synced() -> None:
    file = File()
    with started(Disk(), SyncPolicy.NONE) as (thread, reported):
        thread.grow(file.up_to(500), (1, 4))
        assert reported.is_silent()
        thread.want(1, 500)
        assert reported.next_boundary() == 500
        thread.grow(file.up_to(600), (1, 500))
        assert reported.is_silent()


def test_what_is_wanted_before_it_is_written_is_synced_when_it_is() -> None:
    file = File()
    with started(Disk(), SyncPolicy.NONE) as (thread, reported):
        thread.begin_at(file.up_to(500))
        thread.want(1, 800)
        assert reported.next_boundary() == 500
        thread.grow(file.up_to(700), (1, 500))
        assert reported.next_boundary() == 700
        thread.grow(file.up_to(800), (1, 700))
        assert reported.next_boundary() == 800
        thread.grow(file.up_to(900), (1, 800))
        assert reported.is_silent()


def test_one_sync_covers_all_that_was_written_during_the_one_before() -> None:
    disk, file = Disk(), File()
    disk.held.clear()
    with started(disk, SyncPolicy.TRANSACTION) as (thread, reported):
        thread.grow(file.up_to(500), (1, 4))
        assert disk.begun.acquire(timeout=LONG_S)
        for end in (600, 700, 800):
            thread.grow(file.up_to(end), (1, end - 100))
        disk.held.set()
        assert [reported.next_boundary(), reported.next_boundary()] == [500, 800]
        assert len(disk.synced) == 2


def test_a_checkpoint_is_made_once_a_second_and_before_the_report_of_its_sync() -> None:
    file = File()
    with started(Disk(), SyncPolicy.TRANSACTION) as (thread, reported):
        thread.grow(file.up_to(500), (1, 4))
        assert reported.told.get(timeout=LONG_S) == Checkpoint(NAME, 500, 50, 5, 1_700_000_000)
        assert reported.told.get(timeout=LONG_S) == (NAME, 500)
        thread.grow(file.up_to(600), (1, 500))
        assert reported.told.get(timeout=LONG_S) == (NAME, 600)
    assert file.indexes_synced == 1


def test_what_was_withdrawn_is_not_synced() -> None:
    disk, file = Disk(), File()
    with started(disk, SyncPolicy.NONE) as (thread, reported):
        thread.begin_at(file.up_to(500))
        thread.withdraw()
        thread.want(1, 500)
        assert reported.is_silent()
    assert disk.synced == []


def test_what_is_withdrawn_while_the_thread_waits_for_its_turn_is_not_synced() -> None:
    disk, file = Disk(), File()
    with started(disk, SyncPolicy.TRANSACTION) as (thread, reported):
        with thread.paused():
            thread.grow(file.up_to(500), (1, 4))
            time.sleep(SHORT_S)
            thread.withdraw()
        assert reported.is_silent()
    assert disk.synced == []


def test_paused_waits_for_the_sync_that_is_at_work() -> None:
    disk, file = Disk(), File()
    disk.held.clear()
    closed_at: list[int] = []
    with started(disk, SyncPolicy.TRANSACTION) as (thread, reported):
        thread.grow(file.up_to(500), (1, 4))
        assert disk.begun.acquire(timeout=LONG_S)
        thread.withdraw()

        def close() -> None:
            with thread.paused():
                closed_at.append(len(disk.synced))

        closing = threading.Thread(target=close)
        closing.start()
        closing.join(SHORT_S)
        assert closed_at == []
        disk.held.set()
        closing.join(LONG_S)
        assert reported.next_boundary() == 500
    assert closed_at == [1]


def test_behind_a_failure_nothing_counts_until_the_bytes_were_written_again() -> None:
    disk, file = Disk(), File()
    disk.broken = True
    with started(disk, SyncPolicy.TRANSACTION) as (thread, reported):
        thread.grow(file.up_to(500), (1, 4))
        failure = reported.told.get(timeout=LONG_S)
        assert isinstance(failure, OSError) and failure.errno == errno.EIO
        disk.broken = False
        thread.grow(file.up_to(600), (1, 500))
        assert reported.is_silent()
        with pytest.raises(OSError, match="a sync before this one failed"), thread.paused():
            thread.sync_here(file.fd)
        assert disk.synced == []
        thread.begin_again()
        with thread.paused():
            thread.sync_here(file.fd)
        thread.grow(file.up_to(700), (1, 600))
        assert reported.next_boundary() == 700


def test_a_file_cut_back_while_the_thread_waits_for_its_turn_is_counted_as_it_is(tmp_path: Path) -> None:
    class Counted(File):
        def up_to_tail(self, boundary: int, end: int, events: int) -> Written:
            return Written(self, boundary, end, events, 1, 1_700_000_000)

    built = BinlogBuilder().transaction(10)
    boundary, events = built.size, len(built.events)
    built.begin().table_map()
    layer = FileLayer()
    fd = layer.create(tmp_path / NAME)
    layer.pwritev(fd, [built.data], 0)
    file = Counted(fd=fd)
    with started(layer, SyncPolicy.TRANSACTION) as (thread, reported):
        with thread.paused():
            thread.grow(file.up_to_tail(boundary, built.size, len(built.events)), (1, 4))
            time.sleep(SHORT_S)
            thread.withdraw()
            layer.truncate(fd, boundary)
            thread.begin_at(file.up_to_tail(boundary, boundary, events))
        assert reported.told.get(timeout=LONG_S) == Checkpoint(NAME, boundary, events, 1, 1_700_000_000)
    layer.close(fd)


def test_events_of_a_run_that_goes_on_behind_its_last_group_are_not_counted(tmp_path: Path) -> None:
    built = BinlogBuilder().transaction(10)
    boundary, events = built.size, len(built.events)
    built.begin().table_map()
    layer = FileLayer()
    fd = layer.create(tmp_path / NAME)
    layer.pwritev(fd, [built.data], 0)
    written = Written(File(fd=fd), boundary, built.size, len(built.events), 1, 1_700_000_000)
    assert written.events(layer) == events < len(built.events)
    layer.close(fd)


async def test_a_sync_that_waits_for_a_trim_counts_what_the_trim_has_left(tmp_path: Path) -> None:
    class Disk(FileLayer):
        """Asks for a sync while the writer cuts the file back."""

        cuts = 0

        def truncate(self, fd: int, size: int) -> None:
            if not self.cuts:
                generation.sync_up_to(NAME, size)
                time.sleep(SHORT_S)
            self.cuts += 1
            super().truncate(fd, size)

    built = BinlogBuilder().transaction(10)
    boundary, events = built.size, len(built.events)
    built.begin().table_map()
    generation = await Generation.open(tmp_path, ArchiveOptions(sync=SyncPolicy.NONE), layer=Disk())
    await generation.begin_file(NAME)
    await append_all(generation, built.data)
    await generation.trim()
    generation.sync_up_to(NAME, boundary)
    until(lambda: list_archive(tmp_path)[0].end == boundary)
    [file] = list_archive(tmp_path)
    assert (file.end, file.events) == (boundary, events)
    await generation.close()
