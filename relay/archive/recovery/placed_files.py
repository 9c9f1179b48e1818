"""Which binlogs of a directory are packed, on its disk or in a bucket, and what a move that was killed has left there.

What is on the disk counts. A plain file is the binlog, whatever was noted; a packed one beside it is part of a move that did not
end, and goes. A packed file without a plain one is the binlog, also where it was noted as being in the bucket.
Nobody asks a bucket here.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from protocol.position import is_binlog_name
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.file_place import PLACE_SUFFIX, FilePlace, PlaceNote, Tier, place_path, read_note
from relay.archive.storage.files import FileLayer, StoredFile, replace_file
from relay.packed.packed_facts import PACKED_SUFFIXES, plain_name

Placed = dict[str, FilePlace]
_OF_PLACED: Final = (*PACKED_SUFFIXES, PLACE_SUFFIX)
_PIECE: Final = 8 << 20
_UNKNOWN: Final = ""
"""The digest of a packed file of which nothing was noted."""


def find_placed(
    layer: FileLayer, directory: Path, names: Collection[str], known: Iterable[ArchivedFile]
) -> tuple[Placed, dict[str, PlaceNote]]:
    """By the binlogs' names where they are packed, and what was noted of those that the catalog does not know to be there.

    names: all files in the directory. What is left of moves that did not end is removed, durably. Raises: OSError.
    """
    catalogued = {file.name: file.place for file in known if file.place is not None}
    stored: dict[str, str] = {}
    noted: set[str] = set()
    # Of 100,000 files with their indexes: each name is looked at once.
    for name in names:
        if name.endswith(_OF_PLACED):
            binlog = plain_name(name)
            if binlog is None:
                noted.add(name.removesuffix(PLACE_SUFFIX))
            elif is_binlog_name(binlog):
                stored[binlog] = max(stored.get(binlog, ""), name)
    if not noted and not stored:
        return {}, {}
    names = set(names)
    placed: Placed = {}
    notes: dict[str, PlaceNote] = {}
    left: list[str] = []
    sizes = layer.sizes(directory, stored.values()) if stored else {}
    for name in sorted(noted | stored.keys()):
        if not is_binlog_name(name):
            continue
        if name in names:
            left += [name + suffix for suffix in (*PACKED_SUFFIXES, PLACE_SUFFIX) if name + suffix in names]
            continue
        place = catalogued.get(name)
        there = stored.get(name)
        if place is None or name not in noted or (there is None) != (place.tier is Tier.OBJECT):
            note = _note(directory / name)
            if note is not None:
                notes[name], place = note, note.place
        if there is not None:
            place = _on_disk(layer, directory, place, there, sizes[there], notes.get(name))
        elif place is None or place.tier is not Tier.OBJECT:
            continue  # it is missing, as any file that is not there
        placed[name] = place
    for name in left:
        layer.unlink(directory / name)
    if left:
        layer.sync_directory(directory)
    return placed, notes


def _on_disk(
    layer: FileLayer, directory: Path, place: FilePlace | None, stored: str, size: int, note: PlaceNote | None
) -> FilePlace:
    if place is None or place.stored_name != stored:
        return FilePlace(Tier.COLD, stored, size, None, _UNKNOWN, -1)
    if place.tier is Tier.OBJECT:
        # The copy in the bucket is complete, and stays there until the file moves again. It may be the mirror's, packed otherwise.
        path = directory / stored
        is_same = size == place.stored_bytes and _digest(layer, path) == place.digest
        place = replace(place, tier=Tier.COLD, stored_bytes=size, digest=place.digest if is_same else _UNKNOWN)
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


def _note(path: Path) -> PlaceNote | None:
    try:
        return read_note(path)
    except ValueError:
        return None  # the catalog knows, or nobody
