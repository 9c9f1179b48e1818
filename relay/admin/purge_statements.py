"""PURGE BINARY LOGS: which files may go, and what keeps the others.

Files go from the oldest on, up to the one that was named or that is not old enough; never the newest one, and never one
that a connected replica reads or will come to. What a replica that is away would ask for is not kept, as in a server: it
will be refused with the files that are left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from protocol.errors import StatementRefused
from protocol.statements import Done, Notice
from relay.admin.refusals import ConsoleError
from relay.admin.view import Connection
from relay.archive.archive import Archive
from relay.archive.archived_file import ArchivedFile
from relay.archive.errors import ArchiveError, ArchiveMisuse


@dataclass(frozen=True, slots=True)
class Purge:
    """The files that go, and the notice about what stays although it was asked for."""

    names: tuple[str, ...]
    notices: tuple[Notice, ...]


async def purge_to(archive: Archive, name: str, connections: Iterable[Connection], reason: str) -> Done:
    """Everything before the file `name`. Raises: StatementRefused."""
    files = archive.files
    place = next((number for number, file in enumerate(files) if file.name == name), None)
    if place is None:
        held = f"{files[0].name} to {files[-1].name}" if files else "no file yet"
        raise StatementRefused(
            ConsoleError.ER_UNKNOWN_TARGET_BINLOG,
            f"Target log not found in binlog index: binlog-relay holds {held}",
        )
    return await _carry_out(archive, plan(files, place, connections), reason)


async def purge_before(archive: Archive, unix_s: float, connections: Iterable[Connection], reason: str) -> Done:
    """Files whose newest event is older than `unix_s`, up to the first that is not. Raises: StatementRefused."""
    files = archive.files
    count = 0
    while count < len(files) and 0 < files[count].last_timestamp < unix_s:
        count += 1
    return await _carry_out(archive, plan(files, count, connections), reason)


def plan(files: Sequence[ArchivedFile], count: int, connections: Iterable[Connection]) -> Purge:
    """What of the oldest `count` files may go now."""
    wanted = files[:count]
    for number, file in enumerate(wanted):
        readers = [connection for connection in connections if _needs(connection, file, files)]
        if readers:
            text = (
                f"file {file.name} was not purged because it was being read by {len(readers)} thread(s), purged only "
                f"{number} out of {len(wanted)} files. Read by {_named(readers)}"
            )
            notice = Notice("Warning", ConsoleError.ER_WARN_PURGE_LOG_IN_USE, text)
            return Purge(tuple(file.name for file in wanted[:number]), (notice,))
        if file is files[-1]:
            text = f"file {file.name} was not purged because it is the active log file."
            notice = Notice("Warning", ConsoleError.ER_WARN_PURGE_LOG_IS_ACTIVE, text)
            return Purge(tuple(file.name for file in wanted[:number]), (notice,))
    return Purge(tuple(file.name for file in wanted), ())


def _needs(connection: Connection, file: ArchivedFile, files: Sequence[ArchivedFile]) -> bool:
    """Whether the connection reads this file, or is about to. Files are tried from the oldest on."""
    needed = connection.needed_file
    return needed is not None and (needed == file.name or (not needed and file is files[0]))


def _named(readers: Sequence[Connection]) -> str:
    shown = [
        f"'{reader.user}'@'{reader.address}' (server_id {reader.server_id}, connection {reader.connection_id})"
        for reader in readers[:3]
    ]
    more = [f"{len(readers) - 3} more"] if len(readers) > 3 else []
    return ", ".join(shown + more)


async def _carry_out(archive: Archive, purge: Purge, reason: str) -> Done:
    if purge.names:
        try:
            await archive.purge(purge.names, reason)
        except ArchiveMisuse as error:
            raise StatementRefused(
                ConsoleError.ER_LOG_IN_USE, f"A purgeable log is in use, will not purge: {error.what}"
            ) from error
        except ArchiveError as error:
            raise StatementRefused(
                ConsoleError.ER_BINLOG_PURGE_FATAL_ERR, f"Fatal error during log purge: {error}"
            ) from error
    return Done(purge.notices)
