"""The listening side: the connected clients, their logins, and the archive that each is served."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Final

import structlog

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.errors import AnsweredError, ErrorCode, PositionRefused, StatementRefused
from protocol.source_side.connection_terms import Limits, Ruling
from protocol.statements import Done, GivenAnswer, KillConnection, Request, SourceFacts, StatisticsText
from protocol.statements.requests import ShowStatistics, UseLocks
from protocol.statements.session.gtid_variables import GtidVariables
from relay.archive.archive import Archive
from relay.downstream.clients import Clients
from relay.downstream.connection.client import Client
from relay.downstream.connection.line_bounds import LineBounds
from relay.downstream.connection.replica_session import Session, StatementAnswers
from relay.downstream.listen_options import ListenOptions
from relay.downstream.request.refusal import refusal
from relay.downstream.request.source_state import SourceState
from relay.downstream.served_archive import ServedArchive
from relay.downstream.served_views import ServedViews
from relay.downstream.stream.dump import replaced_by_newer
from relay.fairness.accepting import Accepting
from relay.fairness.address_group import address_group
from relay.fairness.fair_pool import TURN, FairPool
from relay.fairness.fair_queue import Rank, Turn
from relay.fairness.rounds import Rounds
from relay.process.background import begin_task, guarded
from relay.process.certificates import ServerTls, described

_INPUT_BYTES: Final = 65536
_GRACE_S: Final = 0.5


class DownstreamServer:
    """Serves an archive, and views of it, to replicas. `start`, then `close`; all on one event loop."""

    def __init__(
        self,
        archive: Archive,
        accounts: Iterable[Account],
        source: SourceState | None = None,
        options: ListenOptions | None = None,
        clients: Clients | None = None,
        console: StatementAnswers | None = None,
        views: ServedViews | None = None,
    ) -> None:
        """clients: their container, created for these options and empty. console: answers statements about the relay. views: served
        to accounts with a view instead of the archive.
        """
        options = options or ListenOptions()
        self.clients = clients or Clients(options)
        self.mirror = ServedArchive(archive, self.clients, options, source, console)
        self.views = views or ServedViews()
        # One at a time, by turns: a client that guesses passwords gets no more of the machine than a thread.
        self.checks: Executor = FairPool(1, "login-check", newest_first=True)
        self.handshakes: Executor = FairPool(2, "tls-handshake", newest_first=True)
        self.tls = options.tls
        self.line_bounds = LineBounds()
        self.accounts = Accounts(accounts, secret=options.decoy_secret or os.urandom(32))
        self._prepare_key()
        self.traffic = self.clients.traffic
        self.acknowledgement_sums = self.clients.acknowledgement_sums
        self.memory = self.clients.memory
        self.rounds = Rounds()
        self._backlog = options.backlog
        self.limits = Limits(login_wait_s=options.handshake_timeout_s)
        self.input_view = memoryview(bytearray(_INPUT_BYTES))
        self._accepting: Accepting | None = None
        self._closing = False
        self._started_at = 0.0
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("relay.downstream")

    def replace_accounts(self, accounts: Iterable[Account]) -> None:
        """Judge later logins by these accounts; sessions that are logged in stay."""
        self.accounts = self.accounts.replaced(accounts)
        self._prepare_key()

    def replace_tls(self, tls: ServerTls | None) -> None:
        """Offer this to later connections; existing ones keep what they have."""
        self.tls = tls

    def replace_login_limits(self, max_failures: int, block_s: float) -> None:
        """Set the limits of `LoginGuard` from now on."""
        self.clients.guard.max_failures = max_failures
        self.clients.guard.block_s = block_s

    def _prepare_key(self) -> None:
        """Generate the RSA key before the first login that needs it would wait for it."""
        if self.accounts.may_need_rsa_key:
            self.checks.submit(guarded(self.accounts.rsa_key, "making the RSA key", lambda _fault: None))

    @property
    def port(self) -> int:
        """The port that is listened on; 0 if there is none."""
        return self._accepting.port if self._accepting is not None else 0

    @property
    def sessions(self) -> list[Session]:
        """The sessions that are connected now."""
        return self.clients.sessions

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises: OSError, for instance when the port is taken."""
        loop = asyncio.get_running_loop()
        self._started_at = loop.time()
        self._accepting = Accepting(self._came, self._backlog)
        await self._accepting.begin(host, port)
        self.mirror.begin()
        self._log.info("listening", host=host, port=self.port, **described(self.tls))

    async def close(self) -> None:
        """Stop listening and end all sessions, within a second. Replicas reconnect by themselves (ERR 1053)."""
        if self._closing:
            return
        self._closing = True
        if self._accepting is not None:
            self._accepting.close()
        self.mirror.rest()
        self.views.rest()
        for session in self.sessions:
            session.stop(AnsweredError(ErrorCode.ER_SERVER_SHUTDOWN, "Server shutdown in progress"))
        await self._until_empty()
        for session in self.sessions:
            session.abort()
        await self._until_empty()
        self.mirror.close()
        self.views.close()
        self.checks.shutdown(wait=False, cancel_futures=True)
        self.handshakes.shutdown(wait=False, cancel_futures=True)
        self._log.info("stopped_listening")

    def _came(self, accepted: socket.socket, _address: str) -> None:
        made = asyncio.get_running_loop().connect_accepted_socket(lambda: Session(self), accepted)
        begin_task(made, "taking a connection", expected=(OSError,))

    async def _until_empty(self) -> None:
        """Wait until no session is connected, half a second at most."""
        with contextlib.suppress(TimeoutError):
            await self.clients.until_empty(_GRACE_S)

    # --- for sessions -----------------------------------------------------------------------------------------------

    def admit(self, session: Session) -> AnsweredError | tuple[int, SourceFacts]:
        """Count a new connection. Return its id and the source's facts, or the error that it is sent instead of a greeting."""
        connection_id = self.clients.came()
        refused = self.clients.refusal(session.client.host)
        if self._closing:
            refused = AnsweredError(ErrorCode.ER_SERVER_SHUTDOWN, "Server shutdown in progress")
        if refused is not None:
            self.clients.add_stranger(session)
            return refused
        self.clients.add(connection_id, session)
        return connection_id, self.mirror.facts(self.port)

    def rule_login(self, session: Session, user: str, account: Account | None) -> Ruling:
        """Count a verdict on a login as `user`. Return when it may be sent, and what the account is served from then on."""
        now, guard, address = asyncio.get_running_loop().time(), self.clients.guard, session.client.host
        was_blocked = guard.refusal(address, now) is not None
        ruling = guard.rule(address, now, user=user, accepted=account is not None)
        if account is not None and ruling.instead is None:
            ruling = self._admitted(session, account, ruling.hold_s)
        if not was_blocked and guard.refusal(address, now) is not None:
            self._log.warning(
                "address_blocked", address=address, login_failures=guard.max_failures, block_s=guard.block_s
            )
        return ruling

    def _admitted(self, session: Session, account: Account, hold_s: float) -> Ruling:
        """Return the ruling for a right password. It may have to be held for `hold_s`."""
        if session.client.is_replica_before_source:
            instead = AnsweredError(ErrorCode.ER_UNKNOWN_ERROR, self.mirror.why_unreached())
            return Ruling(hold_s, instead, "a replica, and the source was never reached")
        facts: SourceFacts | None = None
        if account.view is not None:
            served = self.views.find(account.view)
            if served is None:
                why = self.views.why_not(account.view)
                answers = self.views.answers(account.view)
                if answers is None or session.client.says_it_is_a_replica:
                    return Ruling(hold_s, _not_served(account.view, why), f"no view {account.view}: {why}")
                session.answers, facts = answers, self._facts_without(account.view)
            else:
                session.served, facts = served, served.facts(self.port)
        refused = self.clients.admit_login(session, account)
        if refused is not None:
            return Ruling(hold_s, refused, "too many connections")
        return Ruling(hold_s, facts=facts)

    def _facts_without(self, view: str) -> SourceFacts:
        """Return the source's facts for people whose view is not open: a replica, which reconnects, could not begin with them."""
        views = self.views

        def why() -> str:
            return _OPENED.format(view) if views.find(view) is not None else _not_served(view, views.why_not(view)).what

        return replace(self.mirror.facts(self.port), gtids=GtidVariables, settings=dict, unreached=why)

    def _opened_since(self, session: Session) -> str | None:
        """Return what a user who logged in while their view was not open must do now; None: it is not open yet."""
        view = session.status().view
        return _OPENED.format(view) if view is not None and self.views.find(view) is not None else None

    def turn_of(self, session: Session) -> Turn:
        """Return the turn under which threads work for it: its account's, divided by addresses; for a stranger its address's."""
        client = session.client
        address = address_group(client.host)
        if client.user:
            return Turn(client.user, address, Rank.FIRST if client.is_admin else Rank.KNOWN)
        return Turn(address, rank=Rank.KNOWN if self.clients.guard.knows(client.host) else Rank.UNKNOWN)

    def gone(self, session: Session) -> None:
        """Note that the connection ended."""
        self.clients.gone(session)

    async def answer_request(self, session: Session, request: Request) -> GivenAnswer:
        """Answer a request that only the running relay can answer. Raises: AnsweredError, which the client receives."""
        TURN.set(self.turn_of(session))
        if isinstance(request, KillConnection):
            return self._kill(session, request.connection_id, query_only=request.query_only)
        if isinstance(request, UseLocks):
            status = session.status()
            return await self.clients.locks.answer(request, status.connection_id, status.facts)
        console = session.answers or session.served.console
        if session.answers is not None and (why := self._opened_since(session)) is not None:
            raise StatementRefused(ErrorCode.ER_SERVER_SHUTDOWN, why)
        if console is not None:
            return await console.answer(request, session.status())
        if isinstance(request, ShowStatistics):
            up_s = int(asyncio.get_running_loop().time() - self._started_at)
            return StatisticsText(f"Uptime: {up_s}  Threads: {self.clients.connected}")
        raise StatementRefused(
            ErrorCode.ER_NOT_SUPPORTED_YET, "binlog-relay has no console here that could answer this"
        )

    def _kill(self, session: Session, connection_id: int, *, query_only: bool) -> Done:
        """End a connection: any for an admin, those of the same user for others. query_only: only if it dumps, or waits for a
        position to do so; else the statement that it waits for.
        """
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
        session.log.killed(connection_id, target.client.user)
        asyncio.get_running_loop().call_soon(target.abort)
        return Done()

    def dump_begins(self, session: Session) -> None:
        """End an older dump of the same replica: the same uuid, or the same server_id if there is none.

        An older request that is still held ends too: if it began later, it would replace this newer one. The two may be of different
        archives: a replica that moves to a view does not wait for the rest of its stream from the mirror, and no replica needs to
        read both. Only a dump of the same account, or from the same address, is ended: a uuid is no proof.
        """
        here = session.client
        if not here.server_id:
            return
        sharing: list[Client] = []
        foreign: list[Client] = []
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
            if same and (there.user == here.user or there.host == here.host):
                other.stop(replaced_by_newer())
            elif same:
                foreign.append(there)
            elif there.server_id == here.server_id and here.replica_uuid and there.replica_uuid:
                sharing.append(there)
        if foreign:
            session.log.shares(
                "replica_uuid_shared",
                foreign,
                "Another account's replica says that it is this one. If it is, end its old connection with KILL; if two servers "
                "have one uuid, remove auto.cnf of one of them and restart it.",
            )
        if sharing:
            # One line for all of them: otherwise each new one of hundreds would be logged with each of the others.
            session.log.shares(
                "server_id_shared",
                sharing,
                "Two replicas have one server_id: give each its own, or one skips what the other wrote.",
            )


_OPENED: Final = "The view {} was opened since this connection began: connect again"


def _not_served(view: str, why: str) -> PositionRefused:
    text = f"binlog-relay does not serve the view {view} of this account: {why}"
    return refusal(text, ErrorCode.ER_UNKNOWN_ERROR)
