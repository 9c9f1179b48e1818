"""Streams in unusual places: pages that are not cached, gaps, damage, markers, ends of files, an empty archive."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest

from protocol.auth.account import Account
from protocol.binlog.encoded_events import rotate_event
from protocol.binlog.event_type import EventType
from protocol.errors import ErrorCode
from protocol.kernel.ingest import Ingest
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from relay.downstream.listen_options import ListenOptions
from relay.downstream.server import DownstreamServer
from relay.downstream.stream.dump import Dump
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder
from tests.support.replica_client import PASSWORD, USER, ReplicaClient, StreamedEvent

FIRST = "mysql-bin.000001"
SECOND = "mysql-bin.000002"
Serve = Callable[..., Awaitable[DownstreamServer]]


def stamped(data: bytes) -> bytes:
    """A file as the relay archives it: with markers."""
    buffer = bytearray(data[4:])
    ingest = Ingest(packets=False, stamp=True)
    ingest.begin_file(4)
    ingest.feed(buffer, 0, len(buffer))
    assert ingest.produced == len(buffer)
    return data[:4] + bytes(buffer)


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    made: list[tuple[DownstreamServer, Generation]] = []

    async def serve(**files: bytes | bytearray) -> DownstreamServer:
        generation = await Generation.open(tmp_path / "archive")
        for number, data in files.items():
            await generation.begin_file(f"mysql-bin.00000{number[1:]}")
            await append_all(generation, data)
        accounts = [Account.with_password(USER, PASSWORD), Account.with_password("plain", PASSWORD, "strip")]
        server = DownstreamServer(Archive.of(generation), accounts, options=ListenOptions(position_wait_s=0.3))
        await server.start("127.0.0.1", 0)
        made.append((server, generation))
        return server

    yield serve
    for server, generation in made:
        await server.close()
        await generation.close()


async def stream(
    server: DownstreamServer, *, file: str = "", offset: int = 4, user: str = USER, **set_up: object
) -> list[StreamedEvent]:
    """All events up to EOF."""

    def read() -> list[StreamedEvent]:
        client = ReplicaClient(server.port, user=user)
        try:
            client.set_up(**set_up)  # type: ignore[arg-type]
            client.ask_dump(file, offset, flags=1)
            return client.events_to_eof()
        finally:
            client.cut()

    return await asyncio.wait_for(asyncio.to_thread(read), 20)


def rotate_to(file: str) -> bytes:
    return rotate_event(Position(file, 4), 1, with_checksum=True)


async def test_pages_that_are_not_cached_are_read_in_threads(serve: Serve) -> None:
    built = BinlogBuilder().transaction(900_000).transaction(20)
    server = await serve(_1=built.data)
    server.mirror.reads._nowait = False
    events = await stream(server)
    assert b"".join(event.data for event in events) == rotate_to(FIRST) + bytes(built.data[4:])


async def test_an_account_without_markers_gets_the_sources_bytes(serve: Serve) -> None:
    original = bytes(BinlogBuilder().transaction(20, 600_000).ddl().data)
    server = await serve(_1=stamped(original))
    events = await stream(server, user="plain")
    assert b"".join(event.data for event in events) == rotate_to(FIRST) + original[4:]


async def test_an_account_with_markers_gets_the_archived_bytes(serve: Serve) -> None:
    archived = stamped(bytes(BinlogBuilder().transaction(20).ddl().data))
    events = await stream(await serve(_1=archived))
    assert b"".join(event.data for event in events) == rotate_to(FIRST) + archived[4:]


async def test_a_start_in_a_file_without_markers_has_none_in_its_first_event(serve: Serve) -> None:
    built = BinlogBuilder().transaction(20)
    events = await stream(await serve(_1=stamped(bytes(built.data))), file=FIRST, offset=built.size, user="plain")
    assert [event.kind for event in events] == [EventType.ROTATE, EventType.FORMAT_DESCRIPTION]
    assert events[1].data[18] == 0


async def test_a_file_without_checksums_is_served_to_who_knows_none(serve: Serve) -> None:
    built = BinlogBuilder(checksum=False).transaction(20)
    events = await stream(await serve(_1=built.data), checksum=False)
    assert events[0].data == rotate_event(Position(FIRST, 4), 1, with_checksum=False)
    assert b"".join(event.data for event in events[1:]) == bytes(built.data[4:])


async def test_who_knows_no_checksums_is_stopped_at_the_first_file_with_them(serve: Serve) -> None:
    plain = BinlogBuilder(checksum=False).transaction(20).rotate(SECOND)
    server = await serve(_1=plain.data, _2=BinlogBuilder().transaction(20).data)
    with pytest.raises(pymysql.MySQLError) as caught:
        await stream(server, checksum=False)
    assert caught.value.args[0] == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG
    assert "Slave can not handle" in caught.value.args[1]


async def test_the_rotate_between_files_has_the_checksum_of_the_file_that_ended(serve: Serve) -> None:
    plain = BinlogBuilder(checksum=False).transaction(20).rotate(SECOND)
    server = await serve(_1=plain.data, _2=BinlogBuilder().transaction(20).data)
    events = await stream(server)
    assert rotate_event(Position(SECOND, 4), 1, with_checksum=False) in [event.data for event in events]


async def test_a_gap_in_the_archive_ends_the_stream_by_name(serve: Serve) -> None:
    first = BinlogBuilder().transaction(20)
    server = await serve(_1=first.data, _2=BinlogBuilder().transaction(20).data)
    generation = server.mirror.generation
    generation.files[1].number = 9
    with pytest.raises(pymysql.MySQLError) as caught:
        await stream(server)
    assert caught.value.args[0] == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG
    assert "not held" in caught.value.args[1]


async def test_a_file_that_is_gone_from_the_disk_is_named(serve: Serve, tmp_path: Path) -> None:
    server = await serve(_1=BinlogBuilder().transaction().rotate(SECOND).data, _2=BinlogBuilder().transaction().data)
    (tmp_path / "archive" / SECOND).unlink()
    with pytest.raises(pymysql.MySQLError) as caught:
        await stream(server)
    assert f"damaged at {SECOND}:0: it cannot be opened: No such file or directory" in caught.value.args[1]


@pytest.mark.parametrize("at", [30, 75, 100])
async def test_a_changed_format_description_is_not_sent_with_a_new_checksum(
    serve: Serve, tmp_path: Path, at: int
) -> None:
    first = BinlogBuilder().transaction(20).rotate(SECOND)
    server = await serve(_1=first.data, _2=BinlogBuilder().transaction(20).data)
    path = tmp_path / "archive" / FIRST
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    # Nothing of the file itself is left to be sent there but what its events look like.
    with pytest.raises(pymysql.MySQLError, match="the checksum of the event at 4 is wrong"):
        await stream(server, file=FIRST, offset=first.size)


async def test_a_damaged_file_is_not_served_past(serve: Serve) -> None:
    server = await serve(_1=BinlogBuilder().transaction(20).data, _2=BinlogBuilder().transaction(20).data)
    server.mirror.generation.files[0].damaged = True
    with pytest.raises(pymysql.MySQLError, match="damaged"):
        await stream(server)


async def test_a_position_in_what_was_lost_of_a_file_is_refused_as_damage_and_not_as_too_high(serve: Serve) -> None:
    server = await serve(_1=BinlogBuilder().transaction(20).data, _2=BinlogBuilder().transaction(20).data)
    file = server.mirror.generation.files[0]
    file.damaged = True
    with pytest.raises(pymysql.MySQLError, match=f"damaged at {FIRST}:{file.end}: nothing behind it can be read"):
        await stream(server, file=FIRST, offset=file.end + 100)


@pytest.mark.parametrize("cached", [True, False])
async def test_a_fault_of_ours_ends_its_stream_by_name_and_no_other(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    server = await serve(_1=BinlogBuilder().transaction(20).data)
    generation = server.mirror.generation
    assert isinstance(generation, Generation)

    def waiting(server_id: int) -> ReplicaClient:
        client = ReplicaClient(server.port)
        client.set_up(server_id=server_id)
        client.ask_dump(FIRST, 4, server_id=server_id)
        client.events(2)
        return client

    clients = [await asyncio.to_thread(waiting, server_id) for server_id in (77, 78, 79)]
    while len(server.mirror._edge) < 3:
        await asyncio.sleep(0.01)
    server.mirror.reads._nowait = cached
    send_run = Dump._send_run
    faulty = next(iter(server.mirror._edge))

    def fails(dump: Dump, *run: Any) -> bool:
        if dump is faulty:
            raise IndexError("a fault")
        return send_run(dump, *run)

    monkeypatch.setattr(Dump, "_send_run", fails)
    await generation.begin_file(SECOND)
    await append_all(generation, BinlogBuilder().transaction(20).data)

    def end(client: ReplicaClient) -> str:
        with contextlib.closing(client):
            try:
                while (event := client.event()) is not None and event.kind != EventType.FORMAT_DESCRIPTION:
                    pass
            except pymysql.MySQLError as error:
                return str(error.args[1])
            return "served"

    ends = [await asyncio.to_thread(end, client) for client in clients]
    assert sorted(ends) == [
        "binlog-relay has an internal error, see its log. The replica may try again",
        "served",
        "served",
    ]


async def test_a_replica_of_an_empty_archive_is_told_to_try_again(serve: Serve) -> None:
    with pytest.raises(pymysql.err.OperationalError) as caught:
        await stream(await serve())
    assert caught.value.args[0] == ErrorCode.ER_UNKNOWN_ERROR


async def test_the_first_file_may_still_come(serve: Serve) -> None:
    server = await serve()
    generation = server.mirror.generation
    assert isinstance(generation, Generation)
    generation.set_identity(SourceIdentity("mysql", "5.6.24-log", 1, None))
    server.mirror.position_wait_s = 10.0
    client = await asyncio.to_thread(ReplicaClient, server.port)
    await asyncio.to_thread(client.set_up)
    await asyncio.to_thread(client.ask_dump, "", 4)
    await generation.begin_file(FIRST)
    await append_all(generation, BinlogBuilder().transaction(20).data)
    events = await asyncio.wait_for(asyncio.to_thread(client.events, 2), 10)
    assert [event.kind for event in events] == [EventType.ROTATE, EventType.FORMAT_DESCRIPTION]
    client.cut()


async def test_no_heartbeat_comes_between_a_rotate_and_the_next_format_description(serve: Serve) -> None:
    """MySQL 5.6 and MariaDB take whatever comes there for an event of MySQL 4.0, and stop."""
    server = await serve(_1=BinlogBuilder().transaction(20).rotate(SECOND).data)
    generation = server.mirror.generation
    assert isinstance(generation, Generation)
    client = await asyncio.to_thread(ReplicaClient, server.port)

    def kinds_until(last: EventType, count: int) -> list[int]:
        seen: list[int] = []
        while seen.count(last) < count:
            seen.append(client.events(1)[0].kind)
        return seen

    def asked() -> list[int]:
        client.set_up(heartbeat_s=0.001)
        client.ask_dump("", 4)
        return kinds_until(EventType.HEARTBEAT, 20)

    with contextlib.closing(client):
        # Of the first file all but its Rotate, and heartbeats; so it stays when the next file has not begun yet.
        assert (await asyncio.to_thread(asked)).count(EventType.ROTATE) == 1
        await generation.begin_file(SECOND)
        assert EventType.ROTATE not in await asyncio.to_thread(kinds_until, EventType.HEARTBEAT, 20)
        await append_all(generation, BinlogBuilder().transaction(20).data)
        seen = await asyncio.to_thread(kinds_until, EventType.FORMAT_DESCRIPTION, 1)
        assert seen[-3:] == [EventType.ROTATE, EventType.ROTATE, EventType.FORMAT_DESCRIPTION]
        assert set(seen[:-3]) <= {EventType.HEARTBEAT}


async def test_a_server_without_a_source_identity_tells_what_the_binlogs_say(serve: Serve) -> None:
    server = await serve(_1=BinlogBuilder(flavour="mariadb").transaction(20).data)
    client = await asyncio.to_thread(ReplicaClient, server.port)
    assert await asyncio.to_thread(client.query, "SELECT VERSION()") == (("10.11.19-MariaDB-log",),)
    client.cut()
