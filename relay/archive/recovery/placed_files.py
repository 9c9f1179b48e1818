"""The packed binlogs of a directory, on its disk or in a bucket, and the leftovers of a killed move.

Only the disk counts. A plain file that is whole is the binlog, whatever was recorded; a packed one next to it is part of a move that
did not end, and is removed. One that is not whole, as of a copy that was broken off, is in the way of the packed one, which stays. A
packed file without a plain one is the binlog, also if it was recorded as being in the bucket. No bucket is contacted here.
"""

import contextlib
import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from protocol.position import is_binlog_name
from relay.archive.catalog.catalog_rows import file_of
from relay.archive.recovery.digest import file_digest
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer, StoredFile, replace_file
from relay.archive.storage.storage_location import (
    PLACE_SUFFIX,
    LocationNote,
    StorageLocation,
    Tier,
    place_path,
    read_note,
)
from relay.packed.packed_facts import PACKED_SUFFIXES, plain_name

Placed = dict[str, StorageLocation]


@dataclass(slots=True)
class FoundPlaces:
    """placed: the places of packed binlogs by name. notes: the notes of those that the catalog does not know to exist. not_whole:
    plain files that are not the binlog, which is packed, with what is wrong with each. unreadable: NAME.place of what is not on the
    disk, with the reason: its place is unknown."""

    placed: Placed = field(default_factory=dict)
    notes: dict[str, LocationNote] = field(default_factory=dict)
    not_whole: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)


_OF_PLACED: Final = (*PACKED_SUFFIXES, PLACE_SUFFIX)
_PIECE: Final = 8 << 20
_UNKNOWN: Final = ""
"""The digest of a packed file that has no note."""


def find_placed(
    layer: FileLayer, directory: Path, names: Collection[str], known: Iterable[ArchivedFile]
) -> FoundPlaces:
    """Find the packed binlogs. names: all files in the directory. known: the catalog's. Leftovers of moves that did not end are
    removed, durably.

    Raises: OSError.
    """
    catalogued = {file.name: file for file in known}
    stored: dict[str, str] = {}
    noted: set[str] = set()
    # With 100,000 files and their indexes, each name is looked at once.
    for name in names:
        if name.endswith(_OF_PLACED):
            binlog = plain_name(name)
            if binlog is None:
                noted.add(name.removesuffix(PLACE_SUFFIX))
            elif is_binlog_name(binlog):
                stored[binlog] = max(stored.get(binlog, ""), name)
    if not noted and not stored:
        return FoundPlaces()
    names = set(names)
    found = FoundPlaces()
    left: list[str] = []
    sizes = layer.sizes(directory, stored.values()) if stored else {}
    for name in sorted(noted | stored.keys()):
        if not is_binlog_name(name):
            continue
        file, there, note = catalogued.get(name), stored.get(name), None
        place = None if file is None else file.place
        if place is None or name not in noted or (there is None) != (place.tier is Tier.OBJECT):
            try:
                note = read_note(directory / name)
            except ValueError as error:  # the catalog knows it, or it is unknown
                if place is None and there is None and name not in names:
                    found.unreadable[name] = str(error)
            if note is not None:
                place = note.place
        if name in names:
            has_packed = place is not None and (there is not None or place.tier is Tier.OBJECT)
            wrong = _not_whole(layer, directory / name, _archived(file, note)) if has_packed else None
            if wrong is None:
                left += [name + suffix for suffix in (*PACKED_SUFFIXES, PLACE_SUFFIX) if name + suffix in names]
                continue
            found.not_whole[name] = wrong
        if note is not None:
            found.notes[name] = note
        if there is not None:
            place = _on_disk(layer, directory, place, there, sizes[there], note)
        elif place is None or place.tier is not Tier.OBJECT:
            continue  # it is reported as missing, as any other file
        found.placed[name] = place
    for name in left:
        layer.unlink(directory / name)
    if left:
        layer.sync_directory(directory)
    return found


def _archived(file: ArchivedFile | None, note: LocationNote | None) -> ArchivedFile | None:
    """Return the sealed binlog as it was archived; None: unknown."""
    if file is not None and file.sealed and not file.damaged:
        return file
    with contextlib.suppress(TypeError):
        return None if note is None else file_of(note.file_row)
    return None


def _not_whole(layer: FileLayer, path: Path, archived: ArchivedFile | None) -> str | None:
    """Return what is wrong with the plain file in the place of a packed one; None: nothing, as far as is known."""
    if archived is None:
        return None
    size = layer.sizes(path.parent, [path.name])[path.name]
    if size < archived.end:
        return f"it has {size} bytes, {archived.end} were archived"
    digest = None if archived.digest is None else file_digest(layer, path, archived.end)
    if digest != archived.digest:
        return f"its digest is {digest}, {archived.digest} was noted when it was sealed"
    return None


def _on_disk(
    layer: FileLayer, directory: Path, place: StorageLocation | None, stored: str, size: int, note: LocationNote | None
) -> StorageLocation:
    if place is None or place.stored_name != stored:
        return StorageLocation(Tier.COLD, stored, size, None, _UNKNOWN, -1)
    if place.tier is Tier.OBJECT:
        # The copy in the bucket is complete, and stays there until the file moves again. It may be the mirror's, packed differently.
        path = directory / stored
        is_same = size == place.stored_bytes and _digest(layer, path) == place.digest
        place = replace(place, tier=Tier.COLD, stored_bytes=size)
        if not is_same:
            place = replace(place, digest=_UNKNOWN, end_digest=_UNKNOWN)
        if note is not None:
            path = directory / stored.removesuffix(_suffix(stored))
            replace_file(layer, place_path(path), replace(note, place=place).encode())
    return place


def _digest(layer: FileLayer, path: Path) -> str:
    sha = hashlib.sha256()
    with StoredFile.open(layer, path) as stored:
        for offset in range(0, size := stored.size, _PIECE):
            sha.update(stored.read(offset, min(_PIECE, size - offset)))
    return f"sha256:{sha.hexdigest()}"


def _suffix(stored: str) -> str:
    return next(suffix for suffix in reversed(PACKED_SUFFIXES) if stored.endswith(suffix))
