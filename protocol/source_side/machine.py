"""One replica's connection on the source's side: login, statements, dump. It uses no sockets and no clock.

Its states, and the grammar of a conversation, are in `connection_states`.

The event packets of a dump are not made here: the shell writes them, framed by the kernel, from `accept_dump()` on, and reports by
`end_dump` or `fail_dump` which packet number comes next.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from protocol.auth.account import Account
from protocol.auth.authenticator import SCRAMBLE_BYTES, Channel, Step, printable_scramble
from protocol.auth.login_exchange import Accepted, LoginExchange, More, Refusal, Refused, Reply, Switch
from protocol.capabilities import OFFERED, Capability
from protocol.commands import Command, RegisterSlave, decode_binlog_dump, decode_register_slave
from protocol.errors import AnsweredError, ErrorCode, Malformed, PeerError, StatementRefused
from protocol.framing import OutOfOrder, PacketBuffer, PacketTooLarge, frame_payload, packet_count
from protocol.gtid.dump_request import decode_binlog_dump_gtid
from protocol.handshake import asks_for_tls, decode_login, greeting_payload, greeting_version
from protocol.packets import auth_more_payload, auth_switch_payload, eof_payload, err_payload, ok_payload
from protocol.pieces import Pieces
from protocol.printable import printable
from protocol.resultset import Rows, result_payloads
from protocol.semisync import MAGIC, MAX_ACKNOWLEDGEMENT_BYTES, decode_acknowledgement
from protocol.source_side.connection_events import (
    AckReceived,
    CheckRequested,
    Closed,
    DumpRequested,
    Event,
    LoggedIn,
    LoginRefused,
    Registered,
    StatementFailed,
    StatementRequested,
    TlsRequested,
)
from protocol.source_side.connection_states import IN_LOGIN, WITH_DEADLINE, IllegalInput, Input, State, step
from protocol.source_side.connection_terms import Limits, LoginTerms, Ruling, TurnTime
from protocol.source_side.statement_apart import AnswerApart, StatementApart
from protocol.statements import (
    Done,
    EncodedRows,
    GivenAnswer,
    Notice,
    Request,
    SourceFacts,
    StatementSession,
    StatisticsText,
    TooMuchForTheLoop,
    answer_statement,
)
from protocol.statements.answers import FIRST_OF_ANSWER
from protocol.statements.client_commands import refused_command
from protocol.statements.databases import MOST_NAME_BYTES, choose_database
from protocol.statements.expression.prepared import PreparedStatements
from protocol.statements.expression.tokens import check_size
from protocol.statements.refresh import refresh_request
from protocol.statements.requests import (
    KillConnection,
    LockAction,
    LockCall,
    ShowProcesslist,
    ShowStatistics,
    UseLocks,
)
from protocol.statements.session.secrets import without_secrets
from protocol.statements.table import allowed

_MAX_SHOWN_BYTES: Final = 64
_MAX_LOGGED_CHARACTERS: Final = 200
_CONNECTION_ID_BYTES: Final = 4
_SET_NAMES: Final = re.compile(rb"SET NAMES \w+\Z")
# MULTI_STATEMENTS on and off: both are accepted without effect, as for a client that sends one statement at a time.
_SET_OPTIONS: Final = (b"\0\0", b"\1\0")
# The limit of what came before an answer was known; no client sends ahead this much.
_MAX_WAITING_BYTES: Final = 65536
# The number of commands sent ahead that are answered at once: the event loop has others to serve, and answers take memory.
_TURN_COMMANDS: Final = 16
_TURN_INPUT_BYTES: Final = 16384
_TURN_OUTPUT_BYTES: Final = 65536
# How much more memory a packet's content takes than the packet: characters of four bytes, a dictionary of short names.
_WHEN_DECODED: Final = 4


class SourceSide:
    """The source's side of one connection. It speaks first: `bytes_to_send()` returns the greeting from the start.

    `host` is the peer's address. `now` is any monotonic clock in seconds; `wall_offset_s` is added to it for seconds since 1970.
    """

    def __init__(
        self,
        connection_id: int,
        facts: SourceFacts,
        login: LoginTerms,
        *,
        host: str,
        now: float,
        wall_offset_s: float,
        limits: Limits | None = None,
        turns: TurnTime | None = None,
    ) -> None:
        self.state = State.LOGIN_EXPECTED
        self.account: Account | None = None
        self.replica: RegisterSlave | None = None
        self.session = StatementSession(facts, connection_id, host=host)
        self._login_terms = login
        self._wall_offset_s = wall_offset_s
        self._limits = limits or Limits()
        self._turns = turns or TurnTime()
        self._input = PacketBuffer(self._limits.login_bytes)
        self._output = bytearray()
        self._framed = b""
        """The part of the unsent bytes that comes before `_output`."""
        self._sequence = 0
        self._asked = ""
        self._login_bytes = self._command_bytes = 0
        """The sizes of its login packet and of its newest command."""
        self._apart: StatementApart | None = None
        """The request, if it is a statement that is answered in a thread."""
        self._has_used_locks = False
        self._prepared = PreparedStatements()
        self.commands = self.statements = 0
        """The number of commands that came, and of the COM_QUERY among them."""
        self.has_spoken = False
        """True if the client sent anything but a dump request and `SET NAMES`, which libraries send by themselves."""
        self._offered = OFFERED | Capability.SSL if login.offer_tls else OFFERED
        self.channel = Channel()
        self._login: LoginExchange | None = None
        self._verdict: Accepted | Refused | None = None
        self._ruling = Ruling()
        self._takes_acks = False
        self._turn_is_over = False
        self._deadline: float | None = now + self._limits.login_wait_s
        self._greeting_plugin = login.accounts.greeting_plugin
        self._scramble = printable_scramble(login.random_bytes(SCRAMBLE_BYTES))
        version = greeting_version(facts.version)
        self._send(greeting_payload(version, connection_id, self._greeting_plugin, self._scramble, self._offered))

    # --- called by the shell --------------------------------------------------------------------------------------

    def receive(self, data: bytes | bytearray | memoryview, now: float) -> list[Event]:
        """Take received bytes, and return what happened. A closed connection takes nothing."""
        if self.state is State.CLOSED:
            return []
        if self.state is State.TLS_EXPECTED:
            raise IllegalInput("bytes that belong to TLS")
        self._input.append(data)
        return self._work_in_turn(now)

    def bytes_to_send(self) -> bytes:
        """Return the bytes to be written now, once."""
        data = bytes(self._output)
        self._output.clear()
        if self._framed:
            # Mostly it is alone, and then not copied: a list of 100,000 files has 3 MB.
            data, self._framed = self._framed + data if data else self._framed, b""
        return data

    def next_deadline(self) -> float | None:
        """Return when `pass_time` is due, on the clock of `now`."""
        return self._deadline

    def pass_time(self, now: float) -> list[Event]:
        """End a connection whose deadline has passed."""
        if self._deadline is None or now < self._deadline:
            return []
        if self.state is State.VERDICT_HELD:
            return [*self._give_verdict(now), *self._work(now)]
        waited = "for a login" if self.account is None else "for a command"
        return [self._break(PeerError(ErrorCode.ER_NET_READ_INTERRUPTED, f"Waited too long {waited}"))]

    def tls_established(self, channel: Channel) -> None:
        """Answer `TlsRequested`: from now on `receive` takes, and `bytes_to_send` returns, the content of TLS."""
        self._become(Input.TLS_ESTABLISHED)
        self.channel = channel

    def tls_failed(self, reason: str) -> list[Event]:
        """Answer `TlsRequested`, or end a connection whose TLS broke later: nothing more can be sent to the peer."""
        if self.state is State.CLOSED:
            return []
        self._become(Input.BROKEN)
        return [Closed(PeerError(ErrorCode.ER_HANDSHAKE_ERROR, f"TLS: {reason}"))]

    def answer_check(self, step: Step, now: float) -> list[Event]:
        """Answer `CheckRequested`. A connection that was closed meanwhile ignores it."""
        if self.state is State.CLOSED or self._login is None:
            return []
        events: list[Event] = []
        self._reply(self._login.finish(step), now, events)
        return [*events, *self._work(now)]

    def answer(self, answer: GivenAnswer | AnsweredError, now: float) -> list[Event]:
        """Answer `StatementRequested`, and continue with commands that came meanwhile."""
        self._become(Input.REQUEST_ANSWERED)
        events: list[Event] = []
        apart, self._apart = self._apart, None
        if apart is not None and not isinstance(answer, AnsweredError):
            apart.take_over(self.session)
        if isinstance(answer, Done):
            self.session.notices = answer.notices
        if isinstance(answer, AnsweredError):
            self._leave_error(answer)
            events.append(StatementFailed(self._asked, answer.number, answer.what))
        if isinstance(answer, EncodedRows) and self._sequence == FIRST_OF_ANSWER:
            self._send_framed(answer.framed)
        else:
            for payload in _answer_payloads(answer, self.session):
                self._send(payload)
        self._await_command(now)
        return events + self._work_in_turn(now)

    @property
    def held_bytes(self) -> int:
        """The bytes of memory that its peer makes it hold: unread input, unsent output, statements, variables, attributes."""
        held = len(self._input) + len(self._output) + len(self._framed)
        asked = self._command_bytes * _WHEN_DECODED if self.state is State.ANSWER_PENDING else 0
        said = self._login_bytes * _WHEN_DECODED
        return held + asked + said + self._prepared.held_bytes + self.session.held_bytes

    @property
    def is_receiving_dump_request(self) -> bool:
        """True if a COM_BINLOG_DUMP_GTID has begun to come, and not ended."""
        return self.state is State.COMMAND_EXPECTED and self._input.first_byte == Command.COM_BINLOG_DUMP_GTID

    def forget(self) -> None:
        """Release everything that it holds, including the rule about logins: the connection is over."""
        if self.state is not State.CLOSED:
            self._become(Input.BROKEN)
        self._input.clear()
        self._output.clear()
        self._framed = b""
        self._prepared.forget()
        self.session.forget()
        self._login, self._verdict, self._login_bytes = None, None, 0
        self._apart = None
        self._login_terms = replace(self._login_terms, rule=None)

    @property
    def holds_unread_commands(self) -> bool:
        """True if so many bytes came after an unanswered command that no more should be read."""
        waits = self.state not in READERS or self.has_more_to_do
        return waits and len(self._input) > _MAX_WAITING_BYTES

    @property
    def has_more_to_do(self) -> bool:
        """True if commands, or acknowledgements during a dump, were left for later: call `go_on` once what `bytes_to_send` returned
        is on its way.
        """
        return self._turn_is_over and self.state in _IN_TURNS

    def go_on(self, now: float) -> list[Event]:
        """Take some more of the commands that were sent ahead."""
        return self._work(now) if self.has_more_to_do else []

    def accept_dump(self, *, takes_acks: bool = False) -> int:
        """Begin the stream, and return the sequence number of its first packet. `takes_acks`: the replica sends acknowledgements."""
        self._become(Input.DUMP_ACCEPTED)
        self.has_spoken = True
        self._takes_acks = takes_acks
        self._input.wide_limits = {}
        if takes_acks:
            self._input.limit_bytes = MAX_ACKNOWLEDGEMENT_BYTES
        return self._sequence

    def break_off(self, error: PeerError) -> Closed:
        """End a connection that broke the rules, or that cannot be kept; a dump ends without an error packet (`_break`).

        It may have ended meanwhile: a goodbye can come right after what broke the rules.
        """
        return Closed(error) if self.state is State.CLOSED else self._break(error)

    def refuse_dump(self, error: AnsweredError) -> list[Event]:
        """Answer with an error instead of the stream."""
        self._become(Input.DUMP_REFUSED)
        return [self._end_with(error)]

    def drop_dump(self, error: AnsweredError) -> list[Event]:
        """End the connection without reporting the reason to the peer."""
        self._become(Input.DUMP_REFUSED)
        return [Closed(error)]

    def end_dump(self, sequence: int, now: float) -> list[Event]:
        """End the stream with EOF, as packet number `sequence`; then commands follow again."""
        self._become(Input.DUMP_ENDED)
        self._takes_acks = False
        self._take_commands()
        self._sequence = sequence
        self._send(eof_payload())
        self._await_command(now)
        return self._work(now)

    def fail_dump(self, sequence: int, error: AnsweredError) -> list[Event]:
        """End the stream with an error, as packet number `sequence`. Only between two packets of the stream."""
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
        elif self.state not in WITH_DEADLINE:
            self._deadline = None

    def _send(self, payload: bytes) -> None:
        self._output += frame_payload(payload, self._sequence)
        self._sequence = (self._sequence + packet_count(len(payload))) & 0xFF

    def _send_framed(self, packets: bytes) -> None:
        """Send packets after the bytes that wait already, and before those that come."""
        self._framed += bytes(self._output) + packets if self._output else packets
        self._output.clear()

    def _end_with(self, error: AnsweredError) -> Closed:
        self._send(err_payload(error))
        return Closed(error)

    def _break(self, error: PeerError) -> Closed:
        """End a connection whose peer broke the rules. An ERR is not sent in the middle of a stream, where no place is sure to begin
        a packet, or where the peer waits for TLS.
        """
        says = self.state not in (State.DUMPING, State.TLS_EXPECTED)
        self._become(Input.BROKEN)
        return self._end_with(error) if says else Closed(error)

    def _take_commands(self) -> None:
        self._input.limit_bytes = self._limits.command_bytes
        self._input.wide_limits = {Command.COM_BINLOG_DUMP_GTID: self._limits.gtid_dump_bytes}

    def _await_command(self, now: float) -> None:
        self._deadline = now + self._limits.command_wait_s

    def _work_in_turn(self, now: float) -> list[Event]:
        """Take the input that is there now, or, for a client that has logged in, when it is its turn."""
        if self.state in _IN_TURNS and len(self._input) and (self._turn_is_over or not self._turns.has_time()):
            self._turn_is_over = True
            return []
        return self._work(now)

    def _work(self, now: float) -> list[Event]:
        events: list[Event] = []
        commands_before, waiting_before = self.commands, len(self._input)
        self._turn_is_over = False
        until = self._turns.clock() + self._turns.length_s()
        try:
            while (reader := READERS.get(self.state)) is not None:
                if self.state in _IN_TURNS and (
                    self.commands - commands_before >= _TURN_COMMANDS
                    or waiting_before - len(self._input) >= _TURN_INPUT_BYTES
                    or len(self._output) >= _TURN_OUTPUT_BYTES
                    or (len(self._input) < waiting_before and self._turns.clock() > until)
                ):
                    self._turn_is_over = len(self._input) > 0
                    break
                packet = self._input.next_packet(self._sequence if self.state in IN_LOGIN else 0)
                if packet is None:
                    break
                self._sequence = (packet.sequence + 1) & 0xFF
                reader(self, packet.payload, now, events)
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

    def _take_login(self, packet: bytes | Pieces, now: float, events: list[Event]) -> None:
        payload = bytes(packet)
        self._login_bytes = len(payload)
        if self.state is State.LOGIN_EXPECTED and self._offered & Capability.SSL and asks_for_tls(payload):
            self._become(Input.TLS_REQUESTED)
            # Bytes after the request came in clear: they are TLS, or nothing.
            events.append(TlsRequested(self._input.take()))
            return
        try:
            login = decode_login(payload, self._offered)
        except Malformed as error:
            raise PeerError(ErrorCode.ER_HANDSHAKE_ERROR, f"Bad handshake: {error}") from error
        self.session.log_in(login.user, login.database, login.charset)
        self.session.attributes = login.attributes
        self._login = LoginExchange(
            login,
            self._login_terms.now(),
            address=self.session.host,
            greeting_plugin=self._greeting_plugin,
            scramble=self._scramble,
            channel=self.channel,
            random_bytes=self._login_terms.random_bytes,
        )
        self._reply(self._login.begin(), now, events)

    def _take_token(self, packet: bytes | Pieces, now: float, events: list[Event]) -> None:
        if self._login is None:  # pragma: no cover - the table has a login before a token
            raise IllegalInput("token without a login")
        self._reply(self._login.respond(bytes(packet)), now, events)

    def _reply(self, reply: Reply, now: float, events: list[Event]) -> None:
        """Carry out a reply of the login's exchange."""
        if isinstance(reply, Switch):
            self._become(Input.SWITCH_SENT)
            self._send(auth_switch_payload(reply.plugin, reply.challenge))
        elif isinstance(reply, More):
            self._become(Input.MORE_SENT)
            self._send(auth_more_payload(reply.data))
        elif isinstance(reply, Accepted | Refused):
            self._become(Input.VERDICT_REACHED)
            reply = self._by_the_accounts_of_now(reply)
            rule = self._login_terms.rule
            ruling = rule(reply.account if isinstance(reply, Accepted) else None) if rule is not None else Ruling()
            self._verdict, self._ruling = reply, ruling
            if ruling.hold_s > 0:
                self._deadline = now + ruling.hold_s
            else:
                events.extend(self._give_verdict(now))
        else:
            self._become(Input.CHECK_REQUESTED)
            events.append(CheckRequested(reply))

    def _by_the_accounts_of_now(self, verdict: Accepted | Refused) -> Accepted | Refused:
        """Refuse a password that was removed while its login ran, or while the answer was held back."""
        if isinstance(verdict, Accepted) and self._login is not None:
            return verdict if self._login.still_allowed(self._login_terms.now()) else self._login.changed()
        return verdict

    def _give_verdict(self, now: float) -> list[Event]:
        verdict, login = self._verdict, self._login
        if verdict is None or login is None:  # pragma: no cover - the table has a verdict before it is given
            raise IllegalInput("no verdict")
        verdict = self._by_the_accounts_of_now(verdict)
        error, self._verdict, self._login = self._ruling.instead, None, None
        if error is None and isinstance(verdict, Accepted):
            if verdict.data:
                self._send(auth_more_payload(verdict.data))
            self._become(Input.LOGIN_ACCEPTED)
            self.account = verdict.account
            self.session.facts = self._ruling.facts or self.session.facts
            self.session.is_admin = verdict.account.admin
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
            reason = self._ruling.reason
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
        self._await_command(now)
        code = payload[0] if payload else -1
        self._command_bytes = len(payload)
        self.commands += 1
        if code == Command.COM_BINLOG_DUMP_GTID:
            self._ask_gtid_dump(payload[1:], events)
            return
        body = bytes(payload[1:])
        self.statements += code in (Command.COM_QUERY, Command.COM_STMT_EXECUTE)
        self.session.reads_binary = False
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
            self._take_rarer_command(code, body, now, events)

    def _take_rarer_command(self, code: int, body: bytes, now: float, events: list[Event]) -> None:
        """Answer commands of tools that are no replicas, and those that no relay can do: with the error of a server."""
        session = self.session
        try:
            if code == Command.COM_INIT_DB:
                choose_database(session.encoding.decode(body[:MOST_NAME_BYTES]), session)
                self._answer([ok_payload(session.status)])
            elif code == Command.COM_RESET_CONNECTION:
                session.reset()
                self._prepared.forget()
                if self._has_used_locks:
                    # These are not in the session.
                    released = UseLocks((LockCall(LockAction.RELEASE_ALL),), shows=False)
                    self._ask("COM_RESET_CONNECTION", released, events)
                else:
                    self._answer([ok_payload(session.status)])
            elif code == Command.COM_SET_OPTION and body in _SET_OPTIONS:
                self._answer([eof_payload(session.status)])
            elif code == Command.COM_PROCESS_INFO:
                self._ask("COM_PROCESS_INFO", ShowProcesslist(), events)
            elif code == Command.COM_PROCESS_KILL and len(body) == _CONNECTION_ID_BYTES:
                self._ask("COM_PROCESS_KILL", KillConnection(int.from_bytes(body, "little")), events)
            elif code == Command.COM_REFRESH:
                self._refresh(body, events)
            elif code == Command.COM_STMT_PREPARE:
                check_size(body)
                text = session.encoding.decode(body)
                self._answer(self._prepared.prepare(text, session.facts, session.encoding, session.status))
            elif code == Command.COM_STMT_EXECUTE:
                self._answer_text(self._prepared.execute(body, session.encoding), now, events, is_binary=True)
            elif code == Command.COM_STMT_RESET:
                self._prepared.reset(body)
                self._answer([ok_payload(session.status)])
            elif code == Command.COM_STMT_SEND_LONG_DATA:
                self._prepared.take_long_data(body)
                self._answer([])  # as in the protocol
            elif code == Command.COM_STMT_CLOSE:
                self._prepared.close(body)
                self._answer([])  # as in the protocol: no answer, also to a statement that was never prepared
            elif code == Command.COM_DEBUG and session.is_admin:
                self._answer([eof_payload(session.status)])
            else:
                raise refused_command(code, body, session)
        except StatementRefused as error:
            self._refuse(_command_name(code), error, events)

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

    def _refuse(self, what: str, error: StatementRefused, events: list[Event]) -> None:
        self._answer([err_payload(error)])
        events.append(StatementFailed(what, error.number, error.what))

    def _answer_query(self, body: bytes, now: float, events: list[Event]) -> None:
        try:
            check_size(body)
        except StatementRefused as error:
            self._leave_error(error)
            self._refuse(_loggable(self.session.encoding.decode(body[:_MAX_LOGGED_CHARACTERS])), error, events)
            return
        self._answer_text(self.session.encoding.decode(body), now, events)

    def _answer_text(self, text: str, now: float, events: list[Event], *, is_binary: bool = False) -> None:
        self.session.reads_binary = is_binary
        try:
            answer = answer_statement(text, self.session, now + self._wall_offset_s)
        except TooMuchForTheLoop:
            self._apart = StatementApart(text, self.session, now + self._wall_offset_s)
            self._ask(_loggable(text), AnswerApart(self._apart), events)
            return
        except StatementRefused as error:
            self._leave_error(error)
            self._refuse(_loggable(text), error, events)
            return
        if isinstance(answer, Request):
            self._ask(_loggable(text), answer, events)
        else:
            self._answer(_answer_payloads(answer, self.session))

    def _leave_error(self, error: AnsweredError) -> None:
        """Keep the error for SHOW WARNINGS."""
        self.session.notices = (Notice("Error", error.number, printable(error.what)),)

    def _ask(self, what: str, request: Request, events: list[Event]) -> None:
        if self.account is None:  # pragma: no cover - the table lets nobody ask before the login
            raise IllegalInput("statement without a login")
        self._become(Input.REQUEST_MADE)
        self._has_used_locks = self._has_used_locks or isinstance(request, UseLocks)
        self._asked = what
        events.append(StatementRequested(request, self.account))

    def _register(self, body: bytes, events: list[Event]) -> None:
        try:
            replica = decode_register_slave(body)
        except Malformed as error:
            refused = StatementRefused(ErrorCode.ER_MALFORMED_PACKET, f"COM_REGISTER_SLAVE: {error}")
            self._refuse("COM_REGISTER_SLAVE", refused, events)
            return
        self.replica = replica
        self._answer([ok_payload()])
        events.append(Registered(replica))

    def _ask_dump(self, body: bytes, events: list[Event]) -> None:
        try:
            request = decode_binlog_dump(body)
        except Malformed as error:
            refused = StatementRefused(ErrorCode.ER_MALFORMED_PACKET, f"COM_BINLOG_DUMP: {error}")
            self._refuse("COM_BINLOG_DUMP", refused, events)
            return
        self._become(Input.DUMP_REQUESTED)
        events.append(DumpRequested(request))

    def _ask_gtid_dump(self, body: bytes | Pieces, events: list[Event]) -> None:
        try:
            request = decode_binlog_dump_gtid(body)
        except Malformed:
            # As in MySQL 5.6 and 9.7, the connection ends.
            raise PeerError(ErrorCode.ER_MALFORMED_PACKET, "Malformed communication packet.") from None
        self._become(Input.DUMP_REQUESTED)
        events.append(DumpRequested(request))

    # --- while a dump goes on ---------------------------------------------------------------------------------------

    def _take_beside_dump(self, payload: bytes | Pieces, _now: float, events: list[Event]) -> None:
        if payload == bytes((Command.COM_QUIT,)):
            self._become(Input.QUIT)
            events.append(Closed())
        elif self._takes_acks and payload[:1] == bytes((MAGIC,)):
            events.append(_decoded_ack(bytes(payload)))
        else:
            raise PeerError(ErrorCode.ER_UNKNOWN_COM_ERROR, "No command is taken while a dump goes on")


_IN_TURNS: Final = (State.COMMAND_EXPECTED, State.DUMP_REQUESTED, State.DUMPING)
# The reader of the next packet. In the states that are not here nothing of the peer is read.
READERS: Final[Mapping[State, Callable[[SourceSide, bytes | Pieces, float, list[Event]], None]]] = {
    State.LOGIN_EXPECTED: SourceSide._take_login,
    State.TLS_LOGIN_EXPECTED: SourceSide._take_login,
    State.TOKEN_EXPECTED: SourceSide._take_token,
    State.COMMAND_EXPECTED: SourceSide._take_command,
    State.DUMP_REQUESTED: SourceSide._take_beside_dump,
    State.DUMPING: SourceSide._take_beside_dump,
}


def _decoded_ack(payload: bytes) -> AckReceived:
    try:
        return AckReceived(decode_acknowledgement(payload))
    except Malformed as error:
        raise PeerError(ErrorCode.ER_MALFORMED_PACKET, f"Bad acknowledgement: {error}") from error


def _answer_payloads(answer: GivenAnswer | AnsweredError, session: StatementSession) -> list[bytes]:
    if isinstance(answer, Rows):
        return result_payloads(answer, session.encoding, session.status, is_binary=session.reads_binary)
    if isinstance(answer, EncodedRows):
        return list(answer.payloads)
    if isinstance(answer, StatisticsText):
        # Plain text in a packet of its own kind, without a header byte. Source: MySQL 9.x `sql_parse.cc`.
        return [answer.text.encode()]
    if isinstance(answer, AnsweredError):
        return [err_payload(answer)]
    return [ok_payload(session.status, warnings=len(answer.notices))]


def _loggable(text: str) -> str:
    """Return a statement for the log: its beginning, without secrets."""
    return _shown(without_secrets(text), _MAX_LOGGED_CHARACTERS)


def _command_name(code: int) -> str:
    return Command(code).name if code in set(Command) else f"command 0x{code & 0xFF:02x}"


def _shown(text: str, limit_bytes: int = _MAX_SHOWN_BYTES) -> str:
    """Return a peer's text, safe to log and to send back: bounded, printable."""
    return printable(text, limit_bytes)
