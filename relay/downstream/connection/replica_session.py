"""One replica's connection: the bytes between the socket and the protocol machine, and the order of the work that they request."""

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Final, Protocol, cast

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.authenticator import REFUSED, Channel, Work
from protocol.errors import AnsweredError, ErrorCode, PeerError, PositionRefused
from protocol.framing import frame_payload
from protocol.packets import err_payload
from protocol.position import Position
from protocol.source_side.connection_events import (
    AckReceived,
    CheckRequested,
    Closed,
    DumpRequested,
    Event,
    LoggedIn,
    LoginRefused,
    Registered,
    StatementRequested,
    TlsRequested,
)
from protocol.source_side.connection_states import State
from protocol.source_side.connection_terms import Limits, LoginTerms, Ruling, TurnTime
from protocol.source_side.machine import SourceSide
from protocol.statements import GivenAnswer, Request, SourceFacts
from relay.downstream.connection.client import Client
from relay.downstream.connection.client_status import ClientStatus
from relay.downstream.connection.connection_log import ConnectionLog
from relay.downstream.connection.connection_memory import ConnectionMemory
from relay.downstream.connection.connection_tls import ConnectionTls, TlsBroken
from relay.downstream.connection.deadline import Deadline
from relay.downstream.connection.line_bounds import LineBounds
from relay.downstream.connection.peer_socket import PeerSocket
from relay.downstream.connection.pending_statement import PendingStatement
from relay.downstream.connection.traffic import Traffic
from relay.downstream.request.dump_request import DumpRequest
from relay.downstream.request.refusal import INTERNAL_ERROR, SetUpMissing, refusal
from relay.downstream.stream.acknowledgements import Acknowledgements, AcknowledgementSums
from relay.downstream.stream.admission import AdmissionHost, AdmittedDump, admit
from relay.downstream.stream.dump import Dump
from relay.fairness.fair_pool import TURN, taking
from relay.fairness.fair_queue import Turn
from relay.fairness.rounds import Rounds
from relay.process.background import begin_task, guarded
from relay.process.certificates import ServerTls
from relay.process.memory_budget import MemoryBudget

# After so many buffers from one client the others get their turn.
_FULL_READS_A_TURN: Final = 4
_LINGER_S: Final = 1.0
# A replica's receiving thread that was stopped closes its socket within this time.
_RESET_SHOWS_S: Final = 2.0
_REQUEST_NUMBERS: Final = itertools.count(1)
_WHY_NO_GREETING: Final[dict[int, str]] = {
    ErrorCode.ER_CON_COUNT_ERROR: "too_many",
    ErrorCode.ER_HOST_IS_BLOCKED: "blocked",
    ErrorCode.ER_SERVER_SHUTDOWN: "shutdown",
}


class StatementAnswers(Protocol):
    """Answers the queries that people and monitors send to the running relay."""

    async def answer(self, request: Request, asker: ClientStatus) -> GivenAnswer:
        """Return the answer. Raises: StatementRefused."""


class SessionArchive(AdmissionHost, Protocol):
    """The archive that a session is served."""

    console: StatementAnswers | None

    def leave_edge(self, dump: Dump) -> None:
        """Note that `dump` has ended."""


class SessionHost(Protocol):
    """The parts that the sessions of one server share."""

    input_view: memoryview
    accounts: Accounts
    checks: Executor
    handshakes: Executor
    tls: ServerTls | None
    limits: Limits
    acknowledgement_sums: AcknowledgementSums
    traffic: Traffic
    line_bounds: LineBounds
    memory: MemoryBudget
    rounds: Rounds

    @property
    def mirror(self) -> SessionArchive:
        """The archive that a session is served if its account names no view."""

    def admit(self, session: "Session") -> AnsweredError | tuple[int, SourceFacts]:
        """Count a new connection. Return its id and the source's facts, or the error that it is sent instead of a greeting."""

    def rule_login(self, session: "Session", user: str, account: Account | None) -> Ruling:
        """Count a verdict on a login as `user`. Return when it may be sent, and what the account is served from then on."""

    def turn_of(self, session: "Session") -> Turn:
        """Return the turn under which threads work for the session."""

    def gone(self, session: "Session") -> None:
        """Note that the connection ended."""

    async def answer_request(self, session: "Session", request: Request) -> GivenAnswer:
        """Answer a request that only the running relay can answer. Raises: AnsweredError, which the client receives."""

    def dump_begins(self, session: "Session") -> None:
        """End an older dump of the same replica."""


class Session(asyncio.BufferedProtocol):
    """One connection, from accept to close."""

    def __init__(self, host: SessionHost) -> None:
        self.client = Client()
        self.dump: Dump | None = None
        self.acknowledgements: Acknowledgements | None = None
        """The acknowledgements of its dump, if the replica is a semi-sync one."""
        self.served = host.mirror
        """The mirror before its login, and then what its account is served."""
        self.answers: StatementAnswers | None = None
        """Answers statements of an account whose view is not open and which is served nothing else. None: as `served`."""
        self._host = host
        self._loop = asyncio.get_running_loop()
        self.log = ConnectionLog(self.client, host.line_bounds)
        self._transport: asyncio.Transport | None = None
        time_passed = guarded(self._time_passed, "looking at a connection's deadline", self._broken)
        self._deadline = Deadline(time_passed)
        self._take_back_turn: Callable[[], object] | None = None
        """Set while commands wait for a turn."""
        self._checking: asyncio.Task[None] | None = None
        self._admission: asyncio.Task[None] | None = None
        self._statement: PendingStatement | None = None
        self._offered_tls: ServerTls | None = None
        self._tls: ConnectionTls | None = None
        self.write_paused = False
        self._peer = PeerSocket(None)
        self._memory: ConnectionMemory | None = None
        self._closed_by_peer = False
        self.leaving: asyncio.Event | None = None
        """Exists while the relay finds out what its replica had read when it disconnected; set when that is known."""
        self._full_reads = 0
        """The number of its last reads that filled the buffer."""
        self._counted = (0, 0)
        """Its commands and statements that are counted in the traffic already."""
        self._said_goodbye = False

    def status(self) -> ClientStatus:
        """Return the current status of the connection."""
        return self.client.status(self.served.archive, self.dump, self.acknowledgements)

    # --- transport ------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the client."""
        self._transport = cast(asyncio.Transport, transport)
        # 0: pause_writing then reports that the buffer which was just given is still in use.
        self._transport.set_write_buffer_limits(high=0)
        self._peer = PeerSocket(transport.get_extra_info("socket"))
        peer = transport.get_extra_info("peername")
        self.client.host = str(peer[0]) if peer else ""
        self.client.address = f"{peer[0]}:{peer[1]}" if peer else ""
        answer = self._host.admit(self)
        if isinstance(answer, AnsweredError):
            self._host.traffic.turned_away[_WHY_NO_GREETING.get(answer.number, "other")] += 1
            self.log.refused(answer)
            payload = err_payload(answer, with_sqlstate=False)
            self._transport.write(frame_payload(payload, 0))
            self._close_soon()
            return
        self.client.connection_id, facts = answer
        self._memory = ConnectionMemory(self._host.memory, self.client, self._transport, self._let_go)
        self.log.greeted()
        now = self._loop.time()
        # The TLS settings of this moment: a reload between the greeting and the client's request for TLS changes nothing here.
        self._offered_tls = self._host.tls
        self.client.machine = SourceSide(
            connection_id=self.client.connection_id,
            facts=facts,
            login=LoginTerms(
                self._host.accounts,
                os.urandom,
                offer_tls=self._offered_tls is not None,
                rule=self._rule,
                accounts_now=lambda: self._host.accounts,
            ),
            host=self.client.host,
            now=now,
            wall_offset_s=time.time() - now,
            limits=self._host.limits,
            turns=TurnTime(time.monotonic, self._host.rounds.length_s, self._host.rounds.has_time),
        )
        self._after([])

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the server's one input buffer: it is used up before another connection is read."""
        return self._host.input_view

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes that arrived."""
        self._host.traffic.bytes_received += nbytes
        self.client.last_heard_at = self._loop.time()
        # uvloop continues reading at once, up to 32 times, as long as reads fill the buffer. The time cannot bound that: it
        # passes meanwhile.
        self._full_reads = self._full_reads + 1 if nbytes == len(self._host.input_view) else 0
        most = 1 if self._memory is not None and self._memory.is_tight else _FULL_READS_A_TURN
        if self._full_reads >= most and self._transport is not None:
            self._full_reads = 0
            self._transport.pause_reading()
            self._loop.call_soon(self._read_on)
        if self._tls is not None:
            self._take_secured(self._tls, self._host.input_view[:nbytes])
        elif self.client.machine is not None:
            self._take(self.client.machine, self._host.input_view[:nbytes])

    def eof_received(self) -> bool:
        """End the connection, as the peer has ended its side.

        For a dump at rest, first find out whether the peer's system had read everything. It sends a reset when it closes a socket
        with unread bytes, but a replica's STOP SLAVE shuts its socket down first, which looks like an end with everything read, and
        closes it when its receiving thread gets there. A goodbye, of the protocol or of TLS, says nothing about what was read.
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
        """Note that the socket is full. A client that sends requests without reading the answers is not read any more."""
        self.write_paused = True
        self._count_memory()
        if self.dump is None and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Continue: the socket took everything."""
        self.write_paused = False
        self._count_memory()
        self._read_on()
        self._schedule_turn()
        if self.dump is not None:
            self.dump.writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """Free what the connection held."""
        self._deadline.cancel()
        for task in (self._admission, self._checking):
            if task is not None:
                task.cancel()
        for beside in (self._statement, self._tls):
            if beside is not None:
                beside.drop()
        if self.dump is not None:
            self._end_dump(str(exc) if exc else "connection closed")
        elif self.client.waits_for_position and self.client.requested_position is not None:
            self.log.dump_not_begun(self.client.requested_position, self.served.archive.current.end)
        elif self.client.machine is not None:
            self.log.closed()
        if not self.client.user:
            self._host.traffic.aborted_connects += 1
        elif not self._said_goodbye:
            self._host.traffic.aborted_clients += 1
        self._host.gone(self)
        self._forget()

    def _forget(self) -> None:
        """Break the references between its parts, so that none of them waits for the garbage collector."""
        if self._memory is not None:
            self._memory.close()
        if self.client.machine is not None:
            self.client.machine.forget()
        self._deadline.forget()
        if self._take_back_turn is not None:
            self._take_back_turn()
        self.client.machine = self._memory = None
        self._transport = self._tls = self._statement = self._take_back_turn = None

    # --- the machine ----------------------------------------------------------------------------------------------

    def _take(self, machine: SourceSide, data: memoryview | bytes) -> None:
        """Take what the client sent, decrypted if there is TLS."""
        self._after(machine.receive(data, self._loop.time()))
        if machine.holds_unread_commands and self._transport is not None:
            self._transport.pause_reading()

    def _schedule_turn(self) -> None:
        """Take commands that were sent ahead a few at a time, and none while the client reads no answers. A replica that acknowledges
        need not have read all that was written.
        """
        machine = self.client.machine
        waits = self._take_back_turn is not None or self._waits_for_reader
        if machine is not None and machine.has_more_to_do and not waits:
            next_turn = guarded(self._next_turn, "taking commands that were sent ahead", self._broken)
            self._take_back_turn = self._host.rounds.wait(self._host.turn_of(self), partial(next_turn, machine))

    def _next_turn(self, machine: SourceSide) -> None:
        self._take_back_turn = None
        if self._waits_for_reader or self._transport is None or self._transport.is_closing():
            return
        self._after(machine.go_on(self._loop.time()))
        self._read_on()

    @property
    def _waits_for_reader(self) -> bool:
        """True if answers were written that the client has not read."""
        return self.write_paused and self.dump is None

    def _after(self, events: list[Event]) -> None:
        """Do what the machine's events request, then send its output."""
        machine = self.client.machine
        transport = self._transport
        if machine is None or transport is None:
            return
        closed: Closed | None = None
        for event in events:
            if isinstance(event, StatementRequested):
                self._host.rounds.requested()
                find = partial(self._host.answer_request, self, event.request)
                self._statement = PendingStatement(event.request, find, self._answered, self.log, self._broken)
            elif isinstance(event, TlsRequested):
                self._begin_tls(transport, event.received)
            elif isinstance(event, CheckRequested):
                self._checking = begin_task(self._check(machine, event.work), "checking a login", self._broken)
            elif isinstance(event, DumpRequested):
                request = self.client.requests_dump(event.request, next(_REQUEST_NUMBERS))
                if self._memory is not None:
                    self._memory.requested(event.request)
                admission = self._admit(machine, request)
                self._admission = begin_task(admission, "deciding about a dump request", self._broken)
            elif isinstance(event, AckReceived):
                closed = self._acknowledged(machine, event.position)
                if closed is not None:
                    break
            else:
                if isinstance(event, Registered):
                    self.client.registers(event.replica)
                if isinstance(event, LoggedIn) and self._memory is not None:
                    self._memory.logged_in()
                if isinstance(event, LoggedIn):
                    # Before the login its deadline is shorter.
                    self._peer.keep_alive()
                    self._host.traffic.logins += 1
                self._host.traffic.login_failures += isinstance(event, LoginRefused)
                self.log.happened(event)
                closed = event if isinstance(event, Closed) else closed
        data = machine.bytes_to_send()
        if data and not transport.is_closing():
            transport.write(data)
        self._count(machine, len(data))
        self._count_memory()
        if closed is not None:
            self._said_goodbye = closed.error is None
            if self._admission is not None:
                # It said goodbye, or broke the rules, while its dump request was being checked.
                self._admission.cancel()
            if self.dump is not None:
                self._end_dump(closed.error.what if closed.error else "the replica said goodbye")
            self._close_soon()
        self._deadline.set(machine.next_deadline())
        self._schedule_turn()

    def _count_memory(self) -> None:
        if self._memory is not None:
            self._memory.changed()

    def _count(self, machine: SourceSide, sent_bytes: int) -> None:
        traffic = self._host.traffic
        traffic.bytes_sent += sent_bytes
        commands, statements = self._counted
        self._counted = (machine.commands, machine.statements)
        traffic.commands += machine.commands - commands
        traffic.statements += machine.statements - statements

    def _time_passed(self) -> None:
        if self.client.machine is not None:
            self._after(self.client.machine.pass_time(self._loop.time() + 0.001))
            self._read_on()

    def _read_on(self) -> None:
        """Read from the peer again, if nothing holds that up any more."""
        transport, machine = self._transport, self.client.machine
        if transport is None or machine is None or transport.is_closing():
            return
        if not self._waits_for_reader and not machine.holds_unread_commands:
            transport.resume_reading()

    def _close_soon(self) -> None:
        """Close when the peer does, or shortly after. Closing at once with unread input would reset the connection and discard the
        error that explains it.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        with contextlib.suppress(OSError):  # it is aborted below
            transport.write_eof()
        self._abort_later()

    def _abort_later(self) -> None:
        """Abort later: a peer that reads nothing any more is not waited for."""
        if self._transport is not None:
            self._loop.call_later(_LINGER_S, self._transport.abort)

    def _rule(self, account: Account | None) -> Ruling:
        user = self.client.machine.session.user if self.client.machine is not None else ""
        return self._host.rule_login(self, user, account)

    # --- TLS --------------------------------------------------------------------------------------------------------

    def _begin_tls(self, transport: asyncio.Transport, received: bytes) -> None:
        """Treat everything from now on as TLS, also before the handshake's task has begun."""
        offered = self._offered_tls
        assert offered is not None, "the machine asks for what the greeting offered"
        with taking(self._host.turn_of(self)):
            threads, more = self._host.handshakes, guarded(self._more_secured, "opening TLS records", self._broken)
            self._tls = ConnectionTls(transport, offered, received, threads, self._secured, more, self._broken)

    def _secured(self, tls: ConnectionTls, outcome: Channel | TlsBroken) -> None:
        """End the handshake: put TLS between the socket and the machine, or end the connection."""
        if isinstance(outcome, TlsBroken):
            self._tls_failed(outcome)
            return
        machine, transport = self.client.machine, self._transport
        if machine is None or machine.state is not State.TLS_EXPECTED or transport is None or transport.is_closing():
            return
        self._transport = tls.transport
        machine.tls_established(outcome)
        # The bytes that the client has sent after its part of the handshake.
        self._take_secured(tls, b"")

    def _more_secured(self, tls: ConnectionTls) -> None:
        self._take_secured(tls, b"")

    def _take_secured(self, tls: ConnectionTls, data: memoryview | bytes) -> None:
        machine = self.client.machine
        if machine is None or machine.state is State.CLOSED:
            return
        try:
            plain = tls.received(data)
        except TlsBroken as broken:
            self._tls_failed(broken)
            return
        if plain:
            self._take(machine, plain)
        if tls.peer_said_goodbye:
            tls.transport.close()
            self._abort_later()

    def _tls_failed(self, broken: TlsBroken) -> None:
        if self.client.machine is None or self.client.machine.state is State.CLOSED:
            return
        if self.dump is not None:
            self.log.tls_broken(str(broken))
            self.abort()
            return
        self._after(self.client.machine.tls_failed(str(broken)))

    # --- work outside the connection --------------------------------------------------------------------------------

    async def _check(self, machine: SourceSide, work: Work) -> None:
        """Run the part of a login that takes milliseconds, in a thread."""
        TURN.set(self._host.turn_of(self))
        try:
            step = await self._loop.run_in_executor(self._host.checks, work)
        except asyncio.CancelledError:
            raise
        except Exception:
            self.log.login_check_failed()
            step = REFUSED
        self._checking = None
        self._after(machine.answer_check(step, self._loop.time()))
        self._read_on()

    def _answered(self, answer: GivenAnswer | AnsweredError) -> None:
        """Send the answer to the newest statement."""
        self._statement = None
        machine, transport = self.client.machine, self._transport
        if machine is None or machine.state is not State.ANSWER_PENDING or transport is None or transport.is_closing():
            return
        self._after(machine.answer(answer, self._loop.time()))
        self._read_on()

    # --- semi-sync ------------------------------------------------------------------------------------------------

    def _acknowledged(self, machine: SourceSide, position: Position) -> Closed | None:
        """Take an acknowledgement. One that cannot be true ends the connection."""
        if self.acknowledgements is None:
            return None
        try:
            self.acknowledgements.take(position, self._loop.time())
        except PeerError as error:
            closed = machine.break_off(error)
            self.log.happened(closed)
            return closed
        return None

    # --- ends that come from outside --------------------------------------------------------------------------------

    def stop(self, error: AnsweredError) -> None:
        """End this connection, with an error if one can still be sent."""
        if self.dump is not None:
            self.dump.fail(error)
        elif self.client.machine is not None and self.client.waits_for_position:
            self._after(self.client.machine.refuse_dump(error))
        elif self._transport is not None:
            self._transport.close()

    def _let_go(self) -> None:
        """End the connection because others need its memory. The reason is sent if the client reads what it is sent and receives no
        stream, whose end it would take for the source's.
        """
        machine, memory, transport = self.client.machine, self._memory, self._transport
        if machine is None or memory is None or transport is None:
            return
        error = memory.refusal()
        self.log.memory_exceeded(error, memory.held_bytes)
        if machine.state in (State.CLOSED, State.DUMPING, State.DUMP_REQUESTED) or transport.get_write_buffer_size():
            self.abort()
        else:
            self._after([machine.break_off(error)])
        if self._statement is not None:
            self._statement.drop()
        machine.forget()
        self._count_memory()

    def interrupt(self) -> None:
        """End the statement that is being answered, if it only shows something: the connection continues."""
        if self._statement is not None:
            self._statement.interrupt()

    def abort(self) -> None:
        """End this connection now."""
        if self._transport is not None:
            self._transport.abort()

    def _broken(self, fault: Exception) -> None:
        """End the connection after an internal fault: the client does not wait for an answer that never comes."""
        self.log.broken_off(fault)
        self.abort()

    # --- the dump -------------------------------------------------------------------------------------------------

    async def _admit(self, machine: SourceSide, request: DumpRequest) -> None:
        """Decide about a dump request, and begin the dump."""
        TURN.set(self._host.turn_of(self))
        try:
            admitted = await admit(self.served, request)
            self._admission = None
            if self._waits_still(machine):
                self._begin_dump(machine, request, admitted)
            else:
                # asyncio.wait_for of Python 3.11 swallows a cancellation that meets a result.
                admitted.drop()
            return
        except PositionRefused as error:
            refused = error.without_trace()
        except asyncio.CancelledError:
            raise
        except Exception:
            # An internal fault must not leave the replica waiting without an answer.
            self.log.dump_request_failed(request.command)
            refused = refusal(INTERNAL_ERROR, ErrorCode.ER_UNKNOWN_ERROR)
        self._admission = None
        if machine.state is State.DUMP_REQUESTED:
            if request.is_of_a_library and isinstance(refused, SetUpMissing):
                # A refusal for a missing set-up would stop the replica for good.
                self.log.dump_dropped(request.command, refused)
                self._after(machine.drop_dump(refused))
            else:
                self._host.traffic.dumps_refused[int(refused.number)] += 1
                self.log.dump_refused(request.command, refused)
                self._after(machine.refuse_dump(refused))
        elif machine.state is State.DUMPING:
            # It failed after it had begun: the stream has no place for an error.
            self.abort()

    def _waits_still(self, machine: SourceSide) -> bool:
        """Return whether a connection still exists whose request is undecided."""
        transport = self._transport
        return machine.state is State.DUMP_REQUESTED and transport is not None and not transport.is_closing()

    def _begin_dump(self, machine: SourceSide, request: DumpRequest, admitted: AdmittedDump) -> None:
        try:
            self._host.dump_begins(self)
            self.client.dump_began_at = self._loop.time()
            dump = admitted.prepare(self)
        except BaseException:
            admitted.drop()
            raise
        self._host.traffic.dumps_begun += 1
        self.dump = dump
        sequence = machine.accept_dump(takes_acks=request.wants_semi_sync)
        if request.wants_semi_sync:
            # Only with its dump: until then it may be refused, and a refused one is no semi-sync replica.
            self.acknowledgements = Acknowledgements(self._host.acknowledgement_sums, self._knows_file)
        self.log.dump_started(admitted.described())
        dump.begin(sequence)

    def _knows_file(self, name: str) -> bool:
        return any(one.file(name) is not None for one in self.served.archive.all)

    def _end_dump(self, reason: str, *, failed: bool = False) -> None:
        dump, self.dump = self.dump, None
        if dump is None:
            return
        if self.leaving is not None:
            self.leaving.set()
        tell = self.log.dump_stopped if failed else self.log.dump_ended
        tell(dump, self.acknowledgements, reason)
        if self.acknowledgements is not None:
            self.acknowledgements.end()
            self.acknowledgements = None
        dump.close(all_was_read=self._closed_by_peer)
        self._host.traffic.bytes_sent += dump.sent_bytes
        self.served.leave_edge(dump)
        if self._memory is not None:
            self._memory.dump_ended()

    # --- for the dump -----------------------------------------------------------------------------------------------

    def write(self, data: bytes | memoryview) -> None:
        """Give bytes to the socket."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def unread_bytes(self) -> int | None:
        """Return the written bytes that the replica has not read, as far as the system knows."""
        return self._peer.unread_bytes()

    def acknowledgements_requested(self, newest: Position, count: int) -> None:
        """Note that so many more events must be acknowledged."""
        if self.acknowledgements is not None:
            self.acknowledgements.ask(newest, count, self._loop.time())

    def generation_entered(self) -> None:
        """Note that what is sent from now on is of the next generation."""
        if self.acknowledgements is not None:
            self.acknowledgements.pass_on()

    def dump_ended(self, sequence: int) -> None:
        """End the stream: the client wanted EOF at the end, and it is reached."""
        self._end_dump("the client asked for what there is, and has it")
        if self.client.machine is not None:
            self._after(self.client.machine.end_dump(sequence, self._loop.time()))

    def dump_failed(self, sequence: int | None, error: AnsweredError) -> None:
        """End the stream with an error."""
        if self.dump is not None:
            self._host.traffic.dumps_refused[int(error.number)] += 1
        self._end_dump(error.what, failed=True)
        if sequence is None or self.client.machine is None:
            self.abort()
            return
        self._after(self.client.machine.fail_dump(sequence, error))
