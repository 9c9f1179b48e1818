"""Why an export is not made."""

from protocol.errors import ExitCode, RelayError


class ExportRefused(RelayError):
    """What was asked for cannot be exported. `str()` is whole sentences: what, where, what to do."""

    exit_code = ExitCode.WRONG_USE


class ExportDamaged(ExportRefused):
    """Bytes of the archive are not what was archived."""

    exit_code = ExitCode.ARCHIVE_DAMAGED
