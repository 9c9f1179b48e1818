"""The console behind a listening server: what it sees of real connections, and purging under their feet."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pymysql
import pytest

from protocol.auth.account import Account
from relay.admin.console import Console
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from relay.downstream.clients import Clients
from relay.downstream.listen_options import ListenOptions
from relay.downstream.server import DownstreamServer
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder
from tests.support.console_fakes import FakeSource
from tests.support.replica_client import PASSWORD, USER, ReplicaClient

T = TypeVar("T")
FIRST, SECOND, THIRD = (f"mysql-bin.{number:06d}" for number in (1, 2, 3))
# More than the buffers of both systems hold.
BIG = [1 << 20] * 24


class Served:
    """Three binlogs, the second one big; an account that may do everything and one that may not."""

    def __init__(self, generation: Generation, server: DownstreamServer) -> None:
        self.generation = generation
        self.server = server
        self.clients: list[ReplicaClient] = []

    async def client(self, user: str = "root") -> ReplicaClient:
        client = await call(lambda: ReplicaClient(self.server.port, user=user, password=PASSWORD))
        self.clients.append(client)
        return client

    async def replica(self, file: str, *, server_id: int) -> ReplicaClient:
        """A replica that was sent the artificial Rotate and reads no further by itself."""
        client = await self.client(USER)

        def ask() -> None:
            client.set_up(server_id=server_id)
            client.ask_dump(file, 4, server_id=server_id)
            client.event()

        await call(ask)
        return client

    async def query(self, statement: str, user: str = "root") -> tuple[tuple[object, ...], ...]:
        client = await self.client(user)
        return await call(lambda: client.query(statement))


async def call(function: Callable[[], T]) -> T:
    return await asyncio.wait_for(asyncio.to_thread(function), 20)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    files = {
        FIRST: BinlogBuilder().transaction(20).rotate(SECOND),
        SECOND: BinlogBuilder().transaction(20).transaction(*BIG).transaction(9).rotate(THIRD),
        THIRD: BinlogBuilder().transaction(20),
    }
    generation = await Generation.open(tmp_path / "archive")
    generation.set_identity(SourceIdentity("mysql", "5.6.24-log", 1, "11111111-2222-3333-4444-555555555555"))
    for name, built in files.items():
        await generation.begin_file(name)
        await append_all(generation, built.data)
    accounts = [Account.with_password(USER, PASSWORD), Account.with_password("root", PASSWORD, admin=True)]
    archive = Archive.of(generation)
    options = ListenOptions(position_wait_s=5.0, max_connections=20, max_login_failures=2)
    clients = Clients(options)
    console = Console(archive, FakeSource(), clients)
    server = DownstreamServer(archive, accounts, options=options, clients=clients, console=console)
    await server.start("127.0.0.1", 0)
    served = Served(generation, server)
    yield served
    for client in served.clients:
        client.cut()
    await server.close()
    console.close()
    await generation.close()


async def test_what_a_slow_replica_reads_stays_and_the_rest_of_it_arrives(served: Served) -> None:
    replica = await served.replica(SECOND, server_id=77)
    root = await served.client()
    await call(lambda: root.query(f"PURGE BINARY LOGS TO '{THIRD}'"))
    (warning,) = await call(lambda: root.query("SHOW WARNINGS"))
    assert warning[1] == 1867 and SECOND in str(warning[2]) and "server_id 77" in str(warning[2])
    assert [file.name for file in served.generation.files] == [SECOND, THIRD]
    events = await call(lambda: replica.events(30))
    assert sum(len(event.data) for event in events) > 20 << 20


async def test_a_file_purged_behind_a_replica_that_waits_at_the_end_disturbs_nobody(served: Served) -> None:
    replica = await served.replica(THIRD, server_id=77)
    await call(lambda: replica.events(4))
    assert await served.query(f"PURGE BINARY LOGS TO '{THIRD}'") == ()
    assert [file.name for file in served.generation.files] == [THIRD]
    assert not (served.generation.directory / SECOND).exists()
    built = BinlogBuilder().transaction(20)
    start = built.size
    built.transaction(5)
    await append_all(served.generation, built.data, start=start)
    assert bytes((await call(replica.event)).data)  # type: ignore[union-attr]


async def test_a_replica_that_is_held_for_a_future_position_keeps_nothing_that_is_older(served: Served) -> None:
    client = await served.client(USER)

    def ask() -> None:
        client.set_up(server_id=78)
        client.ask_dump("mysql-bin.000004", 4, server_id=78)

    await call(ask)
    await until(lambda: any(session.client.waits_for_position for session in served.server.sessions))
    await served.query(f"PURGE BINARY LOGS TO '{THIRD}'")
    assert [file.name for file in served.generation.files] == [THIRD]


async def test_a_purged_file_is_asked_for_in_vain_with_the_files_that_are_left(served: Served) -> None:
    await served.query(f"PURGE BINARY LOGS TO '{THIRD}'")
    with pytest.raises(pymysql.MySQLError) as caught:
        await served.replica(FIRST, server_id=77)
        await call(served.clients[-1].event)
    assert caught.value.args[0] == 1236
    assert f"it holds {THIRD} to {THIRD}" in caught.value.args[1]


async def test_an_admin_ends_anybodys_connection_and_others_only_their_own(served: Served) -> None:
    replica = await served.replica(SECOND, server_id=77)
    rows = await served.query("SHOW PROCESSLIST")
    dump = next(row for row in rows if row[4] == "Binlog Dump")
    assert (dump[1], str(dump[7]).partition(":")[0]) == (USER, SECOND)
    root = await served.client()
    root_id = (await call(lambda: root.query("SELECT CONNECTION_ID()")))[0][0]
    with pytest.raises(pymysql.MySQLError) as caught:
        await served.query(f"KILL {root_id}", USER)
    assert caught.value.args[0] == 1095
    await call(lambda: root.query(f"KILL {dump[0]}"))
    with pytest.raises((pymysql.MySQLError, OSError)):
        await call(lambda: replica.events(1000))


async def test_an_account_without_admin_sees_its_own_connections_only(served: Served) -> None:
    await served.client()
    assert {row[1] for row in await served.query("SHOW PROCESSLIST", USER)} == {USER}


async def test_flush_hosts_lets_a_blocked_address_in_again(served: Served) -> None:
    root = await served.client()
    for _ in range(2):
        with pytest.raises(pymysql.err.OperationalError):
            await call(lambda: ReplicaClient(served.server.port, user="root", password="wrong"))
    with pytest.raises(pymysql.err.OperationalError) as caught:
        await served.client()
    assert caught.value.args[0] == 1129
    await call(lambda: root.query("FLUSH HOSTS"))
    assert await served.query("SELECT 1") == ((1,),)


async def test_connections_are_counted_by_how_they_end(served: Served) -> None:
    traffic = served.server.traffic
    with pytest.raises(pymysql.err.OperationalError):
        await call(lambda: ReplicaClient(served.server.port, user="nobody", password="x"))
    await until(lambda: traffic.aborted_connects == 1)
    polite, rude = await served.client(), await served.client()
    await call(polite.connection.close)
    await call(rude.cut)
    await until(lambda: traffic.aborted_clients == 1)
    assert (traffic.connections, traffic.aborted_connects, len(served.server.sessions)) == (3, 1, 0)


async def test_statements_and_bytes_are_counted(served: Served) -> None:
    traffic = served.server.traffic
    client = await served.client()
    before = (traffic.statements, traffic.commands, traffic.bytes_received, traffic.bytes_sent)
    await call(lambda: client.query("SELECT VERSION()"))
    await call(lambda: client.connection.ping(reconnect=False))
    after = (traffic.statements, traffic.commands, traffic.bytes_received, traffic.bytes_sent)
    assert [new - old for new, old in zip(after[:3], before[:3], strict=True)] == [1, 2, 5 + 16 + 5]
    assert after[3] > before[3]


async def test_what_a_replica_was_sent_is_in_bytes_sent_before_and_after_its_end(served: Served) -> None:
    replica = await served.replica(SECOND, server_id=77)
    await call(lambda: replica.events(10))
    during = 0
    async with asyncio.timeout(10):
        while during <= 1 << 20:  # how much the sockets take of what nobody reads is the system's affair
            during = int(str((await served.query("SHOW STATUS LIKE 'Bytes_sent'"))[0][1]))
    replica.cut()
    await until(lambda: not any(session.dump for session in served.server.sessions))
    assert served.server.traffic.bytes_sent >= during
