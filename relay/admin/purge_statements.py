"""PURGE BINARY LOGS: the files that may be removed, and what keeps the others.

Files go from the oldest on, up to the one that was named or that is not old enough; never the newest one, and never one that a
connected replica, or a view, reads or will come to. What a replica that is away would ask for is not kept, as in a server: the
replica will be refused because its files are missing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from protocol.errors import ErrorCode, StatementRefused
from protocol.position import binlog_number
from protocol.statements import Done, Notice
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archive_errors import ArchiveError, ArchiveMisuse
from relay.archive.storage.archived_file import ArchivedFile
from relay.downstream.connection.client_status import ClientStatus
from relay.view.shown_view import ShownView


class GenerationFile(NamedTuple):
    """A file of a generation."""

    generation: Generation
    file: ArchivedFile


@dataclass(frozen=True, slots=True)
class Purge:
    """The files that are removed, and the notice about requested files that stay."""

    files: tuple[GenerationFile, ...]
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class ViewReader:
    """A view that is built from the archive. `needed_file`: the file with which it continues; it needs what follows, too; empty: all
    there is. needed_generation: the archive's generation of that file; None: unknown."""

    name: str
    needed_file: str
    needed_generation: int | None = None


Reader = ClientStatus | ViewReader
Readers = Callable[[], Iterable[Reader]]
"""The present readers of the archive. It is called again for each generation: removing files takes a while, and replicas come
meanwhile."""


def view_reader(view: ShownView) -> ViewReader:
    """Return what the view must still be built from, also for one that has stopped: it may be continued."""
    status, start = view.status, view.settings.start
    if status.needed is not None:
        return ViewReader(view.settings.name, status.needed.file, status.source_generation)
    return ViewReader(view.settings.name, start.position.file if start is not None else "")


async def purge_to(archive: Archive, name: str, readers: Readers, reason: str) -> Done:
    """Remove everything before the file `name`, of the newest generation that has one of that name. Raises: StatementRefused."""
    held = held_files(archive)
    place = next((place for place in reversed(range(len(held))) if held[place].file.name == name), None)
    if place is None:
        has = f"{held[0].file.name} to {held[-1].file.name}" if held else "no file yet"
        raise StatementRefused(
            ErrorCode.ER_UNKNOWN_TARGET_BINLOG,
            f"Target log not found in binlog index: binlog-relay holds {has}",
        )
    return await _carry_out(archive, held[:place], readers, reason)


async def purge_before(archive: Archive, unix_s: float, readers: Readers, reason: str) -> Done:
    """Remove files whose newest event is older than `unix_s`, up to the first that is not. Raises: StatementRefused."""
    held = held_files(archive)
    count = 0
    while count < len(held) and 0 < held[count].file.last_timestamp < unix_s:
        count += 1
    return await _carry_out(archive, held[:count], readers, reason)


def held_files(archive: Archive) -> list[GenerationFile]:
    """Return the files of all generations, oldest first."""
    return [GenerationFile(generation, file) for generation in archive.all for file in generation.files]


def plan(held: Sequence[GenerationFile], count: int, connections: Iterable[Reader], gone: int = 0) -> Purge:
    """Return which of the oldest `count` files may go now. gone: how many the same statement has removed before."""
    connections = tuple(connections)
    wanted = held[:count]
    for number, (generation, file) in enumerate(wanted):
        readers = [connection for connection in connections if _needs(connection, generation, file, held)]
        if readers:
            text = (
                f"file {file.name} was not purged because it was being read by {len(readers)} thread(s), purged only "
                f"{gone + number} out of {gone + len(wanted)} files. Read by {_named(readers)}"
            )
            notice = Notice("Warning", ErrorCode.ER_WARN_PURGE_LOG_IN_USE, text)
            return Purge(tuple(wanted[:number]), (notice,))
        if number == len(held) - 1:
            text = f"file {file.name} was not purged because it is the active log file."
            notice = Notice("Warning", ErrorCode.ER_WARN_PURGE_LOG_IS_ACTIVE, text)
            return Purge(tuple(wanted[:number]), (notice,))
    return Purge(tuple(wanted), ())


def _place(held: GenerationFile) -> tuple[int, int]:
    return held.generation.number, held.file.number


def _needs(connection: Reader, generation: Generation, file: ArchivedFile, held: Sequence[GenerationFile]) -> bool:
    """Return whether the connection reads this file, or is about to. Files are tried from the oldest on."""
    if isinstance(connection, ViewReader):
        return _needs_to_make(connection, generation, file, held)
    needed = connection.needed_file
    if needed is None:
        return False
    if not needed:
        return file is held[0].file
    return needed == file.name and connection.needed_generation in (None, generation.number)


def _needs_to_make(
    view: ViewReader, generation: Generation, file: ArchivedFile, held: Sequence[GenerationFile]
) -> bool:
    """Return whether this file is the one with which the view continues, or comes after it: that one may be missing."""
    if not view.needed_file:
        return True
    number = view.needed_generation
    if number is None:
        names = (one.generation.number for one in held if one.file.name == view.needed_file)
        number = next(names, held[0].generation.number)
    return (generation.number, file.number) >= (number, binlog_number(view.needed_file))


def _named(readers: Sequence[Reader]) -> str:
    shown = [
        f"the view {reader.name}"
        if isinstance(reader, ViewReader)
        else f"'{reader.user}'@'{reader.address}' (server_id {reader.server_id}, connection {reader.connection_id})"
        for reader in readers[:3]
    ]
    more = [f"{len(readers) - 3} more"] if len(readers) > 3 else []
    return ", ".join(shown + more)


async def _carry_out(archive: Archive, wanted: Sequence[GenerationFile], readers: Readers, reason: str) -> Done:
    """Remove the files up to the last of `wanted`, by its name: another statement may remove some of them at the same time."""
    last = max(map(_place, wanted), default=None)
    gone = 0
    try:
        while True:
            held = held_files(archive)
            count = sum(last is not None and _place(one) <= last for one in held)
            purge = plan(held, count, readers(), gone)
            if not purge.files:
                return Done(purge.notices)
            generation = purge.files[0].generation
            names = [held.file.name for held in purge.files if held.generation is generation]
            await generation.purge(names, reason)
            gone += len(names)
    except ArchiveMisuse as error:
        raise StatementRefused(
            ErrorCode.ER_LOG_IN_USE, f"A purgeable log is in use, will not purge: {error.what}"
        ) from error
    except ArchiveError as error:
        raise StatementRefused(ErrorCode.ER_BINLOG_PURGE_FATAL_ERR, f"Fatal error during log purge: {error}") from error
    finally:
        await archive.forget_emptied()
