"""`binlog-relay view skip | rebuild`: what changes a view. Both want the relay stopped, and say so where it runs."""

import getpass
import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from protocol.binlog.layout import FIRST_EVENT
from protocol.position import Position, binlog_number, is_binlog_name
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.generation_directories import FIRST, begun_generations, generation_path
from relay.archive.storage.archive_errors import ArchiveLocked
from relay.archive.storage.directory_lock import take_lock
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.commands.arguments import binlog_place
from relay.commands.outcome import FINDINGS, WRONG_USE, CommandFailed
from relay.commands.view_command import stop_text, view_failures
from relay.view.generations.view_generations import directories_of, made_from, qualified
from relay.view.inspect.named_view import NamedView
from relay.view.inspect.standing_stop import standing_stop
from relay.view.inspect.view_listing import files_of
from relay.view.inspect.view_removal import NotRemoved, remove_view
from relay.view.maker import ViewStop
from relay.view.view import skip_row


def skip(view: NamedView, *, at: str, yes: bool, as_json: bool) -> None:
    """Writes the decision into the ledger; the next start carries it out. Raises: CommandFailed."""
    wanted = binlog_place("--at", at)
    layer = FileLayer()
    with view_failures(view):
        try:
            lock = take_lock(view.archive, layer)
        except ArchiveLocked:
            statement = f"CALL binlog_relay.view_skip('{view.name}', '{wanted.file}', {wanted.offset})"
            text = f"The relay is running. Issue this at it, with an account that has admin = true: {statement}"
            raise CommandFailed(text, WRONG_USE) from None
        try:
            stop = _decided(view, wanted, yes=yes, layer=layer)
        finally:
            os.close(lock)
    if as_json:
        record = {"view": view.name, "file": stop.file, "offset": stop.offset, "group_stop": stop.group_stop}
        sys.stdout.write(json.dumps(record) + "\n")
        return
    sys.stdout.write(
        f"View {view.name} leaves out {stop.file}:{stop.offset}-{stop.group_stop} from the next start on; an empty transaction has "
        "its GTID. It is in the ledger.\n"
    )


def rebuild(view: NamedView, next_uuid: UUID, *, as_json: bool) -> None:
    """Removes the view's files; the next start makes them again. Raises: CommandFailed.

    next_uuid: whose GTIDs it would have then.
    """
    if view.settings.gtids == "assign" and next_uuid != view.settings.uuid:
        text = (
            f"View {view.name} has GTIDs of {view.settings.uuid}, made of the source that was followed first; made again it would "
            f'have those of {next_uuid}. Write into its [[view]] first: uuid = "{view.settings.uuid}"'
        )
        raise CommandFailed(text, FINDINGS)
    with view_failures(view):
        sizes = _binlogs(view.directory)
        if sizes:
            generation, number = min(sizes)
            _check_numbers(view, (_made_from(view, generation), number))
        try:
            removed = remove_view(view.archive, view.name)
        except ArchiveLocked:
            text = (
                f"The relay is running and makes view {view.name}. Stop it, run this again, and start it: the view is made "
                "again from the archive. Its replicas wait meanwhile, those of the mirror too while the relay is stopped."
            )
            raise CommandFailed(text, WRONG_USE) from None
        except NotRemoved as error:
            raise CommandFailed(str(error), WRONG_USE) from None
    size = sum(sizes.values())
    if as_json:
        sys.stdout.write(json.dumps({"view": view.name, "removed_files": len(sizes), "removed_bytes": size}) + "\n")
        return
    sys.stdout.write(
        f"View {view.name}: {len(sizes)} files of {size} bytes removed. The next start makes them again from the archive.\n"
        if removed
        else f"View {view.name} has no files. The next start makes them from the archive.\n"
    )


def _decided(view: NamedView, wanted: Position, *, yes: bool, layer: FileLayer) -> ViewStop:
    """Asks, and writes the ledger's row; returns what is left out. Raises: CommandFailed."""
    stop = standing_stop(view.archive, view.directory, view.name, view.places.end()) if view.is_made else None
    if stop is None:
        raise CommandFailed(f"View {view.name} is not stopped, so there is nothing to skip.", FINDINGS)
    if (stop.file, stop.offset) != (wanted.file, wanted.offset):
        place = f"{stop.file}:{stop.offset}"
        text = f"View {view.name} stands stopped at {place}, not at {wanted}. Only that transaction can be skipped."
        raise CommandFailed(text, FINDINGS)
    if stop.group_stop <= stop.offset:
        text = f"View {view.name} stands stopped at {wanted}, and not for a transaction that could be left out: {stop_text(stop)}"
        raise CommandFailed(text, FINDINGS)
    if not yes:
        _ask(view.name, stop)
    row = skip_row(view.name, stop, _by())
    catalog = Catalog.open(view.archive / CATALOG_NAME, layer)
    try:
        catalog.add_ledger(row)
    finally:
        catalog.close()
    return stop


def _ask(view: str, stop: ViewStop) -> None:
    """Raises: CommandFailed unless somebody says yes."""
    what = f"{stop.file}:{stop.offset}-{stop.group_stop}: {stop.reason.text}"
    if not sys.stdin.isatty():
        text = f"This leaves out a transaction of the source for good: {what}. Add --yes."
        raise CommandFailed(text, WRONG_USE)
    sys.stderr.write(
        f"Replicas of view {view} will never have this transaction:\n  {what}\nWrite yes to leave it out: "
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() != "yes":
        raise CommandFailed("Nothing was changed.", WRONG_USE)


def _binlogs(view: Path) -> dict[tuple[int, int], int]:
    """The sizes of a view's binlogs by generation and number, whatever the catalogs say. Raises: OSError."""
    return {
        (generation, binlog_number(path.name)): path.lstat().st_size
        for generation, directory in directories_of(view)
        for path in directory.iterdir()
        if is_binlog_name(path.name)
    }


def _made_from(view: NamedView, generation: int) -> int:
    """Of the source's archive; where it is not known any more, the first: to be made again helps there, too."""
    with suppress(OSError):
        return made_from(generation_path(view.directory, generation), generation)
    return FIRST


def _check_numbers(view: NamedView, first: tuple[int, int]) -> None:
    """A view that is made again must number as before: not so where the archive's oldest files are gone.

    first: of the view's oldest file, the generation of the source's archive and the number. Raises: CommandFailed; PlaceUnknown.
    """
    held = [(number, file) for number, directory in begun_generations(view.archive) for file in files_of(directory)[:1]]
    if not held or (held[0][0], held[0][1].number) <= first or view.settings.gtids == "keep":
        return
    begin = Position(held[0][1].name, FIRST_EVENT)
    start = view.settings.start
    if start is not None and start.position >= begin:
        if view.settings.gtids != "assign" or view.places.of_source(start.position).gno + 1 == start.next_gno:
            return
        begin = start.position
    place = view.places.of_source(Position(qualified(held[0][0], begin.file), begin.offset))
    text = (
        f"View {view.name} was begun with files that the archive no longer has: made again it would number its transactions "
        f"otherwise, and replicas would take them for others. Write into its [[view]] first: "
        f'start = {{ file = "{begin.file}", position = {begin.offset}, next = {place.gno + 1} }}'
    )
    raise CommandFailed(text, FINDINGS)


def _by() -> str:
    user = "somebody"
    with suppress(KeyError, OSError):
        user = getpass.getuser()
    return f"{user}@{socket.gethostname()} by the command line"
