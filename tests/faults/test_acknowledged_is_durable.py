"""What was acknowledged to a source survives a power cut, whatever `archive.sync` is."""

import asyncio
import random
import time
from pathlib import Path

import pytest

from protocol.position import Position
from relay.archive.generation import Generation
from relay.archive.write.options import ArchiveOptions, SyncPolicy
from relay.upstream.source.source_status import SourceLink
from relay.upstream.stream.acknowledger import Acknowledger, ack_packet
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder, runs_of
from tests.support.forgetful_disk import ForgetfulDisk

FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"
WAIT_S = 10.0


def unforeseen(fault: Exception) -> None:
    raise fault


def position_in(packet: bytes) -> Position:
    """What an acknowledgement says."""
    assert int.from_bytes(packet[:3], "little") == len(packet) - 4
    assert packet[3:5] == b"\0\xef"
    return Position(packet[13:].decode(), int.from_bytes(packet[5:13], "little"))


class PowerCut:
    """At every acknowledgement, a picture of what the disk would have left."""

    def __init__(self, disk: ForgetfulDisk, directory: Path, pictures: Path) -> None:
        self.disk, self.directory, self.pictures = disk, directory, pictures
        self.acknowledged: list[Position] = []

    def send(self, packet: bytes) -> None:
        """In the source's place."""
        self.acknowledged.append(position_in(packet))
        number = len(self.acknowledged)
        self.disk.lose_power(self.directory, self.pictures / str(number), number)

    async def until_acknowledged(self, place: Position) -> None:
        """Waits for it."""
        deadline = time.monotonic() + WAIT_S
        while not self.acknowledged or self.acknowledged[-1] != place:
            assert time.monotonic() < deadline, f"{place} is not acknowledged: {self.acknowledged}"
            await asyncio.sleep(0.002)


@pytest.mark.parametrize("sync", list(SyncPolicy))
@pytest.mark.parametrize("seed", range(4))
async def test_after_a_power_cut_at_any_acknowledgement_everything_acknowledged_is_there(
    tmp_path: Path, sync: SyncPolicy, seed: int
) -> None:
    chance = random.Random(seed)
    one = BinlogBuilder().ddl().transaction(*[200] * 12).transaction(30, 40).ddl().rotate(SECOND)
    two = BinlogBuilder().transaction(5).transaction(9000)
    directory, pictures = tmp_path / "archive" / "source", tmp_path / "pictures"
    pictures.mkdir()
    disk = ForgetfulDisk()
    generation = await Generation.open(directory, ArchiveOptions(sync=sync, sync_interval_s=3600), layer=disk)
    power = PowerCut(disk, directory, pictures)
    acknowledger = Acknowledger(generation, power.send, SourceLink(), unforeseen)
    for name, built in ((FIRST, one), (SECOND, two)):
        generation.start_file(name)
        for run in runs_of(built.data, [chance.randrange(4, built.size) for _ in range(8)]):
            generation.append(run)
            boundary = run.boundary
            if boundary > 4:
                acknowledger.want(name, boundary)
            if chance.random() < 0.5:
                await asyncio.sleep(chance.choice([0, 0.001, 0.005]))
    await power.until_acknowledged(Position(SECOND, two.size))
    acknowledger.close()
    await generation.close()
    assert power.acknowledged == sorted(power.acknowledged)
    for number, place in enumerate(power.acknowledged, start=1):
        again = await Generation.open(pictures / str(number))
        assert again.end is not None and again.end >= place, f"acknowledgement {number}"
        await again.close()


async def test_the_directories_that_were_made_for_the_archive_are_synced_too(tmp_path: Path) -> None:
    disk = ForgetfulDisk()
    generation = await Generation.open(tmp_path / "new" / "source", layer=disk)
    await generation.close()
    assert {tmp_path, tmp_path / "new"} <= set(disk.names_synced)


async def test_nothing_is_acknowledged_while_the_disk_refuses_to_sync(tmp_path: Path) -> None:
    built = BinlogBuilder().ddl().transaction(10)
    disk = ForgetfulDisk()
    failures: list[object] = []
    generation = await Generation.open(
        tmp_path / "source", ArchiveOptions(sync=SyncPolicy.NONE, on_failure=failures.append), layer=disk
    )
    sent: list[bytes] = []
    acknowledger = Acknowledger(generation, sent.append, SourceLink(), unforeseen)
    await generation.begin_file(FIRST)
    await append_all(generation, built.data[: built.boundaries[-2]])
    disk.sync_error = 5
    await append_all(generation, built.data, start=built.boundaries[-2])
    acknowledger.want(FIRST, built.size)
    deadline = time.monotonic() + WAIT_S
    while not failures:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.002)
    assert sent == []
    disk.sync_error = None
    acknowledger.close()
    await generation.close()


async def test_without_a_wish_nothing_is_synced_where_the_policy_is_none(tmp_path: Path) -> None:
    built = BinlogBuilder().ddl().transaction(10)
    generation = await Generation.open(tmp_path / "source", ArchiveOptions(sync=SyncPolicy.NONE))
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    await asyncio.sleep(0.05)
    assert generation.synced is None or generation.synced.offset < built.size
    generation.sync_up_to(FIRST, built.size)
    deadline = time.monotonic() + WAIT_S
    while generation.synced != Position(FIRST, built.size):
        assert time.monotonic() < deadline, generation.synced
        await asyncio.sleep(0.002)
    await generation.close()


class Synced:
    """An archive of which only the synced end is known."""

    def __init__(self) -> None:
        self.synced: Position | None = None
        self.asked: list[tuple[str, int]] = []
        self.callbacks: list[object] = []

    def sync_up_to(self, file: str, offset: int) -> None:
        self.asked.append((file, offset))

    def watch_sync(self, callback: object) -> None:
        self.callbacks.append(callback)

    def unwatch_sync(self, callback: object) -> None:
        self.callbacks.remove(callback)


def test_an_acknowledgement_covers_all_that_was_wanted_up_to_it_and_no_more() -> None:
    generation, sent, link = Synced(), [], SourceLink()
    acknowledger = Acknowledger(generation, sent.append, link, unforeseen)
    for offset in (100, 200, 300):
        acknowledger.want(FIRST, offset)
    assert sent == [] and generation.asked[-1] == (FIRST, 300)
    generation.synced = Position(FIRST, 250)
    acknowledger._synced()
    assert sent == [ack_packet(FIRST, 200)]
    assert (link.acknowledged, link.acknowledged_count) == ((FIRST, 200), 1)
    acknowledger._synced()
    assert len(sent) == 1
    generation.synced = Position(SECOND, 4)
    acknowledger._synced()
    assert sent[1:] == [ack_packet(FIRST, 300)]


def test_what_is_synced_already_is_acknowledged_at_once() -> None:
    generation, sent = Synced(), []
    generation.synced = Position(SECOND, 500)
    Acknowledger(generation, sent.append, SourceLink(), unforeseen).want(SECOND, 500)
    assert sent == [ack_packet(SECOND, 500)]


def test_the_newer_file_has_the_greater_number_not_the_greater_name() -> None:
    generation, sent = Synced(), []
    generation.synced = Position("mysql-bin.1000000", 4)
    Acknowledger(generation, sent.append, SourceLink(), unforeseen).want("mysql-bin.999999", 500)
    assert sent == [ack_packet("mysql-bin.999999", 500)]


def test_after_the_streams_end_nothing_is_acknowledged() -> None:
    generation, sent = Synced(), []
    acknowledger = Acknowledger(generation, sent.append, SourceLink(), unforeseen)
    acknowledger.want(FIRST, 100)
    acknowledger.close()
    assert generation.callbacks == []
    generation.synced = Position(FIRST, 100)
    acknowledger._synced()
    assert sent == []


def test_an_acknowledgement_has_eight_bytes_for_the_position() -> None:
    assert ack_packet(FIRST, 2**32 + 7) == b"\x19\0\0\0\xef\x07\0\0\0\x01\0\0\0" + FIRST.encode()
