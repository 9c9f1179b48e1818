"""What can end the stream from a source, by who has to act."""

from enum import Enum
from typing import Final

from protocol.errors import ErrorCode, ExitCode, RelayError
from protocol.printable import printable

_MOST_BYTES: Final = 4096


class FailureKind(Enum):
    """Kinds of failure of the upstream side; each is retried at its own pace, or not at all."""

    NETWORK = "network"  # the source or the way to it is gone: retried for ever
    AUTHENTICATION = "authentication"  # the source refuses us: somebody must act there; retried slowly
    STREAM_BROKEN = "stream_broken"  # bytes that cannot be: asked for again a few times, then an operator must look
    POSITION_GONE = "position_gone"  # the source cannot give what comes next: an operator must choose
    IDENTITY = "identity"  # another source, or one that was reset: never mixed into this archive
    SETUP = "setup"  # the source cannot be replicated from as it is configured
    ARCHIVE = "archive"  # our own disk


TERMINAL = frozenset({FailureKind.POSITION_GONE, FailureKind.IDENTITY, FailureKind.SETUP})

ACCEPT_GAP: Final = (
    "Or go on without it, which is recorded: CALL binlog_relay.accept_gap() here, or `binlog-relay archive accept-gap` "
    "while the relay is stopped."
)
"""The end of the advice at a stop behind which the archive can go on, once somebody accepts the gap."""
# What a replica shows as Last_IO_Errno for such an end.
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
    """The stream ended. name: for machines. number: the error that a replica would show.

    What it repeats of a source is made printable: it goes to the ledger, to replicas, to pages and terminals.
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
