"""The errors of an export that is refused."""

from protocol.errors import ExitCode, RelayError


class ExportRefused(RelayError):
    """The error that the request cannot be exported. `str()` is whole sentences: what, where, what to do."""

    exit_code = ExitCode.WRONG_USE


class ExportDamaged(ExportRefused):
    """The error that bytes of the archive are not what was archived."""

    exit_code = ExitCode.ARCHIVE_DAMAGED
