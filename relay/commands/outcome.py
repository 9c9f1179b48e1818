"""The exit code of every error, and the error that ends a command with one of them."""

from protocol.errors import ExitCode, RelayError


class CommandFailed(RelayError):
    """Ends a command: `str()` goes to stderr as it is."""

    def __init__(self, what: str, exit_code: ExitCode = ExitCode.WRONG_USE) -> None:
        super().__init__(what)
        self.exit_code = exit_code


def exit_code_of(error: Exception) -> ExitCode:
    """Return the exit code of a command that ends with `error`."""
    if isinstance(error, RelayError):
        return error.exit_code
    # A caller must not take it for findings in a binlog.
    return ExitCode.WRONG_USE if isinstance(error, OSError) else ExitCode.BUG
