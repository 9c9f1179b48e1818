"""Errors of the archive: what happened, to which file, at which offset, and what to do about it."""

import errno as errno_numbers
from typing import Final

from protocol.errors import ExitCode, RelayError

DISK_ADVICE: Final = {
    errno_numbers.ENOSPC: "The disk is full: free space or purge archived files; the relay goes on by itself then.",
    errno_numbers.EDQUOT: "The disk quota is used up: raise it or purge archived files; the relay goes on by itself then.",
    errno_numbers.EIO: "The disk reports an error: look into the kernel's log before anything else.",
    errno_numbers.EROFS: "The file system is read-only: look into the kernel's log, then remount it.",
}
"""The next step, by the system's error number."""
NOT_OF_A_FILE: Final = frozenset(
    {errno_numbers.EMFILE, errno_numbers.ENFILE, errno_numbers.ENOMEM, errno_numbers.EINTR, errno_numbers.EAGAIN}
)
"""System errors that say nothing about the file that was being opened or read."""
_NO_PLACE_FOR_IT: Final = frozenset(
    {
        errno_numbers.ENOENT,
        errno_numbers.ENOTDIR,
        errno_numbers.EACCES,
        errno_numbers.EPERM,
        errno_numbers.EROFS,
        errno_numbers.ENOSPC,
        errno_numbers.EDQUOT,
    }
)
"""The archive's directory cannot be created or used: nothing is damaged; archive.dir, its permissions or its disk are wrong."""
REPAIR: Final = (
    "Run 'binlog-relay archive repair' on the relay's host, which fetches the file again; "
    "replicas that were stopped are started then."
)
"""The next step if bytes of an archived file are not what was archived."""
PUT_BACK: Final = "Stop the relay, put the source's own file or a backup's in its place and run `archive rebuild`."
"""The next step if a binlog is missing or damaged."""


class ArchiveError(RelayError):
    """Base of the archive's errors. `file`: a name inside the archive."""

    exit_code = ExitCode.ARCHIVE_DAMAGED
    full_stop = "."


class ArchiveLocked(ArchiveError):
    """Another process has this archive directory open."""

    exit_code = ExitCode.WRONG_USE


class ArchiveWriteError(ArchiveError):
    """A write, sync, rename or catalog change failed; nothing after the last complete group was published.

    `errno` is the system's number (ENOSPC: disk full), or 0 if there is none. `needed_bytes`: how many must be free before another
    attempt can get further, if that is known; 0: only an attempt can tell.
    """

    def __init__(
        self, what: str, *, file: str | None, offset: int | None, errno: int, advice: str = "", needed_bytes: int = 0
    ) -> None:
        super().__init__(what, file=file, offset=offset, advice=advice)
        if errno in _NO_PLACE_FOR_IT:
            self.exit_code = ExitCode.WRONG_USE
        self.errno = errno
        self.needed_bytes = needed_bytes


class ArchiveCorrupt(ArchiveError):
    """Bytes in the archive that cannot be what was archived. Nothing past them is served."""


class ArchiveDamaged(ArchiveCorrupt):
    """An archived file is not what was archived. `offset`: the first byte that is known to be wrong.

    `boundary`: end of the last whole transaction before it, as far as that was looked for.
    """

    def __init__(self, what: str, *, file: str, offset: int, boundary: int) -> None:
        super().__init__(what, file=file, offset=offset, advice=REPAIR)
        self.boundary = boundary


class ArchiveUnavailable(ArchiveError):
    """A binlog cannot be read now, and perhaps later: its bucket does not answer, or a key is missing.

    `is_told`: the reason is in the log already, once for all callers.
    """

    exit_code = ExitCode.SOURCE_UNREACHABLE
    is_told = False


class ArchiveConflict(ArchiveError):
    """Two files claim the same place, or a file is where a new one must go."""


class ArchiveUnknownFile(ArchiveError):
    """A file is requested that the archive does not contain, or that comes next: the one after it would skip transactions."""


class ArchiveMisuse(ArchiveError):
    """A call that the archive's state does not allow: a bug in the caller, not in the data."""
