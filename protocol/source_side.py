"""One replica's connection as the source sees it: login, statements, dump. No sockets and no clock in here.

    connection = greeting login [switch token] ( OK { command answer } [ dump ] | ERR )
    dump       = COM_BINLOG_DUMP ( ERR | { event packet } [ EOF { command answer } [ dump ] | ERR ] )

The event packets of a dump are not made here: the shell writes them, framed by the kernel, from `accept_dump()` on, and
tells by `end_dump` or `fail_dump` which packet number comes next.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from protocol.auth import (
    NATIVE_PLUGIN,
    SCRAMBLE_BYTES,
    Account,
    Authenticator,
    AuthResult,
    NativePassword,
    printable_scramble,
)
from protocol.capabilities import OFFERED
from protocol.commands import BinlogDump, Command, RegisterSlave, decode_binlog_dump, decode_register_slave
from protocol.errors import AnsweredError, ErrorCode, Malformed, PeerError, StatementRefused
from protocol.framing import OutOfOrder, PacketBuffer, PacketTooLarge, frame_payload, packet_count
from protocol.handshake import Login, decode_login, greeting_payload, greeting_version
from protocol.packets import auth_more_payload, auth_switch_payload, cut_text, eof_payload, err_payload, ok_payload
from protocol.resultset import Rows, result_payloads
from protocol.statements import KillConnection, SourceFacts, StatementSession, answer_statement

# Before the login anybody may send; a login with all its attributes stays far below (attributes alone are capped at
# 64 KiB by real servers).
LOGIN_LIMIT_BYTES: Final = 65536
COMMAND_LIMIT_BYTES: Final = 1 << 20
_MAX_SHOWN_BYTES: Final = 64


class State(Enum):
    """Named for what may come next."""

    LOGIN_EXPECTED = "login expected"
    TOKEN_EXPECTED = "token expected"
    COMMAND_EXPECTED = "command expected"
    ANSWER_OWED = "answer owed"
    DUMP_REQUESTED = "dump requested"
    DUMPING = "dumping"
    CLOSED = "closed"


class Input(Enum):
    """What can happen to a connection."""

    SWITCH_SENT = "switch sent"
    LOGIN_ACCEPTED = "login accepted"
    LOGIN_REFUSED = "login refused"
    COMMAND_ANSWERED = "command answered"
    KILL_ASKED = "kill asked"
    KILL_ANSWERED = "kill answered"
    DUMP_ASKED = "dump asked"
    DUMP_ACCEPTED = "dump accepted"
    DUMP_REFUSED = "dump refused"
    DUMP_ENDED = "dump ended"
    DUMP_FAILED = "dump failed"
    QUIT = "quit"
    BROKEN = "broken"


_S = State
_I = Input
# (state, input) -> next state. A missing pair is a bug of the caller: what a peer can cause is always a row.
TRANSITIONS: Final[dict[tuple[State, Input], State]] = {
    # "If the client's plugin differs: AuthSwitchRequest": once, so a client cannot play for time.
    (_S.LOGIN_EXPECTED, _I.SWITCH_SENT): _S.TOKEN_EXPECTED,
    (_S.LOGIN_EXPECTED, _I.LOGIN_ACCEPTED): _S.COMMAND_EXPECTED,
    # A refusal is a state, not only a packet: nothing is answered after it.
    (_S.LOGIN_EXPECTED, _I.LOGIN_REFUSED): _S.CLOSED,
    (_S.LOGIN_EXPECTED, _I.BROKEN): _S.CLOSED,
    (_S.TOKEN_EXPECTED, _I.LOGIN_ACCEPTED): _S.COMMAND_EXPECTED,
    (_S.TOKEN_EXPECTED, _I.LOGIN_REFUSED): _S.CLOSED,
    (_S.TOKEN_EXPECTED, _I.BROKEN): _S.CLOSED,
    (_S.COMMAND_EXPECTED, _I.COMMAND_ANSWERED): _S.COMMAND_EXPECTED,
    (_S.COMMAND_EXPECTED, _I.KILL_ASKED): _S.ANSWER_OWED,
    (_S.COMMAND_EXPECTED, _I.DUMP_ASKED): _S.DUMP_REQUESTED,
    (_S.COMMAND_EXPECTED, _I.QUIT): _S.CLOSED,
    (_S.COMMAND_EXPECTED, _I.BROKEN): _S.CLOSED,
    (_S.ANSWER_OWED, _I.KILL_ANSWERED): _S.COMMAND_EXPECTED,
    (_S.ANSWER_OWED, _I.BROKEN): _S.CLOSED,
    (_S.DUMP_REQUESTED, _I.DUMP_ACCEPTED): _S.DUMPING,
    # As a server: an error instead of the stream ends the connection.
    (_S.DUMP_REQUESTED, _I.DUMP_REFUSED): _S.CLOSED,
    (_S.DUMP_REQUESTED, _I.QUIT): _S.CLOSED,
    (_S.DUMP_REQUESTED, _I.BROKEN): _S.CLOSED,
    # After EOF mysqlbinlog asks for the next file on the same connection.
    (_S.DUMPING, _I.DUMP_ENDED): _S.COMMAND_EXPECTED,
    (_S.DUMPING, _I.DUMP_FAILED): _S.CLOSED,
    (_S.DUMPING, _I.QUIT): _S.CLOSED,
    (_S.DUMPING, _I.BROKEN): _S.CLOSED,
}


class IllegalInput(AssertionError):
    """An input that the state does not allow: a bug of the caller, never of the peer."""


def step(state: State, what: Input) -> State:
    """The next state. Pure. Raises: IllegalInput for a pair that is not in the table."""
    try:
        return TRANSITIONS[state, what]
    except KeyError:
        raise IllegalInput(f"{what.value} while {state.value}") from None


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The login was accepted."""

    account: Account
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LoginRefused:
    """Unknown user or wrong password; which of them is nobody's business."""

    user: str


@dataclass(frozen=True, slots=True)
class StatementFailed:
    """A statement or command got an error; the connection is kept."""

    statement: str
    number: int
    message: str


@dataclass(frozen=True, slots=True)
class Registered:
    """COM_REGISTER_SLAVE was answered."""

    replica: RegisterSlave


@dataclass(frozen=True, slots=True)
class KillAsked:
    """Answer it with `answer_kill`."""

    connection_id: int


@dataclass(frozen=True, slots=True)
class DumpAsked:
    """Answer it with `accept_dump` or `refuse_dump`."""

    request: BinlogDump


@dataclass(frozen=True, slots=True)
class Closed:
    """The last event: write what is left of `bytes_to_send`, then close. `error`: None when the peer said goodbye."""

    error: AnsweredError | None = None


Event = LoggedIn | LoginRefused | StatementFailed | Registered | KillAsked | DumpAsked | Closed


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one connection. Times in seconds; `command_wait_s` is the server's wait_timeout."""

    login_bytes: int = LOGIN_LIMIT_BYTES
    command_bytes: int = COMMAND_LIMIT_BYTES
    login_wait_s: float = 10.0
    command_wait_s: float = 28800.0


@dataclass(slots=True)
class _Attempt:
    """A login that is going on."""

    user: str
    account: Account | None
    authenticator: Authenticator
    attributes: Mapping[str, str] = field(default_factory=dict)


class SourceSide:
    """The source's side of one connection. It speaks first: `bytes_to_send()` has the greeting from the start.

    `accounts`: by user name. `random_bytes(n)`: unpredictable, for the scramble. `now`: any monotonic clock, seconds;
    `wall_offset_s`: what to add to it for seconds since 1970.
    """

    def __init__(
        self,
        *,
        connection_id: int,
        facts: SourceFacts,
        accounts: Mapping[str, Account],
        host: str,
        random_bytes: Callable[[int], bytes],
        now: float,
        wall_offset_s: float,
        limits: Limits | None = None,
    ) -> None:
        self.state = State.LOGIN_EXPECTED
        self.account: Account | None = None
        self.replica: RegisterSlave | None = None
        self.session = StatementSession(facts, connection_id, host=host)
        self._accounts = accounts
        self._random_bytes = random_bytes
        self._wall_offset_s = wall_offset_s
        self._limits = limits or Limits()
        self._input = PacketBuffer(self._limits.login_bytes)
        self._output = bytearray()
        self._sequence = 0
        self._attempt: _Attempt | None = None
        self._deadline: float | None = now + self._limits.login_wait_s
        self._scramble = self._new_scramble()
        self._send(
            greeting_payload(greeting_version(facts.version), connection_id, NATIVE_PLUGIN, self._scramble, OFFERED)
        )

    # --- what the shell calls -------------------------------------------------------------------------------------

    def receive(self, data: bytes | bytearray | memoryview, now: float) -> list[Event]:
        """Takes received bytes; returns what happened. A closed connection takes nothing."""
        if self.state is State.CLOSED:
            return []
        self._input.append(data)
        return self._work(now)

    def bytes_to_send(self) -> bytes:
        """What is to be written now; asked for again, nothing."""
        data = bytes(self._output)
        self._output.clear()
        return data

    def next_deadline(self) -> float | None:
        """When `pass_time` is due, on the clock of `now`."""
        return self._deadline

    def pass_time(self, now: float) -> list[Event]:
        """Ends a connection that let its deadline pass."""
        if self._deadline is None or now < self._deadline:
            return []
        waited = "for a login" if self.account is None else "for a command"
        return [self._break(PeerError(ErrorCode.ER_NET_READ_INTERRUPTED, f"Waited too long {waited}"))]

    def answer_kill(self, now: float, *, found: bool) -> list[Event]:
        """Answers `KillAsked`, and goes on with commands that came meanwhile."""
        self._become(Input.KILL_ANSWERED)
        if found:
            self._send(ok_payload())
        else:
            self._send(err_payload(ErrorCode.ER_NO_SUCH_THREAD, "Unknown thread id"))
        self._await_command(now)
        return self._work(now)

    def accept_dump(self) -> int:
        """The stream begins: returns the sequence number of its first packet."""
        self._become(Input.DUMP_ACCEPTED)
        return self._sequence

    def refuse_dump(self, error: AnsweredError) -> list[Event]:
        """An error instead of the stream."""
        self._become(Input.DUMP_REFUSED)
        return [self._end_with(error)]

    def end_dump(self, sequence: int, now: float) -> list[Event]:
        """EOF in the stream, as packet number `sequence`; then commands again."""
        self._become(Input.DUMP_ENDED)
        self._sequence = sequence
        self._send(eof_payload())
        self._await_command(now)
        return self._work(now)

    def fail_dump(self, sequence: int, error: AnsweredError) -> list[Event]:
        """An error in the stream, as packet number `sequence`. Only between two packets of the stream."""
        self._become(Input.DUMP_FAILED)
        self._sequence = sequence
        return [self._end_with(error)]

    # --- inside ---------------------------------------------------------------------------------------------------

    def _become(self, what: Input) -> None:
        self.state = step(self.state, what)
        if self.state is State.CLOSED:
            self._deadline = None
            self._input.clear()
        elif self.state not in (State.LOGIN_EXPECTED, State.TOKEN_EXPECTED, State.COMMAND_EXPECTED):
            self._deadline = None

    def _send(self, payload: bytes) -> None:
        self._output += frame_payload(payload, self._sequence)
        self._sequence = (self._sequence + packet_count(len(payload))) & 0xFF

    def _end_with(self, error: AnsweredError) -> Closed:
        self._send(err_payload(error.number, error.message))
        return Closed(error)

    def _break(self, error: PeerError) -> Closed:
        """They broke the rules. In the middle of a stream no place is sure to begin a packet: no ERR there."""
        says = self.state is not State.DUMPING
        self._become(Input.BROKEN)
        return self._end_with(error) if says else Closed(error)

    def _await_command(self, now: float) -> None:
        self._deadline = now + self._limits.command_wait_s

    def _work(self, now: float) -> list[Event]:
        events: list[Event] = []
        try:
            while self.state is not State.CLOSED and self.state is not State.ANSWER_OWED:
                in_login = self.state in (State.LOGIN_EXPECTED, State.TOKEN_EXPECTED)
                packet = self._input.next_packet(self._sequence if in_login else 0)
                if packet is None:
                    break
                self._sequence = (packet.sequence + 1) & 0xFF
                if self.state is State.LOGIN_EXPECTED:
                    self._take_login(packet.payload, now, events)
                elif self.state is State.TOKEN_EXPECTED:
                    self._take_token(packet.payload, now, events)
                elif self.state is State.COMMAND_EXPECTED:
                    self._await_command(now)
                    self._take_command(packet.payload, now, events)
                elif packet.payload == bytes((Command.COM_QUIT,)):
                    self._become(Input.QUIT)
                    events.append(Closed())
                else:
                    raise PeerError(ErrorCode.ER_UNKNOWN_COM_ERROR, "No command is taken while a dump goes on")
        except PacketTooLarge as error:
            events.append(self._break(PeerError(ErrorCode.ER_NET_PACKET_TOO_LARGE, f"Too large: {error}")))
        except OutOfOrder as error:
            events.append(self._break(PeerError(ErrorCode.ER_NET_PACKETS_OUT_OF_ORDER, f"Out of order: {error}")))
        except PeerError as error:
            events.append(self._break(error))
        return events

    def _new_scramble(self) -> bytes:
        return printable_scramble(self._random_bytes(SCRAMBLE_BYTES))

    # --- login ----------------------------------------------------------------------------------------------------

    def _take_login(self, payload: bytes, now: float, events: list[Event]) -> None:
        try:
            login = decode_login(payload, OFFERED)
        except Malformed as error:
            raise PeerError(ErrorCode.ER_HANDSHAKE_ERROR, f"Bad handshake: {error}") from error
        self.session.user = login.user
        account = self._accounts.get(login.user)
        # A client without plugins (MySQL 5.1) means the one it knows.
        if (login.plugin or NATIVE_PLUGIN) == NATIVE_PLUGIN:
            self._attempt = self._begin_attempt(login, account, self._scramble)
            self._respond(login.auth, now, events)
            return
        self._attempt = self._begin_attempt(login, account, self._new_scramble())
        authenticator = self._attempt.authenticator
        self._become(Input.SWITCH_SENT)
        self._send(auth_switch_payload(authenticator.plugin, authenticator.challenge()))

    def _begin_attempt(self, login: Login, account: Account | None, scramble: bytes) -> _Attempt:
        """Where a plugin is chosen, once accounts have more than one."""
        return _Attempt(login.user, account, NativePassword(account, scramble), login.attributes)

    def _take_token(self, payload: bytes, now: float, events: list[Event]) -> None:
        self._respond(payload, now, events)

    def _respond(self, data: bytes, now: float, events: list[Event]) -> None:
        attempt = self._attempt
        if attempt is None:  # pragma: no cover - the table makes an attempt before a token
            raise IllegalInput("token without a login")
        result, more = attempt.authenticator.respond(data)
        if result is AuthResult.CONTINUE:
            if self.state is State.LOGIN_EXPECTED:
                self._become(Input.SWITCH_SENT)
            self._send(auth_more_payload(more))
            return
        self._attempt = None
        if result is AuthResult.REFUSED or attempt.account is None:
            self._become(Input.LOGIN_REFUSED)
            events.append(LoginRefused(_shown(attempt.user)))
            used = "YES" if data else "NO"
            text = f"Access denied for user '{_shown(attempt.user)}'@'{self.session.host}' (using password: {used})"
            events.append(self._end_with(PeerError(ErrorCode.ER_ACCESS_DENIED_ERROR, text)))
            return
        self._become(Input.LOGIN_ACCEPTED)
        self.account = attempt.account
        self._input.limit_bytes = self._limits.command_bytes
        self._send(ok_payload())
        self._await_command(now)
        events.append(LoggedIn(attempt.account, attempt.attributes))

    # --- commands -------------------------------------------------------------------------------------------------

    def _take_command(self, payload: bytes, now: float, events: list[Event]) -> None:
        code, body = (payload[0] if payload else -1), payload[1:]
        if code == Command.COM_QUIT:
            self._become(Input.QUIT)
            events.append(Closed())
        elif code == Command.COM_QUERY:
            self._answer_query(body, now, events)
        elif code in (Command.COM_PING, Command.COM_INIT_DB):
            self._answer([ok_payload()])
        elif code == Command.COM_SET_OPTION:
            self._answer([eof_payload()])
        elif code == Command.COM_STATISTICS:
            # Plain text in a packet of its own kind, without a header byte. Source: MySQL 9.x `sql_parse.cc`.
            self._answer([b"binlog-relay: a source for replicas"])
        elif code == Command.COM_REGISTER_SLAVE:
            self._register(body, events)
        elif code == Command.COM_BINLOG_DUMP:
            self._ask_dump(body, events)
        elif code == Command.COM_BINLOG_DUMP_GTID:
            # 1236, not 1047: a replica with auto-position would ask again for ever.
            self._become(Input.DUMP_ASKED)
            self._become(Input.DUMP_REFUSED)
            text = "binlog-relay serves by file and position: use SOURCE_AUTO_POSITION=0 (MASTER_AUTO_POSITION=0)"
            error = PeerError(ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG, text)
            events.append(self._end_with(error))
        else:
            self._refuse(f"command 0x{code & 0xFF:02x}", ErrorCode.ER_UNKNOWN_COM_ERROR, "Unknown command", events)

    def _answer(self, payloads: list[bytes]) -> None:
        self._become(Input.COMMAND_ANSWERED)
        for payload in payloads:
            self._send(payload)

    def _refuse(self, what: str, number: int, message: str, events: list[Event]) -> None:
        self._answer([err_payload(number, message)])
        events.append(StatementFailed(what, number, message))

    def _answer_query(self, body: bytes, now: float, events: list[Event]) -> None:
        text = body.decode("utf-8", "replace")
        try:
            answer = answer_statement(text, self.session, now + self._wall_offset_s)
        except StatementRefused as error:
            self._refuse(_shown(text, 200), error.number, error.message, events)
            return
        if isinstance(answer, KillConnection):
            self._become(Input.KILL_ASKED)
            events.append(KillAsked(answer.connection_id))
        else:
            self._answer(result_payloads(answer) if isinstance(answer, Rows) else [ok_payload()])

    def _register(self, body: bytes, events: list[Event]) -> None:
        try:
            replica = decode_register_slave(body)
        except Malformed as error:
            self._refuse("COM_REGISTER_SLAVE", ErrorCode.ER_MALFORMED_PACKET, f"COM_REGISTER_SLAVE: {error}", events)
            return
        self.replica = replica
        self._answer([ok_payload()])
        events.append(Registered(replica))

    def _ask_dump(self, body: bytes, events: list[Event]) -> None:
        try:
            request = decode_binlog_dump(body)
        except Malformed as error:
            self._refuse("COM_BINLOG_DUMP", ErrorCode.ER_MALFORMED_PACKET, f"COM_BINLOG_DUMP: {error}", events)
            return
        self._become(Input.DUMP_ASKED)
        events.append(DumpAsked(request))


def _shown(text: str, limit_bytes: int = _MAX_SHOWN_BYTES) -> str:
    """What a peer sent, safe to log and to send back: bounded, printable."""
    return cut_text("".join(c if c.isprintable() else "?" for c in text[:limit_bytes]), limit_bytes).decode()
