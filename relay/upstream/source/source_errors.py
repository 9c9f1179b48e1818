"""The failures that can end the stream from a source, by who must act."""

from enum import Enum
from typing import Final

from protocol.errors import ErrorCode, ExitCode, RelayError
from protocol.printable import printable

_MOST_BYTES: Final = 4096


class FailureKind(Enum):
    """Kinds of failure of the upstream side; each is retried at its own pace, or not at all."""

    NETWORK = "network"  # the source or the network is unavailable: retried for ever
    AUTHENTICATION = "authentication"  # the source refuses us: an operator must act there; retried slowly
    STREAM_BROKEN = "stream_broken"  # impossible bytes: requested again a few times, then an operator must look
    POSITION_GONE = "position_gone"  # the source cannot give what comes next: an operator must choose
    IDENTITY = "identity"  # another source, or one that was reset: never mixed into this archive
    SETUP = "setup"  # the source cannot be replicated from as it is configured
    ARCHIVE = "archive"  # The archive's own disk


TERMINAL = frozenset({FailureKind.POSITION_GONE, FailureKind.IDENTITY, FailureKind.SETUP})

ACCEPT_GAP: Final = (
    "Or go on without it, which is recorded: CALL binlog_relay.accept_gap() here, or `binlog-relay archive accept-gap` "
    "while the relay is stopped."
)
"""This ends the advice at a stop after which the archive can go on, once an operator accepts the gap."""
# A replica shows these as Last_IO_Errno for such an end.
_NUMBERS: Final[dict[FailureKind, int]] = {
    FailureKind.NETWORK: ErrorCode.CR_CONN_HOST_ERROR,
    FailureKind.AUTHENTICATION: ErrorCode.ER_ACCESS_DENIED_ERROR,
    FailureKind.STREAM_BROKEN: ErrorCode.ER_SLAVE_RELAY_LOG_WRITE_FAILURE,
    FailureKind.POSITION_GONE: ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG,
    FailureKind.IDENTITY: ErrorCode.ER_SLAVE_FATAL_ERROR,
    FailureKind.SETUP: ErrorCode.ER_SLAVE_FATAL_ERROR,
    FailureKind.ARCHIVE: ErrorCode.ER_SLAVE_RELAY_LOG_WRITE_FAILURE,
}


class UpstreamError(RelayError):
    """The error that the stream ended. `name` is for machines; `number` is the error that a replica would show.

    Text that it repeats from a source is made printable: it goes to the ledger, to replicas, to pages and terminals.
    """

    exit_code = ExitCode.SOURCE_UNREACHABLE

    def __init__(
        self, kind: FailureKind, what: str, advice: str = "", *, name: str | None = None, number: int | None = None
    ) -> None:
        super().__init__(printable(what, _MOST_BYTES), advice)
        if kind is FailureKind.ARCHIVE:
            self.exit_code = ExitCode.ARCHIVE_DAMAGED
        self.kind = kind
        self.name = name or kind.value
        self.number = number if number is not None else _NUMBERS[kind]
