"""The listening side: who is connected, who waits for the archive to grow."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterable, Mapping
from typing import Final, Literal, Protocol

import structlog

from protocol.auth import Account
from protocol.errors import AnsweredError, ErrorCode
from protocol.handshake import plain_version
from protocol.source_side import Limits
from protocol.statements import SourceFacts
from relay.archive.archived_file import SourceIdentity
from relay.downstream.archive_view import ServedArchive
from relay.downstream.dump import OUTPUT_BYTES, Dump, replaced_by_newer
from relay.downstream.file_reads import BufferPool, FileReads
from relay.downstream.pacing import WakePacer
from relay.downstream.session import Session

_INPUT_BYTES: Final = 65536
_KEPT_OUTPUTS: Final = 8
_GRACE_S: Final = 0.5


class IdentifiedArchive(ServedArchive, Protocol):
    """An archive that knows whose it is."""

    @property
    def identity(self) -> SourceIdentity | None:
        """The source; None until it was seen."""


def source_facts(archive: IdentifiedArchive) -> SourceFacts | None:
    """The source as replicas are to see it; None while nothing is known of it.

    The newest file says whether there are checksums; without an identity (binlogs of a source that is gone) it also
    says who wrote it.
    """
    newest = archive.files[-1] if archive.files else None
    checksum: Literal["CRC32", "NONE"] = "CRC32" if newest is not None and newest.checksum else "NONE"
    identity = archive.identity
    if identity is not None:
        flavour: Literal["mysql", "mariadb"] = "mariadb" if identity.flavour == "mariadb" else "mysql"
        version = plain_version(identity.version)
        return SourceFacts(flavour, version, identity.server_id, identity.server_uuid, checksum)
    if newest is None:
        return None
    flavour = "mariadb" if newest.flavour == "mariadb" else "mysql"
    return SourceFacts(flavour, plain_version(newest.server_version), newest.server_id, None, checksum)


class DownstreamServer:
    """Serves an archive to replicas. `start`, then `close`; all on one event loop.

    `position_wait_s`: how long a request for a position that may still arrive is held.
    """

    def __init__(
        self,
        archive: IdentifiedArchive,
        accounts: Iterable[Account],
        *,
        position_wait_s: float = 10.0,
        max_connections: int = 500,
        handshake_timeout_s: float = 10.0,
    ) -> None:
        self.archive = archive
        self.accounts: Mapping[str, Account] = {}
        self.replace_accounts(accounts)
        self.position_wait_s = position_wait_s
        self.limits = Limits(login_wait_s=handshake_timeout_s)
        self.reads = FileReads()
        self.outputs = BufferPool(OUTPUT_BYTES, _KEPT_OUTPUTS)
        self.input_view = memoryview(bytearray(_INPUT_BYTES))
        self._max_connections = max_connections
        self._ids = itertools.count(1)
        self._sessions: dict[int, Session] = {}
        self._server: asyncio.Server | None = None
        self._pacer = WakePacer()
        self._wake: asyncio.TimerHandle | None = None
        self._edge: set[Dump] = set()
        self._moved = asyncio.Event()
        self._empty = asyncio.Event()
        self._closing = False
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("relay.downstream")

    def replace_accounts(self, accounts: Iterable[Account]) -> None:
        """Logins from now on; who is connected stays."""
        self.accounts = {account.user: account for account in accounts}

    @property
    def port(self) -> int:
        """The port that is listened on; 0 when none is."""
        return int(self._server.sockets[0].getsockname()[1]) if self._server and self._server.sockets else 0

    @property
    def sessions(self) -> list[Session]:
        """Who is connected now."""
        return list(self._sessions.values())

    async def start(self, host: str, port: int) -> None:
        """Listens. Raises: OSError, for instance when the port is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Session(self), host, port, backlog=512)
        self.archive.watch(self._archive_moved)
        self._log.info("listening", host=host, port=self.port)

    async def close(self) -> None:
        """Stops listening and ends all sessions, within a second. Replicas come back by themselves (ERR 1053)."""
        if self._closing:
            return
        self._closing = True
        if self._server is not None:
            self.archive.unwatch(self._archive_moved)
            self._server.close()
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        for session in self.sessions:
            session.stop(AnsweredError(ErrorCode.ER_SERVER_SHUTDOWN, "Server shutdown in progress"))
        await self._until_empty()
        for session in self.sessions:
            session.abort()
        await self._until_empty()
        self.reads.shutdown()
        self._log.info("stopped_listening")

    async def _until_empty(self) -> None:
        """Waits until nobody is connected, half a second at most."""
        if self._sessions:
            self._empty.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), _GRACE_S)

    # --- what sessions call -----------------------------------------------------------------------------------------

    def admit(self, session: Session) -> AnsweredError | tuple[int, SourceFacts]:
        """A connection came: its id and the source's facts, or the error it is sent instead of a greeting."""
        facts = source_facts(self.archive)
        connection_id = next(self._ids)
        error: AnsweredError | None = None
        if self._closing:
            error = AnsweredError(ErrorCode.ER_SERVER_SHUTDOWN, "Server shutdown in progress")
        elif len(self._sessions) >= self._max_connections:
            error = AnsweredError(ErrorCode.ER_CON_COUNT_ERROR, "Too many connections")
        elif facts is None:
            text = "binlog-relay has not heard from its source yet; try again"
            error = AnsweredError(ErrorCode.ER_UNKNOWN_ERROR, text)
        if error is not None or facts is None:
            return error or AnsweredError(ErrorCode.ER_UNKNOWN_ERROR, "no source")
        self._sessions[connection_id] = session
        return connection_id, facts

    def gone(self, session: Session) -> None:
        """The connection ended."""
        self._sessions.pop(session.connection_id, None)
        if not self._sessions:
            self._empty.set()

    def kill(self, connection_id: int, user: str) -> bool:
        """Ends that connection, if it is the same user's; whether it was."""
        target = self._sessions.get(connection_id)
        if target is None or target.user != user:
            return False
        self._log.info("connection_killed", connection_id=connection_id, user=user)
        asyncio.get_running_loop().call_soon(target.abort)
        return True

    def dump_begins(self, session: Session) -> None:
        """Ends an older dump of the same replica: the same uuid, or the same server_id where there is none.

        An older request that is still held ends too: begun later, it would take the place of this newer one.
        """
        if not session.server_id:
            return
        for other in self.sessions:
            if other is session or not other.server_id:
                continue
            held_longer = other.waits_for_position and other.request_number < session.request_number
            if other.dump is None and not held_longer:
                continue
            same = (
                other.replica_uuid == session.replica_uuid
                if session.replica_uuid
                else not other.replica_uuid and other.server_id == session.server_id
            )
            if same:
                other.stop(replaced_by_newer())

    def wait_at_edge(self, dump: Dump) -> None:
        """`dump.pump` is to be called when the archive grows."""
        self._edge.add(dump)

    def leave_edge(self, dump: Dump) -> None:
        """`dump` has ended: an archive that does not grow any more would keep it for ever."""
        self._edge.discard(dump)

    def next_move(self) -> asyncio.Event:
        """Is set when the archive grows from now on."""
        return self._moved

    # --- the live edge ----------------------------------------------------------------------------------------------

    def _archive_moved(self) -> None:
        if self._wake is not None or self._closing:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        due = self._pacer.due(now)
        if due > now:
            self._wake = loop.call_at(due, self._broadcast)
        else:
            self._broadcast()

    def _broadcast(self) -> None:
        """Lets everyone send who waits for more. Those who wait again afterwards put themselves back."""
        self._wake = None
        loop = asyncio.get_running_loop()
        started = loop.time()
        waiting, self._edge = self._edge, set()
        for dump in waiting:
            dump.pump()
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        self._pacer.finished(started, loop.time())
