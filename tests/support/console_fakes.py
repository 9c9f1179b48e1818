"""Substitutes for the console's connections and source, which report what a test wants."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from protocol.commands import RegisterSlave
from protocol.errors import StatementRefused
from protocol.statements import SourceFacts
from relay.downstream.connection.client_status import ClientStatus
from relay.downstream.connection.traffic import Traffic
from relay.process.memory_budget import MemoryBudget
from relay.upstream.control import SourceChange
from relay.upstream.source.source_status import SourceStatus

MYSQL_56 = SourceFacts("mysql", "5.6.24-log", 1, "11111111-2222-3333-4444-555555555555", "CRC32")
MYSQL_97 = SourceFacts("mysql", "9.7.4", 1, "11111111-2222-3333-4444-555555555555", "CRC32")
MARIADB = SourceFacts("mariadb", "10.11.19-MariaDB-log", 1, None, "CRC32")

FOLLOWING = SourceStatus(
    kind="server",
    host="192.0.2.7",
    port=3306,
    user="repl",
    connect_retry_s=30.0,
    state="Waiting for source to send event",
    io_running="Yes",
    stopped_by_operator=False,
    started_by_operator=False,
    changed_by_operator=False,
    received_file="mysql-bin.000002",
    received_offset=900,
    archived_file="mysql-bin.000002",
    archived_offset=800,
    synced_file="mysql-bin.000002",
    synced_offset=700,
    last_error_number=0,
    last_error_text="",
    last_error_at=None,
    ssl_mode="required",
    ssl_ca="/etc/ca.pem",
    ssl_cert="",
    ssl_key="",
    public_key="",
    tls_version="TLSv1.3",
    cipher="TLS_AES_256_GCM_SHA384",
    heartbeat_period_s=5.0,
    flavour="mysql",
    version="5.6.24-log",
    server_id=1,
    server_uuid="11111111-2222-3333-4444-555555555555",
    own_server_id=4242,
    retries=0,
    received_heartbeats=3,
    stream_heartbeats=2,
    attached_at=1_700_000_000.0,
    last_event_timestamp=1_700_000_000,
    ack="synced",
    semi_sync=True,
    acknowledged_file="mysql-bin.000002",
    acknowledged_offset=700,
    acknowledged_count=12,
)


def a_client(connection_id: int = 1, user: str = "root", **more: Any) -> ClientStatus:
    """Return a logged-in client that does nothing by default."""
    said = {"address": "192.0.2.9:40000", "is_admin": True, "facts": MYSQL_56, "is_at_end": True, **more}
    return ClientStatus(connection_id=connection_id, user=user, **said)


def a_replica(number: int, file: str, offset: int, *, server_id: int = 0, **more: Any) -> ClientStatus:
    """Return a replica that is being sent a file."""
    server_id = server_id or 100 + number
    return a_client(
        number,
        "replica",
        address=f"192.0.2.{number}:3333",
        is_admin=False,
        server_id=server_id,
        replica_uuid=f"uuid-{server_id}",
        registered=RegisterSlave(server_id, "", "", 3306),
        dump_began_at=asyncio.get_running_loop().time() - 60,
        sent_position=(file, offset),
        **more,
    )


@dataclass
class FakeConnections:
    """A few clients."""

    clients: list[ClientStatus] = field(default_factory=list)
    traffic: Traffic = field(default_factory=Traffic)
    memory: MemoryBudget = field(default_factory=lambda: MemoryBudget(512 << 20, lambda _look: None))
    forgiven: int = 0
    semi_sync_status: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def connected(self) -> int:
        return len(self.clients)

    def statuses(self) -> list[ClientStatus]:
        return self.clients

    def forgive_logins(self) -> None:
        self.forgiven += 1


class FakeSource:
    """A source that follows orders, and records them."""

    def __init__(self, status: SourceStatus = FOLLOWING) -> None:
        self.now = status
        self.changes: list[SourceChange] = []
        self.refusal: StatementRefused | None = None

    @property
    def running(self) -> bool:
        return self.now.io_running != "No"

    @property
    def received_heartbeats(self) -> int:
        return self.now.received_heartbeats

    def status(self) -> SourceStatus:
        return self.now

    async def start(self) -> bool:
        started = not self.running
        self.now = replace(self.now, io_running="Yes", state="Waiting for source to send event")
        return started

    async def stop(self) -> bool:
        stopped = self.running
        self.now = replace(self.now, io_running="No", state="", attached_at=None)
        return stopped

    async def change(self, change: SourceChange) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.changes.append(change)
