"""The generations of an archive as they are served to replicas, in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import pymysql
import pytest

from protocol.auth.account import Account
from protocol.binlog.event_type import EventType
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_request import encode_binlog_dump_gtid
from protocol.gtid.gtid_set import GtidSet
from protocol.statements.session.gtid_variables import GtidVariables
from relay.archive.archive import Archive
from relay.downstream.connection.presentation import Presentation
from relay.downstream.listen_options import ListenOptions
from relay.downstream.request.source_state import SourceState
from relay.downstream.server import DownstreamServer
from tests.support.generation_filling import A
from tests.support.replica_client import ReplicaClient

T = TypeVar("T")
USER: Final = "replica"
PASSWORD: Final = "replica-password"


async def call(function: Callable[[], T]) -> T:
    return await asyncio.wait_for(asyncio.to_thread(function), 20)


class Served:
    def __init__(self, archive: Archive, server: DownstreamServer) -> None:
        self.archive = archive
        self.server = server
        self.clients: list[ReplicaClient] = []

    async def client(self, **said: object) -> ReplicaClient:
        client = await call(lambda: ReplicaClient(self.server.port, user=USER, password=PASSWORD, timeout_s=5))
        self.clients.append(client)
        await call(lambda: client.set_up(**said))  # type: ignore[arg-type]
        return client

    async def by_set(self, held: str, *, blocks: bool = False, **said: object) -> ReplicaClient:
        client = await self.client(**said)
        body = encode_binlog_dump_gtid(encode_gtid_set(GtidSet.from_text(held)), flags=0 if blocks else 1, server_id=77)
        await call(lambda: client.command(0x1E, body))
        return client

    async def by_position(self, held: str, *, blocks: bool = False, until: str | None = None) -> ReplicaClient:
        """Return a MariaDB replica."""
        client = await self.client()
        await call(lambda: client.query(f"SET @mariadb_slave_capability=4, @slave_connect_state='{held}'"))
        if until is not None:
            await call(lambda: client.query(f"SET @slave_until_gtid='{until}'"))
        await call(lambda: client.ask_dump("", 4, flags=0 if blocks else 1))
        return client


Serve = Callable[..., Any]


@asynccontextmanager
async def servers_of_generations() -> AsyncIterator[Serve]:
    """Yield a function: `await serve(archive)` returns a `Served`; all end, and so do their archives."""
    made: list[Served] = []

    async def start(archive: Archive, *, semi_sync: bool = False) -> Served:
        accounts = [Account.with_password(USER, PASSWORD)]
        server = DownstreamServer(
            archive,
            accounts,
            SourceState(lambda: GtidVariables(mode="ON")),
            ListenOptions(position_wait_s=0.5, presentation=Presentation(semi_sync=semi_sync)),
        )
        await server.start("127.0.0.1", 0)
        made.append(Served(archive, server))
        return made[-1]

    try:
        yield start
    finally:
        for served in made:
            for client in served.clients:
                client.cut()
            await served.server.close()
            await served.archive.close()


def transactions(events: list[Any]) -> list[str]:
    """Return the GTIDs, and the files that were named, of a stream."""
    seen = []
    for event in events:
        data = event.data
        if event.kind == EventType.GTID:
            uuid, number = data[20:36], int.from_bytes(data[36:44], "little")
            seen.append(f"{'A' if uuid == bytes.fromhex(A.replace('-', '')) else 'B'}{number}")
        elif event.kind == EventType.MARIADB_GTID:
            number, domain = int.from_bytes(data[19:27], "little"), int.from_bytes(data[27:31], "little")
            seen.append(f"{domain}-{int.from_bytes(data[5:9], 'little')}-{number}")
        elif event.kind == EventType.ROTATE and not event.end_log_pos:
            seen.append(data[27:-4].decode())
    return seen


async def read_refusal(client: ReplicaClient) -> str:
    with pytest.raises(pymysql.MySQLError) as caught:
        await call(client.events_to_eof)
    assert caught.value.args[0] == 1236
    return str(caught.value.args[1])
