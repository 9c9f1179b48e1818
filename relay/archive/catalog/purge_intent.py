"""The record of a removal that is in progress: the files, and the ledger rows for them.

It is written before the first file is removed and removed after the last, so that a killed removal is finished.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.storage.files import (
    BESIDE_SUFFIXES,
    PURGE_NAME,
    FileLayer,
    StoredFile,
    replace_file,
)
from relay.archive.storage.ledger_kinds import PURGED
from relay.archive.storage.storage_location import GONE_SUFFIX, PLACE_SUFFIX
from relay.disk.kept_json import kept_json
from relay.packed.packed_facts import PACKED_SUFFIXES

_INDEXES: Final = tuple(suffix for suffix in BESIDE_SUFFIXES if suffix != PLACE_SUFFIX)


def write_intent(layer: FileLayer, directory: Path, rows: Iterable[LedgerRow]) -> None:
    """Name, durably, the files that are about to be removed. Raises: OSError."""
    lines = [json.dumps([row.time, row.kind, row.file, row.offset, row.text, row.details]) + "\n" for row in rows]
    replace_file(layer, directory / PURGE_NAME, "".join(lines).encode())


def read_intent(layer: FileLayer, directory: Path) -> list[LedgerRow]:
    """Return the files whose removal was begun and perhaps not finished, as their ledger rows. Raises: OSError; ValueError."""
    path = directory / PURGE_NAME
    if not layer.exists(path):
        return []
    with StoredFile.open(layer, path) as stored:
        content = stored.read_all()
    rows = []
    for line in content.decode().splitlines():
        values = kept_json(line)
        if not isinstance(values, list) or not 5 <= len(values) <= 6 or type(values[3]) is not int:
            raise ValueError(f"{PURGE_NAME} has a line that is none")
        at, kind, file, offset, text, *details = values
        if kind != PURGED or type(at) not in (int, float) or not isinstance(file, str) or "/" in file:
            raise ValueError(f"{PURGE_NAME} names {file!r}")
        rows.append(LedgerRow(float(at), PURGED, file, int(offset), str(text), *map(str, details)))
    return rows


def remove_files(layer: FileLayer, directory: Path, names: Iterable[str]) -> None:
    """Remove binlogs and their indexes, durably on return. Files that are already missing are ignored. Raises: OSError.

    For one that may be in a bucket too, NAME.gone is left as the note of that: `relay.tiers` removes it there, and then NAME.gone.
    """
    for name in names:
        layer.unlink(directory / name)
        for suffix in PACKED_SUFFIXES:
            if layer.exists(directory / (name + suffix)):
                layer.unlink(directory / (name + suffix))
        if layer.exists(directory / (name + PLACE_SUFFIX)):
            layer.rename(directory / (name + PLACE_SUFFIX), directory / (name + GONE_SUFFIX))
        for suffix in _INDEXES:
            layer.unlink(directory / (name + suffix))
    layer.sync_directory(directory)


def forget_intent(layer: FileLayer, directory: Path) -> None:
    """Forget the intent: everything that it names is done."""
    layer.unlink(directory / PURGE_NAME)
    layer.sync_directory(directory)
