"""What a connection held is free when it ends, without the garbage collector; what it holds is counted."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pymysql
import pytest
from pymysql.constants import COMMAND

from protocol.auth.account import Account
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from relay.downstream.connection.replica_session import Session
from relay.downstream.listen_options import ListenOptions
from relay.downstream.server import DownstreamServer
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder
from tests.support.replica_client import PASSWORD, USER, ReplicaClient

FIRST = "mysql-bin.000001"
BUDGET = 1 << 20


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[DownstreamServer]:
    generation = await Generation.open(tmp_path / "archive")
    generation.set_identity(SourceIdentity("mysql", "5.6.24-log", 1, "11111111-2222-3333-4444-555555555555"))
    built = BinlogBuilder().ddl().transaction(*(1 << 20 for _ in range(16)))
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    options = ListenOptions(memory_bytes=BUDGET)
    server = DownstreamServer(Archive.of(generation), [Account.with_password(USER, PASSWORD)], options=options)
    await server.start("127.0.0.1", 0)
    yield server
    await server.close()
    await generation.close()


async def connected(server: DownstreamServer) -> ReplicaClient:
    return await asyncio.to_thread(ReplicaClient, server.port)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


def only_session(server: DownstreamServer) -> "weakref.ref[Session]":
    (session,) = server.sessions
    return weakref.ref(session)


@pytest.mark.parametrize("way", ["goodbye", "cut", "unfinished", "stream", "refused stream", "refused statement"])
async def test_nothing_of_a_connection_waits_for_the_collector(
    server: DownstreamServer, no_collector: None, way: str
) -> None:
    client = await connected(server)
    session = only_session(server)
    machine = weakref.ref(server.sessions[0].client.machine)
    if way == "unfinished":
        await asyncio.to_thread(
            client.connection._sock.sendall, (1 << 19).to_bytes(3, "little") + b"\0\x03" + bytes(1 << 18)
        )
    elif way == "stream":
        await asyncio.to_thread(client.set_up)
        await asyncio.to_thread(client.ask_dump, FIRST, 4)
        await until(lambda: server.sessions[0].dump is not None)
    elif way == "refused stream":
        await asyncio.to_thread(client.set_up)
        await asyncio.to_thread(client.ask_dump, "mysql-bin.000099", 4)
        with pytest.raises(pymysql.MySQLError):
            await asyncio.to_thread(client.event)
    elif way == "refused statement":
        with pytest.raises(pymysql.MySQLError):
            await asyncio.to_thread(client.query, "KILL 12345")
    await asyncio.to_thread(client.close if way == "goodbye" else client.cut)
    await until(lambda: not server.sessions)
    await until(lambda: session() is None and machine() is None)
    assert server.memory.facts().used_bytes == 0


async def test_what_a_client_keeps_is_counted_until_it_is_taken_back(server: DownstreamServer) -> None:
    client = await connected(server)
    before = server.memory.facts().used_bytes
    await asyncio.to_thread(client.query, f"SET @a = '{'a' * 16000}'")
    assert 16000 < server.memory.facts().used_bytes - before < 20000
    text = f"SELECT '{'b' * 30000}'"
    await asyncio.to_thread(client.command, COMMAND.COM_STMT_PREPARE, text.encode())
    packet = await asyncio.to_thread(client.connection._read_packet)
    number = packet.get_all_data()[1:5]
    assert 46000 < server.memory.facts().used_bytes - before < 60000
    await asyncio.to_thread(client.command, COMMAND.COM_STMT_CLOSE, number)
    await asyncio.to_thread(client.query, "SET @a = 1")
    assert server.memory.facts().used_bytes - before < 1000
    client.cut()


async def test_a_stream_that_is_not_read_counts_for_its_window_and_keeps_its_place(server: DownstreamServer) -> None:
    client = await connected(server)
    await asyncio.to_thread(client.set_up)
    await asyncio.to_thread(client.ask_dump, FIRST, 4)
    await until(lambda: server.sessions[0].write_paused)
    assert 0 < server.memory.facts().used_bytes < BUDGET // 2
    events = await asyncio.to_thread(client.events, 3)
    assert len(events) == 3
    assert server.memory.facts().ended == 0
    client.cut()


async def test_the_largest_connection_is_told_why_it_ends_and_others_go_on(server: DownstreamServer) -> None:
    small, large = await connected(server), await connected(server)
    await asyncio.to_thread(small.query, "SET @a = 'kept'")
    head = ((2 << 20) - 1).to_bytes(3, "little")
    await asyncio.to_thread(large.connection._sock.sendall, head + b"\0\x1e" + bytes(3 << 19))
    with pytest.raises(pymysql.MySQLError, match="Out of memory: clients make binlog-relay hold") as raised:
        await asyncio.to_thread(large.connection._read_packet)
    assert raised.value.args[0] == 1105, "1041 would stop a replica for good"
    assert server.memory.facts().ended == 1
    assert await asyncio.to_thread(small.query, "SELECT @a") == (("kept",),)
    small.cut()
    large.cut()
