"""What can end the stream from a source, by who has to act."""

from enum import Enum
from typing import Final


class Trouble(Enum):
    """Classes of upstream trouble; each is retried at its own pace, or not at all."""

    NETWORK = "network"  # the source or the way to it is gone: retried for ever
    AUTHENTICATION = "authentication"  # the source refuses us: somebody must act there; retried slowly
    STREAM_BROKEN = "stream_broken"  # bytes that cannot be: asked for again a few times, then an operator must look
    POSITION_GONE = "position_gone"  # the source cannot give what comes next: an operator must choose
    IDENTITY = "identity"  # another source, or one that was reset: never mixed into this archive
    SETUP = "setup"  # the source cannot be replicated from as it is configured
    ARCHIVE = "archive"  # our own disk


TERMINAL = frozenset({Trouble.POSITION_GONE, Trouble.IDENTITY, Trouble.SETUP})

# What a replica shows as Last_IO_Errno for such an end: CR_CONN_HOST_ERROR, ER_ACCESS_DENIED_ERROR,
# ER_SLAVE_RELAY_LOG_WRITE_FAILURE, ER_MASTER_FATAL_ERROR_READING_BINLOG, ER_SLAVE_FATAL_ERROR.
_NUMBERS: Final[dict[Trouble, int]] = {
    Trouble.NETWORK: 2003,
    Trouble.AUTHENTICATION: 1045,
    Trouble.STREAM_BROKEN: 1595,
    Trouble.POSITION_GONE: 1236,
    Trouble.IDENTITY: 1593,
    Trouble.SETUP: 1593,
    Trouble.ARCHIVE: 1595,
}


class UpstreamError(Exception):
    """The stream ended. `str()` says what, where and why; `advice` what to do; `number` what a replica would show."""

    def __init__(
        self, trouble: Trouble, what: str, advice: str = "", *, name: str | None = None, number: int | None = None
    ) -> None:
        super().__init__(what)
        self.trouble = trouble
        self.what = what
        self.advice = advice
        self.name = name or trouble.value
        self.number = number if number is not None else _NUMBERS[trouble]
