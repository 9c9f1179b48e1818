"""One replica's connection: bytes from the socket to the protocol machine and back, and its dump."""

import asyncio
import contextlib
import fcntl
import itertools
import os
import socket
import struct
import termios
import time
from collections.abc import Mapping
from typing import Final, Protocol, cast

import structlog

from protocol.artificial import HEADER_BYTES, patch_format_description
from protocol.auth import Account
from protocol.commands import BinlogDump
from protocol.errors import AnsweredError, ErrorCode, Malformed, PeerError, PositionRefused
from protocol.framing import frame_payload
from protocol.kernel.frame import EDGES, KEEP, STRIP
from protocol.packets import err_payload
from protocol.source_side import (
    Closed,
    DumpAsked,
    Event,
    KillAsked,
    Limits,
    LoggedIn,
    LoginRefused,
    Registered,
    SourceSide,
    State,
    StatementFailed,
)
from protocol.statements import SourceFacts
from relay.archive.archived_file import ArchivedFile
from relay.archive.errors import ArchiveError
from relay.archive.replica_marks import Mark, ReplicaIdentity
from relay.downstream.archive_view import ServedArchive
from relay.downstream.dump import Dump, DumpOptions
from relay.downstream.file_reads import BufferPool, FileReads, OpenFile
from relay.downstream.positions import (
    FIRST_OFFSET,
    Decision,
    check_checksum,
    check_flavour,
    check_request,
    judge,
    not_here_yet,
    refusal,
    replica_checksum,
    shown_name,
    variable,
)

_LINGER_S: Final = 1.0
_RECHECK_S: Final = 0.05
_LONGEST_FORMAT_DESCRIPTION: Final = 65536
_MIN_HEARTBEAT_S: Final = 0.001
_REFUSED: Final = ErrorCode.ER_ACCESS_DENIED_ERROR
_LONGEST_HEARTBEAT_NS: Final = 10**18
_REQUEST_NUMBERS: Final = itertools.count(1)
# A replica whose machine died silently while it waited for events is noticed after two or three minutes.
_MODES: Final = {"tbm": KEEP, "strip": STRIP, "edges": EDGES}
_TCP_INFO_BYTES: Final = 232  # up to and with tcpi_snd_wnd
_KEEPALIVE: Final = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 20), (socket.TCP_KEEPCNT, 4))


class SessionHost(Protocol):
    """What the sessions of one server share."""

    reads: FileReads
    outputs: BufferPool
    input_view: memoryview
    accounts: Mapping[str, Account]
    limits: Limits
    position_wait_s: float

    @property
    def archive(self) -> ServedArchive:
        """What is served."""

    def admit(self, session: "Session") -> AnsweredError | tuple[int, SourceFacts]:
        """A connection came: its id and the source's facts, or the error it is sent instead of a greeting."""

    def gone(self, session: "Session") -> None:
        """The connection ended."""

    def kill(self, connection_id: int, user: str) -> bool:
        """Ends that connection, if it is the same user's; whether it was."""

    def dump_begins(self, session: "Session") -> None:
        """Ends an older dump of the same replica."""

    def wait_at_edge(self, dump: Dump) -> None:
        """`dump.pump` is to be called when the archive grows."""

    def leave_edge(self, dump: Dump) -> None:
        """`dump` has ended."""

    def next_move(self) -> asyncio.Event:
        """Is set when the archive grows from now on."""


class Session(asyncio.BufferedProtocol):
    """One connection, from accept to close."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("relay.downstream")
        self._transport: asyncio.Transport | None = None
        self._machine: SourceSide | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._admission: asyncio.Task[None] | None = None
        self.write_paused = False
        self._widest_window = 0
        self._closed_by_peer = False
        self.dump: Dump | None = None
        self.request_number = 0
        """Of its newest dump request; later requests, of any connection, have greater ones."""
        self.connection_id = 0
        self.address = ""

    # --- who this is ----------------------------------------------------------------------------------------------

    @property
    def user(self) -> str:
        """The account's name; empty before the login."""
        return self._machine.account.user if self._machine and self._machine.account else ""

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

    # --- transport ------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greets."""
        self._transport = cast(asyncio.Transport, transport)
        # 0: pause_writing then tells that the buffer which was just given is still in use.
        self._transport.set_write_buffer_limits(high=0)
        _keep_alive(transport.get_extra_info("socket"))
        peer = transport.get_extra_info("peername")
        host = str(peer[0]) if peer else ""
        self.address = f"{peer[0]}:{peer[1]}" if peer else ""
        answer = self._host.admit(self)
        if isinstance(answer, AnsweredError):
            self._log.warning("connection_refused", replica_address=self.address, reason=answer.message)
            payload = err_payload(answer.number, answer.message, with_sqlstate=False)
            self._transport.write(frame_payload(payload, 0))
            self._close_soon()
            return
        self.connection_id, facts = answer
        self._log = self._log.bind(connection_id=self.connection_id, replica_address=self.address)
        now = self._loop.time()
        self._machine = SourceSide(
            connection_id=self.connection_id,
            facts=facts,
            accounts=self._host.accounts,
            host=host,
            random_bytes=os.urandom,
            now=now,
            wall_offset_s=time.time() - now,
            limits=self._host.limits,
        )
        self._after([])

    def get_buffer(self, sizehint: int) -> memoryview:
        """The server's one input buffer: it is used up before another connection is read."""
        return self._host.input_view

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came."""
        if self._machine is not None:
            self._after(self._machine.receive(self._host.input_view[:nbytes], self._loop.time()))

    def eof_received(self) -> bool:
        """The peer is done: so are we."""
        # A system that closes a socket with bytes nobody has read sends a reset instead: it has read everything.
        self._closed_by_peer = True
        return False

    def pause_writing(self) -> None:
        """The socket is full. A client that asks without reading the answers is not listened to."""
        self.write_paused = True
        if self.dump is None and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The socket took everything."""
        self.write_paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        if self.dump is not None:
            self.dump.writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """Frees what the connection held."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._admission is not None:
            self._admission.cancel()
        if self.dump is not None:
            self._end_dump("dump_ended", reason=str(exc) if exc else "connection closed")
        elif self._machine is not None:
            self._log.debug("connection_closed", user=self.user)
        self._host.gone(self)

    # --- the machine ----------------------------------------------------------------------------------------------

    def _after(self, events: list[Event]) -> None:
        """Does what the machine's events ask for, then sends what it has to say."""
        machine = self._machine
        transport = self._transport
        if machine is None or transport is None:
            return
        pending = list(events)
        closed = False
        while pending:
            event = pending.pop(0)
            if isinstance(event, KillAsked):
                found = self._host.kill(event.connection_id, self.user)
                pending.extend(machine.answer_kill(self._loop.time(), found=found))
            elif isinstance(event, DumpAsked):
                self._server_id = event.request.server_id
                self.request_number = next(_REQUEST_NUMBERS)
                self._admission = self._loop.create_task(self._admit(event.request))
            else:
                self._log_event(event)
                closed = closed or isinstance(event, Closed)
        data = machine.bytes_to_send()
        if data and not transport.is_closing():
            transport.write(data)
        if closed:
            if self._admission is not None:
                # It said goodbye, or broke the rules, while its dump request was looked at.
                self._admission.cancel()
            if self.dump is not None:
                self._closed_by_peer = True
                self._end_dump("dump_ended", reason="the replica said goodbye")
            self._close_soon()
        self._set_timer()

    def _log_event(self, event: Event) -> None:
        if isinstance(event, LoggedIn):
            client = {
                key: event.attributes[key] for key in ("program_name", "_client_version") if key in event.attributes
            }
            self._log.info(
                "replica_logged_in", user=event.account.user, **{k.lstrip("_"): v for k, v in client.items()}
            )
        elif isinstance(event, LoginRefused):
            self._log.warning("login_refused", user=event.user)
        elif isinstance(event, StatementFailed):
            self._log.info("statement_refused", user=self.user, statement=event.statement, number=int(event.number))
        elif isinstance(event, Registered):
            self._server_id = event.replica.server_id
            self._log.info("replica_registered", user=self.user, server_id=self._server_id, uuid=self.replica_uuid)
        elif isinstance(event, Closed) and isinstance(event.error, PeerError) and event.error.number != _REFUSED:
            self._log.warning(
                "connection_ended", user=self.user, number=int(event.error.number), reason=event.error.message
            )

    def _set_timer(self) -> None:
        """The deadline moves with every command: the timer looks again when it fires, and is set again then."""
        deadline = self._machine.next_deadline() if self._machine is not None else None
        if deadline is None:
            return
        if self._timer is None or self._timer.when() > deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(deadline, self._time_passed)

    def _time_passed(self) -> None:
        self._timer = None
        if self._machine is not None:
            self._after(self._machine.pass_time(self._loop.time() + 0.001))

    def _close_soon(self) -> None:
        """Closes when the peer does, or shortly. Closing at once over unread input would reset the connection and take
        the error away that explains it."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        # NotImplementedError: asyncio's answer of a transport that cannot half-close (TLS); it is aborted below.
        with contextlib.suppress(OSError, NotImplementedError):
            transport.write_eof()
        self._loop.call_later(_LINGER_S, transport.abort)

    # --- ends that come from outside --------------------------------------------------------------------------------

    def stop(self, error: AnsweredError) -> None:
        """Ends this connection with an error where there is room for one."""
        if self.dump is not None:
            self.dump.fail(error)
        elif self._machine is not None and self.waits_for_position:
            self._after(self._machine.refuse_dump(error))
        elif self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Ends this connection now."""
        if self._transport is not None:
            self._transport.abort()

    # --- the dump -------------------------------------------------------------------------------------------------

    async def _admit(self, request: BinlogDump) -> None:
        """Decides about a dump request, and begins the dump."""
        machine = self._machine
        if machine is None:
            return
        bound = {"user": self.user, "server_id": request.server_id, "uuid": self.replica_uuid}
        bound |= {"file": shown_name(request.file), "offset": request.offset}
        try:
            await self._begin_dump(machine, request)
            return
        except PositionRefused as error:
            refused = error
        except ArchiveError as error:
            refused = refusal(f"binlog-relay cannot read its archive: {error}", ErrorCode.ER_UNKNOWN_ERROR)
        except (OSError, Malformed) as error:
            refused = refusal(
                f"{shown_name(request.file)}:{request.offset}: binlog-relay cannot read its archive: {error}",
                ErrorCode.ER_UNKNOWN_ERROR,
            )
        except asyncio.CancelledError:
            raise
        except Exception:
            # A bug of ours must not leave the replica waiting without an answer.
            self._log.exception("dump_request_failed", **bound)
            refused = refusal("binlog-relay has an internal error, see its log", ErrorCode.ER_UNKNOWN_ERROR)
        self._admission = None
        if machine.state is State.DUMP_REQUESTED:
            self._log.warning("dump_refused", number=int(refused.number), reason=refused.message, **bound)
            self._after(machine.refuse_dump(refused))
        elif machine.state is State.DUMPING:
            # It failed after it had begun: nothing that could be said has a place in the stream.
            self.abort()

    async def _begin_dump(self, machine: SourceSide, request: BinlogDump) -> None:
        variables = machine.session.user_variables
        facts = machine.session.facts
        check_request(request, variables)
        check_flavour(facts.flavour, variables)
        uuid = self.replica_uuid
        identity = ReplicaIdentity(request.server_id, uuid) if request.server_id else None
        file, resumed = await self._find(request, facts, identity)
        check_flavour(file.flavour, variables)
        check_checksum(file.name, file.checksum, variables)
        account = machine.account
        strip = account is not None and account.markers == "strip"
        opened = self._host.reads.open(self._host.archive.path(file.name))
        mark: Mark | None = None
        try:
            head = None
            if request.offset > FIRST_OFFSET:
                raw = await self._loop.run_in_executor(None, _read_format_description, opened)
                head = patch_format_description(raw, mid_file=True, strip_markers=strip)
            self._host.dump_begins(self)
            if identity is not None:
                mark = self._host.archive.replicas.begin(identity, file.name, request.offset)
            options = DumpOptions(
                server_id=facts.server_id,
                heartbeat_s=_heartbeat_s(variable(variables, "source_heartbeat_period", "master_heartbeat_period")),
                first_rotate_checksum=replica_checksum(variables) == "CRC32",
                takes_checksums=replica_checksum(variables) is not None,
                ends_at_end=request.ends_at_end,
                mode=_MODES[account.markers] if account is not None else KEEP,
            )
            self.dump = Dump(
                archive=self._host.archive,
                reads=self._host.reads,
                outputs=self._host.outputs,
                owner=self,
                options=options,
                file=file,
                opened=opened,
                offset=request.offset,
                sequence=machine.accept_dump(),
                mark=mark,
                at_edge=self._host.wait_at_edge,
            )
        except BaseException:
            self._host.reads.close(opened)
            if mark is not None:
                mark.end()
            raise
        self._admission = None
        self._log.info(
            "dump_started",
            user=self.user,
            server_id=request.server_id,
            uuid=uuid,
            file=file.name,
            offset=request.offset,
            resumed_in_transaction=resumed,
            heartbeat_s=options.heartbeat_s,
        )
        self.dump.begin(head)

    async def _find(
        self, request: BinlogDump, facts: SourceFacts, identity: ReplicaIdentity | None
    ) -> tuple[ArchivedFile, bool]:
        """The file to serve, and whether this resumes inside a transaction. Holds the connection while the position may
        still arrive: without heartbeats, they would carry a smaller position. Raises: PositionRefused."""
        archive = self._host.archive
        deadline = self._loop.time() + (0.0 if request.ends_at_end else self._host.position_wait_s)
        while True:
            moved = self._host.next_move()
            files = archive.files
            name = request.file or (files[0].name if files else "")
            if name:
                check = await archive.check_position(name, request.offset)
                inside = check.verdict.name == "INSIDE_TRANSACTION"
                resumes = (
                    inside and identity is not None and archive.replicas.may_resume(identity, name, request.offset)
                )
                held = (archive.files[0].name, archive.files[-1].name) if archive.files else None
                decision = judge(check, name, request.offset, files_held=held, facts=facts, may_resume=resumes)
                file = archive.file(name)
                if decision is Decision.ACCEPT and file is not None:
                    return file, inside
            left = deadline - self._loop.time()
            if left <= 0:
                end = str(archive.end) if archive.end is not None else None
                raise not_here_yet(name, request.offset, end=end, waited_s=self._host.position_wait_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(moved.wait(), left)
            await asyncio.sleep(min(_RECHECK_S, left))

    def _end_dump(self, event: str, reason: str, level: str = "info") -> None:
        dump, self.dump = self.dump, None
        if dump is None:
            return
        dump.close(all_was_read=self._closed_by_peer)
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
        )

    # --- what the dump calls ----------------------------------------------------------------------------------------

    def write(self, data: bytes | memoryview) -> None:
        """Gives bytes to the socket."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def unread_bytes(self) -> int | None:
        """What the peer's system has not acknowledged, and what the replica has not taken from there.

        The latter is how much narrower the window is that the peer offers than the widest one it has offered. Source:
        Linux `struct tcp_info`, tcpi_snd_wnd (since 5.4; None before).
        """
        sock = self._transport.get_extra_info("socket") if self._transport is not None else None
        if sock is None:
            return None
        try:
            unacknowledged = int(struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4)))[0])
            facts = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        except OSError:
            return None
        if len(facts) < _TCP_INFO_BYTES:
            return None
        window = int.from_bytes(facts[_TCP_INFO_BYTES - 4 :], "little")
        self._widest_window = max(self._widest_window, window)
        return unacknowledged + self._widest_window - window

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


def _keep_alive(sock: socket.socket | None) -> None:
    if sock is None:
        return
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _heartbeat_s(value: object) -> float:
    """Seconds from a variable in nanoseconds; 0 (none) for what is no number. Servers take no period below 1 ms."""
    try:
        period_ns = int(str(value)) if value is not None else 0
    except ValueError:
        return 0.0
    return max(min(period_ns, _LONGEST_HEARTBEAT_NS) / 1e9, _MIN_HEARTBEAT_S) if period_ns > 0 else 0.0


def _read_format_description(opened: OpenFile) -> bytes:
    """The file's first event. In a thread. Raises: OSError, Malformed."""
    head = os.pread(opened.fd, HEADER_BYTES, FIRST_OFFSET)
    size = int.from_bytes(head[9:13], "little")
    if not HEADER_BYTES <= size <= _LONGEST_FORMAT_DESCRIPTION:
        raise Malformed(f"{opened.path.name} does not begin with a format description")
    return os.pread(opened.fd, size, FIRST_OFFSET)
