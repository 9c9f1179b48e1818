"""Exit codes, and the error that ends a command with one of them."""

from typing import Final

FINE: Final = 0
FINDINGS: Final = 1
WRONG_USE: Final = 2
SOURCE_UNREACHABLE: Final = 3
ARCHIVE_DAMAGED: Final = 4
BUG: Final = 70
"""An unforeseen outcome (EX_SOFTWARE of sysexits.h)."""


class CommandFailed(Exception):
    """Ends a command: `str()` goes to stderr as it is, `code` becomes the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
