"""Brings one archived file back to whole transactions, with its index.

Files are the truth. What is known to be synced is not read again; everything after it is, CRCs included. Findings are in the ledger
before the trace of them is removed: a recovery may itself be killed at any step.
"""

from collections.abc import Callable
from pathlib import Path

from protocol.binlog.layout import FIRST_EVENT
from relay.archive.recovery.quarantine import quarantine
from relay.archive.storage.archive_errors import PUT_BACK, ArchiveCorrupt
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.boundary_index import RECORD, BoundaryIndex, index_path, records_before
from relay.archive.storage.files import (
    FileLayer,
    StoredFile,
    replace_file,
    write_all,
)
from relay.archive.storage.rebuild_index import Progress
from relay.archive.storage.scan import Scan, scan
from relay.archive.sums.sum_files import forget_of_another, known_end


def recover_file(
    directory: Path,
    layer: FileLayer,
    file: ArchivedFile,
    *,
    newest: bool,
    find: Callable[[str, str, int, str], None],
    record: Callable[[], None],
    progress: Progress | None = None,
    from_start: bool = False,
) -> None:
    """Scan `file` from `file.end` (a synced boundary, or 4) and leave it whole, its index too; update its fields.

    The newest file is cut to its last whole group. An older one keeps its bytes: a group left open at its end is the source's own
    cut, bad bytes make it damaged from there on. With `from_start` the index is built from nothing. `find(kind, file, offset, text)` is
    called for what goes into the ledger, and `record()` before bytes are cut off: on its return the findings are there, durably.
    Raises: ArchiveCorrupt if the newest file is shorter than what was synced; OSError; what `record` raises, with the file as it was.
    """
    path = directory / file.name
    fd = layer.open_alone(path) if newest else layer.open_write(path)
    try:
        size = layer.size(fd)
        start = FIRST_EVENT if from_start else file.end
        if size < start:
            text = f"{file.name} has {size} bytes, {start} were synced"
            if newest:
                raise ArchiveCorrupt(
                    text,
                    file=file.name,
                    offset=size,
                    advice="Check the disk, stop the relay, run `archive rebuild` and start it: the source sends the rest again.",
                )
            find("damaged", file.name, size, f"{text}; nothing is served from there on. {PUT_BACK}")
            file.end, file.damaged = size, True
            return
        idx_ok = not from_start and _index_reaches(layer, path, start)
        if start == size and idx_ok and _index_ends_by(layer, path, start):
            return
        if not idx_ok and start != FIRST_EVENT:
            start = FIRST_EVENT
        if start == FIRST_EVENT:
            file.events = file.groups = 0
        if from_start and not file.checksum:
            forget_of_another(layer, path, size)
        on_progress = None if progress is None else (lambda count: progress(file.name, count))
        known_to = known_end(layer, path, start, size) if newest and not file.checksum else size
        result = scan(StoredFile(layer, fd), start, known_to, on_progress=on_progress)
        file.events += result.events
        file.groups += result.groups
        file.last_timestamp = max(file.last_timestamp, result.timestamp)
        if newest:
            file.end = result.boundary
            if known_to < size:
                _note_changed_tail(directory, layer, fd, file, known_to, size, find)
                record()
                layer.truncate(fd, file.end)
            elif not result.whole:
                _note_tail(directory, layer, fd, file.name, result, size, find)
                record()
                layer.truncate(fd, file.end)
        else:
            _check_older(file, result, size, find)
        _put_records(layer, path, start, result, file.end)
        layer.sync_data(fd)
    finally:
        layer.close(fd)


def _check_older(file: ArchivedFile, result: Scan, size: int, find: Callable[[str, str, int, str], None]) -> None:
    if result.fault is not None:
        file.end, file.damaged = result.boundary, True
        find(
            "damaged",
            file.name,
            result.position,
            f"{file.name}: {result.fault}; nothing is served from offset {file.end} on. {PUT_BACK}",
        )
        return
    file.end = size
    file.cut = result.in_group
    if file.cut:
        find("cut_group", file.name, result.boundary, "The source's crash left this group without its end.")


def _note_tail(
    directory: Path,
    layer: FileLayer,
    fd: int,
    name: str,
    result: Scan,
    size: int,
    find: Callable[[str, str, int, str], None],
) -> None:
    """Note what will be cut off after the last whole group. If it is not merely an incomplete tail it is kept aside: it may be needed
    to find out what happened."""
    boundary = result.boundary
    if result.broken is not None:
        kept = quarantine(directory, layer, fd, name, result.position, size)
        find(
            "trimmed_bad_bytes",
            name,
            boundary,
            f"{size - boundary} bytes behind the last whole transaction were cut off; at {result.position}: {result.broken.detail}"
            + (f" The bytes from there on are kept in {kept}." if kept else " They were all zero."),
        )
    else:
        find(
            "trimmed_tail",
            name,
            boundary,
            f"{size - boundary} bytes of an incomplete transaction were cut off; the source sends it again.",
        )


def _note_changed_tail(
    directory: Path,
    layer: FileLayer,
    fd: int,
    file: ArchivedFile,
    known_to: int,
    size: int,
    find: Callable[[str, str, int, str], None],
) -> None:
    """Note what will be cut off from a block on that is not what was received. It is kept aside."""
    kept = quarantine(directory, layer, fd, file.name, known_to, size)
    find(
        "trimmed_bad_bytes",
        file.name,
        file.end,
        f"{size - file.end} bytes behind the last whole transaction were cut off; from {known_to} on they are not what was "
        f"received. The source sends them again."
        + (f" The bytes from there on are kept in {kept}." if kept else " They were all zero."),
    )


def _index_reaches(layer: FileLayer, path: Path, start: int) -> bool:
    """Return whether the index has a sound last record at or below `start`; records for `start` itself and later are rebuilt."""
    try:
        fd = layer.open_read(index_path(path))
    except FileNotFoundError:
        return False
    try:
        index = BoundaryIndex(layer, fd)
        number = index.last_at_or_before(start)
        if start == FIRST_EVENT:
            return True
        return number >= 0 and index.record(0).offset == FIRST_EVENT and index.record(number).plausible
    finally:
        layer.close(fd)


def _index_ends_by(layer: FileLayer, path: Path, end: int) -> bool:
    fd = layer.open_read(index_path(path))
    try:
        index = BoundaryIndex(layer, fd)
        whole = layer.size(fd) == index.count * RECORD.size
        return whole and index.last_at_or_before(end) == index.count - 1
    finally:
        layer.close(fd)


def _put_records(layer: FileLayer, path: Path, start: int, result: Scan, end: int) -> None:
    idx = index_path(path)
    if start == FIRST_EVENT:
        # By a rename: a look-up, or a kill in the middle of a rebuild, must never meet half an index.
        whole = [entry for entry in RECORD.iter_unpack(result.records) if entry[0] <= end]
        replace_file(layer, idx, result.records[: len(whole) * RECORD.size])
        return
    fd = layer.open_alone(idx)
    try:
        keep = records_before(layer, fd, start)
        layer.truncate(fd, keep)
        records = result.records
        if not records or RECORD.unpack_from(records)[0] != start:
            # The parser restarts here; the record keeps a group before it from reaching into what follows.
            records = RECORD.pack(start, start, result.timestamp & 0xFFFFFFFF, 1) + records
        if records:
            write_all(layer, fd, [records], keep, len(records))
        layer.truncate(fd, records_before(layer, fd, end + 1))
        layer.sync_data(fd)
    finally:
        layer.close(fd)
