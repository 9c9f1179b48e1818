"""`binlog-relay view skip | rebuild`: the changes of a view. Both require a stopped relay, and report a running one."""

import getpass
import json
import os
import socket
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ExitCode
from protocol.position import Position, binlog_number, is_binlog_name
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.generation_directories import FIRST, begun_generations, generation_path
from relay.archive.storage.archive_errors import ArchiveLocked
from relay.archive.storage.directory_lock import take_lock
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.archive.storage.ledger_kinds import FILE_MISSING, PURGED
from relay.archive_inspection.listing import read_ledgers
from relay.commands.arguments import binlog_place
from relay.commands.outcome import CommandFailed
from relay.commands.view_command import stop_text, view_failures
from relay.view.first_numbers import (
    FIND_OUT,
    FirstNumber,
    engines_in,
    known_numbers,
    renumber_advice,
    renumbered_row,
)
from relay.view.generations.view_generations import begun_with, directories_of, made_from, qualified
from relay.view.inspect.named_view import NamedView
from relay.view.inspect.standing_stop import standing_stop
from relay.view.inspect.view_listing import files_of
from relay.view.inspect.view_removal import remove_view
from relay.view.rules.settings import FIRST_GNO
from relay.view.stops.view_stop import ViewStop
from relay.view.view_map import ViewMap
from relay.view.view_place import PlaceUnknown
from relay.view.view_skips import skip_row, skips_of


def skip(view: NamedView, *, at: str, yes: bool, as_json: bool) -> None:
    """Write the decision into the ledger; the next start carries it out. Raises: CommandFailed."""
    wanted = binlog_place("--at", at)
    layer = FileLayer()
    with view_failures(view):
        try:
            lock = take_lock(view.archive, layer)
        except ArchiveLocked:
            statement = f"CALL binlog_relay.view_skip('{view.name}', '{wanted.file}', {wanted.offset})"
            text = f"The relay is running. Issue this at it, with an account that has admin = true: {statement}"
            raise CommandFailed(text) from None
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


def rebuild(view: NamedView, next_uuid: UUID, *, as_json: bool, renumber: bool = False, yes: bool = False) -> None:
    """Remove the view's files; the next start rebuilds them. Raises: CommandFailed.

    next_uuid: the uuid of the GTIDs that it would have then. renumber: other numbers are right, as no replica has any; it must be
    confirmed, except with `yes`.
    """
    if view.settings.gtids == "assign" and next_uuid != view.settings.uuid:
        text = (
            f"View {view.name} has GTIDs of {view.settings.uuid}, made of the source that was followed first; made again it would "
            f'have those of {next_uuid}. Write into its [[view]] first: uuid = "{view.settings.uuid}"'
        )
        raise CommandFailed(text, ExitCode.FINDINGS)
    with view_failures(view):
        sizes = _binlogs(view.directory)
        try:
            if renumber:
                _forget_numbers(view, yes=yes)
            elif sizes:
                _check_numbers(view, sizes)
            removed = remove_view(view.archive, view.name)
            left_out = sum(map(len, skips_of([row for _number, row in read_ledgers(view.archive)], view.name).values()))
        except ArchiveLocked:
            text = (
                f"The relay is running and makes view {view.name}. Stop it, run this again, and start it: the view is made "
                "again from the archive. Its replicas wait meanwhile, those of the mirror too while the relay is stopped."
            )
            raise CommandFailed(text) from None
    size = sum(sizes.values())
    if as_json:
        record = {"view": view.name, "removed_files": len(sizes), "removed_bytes": size, "left_out": left_out}
        sys.stdout.write(json.dumps(record) + "\n")
        return
    sys.stdout.write(
        f"View {view.name}: {len(sizes)} files of {size} bytes removed. The next start makes them again from the archive.\n"
        if removed
        else f"View {view.name} has no files. The next start makes them from the archive.\n"
    )
    if left_out:
        sys.stdout.write(
            f"It leaves out again what was skipped in it, {left_out} transactions (view_skip in the ledger), also where it would "
            "not stop at them with the settings of now. A view of another name stops there, or has them.\n"
        )


def _forget_numbers(view: NamedView, *, yes: bool) -> None:
    """Ask, and write the ledger's row before anything is removed, so that a crash leaves the view with its present numbers.

    Raises: CommandFailed; ArchiveLocked; CatalogUnreadable; OSError.
    """
    if view.settings.gtids != "assign":
        text = f'View {view.name} has gtids = "{view.settings.gtids}": it gives no numbers.'
        raise CommandFailed(text)
    layer = FileLayer()
    lock = take_lock(view.archive, layer)
    try:
        if not yes:
            _ask(
                f"Other transactions of view {view.name} will get GTIDs of {view.settings.uuid}. A replica that has one of them "
                "would pass over the other transaction without a word. No replica, nor a backup of one, may have any"
            )
        _number, newest = begun_generations(view.archive)[-1]
        catalog = Catalog.open(newest / CATALOG_NAME, layer)
        try:
            catalog.add_ledger(renumbered_row(view.settings, _by()))
        finally:
            catalog.close()
    finally:
        os.close(lock)


def _decided(view: NamedView, wanted: Position, *, yes: bool, layer: FileLayer) -> ViewStop:
    """Ask, and write the ledger's row; return what is left out. Raises: CommandFailed."""
    stop = standing_stop(view.archive, view.directory, view.name, view.places.end()) if view.is_made else None
    if stop is None:
        raise CommandFailed(f"View {view.name} is not stopped, so there is nothing to skip.", ExitCode.FINDINGS)
    if (stop.file, stop.offset) != (wanted.file, wanted.offset):
        place = f"{stop.file}:{stop.offset}"
        text = f"View {view.name} stands stopped at {place}, not at {wanted}. Only that transaction can be skipped."
        raise CommandFailed(text, ExitCode.FINDINGS)
    if stop.group_stop <= stop.offset:
        text = f"View {view.name} stands stopped at {wanted}, and not for a transaction that could be left out: {stop_text(stop)}"
        raise CommandFailed(text, ExitCode.FINDINGS)
    if not yes:
        what = f"{stop.file}:{stop.offset}-{stop.group_stop}: {stop.reason.text}"
        _ask(f"Replicas of view {view.name} will never have this transaction of the source: {what}")
    row = skip_row(view.name, stop, _by())
    catalog = Catalog.open(view.archive / CATALOG_NAME, layer)
    try:
        catalog.add_ledger(row)
    finally:
        catalog.close()
    return stop


def _ask(what: str) -> None:
    """Ask for a confirmation. what: the effect, without a full stop. Raises: CommandFailed unless the answer is yes."""
    if not sys.stdin.isatty():
        raise CommandFailed(f"{what}. Add --yes.")
    sys.stderr.write(f"{what}.\nWrite yes to do it: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() != "yes":
        raise CommandFailed("Nothing was changed.")


def _binlogs(view: Path) -> dict[tuple[int, int], int]:
    """Return the sizes of a view's binlogs by generation and number, whatever the catalogs say. Raises: OSError."""
    return {
        (generation, binlog_number(path.name)): path.lstat().st_size
        for generation, directory in directories_of(view)
        for path in directory.iterdir()
        if is_binlog_name(path.name)
    }


def _check_numbers(view: NamedView, files: Iterable[tuple[int, int]]) -> None:
    """Check that a rebuilt view would number as before, and that its beginning does not depend on what was purged.

    files: of the view, the generation of it and the number of the name. Raises: CommandFailed; PlaceUnknown.
    """
    settings, start = view.settings, view.settings.start
    held = [
        (number, file.name) for number, directory in begun_generations(view.archive) for file in files_of(directory)
    ]
    if not held or settings.gtids == "keep":
        return
    generation, begin = held[0][0], Position(held[0][1], FIRST_EVENT)
    if start is not None and any(name == start.position.file for _number, name in held):
        generation = next(number for number, name in held if name == start.position.file)
        begin = start.position
        next_gno = start.next_gno
    else:
        next_gno = FIRST_GNO if start is None else 0
    ledger = [row for _number, row in read_ledgers(view.archive)]
    if start is None and _made_from(view, FIRST) == generation and _began_with(view, begin.file, files, ledger):
        return
    place = _numbered(view, generation, begin, ledger)
    is_same = place is not None and place.next_gno == next_gno
    if is_same and (start is not None or settings.gtids == "assign"):
        return
    if place is None:
        made = {(_made_from(view, number), file) for number, file in files}
        common = (one for one in held if (one[0], binlog_number(one[1])) in made)
        found = (_numbered(view, number, Position(name, FIRST_EVENT), ledger) for number, name in common)
        place = next((one for one in found if one is not None), None)
    is_numbered = settings.gtids == "assign"
    what = f"View {view.name} was begun otherwise than it would begin now: made again it would " + (
        "number its transactions otherwise, and replicas would take them for others."
        if is_numbered
        else "have other positions, and what older files say of tables would not be known."
    )
    renumbering = f" {renumber_advice(settings)}" if is_numbered else ""
    if place is None:
        text = f"{what} Which number comes first in {begin.file} is not known. {FIND_OUT}{renumbering}"
        raise CommandFailed(text, ExitCode.FINDINGS)
    raise CommandFailed(f"{what} Write into its [[view]] first: {place.toml}.{renumbering}", ExitCode.FINDINGS)


def _numbered(view: NamedView, generation: int, begin: Position, ledger: Sequence[LedgerRow]) -> FirstNumber | None:
    """Return the number of the transaction at `begin` in the view; None: unknown. Raises: CatalogUnreadable; OSError."""
    wanted = FirstNumber(view.name, generation, begin, 0, {})
    known = known_numbers(ledger, view.settings)
    noted = next((one for one in reversed(known) if one.place == wanted.place and one.view == view.name), None)
    try:
        found = view.places.of_source(Position(qualified(generation, begin.file), begin.offset))
    except PlaceUnknown:
        return noted
    path = generation_path(view.directory, found.generation) / found.view.file
    before = ViewMap.read(path).before_view(found.view.offset)
    engines = engines_in(before.rules, view.settings) if before is not None else {}
    return wanted._replace(next_gno=found.gno + 1, engines=engines)


def _began_with(view: NamedView, file: str, files: Iterable[tuple[int, int]], ledger: Sequence[LedgerRow]) -> bool:
    """Return whether the archive's oldest file is the one that the view began with, and a view without `start` begins with."""
    begun = begun_with(view.directory)
    if begun is not None:
        return (begun.position, begun.next_gno) == (Position(file, FIRST_EVENT), FIRST_GNO)
    # Nothing was purged, so there was never an older one.
    return min(files)[1] >= binlog_number(file) and not any(row.kind in (PURGED, FILE_MISSING) for row in ledger)


def _made_from(view: NamedView, generation: int) -> int:
    """Return the generation of the source's archive; if it is not known any more, the first: rebuilding helps there, too."""
    with suppress(OSError):
        return made_from(generation_path(view.directory, generation), generation)
    return FIRST


def _by() -> str:
    user = "somebody"
    with suppress(KeyError, OSError):
        user = getpass.getuser()
    return f"{user}@{socket.gethostname()} by the command line"
