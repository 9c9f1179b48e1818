"""The catalog's ledger and `ledger.jsonl`, compared at a start: what only one of them has is added to the other, once.

A crash between the two writes leaves a row in the catalog alone; a catalog that was lost or damaged leaves rows in the text alone.
The same goes for source and origin, except that the catalog's are newer if both have them.
"""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from relay.archive.catalog.catalog import REMADE, Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.ledger_records import ledger_record, read_record
from relay.archive.catalog.ledger_text import LedgerLines, Record, cut_torn_line, encode_line, read_lines
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.files import LEDGER_TEXT_NAME, FileLayer
from relay.archive.storage.ledger_kinds import LEDGER_TEXT_DAMAGED, LEDGER_TEXT_REMADE
from relay.archive.storage.origin import Origin
from relay.disk.file_calls import rename

_ALWAYS_COMPARED: Final = 20_000
"""The number of lines that are compared one by one at each start, some 15 us each; of more only their number and the last one are."""
_LEDGER_LINE: Final = b'{"record":"ledger"'

Find = Callable[[str, str, int, str], None]
"""Takes kind, file, offset and text of a row for the ledger."""


def compare_copies(
    catalog: Catalog,
    directory: Path,
    layer: FileLayer,
    find: Find,
    note_lost_catalog: Callable[[LedgerLines], None],
    *,
    thorough: bool,
) -> None:
    """Make both say the same; faults of the text are passed to `find`. Blocking.

    `note_lost_catalog(lines)` is called before an empty catalog gets what the text says. thorough: row by row, however many there
    are. Raises: CatalogUnreadable; OSError; sqlite3.Error.
    """
    path = directory / LEDGER_TEXT_NAME
    try:
        lines = read_lines(layer, path)
    except FileNotFoundError:
        _make_text(catalog, find, f"{LEDGER_TEXT_NAME} was not there.")
        return
    except OSError as error:
        kept = set_text_aside(path)
        _make_text(catalog, find, f"{LEDGER_TEXT_NAME} could not be read ({error.strerror}) and was kept as {kept}.")
        return
    # If it cannot be written, the code that adds to it reports that.
    with contextlib.suppress(OSError):
        cut_torn_line(layer, path, lines)
    if not thorough and not lines.damaged and len(lines.lines) > _ALWAYS_COMPARED and _look_same(catalog, lines):
        return
    known = catalog.records()
    if lines.lines and not known and not catalog.files():
        note_lost_catalog(lines)
        known, lines = catalog.records(), read_lines(layer, path)
    _add_missing(catalog, known, lines)
    if lines.damaged:
        # The catalog has all that is sound in it by now.
        kept = set_text_aside(path)
        catalog.remake_text()
        first, count = lines.damaged[0], len(lines.damaged)
        text = f"{LEDGER_TEXT_NAME} has {count} damaged line(s), the first at offset {first}. It was kept as {kept}. {REMADE}"
        find(LEDGER_TEXT_DAMAGED, LEDGER_TEXT_NAME, first, text)


def _make_text(catalog: Catalog, find: Find, what: str) -> None:
    had_rows = bool(catalog.records())
    catalog.remake_text()
    if had_rows and not catalog.had_no_text:
        find(LEDGER_TEXT_REMADE, LEDGER_TEXT_NAME, -1, f"{what} {REMADE}")


def _look_same(catalog: Catalog, lines: LedgerLines) -> bool:
    # A source that changed has a line each time, so only those of the ledger are counted.
    count = sum(line.startswith(_LEDGER_LINE) for _offset, line in lines.lines)
    newest = catalog.newest_ledger_row()
    if newest is None or count != sum(catalog.count_ledger().values()):
        return False
    wanted = encode_line(ledger_record(newest))[:-1]
    return any(line == wanted for _offset, line in lines.lines[-100:])


def _add_missing(catalog: Catalog, known: list[Record], lines: LedgerLines) -> None:
    in_catalog = {encode_line(record)[:-1]: record for record in known}
    in_text = {line for _offset, line in lines.lines}
    rows: dict[LedgerRow, None] = {}
    # Only the last line of the source and the origin counts.
    newest: dict[type, tuple[bytes, SourceIdentity | Origin]] = {}
    for _offset, line in lines.lines:
        if line in in_catalog and line.startswith(_LEDGER_LINE):
            continue
        found = read_record(line)
        if isinstance(found, LedgerRow):
            rows.setdefault(found)
        elif found is not None:
            newest[type(found)] = line, found
    has = {record["record"] for record in known}
    _line, identity = newest.get(SourceIdentity, (b"", None)) if "source" not in has else (b"", None)
    _line, origin = newest.get(Origin, (b"", None)) if "origin" not in has else (b"", None)
    if rows or identity is not None or origin is not None:
        assert not isinstance(identity, Origin) and not isinstance(origin, SourceIdentity)
        catalog.take_over(sorted(rows, key=lambda row: row.time), identity, origin)
    current = {line for line, _found in newest.values()}
    catalog.write_text(
        record
        for line, record in in_catalog.items()
        if line not in (in_text if record["record"] == "ledger" else current)
    )


def set_text_aside(path: Path) -> str:
    """Rename a `ledger.jsonl` that cannot be read to a free name in the same directory; return that name. Raises: OSError."""
    serial = int(time.time())
    while os.path.lexists(target := path.with_name(f"{path.name}.corrupt-{serial}")):
        serial += 1
    with contextlib.suppress(FileNotFoundError):
        rename(path, target)
    return target.name
