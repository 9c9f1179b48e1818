"""One replica's connection: bytes from the socket to the protocol machine and back, and its dump."""

import asyncio
import contextlib
import itertools
import os
import ssl
import time
from concurrent.futures import Executor
from typing import Final, Protocol, cast

import structlog

from protocol.auth.accounts import Accounts
from protocol.auth.authenticator import REFUSED, Channel, Work
from protocol.commands import BinlogDump, RegisterSlave
from protocol.errors import AnsweredError, ErrorCode, PeerError, PositionRefused, StatementRefused
from protocol.framing import frame_payload
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.packets import err_payload
from protocol.position import Position
from protocol.resultset import Rows, result_payloads
from protocol.source_side import (
    AckReceived,
    CheckAsked,
    Closed,
    DumpAsked,
    Event,
    Limits,
    LoggedIn,
    LoginRefused,
    Registered,
    Ruling,
    SourceSide,
    State,
    StatementAsked,
    StatementFailed,
    TlsAsked,
)
from protocol.statements import EncodedRows, GivenAnswer, Request, SourceFacts
from relay.background import begin_task, guarded
from relay.certificates import ServerTls
from relay.downstream.acknowledgements import Acknowledgements, AcknowledgementSums
from relay.downstream.admission import AdmissionHost, AdmittedDump, DumpRequest, admit
from relay.downstream.dump import Dump
from relay.downstream.peer_socket import PeerSocket
from relay.downstream.positions import (
    INTERNAL_ERROR,
    refusal,
    shown_name,
    variable,
)
from relay.downstream.stranger_log import StrangerLog
from relay.downstream.tls import TlsTransport, tls_trouble
from relay.downstream.traffic import Traffic

# After so much from one client the others get their turn.
_READ_TURN_BYTES: Final = 512 << 10
_LINGER_S: Final = 1.0
# A replica's receiving thread that was told to stop closes its socket within this time.
_RESET_SHOWS_S: Final = 2.0
# Of what a client says of itself, in the log.
_SHOWN_CHARACTERS: Final = 100
# No database has a longer name.
_NAME_CHARACTERS: Final = 64
_REFUSED: Final = ErrorCode.ER_ACCESS_DENIED_ERROR
_REQUEST_NUMBERS: Final = itertools.count(1)


class SessionHost(AdmissionHost, Protocol):
    """What the sessions of one server share."""

    input_view: memoryview
    accounts: Accounts
    checks: Executor
    handshakes: Executor
    tls: ServerTls | None
    limits: Limits
    acknowledgement_sums: AcknowledgementSums
    traffic: Traffic
    stranger_log: StrangerLog

    def admit(self, session: "Session") -> AnsweredError | tuple[int, SourceFacts]:
        """A connection came: its id and the source's facts, or the error it is sent instead of a greeting."""

    def rule_login(self, session: "Session", user: str, accepted: bool) -> Ruling:
        """A verdict on a login as `user`: counted, and when it may be told."""

    def gone(self, session: "Session") -> None:
        """The connection ended."""

    async def answer_request(self, session: "Session", request: Request) -> GivenAnswer:
        """Answers what only the running relay can. Raises: AnsweredError, which the client is told."""

    def dump_begins(self, session: "Session") -> None:
        """Ends an older dump of the same replica."""

    def leave_edge(self, dump: Dump) -> None:
        """`dump` has ended."""


class Session(asyncio.BufferedProtocol):
    """One connection, from accept to close."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("relay.downstream")
        self._transport: asyncio.Transport | None = None
        self._machine: SourceSide | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._turn: asyncio.Handle | None = None
        self._admission: asyncio.Task[None] | None = None
        self._answering: asyncio.Task[None] | None = None
        self._interruptible = self._interrupted = False
        """Whether the statement that is answered only shows something; whether its answer is not wanted any more."""
        self._checking: asyncio.Task[None] | None = None
        self._securing: asyncio.Task[None] | None = None
        self._tls: TlsTransport | None = None
        self._offered_tls: ServerTls | None = None
        self.write_paused = False
        self._peer = PeerSocket(None)
        self._closed_by_peer = False
        self.leaving: asyncio.Event | None = None
        """While it is found out what its replica had read when it left; set when that is known."""
        self.dump: Dump | None = None
        self.acknowledgements: Acknowledgements | None = None
        """Of its dump, if the replica is a semi-sync one; its newest position and time are in there."""
        self.request_number = 0
        """Of its newest dump request; later requests, of any connection, have greater ones."""
        self.registered: RegisterSlave | None = None
        """What it said of itself as a replica."""
        self.asked_position: tuple[str, int] | None = None
        """Where its newest dump request was to begin."""
        self.last_heard_at = self.dump_began_at = self._loop.time()
        self._read_at_once = 0
        self._counted = (0, 0)
        """Of its commands and statements, those that are in the traffic."""
        self._said_goodbye = False
        self.connection_id = 0
        self.address = ""
        self.host = ""
        """The peer's address without its port."""

    # --- who this is ----------------------------------------------------------------------------------------------

    @property
    def user(self) -> str:
        """The account's name; empty before the login."""
        return self._machine.account.user if self._machine and self._machine.account else ""

    @property
    def is_admin(self) -> bool:
        """Whether the account may change the relay by statements."""
        return self._machine is not None and self._machine.account is not None and self._machine.account.admin

    @property
    def database(self) -> str | None:
        """The one that the client has chosen; it means nothing here."""
        chosen = self._machine.session.database if self._machine is not None and self.user else None
        return chosen[:_NAME_CHARACTERS] if chosen else None

    @property
    def server_id(self) -> int:
        """Of the replica; 0 when it did not say."""
        return self._server_id

    @property
    def replica_uuid(self) -> str:
        """`@slave_uuid`, cut to the 36 characters a uuid has; empty for replicas without one."""
        if self._machine is None:
            return ""
        value = variable(self._machine.session.user_variables, "replica_uuid", "slave_uuid")
        return "".join(c for c in str(value or "") if c.isascii() and c.isprintable())[:36]

    _server_id = 0

    @property
    def waits_for_position(self) -> bool:
        """Whether a dump was asked for and is not decided."""
        return self._machine is not None and self._machine.state is State.DUMP_REQUESTED

    @property
    def channel(self) -> Channel:
        """What protects the connection."""
        return self._machine.channel if self._machine is not None else Channel()

    @property
    def facts(self) -> SourceFacts:
        """The source as this client sees it; not before it was greeted."""
        assert self._machine is not None
        return self._machine.session.facts

    def encode(self, rows: Rows) -> EncodedRows:
        """Rows as this client reads them, while it waits for them. For a thread, where they are many."""
        assert self._machine is not None
        session = self._machine.session
        return EncodedRows(tuple(result_payloads(rows, session.encoding, session.status)))

    @property
    def sent_position(self) -> tuple[str, int] | None:
        """Up to where its dump was given to the socket; None without a dump."""
        return (self.dump.position.file, self.dump.position.offset) if self.dump is not None else None

    @property
    def acknowledged_position(self) -> tuple[str, int] | None:
        """Up to where a semi-sync replica said that it has stored everything; None before it said so, and for others."""
        acked = self.acknowledgements.acked if self.acknowledgements is not None else None
        return (acked.file, acked.offset) if acked is not None else None

    @property
    def needed_generation(self) -> int | None:
        """Of the archive; None: any may be the one that `needed_file` is of."""
        if self.dump is None or (self.acknowledgements is not None and self.acknowledgements.open):
            return None
        generation = self._host.generations.of_archive(self.dump.archive)
        return generation.number if generation is not None else None

    @property
    def needed_file(self) -> str | None:
        """The oldest file that it reads, or has asked for and may speak of; empty: the oldest there is; None: none."""
        acknowledgements = self.acknowledgements
        if self.dump is not None and acknowledgements is not None and acknowledgements.open:
            if acknowledgements.acked is not None:
                return acknowledgements.acked.file
        elif self.dump is not None:
            return self.dump.position.file
        elif not self.waits_for_position:
            return None
        return self.asked_position[0] if self.asked_position is not None else None

    @property
    def is_at_end(self) -> bool:
        """Whether its dump has sent all there is."""
        archive = self._host.generations.archive
        return self.dump is not None and self.dump.archive is archive and self.dump.position == archive.end

    @property
    def sent_bytes(self) -> int:
        """Of the dump that runs; not yet in the traffic."""
        return self.dump.sent_bytes if self.dump is not None else 0

    # --- transport ------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greets."""
        self._transport = cast(asyncio.Transport, transport)
        # 0: pause_writing then tells that the buffer which was just given is still in use.
        self._transport.set_write_buffer_limits(high=0)
        self._peer = PeerSocket(transport.get_extra_info("socket"))
        self._peer.keep_alive()
        peer = transport.get_extra_info("peername")
        self.host = str(peer[0]) if peer else ""
        self.address = f"{peer[0]}:{peer[1]}" if peer else ""
        answer = self._host.admit(self)
        if isinstance(answer, AnsweredError):
            self._log = self._log.bind(replica_address=self.address)
            if answer.number == ErrorCode.ER_HOST_IS_BLOCKED:
                # A blocked address was named when the block began; it may come a thousand times a second.
                self._log.debug("connection_refused", reason=answer.message)
            else:
                self.log_as_stranger("connection_refused", reason=answer.message)
            payload = err_payload(answer.number, answer.message, with_sqlstate=False)
            self._transport.write(frame_payload(payload, 0))
            self._close_soon()
            return
        self.connection_id, facts = answer
        self._log = self._log.bind(connection_id=self.connection_id, replica_address=self.address)
        now = self._loop.time()
        # As it is now: a reload between the greeting and the client's request for TLS changes nothing here.
        self._offered_tls = self._host.tls
        self._machine = SourceSide(
            connection_id=self.connection_id,
            facts=facts,
            accounts=self._host.accounts,
            host=self.host,
            random_bytes=os.urandom,
            now=now,
            wall_offset_s=time.time() - now,
            limits=self._host.limits,
            offer_tls=self._offered_tls is not None,
            rule=self._rule,
        )
        self._after([])

    def get_buffer(self, sizehint: int) -> memoryview:
        """The server's one input buffer: it is used up before another connection is read."""
        return self._host.input_view

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came."""
        self._host.traffic.bytes_received += nbytes
        now = self._loop.time()
        self._read_at_once = self._read_at_once + nbytes if now == self.last_heard_at else nbytes
        self.last_heard_at = now
        if self._read_at_once >= _READ_TURN_BYTES and self._transport is not None:
            # The loop would read megabytes of a large request before it does anything else.
            self._read_at_once = 0
            self._transport.pause_reading()
            self._loop.call_soon(self._read_on)
        if self._tls is not None:
            self._received_tls(self._tls, self._host.input_view[:nbytes])
        elif self._machine is not None:
            self._take(self._machine, self._host.input_view[:nbytes])

    def eof_received(self) -> bool:
        """The peer is done: so are we.

        Of a dump at rest it is first found out whether the peer's system had read everything. It sends a reset when it
        closes a socket with bytes that nobody has read, but a replica's STOP SLAVE shuts its socket down first, which
        looks like an end with everything read, and closes it when its receiving thread has come to that. A goodbye, of
        the protocol or of TLS, says nothing about what was read.
        """
        if self.dump is not None and self.dump.is_settled:
            self.dump.silence()
            self.leaving = asyncio.Event()
            self._loop.call_later(_RESET_SHOWS_S, self._end_after_eof)
            return True
        self._abort_later()
        return False

    def _end_after_eof(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._closed_by_peer = self._peer.peer_ended_cleanly and not self._peer.unread_bytes()
        transport.abort()

    def pause_writing(self) -> None:
        """The socket is full. A client that asks without reading the answers is not listened to."""
        self.write_paused = True
        if self.dump is None and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The socket took everything."""
        self.write_paused = False
        self._read_on()
        self._schedule_turn()
        if self.dump is not None:
            self.dump.writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """Frees what the connection held."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for task in (self._admission, self._answering, self._checking, self._securing):
            if task is not None:
                task.cancel()
        if self.dump is not None:
            self._end_dump("dump_ended", reason=str(exc) if exc else "connection closed")
        elif self.waits_for_position and self.asked_position is not None:
            # Its slave_net_timeout may be shorter than the wait: it would come again for ever, and never be told why.
            file, offset = self.asked_position
            end = self._host.generations.archive.end
            self._log.info(
                "dump_not_begun",
                user=self.user,
                server_id=self._server_id,
                uuid=self.replica_uuid,
                file=shown_name(file),
                offset=offset,
                archive_end=str(end) if end is not None else None,
                reason="the replica left while it was waited whether the position comes",
            )
        elif self._machine is not None:
            self._log.debug("connection_closed", user=self.user)
        if not self.user:
            self._host.traffic.aborted_connects += 1
        elif not self._said_goodbye:
            self._host.traffic.aborted_clients += 1
        self._host.gone(self)

    # --- the machine ----------------------------------------------------------------------------------------------

    def _take(self, machine: SourceSide, data: memoryview | bytes) -> None:
        """What the client said, inside of TLS where there is some."""
        self._after(machine.receive(data, self._loop.time()))
        if machine.holds_unread_commands and self._transport is not None:
            self._transport.pause_reading()

    def _schedule_turn(self) -> None:
        """Commands that were sent ahead are taken a few at a time, and none while the client reads no answers."""
        machine = self._machine
        if machine is not None and machine.has_more_to_do and not self.write_paused and self._turn is None:
            next_turn = guarded(self._next_turn, "taking commands that were sent ahead", self._broken)
            self._turn = self._loop.call_soon(next_turn, machine)

    def _next_turn(self, machine: SourceSide) -> None:
        self._turn = None
        if self.write_paused or self._transport is None or self._transport.is_closing():
            return
        self._after(machine.go_on(self._loop.time()))
        self._read_on()

    def _after(self, events: list[Event]) -> None:
        """Does what the machine's events ask for, then sends what it has to say."""
        machine = self._machine
        transport = self._transport
        if machine is None or transport is None:
            return
        closed: Closed | None = None
        for event in events:
            if isinstance(event, StatementAsked):
                self._interruptible = not event.request.privilege
                answering = self._answer(machine, event.request)
                self._answering = begin_task(answering, "answering a statement", self._broken)
            elif isinstance(event, TlsAsked):
                self._begin_tls(machine, transport, event.received)
            elif isinstance(event, CheckAsked):
                self._checking = begin_task(self._check(machine, event.work), "checking a login", self._broken)
            elif isinstance(event, DumpAsked):
                self._server_id = event.request.server_id
                self.asked_position = (event.request.file, event.request.offset)
                self.request_number = next(_REQUEST_NUMBERS)
                admission = self._admit(machine, event.request)
                self._admission = begin_task(admission, "deciding about a dump request", self._broken)
            elif isinstance(event, AckReceived):
                closed = self._acknowledged(machine, event.position)
                if closed is not None:
                    break
            else:
                self._log_event(event)
                closed = event if isinstance(event, Closed) else closed
        data = machine.bytes_to_send()
        if data and not transport.is_closing():
            transport.write(data)
        self._count(machine, len(data))
        if closed is not None:
            self._said_goodbye = closed.error is None
            if self._admission is not None:
                # It said goodbye, or broke the rules, while its dump request was looked at.
                self._admission.cancel()
            if self.dump is not None:
                self._end_dump(
                    "dump_ended", reason=closed.error.message if closed.error else "the replica said goodbye"
                )
            self._close_soon()
        self._set_timer()
        self._schedule_turn()

    def _count(self, machine: SourceSide, sent_bytes: int) -> None:
        traffic = self._host.traffic
        traffic.bytes_sent += sent_bytes
        commands, statements = self._counted
        self._counted = (machine.commands, machine.statements)
        traffic.commands += machine.commands - commands
        traffic.statements += machine.statements - statements

    def _log_event(self, event: Event) -> None:
        if isinstance(event, LoggedIn):
            client = {
                key: "".join(c if c.isprintable() else "?" for c in event.attributes[key][:_SHOWN_CHARACTERS])
                for key in ("program_name", "_client_version")
                if key in event.attributes
            }
            self._log.info(
                "replica_logged_in",
                user=event.account.user,
                plugin=event.plugin,
                tls=event.channel.tls or None,
                **{k.lstrip("_"): v for k, v in client.items()},
            )
        elif isinstance(event, LoginRefused):
            self._log.warning("login_refused", user=event.user, reason=event.reason)
        elif isinstance(event, StatementFailed):
            self._log.info("statement_refused", user=self.user, statement=event.statement, number=int(event.number))
        elif isinstance(event, Registered):
            self._server_id = event.replica.server_id
            self.registered = event.replica
            self._log.info("replica_registered", user=self.user, server_id=self._server_id, uuid=self.replica_uuid)
        elif isinstance(event, Closed) and isinstance(event.error, PeerError) and event.error.number != _REFUSED:
            fields: dict[str, object] = {"number": int(event.error.number), "reason": event.error.message}
            if self.user:
                self._log.warning("connection_ended", user=self.user, **fields)
            else:
                self.log_as_stranger("connection_ended", user="", **fields)

    def log_as_stranger(self, event: str, **fields: object) -> None:
        """A warning about a peer that has not logged in, unless there were very many."""
        left_out = self._host.stranger_log.left_out(self._loop.time())
        if left_out:
            fields["left_out"] = left_out
        if left_out is not None:
            self._log.warning(event, **fields)

    def _set_timer(self) -> None:
        """The deadline moves with every command: the timer looks again when it fires, and is set again then."""
        deadline = self._machine.next_deadline() if self._machine is not None else None
        if deadline is None:
            return
        if self._timer is None or self._timer.when() > deadline:
            if self._timer is not None:
                self._timer.cancel()
            time_passed = guarded(self._time_passed, "looking at a connection's deadline", self._broken)
            self._timer = self._loop.call_at(deadline, time_passed)

    def _time_passed(self) -> None:
        self._timer = None
        if self._machine is not None:
            self._after(self._machine.pass_time(self._loop.time() + 0.001))
            self._read_on()

    def _read_on(self) -> None:
        """What was waited for is there: the peer is listened to again."""
        transport, machine = self._transport, self._machine
        if transport is None or machine is None or transport.is_closing():
            return
        if not self.write_paused and not machine.holds_unread_commands:
            transport.resume_reading()

    def _close_soon(self) -> None:
        """Closes when the peer does, or shortly. Closing at once over unread input would reset the connection and take
        the error away that explains it."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        with contextlib.suppress(OSError):  # it is aborted below
            transport.write_eof()
        self._abort_later()

    def _abort_later(self) -> None:
        """A peer that reads nothing any more is not waited for."""
        if self._transport is not None:
            self._loop.call_later(_LINGER_S, self._transport.abort)

    def _rule(self, accepted: bool) -> Ruling:
        user = self._machine.session.user if self._machine is not None else ""
        return self._host.rule_login(self, user, accepted)

    def _begin_tls(self, machine: SourceSide, transport: asyncio.Transport, received: bytes) -> None:
        """From now on what comes is TLS, also before the handshake's task has begun."""
        offered = self._offered_tls
        assert offered is not None, "the machine asks for what the greeting offered"
        self._tls = tls = TlsTransport(transport, offered.context, received)
        securing = self._secure(machine, transport, tls, offered.digest)
        self._securing = begin_task(securing, "a replica's TLS handshake", self._broken)

    async def _secure(
        self, machine: SourceSide, transport: asyncio.Transport, tls: TlsTransport, certificate_digest: bytes
    ) -> None:
        """Puts TLS between the socket and the machine."""
        try:
            await tls.handshake(self._host.handshakes)
        except ssl.SSLError as error:
            self._tls_failed(tls_trouble(error))
            return
        self._securing = None
        if machine.state is not State.TLS_EXPECTED or transport.is_closing():
            return
        self._transport = tls
        machine.tls_established(Channel(tls.version, tls.cipher, tls.client_certificate, certificate_digest))
        # What the client has sent behind its part of the handshake.
        self._received_tls(tls, b"")

    def _received_tls(self, tls: TlsTransport, data: memoryview | bytes) -> None:
        machine = self._machine
        if machine is None or machine.state is State.CLOSED:
            return
        try:
            plain = tls.received(data)
        except ssl.SSLError as error:
            self._tls_failed(tls_trouble(error))
            return
        if plain:
            self._take(machine, plain)
        if tls.peer_said_goodbye:
            tls.close()
            self._abort_later()

    def _tls_failed(self, reason: str) -> None:
        self._securing = None
        if self._machine is None or self._machine.state is State.CLOSED:
            return
        if self.dump is not None:
            self._log.warning("tls_broken", user=self.user, reason=reason)
            self.abort()
            return
        self._after(self._machine.tls_failed(reason))

    async def _check(self, machine: SourceSide, work: Work) -> None:
        """What of a login takes milliseconds, in a thread."""
        try:
            step = await self._loop.run_in_executor(self._host.checks, work)
        except asyncio.CancelledError:
            raise
        except Exception:
            self._log.exception("login_check_failed")
            step = REFUSED
        self._checking = None
        self._after(machine.answer_check(step, self._loop.time()))
        self._read_on()

    # --- statements that only the relay can answer ------------------------------------------------------------------

    async def _answer(self, machine: SourceSide, request: Request) -> None:
        answer: GivenAnswer | AnsweredError
        try:
            answer = await self._host.answer_request(self, request)
        except AnsweredError as error:
            answer = error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._interrupted or task is None:
                raise
            task.uncancel()
            answer = StatementRefused(ErrorCode.ER_QUERY_INTERRUPTED, "Query execution was interrupted")
        except Exception:
            # A bug of ours must not leave the client waiting without an answer.
            self._log.exception("statement_failed", user=self.user, request=repr(request))
            answer = StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, INTERNAL_ERROR)
        self._answering, self._interrupted = None, False
        transport = self._transport
        if machine.state is not State.ANSWER_OWED or transport is None or transport.is_closing():
            return
        self._after(machine.answer(answer, self._loop.time()))
        self._read_on()

    # --- semi-sync ------------------------------------------------------------------------------------------------

    def _acknowledged(self, machine: SourceSide, position: Position) -> Closed | None:
        """An acknowledgement came. One that cannot be true ends the connection."""
        if self.acknowledgements is None:
            return None
        try:
            self.acknowledgements.take(position, self._loop.time())
        except PeerError as error:
            closed = machine.break_off(error)
            self._log_event(closed)
            return closed
        return None

    # --- ends that come from outside --------------------------------------------------------------------------------

    def stop(self, error: AnsweredError) -> None:
        """Ends this connection with an error where there is room for one."""
        if self.dump is not None:
            self.dump.fail(error)
        elif self._machine is not None and self.waits_for_position:
            self._after(self._machine.refuse_dump(error))
        elif self._transport is not None:
            self._transport.close()

    def interrupt(self) -> None:
        """Ends the statement that is answered, if it only shows something: the connection goes on."""
        if self._answering is not None and self._interruptible:
            self._interrupted = True
            self._answering.cancel()

    def abort(self) -> None:
        """Ends this connection now."""
        if self._transport is not None:
            self._transport.abort()

    def _broken(self, fault: Exception) -> None:
        """What belongs to this connection failed by surprise: the client is not left waiting for what never comes."""
        self._log.warning("connection_broken_off", user=self.user, why=type(fault).__name__)
        self.abort()

    # --- the dump -------------------------------------------------------------------------------------------------

    async def _admit(self, machine: SourceSide, asked: BinlogDump | BinlogDumpGtid) -> None:
        """Decides about a dump request, and begins the dump."""
        session = machine.session
        request = DumpRequest(
            asked=asked,
            variables=session.user_variables,
            facts=session.facts,
            account=machine.account,
            registered=machine.replica.server_id if machine.replica is not None else None,
            uuid=self.replica_uuid,
        )
        bound = {"user": self.user, "server_id": asked.server_id, "uuid": request.uuid}
        try:
            admitted = await admit(self._host, request)
            self._admission = None
            if self._waits_still(machine):
                self._begin_dump(machine, request, admitted, bound)
            else:
                # asyncio.wait_for of Python 3.11 swallows a cancellation that meets a result.
                admitted.drop()
            return
        except PositionRefused as error:
            refused = error
        except asyncio.CancelledError:
            raise
        except Exception:
            # A bug of ours must not leave the replica waiting without an answer.
            self._log.exception("dump_request_failed", file=shown_name(asked.file), offset=asked.offset, **bound)
            refused = refusal(INTERNAL_ERROR, ErrorCode.ER_UNKNOWN_ERROR)
        self._admission = None
        if machine.state is State.DUMP_REQUESTED:
            bound |= {"file": shown_name(asked.file), "offset": asked.offset}
            self._log.warning("dump_refused", number=int(refused.number), reason=refused.message, **bound)
            self._after(machine.refuse_dump(refused))
        elif machine.state is State.DUMPING:
            # It failed after it had begun: nothing that could be said has a place in the stream.
            self.abort()

    def _waits_still(self, machine: SourceSide) -> bool:
        """Whether there is still a connection whose request is to be decided."""
        transport = self._transport
        return machine.state is State.DUMP_REQUESTED and transport is not None and not transport.is_closing()

    def _begin_dump(
        self, machine: SourceSide, request: DumpRequest, admitted: AdmittedDump, bound: dict[str, object]
    ) -> None:
        semi_sync = request.wants_semi_sync
        acknowledgements: Acknowledgements | None = None
        if semi_sync:
            acknowledgements = Acknowledgements(self._host.acknowledgement_sums, self._knows_file)
        try:
            self._host.dump_begins(self)
            self.dump_began_at = self._loop.time()
            dump = admitted.prepare(self, lambda: machine.accept_dump(takes_acks=semi_sync), acknowledgements)
        except BaseException:
            admitted.drop()
            raise
        # Only with its dump: until then it may be refused, and who is refused is no semi-sync replica.
        self.dump, self.acknowledgements = dump, acknowledgements
        self._log.info("dump_started", **bound, **admitted.described())
        admitted.start(dump)

    def _knows_file(self, name: str) -> bool:
        return any(one.archive.file(name) is not None for one in self._host.generations.all)

    def _end_dump(self, event: str, reason: str, level: str = "info") -> None:
        dump, self.dump = self.dump, None
        if dump is None:
            return
        if self.leaving is not None:
            self.leaving.set()
        acked: dict[str, object] = {}
        if self.acknowledgements is not None:
            acked = {"acknowledged": str(self.acknowledgements.acked), "unanswered": self.acknowledgements.open}
            self.acknowledgements.end()
            self.acknowledgements = None
        dump.close(all_was_read=self._closed_by_peer)
        self._host.traffic.bytes_sent += dump.sent_bytes
        self._host.leave_edge(dump)
        position = dump.position
        log = self._log.warning if level == "warning" else self._log.info
        log(
            event,
            user=self.user,
            server_id=self._server_id,
            uuid=self.replica_uuid,
            file=position.file,
            offset=position.offset,
            sent_bytes=dump.sent_bytes,
            reason=reason,
            **acked,
        )

    # --- what the dump calls ----------------------------------------------------------------------------------------

    def write(self, data: bytes | memoryview) -> None:
        """Gives bytes to the socket."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def unread_bytes(self) -> int | None:
        """Of all that was written, what the replica has not read, as far as the system can tell."""
        return self._peer.unread_bytes()

    def dump_ended(self, sequence: int) -> None:
        """The client wanted EOF at the end, and the end is here."""
        self._end_dump("dump_ended", reason="the client asked for what there is, and has it")
        if self._machine is not None:
            self._after(self._machine.end_dump(sequence, self._loop.time()))

    def dump_failed(self, sequence: int | None, error: AnsweredError) -> None:
        """The stream cannot go on."""
        self._end_dump("dump_stopped", reason=error.message, level="warning")
        if sequence is None or self._machine is None:
            self.abort()
            return
        self._after(self._machine.fail_dump(sequence, error))
