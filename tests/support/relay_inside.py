"""The whole relay inside the test's own event loop, wired as `binlog-relay run` wires it, its log in a list."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import structlog.testing

from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.verify import verify_archive
from relay.config import load_config
from relay.service.app import Relay
from relay.service.view_service import OpenOne
from relay.view.running.view_opening import open_view
from tests.support.free_port import free_port
from tests.support.relay_process import Endpoint
from tests.support.replica_client import ReplicaClient
from tests.support.source_proof import proof_of

USER = "replica"
PASSWORD = "replica-password"
WAIT_S = 15.0


class RelayInside:
    """A running relay in `directory`."""

    def __init__(self, relay: Relay, directory: Path, port: int, logs: list[Any]) -> None:
        self._relay = relay
        self.port = port
        self.logs = logs
        self.archive = directory / "archive" / "source"

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the log lines of one name, oldest first."""
        return [line for line in self.logs if line["event"] == event]

    def held(self) -> dict[str, bytes]:
        """Return the archived binlogs, whole."""
        return {
            path.name: path.read_bytes()
            for path in sorted(self.archive.glob("*.[0-9]*"))
            if path.name.rpartition(".")[2].isdigit()
        }

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until `condition()` is true."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, f"not within {WAIT_S} s: {what}; the log: {self.logs[-8:]}"
            await asyncio.sleep(0.01)

    async def until_held(self, name: str, size: int) -> None:
        """Wait until the archive has so much of a file."""
        path = self.archive / name
        await self.until(lambda: path.exists() and path.stat().st_size >= size, f"{name} with {size} bytes")

    async def until_published(self, name: str, size: int) -> None:
        """Wait until replicas may have so much of a file, a moment after it is on the disk."""

        def is_published() -> bool:
            archive = self._relay._archive
            file = archive.current.file(name) if archive is not None else None
            return file is not None and file.end >= size

        await self.until(is_published, f"{name} published up to {size}")

    async def until_logged(self, event: str, count: int = 1) -> dict[str, Any]:
        """Wait for the `count`th line of this name, and return it."""
        await self.until(lambda: len(self.logged(event)) >= count, f"{count} lines of {event}")
        return self.logged(event)[count - 1]

    async def replica(self, file: str, offset: int = 4, *, to_the_end: bool = False) -> ReplicaClient:
        """Return a replica that was sent the artificial Rotate, with a heartbeat every 50 ms."""

        def connect() -> ReplicaClient:
            client = ReplicaClient(self.port, user=USER, password=PASSWORD)
            client.set_up(server_id=77, heartbeat_s=0.05)
            client.ask_dump(file, offset, flags=1 if to_the_end else 0)
            client.event()
            return client

        return await asyncio.to_thread(connect)

    async def served(self, file: str) -> bytes:
        """Return all that a new replica is sent of the archive from the beginning of `file`, without artificial events."""
        client = await self.replica(file, to_the_end=True)
        events = await asyncio.to_thread(client.events_to_eof)
        client.cut()
        return b"".join(event.data for event in events if event.end_log_pos)


@contextlib.asynccontextmanager
async def relay_inside(
    directory: Path,
    source: Endpoint,
    *,
    heartbeat_period_s: float = 5.0,
    more: str = "",
    open_one: OpenOne = open_view,
    ssl_ca: Path | None = None,
) -> AsyncIterator[RelayInside]:
    """Run a relay of `source` until the block ends; then it must end with exit code 0. `more` is for its configuration. `ssl_ca` is the
    source's authority, if it is not the one of its data directory."""
    port = free_port()
    believed = {"ssl_mode": "verify_ca", "ssl_ca": ssl_ca} if ssl_ca is not None else proof_of(source, {})
    proof = "\n".join(f'{key} = "{value}"' for key, value in believed.items())
    config = directory / "relay.toml"
    config.write_text(
        f"""
        [source]
        host = "127.0.0.1"
        port = {source.port}
        user = "{source.replication_user}"
        password = "{source.replication_password}"
        server_id = 4242
        heartbeat_period_s = {heartbeat_period_s}
        connect_timeout_s = 2
        {proof}
        [archive]
        dir = "archive"
        sync_interval_s = 0.05
        [listen]
        position_wait_s = 60
        host = "127.0.0.1"
        port = {port}
        [[account]]
        user = "{USER}"
        password = "{PASSWORD}"
        {more}
        """
    )
    config.chmod(0o600)
    with structlog.testing.capture_logs() as logs:
        relay = Relay(load_config(config), config, open_one=open_one)
        running = asyncio.create_task(relay.serve())
        inside = RelayInside(relay, directory, port, logs)
        try:
            yield inside
        finally:
            relay._stop.set()
            code = await asyncio.wait_for(running, 10)
        assert code == 0, f"the relay ended with {code}: {logs[-5:]}"


def ledger(generation: Path) -> list[LedgerRow]:
    """Return the archive's ledger."""
    return read_ledger(generation)


def damage(generation: Path) -> list[str]:
    """Return what `archive verify --deep` finds."""
    return [str(finding) for finding in verify_archive(generation, deep=True)]
