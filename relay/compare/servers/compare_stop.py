"""Why a comparison cannot begin or go on."""

from protocol.errors import ExitCode, RelayError


class CompareStop(RelayError):
    """Ends the comparison. `what` is the finding with the server, `advice` the next step. The exit code is that of wrong use, or
    of a server that could not be asked."""

    full_stop = "."

    def __init__(self, what: str, advice: str, exit_code: ExitCode = ExitCode.WRONG_USE) -> None:
        super().__init__(what, advice=advice)
        self.exit_code = exit_code


def unreachable(what: str, advice: str) -> CompareStop:
    """Return the stop after which the same command may succeed: whether the tables are equal is not known."""
    return CompareStop(what, advice, ExitCode.SOURCE_UNREACHABLE)
