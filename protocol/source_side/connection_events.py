"""The events of one replica's connection that its machine returns to the shell."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from protocol.auth.account import Account
from protocol.auth.authenticator import Channel, Work
from protocol.commands import BinlogDump, RegisterSlave
from protocol.errors import AnsweredError
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.position import Position
from protocol.statements import Request


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The login was accepted."""

    account: Account
    attributes: Mapping[str, str]
    plugin: str
    channel: Channel


@dataclass(frozen=True, slots=True)
class LoginRefused:
    """The login was refused. `reason` is for the log, and must not be shown to the client."""

    user: str
    reason: str


@dataclass(frozen=True, slots=True)
class TlsRequested:
    """The peer wants TLS: answer with `tls_established` or `tls_failed`. `received` contains bytes that already belong to TLS."""

    received: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CheckRequested:
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
class StatementRequested:
    """Only the running relay can answer this statement. Answer it with `answer`; commands that follow wait until then."""

    request: Request
    account: Account


@dataclass(frozen=True, slots=True)
class DumpRequested:
    """A dump was requested: answer it with `accept_dump`, `refuse_dump` or `drop_dump`."""

    request: BinlogDump | BinlogDumpGtid


@dataclass(frozen=True, slots=True)
class AckReceived:
    """A semi-sync replica reports that it has stored everything up to there. For what cannot be true call `break_off`."""

    position: Position


@dataclass(frozen=True, slots=True)
class Closed:
    """The last event: write the rest of `bytes_to_send`, then close. `error` is None when the peer said goodbye."""

    error: AnsweredError | None = None


Event = (
    TlsRequested
    | CheckRequested
    | LoggedIn
    | LoginRefused
    | StatementFailed
    | Registered
    | StatementRequested
    | DumpRequested
    | AckReceived
    | Closed
)
