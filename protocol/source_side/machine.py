"""One replica's connection as the source sees it: login, statements, dump. No sockets and no clock in here.

    connection = greeting [ TLS request, TLS handshake ] login [ switch token ] { more token } ( session | ERR )
    session    = OK { command answer } [ dump ]
    dump       = COM_BINLOG_DUMP ( ERR | { event packet } [ EOF { command answer } [ dump ] | ERR ] )
    With semi-sync, acknowledgements come from the other side while a dump goes on.

The event packets of a dump are not made here: the shell writes them, framed by the kernel, from `accept_dump()` on, and
tells by `end_dump` or `fail_dump` which packet number comes next.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.authenticator import SCRAMBLE_BYTES, Channel, Step, Work, printable_scramble
from protocol.auth.login_exchange import Accepted, LoginExchange, More, Refusal, Refused, Reply, Switch
from protocol.capabilities import OFFERED, Capability
from protocol.commands import BinlogDump, Command, RegisterSlave, decode_binlog_dump, decode_register_slave
from protocol.errors import AnsweredError, ErrorCode, Malformed, PeerError, StatementRefused
from protocol.framing import OutOfOrder, PacketBuffer, PacketTooLarge, frame_payload, packet_count
from protocol.gtid.dump_request import BinlogDumpGtid, decode_binlog_dump_gtid
from protocol.handshake import asks_for_tls, decode_login, greeting_payload, greeting_version
from protocol.packets import auth_more_payload, auth_switch_payload, cut_text, eof_payload, err_payload, ok_payload
from protocol.pieces import Pieces
from protocol.position import Position
from protocol.resultset import Rows, result_payloads
from protocol.semisync import MAGIC, MAX_ACKNOWLEDGEMENT_BYTES, decode_acknowledgement
from protocol.statements import (
    Done,
    EncodedRows,
    GivenAnswer,
    Notice,
    Request,
    SourceFacts,
    StatementSession,
    StatisticsText,
    answer_statement,
)
from protocol.statements.client_commands import refused_command
from protocol.statements.databases import choose_database
from protocol.statements.refresh import refresh_request
from protocol.statements.requests import KillConnection, ShowProcesslist, ShowStatistics
from protocol.statements.session.secrets import without_secrets
from protocol.statements.table import allowed

# Before the login anybody may send; a login with all its attributes stays far below (attributes alone are capped at
# 64 KiB by real servers).
LOGIN_LIMIT_BYTES: Final = 65536
COMMAND_LIMIT_BYTES: Final = 1 << 20
# A replica's set of GTIDs: 16 MB for a million intervals.
GTID_DUMP_LIMIT_BYTES: Final = 64 << 20
_MAX_SHOWN_BYTES: Final = 64
_MAX_LOGGED_CHARACTERS: Final = 200
_CONNECTION_ID_BYTES: Final = 4
_SET_NAMES: Final = re.compile(rb"SET NAMES \w+\Z")
# MULTI_STATEMENTS on and off: neither is spoken here, as neither is by a client that asks for one statement at a time.
_SET_OPTIONS: Final = (b"\0\0", b"\1\0")
# Of what came before an answer was known; no client sends ahead this much.
_MAX_WAITING_BYTES: Final = 65536
# What is done at once of commands that were sent ahead: the event loop has others to serve, and answers take memory.
_TURN_COMMANDS: Final = 16
_TURN_INPUT_BYTES: Final = 16384
_TURN_OUTPUT_BYTES: Final = 65536


class State(Enum):
    """Named for what may come next."""

    LOGIN_EXPECTED = "login expected"
    TLS_EXPECTED = "TLS expected"
    TLS_LOGIN_EXPECTED = "login over TLS expected"
    TOKEN_EXPECTED = "token expected"
    CHECK_OWED = "check owed"
    VERDICT_HELD = "verdict held"
    COMMAND_EXPECTED = "command expected"
    ANSWER_OWED = "answer owed"
    DUMP_REQUESTED = "dump requested"
    DUMPING = "dumping"
    CLOSED = "closed"


class Input(Enum):
    """What can happen to a connection."""

    TLS_ASKED = "TLS asked"
    TLS_ESTABLISHED = "TLS established"
    SWITCH_SENT = "switch sent"
    MORE_SENT = "more sent"
    CHECK_ASKED = "check asked"
    VERDICT_REACHED = "verdict reached"
    LOGIN_ACCEPTED = "login accepted"
    LOGIN_REFUSED = "login refused"
    COMMAND_ANSWERED = "command answered"
    REQUEST_MADE = "request made"
    REQUEST_ANSWERED = "request answered"
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
    (_S.LOGIN_EXPECTED, _I.TLS_ASKED): _S.TLS_EXPECTED,
    (_S.TLS_EXPECTED, _I.TLS_ESTABLISHED): _S.TLS_LOGIN_EXPECTED,
    (_S.TLS_EXPECTED, _I.BROKEN): _S.CLOSED,
    # "If the client's plugin differs: AuthSwitchRequest": once, so a client cannot play for time.
    **{
        (login, what): following
        for login in (_S.LOGIN_EXPECTED, _S.TLS_LOGIN_EXPECTED)
        for what, following in (
            (_I.SWITCH_SENT, _S.TOKEN_EXPECTED),
            (_I.MORE_SENT, _S.TOKEN_EXPECTED),
            (_I.VERDICT_REACHED, _S.VERDICT_HELD),
            (_I.BROKEN, _S.CLOSED),
        )
    },
    (_S.TOKEN_EXPECTED, _I.MORE_SENT): _S.TOKEN_EXPECTED,
    (_S.TOKEN_EXPECTED, _I.CHECK_ASKED): _S.CHECK_OWED,
    (_S.TOKEN_EXPECTED, _I.VERDICT_REACHED): _S.VERDICT_HELD,
    (_S.TOKEN_EXPECTED, _I.BROKEN): _S.CLOSED,
    (_S.CHECK_OWED, _I.MORE_SENT): _S.TOKEN_EXPECTED,
    (_S.CHECK_OWED, _I.VERDICT_REACHED): _S.VERDICT_HELD,
    (_S.CHECK_OWED, _I.BROKEN): _S.CLOSED,
    # Every verdict passes through here: the answer to a guess and the answer to a password wait equally long.
    (_S.VERDICT_HELD, _I.LOGIN_ACCEPTED): _S.COMMAND_EXPECTED,
    # A refusal is a state, not only a packet: nothing is answered after it.
    (_S.VERDICT_HELD, _I.LOGIN_REFUSED): _S.CLOSED,
    (_S.VERDICT_HELD, _I.BROKEN): _S.CLOSED,
    (_S.COMMAND_EXPECTED, _I.COMMAND_ANSWERED): _S.COMMAND_EXPECTED,
    (_S.COMMAND_EXPECTED, _I.REQUEST_MADE): _S.ANSWER_OWED,
    (_S.COMMAND_EXPECTED, _I.DUMP_ASKED): _S.DUMP_REQUESTED,
    (_S.COMMAND_EXPECTED, _I.QUIT): _S.CLOSED,
    (_S.COMMAND_EXPECTED, _I.BROKEN): _S.CLOSED,
    (_S.ANSWER_OWED, _I.REQUEST_ANSWERED): _S.COMMAND_EXPECTED,
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
_IN_LOGIN: Final = frozenset({_S.LOGIN_EXPECTED, _S.TLS_LOGIN_EXPECTED, _S.TOKEN_EXPECTED})
# Nothing of the peer is looked at here.
_NOT_READING: Final = frozenset({_S.TLS_EXPECTED, _S.CHECK_OWED, _S.VERDICT_HELD, _S.ANSWER_OWED, _S.CLOSED})
_WITH_DEADLINE: Final = _IN_LOGIN | {_S.TLS_EXPECTED, _S.CHECK_OWED, _S.VERDICT_HELD, _S.COMMAND_EXPECTED}


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
    plugin: str
    channel: Channel


@dataclass(frozen=True, slots=True)
class LoginRefused:
    """The login was refused. `reason` is for the log: which it was is nobody's business outside."""

    user: str
    reason: str


@dataclass(frozen=True, slots=True)
class TlsAsked:
    """The peer wants TLS: answer with `tls_established` or `tls_failed`. `received`: bytes that belong to it already."""

    received: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CheckAsked:
    """Run `work` in a thread; answer with `answer_check`."""

    work: Work = field(repr=False)


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
class StatementAsked:
    """What only the running relay can answer. Answer it with `answer`; commands that follow wait until then."""

    request: Request
    account: Account


@dataclass(frozen=True, slots=True)
class DumpAsked:
    """Answer it with `accept_dump`, `refuse_dump` or `drop_dump`."""

    request: BinlogDump | BinlogDumpGtid


@dataclass(frozen=True, slots=True)
class AckReceived:
    """A semi-sync replica says that it has stored everything up to there. What cannot be true: `break_off`."""

    position: Position


@dataclass(frozen=True, slots=True)
class Closed:
    """The last event: write what is left of `bytes_to_send`, then close. `error`: None when the peer said goodbye."""

    error: AnsweredError | None = None


Event = (
    TlsAsked
    | CheckAsked
    | LoggedIn
    | LoginRefused
    | StatementFailed
    | Registered
    | StatementAsked
    | DumpAsked
    | AckReceived
    | Closed
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one connection. Times in seconds; `command_wait_s` is the server's wait_timeout."""

    login_bytes: int = LOGIN_LIMIT_BYTES
    command_bytes: int = COMMAND_LIMIT_BYTES
    gtid_dump_bytes: int = GTID_DUMP_LIMIT_BYTES
    login_wait_s: float = 10.0
    command_wait_s: float = 28800.0


@dataclass(frozen=True, slots=True)
class Ruling:
    """What becomes of a verdict: how long its answer is held, and what is answered instead of it."""

    hold_s: float = 0.0
    instead: AnsweredError | None = None


class SourceSide:
    """The source's side of one connection. It speaks first: `bytes_to_send()` has the greeting from the start.

    `host`: the peer's address. `random_bytes(n)`: unpredictable, for the scramble. `now`: any monotonic clock, seconds;
    `wall_offset_s`: what to add to it for seconds since 1970. `rule(accepted)`: asked once a verdict is reached.
    """

    def __init__(
        self,
        *,
        connection_id: int,
        facts: SourceFacts,
        accounts: Accounts,
        host: str,
        random_bytes: Callable[[int], bytes],
        now: float,
        wall_offset_s: float,
        limits: Limits | None = None,
        offer_tls: bool = False,
        rule: Callable[[bool], Ruling] | None = None,
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
        self._asked = ""
        self.commands = self.statements = 0
        """How many came; statements are the COM_QUERY among the commands."""
        self.has_spoken = False
        """Whether the client said anything but a dump request and `SET NAMES`, which libraries send by themselves."""
        self._offered = OFFERED | Capability.SSL if offer_tls else OFFERED
        self.channel = Channel()
        self._login: LoginExchange | None = None
        self._verdict: Accepted | Refused | None = None
        self._instead: AnsweredError | None = None
        self._rule = rule
        self._takes_acks = False
        self._turn_is_over = False
        self._deadline: float | None = now + self._limits.login_wait_s
        self._greeting_plugin = accounts.greeting_plugin
        self._scramble = printable_scramble(random_bytes(SCRAMBLE_BYTES))
        version = greeting_version(facts.version)
        self._send(greeting_payload(version, connection_id, self._greeting_plugin, self._scramble, self._offered))

    # --- what the shell calls -------------------------------------------------------------------------------------

    def receive(self, data: bytes | bytearray | memoryview, now: float) -> list[Event]:
        """Takes received bytes; returns what happened. A closed connection takes nothing."""
        if self.state is State.CLOSED:
            return []
        if self.state is State.TLS_EXPECTED:
            raise IllegalInput("bytes that belong to TLS")
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
        if self.state is State.VERDICT_HELD:
            return [*self._give_verdict(now), *self._work(now)]
        waited = "for a login" if self.account is None else "for a command"
        return [self._break(PeerError(ErrorCode.ER_NET_READ_INTERRUPTED, f"Waited too long {waited}"))]

    def tls_established(self, channel: Channel) -> None:
        """Answers `TlsAsked`: from now on `receive` takes, and `bytes_to_send` gives, what is inside of TLS."""
        self._become(Input.TLS_ESTABLISHED)
        self.channel = channel

    def tls_failed(self, reason: str) -> list[Event]:
        """Answers `TlsAsked`, or ends a connection whose TLS broke later: nothing more can be said to the peer."""
        if self.state is State.CLOSED:
            return []
        self._become(Input.BROKEN)
        return [Closed(PeerError(ErrorCode.ER_HANDSHAKE_ERROR, f"TLS: {reason}"))]

    def answer_check(self, step: Step, now: float) -> list[Event]:
        """Answers `CheckAsked`. A connection that was closed meanwhile takes it in silence."""
        if self.state is State.CLOSED or self._login is None:
            return []
        events: list[Event] = []
        self._reply(self._login.finish(step), now, events)
        return [*events, *self._work(now)]

    def answer(self, answer: GivenAnswer | AnsweredError, now: float) -> list[Event]:
        """Answers `StatementAsked`, and goes on with commands that came meanwhile."""
        self._become(Input.REQUEST_ANSWERED)
        events: list[Event] = []
        if isinstance(answer, Done):
            self.session.notices = answer.notices
        if isinstance(answer, AnsweredError):
            self._leave_error(answer)
            events.append(StatementFailed(self._asked, answer.number, answer.message))
        for payload in _answer_payloads(answer, self.session):
            self._send(payload)
        self._await_command(now)
        return events + self._work(now)

    @property
    def holds_unread_commands(self) -> bool:
        """Whether so much came behind what is not answered yet that no more should be read."""
        waits = self.state in _NOT_READING or self.has_more_to_do
        return waits and len(self._input) > _MAX_WAITING_BYTES

    @property
    def has_more_to_do(self) -> bool:
        """Whether commands were left for later: `go_on` takes them, once what `bytes_to_send` gave is on its way."""
        return self._turn_is_over and self.state is State.COMMAND_EXPECTED

    def go_on(self, now: float) -> list[Event]:
        """Takes some more of the commands that were sent ahead."""
        return self._work(now) if self.has_more_to_do else []

    def accept_dump(self, *, takes_acks: bool = False) -> int:
        """The stream begins: returns the sequence number of its first packet. takes_acks: the replica sends some."""
        self._become(Input.DUMP_ACCEPTED)
        self.has_spoken = True
        self._takes_acks = takes_acks
        self._input.wide_limits = {}
        if takes_acks:
            self._input.limit_bytes = MAX_ACKNOWLEDGEMENT_BYTES
        return self._sequence

    def break_off(self, error: PeerError) -> Closed:
        """Ends a dump whose replica broke the rules: without a word, no place in the stream is sure to begin a packet.

        It may have ended meanwhile: a goodbye can come right behind what broke the rules.
        """
        return Closed(error) if self.state is State.CLOSED else self._break(error)

    def refuse_dump(self, error: AnsweredError) -> list[Event]:
        """An error instead of the stream."""
        self._become(Input.DUMP_REFUSED)
        return [self._end_with(error)]

    def drop_dump(self, error: AnsweredError) -> list[Event]:
        """The connection ends, and the peer is not told why."""
        self._become(Input.DUMP_REFUSED)
        return [Closed(error)]

    def end_dump(self, sequence: int, now: float) -> list[Event]:
        """EOF in the stream, as packet number `sequence`; then commands again."""
        self._become(Input.DUMP_ENDED)
        self._takes_acks = False
        self._take_commands()
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
            self._login = None
        elif self.state not in _WITH_DEADLINE:
            self._deadline = None

    def _send(self, payload: bytes) -> None:
        self._output += frame_payload(payload, self._sequence)
        self._sequence = (self._sequence + packet_count(len(payload))) & 0xFF

    def _end_with(self, error: AnsweredError) -> Closed:
        self._send(err_payload(error.number, error.message))
        return Closed(error)

    def _break(self, error: PeerError) -> Closed:
        """They broke the rules. In the middle of a stream no place is sure to begin a packet: no ERR there. Nor where
        the peer waits for TLS."""
        says = self.state not in (State.DUMPING, State.TLS_EXPECTED)
        self._become(Input.BROKEN)
        return self._end_with(error) if says else Closed(error)

    def _take_commands(self) -> None:
        self._input.limit_bytes = self._limits.command_bytes
        self._input.wide_limits = {Command.COM_BINLOG_DUMP_GTID: self._limits.gtid_dump_bytes}

    def _await_command(self, now: float) -> None:
        self._deadline = now + self._limits.command_wait_s

    def _work(self, now: float) -> list[Event]:
        events: list[Event] = []
        commands_before, waiting_before = self.commands, len(self._input)
        self._turn_is_over = False
        try:
            while self.state not in _NOT_READING:
                if self.state is State.COMMAND_EXPECTED and (
                    self.commands - commands_before >= _TURN_COMMANDS
                    or waiting_before - len(self._input) >= _TURN_INPUT_BYTES
                    or len(self._output) >= _TURN_OUTPUT_BYTES
                ):
                    self._turn_is_over = len(self._input) > 0
                    break
                packet = self._input.next_packet(self._sequence if self.state in _IN_LOGIN else 0)
                if packet is None:
                    break
                self._sequence = (packet.sequence + 1) & 0xFF
                if self.state in (State.LOGIN_EXPECTED, State.TLS_LOGIN_EXPECTED):
                    self._take_login(bytes(packet.payload), now, events)
                elif self.state is State.TOKEN_EXPECTED:
                    self._take_token(bytes(packet.payload), now, events)
                elif self.state is State.COMMAND_EXPECTED:
                    self._await_command(now)
                    self._take_command(packet.payload, now, events)
                elif packet.payload == bytes((Command.COM_QUIT,)):
                    self._become(Input.QUIT)
                    events.append(Closed())
                elif self._takes_acks and packet.payload[:1] == bytes((MAGIC,)):
                    events.append(_decoded_ack(bytes(packet.payload)))
                else:
                    raise PeerError(ErrorCode.ER_UNKNOWN_COM_ERROR, "No command is taken while a dump goes on")
        except PacketTooLarge as error:
            # Clients look at the number before they look at the error.
            self._sequence = (error.sequence + 1) & 0xFF
            events.append(self._break(PeerError(ErrorCode.ER_NET_PACKET_TOO_LARGE, f"Too large: {error}")))
        except OutOfOrder as error:
            self._sequence = (error.sequence + 1) & 0xFF
            events.append(self._break(PeerError(ErrorCode.ER_NET_PACKETS_OUT_OF_ORDER, f"Out of order: {error}")))
        except PeerError as error:
            events.append(self._break(error))
        return events

    # --- login ----------------------------------------------------------------------------------------------------

    def _take_login(self, payload: bytes, now: float, events: list[Event]) -> None:
        if self.state is State.LOGIN_EXPECTED and self._offered & Capability.SSL and asks_for_tls(payload):
            self._become(Input.TLS_ASKED)
            # What came behind the request came in clear: it is TLS, or nothing.
            events.append(TlsAsked(self._input.take()))
            return
        try:
            login = decode_login(payload, self._offered)
        except Malformed as error:
            raise PeerError(ErrorCode.ER_HANDSHAKE_ERROR, f"Bad handshake: {error}") from error
        self.session.log_in(login.user, login.database, login.charset)
        self._login = LoginExchange(
            login,
            self._accounts,
            address=self.session.host,
            greeting_plugin=self._greeting_plugin,
            scramble=self._scramble,
            channel=self.channel,
            random_bytes=self._random_bytes,
        )
        self._reply(self._login.begin(), now, events)

    def _take_token(self, payload: bytes, now: float, events: list[Event]) -> None:
        if self._login is None:  # pragma: no cover - the table has a login before a token
            raise IllegalInput("token without a login")
        self._reply(self._login.respond(payload), now, events)

    def _reply(self, reply: Reply, now: float, events: list[Event]) -> None:
        """Does what the login's exchange says."""
        if isinstance(reply, Switch):
            self._become(Input.SWITCH_SENT)
            self._send(auth_switch_payload(reply.plugin, reply.challenge))
        elif isinstance(reply, More):
            self._become(Input.MORE_SENT)
            self._send(auth_more_payload(reply.data))
        elif isinstance(reply, Accepted | Refused):
            self._become(Input.VERDICT_REACHED)
            ruling = self._rule(isinstance(reply, Accepted)) if self._rule is not None else Ruling()
            self._verdict, self._instead = reply, ruling.instead
            if ruling.hold_s > 0:
                self._deadline = now + ruling.hold_s
            else:
                events.extend(self._give_verdict(now))
        else:
            self._become(Input.CHECK_ASKED)
            events.append(CheckAsked(reply))

    def _give_verdict(self, now: float) -> list[Event]:
        verdict, login = self._verdict, self._login
        if verdict is None or login is None:  # pragma: no cover - the table has a verdict before it is given
            raise IllegalInput("no verdict")
        error, self._verdict, self._login = self._instead, None, None
        if error is None and isinstance(verdict, Accepted):
            if verdict.data:
                self._send(auth_more_payload(verdict.data))
            self._become(Input.LOGIN_ACCEPTED)
            self.account = verdict.account
            self.session.is_admin = verdict.account.admin
            self.session.attributes = login.attributes
            self.session.account_host = verdict.account.host.text
            self._take_commands()
            self._send(ok_payload(text=login.proof()))
            self._await_command(now)
            return [LoggedIn(verdict.account, login.attributes, login.plugin, self.channel)]
        user = _shown(login.user)
        if isinstance(verdict, Refused):
            reason = verdict.reason.value
            error = error or self._access_denied(verdict, user)
        else:
            reason = "the address is blocked"
        self._become(Input.LOGIN_REFUSED)
        return [LoginRefused(user, reason), *([self._end_with(error)] if error is not None else [])]

    def _access_denied(self, verdict: Refused, user: str) -> AnsweredError:
        if verdict.reason is Refusal.OLD_CLIENT:
            text = (
                "Client does not support authentication protocol requested by server; consider upgrading MySQL client"
            )
            return PeerError(ErrorCode.ER_NOT_SUPPORTED_AUTH_MODE, text)
        used = "YES" if verdict.password_used else "NO"
        text = f"Access denied for user '{user}'@'{self.session.host}' (using password: {used})"
        return PeerError(ErrorCode.ER_ACCESS_DENIED_ERROR, text)

    # --- commands -------------------------------------------------------------------------------------------------

    def _take_command(self, payload: bytes | Pieces, now: float, events: list[Event]) -> None:
        code = payload[0] if payload else -1
        self.commands += 1
        if code == Command.COM_BINLOG_DUMP_GTID:
            self._ask_gtid_dump(payload[1:], events)
            return
        body = bytes(payload[1:])
        self.statements += code == Command.COM_QUERY
        if code != Command.COM_BINLOG_DUMP and not (code == Command.COM_QUERY and _SET_NAMES.match(body)):
            self.has_spoken = True
        if code == Command.COM_QUIT:
            self._become(Input.QUIT)
            events.append(Closed())
        elif code == Command.COM_QUERY:
            self._answer_query(body, now, events)
        elif code == Command.COM_PING:
            self._answer([ok_payload(self.session.status)])
        elif code == Command.COM_STATISTICS:
            self._ask("COM_STATISTICS", ShowStatistics(), events)
        elif code == Command.COM_REGISTER_SLAVE:
            self._register(body, events)
        elif code == Command.COM_BINLOG_DUMP:
            self._ask_dump(body, events)
        else:
            self._take_rarer_command(code, body, events)

    def _take_rarer_command(self, code: int, body: bytes, events: list[Event]) -> None:
        """What tools send that are no replicas, and what no relay can do: with the error that a server has for it."""
        session = self.session
        try:
            if code == Command.COM_INIT_DB:
                choose_database(session.encoding.decode(body), session)
                self._answer([ok_payload(session.status)])
            elif code == Command.COM_RESET_CONNECTION:
                session.reset()
                self._answer([ok_payload(session.status)])
            elif code == Command.COM_SET_OPTION and body in _SET_OPTIONS:
                self._answer([eof_payload(session.status)])
            elif code == Command.COM_PROCESS_INFO:
                self._ask("COM_PROCESS_INFO", ShowProcesslist(), events)
            elif code == Command.COM_PROCESS_KILL and len(body) == _CONNECTION_ID_BYTES:
                self._ask("COM_PROCESS_KILL", KillConnection(int.from_bytes(body, "little")), events)
            elif code == Command.COM_REFRESH:
                self._refresh(body, events)
            elif code in (Command.COM_STMT_CLOSE, Command.COM_STMT_SEND_LONG_DATA):
                self._answer([])  # as the protocol has it: no answer, also to a statement that was never prepared
            elif code == Command.COM_DEBUG and session.is_admin:
                self._answer([eof_payload(session.status)])
            else:
                raise refused_command(code, body, session)
        except StatementRefused as error:
            self._refuse(_command_name(code), error.number, error.message, events)

    def _refresh(self, body: bytes, events: list[Event]) -> None:
        request = refresh_request(body)
        if request is None:
            self._answer([ok_payload(self.session.status)])
            return
        allowed(request, self.session)
        self._ask("COM_REFRESH", request, events)

    def _answer(self, payloads: list[bytes]) -> None:
        self._become(Input.COMMAND_ANSWERED)
        for payload in payloads:
            self._send(payload)

    def _refuse(self, what: str, number: int, message: str, events: list[Event]) -> None:
        self._answer([err_payload(number, message)])
        events.append(StatementFailed(what, number, message))

    def _answer_query(self, body: bytes, now: float, events: list[Event]) -> None:
        text = self.session.encoding.decode(body)
        try:
            answer = answer_statement(text, self.session, now + self._wall_offset_s)
        except StatementRefused as error:
            self._leave_error(error)
            self._refuse(_loggable(text), error.number, error.message, events)
            return
        if isinstance(answer, Request):
            self._ask(_loggable(text), answer, events)
        else:
            self._answer(_answer_payloads(answer, self.session))

    def _leave_error(self, error: AnsweredError) -> None:
        """For SHOW WARNINGS."""
        self.session.notices = (Notice("Error", error.number, error.message),)

    def _ask(self, what: str, request: Request, events: list[Event]) -> None:
        if self.account is None:  # pragma: no cover - the table lets nobody ask before the login
            raise IllegalInput("statement without a login")
        self._become(Input.REQUEST_MADE)
        self._asked = what
        events.append(StatementAsked(request, self.account))

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

    def _ask_gtid_dump(self, body: bytes | Pieces, events: list[Event]) -> None:
        try:
            request = decode_binlog_dump_gtid(body)
        except Malformed:
            # As MySQL 5.6 and 9.7: the connection ends.
            raise PeerError(ErrorCode.ER_MALFORMED_PACKET, "Malformed communication packet.") from None
        self._become(Input.DUMP_ASKED)
        events.append(DumpAsked(request))


def _decoded_ack(payload: bytes) -> AckReceived:
    try:
        return AckReceived(decode_acknowledgement(payload))
    except Malformed as error:
        raise PeerError(ErrorCode.ER_MALFORMED_PACKET, f"Bad acknowledgement: {error}") from error


def _answer_payloads(answer: GivenAnswer | AnsweredError, session: StatementSession) -> list[bytes]:
    if isinstance(answer, Rows):
        return result_payloads(answer, session.encoding, session.status)
    if isinstance(answer, EncodedRows):
        return list(answer.payloads)
    if isinstance(answer, StatisticsText):
        # Plain text in a packet of its own kind, without a header byte. Source: MySQL 9.x `sql_parse.cc`.
        return [answer.text.encode()]
    if isinstance(answer, AnsweredError):
        return [err_payload(answer.number, answer.message)]
    return [ok_payload(session.status, warnings=len(answer.notices))]


def _loggable(text: str) -> str:
    """A statement for the log: its beginning, without secrets."""
    return _shown(without_secrets(text), _MAX_LOGGED_CHARACTERS)


def _command_name(code: int) -> str:
    return Command(code).name if code in set(Command) else f"command 0x{code & 0xFF:02x}"


def _shown(text: str, limit_bytes: int = _MAX_SHOWN_BYTES) -> str:
    """What a peer sent, safe to log and to send back: bounded, printable."""
    return cut_text("".join(c if c.isprintable() else "?" for c in text[:limit_bytes]), limit_bytes).decode()
