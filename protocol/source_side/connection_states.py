"""The states of one replica's connection, and the table of their transitions.

connection = greeting [ TLS request, TLS handshake ] login [ switch token ] { more token } ( session | ERR )
session    = OK { command answer } [ dump ]
dump       = COM_BINLOG_DUMP ( ERR | { event packet } [ EOF { command answer } [ dump ] | ERR ] )
With semi-sync, acknowledgements come from the other side while a dump goes on.
"""

from enum import Enum
from typing import Final

from protocol.errors import RelayError


class State(Enum):
    """The states, named for what may come next."""

    LOGIN_EXPECTED = "login expected"
    TLS_EXPECTED = "TLS expected"
    TLS_LOGIN_EXPECTED = "login over TLS expected"
    TOKEN_EXPECTED = "token expected"
    CHECK_PENDING = "check pending"
    VERDICT_HELD = "verdict held"
    COMMAND_EXPECTED = "command expected"
    ANSWER_PENDING = "answer pending"
    DUMP_REQUESTED = "dump requested"
    DUMPING = "dumping"
    CLOSED = "closed"


class Input(Enum):
    """The inputs that can happen to a connection."""

    TLS_REQUESTED = "TLS requested"
    TLS_ESTABLISHED = "TLS established"
    SWITCH_SENT = "switch sent"
    MORE_SENT = "more sent"
    CHECK_REQUESTED = "check requested"
    VERDICT_REACHED = "verdict reached"
    LOGIN_ACCEPTED = "login accepted"
    LOGIN_REFUSED = "login refused"
    COMMAND_ANSWERED = "command answered"
    REQUEST_MADE = "request made"
    REQUEST_ANSWERED = "request answered"
    DUMP_REQUESTED = "dump requested"
    DUMP_ACCEPTED = "dump accepted"
    DUMP_REFUSED = "dump refused"
    DUMP_ENDED = "dump ended"
    DUMP_FAILED = "dump failed"
    QUIT = "quit"
    BROKEN = "broken"


_S = State
_I = Input
# (state, input) -> next state. A missing pair is a bug of the caller: everything that a peer can cause has a row.
TRANSITIONS: Final[dict[tuple[State, Input], State]] = {
    (_S.LOGIN_EXPECTED, _I.TLS_REQUESTED): _S.TLS_EXPECTED,
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
    (_S.TOKEN_EXPECTED, _I.CHECK_REQUESTED): _S.CHECK_PENDING,
    (_S.TOKEN_EXPECTED, _I.VERDICT_REACHED): _S.VERDICT_HELD,
    (_S.TOKEN_EXPECTED, _I.BROKEN): _S.CLOSED,
    (_S.CHECK_PENDING, _I.MORE_SENT): _S.TOKEN_EXPECTED,
    (_S.CHECK_PENDING, _I.VERDICT_REACHED): _S.VERDICT_HELD,
    (_S.CHECK_PENDING, _I.BROKEN): _S.CLOSED,
    # Every verdict passes through here: the answers to a guess and to a password wait equally long.
    (_S.VERDICT_HELD, _I.LOGIN_ACCEPTED): _S.COMMAND_EXPECTED,
    # A refusal is a state, not only a packet: nothing is answered after it.
    (_S.VERDICT_HELD, _I.LOGIN_REFUSED): _S.CLOSED,
    (_S.VERDICT_HELD, _I.BROKEN): _S.CLOSED,
    (_S.COMMAND_EXPECTED, _I.COMMAND_ANSWERED): _S.COMMAND_EXPECTED,
    (_S.COMMAND_EXPECTED, _I.REQUEST_MADE): _S.ANSWER_PENDING,
    (_S.COMMAND_EXPECTED, _I.DUMP_REQUESTED): _S.DUMP_REQUESTED,
    (_S.COMMAND_EXPECTED, _I.QUIT): _S.CLOSED,
    (_S.COMMAND_EXPECTED, _I.BROKEN): _S.CLOSED,
    (_S.ANSWER_PENDING, _I.REQUEST_ANSWERED): _S.COMMAND_EXPECTED,
    (_S.ANSWER_PENDING, _I.BROKEN): _S.CLOSED,
    (_S.DUMP_REQUESTED, _I.DUMP_ACCEPTED): _S.DUMPING,
    # As in servers, an error instead of the stream ends the connection.
    (_S.DUMP_REQUESTED, _I.DUMP_REFUSED): _S.CLOSED,
    (_S.DUMP_REQUESTED, _I.QUIT): _S.CLOSED,
    (_S.DUMP_REQUESTED, _I.BROKEN): _S.CLOSED,
    # After EOF mysqlbinlog asks for the next file on the same connection.
    (_S.DUMPING, _I.DUMP_ENDED): _S.COMMAND_EXPECTED,
    (_S.DUMPING, _I.DUMP_FAILED): _S.CLOSED,
    (_S.DUMPING, _I.QUIT): _S.CLOSED,
    (_S.DUMPING, _I.BROKEN): _S.CLOSED,
}
IN_LOGIN: Final = frozenset({_S.LOGIN_EXPECTED, _S.TLS_LOGIN_EXPECTED, _S.TOKEN_EXPECTED})
WITH_DEADLINE: Final = IN_LOGIN | {_S.TLS_EXPECTED, _S.CHECK_PENDING, _S.VERDICT_HELD, _S.COMMAND_EXPECTED}


class IllegalInput(RelayError):
    """The state does not allow an input: a bug of the caller, never of the peer."""


def step(state: State, what: Input) -> State:
    """Return the next state. Pure. Raises: IllegalInput for a pair that is not in the table."""
    try:
        return TRANSITIONS[state, what]
    except KeyError:
        raise IllegalInput(f"{what.value} while {state.value}") from None
