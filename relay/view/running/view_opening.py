"""A view is opened at the relay's start: its settings are compared, its archive is recovered, decisions about it are read.

An obstacle is reported with whether it may pass by itself.
"""

import asyncio
import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path

from protocol.errors import RelayError
from relay.archive.archive import Archive
from relay.archive.generation import GenerationState
from relay.archive.storage.archive_errors import ArchiveError, ArchiveLocked, ArchiveWriteError
from relay.archive.storage.disk_advice import disk_advice, start_advice
from relay.archive.storage.files import FileLayer
from relay.archive.write.options import ArchiveOptions
from relay.archive_inspection.listing import read_ledgers
from relay.view.inspect.view_removal import NotRemoved, remove_leftover
from relay.view.rules.kept_settings import check_kept, damage_advice, view_directory
from relay.view.rules.settings import ViewSettings
from relay.view.running.view import View
from relay.view.stops.view_stop import ACCEPTS
from relay.view.view_skips import Skips, skips_of


class ViewNotOpened(RelayError):
    """A view could not be opened. `what` is a sentence. `kind` is the same for the same trouble.

    `may_pass`: it may pass while the relay runs, by itself or because somebody frees space, grants a permission or ends another
    process; then trying again is right. What needs other settings or other files needs a restart, and is not tried again.
    """

    def __init__(self, what: str, advice: str, *, may_pass: bool, kind: str) -> None:
        super().__init__(what, advice)
        self.may_pass = may_pass
        self.kind = kind


async def open_view(
    mirror: Archive,
    settings: ViewSettings,
    options: ArchiveOptions,
) -> View:
    """Open the view of the open archive `mirror`; its directory is created if it is missing. The caller calls `begin`.

    Raises: ViewNotOpened.
    """
    directory = view_directory(mirror.directory, settings.name)
    with contextlib.suppress(NotRemoved, OSError):  # the view itself does not need its removal
        await asyncio.to_thread(remove_leftover, mirror.directory, settings.name)
    is_decided = await asyncio.to_thread(_check_settings, directory, settings)
    skips = await asyncio.to_thread(_decided, mirror.directory, settings.name)
    try:
        archive = await Archive.open(directory, replace(options, damage_advice=damage_advice(settings.name)))
    except ArchiveError as error:
        raise _of_archive(error) from error
    if settings.accept and is_decided:
        _note_accepted(archive, settings)
    return View(mirror, archive, settings, skips)


def _note_accepted(archive: Archive, settings: ViewSettings) -> None:
    """Write into the ledger of the view's archive what the view accepts."""
    generation = archive.current
    if generation.state is GenerationState.OPEN:
        names = ", ".join(settings.accept)
        text = f"relay.toml accepts for this view what its replicas may compute otherwise than the source: {names}."
        generation.note_once(ACCEPTS, names, 0, text)


def _check_settings(directory: Path, settings: ViewSettings) -> bool:
    """Compare the settings with those that the view was built with. Return True if they are new, or were added to. Blocking.

    Raises: ViewNotOpened.
    """
    layer = FileLayer()
    try:
        return check_kept(directory, settings, layer)
    except ArchiveError as error:
        # relay.toml is read at the start; `view rebuild` needs a stopped relay.
        raise ViewNotOpened(f"{error.text}.", error.advice, may_pass=False, kind="settings") from error
    except OSError as error:
        number = error.errno or 0
        advice = disk_advice(layer, directory, number) or start_advice(layer, directory, number)
        what = f"{error.filename or directory}: {error.strerror or error}."
        raise ViewNotOpened(what, advice, may_pass=True, kind=f"system {number}") from error


def _decided(archive: Path, name: str) -> Skips:
    """Return the skips. Blocking. Raises: ViewNotOpened. The running relay rebuilds a catalog of the mirror that cannot be read."""
    try:
        return skips_of([row for _number, row in read_ledgers(archive)], name)
    except (ArchiveError, OSError, sqlite3.Error) as error:
        what = (
            f"the ledger of the archive, with what the view leaves out, cannot be read: {str(error).removesuffix('.')}."
        )
        raise ViewNotOpened(what, "", may_pass=True, kind="ledger") from error


def _of_archive(error: ArchiveError) -> ViewNotOpened:
    """Return the error: a full or failing disk, a missing permission, another process may pass; damaged or misplaced files do not."""
    may_pass = isinstance(error, ArchiveLocked | ArchiveWriteError)
    number = error.errno if isinstance(error, ArchiveWriteError) else 0
    return ViewNotOpened(f"{error.text}.", error.advice, may_pass=may_pass, kind=f"{type(error).__name__} {number}")
