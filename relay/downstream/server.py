"""The listening side: who is connected, who waits for the archive to grow."""

import asyncio
import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Final, Protocol

import structlog

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.errors import AnsweredError, ErrorCode, StatementRefused
from protocol.source_side.machine import Limits, Ruling
from protocol.statements import Done, GivenAnswer, KillConnection, Request, SourceFacts, StatisticsText
from protocol.statements.requests import ShowStatistics
from protocol.statements.session.gtid_variables import GtidVariables
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.read.file_reads import BufferPool, FileReads
from relay.archive.storage.replica_marks import ReplicaIdentity
from relay.downstream.connection.login_guard import LoginGuard
from relay.downstream.connection.presentation import Presentation, located, source_facts
from relay.downstream.connection.replica_session import Session
from relay.downstream.connection.strangers import StrangerLog
from relay.downstream.connection.traffic import Traffic
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.start.place_after import PlaceSearches
from relay.downstream.stream.acknowledgements import AcknowledgementSums, semi_sync_status
from relay.downstream.stream.dump import Dump, replaced_by_newer
from relay.downstream.stream.event_packets import OUTPUT_BYTES
from relay.downstream.stream.pacing import WakePacer
from relay.process.background import guarded, tell_fault
from relay.process.certificates import ServerTls, described

_INPUT_BYTES: Final = 65536
_KEPT_OUTPUTS: Final = 8
_GRACE_S: Final = 0.5
_REMEMBERED_ENDS: Final = 64


class Console(Protocol):
    """Answers what people and monitors ask of the running relay."""

    async def answer(self, request: Request, asker: Session) -> GivenAnswer:
        """The answer. Raises: StatementRefused."""


class DownstreamServer:
    """Serves an archive to replicas. `start`, then `close`; all on one event loop.

    `position_wait_s`: how long a request for a position that may still arrive is held.
    """

    def __init__(
        self,
        archive: Archive,
        accounts: Iterable[Account],
        *,
        position_wait_s: float = 10.0,
        max_connections: int = 500,
        handshake_timeout_s: float = 10.0,
        presentation: Presentation | None = None,
        tls: ServerTls | None = None,
        max_login_failures: int = 20,
        login_block_s: float = 60.0,
    ) -> None:
        self.archive = archive
        # One at a time: whoever guesses passwords gets no more of the machine than a thread.
        self.checks: Executor = ThreadPoolExecutor(1, thread_name_prefix="login-check")
        self.handshakes: Executor = ThreadPoolExecutor(2, thread_name_prefix="tls-handshake")
        self.tls = tls
        self.guard = LoginGuard(max_login_failures, login_block_s)
        self.stranger_log = StrangerLog()
        self.accounts = Accounts(accounts, secret=os.urandom(32))
        self._prepare_key()
        self.presentation = presentation or Presentation()
        self.acknowledgement_sums = AcknowledgementSums()
        self.traffic = Traffic()
        self.position_wait_s = position_wait_s
        self.limits = Limits(login_wait_s=handshake_timeout_s)
        self.reads = FileReads()
        self.outputs = BufferPool(OUTPUT_BYTES, _KEPT_OUTPUTS)
        self.gtid_lookup = GtidLookup(archive)
        self.place_searches = PlaceSearches(archive, self.gtid_lookup)
        self.input_view = memoryview(bytearray(_INPUT_BYTES))
        self._max_connections = max_connections
        self._ids = itertools.count(1)
        self._sessions: dict[int, Session] = {}
        self._strangers: dict[int, Session] = {}
        """Who had not logged in when last looked at, oldest first."""
        # MariaDB's semi-sync replica closes its connection, then has it killed by another one, and complains if it is not
        # there: users of connections that ended, by id, a few.
        self._left: dict[int, str] = {}
        self._server: asyncio.Server | None = None
        self._pacer = WakePacer()
        self._wake: asyncio.TimerHandle | None = None
        self._edge: set[Dump] = set()
        self._moved = asyncio.Event()
        self._empty = asyncio.Event()
        self._closing = False
        self.console: Console | None = None
        """Answers statements about the relay; whoever makes the server sets it."""
        self.gtid_variables: Callable[[], GtidVariables] = GtidVariables
        self.source_settings: Callable[[], Mapping[str, str]] = dict
        """The GTID variables as they are now; whoever makes the server sets it."""
        self._started_at = 0.0
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("relay.downstream")

    def replace_accounts(self, accounts: Iterable[Account]) -> None:
        """Logins from now on; who is connected stays."""
        self.accounts = self.accounts.replaced(accounts)
        self._prepare_key()

    def replace_tls(self, tls: ServerTls | None) -> None:
        """What connections from now on are offered; those that are there keep what they have."""
        self.tls = tls

    @property
    def generation(self) -> Generation:
        """Of the source that is followed."""
        return self.archive.current

    def shown_server_id(self, generation: Generation) -> int:
        """Of the source whose binlogs these are, as replicas are to see it."""
        source = source_facts(generation)
        return self.presentation.facts(source).server_id if source is not None else 0

    def _prepare_key(self) -> None:
        """Makes the RSA key before the first login that needs it would wait for it."""
        if self.accounts.may_need_rsa_key:
            self.checks.submit(guarded(self.accounts.rsa_key, "making the RSA key", lambda _fault: None))

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
        self._started_at = loop.time()
        self._server = await loop.create_server(lambda: Session(self), host, port, backlog=512)
        self.archive.watch(self._archive_moved)
        self._log.info("listening", host=host, port=self.port, **described(self.tls))

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
        self.gtid_lookup.shutdown()
        self.checks.shutdown(wait=False, cancel_futures=True)
        self.handshakes.shutdown(wait=False, cancel_futures=True)
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
        source = source_facts(self.generation)
        facts = located(self.presentation.facts(source), self.generation, self.port) if source is not None else None
        if facts is not None:
            facts = replace(
                facts, gtids=self.gtid_variables, settings=self.source_settings, max_connections=self._max_connections
            )
        connection_id = next(self._ids)
        self.traffic.connections += 1
        error: AnsweredError | None = None
        blocked = self.guard.refusal(session.host, asyncio.get_running_loop().time())
        if self._closing:
            error = AnsweredError(ErrorCode.ER_SERVER_SHUTDOWN, "Server shutdown in progress")
        elif blocked is not None:
            error = blocked
        elif len(self._sessions) >= self._max_connections and not self._send_a_stranger_away():
            error = AnsweredError(ErrorCode.ER_CON_COUNT_ERROR, "Too many connections")
        elif facts is None:
            text = "binlog-relay has not heard from its source yet; try again"
            error = AnsweredError(ErrorCode.ER_UNKNOWN_ERROR, text)
        if error is not None or facts is None:
            return error or AnsweredError(ErrorCode.ER_UNKNOWN_ERROR, "no source")
        self._sessions[connection_id] = self._strangers[connection_id] = session
        self.traffic.most_connections = max(self.traffic.most_connections, len(self._sessions))
        return connection_id, facts

    def _send_a_stranger_away(self) -> bool:
        """Makes room: ends the oldest connection that has not logged in, so that strangers cannot lock replicas out."""
        while self._strangers:
            connection_id = next(iter(self._strangers))
            stranger = self._strangers.pop(connection_id)
            if connection_id in self._sessions and not stranger.user:
                stranger.log.stranger("stranger_sent_away", note="listen.max_connections")
                del self._sessions[connection_id]
                stranger.abort()
                return True
        return False

    def rule_login(self, session: Session, user: str, accepted: bool) -> Ruling:
        """A verdict on a login as `user`: counted, and when it may be told."""
        now = asyncio.get_running_loop().time()
        was_blocked = self.guard.refusal(session.host, now) is not None
        ruling = self.guard.rule(session.host, now, user=user, accepted=accepted)
        if not was_blocked and self.guard.refusal(session.host, now) is not None:
            failures, block_s = self.guard.max_failures, self.guard.block_s
            self._log.warning("address_blocked", address=session.host, login_failures=failures, block_s=block_s)
        return ruling

    def forgive_logins(self) -> None:
        """Forgets failed logins: blocked addresses may try again."""
        self.guard.forget()

    def gone(self, session: Session) -> None:
        """The connection ended."""
        if self._sessions.pop(session.connection_id, None) is not None and session.server_id:
            self._left[session.connection_id] = session.user
            if len(self._left) > _REMEMBERED_ENDS:
                del self._left[next(iter(self._left))]
        self._strangers.pop(session.connection_id, None)
        if not self._sessions:
            self._empty.set()

    async def answer_request(self, session: Session, request: Request) -> GivenAnswer:
        """Answers what only the running relay can. Raises: AnsweredError, which the client is told."""
        if isinstance(request, KillConnection):
            return self._kill(session, request.connection_id, query_only=request.query_only)
        if self.console is not None:
            return await self.console.answer(request, session)
        if isinstance(request, ShowStatistics):
            up_s = int(asyncio.get_running_loop().time() - self._started_at)
            return StatisticsText(f"Uptime: {up_s}  Threads: {len(self._sessions)}")
        raise StatementRefused(
            ErrorCode.ER_NOT_SUPPORTED_YET, "binlog-relay has no console here that could answer this"
        )

    def _kill(self, session: Session, connection_id: int, *, query_only: bool) -> Done:
        """Ends a connection: anybody's for an admin, those of the same user for others. query_only: only if it dumps, or
        waits for a position to do so; else the statement that it waits for."""
        target = self._sessions.get(connection_id)
        if target is None and self._left.get(connection_id) == session.user:
            return Done()
        if target is None:
            raise StatementRefused(ErrorCode.ER_NO_SUCH_THREAD, f"Unknown thread id: {connection_id}")
        if target.user != session.user and not session.is_admin:
            raise StatementRefused(ErrorCode.ER_KILL_DENIED_ERROR, f"You are not owner of thread {connection_id}")
        if query_only and target.dump is None and not target.waits_for_position:
            if target is not session:
                target.interrupt()
            return Done()
        self._log.info("connection_killed", connection_id=connection_id, user=session.user, killed_user=target.user)
        asyncio.get_running_loop().call_soon(target.abort)
        return Done()

    @property
    def semi_sync_status(self) -> dict[str, int | str]:
        """The semi-sync part of SHOW STATUS, each name without its prefix; empty where no acknowledgements are asked for."""
        if not self.presentation.semi_sync:
            return {}
        clients = sum(session.acknowledgements is not None for session in self._sessions.values())
        return semi_sync_status(self.acknowledgement_sums, clients=clients)

    def check_replica(self, server_id: int, server_uuid: str) -> None:
        """Refuses a replica that has somebody else's ids. Raises: PositionRefused."""
        source = source_facts(self.generation)
        if source is not None:
            self.presentation.check_replica(source, server_id, server_uuid)

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
            elif other.server_id == session.server_id and session.replica_uuid and other.replica_uuid:
                self._log.warning(
                    "server_id_shared",
                    server_id=session.server_id,
                    replica_address=session.address,
                    uuid=session.replica_uuid,
                    other_address=other.address,
                    other_uuid=other.replica_uuid,
                    advice="Two replicas have one server_id: give each its own, or one skips what the other wrote.",
                )

    async def until_left(self, identity: ReplicaIdentity) -> None:
        """Until it is known what this replica had read when it ended a stream of its own just now."""
        for other in self.sessions:
            if other.leaving is not None and ReplicaIdentity(other.server_id, other.replica_uuid) == identity:
                await other.leaving.wait()

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
            try:
                dump.pump()
            except Exception as fault:  # of one replica's: the others are not kept waiting
                tell_fault("dump_fault", fault, position=str(dump.position))
                self._break_off(dump)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        self._pacer.finished(started, loop.time())

    def _break_off(self, dump: Dump) -> None:
        for session in self.sessions:
            if session.dump is dump:
                session.abort()
