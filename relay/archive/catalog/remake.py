"""Rebuilds the catalog of a running relay after it was damaged, removed, or replaced by another file."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_aside import set_catalog_aside
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.ledger_copy import compare_copies
from relay.archive.catalog.salvage import salvage
from relay.archive.storage.files import CATALOG_NAME, LEDGER_TEXT_NAME, TEMPORARY_SUFFIX, FileLayer
from relay.archive.storage.ledger_kinds import CATALOG_REMADE, CATALOG_SET_ASIDE, FILE_MISSING, PURGED
from relay.disk.database_file import SIDES

_FROM: Final = f"A new one was made from {LEDGER_TEXT_NAME} and from what the relay knows"


def instead_of_damaged(path: Path, layer: FileLayer, why: str) -> tuple[Catalog, list[LedgerRow]]:
    """Keep the catalog at `path` aside and create one that has the ledger, the source, the origin, and the sound rows of the old one.

    Return it, and the rows that report this, which it has. The damaged one must be closed. Blocking. Raises: CatalogUnreadable;
    OSError; sqlite3.Error.
    """
    rows: list[LedgerRow] = []
    kept = ""
    if layer.exists(path):
        kept = set_catalog_aside(path)
        rows.append(_remade_row(CATALOG_SET_ASIDE, kept, f"{why} It was kept as {kept}. {_FROM}."))
    else:
        rows.append(_remade_row(CATALOG_REMADE, CATALOG_NAME, f"{why} {_FROM}."))
    catalog = Catalog.open(path, layer)
    with _closed_on_error(catalog):
        for row in rows:
            catalog.add_ledger(row)

        found: list[tuple[str, str, int, str]] = []
        compare_copies(catalog, path.parent, layer, lambda *row: found.append(row), lambda lines: None, thorough=True)
        for one in found:
            rows.append(LedgerRow(*(time.time(), *one)))
            catalog.add_ledger(rows[-1])
        if kept:
            gone = {row.file for row in catalog.ledger() if row.kind in (PURGED, FILE_MISSING)}
            salvage(path.with_name(kept), catalog, gone)
    return catalog, rows


def instead_of_lost(old: Catalog, path: Path, layer: FileLayer) -> tuple[Catalog, list[LedgerRow]]:
    """Do the same for a catalog whose file is missing or was replaced: `old` is still open; copy all of it and close it.

    Blocking. Raises: as `instead_of_damaged`; `old` is then as it was, or closed if the copy is in place.
    """
    copy = path.with_name(path.name + TEMPORARY_SUFFIX)
    layer.close(layer.create(copy))
    old.copy_to(copy)
    old.close()
    if layer.exists(path):
        kept = set_catalog_aside(path)
        text = f"Another file took the place of {CATALOG_NAME}; it was kept as {kept}. The relay's own was put back."
        row = _remade_row(CATALOG_SET_ASIDE, kept, text)
    else:
        text = f"{CATALOG_NAME} was removed while the relay ran. It was put back."
        row = _remade_row(CATALOG_REMADE, CATALOG_NAME, text)
    for suffix in SIDES:
        layer.unlink(path.with_name(path.name + suffix))
    layer.rename(copy, path)
    layer.sync_directory(path.parent)
    catalog = Catalog.open(path, layer)
    with _closed_on_error(catalog):
        catalog.add_ledger(row)
    return catalog, [row]


def _remade_row(kind: str, file: str, text: str) -> LedgerRow:
    return LedgerRow(time.time(), kind, file, -1, text)


@contextlib.contextmanager
def _closed_on_error(catalog: Catalog) -> Iterator[None]:
    try:
        yield
    except BaseException:
        catalog.close()
        raise
