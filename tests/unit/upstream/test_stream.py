"""The protocol that owns the dump stream, without a socket."""

import asyncio
import socket
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest
import structlog.testing
import uvloop

from protocol.position import Position
from relay.upstream.source.connection import SourceConnection, SourceFacts
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.stream.intake import Intake, RunWriter
from relay.upstream.stream.receive_buffers import ReceiveBufferPool
from relay.upstream.stream.source_stream import DumpStream
from tests.support.event_stream import EventStream, artificial_rotate, packetise
from tests.support.holding_archive import HoldingArchive


class SilentTransport:
    """Remembers what was asked of it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.closing = False

    def is_closing(self) -> bool:
        """Whether the peer has closed."""
        return self.closing

    def abort(self) -> None:
        """Asked to close."""
        self.calls.append("abort")

    def get_extra_info(self, name: str) -> None:
        """There is no socket."""

    def pause_reading(self) -> None:
        """Asked to pause."""
        self.calls.append("pause_reading")


class ReadTransport(SilentTransport):
    """One that can be read on."""

    def resume_reading(self) -> None:
        """Asked to read on."""
        self.calls.append("resume_reading")


def stream_at(place: Position) -> DumpStream:
    """A stream that goes on at `place`, into an archive that is never reached."""
    intake = Intake(cast(RunWriter, None), place, packets=True, on_violation="warn")
    return DumpStream(intake, ReceiveBufferPool(), cast(asyncio.Transport, SilentTransport()), b"")


def receive(stream: DumpStream, data: bytes) -> None:
    """As the event loop does it."""
    stream.get_buffer(-1)[: len(data)] = data
    stream.buffer_updated(len(data))


async def test_an_error_that_waits_to_be_gathered_when_the_source_closes_is_not_lost() -> None:
    stream = stream_at(Position("mysql-bin.000001", 4))
    payload = b"\xff" + (1236).to_bytes(2, "little") + b"#HY000could not find next log"
    stream._received_in_it = 1 << 30  # so that what comes in the next millisecond is gathered
    receive(stream, len(payload).to_bytes(3, "little") + b"\x01" + payload)
    assert not stream.ended.done()
    stream.eof_received()
    stream.connection_lost(None)
    assert (await stream.ended).kind is FailureKind.POSITION_GONE


async def test_a_connection_that_ends_is_a_network_trouble() -> None:
    stream = stream_at(Position("mysql-bin.000001", 4))
    stream.connection_lost(ConnectionResetError("reset"))
    error = await stream.ended
    assert (error.kind, error.name) == (FailureKind.NETWORK, "connection_lost")


async def test_what_comes_after_a_burst_is_not_left_in_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(stream: DumpStream) -> None:
        stream._fill = 0

    monkeypatch.setattr(DumpStream, "_walk", forget)
    streams: list[DumpStream] = []
    loop = asyncio.get_running_loop()

    def owner() -> asyncio.BaseProtocol:
        intake = Intake(cast(RunWriter, None), Position("mysql-bin.000001", 4), packets=True, on_violation="warn")
        streams.append(DumpStream(intake, ReceiveBufferPool(), cast(asyncio.Transport, SilentTransport()), b""))
        return streams[0]

    written: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _reader, writer: written.append(writer), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    transport, _ = await loop.create_connection(owner, host, port)
    streams[0]._transport = transport
    while not written:
        await asyncio.sleep(0.001)
    gathered = False
    for _ in range(40):
        written[0].write(bytes(1 << 20))
        await written[0].drain()
        gathered = gathered or streams[0]._gathering
    written[0].write(b"the end")
    async with asyncio.timeout(5):
        while streams[0].bytes_received < (40 << 20) + 7:
            await asyncio.sleep(0.001)
    assert gathered, "the burst was not recognised as one"
    streams[0].close()
    transport.abort()
    written[0].close()
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_source_that_closes_right_before_the_dump_is_noticed(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    def resets(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def attach() -> None:
        server = await asyncio.start_server(resets, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        while reader.exception() is None:
            await asyncio.sleep(0.001)
        connection = object.__new__(SourceConnection)
        connection._connection = SimpleNamespace(_reader=reader, _writer=writer)
        connection.facts = SourceFacts("mysql", "8.0.43", 1, None, True)
        made: list[DumpStream] = []

        def take_over(transport: asyncio.Transport, early: bytes) -> DumpStream:
            intake = Intake(cast(RunWriter, None), None, packets=True, on_violation="warn")
            made.append(DumpStream(intake, ReceiveBufferPool(), transport, early))
            return made[0]

        try:
            with pytest.raises(UpstreamError) as ended:
                connection.start_dump("", 4, 7, take_over)
                raise await asyncio.wait_for(made[0].ended, 2)
            assert (ended.value.kind, ended.value.name) == (FailureKind.NETWORK, "connection_lost")
        finally:
            writer.close()
            server.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(attach())


@pytest.mark.parametrize("gathered", [False, True])
async def test_a_fault_of_our_own_in_the_walk_ends_the_stream_and_the_bytes_are_not_walked_again(
    monkeypatch: pytest.MonkeyPatch, gathered: bool
) -> None:
    walks = 0
    fault = ZeroDivisionError("a bug")

    def walk(_stream: DumpStream) -> None:
        nonlocal walks
        walks += 1
        raise fault

    monkeypatch.setattr(DumpStream, "_walk", walk)
    stream = stream_at(Position("mysql-bin.000001", 4))
    if gathered:
        stream._received_in_it = 1 << 30
    receive(stream, b"some bytes")
    async with asyncio.timeout(5):
        with pytest.raises(ZeroDivisionError):
            await stream.ended
    assert cast(SilentTransport, stream._transport).calls == ["abort"]
    receive(stream, b"more")
    stream.eof_received()
    stream.connection_lost(None)
    assert walks == 1


async def test_a_fault_where_reading_goes_on_ends_the_stream() -> None:
    stream = stream_at(Position("mysql-bin.000001", 4))
    stream._held = b"rest"
    with structlog.testing.capture_logs() as logs:
        assert stream._pool.on_return is not None
        stream._pool.on_return()  # there is no such thing as resume_reading here
    (line,) = logs
    assert (line["event"], type(line["exc_info"])) == ("callback_failed", AttributeError)
    with pytest.raises(AttributeError):
        await stream.ended


async def test_files_without_events_are_begun_a_few_at_a_time() -> None:
    transport = ReadTransport()
    intake = Intake(cast(RunWriter, HoldingArchive()), None, packets=True, on_violation="warn")
    stream = DumpStream(intake, ReceiveBufferPool(), cast(asyncio.Transport, transport), b"")
    description = EventStream(checksum=False).events[0]
    events = [
        event
        for number in range(1, 101)
        for event in (artificial_rotate(b"b.%06d" % number, checksum=False), description)
    ]
    receive(stream, packetise(events))
    assert intake.file == "b.000016" and transport.calls == ["pause_reading"]
    await asyncio.sleep(0)
    assert intake.file == "b.000032"
    for _ in range(10):
        await asyncio.sleep(0)
    assert intake.file == "b.000100" and transport.calls[-1] == "resume_reading" and not stream.ended.done()
