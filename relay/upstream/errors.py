"""What can end the stream from a source, by who has to act."""

from enum import Enum


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


class UpstreamError(Exception):
    """The stream ended. `str()` says what, where and why; `advice` what to do."""

    def __init__(self, trouble: Trouble, what: str, advice: str = "", *, name: str | None = None) -> None:
        super().__init__(what)
        self.trouble = trouble
        self.what = what
        self.advice = advice
        self.name = name or trouble.value
