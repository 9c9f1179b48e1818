"""Checks an archive without changing it, also while the relay is running."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import HEADER_SIZE, TYPE_AT
from protocol.position import binlog_number, is_binlog_name
from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.catalog.ledger_text import read_lines
from relay.archive.storage.archive_errors import PUT_BACK
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.boundary_index import BoundaryIndex, index_path
from relay.archive.storage.files import CATALOG_NAME, INDEX_NAME, LEDGER_TEXT_NAME, FileLayer, StoredFile
from relay.archive_inspection.file_check import check_bytes, check_head, check_index
from relay.archive_inspection.verify_gtids import GtidCheck
from relay.archive_inspection.verify_permissions import check_permissions
from relay.binlog_file.event_places import event_around
from relay.disk.file_calls import read_file
from relay.packed_reads.archive_layer import layer_of

_ROTATE_NAME_AT: Final = HEADER_SIZE + 8

Progress = Callable[[str, int], None]


def verify_archive(
    directory: Path, *, deep: bool = False, on_progress: Progress | None = None, layer: FileLayer | None = None
) -> Iterator[ArchiveFinding]:
    """Yield what is wrong, file by file; nothing if all is well. Blocking: for a command line or a thread.

    Fast: owners and modes, catalog, names, numbering, sizes, format descriptions, indexes, the Rotate that links a file to the next.
    `deep` also reads every byte: CRCs, boundaries, the recorded GTIDs, digests. The open file is checked up to its last checkpoint.
    `on_progress(file, bytes)`: bytes checked since its last call, the file's whole end in the fast mode.
    """
    layer = layer or layer_of(directory)
    catalog_path = directory / CATALOG_NAME
    yield from check_permissions(directory, layer.names(directory))
    yield from _check_ledger_text(directory, layer)
    try:
        catalog = Catalog.open_read_only(catalog_path)
    except CatalogUnreadable as error:
        yield ArchiveFinding(CATALOG_NAME, None, f"{error} Run `archive rebuild`.")
        return
    try:
        damage = catalog.damage()
        if damage is not None:
            yield ArchiveFinding(CATALOG_NAME, None, f"SQLite finds: {damage}. Run `archive rebuild`.")
            return
        # Files first: one that appears between the two looks is then no finding.
        names = set(layer.names(directory))
        files = catalog.files()
        gtids = GtidCheck(layer, catalog.gtids())
    finally:
        catalog.close()
    yield from _check_names(directory, files, names)
    for place, file in enumerate(files):
        following = files[place + 1] if place + 1 < len(files) else None
        if following is not None and following.number != file.number + 1:
            yield ArchiveFinding(
                following.name, None, f"{following.number - file.number - 1} file(s) before it are not held. {PUT_BACK}"
            )
        if file.place is not None:
            gtids.passed(file)  # `relay.tiers.tier_check` checks packed files
            continue
        try:
            yield from _check_file(directory, layer, file, following, gtids, deep, on_progress)
        except OSError as error:
            yield ArchiveFinding(file.name, None, f"cannot be read: {error}")
        gtids.passed(file)


def verify_generations(
    directory: Path, *, deep: bool = False, on_progress: Progress | None = None, layer: FileLayer | None = None
) -> Iterator[tuple[int, ArchiveFinding]]:
    """Yield the findings of `verify_archive` for each generation, with its number, and check that each begins where the one before
    ended. Blocking."""
    before: ArchivedFile | None = None
    layer = layer or layer_of(directory)
    for number, path in begun_generations(directory, layer):
        findings = 0
        for finding in verify_archive(path, deep=deep, on_progress=on_progress, layer=layer):
            findings += 1
            yield number, finding
        if findings:
            before = None
            continue
        catalog = Catalog.open_read_only(path / CATALOG_NAME)
        try:
            origin, files = catalog.origin(), catalog.files()
        finally:
            catalog.close()
        if origin is not None and before is not None:
            wanted, found = (origin.after_file, origin.after_offset), (before.name, before.end)
            if wanted != found:
                what = f"begins where the one before it ended at {wanted[0]}:{wanted[1]}; that ends at {found[0]}:{found[1]}"
                yield number, ArchiveFinding(CATALOG_NAME, None, f"generation {number} {what}.")
        before = files[-1] if files else None


async def verify_in_thread(
    directory: Path,
    *,
    deep: bool = False,
    on_progress: Progress | None = None,
    on_finding: Callable[[ArchiveFinding], None] | None = None,
) -> list[ArchiveFinding]:
    """Run `verify_archive` in a thread; the callbacks are called in that thread."""

    def run() -> list[ArchiveFinding]:
        findings = []
        for finding in verify_archive(directory, deep=deep, on_progress=on_progress):
            findings.append(finding)
            if on_finding is not None:
                on_finding(finding)
        return findings

    return await asyncio.to_thread(run)


def _check_ledger_text(directory: Path, layer: FileLayer) -> Iterator[ArchiveFinding]:
    try:
        lines = read_lines(layer, directory / LEDGER_TEXT_NAME)
    except FileNotFoundError:
        yield ArchiveFinding(LEDGER_TEXT_NAME, None, "is missing; it is made again at the next start.")
        return
    except OSError as error:
        yield ArchiveFinding(
            LEDGER_TEXT_NAME, None, f"cannot be read: {error.strerror}. It is made again at the next start."
        )
        return
    for offset in lines.damaged:
        what = "this line is damaged. The next start, or `archive rebuild`, makes the file again from the catalog."
        yield ArchiveFinding(LEDGER_TEXT_NAME, offset, what)


def _check_names(directory: Path, files: list[ArchivedFile], names: set[str]) -> Iterator[ArchiveFinding]:
    known = {file.name for file in files}
    for name in sorted(names - known):
        if is_binlog_name(name) and files and binlog_number(name) <= files[-1].number:
            yield ArchiveFinding(
                name, None, "is in the directory and not in the catalog. Restart the relay or run `archive rebuild`."
            )
    try:
        listed = read_file(directory / INDEX_NAME).decode().splitlines()
    except FileNotFoundError:
        listed = []
    wanted = [f"./{file.name}" for file in files]
    if listed[: len(wanted)] != wanted:
        yield ArchiveFinding(
            INDEX_NAME, None, "does not list the archived files in order. It is written again at the next start."
        )


def _check_file(
    directory: Path,
    layer: FileLayer,
    file: ArchivedFile,
    following: ArchivedFile | None,
    gtids: GtidCheck,
    deep: bool,
    on_progress: Progress | None,
) -> Iterator[ArchiveFinding]:
    path = directory / file.name
    if file.damaged:
        what = "is known to be damaged; nothing is served from here on"
        yield ArchiveFinding(file.name, file.end, what, file.end)
        return
    try:
        stored = StoredFile.open(layer, path)
    except FileNotFoundError:
        yield ArchiveFinding(file.name, 0, "is in the catalog and not in the directory", 0)
        return
    with stored:
        findings = list(check_head(stored, file))
        yield from findings
        if any(finding.boundary is not None for finding in findings):
            return
        yield from check_index(layer, path, file)
        yield from gtids.quick(path, file)
        if file.sealed and following is not None and not file.cut:
            yield from _check_link(layer, stored, path, file, following)
        if not deep:
            if on_progress is not None:
                on_progress(file.name, file.end)
            return
        progress = None if on_progress is None else (lambda count: on_progress(file.name, count))
        yield from check_bytes(layer, stored, path, file, gtids.reading(path, file), progress)


def _check_link(
    layer: FileLayer, stored: StoredFile, path: Path, file: ArchivedFile, following: ArchivedFile
) -> Iterator[ArchiveFinding]:
    """Check that the Rotate at the end of a file names the next one (a file that a shutdown ended has none)."""
    try:
        idx_fd = layer.open_read(index_path(path))
    except FileNotFoundError:
        return
    try:
        index = BoundaryIndex(layer, idx_fd)
        number = index.last_at_or_before(file.end - 1)
        if number < 0:
            return
        start, end = event_around(stored, index.record(number).offset, file.end - 1, file.end)
    except ValueError as error:
        yield ArchiveFinding(file.name, None, f"its index does not lead to its last event: {error}")
        return
    finally:
        layer.close(idx_fd)
    event = stored.read(start, min(end - start, 1024))
    if event[TYPE_AT] == EventType.ROTATE:
        name = event[_ROTATE_NAME_AT : len(event) - (4 if file.checksum else 0)].decode("latin-1")
        if name != following.name:
            yield ArchiveFinding(
                file.name, start, f"ends with a Rotate to {name}; the next file held is {following.name}"
            )
