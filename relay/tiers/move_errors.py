"""Why a file was not moved. It is where it was, whole."""


class MoveFailed(Exception):
    """`str()` is one sentence for an operator. `file`: the binlog; `advice`: the next step, may be empty."""

    def __init__(self, what: str, *, file: str, advice: str = "") -> None:
        self.what = what
        self.file = file
        self.advice = advice
        super().__init__(f"{file}: {what}." + (f" {advice}" if advice else ""))


class MoveStopped(Exception):
    """The mover was told to end."""
