"""What becomes of a stream's bytes when they are bad, when the archive refuses them, and when they are wrong throughout."""

from typing import Literal

import pytest

from protocol.position import Position
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.stream.intake import Intake
from relay.upstream.stream.receive_buffers import ReceiveBuffer, ReceiveBufferPool
from tests.support.binlog_builder import BinlogBuilder
from tests.support.event_stream import packetise
from tests.support.holding_archive import HoldingArchive

FILE = "mysql-bin.000001"
BIG = 700_000


def intake_for(archive: HoldingArchive, *, on_violation: Literal["warn", "stop"] = "warn") -> Intake:
    """One that is at the beginning of FILE."""
    intake = Intake(archive, None, packets=True, on_violation=on_violation)
    intake.begin_file(FILE)
    return intake


def feed(
    intake: Intake, built: BinlogBuilder, data: bytes | bytearray, piece: int, buffer: ReceiveBuffer | None = None
) -> None:
    """Gives the events of `built`, with the bytes of `data`, as packets, `piece` bytes at a time."""
    stream = packetise([bytes(data[event.start : event.end]) for event in built.events])
    buffer = buffer or ReceiveBuffer(ReceiveBufferPool(1))
    fill = 0
    for at in range(0, len(stream), piece):
        part = stream[at : at + piece]
        buffer.view[fill : fill + len(part)] = part
        start, fill = 0, fill + len(part)
        while intake.take(buffer, start, fill) != 0:
            start = intake.ingest.consumed
        start = intake.ingest.consumed
        buffer.view[: fill - start] = bytes(buffer.view[start:fill])
        fill -= start


@pytest.mark.parametrize("piece", [200_000, 1_000_000])
def test_a_big_event_with_a_wrong_checksum_is_named_and_what_stands_before_it_is_kept(piece: int) -> None:
    built = BinlogBuilder().ddl()
    good = built.size
    built.query("x" * BIG)
    data = bytearray(built.data)
    data[-1] ^= 1
    archive = HoldingArchive()
    with pytest.raises(UpstreamError) as caught:
        feed(intake_for(archive), built, data, piece)
    assert caught.value.name == "checksum_mismatch"
    assert f"offset {good}" in caught.value.what
    assert len(archive.data) + 4 >= good


def test_a_big_event_with_a_wrong_checksum_that_came_at_once_is_not_counted() -> None:
    built = BinlogBuilder().ddl().query("x" * BIG)
    data = bytearray(built.data)
    data[-1] ^= 1
    archive = HoldingArchive()
    with pytest.raises(UpstreamError):
        feed(intake_for(archive), built, data, 1_000_000)
    assert (archive.events, len(archive.data) + 4) == (2, built.events[-1].start)


def test_a_buffer_whose_run_the_archive_refuses_is_free_again() -> None:
    built = BinlogBuilder().transaction(100_000)
    archive = HoldingArchive()
    archive.failure = ArchiveWriteError("no space", file=FILE, offset=4, errno=28)
    buffer = ReceiveBuffer(ReceiveBufferPool(1))
    with pytest.raises(ArchiveWriteError):
        feed(intake_for(archive), built, built.data, 1_000_000, buffer)
    assert buffer.pending == 0


def test_a_file_that_is_wrong_from_one_end_to_the_other_does_not_fill_the_ledger() -> None:
    built = BinlogBuilder()
    for _ in range(400):
        built.query("COMMIT").query("BEGIN").query("COMMIT")
    archive = HoldingArchive()
    feed(intake_for(archive), built, built.data, 4096)
    rows = [text for kind, _, text in archive.ledger if kind == "boundary_violation"]
    assert len(rows) == 100
    assert "more of them" in rows[-1]


def test_a_source_that_leaves_a_file_out_is_named() -> None:
    intake = intake_for(HoldingArchive())
    with pytest.raises(UpstreamError) as caught:
        intake.begin_file("mysql-bin.000002")
    assert (caught.value.kind, caught.value.name) == (FailureKind.STREAM_BROKEN, "file_chain_broken")


def test_a_stream_that_goes_on_at_the_end_of_a_file_may_go_over_to_the_next() -> None:
    intake = Intake(HoldingArchive(), Position(FILE, 5000), packets=True, on_violation="warn")
    intake.begin_file("mysql-bin.000002")
    assert intake.file == "mysql-bin.000002"


def test_a_violation_stops_the_stream_where_that_is_wanted() -> None:
    built = BinlogBuilder().query("COMMIT")
    with pytest.raises(UpstreamError) as caught:
        feed(intake_for(HoldingArchive(), on_violation="stop"), built, built.data, 4096)
    assert caught.value.name == "boundary_violation"


def test_a_big_group_of_one_event_counts_when_its_end_is_there() -> None:
    built = BinlogBuilder().query("x" * BIG)
    intake = intake_for(HoldingArchive())
    stream = packetise([bytes(built.data[event.start : event.end]) for event in built.events])
    buffer = ReceiveBuffer(ReceiveBufferPool(1))
    buffer.view[:400_000] = stream[:400_000]
    intake.take(buffer, 0, 400_000)
    assert intake.ingest.in_event
    assert intake.ingest.groups == 0
    left = 400_000 - intake.ingest.consumed
    rest = bytes(buffer.view[400_000 - left : 400_000]) + stream[400_000:]
    buffer.view[: len(rest)] = rest
    intake.take(buffer, 0, len(rest))
    assert intake.ingest.groups == 1


def test_what_the_source_waits_for_is_told_when_the_archive_has_it() -> None:
    built = BinlogBuilder().ddl().transaction(10)
    archive = HoldingArchive()
    intake = Intake(archive, None, packets=True, prefix=3, on_violation="warn")
    intake.begin_file(FILE)
    told: list[tuple[str, int, int]] = []
    intake.on_ack_wanted = lambda file, offset: told.append((file, offset, archive.position))
    events = [bytes(built.data[event.start : event.end]) for event in built.events]
    stream = packetise([b"\xef\0" + event for event in events[:-1]])
    stream += packetise([b"\xef\1" + events[-1]], sequence=len(events))
    buffer = ReceiveBuffer(ReceiveBufferPool(1))
    buffer.view[: len(stream)] = stream
    assert intake.take(buffer, 0, len(stream)) == 0
    assert told == [(FILE, built.size, built.size)]
