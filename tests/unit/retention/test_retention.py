"""The retention of an archive that is open: what it removes, what keeps it from that, and what is said about it."""

import asyncio
import errno
import json
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.storage.files import KNOWN_REPLICAS_NAME, FileLayer
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.verify import verify_archive
from relay.config.retention_section import RetentionSection
from relay.downstream.connection.client_status import ClientStatus
from relay.retention.retention import Retention
from relay.retention.retention_clock import RetentionClock
from relay.retention.retention_limits import RetentionLimits
from relay.view.rules.settings import ViewStart
from relay.view.unopened_view import UnopenedView
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.console_fakes import a_replica
from tests.support.view_making import settings

NAMES = [f"mysql-bin.{number:06d}" for number in range(1, 6)]
NOW = 1_700_000_000
DAY = 86400


class Replicas:
    """Who is connected, as a test says."""

    def __init__(self) -> None:
        self.here: list[ClientStatus] = []

    def statuses(self) -> Sequence[ClientStatus]:
        return self.here

    def unread_bytes(self, connection_id: int) -> int | None:
        return 0


class RefusingDisk(FileLayer):
    """Removes no binlog while it is told so; has as much room as it is told."""

    refuses = False
    free = 1 << 40

    def unlink(self, path: Path) -> None:
        if self.refuses and path.name in NAMES:
            raise OSError(errno.EIO, "Input/output error", str(path))
        super().unlink(path)

    def free_bytes(self, directory: Path) -> int:
        return self.free


class World:
    """An archive of five files, a day apart, of about 100 KiB each, and its retention."""

    def __init__(self, archive: Archive, disk: RefusingDisk) -> None:
        self.archive, self.disk = archive, disk
        self.replicas = Replicas()
        self.views: list[Any] = []
        self.wall = float(NOW)
        self.uncopied: tuple[int, int] | None = None
        self.lent = 0

    def retention(self, **section: Any) -> Retention:
        clock = RetentionClock(lambda: self.wall, time.monotonic)
        limits = RetentionLimits.of(RetentionSection(**section))
        views, uncopied, lent = (lambda: self.views), (lambda: self.uncopied), (lambda: self.lent)
        return Retention(self.archive, limits, self.replicas, views, self.disk, clock, uncopied, lent)

    @property
    def names(self) -> list[str]:
        return [file.name for one in self.archive.all for file in one.files]

    @property
    def reasons(self) -> list[str]:
        return [row.text.partition(";")[0] for row in read_ledger(self.archive.directory) if row.kind == "purged"]

    def connect(self, file: str, **more: Any) -> None:
        self.replicas.here = [a_replica(1, file, 200, **{"generation": 1, "is_at_end": True, **more})]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    files = []
    for number, (name, following) in enumerate(zip(NAMES, [*NAMES[1:], ""], strict=True)):
        built = BinlogBuilder(timestamp=NOW - (len(NAMES) - 1 - number) * DAY).transaction(100_000)
        files.append((name, built.rotate(following).data if following else built.data))
    await fill(tmp_path, *files)
    disk = RefusingDisk()
    archive = await Archive.open(tmp_path, layer=disk)
    yield World(archive, disk)
    disk.refuses = False
    await archive.close()


async def test_the_oldest_files_go_until_the_size_is_kept_and_the_ledger_says_why(world: World) -> None:
    retention = world.retention(keep_bytes="250KiB")
    await retention.run_once()
    assert world.names == NAMES[3:]
    assert world.reasons == ['[retention] keep_bytes = "250KiB": the binlogs together were larger'] * 3
    assert retention.status.removed_files == {("", "keep_bytes"): 3}
    assert retention.status.removed_bytes["", "keep_bytes"] > 250 << 10
    assert retention.status.held_back == ()
    assert list(verify_archive(world.archive.directory, deep=True)) == []


async def test_what_is_not_in_the_bucket_yet_is_kept_until_the_disk_is_nearly_full(world: World) -> None:
    retention = world.retention(keep_bytes="250KiB")
    world.uncopied = (1, 2)
    await retention.run_once()
    assert world.names == NAMES[1:]
    [held] = retention.status.held_back
    assert (held.hold.kind.value, held.file) == ("mirror", NAMES[1])
    world.disk.free = 0
    await retention.run_once()
    assert world.names == NAMES[3:]


async def test_by_age_one_file_goes_and_the_next_when_its_time_has_come(world: World) -> None:
    retention = world.retention(keep_for="60h")
    await retention.run_once()
    assert world.names == NAMES[1:]
    assert world.reasons == ['[retention] keep_for = "60h": its newest event is older']
    await retention.run_once()
    assert world.names == NAMES[1:], "a fifth of the archive is more than may go by age at once"


async def test_while_the_source_is_silent_nothing_goes_by_age(world: World) -> None:
    world.wall += 365 * DAY  # the relay is started after a year off
    retention = world.retention(keep_for="30d")
    await retention.run_once()
    assert world.names == NAMES


@pytest.mark.parametrize("by_s", [3650 * DAY, -3650 * DAY])
async def test_a_clock_that_jumps_removes_nothing(world: World, by_s: int) -> None:
    retention = world.retention(keep_for="7d")
    await retention.run_once()
    world.wall += by_s
    # Also the source's clock: its newest event is in the future, too.
    world.archive.current.files[-1].last_timestamp += max(by_s, 0)
    with capture_logs() as logs:
        await retention.run_once()
    assert world.names == NAMES
    assert [line["event"] for line in logs] == ["retention_clock_jumped"]
    assert round(retention.status.clock_ahead_s) == by_s


async def test_for_room_younger_files_go_too_but_for_those_that_are_kept_at_least(world: World) -> None:
    world.disk.free = 1 << 20
    retention = world.retention(min_free="2MiB", keep_at_least="36h")
    with capture_logs() as logs:
        await retention.run_once()
        await retention.run_once()
    assert world.names == NAMES[3:]
    assert world.reasons[0] == '[retention] min_free = "2MiB": 1.0 MiB were free'
    held_back = [line for line in logs if line["event"] == "retention_held_back"]
    assert len(held_back) == 1, "said once"
    assert 'kept, as it is younger than keep_at_least = "36h" says' in held_back[0]["what"]
    assert retention.status.missing_bytes > 0


async def test_the_room_that_packing_has_borrowed_removes_nothing(world: World) -> None:
    world.disk.free, world.lent = 1 << 20, 1 << 20
    await world.retention(min_free="2MiB").run_once()
    assert world.names == NAMES


async def test_what_a_replica_reads_or_has_not_received_stays_and_it_is_said_who_needs_what(world: World) -> None:
    world.disk.free = 0
    retention = world.retention(min_free="1GiB")
    world.connect(NAMES[2])
    for _ in range(2):
        retention.look()
    with capture_logs() as logs:
        await retention.run_once()
    assert world.names == NAMES[2:]
    world.replicas.here = []
    retention.look()
    await retention.run_once()
    assert world.names == NAMES[2:], "it is known while it is away"
    (line,) = [line for line in logs if line["event"] == "retention_held_back"]
    assert (line["file"], line["limit"], line["log_level"]) == (NAMES[2], "min_free", "warning")
    (held_back,) = retention.status.held_back
    assert (held_back.hold.kind.value, held_back.file) == ("replica", NAMES[2])
    assert "replica 101 ('replica'@'192.0.2.1', away for 0 seconds) needs it" in held_back.hold.who


async def test_a_replica_that_is_away_too_long_keeps_nothing_and_is_named_when_it_is_left_behind(world: World) -> None:
    retention = world.retention(keep_bytes="100KiB", forget_replicas_after="1h")
    world.connect(NAMES[2])
    for _ in range(2):
        retention.look()
    world.replicas.here = []
    retention.look()
    await retention.run_once()
    assert world.names == NAMES[2:]
    for replica in retention.replicas:
        replica.absent_s = 3700
    retention.look()
    assert retention.status.forgotten_replicas == 1
    with capture_logs() as logs:
        await retention.run_once()
        await retention.run_once()
    assert world.names == NAMES[4:]
    (line,) = [line for line in logs if line["event"] == "retention_left_replica_behind"]
    assert (line["server_id"], line["file"]) == (101, NAMES[2])
    assert (retention.status.left_behind, len(retention.replicas)) == (1, 0)


async def test_replicas_that_are_away_keep_nothing_where_that_is_wanted_connected_ones_do(world: World) -> None:
    retention = world.retention(keep_bytes="100KiB", keep_for_replicas=False)
    world.connect(NAMES[2])
    for _ in range(2):
        retention.look()
    await retention.run_once()
    assert world.names == NAMES[2:]
    world.replicas.here = []
    retention.look()
    await retention.run_once()
    assert world.names == NAMES[4:]


async def test_who_comes_while_it_is_decided_keeps_what_is_asked_for(world: World) -> None:
    retention = world.retention(keep_bytes="100KiB")
    running = asyncio.create_task(retention.run_once())
    await asyncio.sleep(0)  # the facts are taken
    world.connect(NAMES[1])
    await running
    assert world.names == NAMES[1:]


async def test_what_a_view_is_still_to_be_made_from_stays_unless_it_has_stopped_and_may_be_left(world: World) -> None:
    view = UnopenedView(settings(start=ViewStart(Position(NAMES[1], 4), 1)), "it cannot be opened")
    world.views = [view]
    await world.retention(keep_bytes="100KiB").run_once()
    assert world.names == NAMES[1:]
    await world.retention(keep_bytes="100KiB", keep_for_views=False).run_once()
    assert world.names == NAMES[1:], "it is being opened"
    view.was_tried = True
    retention = world.retention(keep_bytes="100KiB")
    await retention.run_once()
    assert world.names == NAMES[1:]
    assert "stands stopped (view_not_served)" in retention.status.held_back[0].hold.who
    await world.retention(keep_bytes="100KiB", keep_for_views=False).run_once()
    assert world.names == NAMES[4:]


async def test_a_disk_that_refuses_is_said_and_tried_a_few_times_only(world: World) -> None:
    world.disk.refuses = True
    retention = world.retention(min_free="1GiB")
    with capture_logs() as logs:
        for left in range(4):
            world.disk.free = (1 << 30) - 1 - left  # room for one file is missing
            await retention.run_once()
    failed = [line for line in logs if line["event"] == "retention_failed"]
    assert [line["note"] for line in failed] == [
        "it is tried again, with one file",
        "it is not tried again before a SIGHUP or a restart",
    ]
    assert world.names == NAMES[3:], "what was begun is off the list, and removed at the next start"
    assert "Input/output error" in retention.status.failure and retention.status.failures == 3
    world.disk.refuses = False
    retention.take(RetentionLimits.of(RetentionSection(min_free="1GiB")))
    await retention.run_once()
    assert retention.status.failure == ""


async def test_known_replicas_are_kept_and_a_file_that_cannot_be_read_is_said(world: World) -> None:
    first = world.retention(keep_bytes="100KiB")
    first.begin()
    world.connect(NAMES[3])
    await first._read()
    first.look()
    await first.close()
    kept = json.loads((world.archive.directory / KNOWN_REPLICAS_NAME).read_text())
    assert [(one["server_id"], one["file"]) for one in kept["replicas"]] == [(101, NAMES[3])]
    world.replicas.here = []
    second = world.retention(keep_bytes="100KiB")
    await second._read()
    await second.run_once()
    assert world.names == NAMES[3:]
    (world.archive.directory / KNOWN_REPLICAS_NAME).write_text("{")
    with capture_logs() as logs:
        await world.retention(keep_bytes="100KiB")._read()
    assert [line["event"] for line in logs] == ["known_replicas_lost"]


async def test_nothing_is_removed_or_overwritten_before_known_replicas_can_be_read(world: World) -> None:
    (world.archive.directory / KNOWN_REPLICAS_NAME).mkdir()  # as good as a disk that refuses
    retention = world.retention(keep_bytes="100KiB")
    with capture_logs() as logs:
        assert not await retention._read()
        assert not await retention._read()
    assert [line["event"] for line in logs] == ["known_replicas_unreadable"], "said once"
    await retention.close()
    (world.archive.directory / KNOWN_REPLICAS_NAME).rmdir()
    assert await retention._read()


async def test_without_limits_nothing_is_removed_or_written(world: World) -> None:
    retention = world.retention()
    retention.begin()
    await asyncio.sleep(0)
    await retention.close()
    assert world.names == NAMES
    assert not (world.archive.directory / KNOWN_REPLICAS_NAME).exists()
