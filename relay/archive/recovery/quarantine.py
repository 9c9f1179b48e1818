"""Bytes that recovery cuts off although they are not merely an incomplete tail: they are kept for inspection."""

from pathlib import Path

from relay.archive.storage.files import QUARANTINE_INFIX, TEMPORARY_SUFFIX, FileLayer, StoredFile, write_all
from relay.binlog_file.file_bytes import pieces


def quarantine(directory: Path, layer: FileLayer, fd: int, name: str, start: int, stop: int) -> str | None:
    """Copy [start, stop) to NAME.lost-START, durably, and return that name; None: it is all zero, and not kept.

    A copy of an earlier recovery that was killed before it could cut is used instead. Raises: OSError.
    """
    stored = StoredFile(layer, fd)
    if all(not any(piece) for piece in pieces(stored, start, stop)):
        return None
    target = directory / f"{name}{QUARANTINE_INFIX}{start}"
    serial = 1
    while layer.exists(target):
        if _is_copy(layer, target, stored, start, stop):
            return target.name
        serial += 1
        target = directory / f"{name}{QUARANTINE_INFIX}{start}-{serial}"
    temporary = target.with_name(target.name + TEMPORARY_SUFFIX)
    out = layer.create(temporary)
    try:
        at = 0
        for piece in pieces(stored, start, stop):
            write_all(layer, out, [piece], at, len(piece))
            at += len(piece)
        layer.sync_data(out)
    finally:
        layer.close(out)
    layer.rename(temporary, target)
    layer.sync_directory(directory)
    return target.name


def _is_copy(layer: FileLayer, copy: Path, stored: StoredFile, start: int, stop: int) -> bool:
    with StoredFile.open(layer, copy) as kept:
        if kept.size != stop - start:
            return False
        at = 0
        for piece in pieces(stored, start, stop):
            if kept.read(at, len(piece)) != piece:
                return False
            at += len(piece)
    return True
