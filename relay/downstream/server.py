"""The listening side: who is connected, who waits for the archive to grow."""

import asyncio
import contextlib
import os
from collections.abc import Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Final, Protocol

import structlog

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.errors import AnsweredError, ErrorCode, StatementRefused
from protocol.source_side.connection_terms import Limits, Ruling
from protocol.statements import Done, GivenAnswer, KillConnection, Request, SourceFacts, StatisticsText
from protocol.statements.requests import ShowStatistics, UseLocks
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.read.file_reads import BufferPool, FileReads
from relay.archive.storage.replica_marks import ReplicaIdentity
from relay.downstream.clients import Clients
from relay.downstream.connection.client_status import ClientStatus
from relay.downstream.connection.presentation import located, source_facts
from relay.downstream.connection.replica_session import Session
from relay.downstream.connection.strangers import StrangerLog
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.listen_options import ListenOptions
from relay.downstream.request.refusal import refusal
from relay.downstream.request.source_state import SourceState
from relay.downstream.start.place_after import PlaceSearches
from relay.downstream.stream.dump import Dump, replaced_by_newer
from relay.downstream.stream.event_packets import OUTPUT_BYTES
from relay.downstream.stream.pacing import WakePacer
from relay.process.background import guarded, tell_fault
from relay.process.certificates import ServerTls, described

_INPUT_BYTES: Final = 65536
_KEPT_OUTPUTS: Final = 8
_GRACE_S: Final = 0.5


class StatementAnswers(Protocol):
    """Answers what people and monitors ask of the running relay."""

    async def answer(self, request: Request, asker: ClientStatus) -> GivenAnswer:
        """The answer. Raises: StatementRefused."""


class DownstreamServer:
    """Serves an archive to replicas. `start`, then `close`; all on one event loop."""

    def __init__(
        self,
        archive: Archive,
        accounts: Iterable[Account],
        source: SourceState | None = None,
        options: ListenOptions | None = None,
        clients: Clients | None = None,
        console: StatementAnswers | None = None,
    ) -> None:
        """clients: where they are kept, made for these options, nobody in it. console: answers statements about the relay."""
        options = options or ListenOptions()
        self.archive = archive
        self.source = source or SourceState()
        self.clients = clients or Clients(options)
        self.console = console
        # One at a time: whoever guesses passwords gets no more of the machine than a thread.
        self.checks: Executor = ThreadPoolExecutor(1, thread_name_prefix="login-check")
        self.handshakes: Executor = ThreadPoolExecutor(2, thread_name_prefix="tls-handshake")
        self.tls = options.tls
        self.stranger_log = StrangerLog()
        self.accounts = Accounts(accounts, secret=os.urandom(32))
        self._prepare_key()
        self.presentation = options.presentation
        self.traffic = self.clients.traffic
        self.acknowledgement_sums = self.clients.acknowledgement_sums
        self.position_wait_s = options.position_wait_s
        self._backlog = options.backlog
        self.limits = Limits(login_wait_s=options.handshake_timeout_s)
        self.reads = FileReads()
        self.outputs = BufferPool(OUTPUT_BYTES, _KEPT_OUTPUTS)
        self.gtid_lookup = GtidLookup(archive, self.source)
        self.place_searches = PlaceSearches(archive, self.gtid_lookup)
        self.input_view = memoryview(bytearray(_INPUT_BYTES))
        self._server: asyncio.Server | None = None
        self._pacer = WakePacer()
        self._wake: asyncio.TimerHandle | None = None
        self._edge: set[Dump] = set()
        self._moved = asyncio.Event()
        self._closing = False
        self._started_at = 0.0
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("relay.downstream")

    def replace_accounts(self, accounts: Iterable[Account]) -> None:
        """Logins from now on; who is connected stays."""
        self.accounts = self.accounts.replaced(accounts)
        self._prepare_key()

    def replace_tls(self, tls: ServerTls | None) -> None:
        """What connections from now on are offered; those that are there keep what they have."""
        self.tls = tls

    def replace_login_limits(self, max_failures: int, block_s: float) -> None:
        """See `LoginGuard`: what addresses get from now on."""
        self.clients.guard.max_failures = max_failures
        self.clients.guard.block_s = block_s

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
        return self.clients.sessions

    async def start(self, host: str, port: int) -> None:
        """Listens. Raises: OSError, for instance when the port is taken."""
        loop = asyncio.get_running_loop()
        self._started_at = loop.time()
        self._server = await loop.create_server(lambda: Session(self), host, port, backlog=self._backlog)
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
        with contextlib.suppress(TimeoutError):
            await self.clients.until_empty(_GRACE_S)

    # --- what sessions call -----------------------------------------------------------------------------------------

    def admit(self, session: Session) -> AnsweredError | tuple[int, SourceFacts]:
        """A connection came: its id and the source's facts, or the error it is sent instead of a greeting."""
        source = source_facts(self.generation)
        if source is not None:
            facts = replace(self.presentation.facts(source), settings=self.source.settings)
        else:
            facts = self.presentation.facts_before_source(self.why_unreached)
        facts = replace(
            located(facts, self.generation, self.port),
            gtids=self.source.gtid_variables,
            max_connections=self.clients.max_connections,
        )
        connection_id = self.clients.came()
        if self._closing:
            return AnsweredError(ErrorCode.ER_SERVER_SHUTDOWN, "Server shutdown in progress")
        refused = self.clients.refusal(session.client.host)
        if refused is not None:
            return refused
        self.clients.add(connection_id, session)
        return connection_id, facts

    def why_unreached(self) -> str:
        """What replicas are told before the source was reached for the first time."""
        if source_facts(self.generation) is not None:
            text = "binlog-relay had not heard from its source when this connection began, and has now: connect again"
        else:
            text = f"binlog-relay has not heard from its source yet: {self.source.trouble() or 'try again'}"
        return refusal(text, ErrorCode.ER_UNKNOWN_ERROR).message

    def rule_login(self, session: Session, user: str, accepted: bool) -> Ruling:
        """A verdict on a login as `user`: counted, and when it may be told."""
        now, guard, address = asyncio.get_running_loop().time(), self.clients.guard, session.client.host
        was_blocked = guard.refusal(address, now) is not None
        ruling = guard.rule(address, now, user=user, accepted=accepted)
        if accepted and ruling.instead is None and session.client.is_replica_before_source:
            instead = AnsweredError(ErrorCode.ER_UNKNOWN_ERROR, self.why_unreached())
            ruling = Ruling(ruling.hold_s, instead, "a replica, and the source was never reached")
        if accepted and ruling.instead is None:
            self.clients.logged_in(session)
        if not was_blocked and guard.refusal(address, now) is not None:
            self._log.warning(
                "address_blocked", address=address, login_failures=guard.max_failures, block_s=guard.block_s
            )
        return ruling

    def spoke(self, session: Session) -> None:
        """Its first bytes came."""
        self.clients.spoke(session)

    def gone(self, session: Session) -> None:
        """The connection ended."""
        self.clients.gone(session)

    async def answer_request(self, session: Session, request: Request) -> GivenAnswer:
        """Answers what only the running relay can. Raises: AnsweredError, which the client is told."""
        if isinstance(request, KillConnection):
            return self._kill(session, request.connection_id, query_only=request.query_only)
        if isinstance(request, UseLocks):
            status = session.status()
            return await self.clients.locks.answer(request, status.connection_id, status.facts)
        if self.console is not None:
            return await self.console.answer(request, session.status())
        if isinstance(request, ShowStatistics):
            up_s = int(asyncio.get_running_loop().time() - self._started_at)
            return StatisticsText(f"Uptime: {up_s}  Threads: {self.clients.connected}")
        raise StatementRefused(
            ErrorCode.ER_NOT_SUPPORTED_YET, "binlog-relay has no console here that could answer this"
        )

    def _kill(self, session: Session, connection_id: int, *, query_only: bool) -> Done:
        """Ends a connection: anybody's for an admin, those of the same user for others. query_only: only if it dumps, or
        waits for a position to do so; else the statement that it waits for."""
        user, target = session.client.user, self.clients.session(connection_id)
        if target is None and self.clients.has_just_left(connection_id, user):
            return Done()
        if target is None:
            raise StatementRefused(ErrorCode.ER_NO_SUCH_THREAD, f"Unknown thread id: {connection_id}")
        if target.client.user != user and not session.client.is_admin:
            raise StatementRefused(ErrorCode.ER_KILL_DENIED_ERROR, f"You are not owner of thread {connection_id}")
        if query_only and target.dump is None and not target.client.waits_for_position:
            if target is not session:
                target.interrupt()
            return Done()
        self._log.info("connection_killed", connection_id=connection_id, user=user, killed_user=target.client.user)
        asyncio.get_running_loop().call_soon(target.abort)
        return Done()

    def check_replica(self, server_id: int, server_uuid: str) -> None:
        """Refuses a replica that has somebody else's ids. Raises: PositionRefused."""
        source = source_facts(self.generation)
        if source is not None:
            self.presentation.check_replica(source, server_id, server_uuid)

    def dump_begins(self, session: Session) -> None:
        """Ends an older dump of the same replica: the same uuid, or the same server_id where there is none.

        An older request that is still held ends too: begun later, it would take the place of this newer one.
        """
        here = session.client
        if not here.server_id:
            return
        for other in self.sessions:
            there = other.client
            if other is session or not there.server_id:
                continue
            held_longer = there.waits_for_position and there.request_number < here.request_number
            if other.dump is None and not held_longer:
                continue
            same = (
                there.replica_uuid == here.replica_uuid
                if here.replica_uuid
                else not there.replica_uuid and there.server_id == here.server_id
            )
            if same:
                other.stop(replaced_by_newer())
            elif there.server_id == here.server_id and here.replica_uuid and there.replica_uuid:
                self._log.warning(
                    "server_id_shared",
                    server_id=here.server_id,
                    replica_address=here.address,
                    uuid=here.replica_uuid,
                    other_address=there.address,
                    other_uuid=there.replica_uuid,
                    advice="Two replicas have one server_id: give each its own, or one skips what the other wrote.",
                )

    async def until_left(self, identity: ReplicaIdentity) -> None:
        """Until it is known what this replica had read when it ended a stream of its own just now."""
        for other in self.sessions:
            there = other.client
            if other.leaving is not None and ReplicaIdentity(there.server_id, there.replica_uuid) == identity:
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
